"""Messages while code is compiled, and the time it takes, to subtract from speeds."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

COMPILING = "compiling the "
"""The start of every message"""


class Work(NamedTuple):
    """Something that takes long enough to compile to deserve a message."""

    what: str
    """what is compiled; ``{}`` stands for the format"""
    seconds: int
    """compile time with an empty cache, roughly: it depends on the machine"""


LEARNING = Work("learning loop", 3)
OF_MANY = Work("learning loop for several outputs or batches", 8)
WORKS = {
    "thresher.data.formats.lines.line_rows.parse_lines": Work("reader of {}", 5),
    "thresher.data.formats.tables.arrow_rows.encode": Work("reader of tables (Parquet, Arrow)", 4),
    "thresher.data.features.ngrams._enter_texts": Work("reader of texts", 3),
    "thresher.engine.kernels.learn": LEARNING,
    "thresher.engine.outputs.learn_together": OF_MANY,
    "thresher.engine.outputs.learn_batches": OF_MANY,
    "thresher.engine.lanes.learn_lanes": Work("learning loop of many models side by side", 4),
    "thresher.batch.descent.descend": Work("solver", 2),
}
"""By the compiled function; others take no more than a second or two."""
_FORMATS = {"text_rows": "tables (CSV, TSV, JSON)"}
"""By the module of the grammar, if that is not their name"""


def log(message: str) -> None:
    """Log to the logger ``thresher``, which prints to standard error unless configured otherwise."""
    logging.getLogger("thresher").warning(message)


Tell = Callable[[str], None]
_tell: Tell | None = log
_announced: set[str] = set()


def when_compiling(tell: Tell | None) -> Tell | None:
    """Call `tell` with a line each time this process compiles something slow; None: no lines.

    `tell` may be called from any thread. What was told before this call does not count as told. Returns what
    was called until now.
    """
    global _tell
    with _spent.lock:
        before, _tell = _tell, tell
        _announced.clear()
    return before


def work_of(function: str, args: Iterable[object]) -> Work | None:
    """The work of compiling the function of this full name for these arguments; None: no message."""
    work = WORKS.get(function)
    if work is None or "{}" not in work.what:
        return work
    grammar = next((type(one).__module__ for one in args if isinstance(one, tuple)), "lines")
    grammar = grammar.rpartition(".")[2]
    return work._replace(what=work.what.format(_FORMATS.get(grammar, grammar)))


@dataclass(eq=False)
class _Spent:
    """Seconds in which at least one thread was compiling."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    _under_way: int = 0
    _since: float = 0.0
    _before: float = 0.0

    def change(self, by: int) -> float:
        """Note that so many more threads compile; the seconds until now."""
        with self.lock:
            now = time.perf_counter()
            if self._under_way:
                self._before += now - self._since
            self._under_way, self._since = self._under_way + by, now
            return self._before


_spent = _Spent()


@contextlib.contextmanager
def compiling(work: Work | None = None) -> Iterator[None]:
    """Measure the time of the block, in which code is compiled or loaded; announce `work`."""
    if work is not None:
        with _spent.lock:
            first, again = not _announced, " again, for other options" if work.what in _announced else ""
            _announced.add(work.what)
            tell = _tell
        if tell is not None:
            once = ", once for these options" if first else ""
            tell(f"{COMPILING}{work.what}{again}: about {work.seconds} s{once}")
    _spent.change(1)
    try:
        yield
    finally:
        _spent.change(-1)


def seconds_compiling() -> float:
    """Wall-clock seconds this process has spent compiling so far."""
    return _spent.change(0)
