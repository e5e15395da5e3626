"""The solver that moves all columns at once, with the steps of `kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.batch import descent, kernels
from thresher.batch.columns import FeatureColumns
from thresher.batch.rounds import I64, NOISE, BoostPlan, Rounds
from thresher.engine.kernels import derive

ADVANCE, RETREAT = 0.9, 1.5
"""Factors for the widths after a step within its bound, and after one beyond it."""
SWEEPS = 20
"""Maximum number of sweeps between two certificates."""
_OF_INTERCEPT = 5 * SWEEPS
_EASE = 0.1
"""Sweeps end when the largest violation found is at most this share of the certificate before them."""


class Parallel(Rounds):
    """Moves all chosen columns at once, each with a step that allows for the moves of the others.

    The widths of the bound hold for the worst row. `ease` < 1 narrows them, which gives longer steps. While
    the loss stays below the narrower bound, `ease` is reduced further; a step beyond the bound is undone
    and repeated with a larger `ease`. At 1 the bound always holds. `up` and `down` are the masses of each
    column when last computed.
    """

    def __init__(self, columns: FeatureColumns, loss: Any, plan: BoostPlan) -> None:
        super().__init__(columns, loss, plan)
        self.up, self.down = np.zeros(len(self.w)), np.zeros(len(self.w))
        self._held = (float(plan.l1), float(plan.l2)), self.features, self.w, self.up, self.down
        self.ease, self.chosen, self._widths = 1.0, self.all, np.zeros(0)
        self.z, self._slopes = np.zeros(self.examples), np.zeros(self.examples)
        self._weigh()

    def start(self) -> None:
        """Fit the intercept alone, and compute the unit of the certificate there."""
        self.measure(self.all)
        if self.columns.intercept and (self.up[-1] > 0) == (self.down[-1] > 0):
            self.choose(self.all[-1:])
            for _ in range(_OF_INTERCEPT):
                if self.move() <= NOISE * (self.up[-1] + self.down[-1]):
                    break
            self.ease = 1.0
            self.measure(self.all)
        up, down = self.up[: self.features], self.down[: self.features]
        pulls, sums = np.abs(up - down), up + down
        self.unit = float(max(pulls.max(initial=0.0), NOISE * sums.max(initial=0.0))) or 1.0

    def objective(self) -> float:
        """The loss plus the penalties."""
        (l1, l2), w = self._held[0], self.w[: self.features]
        return self._loss + l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(np.square(w).sum())

    def improve(self) -> int:
        """Sweep, at most 20 times, over the columns that have a weight or violate their condition."""
        self.choose(np.flatnonzero((self.w != 0) | (self.gap > 0)))
        enough = _EASE * self.certificate * self.unit
        sweeps = 1
        while self.move() > enough and sweeps < SWEEPS:
            sweeps += 1
        return sweeps

    def measure(self, chosen: I64) -> None:
        """Compute the masses and violations of the chosen columns."""
        c = self.columns
        kernels.measure(chosen, c.starts, c.rows, c.values, self._slopes, *self._held, self.gap)

    def choose(self, chosen: I64) -> None:
        """Set the columns to move, ascending; compute widths from the sum of |x| over them in each row."""
        self.chosen, self._widths, c = chosen, np.zeros(len(chosen)), self.columns
        kernels.widest(chosen, c.starts, c.rows, c.values, np.zeros(self.examples), self._widths)

    def move(self) -> float:
        """Move all chosen columns by one step; returns the largest violation before it."""
        self.measure(self.chosen)
        violation = float(self.gap[self.chosen].max(initial=0.0))
        before, margins, c = self._loss, self.z.copy(), self.columns
        steps = np.zeros(len(self.chosen))
        while True:
            bound = kernels.steps_at_once(self.chosen, self._widths, self.ease, *self._held, steps)
            descent.shift_rows(self.chosen, steps, c.starts, c.rows, c.values, self.z)
            self._weigh()
            if self._loss <= before + bound or self.ease == 1.0:  # at the proved width it holds
                break
            self.z[:], self.ease = margins, min(1.0, self.ease * RETREAT)
        self.w[self.chosen] += steps
        self.ease *= ADVANCE
        return violation

    def _weigh(self) -> None:
        """Compute the loss, and the slopes of all rows, at their margins."""
        rows = self.columns.labels, self.columns.weights, self.z, self._slopes, None
        self._loss = float(derive.for_parts(self.loss)(self.loss, 0, self.examples, *rows))
