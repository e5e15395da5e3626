"""Within a block, kernels run as plain Python, and tables are small: quick tests without a compiler.

The source is the same; a wrong index is an IndexError there, where compiled code would read other memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from thresher.engine import calibrating, index, kernels
from thresher.engine.compile.jit import Kernel
from thresher.learning.model import feed

Setting = tuple[Any, str, Any]
"""An object, the name of an attribute, its value"""


def _function(self: Kernel, *parts: object) -> Any:
    return self.function


NOT_COMPILED: tuple[Setting, ...] = (
    (Kernel, "for_parts", _function),
    (calibrating, "learn", kernels.learn.function),
)
"""Models run uncompiled; the index of the growing store stays compiled."""
SMALL_TABLES: tuple[Setting, ...] = (
    (index, "FIRST_SIZE", 8),
    (index, "ALWAYS_KEPT", 8),
    (feed, "PIECE", 30),
)
"""The growing store sweeps from its ninth row on, and examples are resolved in small pieces."""


@contextmanager
def set_to(settings: Iterable[Setting]) -> Iterator[None]:
    """Within this block, attributes have other values."""
    with ExitStack() as stack:
        for one in settings:
            stack.enter_context(mock.patch.object(*one))
        yield
