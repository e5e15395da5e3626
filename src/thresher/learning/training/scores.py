"""Scores of models on rows that none of them has learned, after each pass, and what follows from them.

Means are over rows, and so are standard errors of differences between models, which predict the same rows: a
row that is hard for all says nothing about which to choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from thresher.data.chunk import Chunk
from thresher.engine.sound import Array, copy_state
from thresher.learning.evaluation.curves import dot, error_of_mean, weighted_sum
from thresher.learning.evaluation.evaluate import Evaluation
from thresher.learning.evaluation.figures import Judged
from thresher.learning.files.choice import LOSS, criterion_of
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.objective import F64
from thresher.learning.training.progress import Figures


class Scores:
    """Figures of models, by number, on the same rows, and standard errors of their differences in loss.

    With losses l_ir of model i on row r and importances w_r, the mean difference of models i and j is
    m = sum_r d_r / W, d_r = w_r (l_ir - l_jr), W = sum_r w_r, and its standard error is that of
    `error_of_mean`. Only sums over rows are kept.
    """

    def __init__(self, models: Mapping[int, Any], chunks: Iterable[Chunk] = (), judge: str = LOSS) -> None:
        self.models, self._judge = {**models}, judge
        self._evaluations = {
            k: Evaluation(model.head) if judge == LOSS else Judged(model, judge)
            for k, model in models.items()
        }
        self._products: F64 = np.zeros((len(models), len(models)))
        self._with_weights, self._sums = np.zeros((2, len(models)))
        self._weight = self._squares = 0.0
        self.examples = 0
        """rows that count"""
        for chunk in chunks:
            self.add(chunk)

    def add(self, chunk: Chunk, margins: Sequence[F64] | None = None) -> None:
        """Predict the rows of `chunk` that count, or take the `margins` of each model for them."""
        if margins is None:
            chunk = chunk.counting()
            margins = [model.predict(chunk, "margin") for model in self.models.values()]
        self.examples += len(chunk)
        each, weights = self._evaluations.values(), chunk.weights.astype(np.float64)
        losses = np.empty((len(self.models), len(chunk)))
        for own, one, predicted in zip(losses, each, margins, strict=True):
            own[:] = one.add(chunk, predicted)
        self._products += losses @ losses.T
        self._with_weights += weighted_sum(weights, losses.T)
        self._sums += losses.sum(axis=1)
        self._weight += float(weights.sum())
        self._squares += dot(weights, weights)

    def figures(self, number: int) -> Figures:
        """The figures of `Evaluation` for a model, and that of the judge."""
        return self._evaluations[number].figures()

    def best(self) -> int:
        """The model with the lowest loss, or the best by another judge."""
        return min(self.models, key=lambda k: criterion_of(self._judge, self.figures(k)))

    def error_of_difference(self, one: int, other: int) -> float | None:
        """Standard error of the mean difference of the losses of two models.

        None for less than two rows, and if the judge is not a mean over rows.
        """
        if self._judge != LOSS:
            return None
        places = list(self.models)
        i, j = places.index(one), places.index(other)
        squares = self._products[i, i] + self._products[j, j] - 2.0 * self._products[i, j]
        total, crossed = self._sums[i] - self._sums[j], self._with_weights[i] - self._with_weights[j]
        return error_of_mean(self.examples, self._weight, self._squares, total, squares, crossed)


class Scored(NamedTuple):
    """The figures of a model on the hold-out, pass by pass."""

    model: int
    passes: list[tuple[int, Figures]]
    """the number of each pass, from 1, and its figures"""
    state: Mapping[str, Array] = {}
    """that of the best pass: tensors, which files have beside their header"""

    def best(self, judge: str) -> tuple[int, Figures]:
        """The best pass, the first of several, and its figures."""
        return min(self.passes, key=lambda one: criterion_of(judge, one[1]))


@dataclass
class Patience:
    """After each pass, rests models that were no better for so many `passes` (0: never); keeps the best."""

    passes: int
    judge: str
    scored: dict[int, Scored] = field(default_factory=dict)

    def after_pass(self, models: ModelSet, number: int, scores: Scores | None) -> bool:
        """Look at the scores of a pass, None without rows; return whether all models rest."""
        if not self.passes or scores is None:
            return False
        out = []
        for k in scores.models:
            one = self.scored.setdefault(k, Scored(k, []))
            one.passes.append((number, scores.figures(k)))
            best, _ = one.best(self.judge)
            if best == number:
                self.scored[k] = one._replace(state=copy_state(models.holder(k).state()))
            if number - best >= self.passes:
                out.append(k)
        over = len(out) == len(scores.models)
        for k in () if over else out:
            models.parts[0].rest(k)
        return over

    def put_back(self, models: ModelSet, number: int) -> list[int]:
        """Restore each model to its best pass; return those that were changed since, up to pass `number`."""
        scored = {k: one for k, one in self.scored.items() if k not in models.dropped}
        changed = [k for k, one in scored.items() if one.best(self.judge)[0] < number]
        for k in changed:
            models.put_back(k, dict(scored[k].state))
        return changed
