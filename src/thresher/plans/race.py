"""Races of settings that learn side by side: at a mark, the worse half is dropped if it is clearly worse.

Settings are compared over the last half of the rows used to choose, so settings from different rounds can be
compared too. A setting is dropped only if it is two standard errors worse: eight lanes cost little more than
one, and slow starters won on several sets.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from thresher.learning.model.model_set import ModelSet

FIRST = 1024
"""rows before any lane is dropped"""
_LEFT = 4
"""minimum number of lanes that learn to the end of a round"""
_BEHIND = 2.0
"""standard errors by which a dropped lane is worse than the best"""
_NARROWEST = 8
"""rows in the shortest block"""
_BLOCKS = 32
"""blocks from one power of two of rows to the next"""
WHOLE = 1 << 62
"""more rows than any stream has"""
F64 = NDArray[np.float64]


class Race:
    """Compares lanes at rows `FIRST`, 2 `FIRST`, 4 `FIRST` ... by their losses up to row `until`.

    Marks are rows of the stream, however it is cut into chunks. What is compared are progressive losses in
    the last half of the rows so far: if all counted, the start would decide, and of settings close to the
    default one was chosen that is up to 23 % worse (iPinYou); the same holds for the last three quarters.
    Sums are kept at the ends of blocks of 8 rows, later of 1 / 32 of a power of two, so 32 to 64 blocks give
    each difference a standard error.
    """

    def __init__(self, lanes: int, until: int) -> None:
        self._until = until
        self.ended = until <= 0
        """whether no more rows count"""
        self.ends: list[int] = [0]
        self.sums: list[list[float]] = [[0.0] * (1 + lanes)]
        """up to each end, the importance of the rows, and the progressive loss of each lane"""

    def due(self, done: int) -> int:
        """Rows from row `done` to the end of its block, or to the last mark if that comes first."""
        width = _width(done)
        return WHOLE if self.ended else min(width - done % width, self._until - done)

    def end_of_block(self, lanes: ModelSet, over: bool = False) -> None:
        """Record the sums at the end of a block, or if no more rows count (`over`); judge at a mark."""
        done = lanes.examples
        if self.ended or not (over or done == self._until or done % _width(done) == 0):
            return
        if done > self.ends[-1]:
            sums, models = [math.inf] * len(self.sums[0]), lanes.models
            for k in lanes.alive:
                sums[1 + k], sums[0] = models[k].tally
            self.ends.append(done)
            self.sums.append(sums)
        self.ended = over or done == self._until
        if not self.ended and done >= FIRST and done & (done - 1) == 0:
            self.judge(lanes)

    def judge(self, lanes: ModelSet) -> None:
        """Drop the weaker half, except for lanes only slightly worse than the best."""
        losses = self.losses()
        ranked = sorted(lanes.alive, key=lambda k: (losses[k], k))
        for k in ranked[max(len(ranked) // 2, _LEFT) :]:
            if self.excess(k, ranked[0]) >= _BEHIND:
                more = 100 * (losses[k] / losses[ranked[0]] - 1) if losses[ranked[0]] > 0 else math.inf
                lanes.parts[0].drop(k, f"{more:.3g} % more loss than the best at row {lanes.examples:,}")

    def late(self) -> F64:
        """Importance and losses of each block in the last half of the rows (blocks, 1 + lanes)."""
        first = int(np.searchsorted(self.ends, self.ends[-1] / 2))
        with np.errstate(invalid="ignore"):  # for dropped lanes
            return np.diff(np.array(self.sums[first:]), axis=0)

    def losses(self) -> F64:
        """Sum of losses of each lane in the last half of the rows."""
        return np.asarray(self.late()[:, 1:].sum(axis=0))

    def excess(self, one: int, other: int) -> float:
        """How much higher the loss of lane `one` is than that of `other` in the last half of the rows.

        In standard errors. With the difference d_b in block b, its importance w_b and m = sum d / sum w, one
        is that of a ratio: sqrt(B / (B - 1) sum (d_b - m w_b)^2) for B blocks.
        """
        late = self.late()
        weights, difference = late[:, 0], late[:, 1 + one] - late[:, 1 + other]
        total, count = float(difference.sum()), len(late)
        centred = difference - total / (float(weights.sum()) or 1.0) * weights
        error = math.sqrt(float(centred @ centred) * count / max(count - 1, 1))
        return total / error if error else 0.0


def _width(done: int) -> int:
    """Number of rows of a block that begins at row `done`."""
    return max(_NARROWEST, (1 << done.bit_length() >> 1) // _BLOCKS)
