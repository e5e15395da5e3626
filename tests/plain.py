"""Kernels as the plain Python they are written in: slow, but nothing has to be compiled.

Tables begin small: some loops go over all rows, and thousands that no test uses took most of the time.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from thresher.engine import index
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
    monkeypatch.setattr(index, "_FIRST_SIZE", min(index._FIRST_SIZE, 16))
