"""What cross-validation says of each penalty: means over the folds, and how far they can be trusted."""

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
"""Figures that have no mean worth telling"""


@dataclass(frozen=True)
class Estimate:
    """A penalty, or a model without one, judged by cross-validation.

    The mean of a figure is that of its values in the folds that have it (the AUC wants both classes), and its
    standard error their standard deviation divided by the root of their number.
    """

    penalty: float | None
    """None where the rule has none"""
    spec: str
    """of its rule"""
    nonzero: float | None
    """mean over folds"""
    figures: dict[str, float | None]
    """means as of `Evaluation`; standard errors under the same names with ``_se``"""
    paired_error: float | None
    """standard error, over folds, of the difference of its loss and that of the best"""
    dropped: str | None = None
    """why it learned no more"""

    @property
    def loss(self) -> float:
        """What decides; infinite for what was dropped."""
        found = self.figures.get("loss")
        return float("inf") if self.dropped is not None or found is None else found

    def as_dict(self, name: str | None) -> dict[str, Any]:
        """What JSON holds, the penalty under its `name`."""
        told = {} if name is None else {name: self.penalty}
        rest = {"paired_error": self.paired_error, "dropped": self.dropped}
        return {**told, "spec": self.spec, "nonzero": self.nonzero, **self.figures, **rest}


def estimates_of(folds: Folds, judged: Sequence[Sequence[Figures]], varied: bool) -> list[Estimate]:
    """One for each recipe, given its figures in each fold; `varied`: they differ in a penalty."""
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
                _told(judged[k]),
                _paired(losses[k], losses[best]) if judged[k] else None,
                folds.dropped.get(k),
            )
        )
    return found


def _told(figures: Sequence[Figures]) -> dict[str, float | None]:
    told: dict[str, float | None] = {}
    for name in figures[0] if figures else ():
        if name not in _COUNTED:
            told[name], told[f"{name}_se"] = _mean([_finite(one[name]) for one in figures])
    return told


def _mean(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and its standard error; None where there are too few values."""
    there = np.array([value for value in values if value is not None])
    if not len(there):
        return None, None
    return float(there.mean()), (float(there.std(ddof=1) / math.sqrt(len(there))) if len(there) > 1 else None)


def _paired(losses: Sequence[float | None], others: Sequence[float | None]) -> float | None:
    pairs = zip(losses, others, strict=True)
    return _mean([None if a is None or b is None else a - b for a, b in pairs])[1]


def _finite(value: float | None) -> float | None:
    """The value; None for what a fold does not have (all its rows may weigh nothing)."""
    return value if value is not None and math.isfinite(value) else None
