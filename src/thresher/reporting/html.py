"""HTML elements, tables of figures, and the stylesheet of the page: light and dark, phone, desk and paper.

All text is escaped here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.drawing.svg import DARK, LIGHT, STYLESHEET, clean, escape
from thresher.learning.evaluation.slices import SMALL, interval_of, shown_names
from thresher.learning.inspection.formatting import shown

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


def joined(children: Sequence[str]) -> Markup:
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


def _cell(value: object) -> str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        return text(f"{value:,.0f}" if whole else f"{value:.4g}")
    return text(shown(value), _LONGEST)


def slice_tables(slices: dict[str, list[dict[str, Any]]]) -> list[Markup]:
    """A table for each column."""
    found = []
    for given, rows in slices.items():
        if not rows:
            continue
        column, names = named(given), shown_names(rows)
        titles = [name.upper() if name == "rmse" else name.capitalize() for name in names]
        notes = ["Below a figure: its 95% interval."]
        notes += ["Observed and predicted: mean outcome and mean prediction."] if "observed" in names else []
        notes += [f"{SMALL}."] if any(row["small"] for row in rows) else []
        cells = list[list[Any]]()
        for row in rows:  # figures above their intervals; a star for a slice that is small
            cells.append([named(row["value"]) + (" *" if row["small"] else "")])
            for name in names[1:]:
                interval, value = interval_of(row, name), row[name]
                if interval:
                    value = joined([f"{value:.3g}", el("br"), el("small", interval)])
                cells[-1].append(value)
        caption = f"Figures by the value of {column}, the heaviest first"
        found += [el("h3", f"By {column}"), table(caption, titles, cells, " ".join(notes))]
    return found


def figure(picture: str, reading: str, numbers: str, beside: bool = False) -> Markup:
    """A picture, an explanation below or `beside` it, and its numbers, closed until the reader opens them."""
    shown = el("figure", Markup(picture), el("figcaption", reading), class_="beside" if beside else None)
    return joined([shown, el("details", el("summary", "The numbers"), numbers)])


def section(name: str, title: str, *inside: str) -> Markup:
    """A section with a heading; `name` is its id."""
    heading = el("h2", title, id=f"{name}-title")
    return el("section", heading, *inside, id=name, aria_labelledby=f"{name}-title")


_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


def _colours(scheme: dict[str, str], link: str, soft: str, warn: str, edge: str) -> str:
    return (
        f"--paper:{scheme['paper']};--ink:{scheme['ink']};--faint:{scheme['faint']};--line:{scheme['grid']};"
        f"--link:{link};--soft:{soft};--warn:{warn};--edge:{edge}"
    )


_LIGHT = _colours(LIGHT, "#0b5394", "#f4f6f8", "#fff6e0", "#8a5a00")
_DARK = _colours(DARK, "#8ec5f0", "#1d232a", "#33290f", "#e0b050")

_COVER, _SHADOW = "var(--paper) 40%,transparent", "rgba(128,128,128,.5),transparent"
_SCROLLS = ",".join(
    f"linear-gradient({turn},{colours}) {side}/{width} 100% no-repeat {fixed}"
    for colours, width, fixed in ((_COVER, "2rem", "local"), (_SHADOW, ".6rem", "scroll"))
    for turn, side in (("90deg", "left"), ("270deg", "right"))
)
"""A shadow at each edge beyond which a table goes on; a cover that scrolls along hides it at the end."""

BAR_STEPS = 40
"""Lengths of bars in tables: the classes ``l1`` to ``l40``; elements have no styles of their own."""
_BARS = "".join(f".l{k}{{width:{6 * k / BAR_STEPS:g}rem}}" for k in range(1, BAR_STEPS + 1))

STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT}}}\n"
    f"@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}\n"
    f"""*{{box-sizing:border-box}}
html{{-webkit-text-size-adjust:100%}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 {_FONT}}}
header,main,footer{{max-width:62rem;margin:0 auto;padding:0 1.25rem}}
header{{padding-top:1.75rem}}
footer{{padding-top:1rem;padding-bottom:2rem;color:var(--faint);border-top:1px solid var(--line)}}
h1{{font-size:1.7rem;line-height:1.25;margin:0 0 .5rem;overflow-wrap:anywhere}}
h2{{font-size:1.3rem;margin:2.5rem 0 .75rem;padding-top:.75rem;border-top:1px solid var(--line)}}
h3{{font-size:1.05rem;margin:1.75rem 0 .5rem;overflow-wrap:anywhere}}
p{{margin:.5rem 0;max-width:46rem;overflow-wrap:anywhere}}
.lead{{font-size:1.1rem}}
.note,figcaption{{color:var(--faint);font-size:.92rem;max-width:46rem}}
a{{color:var(--link)}}
a:focus-visible,summary:focus-visible,.wide:focus-visible{{outline:3px solid var(--link);
outline-offset:2px}}
.skip{{position:absolute;left:-99rem}}
.skip:focus{{left:1rem;top:.5rem;background:var(--paper);padding:.25rem .75rem}}
nav ul{{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;padding:0;margin:1rem 0 0}}
.keys{{display:grid;grid-template-columns:repeat(2,1fr);gap:.75rem;margin:1.25rem 0}}
@media (min-width:60rem){{.keys{{grid-template-columns:repeat(4,1fr)}}}}
.keys div{{background:var(--soft);border:1px solid var(--line);border-radius:.5rem;padding:.75rem 1rem}}
.keys dt{{color:var(--faint);font-size:.92rem}}
.keys dd{{margin:0}}
.keys .big{{font-size:1.6rem;font-weight:600;font-variant-numeric:tabular-nums;line-height:1.3}}
.warnings{{list-style:none;padding:0;margin:1rem 0}}
.warnings li{{background:var(--warn);border-left:4px solid var(--edge);padding:.6rem 1rem;
margin:.5rem 0;overflow-wrap:anywhere}}
figure{{margin:1.25rem 0 .5rem}}
figure svg{{margin-bottom:.5rem}}
details{{margin-bottom:1rem}}
figure svg{{max-width:100%;height:auto;display:block}}
@media (min-width:44rem){{figure.beside{{display:grid;grid-template-columns:400px minmax(0,1fr);gap:0 2rem}}
figure.beside figcaption{{margin-top:1.5rem}}}}
.pair{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:0 1.5rem}}
.pair>*{{min-width:0}}
.wide{{overflow-x:auto;margin:.75rem 0;background:{_SCROLLS}}}
table{{border-collapse:collapse;font-size:.94rem;min-width:min(100%,20rem)}}
caption{{text-align:left;color:var(--faint);padding-bottom:.35rem}}
th,td{{text-align:left;padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}}
thead th{{white-space:nowrap}}
tbody th{{font-weight:400;overflow-wrap:anywhere;min-width:9rem}}
td:not(.n){{overflow-wrap:anywhere;min-width:9rem}}
.n{{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}}
td small{{color:var(--faint)}}
.n .weight{{display:block;height:1rem;margin-top:.25rem;print-color-adjust:exact;
-webkit-print-color-adjust:exact}}
.weight.c1{{background:var(--chart-c1)}}.weight.c2{{background:var(--chart-c2)}}
{_BARS}
pre{{background:var(--soft);border:1px solid var(--line);border-radius:.4rem;padding:.75rem 1rem;
white-space:pre-wrap;overflow-wrap:anywhere;font-size:.9rem}}
summary{{cursor:pointer;padding:.3rem 0;color:var(--link)}}
@media (max-width:34rem){{
body{{font-size:15px}}h1{{font-size:1.4rem}}.keys{{gap:.5rem}}table{{font-size:.87rem}}
th,td{{padding-right:.6rem}}thead th{{white-space:normal}}tbody th,td:not(.n){{min-width:6.5rem}}
.keys div{{padding:.5rem .7rem}}.keys .big{{font-size:1.25rem}}
}}
@media print{{
:root{{color-scheme:light;{_LIGHT}}}body{{font-size:10.5pt}}nav,.skip{{display:none}}
h2,h3{{break-after:avoid}}figure,.keys,li,tr{{break-inside:avoid}}.wide{{overflow:visible;background:none}}
table{{font-size:8.5pt}}thead th{{white-space:normal}}th,td{{padding-right:.5rem}}
details:not([open]){{display:none}}a{{color:inherit;text-decoration:none}}
}}
""" + STYLESHEET
)
