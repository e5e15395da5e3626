"""What is told while code is compiled."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from thresher.engine.compile.notices import when_compiling


@contextmanager
def notices_to(tell: Callable[[str], None] | None) -> Iterator[None]:
    """Within the block, `tell` gets the notices, as in a process that has told nothing yet."""
    before = when_compiling(tell)
    try:
        yield
    finally:
        when_compiling(before)
