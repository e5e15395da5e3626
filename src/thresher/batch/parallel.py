"""Moving all columns at once, over rows in shards."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.batch import kernels
from thresher.batch.rounds import I64, NOISE, SWEEPS, BoostPlan, Rounds
from thresher.batch.shards import Holder, ShardFacts, Share

ADVANCE, RETREAT = 0.9, 1.5
"""Factors for the widths after a step within its bound, and after one beyond it."""
_OF_INTERCEPT = 5 * SWEEPS


class Parallel(Rounds):
    """Moves all chosen columns at once, each with a step that allows for the moves of the others.

    The widths of the bound hold for the worst row. `ease` < 1 narrows them, which gives longer steps. While
    the loss stays below the narrower bound, `ease` is reduced further; a step beyond the bound is undone
    and repeated with a larger `ease`. At 1 the bound always holds.

    The rows are in shards; masses and losses are summed in the order of the shards.
    """

    def __init__(self, holder: Holder, intercept: bool, loss: Any, plan: BoostPlan) -> None:
        found = holder.build(intercept)
        keys = np.unique(np.concatenate([own for own, _, _ in found]))
        super().__init__(keys, intercept, min(lowest for _, _, lowest in found), plan)
        self._holder, self._examples = holder, sum(rows for _, rows, _ in found)
        self.ease = 1.0
        self._numbers: list[I64] = holder.call("begin", loss, keys)
        self._chosen: I64 = np.empty(0, np.int64)
        self._places: list[I64] = []
        self._widths = np.zeros(0)
        self._shares: list[Share] | None = None
        """what the shards add to the chosen columns after the last move; None: not known yet"""
        self._loss = 0.0

    @property
    def examples(self) -> int:
        """Number of examples."""
        return self._examples

    def close(self) -> None:
        """Let the shards go."""
        self._holder.close()

    def weigh(self) -> float:
        """The sum of losses, known since the last move."""
        return self._loss

    def measure_all(self) -> None:
        """Compute the masses and violations of all columns."""
        self._add_up(self.all, self._numbers, self._holder.call("measure", True))

    def _add_up(self, chosen: I64, places: list[I64], shares: list[Share]) -> None:
        """Set the masses and violations of the chosen columns, and the loss."""
        up, down = np.zeros(len(chosen)), np.zeros(len(chosen))
        for place, share in zip(places, shares, strict=True):
            up[place] += share.up
            down[place] += share.down
        self.up[chosen], self.down[chosen] = up, down
        self._loss = sum(share.loss for share in shares)
        kernels.violations(chosen, self.penalties, len(self.keys), self.w, self.up, self.down, self.gap)

    def choose(self, chosen: I64) -> None:
        """Set the columns to move, and compute widths from the sum of |x| over them in each row."""
        found = self._holder.call("choose", chosen)
        self._chosen, self._places, self._shares = chosen, [places for places, _ in found], None
        self._widths = np.zeros(len(chosen))
        for places, widths in found:
            self._widths[places] = np.maximum(self._widths[places], widths)

    def move_chosen(self) -> float:
        """Move all chosen columns by one step; returns the largest violation before it."""
        if self._shares is None:
            self._shares = self._holder.call("measure", False)
        self._add_up(self._chosen, self._places, self._shares)
        violation = float(self.gap[self._chosen].max(initial=0.0))
        before, again = self._loss, False
        while not self._step(before, again):
            self.ease, again = min(1.0, self.ease * RETREAT), True
        self.ease *= ADVANCE
        return violation

    def _step(self, before: float, again: bool) -> bool:
        """Move; returns whether the bound held (always true at the proved width)."""
        steps = np.zeros(len(self._chosen))
        held = self._widths, self.ease, self.penalties, len(self.keys)
        bound = kernels.steps_at_once(self._chosen, *held, self.w, self.up, self.down, steps)
        shares: list[Share] = self._holder.call("move", steps, again)
        loss = sum(share.loss for share in shares)
        if loss > before + bound and self.ease < 1.0:
            return False
        self.w[self._chosen] += steps
        self._loss, self._shares = loss, shares
        return True

    def fit_intercept(self) -> None:
        """Move the intercept alone."""
        self.choose(self.all[-1:])
        for _ in range(_OF_INTERCEPT):
            if self.move_chosen() <= NOISE * (self.up[-1] + self.down[-1]):
                break
        self.ease = 1.0

    def labels_and_sides(self) -> tuple[bool, bool]:
        """See `Rounds`."""
        found: list[ShardFacts] = self._holder.call("facts")
        positive, negative = any(one.positive for one in found), any(one.negative for one in found)
        return not (positive and negative), all(one.separated for one in found)
