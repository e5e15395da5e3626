"""What a chart shows: series, panels and a strip of density; points are thinned out before drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from thresher.drawing.scales import Axis, Scale, drawable

MOST = 400
"""points of a series that are drawn"""
Kind = Literal["line", "dots", "both", "steps"]


@dataclass(frozen=True)
class Series:
    """One series: `x` and `y` of the same length; NaN and infinity leave a gap."""

    name: str
    """shown in the legend; a series without a name is left out of it"""
    x: Sequence[float]
    y: Sequence[float]
    kind: Kind = "line"
    low: Sequence[float] | None = None
    """with `high`, the ends of an interval at each point: a band behind a line, whiskers of dots"""
    high: Sequence[float] | None = None
    titles: Sequence[str] | None = None
    """tooltips of dots"""
    quiet: bool = False
    """grey and thin, for the background"""
    emphasis: bool = False
    """thick lines, large dots"""
    colour: int | None = None
    """1 to 6; by default the next unused one"""

    def __post_init__(self) -> None:
        for name in ("y", "low", "high", "titles"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.x):
                raise ValueError(f"{name} has {len(given)} values, x {len(self.x)}")
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high come together")


class Strip(NamedTuple):
    """The count between two values of x; many of these make a strip of density."""

    low: float
    high: float
    weight: float


@dataclass(frozen=True)
class Panel:
    """Axes, and what is drawn between them."""

    x: Axis
    y: Axis
    series: Sequence[Series]
    title: str = ""
    diagonal: str = ""
    """name of the line y = x, which is drawn only if it has a name"""
    strip: Sequence[Strip] = ()


class Dot(NamedTuple):
    """A point of a series in pixels."""

    number: int
    """its index among the points of its series"""
    x: float
    y: float
    low: float | None = None
    high: float | None = None


def placed(series: Series, x: Scale, y: Scale) -> list[Dot]:
    """The points that can be drawn."""
    found = []
    for k, (a, b) in enumerate(zip(series.x, series.y, strict=True)):
        across, up = x.place(a), y.place(b)
        if across is not None and up is not None:
            ends = (series.low[k], series.high[k]) if series.low and series.high else None
            low, high = (y.place(ends[0]), y.place(ends[1])) if ends else (None, None)
            found.append(Dot(k, across, up, low, high))
    return found


def heights(series: Series) -> list[float]:
    """All values that the vertical axis has to show."""
    return [value for values in (series.y, series.low or (), series.high or ()) for value in values]


def thinned(dots: list[Dot]) -> list[Dot]:
    """At most `MOST` points: of those in one column of pixels, the first, highest, lowest and last."""
    if len(dots) <= MOST:
        return dots
    ascending = all(a.x <= b.x for a, b in pairwise(dots))
    first, wide = dots[0].x, (dots[-1].x - dots[0].x) or 1.0
    columns = MOST // 4
    cells: dict[int, list[Dot]] = {}
    for k, dot in enumerate(dots):
        share = (dot.x - first) / wide if ascending else k / len(dots)
        cells.setdefault(min(int(share * columns), columns - 1), []).append(dot)
    kept = set[Dot]()
    for cell in cells.values():
        by_height = sorted(cell, key=lambda dot: dot.y)
        kept |= {cell[0], by_height[0], by_height[-1], cell[-1]}
    return sorted(kept)


def runs(dots: list[Dot], series: Series) -> list[list[Dot]]:
    """Points in groups without gaps."""
    found: list[list[Dot]] = []
    for dot in dots:
        before = found[-1][-1].number if found else dot.number
        gap = any(
            not (drawable(series.x[k]) and drawable(series.y[k])) for k in range(before + 1, dot.number)
        )
        if not found or gap:
            found.append([])
        found[-1].append(dot)
    return found
