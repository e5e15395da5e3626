"""``thresher.plot_frontier``: several frontiers in one picture, with error bars over seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thresher.drawing import Axis, Series, chart
from thresher.lanes import folder
from thresher.lanes.frontier import Point, measure_of
from thresher.lanes.models import CrossValidation, Frontier
from thresher.learning.inspection.plots import Picture

AnyFrontier = Frontier | CrossValidation | str | PathLike[str]
_ONE = (Frontier, CrossValidation, str, PathLike)


class _Place(NamedTuple):
    """A model on the picture."""

    penalty: float
    nonzero: float
    loss: float


class _Run(NamedTuple):
    settings: str
    """SPEC of the rule without the penalty"""
    places: list[_Place]


def plot_frontier(frontiers: AnyFrontier | Sequence[AnyFrontier]) -> Picture:
    """Draw several frontiers: see `thresher.plot_frontier`."""
    given = [frontiers] if isinstance(frontiers, _ONE) else list(frontiers)
    points = [_points(one) for one in given]
    runs = [_run(penalty, each) for penalty, each in points]
    if not any(run.places for run in runs):
        raise ValueError("plot_frontier: no model has a finite loss")
    groups: dict[str, list[_Run]] = {}
    for run in runs:
        groups.setdefault(run.settings, []).append(run)
    series, count = list[Series](), 0
    for k, (settings, group) in enumerate(groups.items()):
        name = _short(settings, list(groups))
        drawn = _series(name, group, k % 6 + 1)
        series += drawn
        count += len(drawn[0].x)
    measures = {
        measure_of(each) if isinstance(each[0], Point) else "loss in other folds" for _, each in points
    }
    measure = measures.pop() if len(measures) == 1 else "loss"
    svg = chart(
        f"The frontier: {measure} against weights",
        f"{len(runs)} runs of {len(groups)} rules; bars are standard errors over runs of a rule.",
        Axis("non-zero weights", log=True, whole=True),
        Axis(f"{measure}, mean over runs ± standard error" if len(runs) > len(groups) else measure),
        series,
    )
    return Picture(svg, f"{len(runs)} runs: {count} points")


def _points(given: Any) -> tuple[str, list[Any]]:
    """The name of the penalty, and the points, of anything with a frontier."""
    if isinstance(given, str | PathLike):
        table = folder.load(Path(given))
        return table.penalty, list(table.points)
    if not isinstance(given, Frontier | CrossValidation):
        kind = type(given).__name__
        raise TypeError(f"plot_frontier takes results of path and cv, or folders of path, not {kind}")
    if given.penalty is None or not given.points:
        raise ValueError("plot_frontier: a run without penalties has no frontier")
    return given.penalty, list(given.points)


def _run(penalty: str, points: Sequence[Any]) -> _Run:
    settings = re.sub(rf"(?<=[:,]){re.escape(penalty)}=[^,]*(,|$)", "", points[0].spec).rstrip(",:")
    places = [_Place(one.penalty, float(one.size or 0), one.loss) for one in points if one.loss < math.inf]
    return _Run(settings, places)


def _short(settings: str, every: Sequence[str]) -> str:
    """The name of the rule, or all settings if there are others of the same rule."""
    name = settings.partition(":")[0]
    return name if sum(one.partition(":")[0] == name for one in every) == 1 else settings


def _matched(group: Sequence[_Run]) -> list[list[_Place]]:
    """Models of the runs with the same penalty; with the same position, if penalties differ everywhere."""
    by_penalty: dict[str, list[_Place]] = {}
    for run in group:
        for place in run.places:
            by_penalty.setdefault(f"{place.penalty:.9g}", []).append(place)
    alike = len({len(run.places) for run in group}) == 1
    if alike and len(group) > 1 and all(len(each) == 1 for each in by_penalty.values()):
        return [list(each) for each in zip(*(run.places for run in group), strict=True)]
    return sorted(by_penalty.values(), key=lambda each: each[0].penalty)


def _series(name: str, group: Sequence[_Run], colour: int) -> list[Series]:
    """A line through the means, and dots with whiskers."""
    x, y, errors, titles = list[float](), list[float](), list[float](), list[str]()
    for each in _matched(group):
        losses = np.array([place.loss for place in each])
        x.append(float(np.mean([place.nonzero for place in each])))
        y.append(float(losses.mean()))
        errors.append(float(losses.std(ddof=1) / math.sqrt(len(each))) if len(each) > 1 else 0.0)
        bars = f" ± {errors[-1]:.2g} over {len(each)} runs" if len(each) > 1 else ""
        titles.append(f"{name}, penalty {each[0].penalty:.4g}: {x[-1]:,.6g} weights, loss {y[-1]:.6g}{bars}")
    spread = any(errors)
    low = [a - b for a, b in zip(y, errors, strict=True)] if spread else None
    high = [a + b for a, b in zip(y, errors, strict=True)] if spread else None
    runs = f" ({len(group)} runs)" if len(group) > 1 else ""
    return [
        Series(f"{name}{runs}", x, y, colour=colour),
        Series("", x, y, "dots", low, high, titles, colour=colour),
    ]
