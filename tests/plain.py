"""Kernels as the plain Python they are written in: slow, but nothing has to be compiled."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from thresher.engine.jit import Kernel


@contextmanager
def not_compiled() -> Iterator[None]:
    """Models made, trained and read here run uncompiled; the index of the growing store stays compiled."""

    def function(self: Kernel, *parts: object) -> Any:
        return self.function

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Kernel, "for_parts", function)
        yield
