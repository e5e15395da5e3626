"""Softmax regression with each class in an L1 ball: the objective, and its minimum with a certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from tests.projections import project_l1_ball
from thresher.data import Chunk

F64 = NDArray[np.float64]


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
        return found / found.sum(axis=1, keepdims=True)

    def value(self, W: F64) -> float:
        """The mean loss."""
        return -float(np.log(np.maximum((self.probabilities(W) * self.Y).sum(axis=1), 1e-300)).mean())

    def gradient(self, W: F64) -> F64:
        """(features, classes)."""
        found: F64 = self._XT @ (self.probabilities(W) - self.Y) / len(self.Y)
        return found

    def minimised(self, radius: float, steps: int) -> Optimum:
        """Accelerated projected gradients (FISTA, restarted when a step turns back)."""
        W = V = np.zeros((self.features, self.classes))
        t = 1.0
        for _ in range(steps):
            moved = V - self.gradient(V) / self.curvature
            new = np.stack([project_l1_ball(column, radius) for column in moved.T.copy()]).T
            if float(((V - new) * (new - W)).sum()) > 0:
                t, V = 1.0, new
            else:
                later = (1 + np.sqrt(1 + 4 * t * t)) / 2
                t, V = later, new + (t - 1) / later * (new - W)
            W = new
        g = self.gradient(W)
        gap = float((g * W).sum() + radius * np.abs(g).max(axis=0).sum())
        return Optimum(W, self.value(W), gap)
