"""What of a stream is held out: a share drawn by chance, its last rows, or the rows that meet a condition.

Random choices of rows are hashes of their numbers and a seed. A choice does not depend on where the stream is
cut, and is the same in every pass.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError, OneLineError
from thresher.engine.lookup import mix, scatter
from thresher.options.messages import mention

EveryNth = int | Fraction
"""N, to hold out one of every N examples; 5/2 holds out two out of five. 0: none."""


class LastRows(NamedTuple):
    """The last rows of a stream."""

    size: int | Fraction
    """how many, or which share of all"""

    def learned(self, rows: int) -> int:
        """How many rows of a stream of `rows` rows come before them; it never falls as the stream grows.

        >>> LastRows(Fraction(1, 10)).learned(25), LastRows(4).learned(25), LastRows(40).learned(25)
        (22, 21, 0)
        """
        if isinstance(self.size, Fraction):
            return int(rows * (1 - self.size))
        return max(0, rows - self.size)


class MatchingRows(NamedTuple):
    """The rows that meet a condition."""

    condition: str
    """as `formats.tables.where` reads it"""


HeldOutPart = EveryNth | LastRows | MatchingRows
"""What is held out of a stream; 0: nothing"""
MOST_EVERY = 10**9
_EVERY = re.compile(r"every-(\d+)(?:st|nd|rd|th)?")
_LAST = re.compile(r"last:(.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf(inity)?)%?", re.IGNORECASE)
_CONDITION = re.compile(
    r"""\s*("[^"]+"|[^\s'"<>=!(),]+)(\s*(<|>|=|!=)|\s+(in\s*\(|is\s+(not\s|null)))""", re.IGNORECASE
)
"""How a condition begins: a column and an operator"""
_EQUAL = re.compile(r"\s*([^\s'\"<>=!(),]+)\s*(!?=|[<>]=?)\s*([^'\"]+?)\s*")
"""A condition on a text without quotes"""
_FINEST = 10**6
"""Maximum denominator of a share."""


def part_of(given: Any) -> HeldOutPart | None:
    """Parse a share such as 0.2, ``20%`` or ``every-5th``, ``last:0.1``, a condition or ``none``.

    None for anything else: a separate hold-out. ValueError for a share that is not between 0 and 1, and for a
    condition with an error.

    >>> part_of(0.2), part_of("40%"), part_of("every-5th"), part_of("test.svm")
    (5, Fraction(5, 2), 5, None)
    >>> part_of("none")
    0
    >>> part_of("last:10%"), part_of("last:500"), part_of("day >= 20")
    (LastRows(size=Fraction(1, 10)), LastRows(size=500), MatchingRows(condition='day >= 20'))
    """
    if getattr(given, "ndim", None) == 0:  # a number of numpy's
        given = given.item()
    if isinstance(given, str) and not _NUMBER.fullmatch(given):
        return _part_in_words(given)
    if not isinstance(given, str | Real) or isinstance(given, bool):
        return None
    share = _share(given)
    if not 0 < share < 1:
        named = f"a file of that name is ./{given}"
        reason = "a share of the rows lies between 0 and 1, such as 0.2"
        raise OneLineError(f"{mention('holdout')} {given}: {reason}; {named}")
    return share.denominator if share.numerator == 1 else 1 / share


def _share(given: Any) -> Fraction:
    """A number, or a percentage, as a share; 0 if it is out of range."""
    number, whole = (given[:-1], 100) if str(given).endswith("%") else (given, 1)
    share = Fraction(str(number)) / whole if 0 < float(number) < whole else Fraction(0)
    return share.limit_denominator(_FINEST)


def _part_in_words(given: str) -> HeldOutPart | None:
    """A hold-out that is no number. ValueError for what is probably meant as one, but is none."""
    option = f"{mention('holdout')} {given}"
    if given == "none":
        return 0
    if found := _EVERY.fullmatch(given):
        every = int(found[1])
        if not 2 <= every <= MOST_EVERY:
            raise OneLineError(f"{option}: N must be from 2 to {MOST_EVERY:,}")
        return every
    if found := _LAST.fullmatch(given):
        size = found[1]
        if size.isdecimal() and 0 < int(size) <= MOST_EVERY:
            return LastRows(int(size))
        share = _share(size) if _NUMBER.fullmatch(size) else Fraction(0)
        if not 0 < share < 1:
            forms = "a share of the rows between 0 and 1, such as last:0.1, or how many, such as last:1000"
            raise OneLineError(f"{option}: give {forms}")
        return LastRows(share)
    if os.path.exists(given):
        return None
    if _CONDITION.match(given) and "://" not in given:
        from thresher.data.formats.tables.where import conditions_in

        try:
            conditions_in(given, mention("holdout"))
        except DataError as error:
            if re.search(r"\s", given.strip()):  # not a name such as day=20/part-0.parquet
                raise ValueError(str(error)) from error
        else:
            return MatchingRows(given.strip())
    if re.search(r"[/\\*?\[]", given):
        return None
    if equal := _EQUAL.fullmatch(given):
        quoted = f"\"{equal[1]}{equal[2]}'{equal[3]}'\""
        meant = f"for the rows that meet a condition, write text in quotes: {quoted}"
        raise OneLineError(f"{option}: there is no such file; {meant}")
    return None


def as_text(part: HeldOutPart) -> str:
    """The value as written for ``--holdout``; empty for none."""
    if isinstance(part, MatchingRows):
        return part.condition
    if isinstance(part, LastRows):
        return f"last:{part.size}" if isinstance(part.size, int) else f"last:{float(part.size)!r}"
    if not part:
        return ""
    return f"every-{part}th" if isinstance(part, int) else repr(float(1 / part))


def check_ungrouped(part: HeldOutPart, groups: object) -> None:
    """`DataError` if rows are to stay together in `groups`, and `part` is not drawn."""
    without = groups is None or (isinstance(groups, str) and not groups)  # an array, or the name of a column
    if without or not isinstance(part, LastRows | MatchingRows):
        return
    held = "the rows held out are not, whatever their group"
    remedy = f"leave {mention('group')} out, or draw rows, {mention(holdout=0.1)}"
    raise DataError(f"{mention('group')} keeps rows together that are drawn, but {held}: {remedy}")


U64 = NDArray[np.uint64]
Rows = NDArray[np.int64]
BAGS, HOLDOUT, FOLDS, STARTS, SAMPLE, THINNED = 1, 2, 3, 4, 5, 6
"""What is drawn; draws for one purpose are independent of those for another"""
STEP = np.uint64(0x9E3779B97F4A7C15)
_LOW_BITS, _UNIT = np.uint64(11), 2.0**-53


def bits_of(numbers: U64, seed: int, purpose: int) -> U64:
    """A hash of each of `numbers`."""
    start = np.array([seed % 2**64], np.uint64) + np.array([purpose], np.uint64) * STEP
    bits: U64 = scatter(mix(numbers * STEP + scatter(mix(start))))
    return bits


def unit(bits: U64) -> NDArray[np.float64]:
    """Numbers in [0, 1)."""
    return (bits >> _LOW_BITS).astype(np.float64) * _UNIT


def held_out(
    first: int, rows: int, every: EveryNth, seed: int, groups: U64 | None = None
) -> NDArray[np.bool_]:
    """Which of the rows `first`, `first` + 1 ... are held out: one of every `every`.

    With `groups`, rows of one stay together: each group is held out with the probability 1 / `every`.

    In each run of N rows that begins at a multiple of N, the place of the one is drawn. If `every` is a
    fraction N / M, the M cells k of a run have the places from floor(k N / M) to floor((k + 1) N / M) - 1,
    and one row in each is drawn; places are counted from a drawn row of the run, so that all rows have the
    same chance.

    >>> [int(held_out(0, 60, 10, seed).sum()) for seed in range(3)]
    [6, 6, 6]
    >>> np.flatnonzero(held_out(0, 60, 10, 0)).tolist()
    [0, 13, 23, 37, 42, 54]
    """
    if groups is not None:
        return unit(bits_of(together(groups, first), seed, HOLDOUT)) < float(1 / every)
    size, drawn = every.numerator, every.denominator
    runs, places = np.divmod(np.arange(first, first + rows), size)
    if drawn > 1:
        starts = unit(bits_of(runs.astype(np.uint64), seed, STARTS)) * size
        places = (places + starts.astype(np.int64)) % size
    cells = ((places + 1) * drawn - 1) // size
    begins, ends = cells * size // drawn, (cells + 1) * size // drawn
    chosen = unit(bits_of((runs * drawn + cells).astype(np.uint64), seed, HOLDOUT)) * (ends - begins)
    held: NDArray[np.bool_] = places - begins == chosen.astype(np.int64)
    return held


def folds_of(first: int, rows: int, count: int, seed: int, groups: U64 | None = None) -> Rows:
    """The fold of each of the rows `first`, `first` + 1 ...

    Each run of `count` rows that begins at a multiple of `count` has one row in each fold, in an order drawn
    for that run. With `groups`, rows of one stay together, in a fold that is drawn.

    >>> folds_of(0, 12, 3, 0).tolist()
    [0, 2, 1, 2, 1, 0, 0, 2, 1, 0, 2, 1]
    """
    if groups is not None:
        return (unit(bits_of(together(groups, first), seed, FOLDS)) * count).astype(np.int64)
    begin, end = first // count, -(-(first + rows) // count)
    numbers = np.arange(begin * count, end * count, dtype=np.uint64)
    bits = bits_of(numbers, seed, FOLDS).reshape(-1, count)
    places = np.argsort(np.argsort(bits, axis=1), axis=1)
    return np.asarray(places.reshape(-1)[first - begin * count :][:rows], np.int64)


def together(groups: U64, first: int) -> U64:
    """A number for each row that is the same for rows of a group; a row without a group, 0, is alone."""
    return np.where(groups == 0, np.arange(first, first + len(groups), dtype=np.uint64), groups)
