"""ROC and precision-recall curves, accumulated over a stream in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.learning.calibration import BITS, cells_of_numbers
from thresher.learning.head import F64

MOST = 200
"""maximum number of points of a curve"""


class Ranking:
    """Importance of positives and negatives in cells of nearly equal scores.

    All sums are exact; only thresholds are rounded to edges of cells. Only cells in use take memory, at most
    17 MB with the default `bits`.
    """

    def __init__(self, bits: int = BITS) -> None:
        self._shift = BITS - bits
        self._sums = np.zeros((2, 1 << bits))
        """of negatives and of positives"""

    def add(self, scores: F64, positive: NDArray[np.bool_], weights: F64) -> None:
        """Add examples with their scores, larger for more likely positives; all arrays are ``(n,)``."""
        cells = cells_of_numbers(scores) >> self._shift
        for sums, held in zip(self._sums, (~positive, positive), strict=True):
            np.add.at(sums, cells[held], weights[held])

    def _cumulated(self) -> tuple[F64, F64]:
        """Negatives and positives above each threshold, from none to all."""
        (used,) = np.nonzero(self._sums.sum(axis=0))
        down, up = self._sums[:, used[::-1]]
        return np.concatenate([[0.0], np.cumsum(down)]), np.concatenate([[0.0], np.cumsum(up)])

    @property
    def auc(self) -> float | None:
        """Area under the ROC curve, pairs within a cell counted half; None if one class is missing."""
        down, up = self._cumulated()
        if not down[-1] * up[-1]:
            return None
        return float(np.diff(down) @ (up[1:] + up[:-1]) / (2 * down[-1] * up[-1]))

    def roc(self) -> list[tuple[float, float]]:
        """False and true positive rate at falling thresholds, from (0, 0) to (1, 1).

        Empty if one class is missing. At most `MOST` points, spread along the curve.
        """
        down, up = self._cumulated()
        if not down[-1] * up[-1]:
            return []
        x, y = down / down[-1], up / up[-1]
        return [(float(x[k]), float(y[k])) for k in _spread(x + y)]

    def precision_recall(self) -> list[tuple[float, float]]:
        """Recall and precision at falling thresholds; empty without positives. At most `MOST` points."""
        down, up = (sums[1:] for sums in self._cumulated())
        if not len(up) or not up[-1]:
            return []
        first = int(np.flatnonzero(up)[0])  # before it nothing is found, and precision is 0
        recall, precision = up[first:] / up[-1], up[first:] / (up + down)[first:]
        return [(float(recall[k]), float(precision[k])) for k in _spread(recall)]

    @property
    def average_precision(self) -> float | None:
        """Mean precision over the positives, as scikit-learn computes it; None without positives."""
        down, up = self._cumulated()
        if not up[-1]:
            return None
        return float(np.diff(up) @ (up[1:] / (up[1:] + down[1:])) / up[-1])


def _spread(along: F64) -> list[int]:
    """At most `MOST` indices of an ascending array, evenly spread over its values, including both ends."""
    if len(along) <= MOST:
        return list(range(len(along)))
    wanted = np.linspace(along[0], along[-1], MOST)
    places: list[int] = np.unique(np.searchsorted(along, wanted).clip(0, len(along) - 1)).tolist()
    return places
