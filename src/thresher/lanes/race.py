"""A race: lanes whose progressive losses on the same rows are compared, until one is left."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.engine.sound import MOST_STEPS, Tensors, given, require

F64 = NDArray[np.float64]
_NARROWEST = 8
"""rows of a block"""
_BLOCKS = 32
"""of which the rows from one power of two to the next are made"""
_MANY = 1 << 62


class Racing(Protocol):
    """What a race needs to know of lanes."""

    @property
    def alive(self) -> list[int]:
        """Numbers of the lanes that learn."""

    @property
    def examples(self) -> int:
        """How many were given to learn."""

    def sums(self, number: int) -> tuple[float, float]:
        """Of a lane: progressive loss and importance."""

    def drop(self, number: int, reason: str) -> None:
        """Have a lane learn no more."""


class Excess(NamedTuple):
    """How much more one lane has lost than another on the same rows."""

    share: float
    """of the loss of the first"""
    errors: float
    """in standard errors of the difference"""


class Record:
    """Sums of the progressive losses of lanes at the ends of blocks of rows.

    A block has 8 rows, later 1 / 32 of a power of two, so there are 32 to 64 in the last half of the rows.
    """

    def __init__(self, lanes: int) -> None:
        self.ends: list[int] = [0]
        self._sums: list[list[float]] = [[0.0] * (1 + lanes)]

    @staticmethod
    def due(done: int) -> int:
        """Rows from row `done` to the end of its block: of a whole block where one ends."""
        width = _width(done)
        return width - done % width

    def note(self, lanes: Racing) -> None:
        """What all have lost until here, unless it is known."""
        if self.ends[-1] == lanes.examples:
            return
        found = [math.inf] * len(self._sums[0])
        for k in lanes.alive:
            found[1 + k], found[0] = lanes.sums(k)
        self.ends.append(lanes.examples)
        self._sums.append(found)

    def _late(self) -> F64:
        """Importance and losses of each block in the last half of the rows: (blocks, 1 + lanes)."""
        first = int(np.searchsorted(self.ends, self.ends[-1] / 2))
        with np.errstate(invalid="ignore"):  # lanes that were dropped
            return np.diff(np.array(self._sums[first:]), axis=0)

    def sums(self, number: int) -> tuple[float, float]:
        """Progressive loss and importance of a lane where the record ends."""
        return self._sums[-1][1 + number], self._sums[-1][0]

    def losses(self) -> F64:
        """Of each lane, in the last half of the rows."""
        return np.asarray(self._late()[:, 1:].sum(axis=0))

    def averages(self) -> list[float]:
        """The same for an importance of 1."""
        weight = float(self._late()[:, 0].sum()) or 1.0
        return [float(loss) / weight for loss in self.losses()]

    def excess(self, one: int, other: int) -> Excess:
        """Of lane `one` over lane `other` in the last half of the rows.

        With d_b the difference in block b and w_b its importance, m = sum d / sum w, the error is that of a
        ratio: sqrt(B / (B - 1) sum (d_b - m w_b)^2) for B blocks.
        """
        late = self._late()
        weights, difference = late[:, 0], late[:, 1 + one] - late[:, 1 + other]
        total, count = float(difference.sum()), len(late)
        apart = difference - total / (float(weights.sum()) or 1.0) * weights
        error = math.sqrt(float(apart @ apart) * count / max(count - 1, 1))
        loss = float(late[:, 1 + one].sum())
        return Excess(total / loss if loss else 0.0, total / error if error else 0.0)

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it."""
        return {"ends": np.array(self.ends, np.int64), "sums": np.array(self._sums)}

    def restore(self, state: Tensors) -> None:
        """Go on from a `state`; StateError for what no record can be."""
        count = len(np.atleast_1d(state.get("ends", np.zeros(0))))
        ends = given(state, "ends", (count,), np.int64)
        sums = given(state, "sums", (count, len(self._sums[0])), np.float64, finite=False)
        rising = count > 0 and ends[0] == 0 and ends[-1] <= MOST_STEPS and (np.diff(ends) > 0).all()
        require(bool(rising), "ends", "rows are counted from 0 up")
        self.ends, self._sums = ends.tolist(), sums.tolist()


class Judge(Protocol):
    """Who may go on."""

    def judge(self, record: Record, lanes: Racing, last: bool) -> None:
        """Drop lanes that are too weak; all but one when this is the `last` mark."""


class Race:
    """Has lanes judged at rows `first`, 2 `first`, 4 `first` ..., and for the last time at row `until`.

    So nobody is judged before `first`. Marks are rows of the stream, however it is cut into chunks.
    """

    def __init__(self, judge: Judge, lanes: int, first: int, until: int) -> None:
        self.record = Record(lanes)
        self.ended = until <= 0
        """whether nobody will be judged any more"""
        self._judge, self._first, self._until = judge, first, until

    def due(self, done: int) -> int:
        """Rows that can be learned before this race wants to know of it."""
        return _MANY if self.ended else min(self.record.due(done), self._until - done)

    def tend(self, lanes: Racing) -> None:
        """Note what was lost at the end of a block; judge where there is a mark."""
        done = lanes.examples
        if self.ended or (done != self._until and done % _width(done)):
            return
        if done == self._until:
            self.end(lanes)
            return
        self.record.note(lanes)
        if done >= self._first and done & (done - 1) == 0:
            self._judge.judge(self.record, lanes, False)

    def end(self, lanes: Racing) -> None:
        """Judge for the last time, here."""
        if self.ended:
            return
        self.record.note(lanes)
        self._judge.judge(self.record, lanes, True)
        self.ended = True


def _width(done: int) -> int:
    """Rows of a block that begins at row `done`."""
    return max(_NARROWEST, (1 << done.bit_length() >> 1) // _BLOCKS)
