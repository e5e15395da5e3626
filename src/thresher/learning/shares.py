"""Hold-out shares of a stream: parsing, storing and printing them."""

from __future__ import annotations

import re
from fractions import Fraction
from numbers import Real
from typing import Any

Every = int | Fraction
"""N, to hold out one of every N examples; 5/2 holds out two out of five. 0: none."""
MOST_EVERY = 10**9
NUMBERED = "by-number-"
"""Begins the description of a hold-out that an earlier version chose."""
_EVERY = re.compile(r"every-(\d+)(?:st|nd|rd|th)?")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf(inity)?)%?", re.IGNORECASE)
_FINEST = 10**6
"""Maximum denominator of a share."""


def every_of(given: Any) -> Every | None:
    """Parse a share such as 0.2, ``20%`` or ``every-5th``; None for anything else: a separate hold-out.

    ValueError for a share that is not between 0 and 1.

    >>> every_of(0.2), every_of("40%"), every_of("every-5th"), every_of("test.svm")
    (5, Fraction(5, 2), 5, None)
    """
    if getattr(given, "ndim", None) == 0:  # a number of numpy's
        given = given.item()
    if isinstance(given, str) and (found := _EVERY.fullmatch(given)):
        every = int(found[1])
        if not 2 <= every <= MOST_EVERY:
            raise ValueError(f"holdout {given}: N must be from 2 to {MOST_EVERY:,}")
        return every
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number and not (isinstance(given, str) and _NUMBER.fullmatch(given)):
        return None
    number, whole = (given[:-1], 100) if str(given).endswith("%") else (given, 1)
    share = Fraction(str(number)) / whole if 0 < float(number) < whole else Fraction(0)
    share = share.limit_denominator(_FINEST)
    if not 0 < share < 1:
        raise ValueError(
            f"holdout {given}: a share of the rows lies between 0 and 1, such as 0.2; a file of that name is"
            f" ./{given}"
        )
    return share.denominator if share.numerator == 1 else 1 / share


def as_text(every: Every) -> str:
    """The value as written for ``--holdout``; empty for none."""
    if not every:
        return ""
    return f"every-{every}th" if isinstance(every, int) else repr(float(1 / every))


def is_text(value: Any) -> bool:
    """Whether `value` is what `as_text` or `numbered` returns."""
    if not isinstance(value, str):
        return False
    try:
        return value == "" or value.startswith(NUMBERED) or every_of(value) is not None
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
