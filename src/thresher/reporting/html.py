"""HTML elements. All text is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.drawing.svg import clean, escape
from thresher.learning.figures import shown

_VOID = frozenset({"meta", "br", "hr"})
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


def named(given: object, most: int = _NAME) -> str:
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
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Sequence[str], between: str = "") -> Markup:
    """Concatenate children."""
    return Markup(between.join(child if isinstance(child, Markup) else text(child) for child in children))


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> Markup:
    """A table whose first column names the rows; it scrolls on its own if it is too wide.

    Numbers have four digits and commas between thousands; unknown ones are shown as -.
    """
    numbers = [
        all(isinstance(row[k], Markup) or not isinstance(row[k], str) for row in rows)
        for k in range(len(heads))
    ]
    kinds = ["n" if number else None for number in numbers]
    top = el(
        "tr", *(el("th", head, scope="col", class_=kind) for head, kind in zip(heads, kinds, strict=True))
    )
    body = [
        el(
            "tr",
            el("th", _cell(row[0]), scope="row"),
            *(el("td", _cell(v), class_=k) for v, k in zip(row[1:], kinds[1:], strict=True)),
        )
        for row in rows
    ]
    inner = el("table", el("caption", caption), el("thead", top), el("tbody", *body))
    more = [el("p", note, class_="note")] if note else []
    return joined([el("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption), *more])


def _cell(value: Any) -> str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, float) and not isinstance(value, bool):
        whole = value.is_integer() and abs(value) < 1e15
        return text(f"{value:,.0f}" if whole else f"{value:.4g}")
    return text(shown(value), _LONGEST)


def details(summary: str, *inside: str) -> Markup:
    """A part that is closed until the reader opens it."""
    return el("details", el("summary", summary), *inside)


def figure(picture: str, reading: str, *more: str, beside: bool = False) -> Markup:
    """A picture, an explanation below or `beside` it, and its numbers as a table."""
    kind = "beside" if beside else None
    return joined([el("figure", Markup(picture), el("figcaption", reading), class_=kind), *more])


def section(name: str, title: str, *inside: str) -> Markup:
    """A section with a heading; `name` is its id."""
    heading = el("h2", title, id=f"{name}-title")
    return el("section", heading, *inside, id=name, aria_labelledby=f"{name}-title")
