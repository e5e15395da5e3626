"""Losses and scores of the models of a path on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.lanes.judging import PairedLosses
from thresher.sklearn.estimator import F64, EncodedLabels


class HeldOutRows:
    """Losses and scores of `count` models, over all rows that were held out from them.

    Losses are weighted by importance and class weight, scores only by importance, like `score`.
    """

    def __init__(self, estimator: Any, matrix: Any, encoded: EncodedLabels, count: int) -> None:
        self._estimator, self._matrix, self._encoded = estimator, matrix, encoded
        self.losses = PairedLosses(count)
        self._faults: list[F64] = [np.zeros(1)] * count
        self._truths: list[Any] = []
        self._weights: list[Any] = []

    def add(self, models: Sequence[Any], draw: Any) -> None:
        """Predict rows that these models have not learned."""
        from thresher.data.matrices import MatrixSource

        factors, done = self._encoded.factors, 0
        for chunk in MatrixSource(self._matrix, draw).chunks():
            rows = draw.rows[done : done + len(chunk)]
            done += len(chunk)
            by = np.ones(len(rows)) if factors is None else factors[rows]
            losses = []
            for k, model in enumerate(models):
                margins = model.predict(chunk)
                losses.append(model.head.losses(margins, chunk) * by)
                faults = self._estimator._faults(model.head, margins, chunk.labels, chunk.targets)
                self._faults[k] = self._faults[k] + chunk.weights @ faults
            self.losses.add(np.array(losses), chunk.weights * by)
            self._truths.append(chunk.labels[:, np.newaxis] if chunk.targets is None else chunk.targets)
            self._weights.append(chunk.weights)

    def scores(self) -> F64:
        """The `score` of each model ``(models,)``: accuracy, or R²; NaN if undefined."""
        truths, weights = (np.concatenate(one).astype(np.float64) for one in (self._truths, self._weights))
        means = (np.atleast_1d(faults) / weights.sum() for faults in self._faults)
        return np.array([self._estimator._score_of(mean, truths, weights) for mean in means])
