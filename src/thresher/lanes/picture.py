"""The frontier as a picture: loss against number of weights, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.drawing import Axis, Series, chart
from thresher.lanes.frontier import Point

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
