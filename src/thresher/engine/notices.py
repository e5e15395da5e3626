"""What whoever faces the user may want to say, or to leave out of a speed, while code is compiled."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

COMPILING = "compiling the "
"""What every message begins with."""


class Work(NamedTuple):
    """Something to compile that takes long enough to be told."""

    what: str
    """``{}`` is the format"""
    seconds: int
    """that it takes where the cache holds nothing, on one core of a server of 2023"""


LEARNING = Work("learning loop", 3)
WORKS = {
    "thresher.data.formats.lines.line_rows": Work("reader of {}", 5),
    "thresher.data.formats.tables.delimited_rows": Work("reader of CSV and TSV", 4),
    "thresher.data.formats.tables.arrow_rows": Work("reader of tables (JSON, Parquet, Arrow)", 3),
    "thresher.engine.kernels": LEARNING,
    "thresher.engine.lanes": Work("learning loop of many models side by side", 4),
    "thresher.batch.kernels": Work("solver", 2),
}
"""By the module of the compiled function; what is not here takes less than a second or two."""


def log(message: str) -> None:
    """Tell by the logger ``thresher``, which prints to standard error unless it is set up otherwise."""
    logging.getLogger("thresher").warning(message)


_tell: list[Callable[[str], None]] = [log]
_told: set[str] = set()


def when_compiling(tell: Callable[[str], None] | None) -> None:
    """Give `tell` (None: nobody) a line on each kind of work when this process first compiles for it.

    It may be called from any thread.
    """
    _tell[:] = [] if tell is None else [tell]


def work_of(module: str, types: Iterable[Any]) -> Work | None:
    """What a function of a module, compiled for arguments of these types, is part of; None if not told of."""
    work = WORKS.get(module)
    if work is None or "{}" not in work.what:
        return work
    parts = (getattr(one, "instance_class", None) for one in types)
    grammar = next((part.__module__ for part in parts if part is not None), "lines")
    return work._replace(what=work.what.format(grammar.rpartition(".")[2].removesuffix("_rows")))


def _announce(work: Work) -> None:
    with _spent.lock:
        new, first = work.what not in _told, not _told
        _told.add(work.what)
    if new and _tell:
        once = ", once on this machine" if first else ""
        _tell[0](f"{COMPILING}{work.what}: about {work.seconds} s{once}")


class _Spent:
    """Seconds in which something was compiled, by however many threads at once."""

    def __init__(self) -> None:
        self.lock, self._under_way, self._since, self._before = threading.Lock(), 0, 0.0, 0.0

    def change(self, by: int) -> None:
        """So many more compile from now on."""
        with self.lock:
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
def compiling(work: Work | None = None) -> Iterator[None]:
    """Something is compiled, or waited for while another process compiles it; `work` is told of."""
    if work is not None:
        _announce(work)
    _spent.change(1)
    try:
        yield
    finally:
        _spent.change(-1)


def seconds_compiling() -> float:
    """Wall-clock seconds of this process in which something was being compiled."""
    return _spent.seconds()
