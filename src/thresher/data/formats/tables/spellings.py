"""What the values of a column are (texts, numbers, booleans or dates), found in its first cells."""

from __future__ import annotations

import re
from collections.abc import Iterable

from thresher.data.columns import AS_BOOLEAN, AS_DATE, AS_NUMBER, AS_TEXT, CATEGORICAL, NUMERIC
from thresher.data.text.numbers import NUMBER

_DAY, _CLOCK, _ZONE = rb"\d{4}-\d\d-\d\d", rb"\d\d:\d\d(:\d\d(\.\d+)?)?", rb"(Z| ?UTC|[+-]\d\d(:?\d\d)?)"
_DATE = re.compile(rb"%s([T ]%s%s?)?|\d\d:\d\d:\d\d(\.\d+)?" % (_DAY, _CLOCK, _ZONE))
_BOOLEAN = re.compile(rb"true|false", re.IGNORECASE)
_NOT_FINITE = re.compile(rb"nan|-?inf", re.IGNORECASE)
_PADDED = re.compile(rb"\+.*|-?0[0-9].*", re.DOTALL)
_FRACTION = re.compile(rb"[^.]*\.([0-9]*)")
WRITTEN_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ]\d.*)?", re.DOTALL
)
"""A date as people write it"""


def look_at(cells: Iterable[bytes]) -> tuple[str, str]:
    """The kind of a column that its cells show, of which none is missing, and what its values are.

    Codes such as 007, and versions such as 1.1 and 1.10, are texts. The order of cells does not matter.
    """
    kind, found, padded, zeros, decimals = NUMERIC, "", False, False, set[int]()
    for cell in map(bytes.strip, cells):
        what = AS_NUMBER
        if not NUMBER.fullmatch(cell):
            kind = CATEGORICAL
            if _NOT_FINITE.fullmatch(cell):
                continue
            what = AS_BOOLEAN if _BOOLEAN.fullmatch(cell) else AS_DATE if _DATE.fullmatch(cell) else AS_TEXT
        elif not cell.isdigit() or cell[:1] == b"0":
            padded = padded or _PADDED.fullmatch(cell) is not None
            if fraction := _FRACTION.fullmatch(cell):
                digits = fraction[1]
                decimals.add(len(digits))
                zeros = zeros or (digits[-1:] == b"0" and digits.strip(b"0") != b"")
        found = what if found in ("", what) else AS_TEXT
        if found == AS_TEXT and kind == CATEGORICAL:
            break
    codes = padded or (zeros and len(decimals) > 1)
    return kind, AS_TEXT if not found or (found == AS_NUMBER and codes) else found


def text_of(value: str | bool | float) -> str:
    """A value of Arrow or JSON as a category is written, up to the last digits of a fraction."""
    return value if isinstance(value, str) else str(value).lower().removesuffix(".0")


def spelling_of_texts(texts: Iterable[bytes | str | None]) -> str:
    """What the values are that a format holds as texts; a text of digits is not a number."""
    _, spelling = look_at(
        text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts if text
    )
    return AS_TEXT if spelling == AS_NUMBER else spelling
