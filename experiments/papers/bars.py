"""Horizontal bars with names, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thresher.drawing import Axis, svg
from thresher.drawing.scales import scale_of

_WIDTH, _EDGE, _ROW, _LINE = 640.0, 12.0, 22.0, 20.0


class Bar(NamedTuple):
    """A finite value with a name."""

    name: str
    value: float


def bars(title: str, description: str, rows: Sequence[Bar], *, axis: str, percent: bool = False) -> str:
    """Bars as SVG, as high as there are rows; each value is written at the end of its bar.

    Args:
        title, description: as for `chart`.
        rows: from the top; names that are too long are cut.
        axis: what the values are.
        percent: write values as percentages.
    """
    top = 2 * _LINE + _EDGE
    body = [
        svg.label(title, _EDGE, _LINE + 2, "head", room=_WIDTH - 2 * _EDGE),
        svg.label(axis, _EDGE, top - 6, "tick", room=_WIDTH - 2 * _EDGE),
    ]
    names = max(svg.width_of(svg.fit_text(row.name, 0.36 * _WIDTH)) for row in rows)
    left, values = _EDGE + names + 10, [row.value for row in rows]
    texts = [_written(value, percent) for value in values]
    # room for the values at the ends of the bars on each side of zero
    below, above = (
        max(
            (svg.width_of(t, 12) + 6 for v, t in zip(values, texts, strict=True) if (v < 0) == side),
            default=0.0,
        )
        for side in (True, False)
    )
    scale = scale_of(
        Axis(low=min(values), high=max(values)), [0.0, *values], left + below, _WIDTH - _EDGE - above
    )
    zero = scale.place(0.0) or left
    for k, (row, text) in enumerate(zip(rows, texts, strict=True)):
        y, end, negative = top + k * _ROW, scale.place(row.value) or zero, row.value < 0
        body.append(svg.label(row.name, left - 10, y + 15, "name", "end", room=left - 9 - _EDGE))
        whole = svg.tag("title", svg.text_of(f"{svg.clean(row.name, 200)}: {text}"))
        shape = {"x": min(end, zero), "y": y + 3, "width": max(abs(end - zero), 0.5), "height": _ROW - 7}
        body.append(svg.tag("rect", whole, class_="bar c2" if negative else "bar c1", **shape))
        place, anchor = (end - 5, "end") if negative else (end + 5, None)
        body.append(svg.label(text, place, y + 15, "tick", anchor))
    bottom = top + len(rows) * _ROW
    line = f"M{svg.number(zero)} {svg.number(top)}V{svg.number(bottom)}"
    body.append(svg.tag("path", class_="axis", d=line))
    return svg.document(title, description, body, width=_WIDTH, height=bottom + 8, style=True, name="bars")


def _written(value: float, percent: bool) -> str:
    text = f"{float(f'{100 * value if percent else value:.4g}'):,.10g}".replace("-", "−")
    return f"{text}%" if percent else text
