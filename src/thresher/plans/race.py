"""A race: lanes are compared by their progressive losses on the same rows until one is left; `--rule auto`.

They are compared at fixed rows of the stream, wherever it is cut into chunks. Every difference has a standard
error from 32 to 64 blocks, and all sums fit in a checkpoint. If all rows so far counted, the start would
decide, and `--rule auto` was up to 23 % worse than the default (iPinYou); the same holds for the last three
quarters. So the last half counts, and the default is kept unless another setting is clearly better.

The winner leaves the lanes with its state and is then an ordinary Model, so from there on it costs, and its
checkpoints contain, the same as if it had been trained alone. Its file is identical, byte for byte, unless a
row was freed in the race: rows are only freed above 131,072, and only rows that no lane has ever stepped on,
which rules like `ft-ftrl` without `forget` have only under losses with slopes of 0. The weights are the same
in any case (law 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.engine.sound import MOST_STEPS, State, Tensors, given, require
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe

F64 = NDArray[np.float64]
_NARROWEST = 8
"""rows in the shortest block"""
_BLOCKS = 32
"""blocks from one power of two of rows to the next"""
_MANY = 1 << 62


class Excess(NamedTuple):
    """How much higher the loss of one lane is than that of another on the same rows."""

    share: float
    """difference as a share of the first lane's loss"""
    errors: float
    """difference in standard errors"""


Judge = Callable[["Race", ModelSet, bool], None]
"""Drops lanes that are too weak; all but one if this is the last mark"""


class Race:
    """Judges lanes at rows `first`, 2 `first`, 4 `first` ..., and for the last time at row `until`.

    Marks are rows of the stream, however it is cut into chunks. What is judged are sums of progressive losses
    at the ends of blocks of rows: a block has 8 rows, later 1 / 32 of a power of two, so the last half of the
    rows has 32 to 64 blocks.
    """

    def __init__(self, judge: Judge, lanes: int, first: int, until: int) -> None:
        self._judge, self._first, self._until = judge, first, until
        self.ended = until <= 0
        """whether judging has ended"""
        self.ends: list[int] = [0]
        self._sums: list[list[float]] = [[0.0] * (1 + lanes)]

    def due(self, done: int) -> int:
        """Rows from row `done` to the end of its block, or to the last mark if that comes first."""
        width = _width(done)
        return _MANY if self.ended else min(width - done % width, self._until - done)

    def end_of_block(self, lanes: ModelSet) -> None:
        """Record the sums at the end of a block; judge at a mark."""
        done = lanes.examples
        if self.ended or (done != self._until and done % _width(done)):
            return
        if done == self._until:
            self.end(lanes)
            return
        self.note(lanes)
        if done >= self._first and done & (done - 1) == 0:
            self._judge(self, lanes, False)

    def end(self, lanes: ModelSet) -> None:
        """Judge for the last time, now."""
        if not self.ended:
            self.note(lanes)
            self._judge(self, lanes, True)
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

    def excess(self, one: int, other: int) -> Excess:
        """How much higher the loss of lane `one` is than that of lane `other` in the last half of the rows.

        With the difference d_b in block b, its importance w_b and m = sum d / sum w, the standard error is
        that of a ratio: sqrt(B / (B - 1) sum (d_b - m w_b)^2) for B blocks.
        """
        late = self._late()
        weights, difference = late[:, 0], late[:, 1 + one] - late[:, 1 + other]
        total, count = float(difference.sum()), len(late)
        centred = difference - total / (float(weights.sum()) or 1.0) * weights
        error = math.sqrt(float(centred @ centred) * count / max(count - 1, 1))
        loss = float(late[:, 1 + one].sum())
        return Excess(total / loss if loss else 0.0, total / error if error else 0.0)

    def state(self) -> State:
        """All sums so far."""
        return {"ends": np.array(self.ends, np.int64), "sums": np.array(self._sums)}

    def restore(self, state: Tensors) -> None:
        """Continue from `state`; StateError if it is invalid."""
        count = len(np.atleast_1d(state.get("ends", np.zeros(0))))
        ends = given(state, "ends", (count,), np.int64)
        sums = given(state, "sums", (count, len(self._sums[0])), np.float64, finite=False)
        rising = count > 0 and ends[0] == 0 and ends[-1] <= MOST_STEPS and (np.diff(ends) > 0).all()
        require(bool(rising), "ends", "rows are counted from 0 up")
        self.ends, self._sums = ends.tolist(), sums.tolist()


def _width(done: int) -> int:
    """Number of rows of a block that begins at row `done`."""
    return max(_NARROWEST, (1 << done.bit_length() >> 1) // _BLOCKS)


# `--rule auto`: a few settings close to the default rule race until one is left.

ALPHA, L1 = (1.0, 10.0, 3.0, 1 / 3), (1.0, 2.0)
"""Divisors of the default step size and threshold; measured on the data sets of docs/default.md."""
FIRST, UNTIL = 256, 1 << 16
BETTER = 0.01
SURE = 2.0
"""To replace the default, a lane must have a loss lower by this share and this many standard errors."""
WEAK = 4.0
"""A lane this many standard errors worse than the best is dropped before the end."""


def judge(race: Race, lanes: ModelSet, last: bool) -> None:
    """Drop weak lanes; at the end all but one: lane 0 wins unless another is clearly better."""
    losses = race.losses()
    best = min(lanes.alive, key=lambda k: (losses[k], k))
    first = min(lanes.alive)
    if last:
        behind = race.excess(first, best)
        enough = lanes.examples >= FIRST and behind.share >= BETTER and behind.errors >= SURE
        kept = [best if enough else first]
    else:
        kept = [k for k in lanes.alive if k in (first, best) or race.excess(k, best).errors < WEAK]
        if len(kept) == 2 and race.excess(first, best).errors >= WEAK:
            kept = [best]
    for k in lanes.alive:
        if k not in kept:
            lanes.parts[0].drop(k, "weaker than the others")


def field(recipe: Recipe, given: Container[str] = ()) -> list[Recipe]:
    """The recipe, and variants of its step size and threshold, except for parameters that were `given`."""
    rule = recipe.rule_part
    return [
        replace(recipe, rule=rule._replace(alpha=rule.alpha / alpha, l1=rule.l1 / l1))
        for l1 in (L1[:1] if "l1" in given else L1)
        for alpha in (ALPHA[:1] if "alpha" in given else ALPHA)
    ]


def race_of(lanes: int) -> Race:
    """A race of this many lanes; the first is the default."""
    return Race(judge, lanes, FIRST, UNTIL)


def successor(models: ModelSet, over: bool) -> ModelSet:
    """The winner on its own once there is one, or once the first pass is `over`; until then the lanes."""
    if not isinstance(models.race, Race):
        return models
    if over:
        models.race.end(models)
    if not models.race.ended and len(models.alive) > 1:
        return models
    found = ModelSet.of([copy(models.models[models.alive[0]])])
    models.say(f"after {found.examples:,} examples: continuing with {found.recipe.rule}")
    return found
