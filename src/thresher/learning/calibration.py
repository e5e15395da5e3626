"""Calibration: how often predictions with probability p came true, accumulated over a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.learning.head import F64

_BITS = 20
"""bits of a cell's number: sign, exponent and eleven digits of the log odds, so cells are 0.05 % wide"""
_SUMS = 3


class Calibration:
    """Sums over cells of nearly equal predictions; quantile bins are formed from the cells at the end.

    All sums are exact; only the bin edges are rounded to edges of cells. Only cells in use take memory, at
    most 25 MB.
    """

    def __init__(self) -> None:
        self._sums = np.zeros((_SUMS, 1 << _BITS))
        """sums of importance, of importance times prediction, and of importance times outcome"""
        self._weight = self._squares = 0.0

    def add(self, predicted: F64, came_true: NDArray[np.bool_], weights: F64) -> None:
        """Add predictions in [0, 1]; all arrays are ``(n,)``."""
        cells, truth = _cells(predicted), came_true.astype(np.float64)
        for sums, values in zip(self._sums, (weights, weights * predicted, weights * truth), strict=True):
            np.add.at(sums, cells, values)
        self._weight += float(weights.sum())
        self._squares += float(weights @ (predicted - truth) ** 2)

    @property
    def brier(self) -> float | None:
        """Mean squared difference between prediction and outcome; None without examples."""
        return self._squares / self._weight if self._weight else None

    def bins(self, count: int = 10) -> list[dict[str, float]]:
        """Weight, mean prediction and observed share of each quantile bin; equal predictions share a bin."""
        (used,) = np.nonzero(self._sums[0])
        weight, predicted, came_true = self._sums[:, used]
        if not len(used):
            return []
        middles = np.cumsum(weight) - weight / 2
        number = np.minimum((middles * (count / weight.sum())).astype(int), count - 1)
        sums = [np.bincount(number, one, count) for one in (weight, predicted, came_true)]
        return [
            {"weight": w, "predicted": p / w, "observed": y / w}
            for w, p, y in zip(*(one.tolist() for one in sums), strict=True)
            if w
        ]

    def error(self) -> float | None:
        """Expected calibration error: the mean distance between prediction and outcome over `bins`."""
        found = self.bins()
        gaps = sum(one["weight"] * abs(one["predicted"] - one["observed"]) for one in found)
        return gaps / sum(one["weight"] for one in found) if found else None

    def figures(self) -> dict[str, Any]:
        """``brier``, ``calibration_error`` and ``calibration`` (the bins)."""
        return {"brier": self.brier, "calibration_error": self.error(), "calibration": self.bins()}


def _cells(predicted: F64) -> NDArray[np.int64]:
    """The cell of each prediction: cells ascend with predictions, and are narrow near 0 and 1 too."""
    with np.errstate(divide="ignore"):
        odds = (np.log(predicted) - np.log1p(-predicted)).astype(np.float32) + np.float32(0)
    bits = odds.view(np.uint32)
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    cells: NDArray[np.int64] = (ascending >> np.uint32(32 - _BITS)).astype(np.int64)
    return cells
