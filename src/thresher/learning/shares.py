"""What of a stream is held out: a share drawn by chance, its last rows, or the rows that meet a condition."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

from thresher.data.errors import DataError

Every = int | Fraction
"""N, to hold out one of every N examples; 5/2 holds out two out of five. 0: none."""


class Last(NamedTuple):
    """The last rows of a stream."""

    size: int | Fraction
    """how many, or which share of all"""

    def learned(self, rows: int) -> int:
        """How many rows of a stream of `rows` rows come before them; it never falls as the stream grows.

        >>> Last(Fraction(1, 10)).learned(25), Last(4).learned(25), Last(40).learned(25)
        (22, 21, 0)
        """
        if isinstance(self.size, Fraction):
            return int(rows * (1 - self.size))
        return max(0, rows - self.size)


class Meeting(NamedTuple):
    """The rows that meet a condition."""

    condition: str
    """as `formats.tables.where` reads it"""


Part = Every | Last | Meeting
"""What is held out of a stream; 0: nothing"""
MOST_EVERY = 10**9
NUMBERED = "by-number-"
"""Begins the description of a hold-out that an earlier version chose."""
_EVERY = re.compile(r"every-(\d+)(?:st|nd|rd|th)?")
_LAST = re.compile(r"last:(.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf(inity)?)%?", re.IGNORECASE)
_CONDITION = re.compile(
    r"""\s*("[^"]+"|[^\s'"<>=!(),]+)(\s*(<|>|=|!=)|\s+(in\s*\(|is\s+(not\s|null)))""", re.IGNORECASE
)
"""How a condition begins: a column and an operator"""
_EQUAL = re.compile(r"\s*([^\s'\"<>=!(),]+)\s*(!?=|[<>]=?)\s*([^'\"]+?)\s*")
"""A condition on a text without quotes"""
_MISSPELLED = re.compile(r"([A-Za-z]+)[-:=_ ]*(\d*\.?\d*%?)(?:th|st|nd|rd)?")
"""A word, perhaps with a number: it may be a misspelled form of hold-out"""
_FORMS = {"last": "last", "tail": "last", "every": "every"}
"""Words for a form of hold-out, and the form"""
_FINEST = 10**6
"""Maximum denominator of a share."""


def part_of(given: Any) -> Part | None:
    """Parse a share such as 0.2, ``20%`` or ``every-5th``, ``last:0.1`` or a condition.

    None for anything else: a separate hold-out. ValueError for a share that is not between 0 and 1, and for a
    condition with an error.

    >>> part_of(0.2), part_of("40%"), part_of("every-5th"), part_of("test.svm")
    (5, Fraction(5, 2), 5, None)
    >>> part_of("last:10%"), part_of("last:500"), part_of("day >= 20")
    (Last(size=Fraction(1, 10)), Last(size=500), Meeting(condition='day >= 20'))
    """
    if getattr(given, "ndim", None) == 0:  # a number of numpy's
        given = given.item()
    if isinstance(given, str) and (found := _EVERY.fullmatch(given)):
        every = int(found[1])
        if not 2 <= every <= MOST_EVERY:
            raise ValueError(f"holdout {given}: N must be from 2 to {MOST_EVERY:,}")
        return every
    if isinstance(given, str) and (found := _LAST.fullmatch(given)):
        return _last(given, found[1])
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number and not (isinstance(given, str) and _NUMBER.fullmatch(given)):
        meeting = _meeting(given) if isinstance(given, str) else None
        if meeting is None and isinstance(given, str) and (meant := _meant(given)):
            raise ValueError(f"holdout {given}: there is no such file; {meant}")
        return meeting
    share = _share(given)
    if not 0 < share < 1:
        raise ValueError(
            f"holdout {given}: a share of the rows lies between 0 and 1, such as 0.2; a file of that name is"
            f" ./{given}"
        )
    return share.denominator if share.numerator == 1 else 1 / share


def is_last(given: Any) -> bool:
    """Whether it is a hold-out of the last rows. ValueError for one without a valid size."""
    return isinstance(given, str) and given.startswith("last:") and isinstance(part_of(given), Last)


def _share(given: Any) -> Fraction:
    """A number, or a percentage, as a share; 0 if it is out of range."""
    number, whole = (given[:-1], 100) if str(given).endswith("%") else (given, 1)
    share = Fraction(str(number)) / whole if 0 < float(number) < whole else Fraction(0)
    return share.limit_denominator(_FINEST)


def _last(given: str, size: str) -> Last:
    if size.isdecimal() and 0 < int(size) <= MOST_EVERY:
        return Last(int(size))
    share = _share(size) if _NUMBER.fullmatch(size) else Fraction(0)
    if not 0 < share < 1:
        raise ValueError(
            f"holdout {given}: give a share of the rows between 0 and 1, such as last:0.1, or how many,"
            " such as last:1000"
        )
    return Last(share)


def _meeting(given: str) -> Meeting | None:
    """The condition that a text is; None for the name of a file. ValueError for a syntax error."""
    if not _CONDITION.match(given) or "://" in given or os.path.exists(given):
        return None
    from thresher.data.formats.tables.where import conditions_in

    try:
        conditions_in(given, "holdout")
    except DataError as error:
        if not re.search(r"\s", given.strip()):  # such as day=20/part-0.parquet
            return None
        raise ValueError(str(error)) from error
    return Meeting(given.strip())


def _meant(given: str) -> str:
    """What the name of a file that does not exist probably means, if that is another hold-out; else empty."""
    if os.path.exists(given) or re.search(r"[/\\*?\[]", given):
        return ""
    if found := _EQUAL.fullmatch(given):
        return (
            f"for the rows that meet a condition, write text in quotes: \"{found[1]}{found[2]}'{found[3]}'\""
        )
    found = _MISSPELLED.fullmatch(given)
    near = get_close_matches(found[1].lower(), _FORMS, 1) if found else []
    if not found or not near:
        return ""
    if _FORMS[near[0]] == "last":
        return f"did you mean last:{found[2] or '0.1'}?"
    return f"did you mean every-{found[2] if found[2].isdecimal() else 10}th?"


def as_text(part: Part) -> str:
    """The value as written for ``--holdout``; empty for none."""
    if isinstance(part, Meeting):
        return part.condition
    if isinstance(part, Last):
        return f"last:{part.size}" if isinstance(part.size, int) else f"last:{float(part.size)!r}"
    if not part:
        return ""
    return f"every-{part}th" if isinstance(part, int) else repr(float(1 / part))


def condition_of(part: Part) -> str:
    """The condition that held-out rows meet; empty for another choice."""
    return part.condition if isinstance(part, Meeting) else ""


def are_given(groups: Any) -> bool:
    """Whether rows have groups, given as an array, or as a column that is not empty."""
    return groups is not None and not (isinstance(groups, str) and not groups)


def check_ungrouped(part: Part, groups: Any) -> None:
    """`DataError` if rows are to stay together in `groups`, and `part` is not drawn."""
    if not isinstance(part, Last | Meeting) or not are_given(groups):
        return
    rows = "the last rows" if isinstance(part, Last) else "the rows that meet a condition"
    raise DataError(
        f"--group keeps rows together that are drawn, but {rows} are held out, whatever their group: leave"
        " --group out, or draw rows, --holdout 0.1"
    )


def is_text(value: Any) -> bool:
    """Whether `value` is what `as_text` or `numbered` returns."""
    if not isinstance(value, str):
        return False
    try:
        return value == "" or value.startswith(NUMBERED) or part_of(value) is not None
    except ValueError:
        return False


def is_old(value: Any) -> bool:
    """Whether `value` is how earlier versions wrote a share: ``10`` or ``5/2``; 0 for none."""
    if not isinstance(value, str):
        return type(value) is int and 0 <= value < 1 << 63
    found = re.fullmatch(r"([1-9]\d{0,6})/([1-9]\d{0,6})", value)
    return found is not None and int(found[1]) > int(found[2])


def renewed(value: int | str) -> str:
    """A share in a header as this version writes it.

    Earlier versions chose rows by their number alone, which no option does now.
    """
    return f"{NUMBERED}{value}" if value and is_old(value) else str(value or "")
