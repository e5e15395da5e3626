"""Elements of SVG, and the stylesheet of all pictures: light, dark, and light on paper.

Every text and attribute is escaped here, and nowhere else.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from string import Template

SERIES = ("c1", "c2", "c3", "c4", "c5", "c6")
"""colours that series take in turn; c0 is grey, for what stays behind"""
DASHES = 6
"""kinds of lines, ``d0`` to ``d5``, so that they differ without colour too"""
NAMES = ("paper", "ink", "faint", "grid", "c0", *SERIES)
_LIGHT = "#ffffff #1f2328 #57606a #d8dee4 #767d86 #1b6ca8 #b8491c #23774a #8644a0 #856300 #b02a5b"
_DARK = "#14181d #e6eaef #a3adb8 #333b45 #8d97a3 #6db3e8 #f29a6f #6cc998 #cda0e6 #d9b84a #f58bb0"
LIGHT = dict(zip(NAMES, _LIGHT.split(), strict=True))
DARK = dict(zip(NAMES, _DARK.split(), strict=True))
_PROPERTIES = [";".join(f"--chart-{name}:{one[name]}" for name in NAMES) for one in (LIGHT, DARK)]
STYLESHEET = "\n" + Template(Path(__file__).with_name("chart.css").read_text("utf-8")).substitute(
    LIGHT, light=_PROPERTIES[0], dark=_PROPERTIES[1]
)
"""What a page holds once that embeds pictures made with ``style=False``.

A plain colour stands before each custom property, for programs that do not support these."""


_PICTURE = Template("""\
<svg xmlns="http://www.w3.org/2000/svg" width="$width" height="$height" viewBox="0 0 $width $height" \
class="thresher-chart" role="img" aria-labelledby="$name-title $name-desc">
<title id="$name-title">$title</title>
<desc id="$name-desc">$description</desc>
$style<rect class="paper" width="$width" height="$height"/>
$body
</svg>
""")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
_NARROW = frozenset("iljtfrI.,:;'|!()[]{}/ ")
_LONGEST = 300
"""characters of a text that is shown on hovering"""


def clean(text: str, most: int = _LONGEST) -> str:
    """At most `most` characters, all visible: others, such as direction marks, become U+FFFD."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in cut)


def escape(text: str) -> str:
    """`text`, already `clean`, escaped for an element or an attribute."""
    return text.translate(_ESCAPES)


def number(value: float) -> str:
    """A coordinate, rounded to a tenth of a pixel."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def tag(name: str, /, *children: str, **attributes: str | float | None) -> str:
    """An element of SVG or HTML with children, which are elements or the result of `text_of`.

    Without any it has no end tag. Attributes that are None are left out. ``class_`` becomes ``class``,
    ``text_anchor`` ``text-anchor``.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def path(kind: str, *steps: str | float) -> str:
    """A path of commands and coordinates in pixels, such as ``"M", 1.0, 2.0, "H", 9.0``."""
    written = " ".join(one if isinstance(one, str) else number(one) for one in steps)
    return tag("path", class_=kind, d=re.sub(" ?([A-Z]) ?", r"\1", written))


def text_of(text: str) -> str:
    """Any text as the content of an element."""
    return escape(clean(text))


def label(text: str, x: float, y: float, kind: str, anchor: str | None = None, room: float = 0.0) -> str:
    """A line of text. If it is wider than `room`, it is cut, and the whole text is the tooltip."""
    shown = fit_text(text, room) if room else clean(text)
    whole = tag("title", text_of(text)) if shown != text else ""
    return tag("text", whole + escape(shown), class_=kind, x=x, y=y, text_anchor=anchor)


def width_of(text: str, size: float = 13.0) -> float:
    """The approximate width of a text, in a wide font."""
    return size * sum(map(_width, text))


def _width(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character.isascii():
        return 0.78 if character.isupper() or character in "mwMW%@" else 0.645
    return 1.1 if unicodedata.east_asian_width(character) in "WF" else 0.75


def fit_text(text: str, room: float) -> str:
    """The beginning of a text that fits into `room`, with an ellipsis if it is cut."""
    shown = clean(text)
    if width_of(shown) <= room:
        return shown
    left, kept = room - width_of("…"), ""
    for character in shown:
        left -= width_of(character)
        if left < 0:
            break
        kept += character
    return kept.rstrip() + "…"


def document(
    title: str, description: str, body: Iterable[str], *, width: float, height: float, style: bool, name: str
) -> str:
    """A whole picture, as one file or as part of a page. `name` is an identifier."""
    return _PICTURE.substitute(
        name=name,
        width=number(width),
        height=number(height),
        title=text_of(title),
        description=escape(clean(description, 2000)),
        style=f"<style>{STYLESHEET}</style>\n" if style else "",
        body="\n".join(body),
    )
