"""Results of cross-validation for each penalty: means over the folds, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from thresher.lanes.folds import Folds
from thresher.lanes.penalties import penalty_in
from thresher.learning.holdout import Figures
from thresher.learning.model import Model
from thresher.learning.recipe import Recipe

T = TypeVar("T")

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
    whole: int | None = None
    """number of nonzero weights of the model of all rows; None without such a model"""

    @property
    def size(self) -> float | None:
        """The number of weights to choose by: of the model of all rows, if there is one."""
        return self.nonzero if self.whole is None else self.whole

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


@dataclass
class Results:
    """What is known of each recipe after its folds were evaluated."""

    recipes: list[Recipe]
    judged: list[list[Figures]]
    """figures in each fold; none if dropped"""
    counts: list[list[int]]
    """number of nonzero weights in each fold"""
    dropped: list[str | None]
    """why it was dropped, or None"""
    whole: list[Model] | None
    """models of all rows, if there are any"""

    @classmethod
    def of(cls, folds: Folds, judged: list[list[Figures]]) -> Results:
        """The results of folds, given the figures of each recipe in each fold."""
        every = range(len(folds.recipes))
        counts = [[lanes.models[k].nonzero for lanes in folds.lanes] for k in every]
        whole = None if folds.whole is None else folds.whole.models
        return cls(folds.recipes, judged, counts, [folds.dropped.get(k) for k in every], whole)

    def joined(self, other: Results) -> Results:
        """Both, ordered by penalty."""
        recipes = [*self.recipes, *other.recipes]
        order = sorted(range(len(recipes)), key=lambda k: penalty_in(recipes[k].make_rule()))

        def both(one: list[T], more: list[T]) -> list[T]:
            return [[*one, *more][k] for k in order]

        whole = None if self.whole is None or other.whole is None else both(self.whole, other.whole)
        return Results(
            both(self.recipes, other.recipes),
            both(self.judged, other.judged),
            both(self.counts, other.counts),
            both(self.dropped, other.dropped),
            whole,
        )


def estimates_of(results: Results, varied: bool) -> list[Estimate]:
    """An estimate for each recipe from its figures in each fold; `varied`: recipes differ in a penalty."""
    judged = results.judged
    losses = [[_finite(one["loss"]) for one in figures] for figures in judged]
    means = [_mean(each)[0] for each in losses]
    known = [k for k, mean in enumerate(means) if mean is not None]
    best = min(known, key=lambda k: float(means[k] or 0.0), default=0)
    found = []
    for k, recipe in enumerate(results.recipes):
        rule, dropped = recipe.make_rule(), results.dropped[k]
        found.append(
            Estimate(
                penalty_in(rule) if varied else None,
                str(recipe.rule),
                None if dropped else float(np.mean(results.counts[k])),
                _means_of(judged[k]),
                _paired(losses[k], losses[best]) if judged[k] else None,
                dropped,
                None if dropped or results.whole is None else results.whole[k].nonzero,
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
