"""How fast readers read and the learner learns, and which of them waits for the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

_SHORT = 2.0
"""A pass shorter than this many seconds is not reported."""
_EVERY = 60.0
_CLEAR = 1.1
"""One side is said to wait for the other if it is this many times as fast."""


class Pace:
    """Rates of one pass, from the second batch on: the first pays for start-up and compiling.

    The readers' rate is what all of them can read if nobody makes them wait; the learner's rate is what it
    can learn if there are always rows.
    """

    def __init__(
        self, readers: int, say: Callable[[str], None], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._readers, self._say, self._clock = readers, say, clock
        self._begun = self._last_told = self._asked = math.nan
        self._waited = 0.0
        self._rows = self._read_rows = 0
        self._reading = 0.0
        self._alone = False

    def go_alone(self) -> None:
        """The learner itself reads a piece of this pass, whose rates say nothing any more."""
        self._alone = True

    def ask(self) -> None:
        """The learner begins to wait for a batch, if it does not wait already."""
        if math.isnan(self._asked):
            self._asked = self._clock()

    def receive(self) -> None:
        """The learner has a batch."""
        now = self._clock()
        if math.isnan(self._begun):
            self._begun = self._last_told = now
        else:
            self._waited += now - self._asked
        self._asked = math.nan
        if now - self._last_told > _EVERY:
            self._last_told = now
            self._tell(now)

    def count(self, rows: int, seconds: float) -> None:
        """Count the rows of a batch, and the time that its reader took; 0 if that says nothing."""
        self._rows += rows
        if seconds > 0:
            self._read_rows += rows
            self._reading += seconds

    def finish(self) -> None:
        """The pass ends."""
        now = self._clock()
        if now - self._begun > _SHORT:
            self._tell(now)

    def _tell(self, now: float) -> None:
        learning = now - self._begun - self._waited
        if learning <= 0 or not self._reading or self._alone:
            return
        learner, each = self._rows / learning, self._read_rows / self._reading
        many = "1 worker reads" if self._readers == 1 else f"{self._readers} workers read"
        rates = (
            f"{many} up to {_rate(each * self._readers)} rows/s, the learner learns up to {_rate(learner)}"
        )
        self._say(f"{rates}: {self._verdict(each * self._readers / learner, learner / each)}")

    def _verdict(self, faster: float, enough: float) -> str:
        if faster > _CLEAR:
            return "the workers wait for the learner"
        if faster < 1 / _CLEAR:
            return f"the learner waits; {math.ceil(enough)} workers could keep it busy"
        return "neither waits for the other"


def _rate(rows: float) -> str:
    digits = max(0, int(math.log10(max(rows, 1.0))) - 2)
    return f"{round(rows, -digits):,.0f}"
