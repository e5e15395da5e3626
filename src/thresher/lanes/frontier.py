"""The frontier: loss and number of weights for each penalty, and how to choose among them; its picture."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol

from thresher.data.errors import OneLineError
from thresher.data.source import Source
from thresher.drawing import Axis, Series, chart
from thresher.lanes.judging import Judgement, LanesHoldout
from thresher.lanes.lanes import Lanes
from thresher.lanes.penalties import penalty_in
from thresher.learning.files.schema import check, read
from thresher.learning.model.model import Model
from thresher.options.messages import mention

_FIGURES = ("examples", "loss", "error", "rmse", "micro_f1", "auc")
"""Figures of `Evaluation`, in the order in which they are shown."""
CHOICES = "best, 1se, within:P% or nnz:N"


class Judged(Protocol):
    """What `choose` needs to know of a model, or of a penalty evaluated in several folds."""

    @property
    def loss(self) -> float:
        """The loss to choose by; infinite if learning diverged."""

    @property
    def size(self) -> float | None:
        """Number of nonzero weights to choose by; None if learning diverged."""

    @property
    def paired_error(self) -> float | None:
        """Standard error of the difference between its loss and the lowest."""


@dataclass(frozen=True)
class Point:
    """A model on the frontier."""

    penalty: float
    spec: str
    """SPEC of its rule; training with it alone gives the same model"""
    nonzero: int
    progressive_loss: float | None
    """None if nothing was learned"""
    holdout: dict[str, Any] | None
    """figures of `Evaluation` on the hold-out; None without a hold-out"""
    paired_error: float | None
    """standard error of the difference between its held-out loss and the best one"""
    dropped: str | None = None
    """why it was dropped, or None"""

    @property
    def loss(self) -> float:
        """The held-out loss; without a hold-out the progressive loss; infinite for a dropped lane."""
        found = self.progressive_loss if self.holdout is None else self.holdout["loss"]
        return float("inf") if self.dropped is not None or found is None else float(found)

    @property
    def size(self) -> int:
        """The number of nonzero weights."""
        return self.nonzero

    def as_dict(self, name: str) -> dict[str, Any]:
        """The content in JSON, with the penalty under its `name`."""
        found = self.holdout or {}
        held = {f"holdout_{key}": found[key] for key in _FIGURES if key in found}
        own = asdict(self)
        return {name: own.pop("penalty"), **{k: v for k, v in own.items() if k != "holdout"}, **held}

    @classmethod
    def from_dict(cls, name: str, given: dict[str, Any]) -> Point:
        """The inverse. KeyError, StateError for invalid content."""
        held = {k.removeprefix("holdout_"): v for k, v in given.items() if k.startswith("holdout_")}
        if held and "loss" not in held:
            raise KeyError("holdout_loss")
        own = {k: v for k, v in given.items() if not k.startswith("holdout_") and k != name}
        check(held, dict.fromkeys(held, float | None), "lane")
        return read(cls, {**own, "penalty": given[name], "holdout": held or None}, "lane")


class Learned(NamedTuple):
    """The models of a frontier, and a point for each, from the weakest penalty to the strongest."""

    points: list[Point]
    models: list[Model]


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
                model.tally.known,
                figures,
                close,
                lanes.dropped.get(k),
            )
        )
    return found


def joined(one: Learned, other: Learned, held: Source | None) -> Learned:
    """The models of two runs over the same data, ordered by penalty.

    `held` is the source of the held-out rows or None: standard errors are those of differences to the best
    of all.
    """
    pairs = [*zip(*one, strict=True), *zip(*other, strict=True)]
    pairs.sort(key=lambda pair: pair[0].penalty)
    points, models = [point for point, _ in pairs], [model for _, model in pairs]
    if held is not None:
        there = {k: model for k, model in enumerate(models) if points[k].dropped is None}
        judged = Judgement.over(there, held)
        best = judged.best()
        for k in there:
            points[k] = replace(points[k], paired_error=judged.error_of_difference(k, best))
    return Learned(points, models)


def check_choice(text: Any) -> str:
    """Validate a choice; ValueError."""
    if not isinstance(text, str) or not re.fullmatch(r"best|1se|within:\d+(\.\d+)?%|nnz:\d+", text):
        raise ValueError(f"a choice must be {CHOICES}, not {text!r}")
    return text


def choose(points: Sequence[Judged], text: str) -> int:
    """Number of the point selected by `text`.

    ``best``: the lowest loss. ``1se``: the sparsest model whose loss is at most one standard error of the
    paired difference above the lowest (after Breiman et al., Classification and Regression Trees (1984),
    section 3.4.3). ``within:1%``: the sparsest whose loss is at most 1 % higher (Langford, Li and Zhang (JMLR
    2009), section 5). ``nnz:N``: the lowest loss with at most N weights. ValueError if there is no such
    model.
    """
    check_choice(text)
    able = {k: (one.loss, one.size or 0) for k, one in enumerate(points) if one.loss < float("inf")}
    if not able:
        raise ValueError("no model has a finite loss: learning diverged, or all importance weights are zero")
    kind, _, given = text.partition(":")
    if kind == "nnz":
        fewest = min(size for _, size in able.values())
        able = {k: one for k, one in able.items() if one[1] <= int(given)}
        if not able:
            raise OneLineError(
                f"no model has at most {int(given):,} weights: the sparsest has {fewest:,.12g}; stronger "
                f"penalties, {mention('l1')}, leave fewer"
            )
    best = min(able, key=lambda k: able[k])
    if kind in ("best", "nnz"):
        return best
    least = points[best].loss
    if kind == "1se":
        if points[best].paired_error is None:
            raise OneLineError(f"1se needs two rows or more that are held out: give {mention('holdout')}")
        close = [k for k in able if points[k].loss - least <= float(points[k].paired_error or 0.0)]
    else:
        close = [k for k in able if points[k].loss <= least * (1 + float(given[:-1]) / 100)]
    return min(close, key=lambda k: able[k][::-1])


def instead_of(points: Sequence[Judged], text: str) -> str:
    """What to choose if no point satisfies `text`: the fewest weights for ``nnz:N``, else the best."""
    sizes = [one.size or 0 for one in points if one.loss < float("inf")]
    return f"nnz:{math.ceil(min(sizes))}" if text.startswith("nnz:") and sizes else "best"


def end_of_range(points: Sequence[Judged], number: int) -> str | None:
    """A message if the chosen penalty is the first or the last of several, else None."""
    if len(points) < 2 or number not in (0, len(points) - 1):
        return None
    end = "strongest" if number else "weakest"
    return f"the {end} penalty of the range was chosen: a wider range may contain a better one"


def noted(lines: Sequence[str], points: Sequence[Judged], best: int | None) -> str:
    """The lines of a table, and a last one if the best penalty is at an end of the range."""
    note = None if best is None else end_of_range(points, best)
    return "\n".join([*lines, *([note] if note else [])])


_INFINITE = float("inf")
Place = tuple[float, float]


def measure_of(points: Sequence[Point]) -> str:
    """The name of the loss that is drawn and used for choosing."""
    return "held-out loss" if any(point.holdout for point in points) else "progressive loss"


def picture(points: Sequence[Point], chosen: int, **shape: Any) -> str:
    """The SVG: a dot for each penalty, a line through those that no other beats, the chosen one large."""
    measure = measure_of(points)
    known = [point for point in points if point.loss < _INFINITE]
    best = pareto_front([(point.nonzero, point.loss) for point in known])
    large = [points[chosen]] if points[chosen].loss < _INFINITE else []
    return chart(
        f"The frontier: {measure} against weights",
        _description(large, known, measure),
        Axis("non-zero weights", log=True, whole=True),
        Axis(measure),
        [
            Series("best for its size", [x for x, _ in best], [y for _, y in best], colour=1),
            _dots("one penalty each", known, colour=1),
            _dots("chosen", large, colour=2, emphasis=True),
        ],
        **shape,
    )


def _dots(name: str, points: Sequence[Point], colour: int, emphasis: bool = False) -> Series:
    titles = [f"{point.spec}: {point.nonzero:,} weights, loss {point.loss:.6g}" for point in points]
    places = [point.nonzero for point in points], [point.loss for point in points]
    return Series(name, *places, "dots", titles=titles, colour=colour, emphasis=emphasis)


def _description(chosen: Sequence[Point], known: Sequence[Point], measure: str) -> str:
    if not chosen:
        return "No model has a finite loss."
    sizes, (point,) = [one.nonzero for one in known], chosen
    return (
        f"{len(known)} models with {min(sizes):,} to {max(sizes):,} non-zero weights; the one chosen has "
        f"{point.nonzero:,} and a {measure} of {point.loss:.4g}."
    )


def pareto_front(places: Sequence[Place]) -> list[Place]:
    """The Pareto front, in order of the first coordinate: no other point is lower in both."""
    found: list[Place] = []
    for place in sorted(places):
        if not found or place[1] < found[-1][1]:
            found.append(place)
    return found
