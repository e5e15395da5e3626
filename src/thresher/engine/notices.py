"""What whoever faces the user may want to say, or to leave out of a speed, while code is compiled."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

COMPILING = "compiling for this machine: some seconds, once"
_tell: list[Callable[[], None]] = []


def when_compiling(tell: Callable[[], None] | None) -> None:
    """Call `tell` (None: nothing) once, when this process first compiles something that no cache holds.

    It may be called from any thread.
    """
    _tell[:] = [] if tell is None else [tell]


class _Spent:
    """Seconds in which something was compiled, by however many threads at once."""

    def __init__(self) -> None:
        self._lock, self._under_way, self._since, self._before = threading.Lock(), 0, 0.0, 0.0

    def change(self, by: int) -> None:
        """So many more compile from now on."""
        with self._lock:
            now = time.perf_counter()
            if self._under_way:
                self._before += now - self._since
            self._under_way, self._since = self._under_way + by, now

    def seconds(self) -> float:
        """Until now."""
        self.change(0)
        return self._before


_spent = _Spent()


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Something is compiled, or waited for while another process compiles it."""
    if _tell:
        _tell.pop()()
    _spent.change(1)
    try:
        yield
    finally:
        _spent.change(-1)


def seconds_compiling() -> float:
    """Wall-clock seconds of this process in which something was being compiled."""
    return _spent.seconds()
