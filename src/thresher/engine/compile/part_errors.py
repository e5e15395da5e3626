"""Errors in the methods of parts: one line with the part, the method, the line of its file and the reason.

Numba reports a method that it cannot compile from the kernel inwards, in some 40 lines. Here, compilers note
which method of a part failed innermost, and the kernel raises that error alone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from numba import types as numba_types
from numba.core.errors import NumbaError, UnsupportedBytecodeError

from thresher.engine.protocol import KINDS, PAIR, RETURNS, PartError

_types: Any = numba_types  # has no type hints
_REFUSED = NumbaError, UnsupportedBytecodeError
_methods: list[tuple[Callable[..., Any], type]] = []
"""Methods of parts that are being compiled, outermost first; Numba's lock is held"""
_failures: list[_Failure] = []
"""Those of the kernel that is being compiled, innermost first"""
_known: dict[str, _Failure] = {}
"""All failures by how a call of the method begins in messages: Numba does not try again what has failed."""
_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)|at (?P<at>\S+\.py) \((?P<number>\d+)\)')
_FUNCTION = re.compile(r"Function\(<(?:built-in )?function (\w+)(?: at 0x\w+)?>\)")
_OTHERS = re.compile(r"[/\\](?:numba|thresher)[/\\]")
"""files that users have not written"""
_WRAPPED = re.compile(
    r"Failed in \w+ mode pipeline|During: |raised from |There are \d+ candidate|\s*- Of which "
)


class _Failure(NamedTuple):
    method: Callable[..., Any]
    cls: type
    error: Exception


@contextlib.contextmanager
def in_kernel() -> Iterator[None]:
    """Compile a kernel. Raises `PartError` instead of Numba's error if a method of a part is the reason."""
    _failures.clear()
    try:
        yield
    except _REFUSED as error:
        found = _failures[0] if _failures else _known_in(str(error))
        if found is None:
            raise
        raise _error_of(found) from None


@contextlib.contextmanager
def in_method(function: Callable[..., Any], types: Sequence[Any]) -> Iterator[None]:
    """Compile a function that kernels call; note if it fails and is, or is called by, a method of a part."""
    cls = _part_of(function, types)
    if cls is not None:
        _methods.append((function, cls))
    before = len(_failures)
    try:
        yield
    except _REFUSED as error:
        if not _failures and _methods:
            _note(*_methods[-1], error)
        raise
    else:
        del _failures[before:]  # Numba tried again, and succeeded
    finally:
        if cls is not None:
            _methods.pop()


def _note(method: Callable[..., Any], cls: type, error: Exception) -> None:
    begin = f"{method.__name__}({cls.__name__}("
    found = _known_in(str(error), begin)
    if found is None:
        found = _known[begin] = _Failure(method, cls, error)
    _failures.append(found)


def _known_in(text: str, but: str = "") -> _Failure | None:
    """The failure of another method that a message of Numba mentions."""
    latest = {cls.__name__: cls for cls in KINDS}
    known = ((begin, one) for begin, one in _known.items() if latest[one.cls.__name__] is one.cls)
    return next((one for begin, one in known if begin in text and begin != but), None)


def _part_of(function: Callable[..., Any], types: Sequence[Any]) -> type | None:
    cls: Any = getattr(types[0], "instance_class", None) if types else None
    return cls if cls in KINDS and getattr(cls, function.__name__, None) is function else None


def check_returned(function: Callable[..., Any], types: Sequence[Any], returned: object) -> None:
    """`PartError` if the compiled method of a part returns another type than its verb."""
    cls, what = _part_of(function, types), RETURNS.get(function.__name__, "")
    each = returned if what == PAIR and isinstance(returned, _types.BaseTuple) else [returned]
    fits = len(each) == 1 + (what == PAIR) and all(
        isinstance(one, _types.Number | _types.Boolean) for one in each
    )
    if cls is not None and what and not fits:
        code = function.__code__
        raise PartError(
            f"{_begin(function, cls)} ({code.co_filename}, line {code.co_firstlineno}) must return {what},"
            f" from every branch, not {_named(returned)}"
        )


def _named(returned: object) -> str:
    """A type in the words of Python.

    >>> from numba import types
    >>> _named(types.none), _named(types.Optional(types.UniTuple(types.float64, 2)))
    ('None', '(float64, float64) or None')
    """
    if isinstance(returned, _types.Optional):
        return f"{_named(returned.type)} or None"
    if isinstance(returned, _types.BaseTuple):
        return f"({', '.join(map(_named, returned))})"
    return {"none": "None", "unicode_type": "text"}.get(str(returned), str(returned))


def _begin(function: Callable[..., Any], cls: type) -> str:
    return f"{KINDS[cls]} {cls.__qualname__.rpartition('.')[2]}: {function.__name__}"


def _error_of(failure: _Failure) -> PartError:
    method, _, error = failure
    code, text = method.__code__, str(error)
    places = [(m["file"] or m["at"], int(m["line"] or m["number"])) for m in _PLACE.finditer(text)]
    own = code.co_filename, code.co_firstlineno
    places = [] if "unify return type" in text else places  # of all its branches, in any order
    file, line = next((place for place in places if not _OTHERS.search(place[0])), own)
    if file.rpartition("/")[2] == code.co_filename.rpartition("/")[2]:
        file = code.co_filename  # Numba's is relative
    return PartError(
        f"{_begin(method, failure.cls)} ({file}, line {line}) cannot be compiled: {_reason(text)}"
    )


def _reason(text: str) -> str:
    r"""Numba's reason, the innermost, in one line.

    >>> _reason("Failed in nopython mode pipeline (step: x)\nUnknown attribute 'f' of type A\n\nFile ...")
    "Unknown attribute 'f' of type A"
    >>> _reason("No implementation of function add found for signature:\n \n >>> add(float64, none)\n")
    'No implementation of function add found for signature: add(float64, none)'
    """
    lines = [_FUNCTION.sub(r"\1", line).strip().removeprefix("- ") for line in text.splitlines()]
    said = [line for line in lines if line and not _WRAPPED.match(line)]
    reason, *more = said or [text.strip()]
    while reason.endswith(":") and more:
        reason += f" {more.pop(0).removeprefix('>>> ')}"
    return f"{reason}: decorate it with numba.njit" if "<class 'function'>" in reason else reason
