"""Losses with a kink, such as a quantile's: Newton's method on smooth ones, to a certificate of the loss.

Such a loss is the largest of u e over the slopes u that it has, e = margin - label. The smooth loss of width
h about slopes v (n,) is the largest of u e - h (u - v)^2 / 2. With any h, if v is the slope of the last
solution, solutions converge to that of the loss itself, in finitely many turns for piecewise linear losses;
so h need not fall to 0, where Newton's method would be slow. Up to a constant, that is the smooth loss about
0 of e + h v, so v is in the base of the rows.

References: Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm in convex
programming, Mathematics of Operations Research 1 (1976), the proximal method of multipliers; Koenker and
Bassett, Regression quantiles, Econometrica 46 (1978), for the loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.batch.newton import SHARE, Newton
from thresher.batch.rounds import F64, BoostPlan
from thresher.batch.shards import FeatureColumns
from thresher.engine.kernels import score

_WIDEST, _NARROWER, _NARROWEST = 0.2, 0.5, 1e-6
"""Width at first, over the median distance of labels from theirs; its factor at each turn; and its least"""


class Smoothed(Newton):
    """Minimises a loss that is `smoothed`.

    The slopes u of the smooth loss are a point of the dual problem. `kink` and `slack` are the two parts of
    the duality gap, over the loss without features: sum_i c_i (loss_i - u_i e_i), 0 where each u_i is a slope
    of the loss itself, and the sum of weights times violations. The certificate is at least their sum.
    """

    def __init__(self, columns: FeatureColumns, loss: Any, plan: BoostPlan) -> None:
        left = columns.labels - columns.base
        far = np.abs(left - np.median(left) * columns.intercept) if len(left) else left
        self._widest = _WIDEST * float(np.median(far[far > 0])) if far.any() else 1.0
        self._exact, self._given, self.kink, self.slack = loss, columns.base, 0.0, 0.0
        super().__init__(columns, loss.smoothed(self._widest), plan)
        self._whole = float(self._losses().sum()) or 1.0

    @property
    def certificate(self) -> float:
        """See `Rounds`; of the loss itself."""
        return max(super().certificate, self.kink + self.slack)

    def start(self) -> None:
        """See `Rounds`."""
        super().start()
        self._centre(self._widest)

    def measure_all(self) -> None:
        """See `Rounds`."""
        super().measure_all()
        errors = self.margins() - self.columns.labels
        self.kink = float((self._losses() - self.slopes * errors).sum()) / self._whole
        self.slack = float((np.abs(self.w) * self.gap * self.loadings)[: len(self.keys)].sum()) / self._whole

    def objective(self) -> float:
        """See `Rounds`."""
        return float(self._losses().sum()) + self.penalty()

    def improve(self) -> int:
        """See `Rounds`: with other smooth losses once the solution of these is closer than the kinks."""
        if max(super().certificate, self.slack) <= SHARE * self.kink:
            self._centre(max(_NARROWER * self.loss.width, _NARROWEST * self._widest))
            super().measure_all()
        return super().improve()

    def _centre(self, width: float) -> None:
        """Smooth the loss with this width about the slopes of the rows."""
        c = self.columns.weights
        self.loss = self._exact.smoothed(width)
        self.set_base(self._given + width * np.divide(self.slopes, c, out=np.zeros_like(c), where=c > 0))
        self._enough = 0.0

    def margins(self) -> F64:
        """See `Newton`."""
        return self.z - self.columns.base + self._given

    def _losses(self) -> F64:
        """The loss itself of each row, times its importance."""
        c, out = self.columns, np.empty(self.examples)
        score.for_parts(self._exact)(self._exact, self.margins(), c.labels, c.weights, out)
        return out
