"""Evaluation on examples that are not learned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.learning.evaluation.curves import Ranking, dot
from thresher.learning.model.objective import F64, Objective


@dataclass
class Evaluation:
    """Sums over the examples so far; all figures are weighted by importance, outputs count equally.

    For two classes, margins, labels and weights are kept for the AUC: 13 bytes per example.
    """

    head: Objective
    threshold: float | None = None
    """above which classes are predicted, as `Objective.positive` takes it"""
    examples: int = 0
    _loss: float = 0.0
    weight: float = 0.0
    """total importance"""
    alike: bool = True
    """whether all importances are 1"""
    _wrong: float = 0.0
    """sum of `row_errors`"""
    low: float = np.inf
    high: float = -np.inf
    """the lowest and the highest label of a regression"""
    _hits: float = 0.0
    """true positive pairs of an example and a class; `_claims` counts true plus predicted pairs"""
    _claims: float = 0.0
    _kept: list[tuple[F64, NDArray[np.bool_], NDArray[np.float32]]] = field(default_factory=list)
    _ranked: tuple[int, Ranking] | None = None
    """the order of the first so many examples"""

    def add(self, chunk: Chunk, margins: F64) -> F64:
        """Add rows of importance above 0, `Chunk.counting`; their losses times importance ``(n,)``."""
        weights, labels = chunk.weights.astype(np.float64), self.head.truth(chunk)
        self.examples += len(chunk)
        losses = self.head.losses(margins, chunk)
        self._loss += float(losses.sum())
        self.weight += float(weights.sum())
        self.alike = self.alike and bool((weights == 1.0).all())
        self._wrong += dot(weights, row_errors(self.head, margins, labels, self.threshold))
        if not self.head.classifies:
            self.low = min(self.low, float(labels.min(initial=np.inf)))
            self.high = max(self.high, float(labels.max(initial=-np.inf)))
        elif self.head.outputs.kind == "labels":
            claimed = self.head.positive(margins, self.threshold)
            self._hits += dot(weights, (claimed & (labels > 0)).sum(axis=1))
            self._claims += dot(weights, (claimed.astype(int) + (labels > 0)).sum(axis=1))
        elif self.head.is_of_two:
            self._kept.append((margins, labels > 0, chunk.weights.copy()))
        return losses

    def figures(self) -> dict[str, float | int | None]:
        """``examples loss error``, with ``auc`` for two classes; ``examples loss rmse`` for regression.

        For lists of classes, the error is the share of wrong pairs of example and class, and ``micro_f1`` =
        2 hits / (true pairs + predicted pairs), None if there are no such pairs.
        """
        shared: dict[str, float | int | None] = {"examples": self.examples, "loss": self._mean(self._loss)}
        if not self.head.classifies:
            return {**shared, "rmse": float(np.sqrt(self._mean(self._wrong)))}
        shared["error"] = self._mean(self._wrong)
        if self.head.outputs.kind == "labels":
            return {**shared, "micro_f1": 2 * self._hits / self._claims if self._claims else None}
        if self.head.outputs.kind != "one":
            return shared
        return {**shared, "auc": self.ranking().auc}

    def ranking(self) -> Ranking:
        """The order of the examples of two classes by their margins."""
        if self._ranked is None or self._ranked[0] != self.examples:
            none = np.zeros(0), np.zeros(0, np.bool_), np.zeros(0, np.float32)
            margins, positive, weights = map(np.concatenate, zip(none, *self._kept, strict=True))
            self._ranked = self.examples, Ranking(margins, positive, weights.astype(np.float64))
        return self._ranked[1]

    def _mean(self, total: float) -> float:
        return total / self.weight if self.weight else float("nan")


def row_means(numbers: object) -> F64:
    """Mean over outputs: ``(n,)`` or ``(n, outputs)`` to ``(n,)``."""
    each = np.asarray(numbers, np.float64)
    means: F64 = each.mean(axis=tuple(range(1, each.ndim)))
    return means


def row_errors(head: Objective, margins: F64, labels: F64, threshold: float | None) -> F64:
    """Of each row ``(n,)``: whether it is wrong, the share of wrong pairs with classes, or the squared error.

    `labels` are the `truth` of the head.
    """
    if head.classifies and head.outputs.kind != "classes":
        return row_means(head.positive(margins, threshold) != (labels > 0))
    guess = head.respond(margins, "label", 0.0)
    return row_means(guess != labels if head.classifies else (guess - labels) ** 2)


def score(model: Any, chunks: Iterable[Chunk]) -> Evaluation:
    """Predict the rows of `chunks` that count with a Model or a LinearPredictor."""
    result = Evaluation(model.head)
    for chunk in map(Chunk.counting, chunks):
        result.add(chunk, model.predict(chunk, "margin"))
    return result
