"""Several classes: for each a Newton solver, which moves its weights while those of the others are fixed.

A joint loss tells what the margin of a class competes with (`rival`): of softmax, z_k less the logarithm of
the sum of exp(z_l) over the other classes is the margin of a logistic loss, class k against the rest. So a
block is a problem of two classes whose rows have a base, and what is said of `newton` holds for it.

Blocks alone would be slow in one direction: the same step for a feature in all classes changes no softmax.
Along it only penalties count, which have a minimum in closed form (`level`), taken after each cycle.

Reference: Friedman, Hastie and Tibshirani, Regularization paths for generalized linear models via coordinate
descent, Journal of Statistical Software 33 (2010), section 4: partial Newton steps for one class after the
other, and the shift.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thresher.batch.columns import FeatureColumns
from thresher.batch.newton import SHARE, STEPS, Newton
from thresher.batch.rounds import F64, I64, BoostPlan, Rounds
from thresher.engine import outputs
from thresher.learning.model.objective import Objective

_CYCLES = 100
"""Turns of fitting intercepts, at most"""


def level(w: F64, l1: float, l2: float) -> F64:
    """The weights of features in all classes (d, K), shifted so that the penalties are least.

    sum_k l1 |w_k - c| + l2 (w_k - c)^2 / 2 is least at the median of the w_k and of the K + 1 zeros of its
    derivatives between them, mean(w) + (K - 2 m) l1 / (l2 K) for m = 0..K; those are infinite without l2.

    >>> level(np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 0.0]]), 1.0, 0.0).tolist()
    [[1.0, -1.0, 0.0], [0.0, 1.0, 0.0]]
    """
    count = w.shape[1]
    zeros = (count - 2.0 * np.arange(count + 1)) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(zeros == 0.0, 0.0, l1 * zeros / l2)
    means = w.mean(axis=1, keepdims=True) * (l2 > 0.0)
    found: F64 = w - np.median(np.concatenate([w, means + steps], axis=1), axis=1, keepdims=True)
    return found


class Blocks(Rounds):
    """Minimises the sum of a joint loss over rows, plus penalties of all weights; `w` is (d + 1, classes).

    `labels` of the columns are the numbers of classes; `z`, `gap` and `loadings` have a column for each.
    """

    def __init__(self, columns: FeatureColumns, head: Objective, plan: BoostPlan) -> None:
        super().__init__(columns, head.joint, plan, head.count)
        self._targets = columns.labels[:, np.newaxis] - head.outputs.low
        self.z, self.loadings = np.zeros((self.examples, head.count)), np.ones(self.w.shape)
        self.blocks: list[Newton] = []
        for k in range(head.count):
            own = replace(columns, labels=np.where(self._targets[:, 0] == k, 1.0, -1.0))
            block = Newton(own, self.loss.ONE, plan)
            self.w[:, k], self.z[:, k] = block.w, block.z
            block.w, block.gap, block.loadings = self.w[:, k], self.gap[:, k], self.loadings[:, k]
            self.blocks.append(block)
        for _ in range(_CYCLES):
            before = self.w.copy()
            for k, block in enumerate(self.blocks):
                self._face(k)
                block.fit_intercept()
                self.z[:, k] = block.z - block.columns.base
            if np.abs(self.w - before).max(initial=0.0) <= 1e-8:
                break

    def noise(self) -> tuple[F64, int]:
        """Those of `Newton` for each class (d + 1, classes), and the least degrees of freedom."""
        found, freedom = zip(*(block.noise() for block in self.blocks), strict=True)
        return np.column_stack(found), min(freedom)

    def start(self) -> None:
        """See `Rounds`."""
        for block in self.blocks:
            block.plan = self.plan
            block.start()
        self.unit = max(block.unit for block in self.blocks)

    def measure(self, chosen: I64) -> None:
        """See `Rounds`."""
        for k, block in enumerate(self.blocks):
            self._face(k)
            block.measure(chosen)

    def objective(self) -> float:
        """See `Rounds`."""
        losses = np.empty(self.examples)
        score = outputs.score_outputs.for_parts(self.loss)
        score(self.loss, self.z, self._targets, self.columns.weights, losses)
        return float(losses.sum()) + sum(block.penalty(self.all, block.w) for block in self.blocks)

    def endless(self) -> str | None:
        """See `Rounds`."""
        if self.columns.intercept and any(block.alike() for block in self.blocks):
            return "a class has no examples"
        why = [block.endless() for block in self.blocks]
        enough = all if self.loss.RELATIVE else any
        return next(filter(None, why)) if enough(why) else None

    def improve(self) -> int:
        """Take a Newton step in one class after the other until working sets are violated less."""
        sets = [block.working_set() for block in self.blocks]
        sweeps, goal, l1, l2 = 0, SHARE * self.certificate * self.unit, self.plan.l1, self.plan.l2
        for _ in range(STEPS):
            seen = 0.0
            for k, (block, chosen) in enumerate(zip(self.blocks, sets, strict=True)):
                self._face(k)
                block.measure(chosen)
                seen = max(seen, float(self.gap[chosen, k].max(initial=0.0)))
                sweeps += block.step(chosen)
                self.z[:, k] = block.z - block.columns.base
            if self.loss.RELATIVE and (l1 or l2) and not self.plan.deviations:
                # shift the weights of features in all classes, which changes no loss
                (mixed,) = np.nonzero((self.w != 0).sum(axis=1)[: self.features] > 1)
                self.w[mixed] = level(self.w[mixed], l1, l2)
            if seen <= goal:
                break
        return sweeps

    def _face(self, k: int) -> None:
        """Let the block of class k know the margins of the others."""
        margins = np.empty(self.examples)
        outputs.rivals.for_parts(self.loss)(self.loss, self.z, k, margins)
        self.blocks[k].set_base(-margins)
