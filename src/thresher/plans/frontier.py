"""The frontier: loss and number of weights for each penalty; its picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from thresher.data.chunk import Chunk
from thresher.drawing import Axis, Series, chart
from thresher.learning.files.choice import LOSS, Point
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.objective import F64
from thresher.learning.training.scores import Scored, Scores
from thresher.plans.penalties import penalty_in


def points_of(
    models: ModelSet, scores: Scores | None, scored: Mapping[int, Scored], judge: str = LOSS
) -> list[Point]:
    """A point for each lane, from the weakest penalty to the strongest."""
    found, best = list[Point](), scores.best() if scores else 0
    for k, model in enumerate(models.models):
        figures = close = None
        if scores is not None and k in scores.models:
            figures, close = scores.figures(k), scores.error_of_difference(k, best)
        if k in scored:
            figures = scored[k].best(judge)[1]
        dropped, rule = models.dropped.get(k), str(model.recipe.rule)
        learned = (model.nonzero, model.tally.known) if dropped is None else (0, None)
        found.append(Point(penalty_in(model.rule), rule, *learned, figures, close, dropped, judge))
    return found


def points_held_out(models: Sequence[Any], rows: Chunk, margins: Sequence[F64]) -> list[Point]:
    """A point for each of the models of `boost`, by their `margins` for rows that they did not learn."""
    scores, found = Scores(dict(enumerate(models))), list[Point]()
    scores.add(rows, margins)
    best = scores.best()
    for k, model in enumerate(models):
        l1, close = model.solution.plan.l1, scores.error_of_difference(k, best)
        found.append(Point(l1, f"l1={l1:g}", model.nonzero, None, scores.figures(k), close))
    return found


def end_of_range(points: Sequence[Point], number: int) -> str | None:
    """A message if the chosen penalty is the first or the last of several, else None."""
    if len(points) < 2 or number not in (0, len(points) - 1):
        return None
    end = "strongest" if number else "weakest"
    return f"the {end} penalty of the range was chosen: a wider range may contain a better one"


Place = tuple[float, ...]


def measure_of(points: Sequence[Point]) -> str:
    """The name of the figure that is drawn and used for choosing."""
    held = any(point.holdout for point in points)
    return f"held-out {points[0].judge.replace('_', ' ')}" if held else "progressive loss"


def picture(points: Sequence[Point], chosen: int, **shape: Any) -> str:
    """The SVG: a dot for each penalty, a line through those that no other beats, the chosen one large."""
    measure = measure_of(points)
    known = [point for point in points if point.criterion < math.inf]
    best = pareto_front([(point.size, point.criterion, point.figure) for point in known])
    large = [points[chosen]] if points[chosen].criterion < math.inf else []
    told = "No model has a finite loss."
    for point in large:
        sizes = [one.size for one in known]
        told = (
            f"{len(known)} models with {min(sizes):,} to {max(sizes):,} non-zero weights; the one chosen has "
            f"{point.nonzero:,} and a {measure} of {point.figure:.4g}."
        )

    def dots(name: str, points: Sequence[Point], colour: int, emphasis: bool = False) -> Series:
        name_of = points[0].judge.replace("_", " ") if points else ""
        titles = [f"{one.spec}: {one.nonzero:,} weights, {name_of} {one.figure:.6g}" for one in points]
        places = [point.size for point in points], [point.figure for point in points]
        return Series(name, *places, "dots", titles=titles, colour=colour, emphasis=emphasis)

    return chart(
        f"The frontier: {measure} against weights",
        told,
        Axis("non-zero weights", log=True, whole=True),
        Axis(measure),
        [
            Series("best for its size", [x for x, *_ in best], [y for *_, y in best], colour=1),
            dots("one penalty each", known, colour=1),
            dots("chosen", large, colour=2, emphasis=True),
        ],
        **shape,
    )


def pareto_front(places: Sequence[Place]) -> list[Place]:
    """The Pareto front, in order of the first coordinate: no other point is lower in the first two."""
    found: list[Place] = []
    for place in sorted(places):
        if not found or place[1] < found[-1][1]:
            found.append(place)
    return found
