"""The figures of ``evaluate``: comparison with the base rate, figures by class, calibration.

The confusion of classes, precision, recall and F1 are accumulated over the stream.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.columns import LABEL, LABELS_BESIDE
from thresher.data.errors import DataError
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.learning.diagnostics.column_findings import troubles_of_reading
from thresher.learning.diagnostics.findings import Finding, unresolved_labels, worse_than_base
from thresher.learning.evaluation.curves import Binned, Ranking, dot, weighted_sum
from thresher.learning.evaluation.evaluate import Evaluation
from thresher.learning.files.choice import JUDGES
from thresher.learning.inspection.formatting import table_of, table_of_rows
from thresher.learning.model.objective import F64, Listener, Objective, Output

MOST = 1000
"""Confusion is counted for at most this many classes; above, only the figures of each class."""


def _figures(hits: float, truths: float, claims: float) -> dict[str, float | None]:
    """Of these sums of importance; None where the denominator is zero."""
    return {
        "precision": hits / claims if claims else None,
        "recall": hits / truths if truths else None,
        "f1": 2 * hits / (truths + claims) if truths + claims else None,
    }


_LEAST = float(np.finfo(np.float64).eps)
"""Smallest probability whose logarithm is taken; scikit-learn uses the same."""
Figures = dict[str, Any]


def entropy(shares: F64) -> float:
    """- sum p log p."""
    held = shares[shares > 0]
    return float((held * -np.log(held)).sum())


class _Classified:
    """Figures for a model that classifies: sums for each class and, if it gives them, of probabilities.

    The log loss is the mean negative log probability of the true outcome. The normalised entropy is its ratio
    to that of the base rate: 1 is as good as always predicting the base rate, 0 is best (He et al., Practical
    Lessons from Predicting Clicks on Ads at Facebook (ADKDD 2014), section 3).
    """

    def __init__(self, head: Objective, lowest: float, threshold: float | None, words: Sequence[str]) -> None:
        self._head, self._threshold, self._likely = head, threshold, head.has_probabilities
        one = head.outputs.kind == "one"
        self._names = [*words] or [f"{lowest:g}", "1"] if one else head.names(words)
        count = len(self._names)
        self._hits, self._truths, self._claims = np.zeros((3, count))
        """importance of the examples that belong to each class, are predicted as it, and both"""
        confusing = head.outputs.kind != "labels" and count <= MOST
        self._confusion = np.zeros((count, count)) if confusing else None
        """``(true class, predicted class)``"""
        self._log = self._log_weight = 0.0
        self._calibration = Binned(probabilities=True)
        self.binned: Binned | None = self._calibration if self._likely else None
        plain = head.calibrated() is not None and head.joint.PROBABILITY
        self._plain: Any = type(self)(head.with_calibration(None), lowest, None, words) if plain else None
        """of the link of the loss, if that of the model was learned"""

    def _given(self, chunk: Chunk, margins: F64, weights: F64) -> F64:
        """The probabilities of examples that are added, or their margins if there are none."""
        if self._plain is not None:
            self._plain.add(chunk, margins, weights)
        return self._head.respond(margins, "probability", 0.0) if self._likely else margins

    def _count(self, truth: NDArray[np.int64], predicted: NDArray[np.int64], weights: F64) -> None:
        """Add examples of one class each, numbered from 0."""
        count, right = len(self._names), truth == predicted
        self._truths += np.bincount(truth, weights, count)
        self._claims += np.bincount(predicted, weights, count)
        self._hits += np.bincount(truth[right], weights[right], count)
        if self._confusion is not None:
            np.add.at(self._confusion, (truth, predicted), weights)

    def _add_likely(self, true: F64, predicted: F64, came_true: NDArray[np.bool_], weights: F64) -> None:
        """Add the probabilities of the true outcomes, and of the predicted ones, with whether they came."""
        self._log -= dot(weights, np.log(np.clip(true, _LEAST, 1.0)))
        self._log_weight += float(weights.sum())
        self._calibration.add(predicted, came_true, weights)

    def _of_likely(self, base: float | None) -> Figures:
        """The figures of probabilities, given the log loss `base` of the base rate."""
        if not self._likely:
            return {}
        found = self._log / self._log_weight if self._log_weight else None
        ratio = found / base if found is not None and base else None
        logs = {"log_loss": found, "base_log_loss": base, "normalised_entropy": ratio}
        return logs | self._calibration.calibration()

    def _with_classes(self, found: Figures) -> Figures:
        """What was found, followed by the figures of each class."""
        if self._plain is not None:
            plain = self._plain.figures()
            names = ("log_loss", "brier", "calibration_error")
            found |= {f"uncalibrated_{name}": plain[name] for name in names}
        truths, counted = self._truths.tolist(), self._confusion
        rows = [{"class": name, **self._of(k), "weight": truths[k]} for k, name in enumerate(self._names)]
        return found | {"by_class": rows} | ({} if counted is None else {"confusion": counted.tolist()})

    def _of(self, number: int) -> dict[str, float | None]:
        """``precision``, ``recall`` and ``f1`` of a class."""
        return _figures(*(float(one[number]) for one in (self._hits, self._truths, self._claims)))

    def _macro(self) -> dict[str, float | None]:
        """Their means over the classes that occur or are predicted; undefined figures count as 0."""
        each = [self._of(k) for k in np.flatnonzero(self._truths + self._claims).tolist()]
        names = ("precision", "recall", "f1")
        return {f"macro_{n}": sum(one[n] or 0.0 for one in each) / len(each) if each else None for n in names}


class _Classes(_Classified):
    """For one of several classes."""

    _squares = 0.0

    def add(self, chunk: Chunk, margins: F64, weights: F64) -> None:
        given = self._given(chunk, margins, weights)
        truth = chunk.labels.astype(np.int64) - self._head.outputs.low
        predicted = np.argmax(margins, axis=1)
        self._count(truth, predicted, weights)
        if self._likely:  # those of one-against-rest need not sum to one
            given = self._head.probabilities(margins)
            own = given[np.arange(len(truth)), truth]
            self._squares += dot(weights, (given**2).sum(axis=1) - 2.0 * own + 1.0)
            if (first := margins[np.arange(len(truth)), truth] == -np.inf).any():  # as `losses` has them
                begun = np.where(np.arange(margins.shape[1]) == truth[first, np.newaxis], 0.0, margins[first])
                own[first] = self._head.probabilities(begun)[np.arange(len(begun)), truth[first]]
            self._add_likely(own, given.max(axis=1, initial=0.0), truth == predicted, weights)

    def figures(self) -> Figures:
        weight = float(self._truths.sum())
        shares = self._truths / (weight or 1.0)
        found = {"base_error": 1.0 - float(shares.max()) if weight else None, **self._macro()}
        if self._likely:
            found |= self._of_likely(entropy(shares) if weight else None)
            found["brier"] = self._squares / weight if weight else None
        return self._with_classes(found)


class _Two(_Classified):
    """For two classes."""

    def add(self, chunk: Chunk, margins: F64, weights: F64) -> None:
        given = self._given(chunk, margins, weights)
        truth = chunk.labels > 0
        positive = self._head.positive(margins, self._threshold)
        self._count(truth.astype(np.int64), positive.astype(np.int64), weights)
        if self._likely:
            self._add_likely(np.where(truth, given, 1.0 - given), given, truth, weights)

    def figures(self) -> Figures:
        weight = float(self._truths.sum())
        rate = float(self._truths[1]) / weight if weight else None
        found: Figures = {"base_rate": rate, "base_error": None if rate is None else min(rate, 1.0 - rate)}
        found |= self._of(1) | ({} if self._threshold is None else {"threshold": self._threshold})
        base = None if rate is None else entropy(np.array([rate, 1.0 - rate]))
        return self._with_classes(found | self._of_likely(base))


class _Lists(_Classified):
    """For lists of classes. Every pair of an example and a class counts equally."""

    _weight = 0.0

    def add(self, chunk: Chunk, margins: F64, weights: F64) -> None:
        given = self._given(chunk, margins, weights)
        truth = self._head.targets(chunk) > 0
        predicted = self._head.positive(margins, self._threshold)
        self._truths += weighted_sum(weights, truth)
        self._claims += weighted_sum(weights, predicted)
        self._hits += weighted_sum(weights, truth & predicted)
        self._weight += float(weights.sum())
        if self._likely:
            true, each = np.where(truth, given, 1.0 - given), np.repeat(weights, self._head.count)
            self._add_likely(true.ravel(), given.ravel(), truth.ravel(), each)

    def figures(self) -> Figures:
        pairs = self._weight * self._head.count
        sums = [float(one.sum()) for one in (self._hits, self._truths, self._claims)]
        found = {f"micro_{name}": value for name, value in _figures(*sums).items()} | self._macro()
        found |= {} if self._threshold is None else {"threshold": self._threshold}
        rates = self._truths / self._weight if pairs else np.zeros(0)
        base = entropy(np.concatenate([rates, 1.0 - rates])) / self._head.count
        return self._with_classes(found | self._of_likely(base if pairs else None))


@dataclass
class _Deviance:
    """The deviance of a loss whose mean is exp(margin), and D2, the share of that of the mean which it saves.

    The deviance 2 loss(p, y) is a Bregman divergence D(y, m) of label and mean. So of all labels from their
    mean M it is sum w D(y, a) - sum w D(M, a) for any a, and one reading is enough (Banerjee et al.,
    Clustering with Bregman divergences, JMLR 6 (2005), proposition 1). a is the mean of the first labels.
    """

    head: Objective
    a: float | None = None
    """as a margin"""
    own: float = 0.0
    base: float = 0.0
    weight: float = 0.0
    labels: float = 0.0
    """sums over examples: losses, losses at `a`, importances, and labels times these"""

    def add(self, chunk: Chunk, margins: F64, weights: F64) -> None:
        if self.a is None:
            mean = dot(weights, chunk.labels) / float(weights.sum())
            self.a = math.log((mean or 1.0) / self.head.loss.link(0.0))
        self.own += float(self.head.losses(margins, chunk).sum())
        self.base += float(self.head.losses(np.full(len(chunk), self.a), chunk).sum())
        self.weight += float(weights.sum())
        self.labels += dot(weights, chunk.labels)

    def figures(self) -> Figures:
        if self.a is None:
            return dict.fromkeys(("deviance", "base_deviance", "d2"))
        own, mean = 2 * self.own / self.weight, self.labels / self.weight
        base = 2 * max(self.base / self.weight - self.head.loss.value_slope(self.a, mean)[0], 0.0)
        return {"deviance": own, "base_deviance": base, "d2": 1.0 - own / base if base else None}


class _Numbers:
    """Figures for regression. Deviations are summed about a running mean (Chan et al. 1983)."""

    def __init__(self, head: Objective, lowest: float, threshold: float | None, words: Sequence[str]) -> None:
        self._head, self._lowest = head, lowest
        self._weight, self._absolute = 0.0, 0.0
        self._means, self._squares, self._errors = np.zeros((3, head.count))
        self.binned = Binned() if head.count == 1 else None
        self._deviance = _Deviance(head) if head.count == 1 and head.is_exponential else None
        self._level, self._below = head.loss.LEVEL, np.zeros(head.count)
        self._levels, self._pinball = np.array(head.outputs.levels), np.zeros(head.count)
        """of several quantiles, and the sums of their losses"""

    def add(self, chunk: Chunk, margins: F64, weights: F64) -> None:
        truth = self._head.targets(chunk).astype(np.float64)
        guess = self._head.respond(margins, "label", self._lowest).reshape(truth.shape)
        added = float(weights.sum())
        if not added:
            return
        self._absolute += dot(weights, np.abs(guess - truth).mean(axis=1))
        self._errors += weighted_sum(weights, (guess - truth) ** 2)
        self._below += weighted_sum(weights, truth <= guess)
        if len(self._levels):
            losses = (guess - truth) * ((guess > truth) - self._levels)
            self._pinball += weighted_sum(weights, losses)
        if self._deviance is not None:
            self._deviance.add(chunk, margins, weights)
        if self.binned is not None:
            self.binned.add(guess[:, 0], truth[:, 0], weights)
        means, total = weighted_sum(weights, truth) / added, self._weight + added
        difference = means - self._means
        self._squares += weighted_sum(weights, (truth - means) ** 2)
        self._squares += difference**2 * (self._weight * added / total)
        self._means += difference * (added / total)
        self._weight = total

    def figures(self) -> Figures:
        deviance = {} if self._deviance is None else self._deviance.figures()
        if not self._weight:
            return dict.fromkeys(("base_rmse", "mae", "r2")) | deviance
        known = bool((self._squares > 0).all())
        by_output = (
            {"calibration": self.binned.bins()}
            if self.binned is not None
            else {"rmse_by_output": np.sqrt(self._errors / self._weight).tolist()}
        )
        of_quantiles = Figures()  # the share of labels that are not above one, and of several their losses
        if self._level is not None:
            coverage, losses = ((one / self._weight).tolist() for one in (self._below, self._pinball))
            rows = zip(self._levels.tolist(), coverage, losses, strict=True)
            of_quantiles = (
                {"quantiles": [{"level": a, "coverage": b, "loss": c} for a, b, c in rows]}
                if len(self._levels)
                else {"level": self._level, "coverage": float(np.mean(coverage))}
            )
        return {
            "base_rmse": math.sqrt(float(self._squares.mean()) / self._weight),
            "mae": self._absolute / self._weight,
            "r2": float((1.0 - self._errors / self._squares).mean()) if known else None,
            **deviance,
            **of_quantiles,
            **by_output,
        }


class Assessment:
    """How good a Model or a LinearPredictor is, measured chunk by chunk."""

    def __init__(self, model: Any, threshold: float | None) -> None:
        self._model = model
        self.head: Objective = model.head
        kind = {"one": _Two, "labels": _Lists}.get(self.head.outputs.kind, _Classes)
        made: Any = kind if self.head.classifies else _Numbers
        self.plain = Evaluation(self.head, threshold)
        self._more = made(self.head, model.lowest_label, threshold, model.classes)
        self.binned: Binned | None = self._more.binned
        """predictions and observations; None if the model predicts neither probabilities nor one number"""
        self.weightless = 0
        """rows of importance 0, which count nowhere else"""

    def read(self, read: Chunk, name: str, also: Sequence[Listener]) -> None:
        """Predict rows that were read from `name`. `DataError` if a prediction is not finite."""
        chunk = read.counting()
        self.weightless += len(read) - len(chunk)
        margins = self._model.predict(chunk, "margin")
        if (broken := self.head.broken(margins)).any():
            wrong = self.plain.examples + int(np.argmax(broken)) + 1
            what = f"{name}: the prediction for example {wrong:,}"
            raise DataError(f"{what} is not finite: its values are too large")
        self.add(chunk, margins)
        for one in also:
            one.add(chunk, margins)

    def add(self, chunk: Chunk, margins: F64) -> F64:
        """Like `Evaluation.add`."""
        self._more.add(chunk, margins, chunk.weights.astype(np.float64))
        return self.plain.add(chunk, margins)

    def troubles(self, report: Report) -> list[Finding]:
        """Labels that float32 does not tell apart, trouble with columns, and probabilities far off."""
        plain = self.plain
        found = unresolved_labels(self.head, plain.examples, plain.low, plain.high)
        told = [] if found is None else [Finding("unresolved-labels", found)]
        worse = worse_than_base(self.figures(), self.head)
        return [*told, *troubles_of_reading(report), *worse]

    def figures(self) -> Figures:
        """The figures of ``thresher evaluate --json``, without the number of weights."""
        weightless = {"importance_0": self.weightless} if self.weightless else {}
        ranked = {"average_precision": self.plain.ranking().average_precision} if self.head.is_of_two else {}
        return {**self.plain.figures(), **ranked, **self._more.figures(), **weightless}

    def at(self, top: Sequence[str], costs: tuple[float, float] | None) -> Figures:
        """Figures of the examples with the largest margins, and what mistakes cost.

        `top` are numbers of examples, or shares of their importance such as ``1%``; `costs` those of a
        positive that is missed and of a false alarm. With calibrated probabilities, the cost is lowest above
        false_alarm / (missed + false_alarm) (Elkan, The foundations of cost-sensitive learning, IJCAI 2001).
        """
        told, head = Figures(), self.head
        if costs is not None:
            given: Output = "probability" if head.has_probabilities else "margin"
            margins, positive, weights = self.plain.ranking().examples
            found = Ranking(head.respond(margins, given, 0.0), positive, weights)
            at, own = found.cheapest(*costs)
            told |= own | {"cost_threshold": at}
            if head.has_probabilities:
                theory = costs[1] / sum(costs)
                told["theoretical_threshold"] = theory
                told["theoretical_cost"] = found.cost(theory, *costs)["cost"]
        if top:
            found, whole = self.plain.ranking(), self.plain.weight
            shares = [float(one[:-1]) / 100 if one.endswith("%") else float(one) / whole for one in top]
            rows = zip(top, (found.top(min(share, 1.0)) for share in shares), strict=True)
            told["top"] = [{"top": name, **row} for name, row in rows]
        return told


class Judged(Assessment):
    """The figures of `Evaluation`, and the one by which a model is judged. ValueError if it has none."""

    def __init__(self, model: Any, judge: str) -> None:
        super().__init__(model, None)
        self._judge = judge
        there = [*filter(super().figures().__contains__, JUDGES)]
        if judge not in there and not ("@" in judge and model.head.is_of_two):
            raise ValueError(f"{judge} is no figure of this model, which has {', '.join(there)}")

    def figures(self) -> Figures:
        """With that of the judge at the end."""
        name, _, part = self._judge.partition("@")
        whole = self.at([part], None)["top"][0] if part else super().figures()
        return {**self.plain.figures(), self._judge: whole[name]}


def assess(model: Any, source: Source, threshold: float | None = None, *also: Listener) -> Assessment:
    """Evaluate a Model or a LinearPredictor on `source`, which is read once; `also` get every chunk as well.

    The figures of `Evaluation` come first, then those of the kind of model: see docs/evaluate.md. A
    prediction is positive above `threshold`, which is a probability, or a margin if the loss has no
    probabilities. ValueError for a threshold that the model cannot use; `DataError` if no example has weight.
    """
    model.head.check_threshold(threshold)
    if source.layout is not None and source.layout.columns and LABEL not in source.layout.kinds:
        why = "no column holds labels, since they were given beside the table in training"
        raise DataError(f"{source.names[0]}: {why}: {LABELS_BESIDE}")
    found = Assessment(model, threshold)
    for chunk in source.chunks():
        found.read(chunk, source.names[0], also)
    if found.weightless and not found.plain.examples:
        raise DataError("all importance weights are zero: there is nothing to evaluate")
    return found


_SHOWN = 20
"""maximum number of classes in a printed confusion matrix"""


def figure_tables(figures: Figures) -> list[str]:
    """The figures that are tables, as text."""
    lines: list[str] = []
    classes, counted = figures.get("by_class"), figures.get("confusion")
    if classes and counted and len(classes) <= _SHOWN:
        names = [one["class"] for one in classes]
        rows = [[name, *row] for name, row in zip(names, counted, strict=True)]
        lines += ["", "confusion: a row for each true class, a column for each predicted one"]
        lines += table_of(["", *names], rows)
    for name in ("by_class", "quantiles", "calibration"):
        if found := figures.get(name):
            lines += ["", name.replace("_", " ")]
            lines += table_of_rows(found)
    return lines
