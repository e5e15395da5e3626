"""Results of cross-validation for each penalty: means over the folds, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.lanes.folds import Folds
from thresher.lanes.penalties import penalty_in
from thresher.learning.holdout import Figures

_COUNTED = ("examples",)
"""Figures without a meaningful mean."""


@dataclass(frozen=True)
class Estimate:
    """A penalty, or a model without one, evaluated by cross-validation.

    The mean of a figure is over the folds that have it (the AUC needs both classes). Its standard error is
    the standard deviation of these values divided by the square root of their number.
    """

    penalty: float | None
    """None if the rule has no penalty"""
    spec: str
    """SPEC of the rule"""
    nonzero: float | None
    """mean number of nonzero weights over folds"""
    figures: dict[str, float | None]
    """means of the figures of `Evaluation`; standard errors have the suffix ``_se``"""
    paired_error: float | None
    """standard error, over folds, of the difference between its loss and the best loss"""
    dropped: str | None = None
    """why it was dropped, or None"""

    @property
    def loss(self) -> float:
        """The mean loss, used for choosing; infinite if dropped."""
        found = self.figures.get("loss")
        return float("inf") if self.dropped is not None or found is None else found

    def as_dict(self, name: str | None) -> dict[str, Any]:
        """The content in JSON, with the penalty under its `name`."""
        penalty = {} if name is None else {name: self.penalty}
        rest = {"paired_error": self.paired_error, "dropped": self.dropped}
        return {**penalty, "spec": self.spec, "nonzero": self.nonzero, **self.figures, **rest}


def estimates_of(folds: Folds, judged: Sequence[Sequence[Figures]], varied: bool) -> list[Estimate]:
    """An estimate for each recipe from its figures in each fold; `varied`: recipes differ in a penalty."""
    losses = [[_finite(one["loss"]) for one in figures] for figures in judged]
    means = [_mean(each)[0] for each in losses]
    known = [k for k, mean in enumerate(means) if mean is not None]
    best = min(known, key=lambda k: float(means[k] or 0.0), default=0)
    found = []
    for k, recipe in enumerate(folds.recipes):
        rule = recipe.make_rule()
        weights = [lanes.models[k].nonzero for lanes in folds.lanes]
        found.append(
            Estimate(
                penalty_in(rule) if varied else None,
                str(recipe.rule),
                None if k in folds.dropped else float(np.mean(weights)),
                _means_of(judged[k]),
                _paired(losses[k], losses[best]) if judged[k] else None,
                folds.dropped.get(k),
            )
        )
    return found


def _means_of(figures: Sequence[Figures]) -> dict[str, float | None]:
    means: dict[str, float | None] = {}
    for name in figures[0] if figures else ():
        if name not in _COUNTED:
            means[name], means[f"{name}_se"] = _mean([_finite(one[name]) for one in figures])
    return means


def _mean(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and its standard error; None if there are too few values."""
    there = np.array([value for value in values if value is not None])
    if not len(there):
        return None, None
    return float(there.mean()), (float(there.std(ddof=1) / math.sqrt(len(there))) if len(there) > 1 else None)


def _paired(losses: Sequence[float | None], others: Sequence[float | None]) -> float | None:
    pairs = zip(losses, others, strict=True)
    return _mean([None if a is None or b is None else a - b for a, b in pairs])[1]


def _finite(value: float | None) -> float | None:
    """The value, or None if a fold does not have it (the importance of all its rows may be zero)."""
    return value if value is not None and math.isfinite(value) else None
