"""The loss of the best constant prediction, which any useful model must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.learning.head import Head
from thresher.learning.seen import Seen

_STEPS = 40
Weighted = Sequence[tuple[float, float]]
"""Labels and their weights, which sum to 1."""


def base_rate_loss(head: Head, seen: Seen) -> float | None:
    """Mean loss of the best constant margin; None if there is no meaningful one.

    Computed from a sample of the labels; for two classes from all of them, as one may be rare. For several
    classes it is an upper bound: the least loss of a few constants. None for lists of labels.
    """
    if not seen.weight or seen.low == seen.high or head.outputs.kind in ("labels", "values"):
        return None
    if head.outputs.kind == "classes":
        return _of_classes(head, _shares(seen, {}))
    if head.classifies:
        share = seen.positive / seen.weight
        return None if share in (0.0, 1.0) else best_constant(head.loss, [(1.0, share), (-1.0, 1 - share)])[0]
    extremes = {seen.low: 1.0 / seen.rows, seen.high: 1.0 / seen.rows}  # the sample may have missed them
    return best_constant(head.loss, _shares(seen, extremes))[0]


def worst_constant_loss(head: Head, seen: Seen) -> float:
    """For regression, the mean loss of predicting the lowest or the highest label, the worse one; else 0."""
    if head.outputs.kind != "one" or head.classifies:
        return 0.0
    labels = _shares(seen, {})
    return max(_mean(head.loss, margin, labels)[0] for margin in (seen.low, seen.high))


def _shares(seen: Seen, more: dict[float, float]) -> Weighted:
    total, found = sum(seen.weights) or 1.0, dict(more)
    for label, weight in zip(seen.labels, seen.weights, strict=True):
        found[label] = found.get(label, 0.0) + weight / total
    whole = sum(found.values())
    return [(label, share / whole) for label, share in found.items()]


def best_constant(loss: Any, labels: Weighted) -> tuple[float | None, float]:
    """The least mean loss of a convex loss, and the margin that attains it, found by bisecting the slope.

    The loss is None if no constant attains it, or if it is zero.
    """
    high = max(30.0, 1.0 + max(abs(label) for label, _ in labels))
    low = -high
    if _mean(loss, high, labels)[1] <= 0 or _mean(loss, low, labels)[1] >= 0:
        return None, 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _mean(loss, middle, labels)[1] > 0 else (middle, high)
    least = min(_mean(loss, margin, labels)[0] for margin in (low, high))
    return (least if least > 1e-9 else None), high


def _mean(loss: Any, margin: float, labels: Weighted) -> tuple[float, float]:
    """Mean loss and slope; infinite on overflow."""
    total = slopes = 0.0
    for label, share in labels:
        try:
            value, slope = loss.value_slope(margin, label)
        except OverflowError:
            value, slope = float("inf"), float("inf") if margin > 0 else -float("inf")
        total, slopes = total + share * value, slopes + share * slope
    return total, slopes


def _of_classes(head: Head, shares: Weighted) -> float | None:
    """The least mean loss of three margins: zero, the logarithms of the shares, and their log odds."""
    count, low = head.count, head.outputs.low
    p = np.full(count, 1e-6)
    for label, share in shares:
        p[int(label) - low] += share
    p /= p.sum()
    values, slopes = np.zeros(count), np.zeros(count)
    found: list[float] = []
    for margins in (np.zeros(count), np.log(p), np.log(p / (1 - p))):
        losses: list[float] = []
        for label, share in shares:
            target = np.array([label - low], np.float32)
            losses.append(share * head.joint.values_slopes(margins, target, values, slopes))
        found.append(sum(losses))
    return min(found)
