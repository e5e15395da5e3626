"""Charts of one panel, or of several below each other.

First what a chart shows, thinned out; then its lines, bands, whiskers and markers, and the legend; then
panels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import Any, Literal, NamedTuple

from thresher.drawing import svg
from thresher.drawing.scales import (
    Axis,
    Scale,
    Tick,
    drawable,
    scale_of,
    ticks_across,
    ticks_upright,
)

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


Strip = Sequence[tuple[float, float, float]]
"""Density along x: two values, and the count between them"""


@dataclass(frozen=True)
class Panel:
    """Axes, and what is drawn between them."""

    x: Axis
    y: Axis
    series: Sequence[Series]
    title: str = ""
    diagonal: str = ""
    """name of the line y = x, which is drawn only if it has a name"""
    strip: Strip = ()


class Dot(NamedTuple):
    """A point of a series in pixels."""

    number: int
    """its index among the points of its series"""
    run: int
    """the same for points without a gap between them"""
    x: float
    y: float
    low: float | None = None
    high: float | None = None


def dots_of(series: Series, x: Scale, y: Scale) -> list[Dot]:
    """The points that are drawn.

    If more than `MOST` can be, the first, highest, lowest and last of those in one column of pixels.
    """
    dots, run = [], 0
    for k, (a, b) in enumerate(zip(series.x, series.y, strict=True)):
        across, up = x.place(a), y.place(b)
        if across is not None and up is not None:
            low, high = (None if ends is None else y.place(ends[k]) for ends in (series.low, series.high))
            dots.append(Dot(k, run, across, up, low, high))
        run += not (drawable(a) and drawable(b))
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


class Look(NamedTuple):
    """What distinguishes a series from others: its lines differ without colour, too."""

    colour: str
    line: str
    """CSS classes of its line"""
    size: float
    """radius of its markers"""


def look_of(panel: Panel, number: int) -> Look:
    """The look of a series of a panel; quiet series use no colour."""
    series = panel.series[number]
    if series.quiet:
        return Look("c0", "line c0 d0 thin", 3.0)
    loud = [one for one in panel.series[:number] if not one.quiet]
    k = sum(one.colour is None for one in loud) if series.colour is None else series.colour - 1
    k, dash = k % len(svg.SERIES), sum(one.kind != "dots" for one in loud) % svg.DASHES
    line = f"line {svg.SERIES[k]} d{dash}{' strong' if series.emphasis else ''}"
    return Look(svg.SERIES[k], line, 6.5 if series.emphasis else 4.0)


def draw_series(series: Series, look: Look, x: Scale, y: Scale) -> list[str]:
    """All marks of a series, back to front."""
    dots = dots_of(series, x, y)
    if not dots:
        return []
    line = series.kind != "dots"
    groups = [[*group] for _, group in groupby(dots, lambda dot: dot.run)] if line else []
    found = []
    for group in groups:
        ends = [(dot.x, dot.low, dot.high) for dot in group if dot.low is not None and dot.high is not None]
        around = [(x, high) for x, _, high in ends] + [(x, low) for x, low, _ in reversed(ends)]
        corners = " ".join(f"{svg.number(a)},{svg.number(b)}" for a, b in around)
        found += [svg.tag("polygon", class_=f"area {look.colour}", points=corners)] if len(ends) > 1 else []
    if not line:
        lines = list[str | float]()
        for dot in dots:
            if dot.low is not None and dot.high is not None:
                lines += ["M", dot.x - 4, dot.low, "H", dot.x + 4, "M", dot.x, dot.low, "V", dot.high]
                lines += ["M", dot.x - 4, dot.high, "H", dot.x + 4]
        found += [svg.path(f"whisker {look.colour}", *lines)] if lines else []
    steps = list[str | float]()
    for first, *rest in (group for group in groups if len(group) > 1):
        steps += ["M", first.x, first.y]
        for dot in rest:
            steps += ["H", dot.x, "V", dot.y] if series.kind == "steps" else ["L", dot.x, dot.y]
    if steps:
        found.append(svg.path(look.line, *steps))
    alone = [group[0] for group in groups if len(group) == 1]
    for dot in dots if series.kind in ("dots", "both") else alone:
        title = series.titles[dot.number] if series.titles else ""
        found.append(marker(look, dot.x, dot.y, title))
    return found


def marker(look: Look, x: float, y: float, title: str = "") -> str:
    """A point with its tooltip."""
    inner = [svg.tag("title", svg.text_of(title))] if title else []
    return svg.tag("circle", *inner, class_=f"mark {look.colour}", cx=x, cy=y, r=look.size)


_KEY, _GAP, _LEGEND_LINE, _WIDEST = 26.0, 18.0, 20.0, 260.0


def legend(panel: Panel, left: float, top: float, room: float) -> list[str]:
    """Its elements."""
    body = []
    for row, entries in enumerate(_lines(panel, room)):
        x, middle = left, top + row * _LEGEND_LINE + 9
        for key, name, wide in entries:
            body.append(svg.tag("g", *key, transform=f"translate({svg.number(x)} {svg.number(middle)})"))
            body.append(svg.label(name, x + _KEY, middle + 4.5, "name", room=wide))
            x += _KEY + wide + _GAP
    return body


def _lines(panel: Panel, room: float) -> list[list[tuple[list[str], str, float]]]:
    """The lines of a legend: the elements of each key, from its left end, its name, and how wide that is."""
    keys = list[tuple[list[str], str]]()
    for k, series in enumerate(panel.series):
        if series.name:
            look, key = look_of(panel, k), list[str]()
            if series.kind != "dots":
                key.append(svg.path(look.line, "M0 0H20"))
            if series.kind in ("dots", "both"):
                key.append(marker(look, 10, 0))
            keys.append((key, series.name))
    if panel.diagonal:
        keys.append(([svg.path("reference", "M0 0H20")], panel.diagonal))
    lines, left, most = list[list[tuple[list[str], str, float]]](), 0.0, min(_WIDEST, room - _KEY)
    for key, name in keys if len(keys) > 1 else []:
        wide = min(svg.width_of(svg.fit_text(name, most)), most)
        if not lines or left < _KEY + wide:
            lines.append([])
            left = room
        lines[-1].append((key, name, wide))
        left -= _KEY + wide + _GAP
    return lines


_EDGE, _RIGHT, _LINE, _STRIP = 12.0, 24.0, 20.0, 26.0


class _PlacedPanel(NamedTuple):
    """A panel with its vertical position."""

    panel: Panel
    top: float
    plot: float
    """top of its plot, below title, legend and the title of the vertical axis"""
    bottom: float
    y: Scale
    ticks: list[Tick]


def chart(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    *,
    diagonal: str = "",
    strip: Strip = (),
    height: float = 400,
    **shape: Any,
) -> str:
    """A chart as SVG, the same bytes for the same arguments.

    Args:
        title: shown above, and read out by screen readers.
        description: one or two sentences for those who cannot see the picture.
        x, y: the axes.
        series: what is drawn, in this order.
        diagonal: name of the line on which y equals x; none is drawn without.
        strip: density along x, drawn below the plot.
        height: of the picture in pixels; text is 13 pixels high.
        width: likewise, 640 if not given.
        style: bring the stylesheet. Without, the page must hold `STYLESHEET`.
        headed: show the title; a page may have a heading of its own.
        name: prefix of ids, different for each picture of a page.

    Values that are NaN or infinite, or not positive on a logarithmic axis, are left out. ValueError for
    series whose lengths differ.
    """
    panel = Panel(x, y, series, diagonal=diagonal, strip=strip)
    return panels(title, description, [panel], height=height, **shape)


def panels(
    title: str,
    description: str,
    shown: Sequence[Panel],
    *,
    width: float = 640,
    height: float = 300,
    style: bool = True,
    headed: bool = True,
    name: str = "chart",
) -> str:
    """Panels stacked vertically, with aligned plots; `height` is that of each. For the rest, see `chart`."""
    head = _LINE + _EDGE if headed else _EDGE / 2
    laid = list[_PlacedPanel]()
    for k, panel in enumerate(shown):
        alone = len(shown) == 1 and headed  # then the given height is that of the picture
        top, end = head + k * height, height if alone else head + (k + 1) * height
        plot = top + (_LINE if panel.title else 0) + len(_lines(panel, width - 2 * _EDGE)) * _LEGEND_LINE
        plot += _LINE + 4 if panel.y.title else 8
        below = _LINE + (_LINE if panel.x.title else 4) + (_STRIP if panel.strip else 0)
        bottom = max(end - below - 6, plot + 20)
        each = [ends for one in panel.series for ends in (one.y, one.low or (), one.high or ())]
        y = scale_of(panel.y, chain.from_iterable(each), bottom, plot)
        laid.append(_PlacedPanel(panel, top, plot, bottom, y, ticks_upright(y)))
    left = max((svg.width_of(tick.text, 12) for one in laid for tick in one.ticks), default=0.0) + _EDGE + 8
    body = [svg.label(title, _EDGE, _LINE + 2, "head", room=width - 2 * _EDGE)] if headed else []
    for one in laid:
        body += _panel(one, min(left, width / 2), width)
    total = height if len(shown) == 1 else head + height * len(shown)
    return svg.document(title, description, body, width=width, height=total, style=style, name=name)


def _panel(laid: _PlacedPanel, left: float, width: float) -> list[str]:
    panel, right = laid.panel, width - _RIGHT
    values = [value for series in panel.series for value in series.x]
    values += [end for low, high, _ in panel.strip for end in (low, high)]
    x = scale_of(panel.x, values, left, right)
    body, line = [], laid.top
    if panel.title:
        body.append(svg.label(panel.title, _EDGE, line + 14, "sub", room=width - 2 * _EDGE))
        line += _LINE
    body += legend(panel, _EDGE, line, width - 2 * _EDGE)
    if panel.y.title:
        body.append(svg.label(panel.y.title, _EDGE, laid.plot - 12, "tick", room=width - 2 * _EDGE))
    floor, across = laid.bottom + (_STRIP if panel.strip else 0), ticks_across(x)
    grid = [one for tick in laid.ticks for one in ("M", left, tick.place, "H", right)]
    grid += [one for tick in across for one in ("M", tick.place, laid.plot, "V", laid.bottom)]
    body += [svg.path("grid", *grid)] if grid else []
    body.append(svg.path("axis", "M", left, floor, "H", right))
    body += [svg.label(tick.text, left - 8, tick.place + 4, "tick", "end") for tick in laid.ticks]
    for tick in across:
        half = svg.width_of(tick.text, 12) / 2
        place = min(max(tick.place, half + 2), width - half - 2)
        body.append(svg.label(tick.text, place, floor + 17, "tick", "middle"))
    if title := panel.x.title:
        room = right - left + 2 * _RIGHT
        body.append(svg.label(title, (left + right) / 2, floor + 36, "tick", "middle", room=room))
    low, high = max(x.low, laid.y.low), min(x.high, laid.y.high)
    ends = [scale.place(value) for value in (low, high) for scale in (x, laid.y)]
    if panel.diagonal and low < high and None not in ends:
        a, b, c, d = (one or 0.0 for one in ends)
        body.append(svg.path("reference", "M", a, b, "L", c, d))
    looks = [look_of(panel, k) for k in range(len(panel.series))]
    pairs = zip(panel.series, looks, strict=True)
    marks = [mark for series, look in pairs for mark in draw_series(series, look, x, laid.y)]
    if not marks:
        middle = (laid.plot + laid.bottom) / 2
        body.append(svg.label("no data", (left + right) / 2, middle, "tick", "middle"))
    cells = list[tuple[float, float, float]]()  # of density along x: the weight divided by the width
    for first, last, weight in panel.strip:
        start, end = x.place(first), x.place(last)
        wide = 0.0 if start is None or end is None else max(end - start, 1.0)
        if start is not None and wide and 0 < weight / wide < math.inf:
            cells.append((start, wide, weight / wide))
    most = max((density for _, _, density in cells), default=1.0)
    for start, wide, density in cells:
        tall = max((_STRIP - 4) * (density / most), 0.6)
        marks.append(svg.tag("rect", class_="strip", x=start, y=floor - tall, width=wide, height=tall))
    return [*body, *marks]
