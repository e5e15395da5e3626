"""Calibration, accumulated over a stream in bounded memory; ROC and precision-recall curves.

Calibration is how often predictions with probability p came true; for numbers, the mean of what was observed
where about x was predicted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.engine.sound import Array
from thresher.learning.model.objective import F64

BITS = 20
"""bits of a cell's number: sign, exponent and eleven digits, so cells are 0.05 % wide"""
_SUMS, _BINS, _PARTS = 3, 10, 40
NORMAL = 1.959963984540054
"""quantile of the normal distribution for an interval of 95 %"""


class Binned:
    """Sums over cells of nearly equal predictions; quantile bins are formed from the cells at the end.

    All sums are exact; only the bin edges are rounded to edges of cells. Only cells in use take memory, at
    most 25 MB. Of `probabilities`, what was observed is whether a prediction came true, and cells are those
    of log odds: narrow near 0 and 1 too.
    """

    def __init__(self, probabilities: bool = False) -> None:
        self._odds = probabilities
        self._sums = np.zeros((_SUMS, 1 << BITS))
        """sums of importance, of importance times prediction, and of importance times outcome"""
        self._weight = self._weights_squared = self._squares = 0.0

    def add(self, predicted: F64, observed: Array, weights: F64) -> None:
        """Add predictions and what was observed; all arrays are ``(n,)``."""
        truth, places = observed.astype(np.float64), predicted
        if self._odds:
            with np.errstate(divide="ignore"):
                places = np.log(predicted) - np.log1p(-predicted)
            self._squares += dot(weights, (predicted - truth) ** 2)
        with np.errstate(over="ignore"):
            bits = (places.astype(np.float32) + np.float32(0)).view(np.uint32)
        ascending = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))  # cells ascend with predictions
        cells = (ascending >> np.uint32(32 - BITS)).astype(np.int64)
        for sums, values in zip(self._sums, (weights, weights * predicted, weights * truth), strict=True):
            np.add.at(sums, cells, values)
        self._weight += float(weights.sum())
        self._weights_squared += dot(weights, weights)

    def bins(self) -> list[dict[str, float]]:
        """Weight, mean prediction and mean outcome of each quantile bin; equal predictions share a bin."""
        (used,) = np.nonzero(self._sums[0])
        weight, predicted, came_true = self._sums[:, used]
        if not len(used):
            return []
        middles = np.cumsum(weight) - weight / 2
        number = np.minimum((middles * (_BINS / weight.sum())).astype(int), _BINS - 1)
        sums = [np.bincount(number, one, _BINS) for one in (weight, predicted, came_true)]
        return [
            {"weight": w, "predicted": p / w, "observed": y / w}
            for w, p, y in zip(*(one.tolist() for one in sums), strict=True)
            if w
        ]

    def density(
        self, low: float | None = None, high: float | None = None
    ) -> list[tuple[float, float, float]]:
        """Low end, high end and importance of predictions in equal parts of an interval.

        By default it is the one of all that occur.
        """
        (used,) = np.nonzero(self._sums[0])
        weight, predicted, _ = self._sums[:, used]
        if not len(used):
            return []
        places = predicted / weight
        ends = (places.min() if low is None else low), (places.max() if high is None else high)
        found, edges = np.histogram(places, _PARTS, ends, weights=weight)
        return [*zip(edges[:-1].tolist(), edges[1:].tolist(), found.tolist(), strict=True)]

    def effective(self, weight: float) -> float:
        """How many examples of equal importance tell as much as those that weigh so much (Kish, 1965)."""
        return weight * self._weight / self._weights_squared if self._weights_squared else 0.0

    def calibration(self) -> dict[str, Any]:
        """``brier``, ``calibration_error`` and ``calibration`` (the bins).

        The Brier score is the mean squared difference between prediction and outcome, the calibration error
        the mean distance between both over `bins`; None without examples.
        """
        bins = self.bins()
        gaps = sum(one["weight"] * abs(one["predicted"] - one["observed"]) for one in bins)
        error = gaps / sum(one["weight"] for one in bins) if bins else None
        brier = self._squares / self._weight if self._weight else None
        return {"brier": brier, "calibration_error": error, "calibration": bins}


def wilson(share: float, count: float) -> tuple[float, float]:
    """The 95 % interval of a share observed among so many (Wilson, JASA 1927); 0 and 1 for none.

    >>> [round(end, 4) for end in wilson(0.1, 100)]
    [0.0552, 0.1744]
    """
    if count <= 0:
        return 0.0, 1.0
    z = NORMAL**2 / count
    middle, half = share + z / 2, math.sqrt(z * (share * (1 - share) + z / 4))
    return max((middle - half) / (1 + z), 0.0), min((middle + half) / (1 + z), 1.0)


def error_of_mean(
    count: int, weight: float, squares: float, total: float, total2: float, crossed: float
) -> float | None:
    """The standard error of a weighted mean; None for fewer than two rows.

    For `count` values x_r with importances w_r above 0, and their sums `weight` = sum w_r, `squares` =
    sum w_r^2, `total` = sum w_r x_r, `total2` = sum (w_r x_r)^2 and `crossed` = sum w_r^2 x_r, the error of
    m = sum w_r x_r / sum w_r is sqrt(sum w_r^2 (x_r - m)^2 count / (count - 1)) / sum w_r. If all w_r are
    equal, it is the standard deviation, with the divisor count - 1, divided by sqrt(count).

    >>> error_of_mean(4, 4.0, 4.0, 10.0, 30.0, 10.0)  # of 1, 2, 3, 4
    0.6454972243679028
    """
    if count < 2:
        return None
    mean = total / weight
    spread = max(total2 - 2 * mean * crossed + mean * mean * squares, 0.0)
    return math.sqrt(spread * count / (count - 1)) / weight


def weighted_sum(weights: F64, values: Array) -> F64:
    """Of rows ``(n,)`` or ``(n, outputs)``; not by BLAS, whose threads wait busily after larger products."""
    return np.asarray(np.einsum("i,i...", weights, values))


def dot(one: F64, other: Array) -> float:
    """Sum of products of two vectors ``(n,)``, as `weighted_sum` has it."""
    return float(weighted_sum(one, other))


MOST = 200
"""maximum number of points of a curve"""


class Ranking:
    """What depends only on the order of examples by their scores, larger for more likely positives.

    Of scores ``(n,)``, whether they are those of positives, and importances above 0.
    """

    def __init__(self, scores: F64, positive: NDArray[np.bool_], weights: F64) -> None:
        order = np.argsort(-scores, kind="stable")
        self.examples = ordered, is_positive, w = scores[order], positive[order], weights[order]
        last = np.flatnonzero(np.append(np.diff(ordered) != 0, [True] * (len(order) > 0)))
        """in this order: scores, whether they are those of positives, and importances"""
        self._scores = ordered[last]
        """from the largest; equal ones are one"""
        sums = np.cumsum(np.where(is_positive, 0.0, w))[last], np.cumsum(np.where(is_positive, w, 0.0))[last]
        self._down, self._up = np.insert(sums, 0, 0.0, axis=1)
        """importance of negatives and of positives above each threshold, from none to all"""

    @property
    def auc(self) -> float | None:
        """Area under the ROC curve: the chance that a positive example has the larger score; ties are 1/2.

        None if one class is missing.
        """
        down, up = self._down, self._up
        if not down[-1] * up[-1]:
            return None
        return dot(np.diff(down), up[1:] + up[:-1]) / float(2 * down[-1] * up[-1])

    def roc(self) -> list[tuple[float, float]]:
        """False and true positive rate at falling thresholds, from (0, 0) to (1, 1).

        Empty if one class is missing. At most `MOST` points, spread along the curve.
        """
        down, up = self._down, self._up
        if not down[-1] * up[-1]:
            return []
        x, y = down / down[-1], up / up[-1]
        return [(float(x[k]), float(y[k])) for k in _spread(x + y)]

    def precision_recall(self) -> list[tuple[float, float]]:
        """Recall and precision at falling thresholds; empty without positives. At most `MOST` points."""
        down, up = self._down[1:], self._up[1:]
        if not len(up) or not up[-1]:
            return []
        first = int(np.flatnonzero(up)[0])  # before it nothing is found, and precision is 0
        recall, precision = up[first:] / up[-1], up[first:] / (up + down)[first:]
        return [(float(recall[k]), float(precision[k])) for k in _spread(recall)]

    @property
    def average_precision(self) -> float | None:
        """Mean precision over the positives, as scikit-learn computes it; None without positives."""
        down, up = self._down, self._up
        if not up[-1]:
            return None
        return dot(np.diff(up), up[1:] / (up[1:] + down[1:])) / float(up[-1])

    def top(self, part: float) -> dict[str, float | None]:
        """Figures of this share of the importance with the largest scores, if they are predicted positive.

        Of examples with equal scores that are not all in it, each counts by the same share (the mean over all
        orders of these). The lift is the precision over the share of positives among all.
        """
        down, up = self._down, self._up
        both = down + up
        found = float(np.interp(part * both[-1], both, up))
        precision, base = found / (part * both[-1]), up[-1] / both[-1]
        return {
            "precision": precision,
            "recall": found / up[-1] if up[-1] else None,
            "lift": precision / base if base else None,
        }

    def cheapest(self, missed: float, false_alarm: float) -> tuple[float, dict[str, float | None]]:
        """The score above which positives are predicted at the lowest mean cost, and `cost` there.

        It is half-way between two scores that occur; of several, the highest. If all are predicted positive,
        it is as far below the lowest score as one can tell.
        """
        down, up = self._down, self._up
        k = int(np.argmin(missed * (up[-1] - up) + false_alarm * down))
        below = np.append(self._scores, np.nextafter(self._scores[-1], -np.inf))[k]
        at = float(below if k in (0, len(self._scores)) else (self._scores[k - 1] + below) / 2)
        return at, self.cost(at, missed, false_alarm)

    def cost(self, threshold: float, missed: float, false_alarm: float) -> dict[str, float | None]:
        """The mean cost, and its 95 % interval, if scores above the threshold are predicted positive.

        `missed` is that of a positive that is not, `false_alarm` that of a negative that is.
        """
        scores, positive, weights = self.examples
        each = np.where(positive, missed * (scores <= threshold), false_alarm * (scores > threshold))
        own = weights * each
        total, weight = float(own.sum()), float(weights.sum())
        sums = weight, dot(weights, weights), total, dot(own, own), dot(own, weights)
        error, mean = error_of_mean(len(scores), *sums), total / weight
        low, high = (
            (None, None) if error is None else (max(mean - NORMAL * error, 0.0), mean + NORMAL * error)
        )
        return {"cost": mean, "cost_low": low, "cost_high": high}


def _spread(along: F64) -> list[int]:
    """At most `MOST` indices of an ascending array, evenly spread over its values, including both ends."""
    if len(along) <= MOST:
        return list(range(len(along)))
    wanted = np.linspace(along[0], along[-1], MOST)
    places: list[int] = np.unique(np.searchsorted(along, wanted).clip(0, len(along) - 1)).tolist()
    return places
