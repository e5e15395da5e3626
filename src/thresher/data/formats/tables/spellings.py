"""What the values of a column are (texts, numbers, booleans or dates), found in its first cells; usual ones.

Usual are those of much of the rows at the beginning of the training data. The layout keeps them, so that new
data whose values are all others are noticed, however they differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from thresher.data.columns import AS_BOOLEAN, AS_DATE, AS_NUMBER, AS_TEXT, CATEGORICAL, SPELLED
from thresher.data.feature_specs import as_list
from thresher.data.layout import AnyLayout, Extension, SettledLayout
from thresher.data.text.numbers import NUMBER, means_missing
from thresher.data.text.spelling import respelled

_DAY, _CLOCK, _ZONE = rb"\d{4}-\d\d-\d\d", rb"\d\d:\d\d(:\d\d(\.\d+)?)?", rb"(Z| ?UTC|[+-]\d\d(:?\d\d)?)"
_DATE = re.compile(rb"%s([T ]%s%s?)?|\d\d:\d\d:\d\d(\.\d+)?" % (_DAY, _CLOCK, _ZONE))
_BOOLEAN = re.compile(rb"true|false", re.IGNORECASE)
_NOT_FINITE = re.compile(rb"nan|-?inf", re.IGNORECASE)
_PADDED = re.compile(rb"\+.*|-?0[0-9].*", re.DOTALL)
_FRACTION = re.compile(rb"[^.]*\.([0-9]*)")
_MIDNIGHT = re.compile("[T ]00:00:00$")
_WIDEST = 20
"""Digits of the longest codes that have lost their zeros"""
_CHANGED: tuple[Callable[[str], str], ...] = (
    *(str.lower, str.upper, str.title, str.capitalize, str.strip),
    *(lambda text, form=form: form.format(text.strip()) for form in (" {}", "{} ", " {} ", '"{}"', "'{}'")),
    *(lambda text, form=form: unicodedata.normalize(form, text) for form in ("NFC", "NFD")),
    lambda text: text.strip("\"'"),
    *(lambda text, pair=pair: text.replace(*pair, 1) for pair in ("T ", " T")),  # dates and times
    lambda text: _MIDNIGHT.sub("", text),
    lambda text: f"{text}T00:00:00",
)
"""What programs do to texts on the way from one file to another"""

DATES = "dates"
WRITTEN = {
    "percentages": re.compile(r"[+-]?\d+([.,]\d+)?\s?%"),
    "amounts of money": re.compile(
        r"\(?[+-]?([$€£¥₹]|[A-Z]{3} )\s?[+-]?\d[\d.,]*\)?|\(?[+-]?\d[\d.,]*\s?([$€£¥₹]| [A-Z]{3})\)?"
    ),
    "numbers with thousands separators": re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?"),
    "numbers with a decimal comma": re.compile(r"[+-]?\d+,\d+"),
    DATES: re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ]\d.*)?", re.DOTALL),
}
"""Numbers as people write them, which are read as categories"""


def kind_of(cell: bytes) -> str:
    """What a cell without surrounding blanks is by itself; empty for NaN and infinity."""
    if NUMBER.fullmatch(cell):
        return AS_NUMBER
    if _NOT_FINITE.fullmatch(cell):
        return ""
    return AS_BOOLEAN if _BOOLEAN.fullmatch(cell) else AS_DATE if _DATE.fullmatch(cell) else AS_TEXT


def look_at(cells: Iterable[bytes]) -> tuple[bool, str]:
    """Whether all cells of a column, of which none is missing, are numbers, and what its values are.

    Codes such as 007, and versions such as 1.1 and 1.10, are texts. The order of cells does not matter.
    """
    numeric, found, padded, zeros, decimals = True, "", False, False, set[int]()
    for cell in map(bytes.strip, cells):
        what = kind_of(cell)
        if what != AS_NUMBER:
            numeric = False
        elif not cell.isdigit() or cell[:1] == b"0":
            padded = padded or _PADDED.fullmatch(cell) is not None
            if fraction := _FRACTION.fullmatch(cell):
                digits = fraction[1]
                decimals.add(len(digits))
                zeros = zeros or (digits[-1:] == b"0" and digits.strip(b"0") != b"")
        if what:
            found = what if found in ("", what) else AS_TEXT
        if found == AS_TEXT and not numeric:
            break
    codes = padded or (zeros and len(decimals) > 1)
    return numeric, AS_TEXT if not found or (found == AS_NUMBER and codes) else found


def text_of(value: str | bool | float) -> str:
    """A value of Arrow or JSON as a category is written, up to the last digits of a fraction."""
    return value if isinstance(value, str) else str(value).lower().removesuffix(".0")


def spelling_of_texts(texts: Iterable[bytes | str | None]) -> str:
    """What the values are that a format holds as texts; a text of digits is not a number."""
    spelling = spelling_of(texts)
    return AS_TEXT if spelling == AS_NUMBER else spelling


def spelling_of(texts: Iterable[bytes | str | None]) -> str:
    """What the values of a column are, by all of its texts."""
    return look_at(
        text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts if text
    )[1]


def other_spellings(text: str) -> Iterator[str]:
    """How a value may have been written before programs took it for a number, or changed its letters.

    >>> some = set(other_spellings("1730.0"))
    >>> "01730" in some, "1730" in some, "1730.00" in some, "NY" in set(other_spellings("ny "))
    (True, True, True, True)
    """
    for change in _CHANGED:
        yield change(text)
        yield change(text).strip()
    number = text.strip()
    if not NUMBER.fullmatch(number.encode("utf-8", "surrogatepass")):
        return
    sign, digits = ("-", number[1:]) if number[0] == "-" else ("", number.removeprefix("+"))
    whole, _, decimals = digits.partition(".")
    short = decimals.rstrip("0")
    for width in range(_WIDEST + 1):
        yield sign + whole.zfill(width) + (f".{short}" if short else "")
        yield f"{sign}{whole}.{decimals.ljust(width, '0')}"
    yield f"+{whole}"
    power = len(whole) - len(whole.rstrip("0"))
    for k in range(1, power + 1):
        yield from (f"{sign}{whole[:-k]}{e}{k}" for e in ("e", "E", "e0", "E0", "e+", "E+"))


def other_spelled(
    own: Collection[str], live: Collection[str], known: Callable[[Sequence[str]], Collection[str]]
) -> tuple[str, str] | None:
    """The first of its `own` values that is `known` in another spelling, and that; None unless there are two.

    Others may be known as they are written, `live`, if all are numbers: those of the codes that do not begin
    with 0.

    >>> other_spelled(["60", "17", "12"], ["12"], {"00060", "00017", "12"}.intersection)
    ('60', '00060')
    """
    if len(own) < 2 or (not {*own}.isdisjoint(live) and spelling_of(own) != AS_NUMBER):
        return None
    pairs = [(text, other) for text in own if text not in live for other in other_spellings(text)]
    there = known([other for _, other in pairs])
    meant = {text: other for text, other in pairs if other in there}
    return next(iter(meant.items())) if len(meant) > 1 else None


def hint_of_numbers(cell: str) -> str:
    """A hint to add to the message about a cell that is a number or date as people write it, or nothing.

    >>> hint_of_numbers("$1"), hint_of_numbers("abc")
    ('; write amounts of money as plain numbers, such as 1234.5', '')
    """
    name = next((name for name, shape in WRITTEN.items() if shape.fullmatch(cell.strip())), "")
    example = "days since the first" if name == DATES else "1234.5"
    return f"; write {name} as plain numbers, such as {example}" if name else ""


T = TypeVar("T")

ROWS = 1000
"""The values that are looked at, from all parts of the beginning of the data"""
LEAST = 30
"""The fewest values that show something, if they are in no order"""
_MOST, _LONGEST = 16, 60
"""How many values are kept, and the characters of each, at most"""
_USUAL = 0.5
"""The share of rows that they fill at least"""


def with_usual(
    layout: SettledLayout, given: AnyLayout, cells: Callable[[str], Iterable[str | bytes | None]]
) -> SettledLayout:
    """The layout with the usual values of its categorical columns, or those of the model to start from.

    `cells` returns the first values of a column, in the order of the rows.
    """
    before, known = (given.usual, dict(given.known)) if isinstance(given, Extension) else ((), {})
    found = list(before)
    for name, kind, spelling in zip(layout.columns, layout.kinds, layout.spelling, strict=True):
        if kind == CATEGORICAL and name not in known:
            texts = spread(present(cells(name)), ROWS)
            if values := usual_in([as_category(one, spelling) for one in texts]):
                found.append(as_list([name, *values]))
    return replace(layout, usual=tuple(found))


def present(cells: Iterable[str | bytes | None]) -> list[str]:
    """The texts that are UTF-8 and no words for a missing value."""
    found = list[str]()
    for cell in cells:
        if cell is None:
            continue
        written = cell.encode("utf-8", "surrogatepass") if isinstance(cell, str) else cell
        try:
            text = written.decode()
        except UnicodeDecodeError:
            continue
        if text.strip() and not means_missing(written.strip()):
            found.append(text)
    return found


def as_category(text: str, spelling: str) -> str:
    """The category that a text is in a column whose values are `spelling`."""
    return respelled(text) if spelling in SPELLED else text


def usual_in(values: Sequence[str]) -> list[str]:
    """The most frequent of `values`, the first of equally frequent ones first; none if they say little.

    They must be most of the values, each counted as in the half that has it less often, so that they will
    be in later rows, too: if values are sorted, as days are, none is usual.

    >>> usual_in(["t", "f"] * 30), usual_in(["t"] * 60), usual_in(["t"] * 30 + ["f"] * 30)
    (['t', 'f'], [], [])
    >>> usual_in([str(k) for k in range(60)])
    []
    """
    half = len(values) // 2
    first, second = Counter(values[:half]), Counter(values[half:])
    found = [value for value, _ in Counter(values).most_common(_MOST)]
    there = sum(2 * min(first[value], second[value]) for value in found)
    if len(values) < LEAST or len(found) < 2 or there < _USUAL * len(values):
        return []
    return [value for value in found if len(value) <= _LONGEST]


def spread(some: Sequence[T], count: int) -> Sequence[T]:
    """At most `count` of these, from all parts.

    >>> spread(range(10), 4)
    range(0, 10, 3)
    """
    return some[:: -(-len(some) // count) or 1]
