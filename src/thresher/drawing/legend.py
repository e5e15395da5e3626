"""The legend: a key and a name for each series, on as many lines as needed."""

from __future__ import annotations

from typing import NamedTuple

from thresher.drawing.marks import line_class, look_of, marker, size_of
from thresher.drawing.series import Panel
from thresher.drawing.svg import fitted, label, number, tag, width_of

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
    entries = _entries(panel, room)
    lines: list[list[_Entry]] = []
    if len(entries) < 2:
        return lines
    left = 0.0
    for one in entries:
        wide = _KEY + one.wide + _GAP
        if not lines or left < wide - _GAP:
            lines.append([])
            left = room
        lines[-1].append(one)
        left -= wide
    return lines


def _entries(panel: Panel, room: float) -> list[_Entry]:
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
    return found


def _entry(key: list[str], name: str, room: float) -> _Entry:
    most = min(_WIDEST, room - _KEY)
    return _Entry(key, name, min(width_of(fitted(name, most)), most))
