"""Softmax regression with each class in an L1 ball: the objective, and its minimum with a certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from tests.projections import project_l1_ball
from thresher.data import Chunk

F64 = NDArray[np.float64]
_LOOK, _LONGER = 50, 0.8
"""Steps between two looks at the gap; each step first tries this share of the last curvature."""


class Optimum(NamedTuple):
    """The best weights found."""

    weights: F64
    """(features, classes)"""
    value: float
    gap: float
    """the minimum is at most this far below `value`"""


class Problem:
    """Minimise the mean softmax loss subject to |w_k|_1 <= radius for each class k; classes count from 1."""

    def __init__(self, rows: Chunk, features: int, classes: int) -> None:
        self.rows, self.features, self.classes = rows, features, classes
        self.X: Any = peers.csr(rows, np.float64, features)
        self.Y = np.eye(classes)[rows.labels.astype(int) - 1]
        self._XT = self.X.T.tocsr()
        gram = (self.X @ self.X.T).toarray() if len(rows) < features else (self._XT @ self.X).toarray()
        self.curvature = float(np.linalg.norm(gram, 2)) / 2 / len(rows)
        """an upper bound on the second derivative of the loss"""

    def probabilities(self, W: F64) -> F64:
        """(rows, classes)."""
        margins = self.X @ W
        found: F64 = np.exp(margins - margins.max(axis=1, keepdims=True))
        found /= found.sum(axis=1, keepdims=True)
        return found

    def value(self, W: F64) -> float:
        """The mean loss."""
        return -float(np.log(np.maximum((self.probabilities(W) * self.Y).sum(axis=1), 1e-300)).mean())

    def gradient(self, W: F64) -> F64:
        """(features, classes)."""
        found: F64 = self._XT @ (self.probabilities(W) - self.Y) / len(self.Y)
        return found

    def minimised(self, radius: float, steps: int, enough: float = 0.0) -> Optimum:
        """Accelerated projected gradients (FISTA) until the gap is at most `enough`, or all `steps` are done.

        The step is as long as a quadratic bound on the loss allows; acceleration starts again when a step
        turns back.
        """
        W = V = np.zeros((self.features, self.classes))
        t, bound = 1.0, self.curvature
        for number in range(1, steps + 1):
            new, bound = self._step(V, radius, bound)
            if float(((V - new) * (new - W)).sum()) > 0:
                t, V = 1.0, new
            else:
                later = (1 + np.sqrt(1 + 4 * t * t)) / 2
                t, V = later, new + (t - 1) / later * (new - W)
            W = new
            if number % _LOOK == 0 and self.gap(W, radius) <= enough:
                break
        return Optimum(W, self.value(W), self.gap(W, radius))

    def _step(self, V: F64, radius: float, bound: float) -> tuple[F64, float]:
        """A projected gradient step, and the curvature it was made with; that may be a little smaller."""
        g, at = self.gradient(V), self.value(V)
        bound *= _LONGER
        while True:
            moved = (V - g / bound).T.copy()
            new = np.stack([project_l1_ball(column, radius) for column in moved]).T
            step = new - V
            allowed = at + float((g * step).sum()) + bound / 2 * float(np.square(step).sum())
            if bound >= self.curvature or self.value(new) <= allowed:
                return new, bound
            bound = min(2 * bound, self.curvature)

    def gap(self, W: F64, radius: float) -> float:
        """The duality gap: the minimum is at most this far below the value at W."""
        g = self.gradient(W)
        return float((g * W).sum() + radius * np.abs(g).max(axis=0).sum())
