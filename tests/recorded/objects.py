"""What a Python call returned, as text that shows every change."""

import dataclasses
import hashlib
import inspect
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

_FEW = 12
"""numbers of an array that are shown"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def shown(value: Any, depth: int = 0) -> str:
    """Type and content; arrays and frames also by a hash of all their bytes."""
    indent = "  " * depth
    if isinstance(value, np.ndarray):
        return f"{indent}{_array(value)}"
    if isinstance(value, str):
        return "".join(f"{indent}{line}\n" for line in value.splitlines()).rstrip("\n") or f"{indent}''"
    if isinstance(value, Mapping) and not hasattr(value, "__dataclass_fields__"):
        return "\n".join([f"{indent}{_kind(value)}", *_items(value.items(), depth)])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value) if one.repr)
        return "\n".join([f"{indent}{_kind(value)}", *_items(fields, depth)])
    if isinstance(value, list | tuple) and any(not isinstance(one, int | float | str) for one in value):
        return "\n".join([f"{indent}{_kind(value)}", *(shown(one, depth + 1) for one in value)])
    if hasattr(value, "to_csv"):
        return "\n".join(indent + line for line in str(value.to_csv()).splitlines())
    return "\n".join(indent + line for line in repr(value).splitlines())


def _kind(value: Any) -> str:
    return type(value).__name__


def _items(pairs: Iterable[tuple[Any, Any]], depth: int) -> Iterator[str]:
    for name, value in pairs:
        text = shown(value, depth + 2)
        one = text.strip()
        yield (
            f"{'  ' * (depth + 1)}{name}: {one}"
            if "\n" not in text
            else f"{'  ' * (depth + 1)}{name}:\n{text}"
        )


def _array(value: np.ndarray[Any, Any]) -> str:
    data = np.ascontiguousarray(value)
    whole = repr(value.tolist()).encode() if value.dtype.hasobject else data.tobytes()
    some = [repr(one) for one in value.ravel()[:_FEW].tolist()]
    more = ", ..." if value.size > _FEW else ""
    return f"{value.dtype}{list(value.shape)} {digest(whole)} [{', '.join(some)}{more}]"


def public(module: ModuleType) -> str:
    """The names of a module with their signatures, and hashes of their docstrings."""
    lines = list[str]()
    for name in sorted(getattr(module, "__all__", dir(module))):
        value = getattr(module, name)
        lines += [_described(name, value)]
        if inspect.isclass(value):
            own = (one for one in sorted(dir(value)) if not one.startswith("_"))
            lines += [
                _described(f"  .{one}", inspect.getattr_static(value, one), getattr(value, one))
                for one in own
            ]
    return "\n".join(lines)


def _described(name: str, value: Any, bound: Any = None) -> str:
    taken = value if bound is None else bound
    try:
        signature = str(inspect.signature(taken)) if callable(taken) else f" {type(value).__name__}"
    except (ValueError, TypeError):
        signature = "(?)"
    doc = getattr(taken, "__doc__", None) or ""
    return f"{name}{signature} doc {digest(doc.encode()) if doc and callable(taken) else '-'}"


def each(function: Callable[..., Any], options: Mapping[str, Any], *given: Any) -> dict[str, Any]:
    """What a function returns with each of these options alone, or the error it raises."""
    found = dict[str, Any]()
    for name, value in options.items():
        try:
            found[name] = function(*given, **{name: value})
        except Exception as error:  # noqa: BLE001  (recorded)
            found[name] = f"{type(error).__name__}: {error}"
    return found


def interrupted_after(n: int, several: Iterable[Any]) -> Iterator[Any]:
    """The first n, and then Ctrl-C."""
    for k, one in enumerate(several):
        if k == n:
            raise KeyboardInterrupt
        yield one


@contextmanager
def interrupted_when_printing(words: str) -> Iterator[None]:
    """Ctrl-C when a text with these words is printed."""
    real = sys.stdout.write

    def write(text: str) -> int:
        if words in text:
            sys.stdout.write = real  # type: ignore[method-assign]
            signal.raise_signal(signal.SIGINT)
        return real(text)

    sys.stdout.write = write  # type: ignore[method-assign]
    try:
        yield
    finally:
        sys.stdout.write = real  # type: ignore[method-assign]
