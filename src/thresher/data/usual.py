"""The usual values of categorical columns: those of much of the rows at the beginning of the training data.

The layout keeps them, so that new data whose values are all others are noticed, however they differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from thresher.data.columns import CATEGORICAL, SPELLED
from thresher.data.feature_specs import as_list, names_in
from thresher.data.layout import AnyLayout, Extension, SettledLayout
from thresher.data.text.numbers import means_missing
from thresher.data.text.spelling import respelled

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


def usual_of(layout: SettledLayout) -> dict[str, Sequence[str]]:
    """The usual values of each column that has some."""
    each = (names_in(one) for one in layout.usual)
    return {name: values for name, *values in each}


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
