"""Horizontal bars with names: positive ones to the right, negative ones to the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thresher.drawing.scales import Axis, drawable, scale_of, value_of
from thresher.drawing.svg import clean, document, fitted, label, number, tag, text_of, width_of

_EDGE, _ROW, _LINE, _SMALL = 12.0, 22.0, 20.0, 12.0


class Bar(NamedTuple):
    """A value with a name. `title` is the tooltip, by default the whole name and the value."""

    name: str
    value: float
    title: str = ""


def bars(
    title: str,
    description: str,
    rows: Sequence[Bar],
    *,
    axis: str = "",
    percent: bool = False,
    width: float = 640,
    style: bool = True,
    headed: bool = True,
    name: str = "bars",
) -> str:
    """Bars as SVG, as high as there are rows; each value is written at the end of its bar.

    Args:
        title, description, style, headed, name: as for `chart`.
        rows: from the top; names that are too long are cut. A value that is NaN or infinite has no bar.
        axis: what the values are.
        percent: write values as percentages.
        width: of the picture in pixels.
    """
    top = (_LINE + _EDGE if headed else 0.0) + (_LINE if axis else 6.0)
    body = [label(title, _EDGE, _LINE + 2, "head", room=width - 2 * _EDGE)] if headed else []
    if axis:
        body.append(label(axis, _EDGE, top - 6, "tick", room=width - 2 * _EDGE))
    names = max((width_of(fitted(row.name, 0.36 * width)) for row in rows), default=0.0)
    body += _rows(rows, _EDGE + names + 10, width - _EDGE, top, percent)
    if not rows:
        body.append(label("no data", width / 2, top + 14, "tick", "middle"))
    height = top + max(len(rows), 1) * _ROW + 8
    return document(title, description, body, width=width, height=height, style=style, name=name)


def _rows(rows: Sequence[Bar], left: float, right: float, top: float, percent: bool) -> list[str]:
    texts = [value_of(row.value, percent) for row in rows]
    values = [row.value for row in rows if drawable(row.value)]
    below, above = _room(rows, texts, False), _room(rows, texts, True)
    axis = Axis(low=min(values, default=0.0), high=max(values, default=0.0))
    scale = scale_of(axis, [0.0, *values], left + below, right - above)
    zero = scale.place(0.0) or left
    body = []
    for k, (row, text) in enumerate(zip(rows, texts, strict=True)):
        y = top + k * _ROW
        body.append(label(row.name, left - 10, y + 15, "name", "end", room=left - 9 - _EDGE))
        end = scale.place(row.value)
        negative = end is not None and row.value < 0
        end = zero if end is None else end
        body.append(_bar(row, text, min(end, zero), abs(end - zero), y, negative))
        body.append(label(text, end + (-5 if negative else 5), y + 15, "tick", "end" if negative else None))
    line = f"M{number(zero)} {number(top)}V{number(top + len(rows) * _ROW)}"
    return [*body, tag("path", class_="axis", d=line)]


def _room(rows: Sequence[Bar], texts: Sequence[str], above: bool) -> float:
    """Room for the values at the ends of the bars on one side of zero."""
    shown = [text for row, text in zip(rows, texts, strict=True) if (row.value < 0) != above]
    return max((width_of(text, _SMALL) + 6 for text in shown), default=0.0)


def _bar(row: Bar, text: str, start: float, wide: float, y: float, negative: bool) -> str:
    whole = tag("title", text_of(row.title or f"{clean(row.name, 200)}: {text}"))
    kind = "bar c2" if negative else "bar c1"
    return tag("rect", whole, class_=kind, x=start, y=y + 3, width=max(wide, 0.5), height=_ROW - 7)
