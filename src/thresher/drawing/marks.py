"""Lines, bands, whiskers and markers, and the legend: a key and a name for each series."""

from __future__ import annotations

from typing import NamedTuple

from thresher.drawing.scales import Scale
from thresher.drawing.series import Dot, Panel, Series, placed, runs, thinned
from thresher.drawing.svg import DASHES, SERIES, fitted, label, number, tag, text_of, width_of

_SHAPES = ("circle", "square", "diamond", "triangle", "wedge", "pentagon")


class Look(NamedTuple):
    """What distinguishes a series from others, with and without colour."""

    colour: str
    dash: int
    shape: str


def look_of(panel: Panel, number: int) -> Look:
    """The look of a series of a panel; quiet series use no colour."""
    series = panel.series[number]
    if series.quiet:
        return Look("c0", 0, "circle")
    loud = [one for one in panel.series[:number] if not one.quiet]
    k = sum(one.colour is None for one in loud) if series.colour is None else series.colour - 1
    k, dash = k % len(SERIES), sum(one.kind != "dots" for one in loud) % len(DASHES)
    return Look(SERIES[k], dash, _SHAPES[k])


def drawn(series: Series, look: Look, x: Scale, y: Scale) -> list[str]:
    """All marks of a series, back to front."""
    dots = thinned(placed(series, x, y))
    if not dots:
        return []
    line = series.kind != "dots"
    groups = runs(dots, series) if line else []
    found = [band for group in groups for band in _band(group, look)]
    if not line:
        found += _whiskers(dots, look)
    if path := "".join(_path(group, series.kind == "steps") for group in groups if len(group) > 1):
        found.append(tag("path", class_=line_class(series, look), d=path))
    alone = [group[0] for group in groups if len(group) == 1]
    for dot in dots if series.kind in ("dots", "both") else alone:
        title = series.titles[dot.number] if series.titles else ""
        found.append(marker(look, dot.x, dot.y, size_of(series), title))
    return found


def line_class(series: Series, look: Look) -> str:
    """CSS classes of its line."""
    weight = " thin" if series.quiet else " strong" if series.emphasis else ""
    return f"line {look.colour} d{look.dash}{weight}"


def size_of(series: Series) -> float:
    """Radius of its markers."""
    return 3.0 if series.quiet else 6.5 if series.emphasis else 4.0


def marker(look: Look, x: float, y: float, size: float, title: str = "") -> str:
    """A point with its tooltip."""
    inner = tag("title", text_of(title)) if title else ""
    kind = f"mark {look.colour}"
    if look.shape == "circle":
        return tag("circle", inner, class_=kind, cx=x, cy=y, r=size)
    r, s = size * 1.25, size * 0.9
    points = {
        "square": [(-s, -s), (s, -s), (s, s), (-s, s)],
        "diamond": [(0, -r), (r, 0), (0, r), (-r, 0)],
        "triangle": [(0, -r), (r, s), (-r, s)],
        "wedge": [(0, r), (r, -s), (-r, -s)],
        "pentagon": [(0, -r), (r, -r / 4), (s * 0.7, s), (-s * 0.7, s), (-r, -r / 4)],
    }[look.shape]
    corners = " ".join(f"{number(x + a)},{number(y + b)}" for a, b in points)
    return tag("polygon", inner, class_=kind, points=corners)


def _path(group: list[Dot], steps: bool) -> str:
    first, *rest = group
    path = f"M{number(first.x)} {number(first.y)}"
    if steps:
        return path + "".join(f"H{number(dot.x)}V{number(dot.y)}" for dot in rest)
    return path + "".join(f"L{number(dot.x)} {number(dot.y)}" for dot in rest)


def _band(group: list[Dot], look: Look) -> list[str]:
    """The area between the ends of intervals."""
    known = [(dot.x, dot.low, dot.high) for dot in group if dot.low is not None and dot.high is not None]
    if len(known) < 2:
        return []
    around = [(x, high) for x, _, high in known] + [(x, low) for x, low, _ in reversed(known)]
    corners = " ".join(f"{number(a)},{number(b)}" for a, b in around)
    return [tag("polygon", class_=f"area {look.colour}", points=corners)]


def _whiskers(dots: list[Dot], look: Look) -> list[str]:
    path = ""
    for dot in dots:
        if dot.low is not None and dot.high is not None:
            left, right, middle = number(dot.x - 4), number(dot.x + 4), number(dot.x)
            path += f"M{left} {number(dot.low)}H{right}M{middle} {number(dot.low)}V{number(dot.high)}"
            path += f"M{left} {number(dot.high)}H{right}"
    return [tag("path", class_=f"whisker {look.colour}", d=path)] if path else []


_KEY, _GAP, _LINE, _WIDEST = 26.0, 18.0, 20.0, 260.0


class _Entry(NamedTuple):
    key: list[str]
    """elements whose origin is the left end of the key"""
    name: str
    wide: float


def legend_height(panel: Panel, room: float) -> float:
    """Its height in the panel; 0 if there is one series, which needs no legend."""
    return len(_lines(panel, room)) * _LINE


def legend(panel: Panel, left: float, top: float, room: float) -> list[str]:
    """Its elements."""
    body = []
    for row, entries in enumerate(_lines(panel, room)):
        x, middle = left, top + row * _LINE + 9
        for one in entries:
            body.append(tag("g", *one.key, transform=f"translate({number(x)} {number(middle)})"))
            body.append(label(one.name, x + _KEY, middle + 4.5, "name", room=one.wide))
            x += _KEY + one.wide + _GAP
    return body


def _lines(panel: Panel, room: float) -> list[list[_Entry]]:
    found = []
    for k, series in enumerate(panel.series):
        if not series.name:
            continue
        look, key = look_of(panel, k), list[str]()
        if series.kind != "dots":
            key.append(tag("path", class_=line_class(series, look), d="M0 0H20"))
        if series.kind in ("dots", "both"):
            key.append(marker(look, 10, 0, size_of(series)))
        found.append(_entry(key, series.name, room))
    if panel.diagonal:
        found.append(_entry([tag("path", class_="reference", d="M0 0H20")], panel.diagonal, room))
    lines: list[list[_Entry]] = []
    if len(found) < 2:
        return lines
    left = 0.0
    for one in found:
        wide = _KEY + one.wide + _GAP
        if not lines or left < wide - _GAP:
            lines.append([])
            left = room
        lines[-1].append(one)
        left -= wide
    return lines


def _entry(key: list[str], name: str, room: float) -> _Entry:
    most = min(_WIDEST, room - _KEY)
    return _Entry(key, name, min(width_of(fitted(name, most)), most))
