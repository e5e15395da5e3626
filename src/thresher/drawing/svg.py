"""Elements of SVG: every text and attribute is escaped here, and nowhere else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from thresher.drawing.theme import STYLESHEET

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
_NARROW = frozenset("iljtfrI.,:;'|!()[]{}/ ")
_LONGEST = 300
"""characters of a text that is shown on hovering"""
_NAME = re.compile(r"[A-Za-z][\w-]*", re.ASCII)


def clean(text: str, most: int = _LONGEST) -> str:
    """At most so many characters, all of them visible: others, such as marks of direction, become U+FFFD."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in cut)


def escape(text: str) -> str:
    """`text`, already `clean`, as it stands in an element or an attribute."""
    return text.translate(_ESCAPES)


def number(value: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def tag(name: str, *children: str, **attributes: str | float | None) -> str:
    """An element around children that are elements themselves, or `text_of` something.

    Attributes that are None are left out. ``class_`` is written ``class``, ``text_anchor`` ``text-anchor``.
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(children)
    return f"<{name}{told}>{inner}</{name}>" if inner else f"<{name}{told}/>"


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)


def text_of(text: str) -> str:
    """Any text as the inside of an element."""
    return escape(clean(text))


def label(text: str, x: float, y: float, kind: str, anchor: str | None = None, room: float = 0.0) -> str:
    """A line of text. Where it is wider than `room` it is cut, and shown whole on hovering."""
    shown = fitted(text, room) if room else clean(text)
    whole = tag("title", text_of(text)) if shown != text else ""
    return tag("text", whole + escape(shown), class_=kind, x=x, y=y, text_anchor=anchor)


def width_of(text: str, size: float = 13.0) -> float:
    """About how wide a text is, in a wide font."""
    return size * sum(map(_width, text))


def _width(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character.isascii():
        return 0.78 if character.isupper() or character in "mwMW%@" else 0.645
    return 1.1 if unicodedata.east_asian_width(character) in "WF" else 0.75


def fitted(text: str, room: float, size: float = 13.0) -> str:
    """As much of a text as is no wider than `room`, with an ellipsis where it is cut."""
    shown = clean(text)
    if width_of(shown, size) <= room:
        return shown
    left, kept = room - width_of("…", size), ""
    for character in shown:
        left -= width_of(character, size)
        if left < 0:
            break
        kept += character
    return kept.rstrip() + "…"


def document(
    title: str, description: str, body: Iterable[str], *, width: float, height: float, style: bool, name: str
) -> str:
    """A whole picture, as one file or as part of a page. ValueError for a `name` that is no identifier."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a picture's name is letters, digits, - and _, a letter first, not {name!r}")
    head = [
        tag("title", text_of(title), id=f"{name}-title"),
        tag("desc", escape(clean(description, 2000)), id=f"{name}-desc"),
        *([f"<style>{STYLESHEET}</style>"] if style else []),
        tag("rect", class_="paper", width=width, height=height),
    ]
    return (
        tag(
            "svg",
            "\n",
            "\n".join([*head, *body]),
            "\n",
            xmlns="http://www.w3.org/2000/svg",
            width=width,
            height=height,
            viewBox=f"0 0 {number(width)} {number(height)}",
            class_="thresher-chart",
            role="img",
            aria_labelledby=f"{name}-title {name}-desc",
        )
        + "\n"
    )
