"""HTML elements, tables of figures, and the styles of the page: light and dark, phone, desk and paper.

All text is escaped here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from thresher.drawing.svg import DARK, LIGHT, STYLESHEET, clean, escape, tag
from thresher.learning.evaluation.slices import SMALL, figure_names, interval_of
from thresher.learning.inspection.formatting import format_figure

_LONGEST = 120
"""maximum number of characters in a cell or name; `text` allows more elsewhere"""

_NAME = 60
"""maximum number of characters in the name of a feature, a column, a value or a class"""


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def text(given: str, most: int = 600) -> Markup:
    """Escape text: at most `most` characters, with unprintable ones replaced."""
    return Markup(escape(clean(given, most)))


def short_name(given: object, most: int = _NAME) -> str:
    """The name of a feature, column, value or class, cut to `most` characters and to 3 bytes for each."""
    name = clean(str(given), most)
    while len(escape(name).encode()) > 3 * most:
        name = clean(name, len(name) - 1)
    return name


def el(name: str, /, *children: str, **attributes: str | int | None) -> Markup:
    """An element. Children that are not `Markup` are escaped; attributes that are None are omitted.

    ``class_`` becomes ``class``, ``aria_label`` becomes ``aria-label``.

    >>> el("td", "<b>", class_="n")
    '<td class="n">&lt;b&gt;</td>'
    """
    return Markup(tag(name, join(children), **attributes))


def join(children: Sequence[str]) -> Markup:
    """Concatenate children."""
    return Markup("".join(child if isinstance(child, Markup) else text(child) for child in children))


def table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    note: str = "",
    most: int | None = None,
) -> Markup:
    """A table whose first column names the rows; it scrolls on its own if it is too wide.

    Numbers have four digits and commas between thousands; unknown ones are shown as -. At `most` so many
    rows are shown, of which a note then tells.
    """
    if most is not None and len(rows) > most:
        rows, note = rows[:most], f"The first {most} of {len(rows):,}."
    columns = ([row[k] for row in rows] for k in range(len(heads)))
    words = [any(isinstance(v, str) and not isinstance(v, Markup) for v in one) for one in columns]
    kinds = [None if of_words else "n" for of_words in words]
    top = el(
        "tr", *(el("th", head, scope="col", class_=kind) for head, kind in zip(heads, kinds, strict=True))
    )
    body = list[Markup]()
    for name, *values in rows:
        cells = (el("td", _cell(v), class_=kind) for v, kind in zip(values, kinds[1:], strict=True))
        body.append(el("tr", el("th", _cell(name), scope="row"), *cells))
    inner = el("table", el("caption", caption), el("thead", top), el("tbody", *body))
    more = [el("p", note, class_="note")] if note else []
    return join([el("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption), *more])


def _cell(value: object) -> str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        return text(f"{value:,.0f}" if whole else f"{value:.4g}")
    return text(format_figure(value), _LONGEST)


def slice_tables(slices: dict[str, list[dict[str, Any]]]) -> list[Markup]:
    """A table for each column."""
    found = []
    for given, rows in slices.items():
        if not rows:
            continue
        column, names = short_name(given), figure_names(rows)
        titles = [name.upper() if name == "rmse" else name.capitalize() for name in names]
        notes = ["Below a figure: its 95% interval."]
        notes += ["Observed and predicted: mean outcome and mean prediction."] if "observed" in names else []
        notes += [f"{SMALL}."] if any(row["small"] for row in rows) else []
        cells = list[list[Any]]()
        for row in rows:  # figures above their intervals; a star for a slice that is small
            cells.append([short_name(row["value"]) + (" *" if row["small"] else "")])
            for name in names[1:]:
                interval, value = interval_of(row, name), row[name]
                if interval:
                    value = join([f"{value:.3g}", Markup("<br>"), el("small", interval)])
                cells[-1].append(value)
        caption = f"Figures by the value of {column}, the heaviest first"
        found += [el("h3", f"By {column}"), table(caption, titles, cells, " ".join(notes))]
    return found


def figure(picture: str, reading: str, numbers: str, beside: bool = False) -> Markup:
    """A picture, an explanation below or `beside` it, and its numbers, closed until the reader opens them."""
    shown = el("figure", Markup(picture), el("figcaption", reading), class_="beside" if beside else None)
    return join([shown, el("details", el("summary", "The numbers"), numbers)])


def section(name: str, title: str, *inside: str) -> Markup:
    """A section with a heading; `name` is its id."""
    heading = el("h2", title, id=f"{name}-title")
    return el("section", heading, *inside, id=name, aria_labelledby=f"{name}-title")


BAR_STEPS = 40
"""Lengths of bars in tables: the classes ``l1`` to ``l40``; elements have no styles of their own."""
_BARS = "".join(f".l{k}{{width:{6 * k / BAR_STEPS:g}rem}}" for k in range(1, BAR_STEPS + 1))
_DARK = {f"dark_{name}": colour for name, colour in DARK.items()}

_PAGE = Template(Path(__file__).with_name("page.css").read_text("utf-8"))
STYLE = _PAGE.substitute(LIGHT, **_DARK, bars=_BARS) + STYLESHEET
"""Of the page. The background of ``.wide`` is a shadow at each edge beyond which a table goes on; a cover
that scrolls along hides it at the end."""
