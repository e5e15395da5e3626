"""Calibration: how often predictions with probability p came true, accumulated over a stream.

For numbers: the mean of what was observed where about x was predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.learning.head import F64

BITS = 20
"""bits of a cell's number: sign, exponent and eleven digits, so cells are 0.05 % wide"""
_SUMS = 3
_NORMAL = 1.959963984540054
"""quantile of the normal distribution for an interval of 95 %"""


class Density(NamedTuple):
    """The importance of the predictions in an interval."""

    low: float
    high: float
    weight: float


class Binned:
    """Sums over cells of nearly equal predictions; quantile bins are formed from the cells at the end.

    All sums are exact; only the bin edges are rounded to edges of cells. Only cells in use take memory, at
    most 25 MB.
    """

    def __init__(self, cells: Callable[[F64], NDArray[np.int64]] | None = None) -> None:
        self._cells = cells or cells_of_numbers
        self._sums = np.zeros((_SUMS, 1 << BITS))
        """sums of importance, of importance times prediction, and of importance times outcome"""
        self._weight = self._weights_squared = 0.0

    def add(self, predicted: F64, observed: NDArray[Any], weights: F64) -> None:
        """Add predictions and what was observed; all arrays are ``(n,)``."""
        cells, truth = self._cells(predicted), observed.astype(np.float64)
        for sums, values in zip(self._sums, (weights, weights * predicted, weights * truth), strict=True):
            np.add.at(sums, cells, values)
        self._weight += float(weights.sum())
        self._weights_squared += float(weights @ weights)

    def bins(self, count: int = 10) -> list[dict[str, float]]:
        """Weight, mean prediction and mean outcome of each quantile bin; equal predictions share a bin."""
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

    def density(self, low: float | None = None, high: float | None = None, count: int = 40) -> list[Density]:
        """The importance of predictions in equal parts of an interval, by default of all that occur."""
        (used,) = np.nonzero(self._sums[0])
        weight, predicted, _ = self._sums[:, used]
        if not len(used):
            return []
        places = predicted / weight
        ends = (places.min() if low is None else low), (places.max() if high is None else high)
        found, edges = np.histogram(places, count, ends, weights=weight)
        return [
            Density(*one) for one in zip(edges[:-1].tolist(), edges[1:].tolist(), found.tolist(), strict=True)
        ]

    def effective(self, weight: float) -> float:
        """How many examples of equal importance tell as much as those that weigh so much (Kish, 1965)."""
        return weight * self._weight / self._weights_squared if self._weights_squared else 0.0


class Calibration(Binned):
    """Of probabilities: what was observed is whether a prediction came true."""

    def __init__(self) -> None:
        super().__init__(cells_of_probabilities)
        self._squares = 0.0

    def add(self, predicted: F64, observed: NDArray[Any], weights: F64) -> None:
        """Add predictions in [0, 1]; all arrays are ``(n,)``."""
        super().add(predicted, observed, weights)
        self._squares += float(weights @ (predicted - observed) ** 2)

    @property
    def brier(self) -> float | None:
        """Mean squared difference between prediction and outcome; None without examples."""
        return self._squares / self._weight if self._weight else None

    def error(self) -> float | None:
        """Expected calibration error: the mean distance between prediction and outcome over `bins`."""
        found = self.bins()
        gaps = sum(one["weight"] * abs(one["predicted"] - one["observed"]) for one in found)
        return gaps / sum(one["weight"] for one in found) if found else None

    def figures(self) -> dict[str, Any]:
        """``brier``, ``calibration_error`` and ``calibration`` (the bins)."""
        return {"brier": self.brier, "calibration_error": self.error(), "calibration": self.bins()}


def wilson(share: float, count: float) -> tuple[float, float]:
    """The 95 % interval of a share observed among so many (Wilson, JASA 1927); 0 and 1 for none.

    >>> [round(end, 4) for end in wilson(0.1, 100)]
    [0.0552, 0.1744]
    """
    if count <= 0:
        return 0.0, 1.0
    z = _NORMAL**2 / count
    middle, half = share + z / 2, math.sqrt(z * (share * (1 - share) + z / 4))
    return max((middle - half) / (1 + z), 0.0), min((middle + half) / (1 + z), 1.0)


def cells_of_probabilities(predicted: F64) -> NDArray[np.int64]:
    """The cell of each probability, by its log odds: cells are narrow near 0 and 1 too."""
    with np.errstate(divide="ignore"):
        return cells_of_numbers(np.log(predicted) - np.log1p(-predicted))


def cells_of_numbers(predicted: F64) -> NDArray[np.int64]:
    """The cell of each prediction; cells ascend with predictions."""
    with np.errstate(over="ignore"):
        bits = (predicted.astype(np.float32) + np.float32(0)).view(np.uint32)
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    cells: NDArray[np.int64] = (ascending >> np.uint32(32 - BITS)).astype(np.int64)
    return cells
