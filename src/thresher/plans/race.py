"""A race: lanes are compared by their progressive losses on the same rows.

They are compared at fixed rows of the stream, wherever it is cut into chunks. Every difference has a standard
error from 32 to 64 blocks. If all rows so far counted, the start would decide, and of settings close to the
default one was chosen that is up to 23 % worse (iPinYou); the same holds for the last three quarters. So the
last half counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from thresher.learning.model.model_set import ModelSet

F64 = NDArray[np.float64]
_NARROWEST = 8
"""rows in the shortest block"""
_BLOCKS = 32
"""blocks from one power of two of rows to the next"""
_MANY = 1 << 62


class Race:
    """Judges lanes at rows `first`, 2 `first`, 4 `first` ..., and counts their losses up to row `until`.

    Marks are rows of the stream, however it is cut into chunks. What is judged are sums of progressive losses
    at the ends of blocks of rows: a block has 8 rows, later 1 / 32 of a power of two, so the last half of the
    rows has 32 to 64 blocks. `judge` drops lanes that are too weak.
    """

    def __init__(self, judge: Callable[[Race, ModelSet], None], lanes: int, first: int, until: int) -> None:
        self._judge, self._first, self._until = judge, first, until
        self.ended = until <= 0
        """whether no more rows count"""
        self.ends: list[int] = [0]
        self._sums: list[list[float]] = [[0.0] * (1 + lanes)]

    def due(self, done: int) -> int:
        """Rows from row `done` to the end of its block, or to the last mark if that comes first."""
        width = _width(done)
        return _MANY if self.ended else min(width - done % width, self._until - done)

    def end_of_block(self, lanes: ModelSet) -> None:
        """Record the sums at the end of a block, or at the last row; judge at a mark."""
        done = lanes.examples
        if self.ended or (done != self._until and done % _width(done)):
            return
        if done == self._until:
            self.end(lanes)
            return
        self.note(lanes)
        if done >= self._first and done & (done - 1) == 0:
            self._judge(self, lanes)

    def end(self, lanes: ModelSet) -> None:
        """Let no more rows count."""
        if not self.ended:
            self.note(lanes)
            self.ended = True

    def note(self, lanes: ModelSet) -> None:
        """Record the sums of all lanes up to here, unless already recorded."""
        if self.ends[-1] == lanes.examples:
            return
        found = [math.inf] * len(self._sums[0])
        for k in lanes.alive:
            found[1 + k], found[0] = lanes.models[k].tally
        self.ends.append(lanes.examples)
        self._sums.append(found)

    def _late(self) -> F64:
        """Importance and losses of each block in the last half of the rows (blocks, 1 + lanes)."""
        first = int(np.searchsorted(self.ends, self.ends[-1] / 2))
        with np.errstate(invalid="ignore"):  # for dropped lanes
            return np.diff(np.array(self._sums[first:]), axis=0)

    def sums(self, number: int) -> tuple[float, float]:
        """Sums of progressive loss and importance of a lane so far."""
        return self._sums[-1][1 + number], self._sums[-1][0]

    def losses(self) -> F64:
        """Sum of losses of each lane in the last half of the rows."""
        return np.asarray(self._late()[:, 1:].sum(axis=0))

    def averages(self) -> list[float]:
        """Mean losses of each lane in the last half of the rows."""
        weight = float(self._late()[:, 0].sum()) or 1.0
        return [float(loss) / weight for loss in self.losses()]

    def excess(self, one: int, other: int) -> float:
        """How much higher the loss of lane `one` is than that of `other` in the last half of the rows.

        In standard errors. With the difference d_b in block b, its importance w_b and m = sum d / sum w, one
        is that of a ratio: sqrt(B / (B - 1) sum (d_b - m w_b)^2) for B blocks.
        """
        late = self._late()
        weights, difference = late[:, 0], late[:, 1 + one] - late[:, 1 + other]
        total, count = float(difference.sum()), len(late)
        centred = difference - total / (float(weights.sum()) or 1.0) * weights
        error = math.sqrt(float(centred @ centred) * count / max(count - 1, 1))
        return total / error if error else 0.0


def _width(done: int) -> int:
    """Number of rows of a block that begins at row `done`."""
    return max(_NARROWEST, (1 << done.bit_length() >> 1) // _BLOCKS)
