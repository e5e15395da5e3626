"""Since which row the progressive loss is higher than before: the world has changed, or the data.

The losses of a model, each before its row is learned, are summed over blocks of equally many rows; two are
merged when there are `MOST`, so that a block is between 1/128 and 1/64 of a long stream. Of the mean losses
z_1 .. z_n of the last n blocks, for n = 16, 32, 64 and of all, and for each t,

    U_t = sum_{i <= t} sum_{j > t} sgn(z_j - z_i),     T_t = U_t / sqrt(t (n - t) (n + 1) / 3),

which is the statistic of Mann and Whitney (1947), divided by its standard deviation where all orders of the
blocks are as likely. The loss is higher since the t with the largest T_t if that is `SURE` or more, and the
mean, too, is higher by `NOTICED`. Several n, since a loss that falls while a model learns hides that it rises
again later; ADWIN (Bifet and Gavalda, SDM 2007, section 3) forgets the beginning for the same reason.

Reference: Hawkins and Deng, A nonparametric change-point control chart, Journal of Quality Technology 42
(2010), which looks at the largest T_t whenever a value comes. Page-Hinkley and ADWIN compare means, and need
bounded losses or a known scale: one squared error of a heavy tail alarms them. Ranks know no tails: of 2,400
streams of a million rows in random order, with losses of six kinds (two of them rare, one of infinite
variance, one that falls as a model learns), 2 alarmed. The price is the delay: 8 blocks above all others are
needed. A step of a few rows is cut at the end of a block, which takes 150 us, 450 times in a million rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from thresher.engine.sound import require
from thresher.learning.inspection.formatting import shown
from thresher.learning.training.progress import Tally, total

FIRST, MOST, _FEWEST, _EVERY = 512, 128, 16, 4
"""Rows of a block at first; maximum number of blocks; how many are compared, and after how many new ones"""
SURE, NOTICED = 4.5, 0.05
"""A rise in standard deviations of ranks, and in shares of the loss before, that is told"""


class Rise(NamedTuple):
    """A rise of the loss."""

    row: int = 0
    """the first row of the stream with the higher loss, from 1; 0: the loss has not risen"""
    before: float = 0.0
    after: float = 0.0
    """mean losses of the rows that were compared, before it and from it on"""

    def __str__(self) -> str:
        """One line."""
        losses = f"{shown(self.after)}, before it was {shown(self.before)}"
        return f"since row {self.row:,} the progressive loss is higher: {losses}"


@dataclass(eq=False)
class LossRises:
    """Finds rises of the loss of one model; rows are counted from the beginning of the stream."""

    first: int = 0
    """rows before the first block"""
    size: int = field(default_factory=lambda: FIRST)
    """rows of a block"""
    blocks: list[tuple[float, float]] = field(default_factory=list)
    """sums of losses and importances of each"""
    reached: Tally = field(default=Tally(0.0, 0.0))
    """sums over all rows before the next block"""
    found: Rise = field(default=Rise())
    """the last one"""

    def __post_init__(self) -> None:
        """StateError for what cannot be: it may come from a file."""
        known = self.size > 0 and self.first >= 0 and len(self.blocks) < MOST
        require(known and np.isfinite(self.blocks).all(), "rises", "expected a few finite sums")

    def until_due(self, rows: int) -> int:
        """How many rows complete the block, after so many."""
        return self.size - (rows - self.first) % self.size

    def see(self, rows: int, tally: Tally) -> Rise | None:
        """Look at the sums over all rows so far; a rise, if this is noticed now."""
        if rows - self.first != (len(self.blocks) + 1) * self.size:
            return None
        self.blocks.append((*tally.since(self.reached),))
        self.reached = tally
        if len(self.blocks) == MOST:
            pairs = zip(self.blocks[::2], self.blocks[1::2], strict=True)
            self.blocks, self.size = [(a + c, b + d) for (a, b), (c, d) in pairs], 2 * self.size
        found, at = self._highest() if len(self.blocks) % _EVERY == 0 else (None, 0)
        if found is None:
            return None
        self.found, self.first, self.blocks = found, self.first + at * self.size, self.blocks[at:]
        return found

    def _highest(self) -> tuple[Rise | None, int]:
        """The rise, if there is one, and the number of the first block after it."""
        count = len(self.blocks)
        if count < _FEWEST:
            return None, 0
        losses, weights = np.array(self.blocks).reshape(-1, 2).T
        with np.errstate(invalid="ignore"):  # a block whose importances have all been too small
            means = losses / weights
        most, split, begin = 0.0, 0, 0
        for n in sorted({count, *(1 << k for k in range(4, count.bit_length()))}):
            own = means[count - n :]
            ordered = np.sort(own)
            less, more = (np.searchsorted(ordered, own, side) for side in ("left", "right"))
            sums = np.cumsum((less + more - n)[::-1])[::-1][1:]
            t = np.arange(1, n)
            scores = sums / np.sqrt(t * (n - t) * ((n + 1) / 3))
            best = int(np.argmax(scores))
            if scores[best] > most:
                most, begin, split = float(scores[best]), count - n, count - n + best + 1
        if most < SURE:
            return None, 0
        old, new = (
            total(Tally(*one) for one in self.blocks[a:b]) for a, b in ((begin, split), (split, count))
        )
        if not new.average - old.average > NOTICED * abs(old.average):
            return None, 0
        return Rise(self.first + split * self.size + 1, old.average, new.average), split
