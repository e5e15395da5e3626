"""Statistics of the first pass: labels and losses in a few KB, and rows drawn from all.

From them comes the loss of the best constant prediction, which any useful model must beat. They do not depend
on where the stream is cut into chunks, so a resumed run has the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from thresher.data.chunk import Chunk
from thresher.data.layout import SettledLayout, has_columns
from thresher.learning.inspection.effects import DrawnRows
from thresher.learning.model.objective import Objective
from thresher.learning.training.progress import Curve, Tally, total

_LABELS = 256
"""Maximum number of labels in the sample."""


class Start(NamedTuple):
    """What a model had learned before the data that are counted."""

    examples: int = 0
    tally: Tally = Tally(0.0, 0.0)
    """sums over examples when they were new"""
    total: Tally = Tally(0.0, 0.0)
    """sums over all passes"""
    classes: int = 0
    """classes learned, if they are met on the way"""


@dataclass(eq=False)
class StreamStatistics:
    """A sample of the labels (every `stride`-th), how often labels change, and the losses."""

    rows: int = 0
    rises: int = 0
    falls: int = 0
    positive: float = 0.0
    weight: float = 0.0
    """total importance of the examples with a positive label, and of all"""
    positives: int = 0
    """examples with a positive label"""
    last: float = 0.0
    low: float = 0.0
    high: float = 0.0
    """the last label, the lowest and the highest"""
    stride: int = 1
    labels: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    """importances of the sampled labels"""
    classes: list[int] = field(default_factory=list)
    """rows of each class, from the lowest on, if labels are classes"""
    weightless: int = 0
    """rows of importance 0, which count nowhere else"""
    marks: list[tuple[int, float, float]] = field(default_factory=list)
    """examples, sum of losses, sum of importances; the number of examples at least doubles"""
    passes: list[tuple[float, float, float | None]] = field(default_factory=list)
    """sums of losses and importances at the end of each pass, and the held-out loss"""
    span: tuple[int, int] | None = None
    """the lowest and the highest key, if features have no columns"""
    unmet: list[int] = field(default_factory=list)
    """features that options name and no row has had so far"""
    start: Start = field(default=Start())
    """what the model had learned before, on other data; marks and passes do not count it"""

    def __post_init__(self) -> None:
        """Without rows."""
        self.drawn = DrawnRows()
        """rows by which scales and the effects of columns are measured; tensors of a checkpoint"""

    def add(self, chunk: Chunk, layout: SettledLayout | None, lowest: int | None = None) -> None:
        """Add the next examples; `lowest` is the lowest class, if labels are classes."""
        rows, chunk = len(chunk), chunk.counting()
        self.weightless += rows - len(chunk)
        if not len(chunk):
            return
        self.unmet = [key for key in self.unmet if not (chunk.keys == np.uint64(key)).any()]
        if (layout is None or not has_columns(layout)) and (span := chunk.span()) is not None:
            known = self.span or span
            self.span = min(known[0], span[0]), max(known[1], span[1])
        labels, weights = chunk.labels, chunk.weights
        before, started = labels[:-1], bool(self.rows)
        first, low, high = float(labels[0]), float(labels.min()), float(labels.max())
        self.rises += int(np.count_nonzero(labels[1:] > before)) + (started and first > self.last)
        self.falls += int(np.count_nonzero(labels[1:] < before)) + (started and first < self.last)
        self.last = float(labels[-1])
        self.low, self.high = (min(self.low, low), max(self.high, high)) if started else (low, high)
        if lowest is not None:
            counts = np.bincount((labels - lowest).astype(np.int64), minlength=len(self.classes))
            counts[: len(self.classes)] += np.array(self.classes, np.int64)
            self.classes = counts.tolist()
        positive = labels > 0
        self.positives += int(np.count_nonzero(positive))
        self.weight += float(weights.sum(dtype=np.float64))
        self.positive += float(weights[positive].sum(dtype=np.float64))
        sampled = slice(-self.rows % self.stride, None, self.stride)
        self.labels += labels[sampled].tolist()
        self.weights += weights[sampled].tolist()
        while len(self.labels) > _LABELS:
            self.labels, self.weights, self.stride = self.labels[::2], self.weights[::2], 2 * self.stride
        self.drawn.add(chunk, self.rows)
        self.rows += len(chunk)

    def mark(self, examples: int, tally: Tally, over: bool = False) -> None:
        """Record the loss, if the first pass is `over`, or has twice as many examples as at the last mark."""
        examples, tally = examples - self.start.examples, tally.since(self.start.tally)
        if over:
            self.marks = [mark for mark in self.marks if 2 * mark[0] <= examples]
        if over or not self.marks or examples >= 2 * self.marks[-1][0]:
            self.marks.append((examples, *tally))

    def of_model(self, curve: Curve, tally: Tally, repeated: Tally) -> StreamStatistics:
        """A copy with the loss curve of one model, nothing held out, and all later passes as one."""
        seen, first = copy(self), self.start.examples
        before = next(
            (point.tally for point in reversed(curve) if 0 < point.examples <= first), Tally(0.0, 0.0)
        )
        seen.start = Start(first, before)
        own = tally.since(before)
        seen.passes, seen.marks = [(*own, None)], []
        if repeated.weight > 0 and not first:
            seen.passes.append((*total([own, repeated]), None))
        for point in curve:
            if first < point.examples < first + self.rows:
                seen.mark(point.examples, point.tally)
        if curve:
            seen.mark(first + self.rows, tally, over=True)
        return seen

    @property
    def late(self) -> float:
        """Progressive loss of roughly the second half of the first pass."""
        marks = [(0, 0.0, 0.0), *(mark for mark in self.marks if mark[0] >= 100)]
        marks = marks if len(marks) > 1 else [(0, 0.0, 0.0), *self.marks[-1:]]
        return Tally(*marks[-1][1:]).since(Tally(*marks[-2][1:])).average if self.marks else float("nan")

    @property
    def pass_losses(self) -> list[float]:
        """Mean loss in each pass: the progressive loss of the first, that of rows seen before in others."""
        ends = [(0.0, 0.0, None), *self.passes]
        return [Tally(b[0] - a[0], b[1] - a[1]).average for a, b in pairwise(ends)]

    @property
    def heldout_losses(self) -> list[float]:
        """Loss after each pass that was evaluated on a hold-out."""
        return [held for _, _, held in self.passes if held is not None]


_STEPS = 40
Weighted = Sequence[tuple[float, float]]
"""Labels and their weights, which sum to 1."""


def base_rate_loss(head: Objective, seen: StreamStatistics) -> float | None:
    """Mean loss of the best constant margin; None if there is no meaningful one.

    Computed from a sample of the labels; for classes from all of them, as some may be rare. None for lists of
    labels, and for several classes whose rows differ in importance, which is not summed for each class. For
    several classes it is an upper bound, the least loss of three margins: zero, the logarithms of the shares,
    and their log odds.
    """
    if not seen.weight or seen.low == seen.high or head.outputs.kind in ("labels", "values", "quantiles"):
        return None
    if head.outputs.kind != "classes":
        share = seen.positive / seen.weight
        if head.classifies:
            labels: Weighted = [] if share in (0.0, 1.0) else [(1.0, share), (-1.0, 1 - share)]
        else:  # the sample may have missed the extremes
            labels = _shares(seen, {seen.low: 1.0 / seen.rows, seen.high: 1.0 / seen.rows})
        # the least mean loss, by bisecting the slope; None if no constant attains it, or if it is zero
        high = max([30.0, *(1.0 + abs(label) for label, _ in labels)])
        low = -high
        if not labels or _mean(head.loss, high, labels)[1] <= 0 or _mean(head.loss, low, labels)[1] >= 0:
            return None
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if _mean(head.loss, middle, labels)[1] > 0 else (middle, high)
        least = min(_mean(head.loss, margin, labels)[0] for margin in (low, high))
        return least if least > 1e-9 else None
    unequal = len({*seen.weights}) > 1 or not math.isclose(seen.weight, seen.weights[0] * seen.rows)
    if unequal or sum(seen.classes) != seen.rows:
        return None
    shares = [(k, rows / seen.rows) for k, rows in enumerate(seen.classes) if rows]
    p = np.full(head.count, 1e-12)
    for k, share in shares:
        p[k] += share
    p /= p.sum()
    values, slopes = np.zeros(head.count), np.zeros(head.count)
    # classes with the same share have the same margin and loss: one of them stands for all
    like, found = Counter(share for _, share in shares), list[float]()
    for margins in (np.zeros(head.count), np.log(p), np.log(p / (1 - p))):
        losses = list[float]()
        for share, k in {share: k for k, share in shares}.items():
            target = np.array([k], np.float32)
            losses.append(like[share] * share * head.joint.values_slopes(margins, target, values, slopes))
        found.append(sum(losses))
    return min(found)


def worst_constant_loss(head: Objective, seen: StreamStatistics) -> float:
    """For regression, the mean loss of predicting the lowest or the highest label, the worse one; else 0.

    If the mean is exp(margin), that of the highest: towards 0 the loss of a label above has no bound.
    """
    if head.outputs.kind != "one" or head.classifies:
        return 0.0
    exponential = head.is_exponential
    ends = [math.log(seen.high / head.loss.link(0.0))] if exponential else [seen.low, seen.high]
    labels = _shares(seen, {})
    return max(_mean(head.loss, margin, labels)[0] for margin in ends)


def _shares(seen: StreamStatistics, more: dict[float, float]) -> Weighted:
    total, found = sum(seen.weights) or 1.0, dict(more)
    for label, weight in zip(seen.labels, seen.weights, strict=True):
        found[label] = found.get(label, 0.0) + weight / total
    whole = sum(found.values())
    return [(label, share / whole) for label, share in found.items()]


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
