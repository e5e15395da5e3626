"""The frontier: loss and number of weights for each penalty, and how to choose among them; its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from thresher.data.errors import DataError
from thresher.data.source import Source
from thresher.drawing import Axis, Series, chart
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.files import model_file
from thresher.learning.files.choice import FrontierTable, Point, Rated, choose, instead_of
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.prediction import Readout
from thresher.learning.training.scores import Best, Scores
from thresher.options.lanes import BEST
from thresher.options.messages import mention_command
from thresher.plans.penalties import penalty_in


class Learned(NamedTuple):
    """The models of a frontier, and a point for each, from the weakest penalty to the strongest."""

    points: list[Point]
    models: list[Model]


def save(path: str | Path, table: FrontierTable, models: Sequence[Model | Readout], state: bool) -> None:
    """Write the file of a frontier; with the `state` of its models, they can continue learning. OSError."""
    kept = [m if point.dropped is None else None for point, m in zip(table.points, models, strict=True)]
    model_file.save_all(kept, path, {model_file.FRONTIER: asdict(table)}, state=state)


def load(path: str | Path) -> tuple[FrontierTable, Learned]:
    """A frontier whose models can continue learning; those that were dropped know nothing.

    `ModelFileError`, also for a file of something else, and for one that was written without their state.
    """
    found = model_file.Contents.of(path)
    table = found.frontier()
    if table is None:
        raise model_file.ModelFileError(f"{path}: not the models of {mention_command('path')}")
    there = {k: model_file.revive(path, *found.model(k)) for k in found.there}
    empty = {k: Model(there[found.there[0]].recipe) for k in range(len(found)) if k not in there}
    return table, Learned(table.points, [model for _, model in sorted((there | empty).items())])


def points_of(models: ModelSet, scores: Scores | None, bests: Mapping[int, Best]) -> list[Point]:
    """A point for each lane, from the weakest penalty to the strongest."""
    found = []
    for k, model in enumerate(models.models):
        known = scores is not None and k in scores.models
        figures = bests[k].figures if k in bests else scores.figures(k) if scores and known else None
        close = scores.error_of_difference(k, scores.best()) if scores and known else None
        found.append(
            Point(
                penalty_in(model.rule),
                str(model.recipe.rule),
                0 if k in models.dropped else model.nonzero,
                None if k in models.dropped else model.tally.known,
                figures,
                close,
                models.dropped.get(k),
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
        with closing(held.chunks()) as chunks:
            scores = Scores(there, chunks)
        best = scores.best()
        for k in there:
            points[k] = replace(points[k], paired_error=scores.error_of_difference(k, best))
    return Learned(points, models)


def end_of_range(points: Sequence[Rated], number: int) -> str | None:
    """A message if the chosen penalty is the first or the last of several, else None."""
    if len(points) < 2 or number not in (0, len(points) - 1):
        return None
    end = "strongest" if number else "weakest"
    return f"the {end} penalty of the range was chosen: a wider range may contain a better one"


def chosen_of(
    points: Sequence[Rated], which: str, say: Callable[[str], object] = lambda line: None
) -> tuple[int, str, list[Finding]]:
    """The index of the point that `which` selects, and the criterion used: another if none satisfies it.

    Then a warning says so. Calls `say` if the choice is at an end of the range. `DataError` if no model has a
    loss.
    """
    try:
        number = choose(points, which)
    except ValueError as error:
        if which == BEST:
            raise DataError(str(error)) from error
        instead = instead_of(points, which)
        reason = f"{error}; choosing {'the best' if instead == BEST else 'that'} instead"
        return *chosen_of(points, instead, say)[:2], [Finding("choice", reason)]
    if message := end_of_range(points, number):
        say(message)
    return number, which, []


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
    told = "No model has a finite loss."
    for point in large:
        sizes = [one.nonzero for one in known]
        told = (
            f"{len(known)} models with {min(sizes):,} to {max(sizes):,} non-zero weights; the one chosen has "
            f"{point.nonzero:,} and a {measure} of {point.loss:.4g}."
        )

    def dots(name: str, points: Sequence[Point], colour: int, emphasis: bool = False) -> Series:
        titles = [f"{point.spec}: {point.nonzero:,} weights, loss {point.loss:.6g}" for point in points]
        places = [point.nonzero for point in points], [point.loss for point in points]
        return Series(name, *places, "dots", titles=titles, colour=colour, emphasis=emphasis)

    return chart(
        f"The frontier: {measure} against weights",
        told,
        Axis("non-zero weights", log=True, whole=True),
        Axis(measure),
        [
            Series("best for its size", [x for x, _ in best], [y for _, y in best], colour=1),
            dots("one penalty each", known, colour=1),
            dots("chosen", large, colour=2, emphasis=True),
        ],
        **shape,
    )


def pareto_front(places: Sequence[Place]) -> list[Place]:
    """The Pareto front, in order of the first coordinate: no other point is lower in both."""
    found: list[Place] = []
    for place in sorted(places):
        if not found or place[1] < found[-1][1]:
            found.append(place)
    return found
