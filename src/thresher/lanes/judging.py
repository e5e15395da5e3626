"""Evaluation of lanes on rows that none of them has learned."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.source import Source
from thresher.engine.sound import copied
from thresher.lanes.lanes import Lanes
from thresher.learning.diagnostics.stream_statistics import Seen
from thresher.learning.evaluation.curves import error_of_mean
from thresher.learning.evaluation.evaluate import Evaluation
from thresher.learning.model.model import Model
from thresher.learning.training.holdout import Best, Figures, Holdout
from thresher.learning.training.record import Record
from thresher.learning.training.shares import Part


class PairedLosses:
    """Mean losses of several models on the same rows, and standard errors of their differences.

    With losses l_ir of model i on row r and importances w_r, the mean difference of models i and j is
    m = sum_r d_r / W, d_r = w_r (l_ir - l_jr), W = sum_r w_r, and its standard error is that of
    `error_of_mean`. Only sums over rows are kept.

    >>> paired = PairedLosses(2)
    >>> paired.add(np.array([[1.0, 1.0], [2.0, 4.0]]), np.ones(2))
    >>> paired.mean(1), paired.error_of_difference(0, 1)
    (3.0, 1.0)
    """

    def __init__(self, count: int) -> None:
        self._products: NDArray[np.float64] = np.zeros((count, count))
        self._with_weights: NDArray[np.float64] = np.zeros(count)
        self._sums: NDArray[np.float64] = np.zeros(count)
        self._weight = self._squares = 0.0
        self._count = 0

    def add(self, losses: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add losses ``(models, n)``, already multiplied by the importances ``(n,)``."""
        self._products += losses @ losses.T
        self._with_weights += losses @ weights
        self._sums += losses.sum(axis=1)
        self._weight += float(weights.sum())
        self._squares += float(weights @ weights)
        self._count += int(np.count_nonzero(weights))

    def mean(self, i: int) -> float:
        """Mean loss of a model; NaN without rows."""
        return float(self._sums[i]) / self._weight if self._weight else float("nan")

    def error_of_difference(self, i: int, j: int) -> float | None:
        """Standard error of the mean difference of the losses of two models; None for less than two rows."""
        squares = self._products[i, i] + self._products[j, j] - 2.0 * self._products[i, j]
        total, crossed = self._sums[i] - self._sums[j], self._with_weights[i] - self._with_weights[j]
        return error_of_mean(self._count, self._weight, self._squares, total, squares, crossed)


class Judgement:
    """Figures of several models on the same rows, and standard errors of their differences in loss."""

    def __init__(self, models: dict[int, Model]) -> None:
        self.models = models
        self._evaluations = {k: Evaluation(model.head) for k, model in models.items()}
        self._losses = PairedLosses(len(models))

    @classmethod
    def over(cls, models: dict[int, Model], source: Source) -> Judgement:
        """The judgement on all rows of a source."""
        judged = cls(models)
        with closing(source.chunks()) as chunks:
            for chunk in chunks:
                judged.add(chunk)
        return judged

    def add(self, chunk: Chunk) -> None:
        """Predict the rows of `chunk` that count."""
        chunk = chunk.counting()
        losses = [
            self._evaluations[k].add(chunk, model.predict(chunk, "margin"))
            for k, model in self.models.items()
        ]
        self._losses.add(np.array(losses), chunk.weights.astype(np.float64))

    def figures(self, number: int) -> Figures:
        """The figures of `Evaluation` for a model."""
        return self._evaluations[number].figures()

    def best(self) -> int:
        """The model with the lowest loss."""
        return min(self.models, key=lambda k: self._evaluations[k].average_loss)

    def error_of_difference(self, one: int, other: int) -> float | None:
        """Standard error of the mean difference of the losses of two models; None for less than two rows."""
        places = list(self.models)
        return self._losses.error_of_difference(places.index(one), places.index(other))


class LanesHoldout(Holdout):
    """A hold-out that evaluates all lanes after each pass and keeps the best pass of each."""

    def __init__(self, every: Part = 0, given: Source | None = None) -> None:
        super().__init__(every, given)
        self.judgement: Judgement | None = None
        self.bests: dict[int, Best] = {}
        self.waited: dict[int, int] = {}
        """passes since the best of each lane"""

    def begin(self, every: Part, given: Source | None) -> None:
        """Set what is held out; results of earlier passes are kept."""
        super().__init__(every, given)

    def figures_on(self, model: Lanes, chunks: Iterable[Chunk]) -> Figures:
        """Evaluate every lane; return the figures of the best."""
        judged = Judgement({k: model.models[k] for k in model.alive})
        for chunk in chunks:
            judged.add(chunk)
        found = judged.figures(judged.best())
        self.judgement = judged if found["examples"] else None
        return found

    def settle(self, model: Lanes, number: int, figures: Figures | None, patience: int) -> bool:
        """Record the figures of a pass. A lane whose patience runs out rests; True if all rest."""
        self.figures = figures
        if not patience or self.judgement is None:
            return False
        for k in model.alive:
            found, best = self.judgement.figures(k), self.bests.get(k)
            if best is None or float(found["loss"] or 0.0) < float(best.figures["loss"] or 0.0):
                self.bests[k], self.waited[k] = Best(number, found, copied(model.models[k].state())), 0
                continue
            self.waited[k] += 1
            if self.waited[k] >= patience:
                model.rest(k)
        return not model.alive

    def keep_record(self, model: Lanes, record: Record, seen: Seen) -> None:
        """Set the record of each model, with the number of its best pass."""
        for k, one in enumerate(model.models):
            best = self.bests.get(k)
            one.keep_record(record.of_pass(record.passes if best is None else best.number), seen)

    def stop_waiting(self) -> None:
        """Let the pass under way be no better than the best of each lane."""
        self.waited = {k: passes + 1 for k, passes in self.waited.items()}

    def take_best(self, model: Lanes) -> int | None:
        """Restore every lane to its best pass, and evaluate these models on the same rows."""
        for k, best in self.bests.items():
            if self.waited[k] and k not in model.dropped:
                model.put_back(k, best.state)
        held = self.source()
        if self.bests and held is not None:  # the last evaluation was of the models after the last pass
            kept = {k: one for k, one in enumerate(model.models) if k not in model.dropped}
            self.judgement = Judgement.over(kept, held)
        return None
