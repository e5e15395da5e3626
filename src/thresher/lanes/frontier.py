"""The frontier: what each penalty costs in loss and saves in weights, and which to take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from thresher.data.errors import OneLineError
from thresher.lanes.judging import LanesHoldout
from thresher.lanes.lanes import Lanes
from thresher.lanes.penalties import penalty_in

_FIGURES = ("examples", "loss", "error", "rmse", "micro_f1", "auc")
"""Those of `Evaluation`, in the order in which they are shown."""
CHOICES = "best, 1se, within:P% or nnz:N"


class Judged(Protocol):
    """What `choose` asks of a model, or of a penalty that was judged on several."""

    @property
    def loss(self) -> float:
        """What decides; infinite where learning diverged."""

    @property
    def nonzero(self) -> float | None:
        """Weights that are not zero; None where learning diverged."""

    @property
    def paired_error(self) -> float | None:
        """Standard error of the difference of its loss and the least."""


@dataclass(frozen=True)
class Point:
    """A model of the frontier."""

    penalty: float
    spec: str
    """of its rule: a run of it alone gives the same model"""
    nonzero: int
    progressive_loss: float | None
    """None where nothing was learned"""
    holdout: dict[str, Any] | None
    """figures on what was held out, as of `Evaluation`; None without any"""
    paired_error: float | None
    """standard error of the difference of its held-out loss and that of the best"""
    dropped: str | None = None
    """why it learned no more"""

    @property
    def loss(self) -> float:
        """What is held out decides, else the progressive loss; infinite for a lane that was dropped."""
        found = self.progressive_loss if self.holdout is None else self.holdout["loss"]
        return float("inf") if self.dropped is not None or found is None else float(found)

    def as_dict(self, name: str) -> dict[str, Any]:
        """What JSON holds, the penalty under its `name`."""
        found = self.holdout or {}
        held = {f"holdout_{key}": found[key] for key in _FIGURES if key in found}
        own = asdict(self)
        return {name: own.pop("penalty"), **{k: v for k, v in own.items() if k != "holdout"}, **held}

    @classmethod
    def from_dict(cls, name: str, given: dict[str, Any]) -> Point:
        """The inverse. KeyError, TypeError for anything else."""
        held = {k.removeprefix("holdout_"): v for k, v in given.items() if k.startswith("holdout_")}
        own = {k: v for k, v in given.items() if not k.startswith("holdout_") and k != name}
        return cls(penalty=float(given[name]), holdout=held or None, **own)


def points_of(lanes: Lanes, holdout: LanesHoldout) -> list[Point]:
    """A point for each lane, from the weakest penalty to the strongest."""
    judged = holdout.judgement
    found = []
    for k, model in enumerate(lanes.models):
        kept = holdout.bests.get(k)
        known = judged is not None and k in judged.models
        figures = kept.figures if kept else judged.figures(k) if judged and known else None
        close = judged.error_of_difference(k, judged.best()) if judged and known else None
        found.append(
            Point(
                penalty_in(model.rule),
                str(model.recipe.rule),
                model.nonzero,
                model.tally.average if model.tally.weight else None,
                figures,
                close,
                lanes.dropped.get(k),
            )
        )
    return found


def check_choice(text: Any) -> str:
    """The choice, or ValueError."""
    if not isinstance(text, str) or not re.fullmatch(r"best|1se|within:\d+(\.\d+)?%|nnz:\d+", text):
        raise ValueError(f"a choice is {CHOICES}, not {text!r}")
    return text


def choose(points: Sequence[Judged], text: str) -> int:
    """Number of the point that `text` means.

    ``best``: the least loss. ``1se``: the sparsest whose loss is above it by no more than one standard error
    of the paired difference (after Breiman et al., Classification and Regression Trees (1984), section
    3.4.3). ``within:1%``: the sparsest that loses at most 1 % of it (Langford, Li and Zhang (JMLR 2009),
    section 5). ``nnz:N``: the least loss among those with at most N weights. ValueError where there is none.
    """
    check_choice(text)
    able = {k: (one.loss, one.nonzero or 0) for k, one in enumerate(points) if one.loss < float("inf")}
    if not able:
        raise ValueError("no model has a loss to be chosen by: learning diverged, or the rows weigh nothing")
    kind, _, given = text.partition(":")
    if kind == "nnz":
        fewest = min(nonzero for _, nonzero in able.values())
        able = {k: one for k, one in able.items() if one[1] <= int(given)}
        if not able:
            raise ValueError(f"no model has at most {int(given):,} weights: the sparsest has {fewest:,}")
    best = min(able, key=lambda k: able[k])
    if kind in ("best", "nnz"):
        return best
    least = points[best].loss
    if kind == "1se":
        if points[best].paired_error is None:
            raise OneLineError("1se needs rows that are held out: give --holdout")
        close = [k for k in able if points[k].loss - least <= float(points[k].paired_error or 0.0)]
    else:
        close = [k for k in able if points[k].loss <= least * (1 + float(given[:-1]) / 100)]
    return min(close, key=lambda k: able[k][::-1])
