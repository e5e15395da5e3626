"""Kernels as the plain Python they are written in: slow, but nothing has to be compiled.

Tables begin small: some loops go over all rows, and thousands that no test uses took most of the time.
Compiled loops read the part of a lane from the stack; here it is built once, not for every coordinate.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from thresher.engine import index, lanewise
from thresher.engine.jit import Kernel


def compiled_if(wanted: bool) -> AbstractContextManager[None]:
    """Compiled where it is wanted; the same source in plain Python elsewhere."""
    return nullcontext() if wanted else not_compiled()


@contextmanager
def not_compiled() -> Iterator[None]:
    """Models made, trained and read here run uncompiled; the index of the growing store stays compiled."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        compile_nothing(monkeypatch)
        yield


def compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same until this is undone."""

    def function(self: Kernel, *parts: object) -> Any:
        return self.function

    monkeypatch.setattr(Kernel, "for_parts", function)
    monkeypatch.setattr(lanewise.part_of, "_plain", _remembered(lanewise.part_of._plain))
    monkeypatch.setattr(index, "_FIRST_SIZE", min(index._FIRST_SIZE, 16))


def _remembered(part_of: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    """`part_of`, called once for each lane of the same parts."""
    known: dict[int, tuple[Any, dict[int, Any]]] = {}

    def remembered(parts: Any, k: int) -> Any:
        kept = known.get(id(parts))
        if kept is None:
            if len(known) > 64:
                known.clear()
            kept = known[id(parts)] = (parts, {})  # parts are held, so nothing else gets their id
        if k not in kept[1]:
            kept[1][k] = part_of(parts, k)
        return kept[1][k]

    return remembered
