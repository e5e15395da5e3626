"""How often rows are passed over if nobody says, ``passes="auto"``, within a budget of memory, ``replay``."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.learning.checks import check_whole
from thresher.learning.recipe import Recipe

AUTO = "auto"
REPLAY = "64MB"
"""The budget if nobody says; about 129,000 rows of 40 features."""
MOST_PASSES = 10**9
MOST_REPLAY = 1 << 50
_CROWDED, _ROOMY = 15, 30
"""Examples for each feature up to which later passes soon bring noise, and from which they bring none."""
_MANY, _FEW, _LEAST = 40, 5, 3
"""Passes over rows that are roomy, over crowded ones, and over very many rows."""
_WORK = 4_000_000
"""Non-zeros in all passes from which there are only `_LEAST`: about a tenth of a second."""
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?B)?", re.IGNORECASE)


class Size(NamedTuple):
    """How many rows there are, and the memory that they take as compact rows.

    Rows of importance 0 do not count.
    """

    rows: int = 0
    nonzeros: int = 0
    bytes: int = 0
    """12 for each non-zero, 16 for each row, 4 for each of several labels of a row, 8 for its group"""
    features: int = 0
    """distinct features in them, if they have been counted"""

    def plus(self, chunk: Chunk) -> Size:
        """With the rows of `chunk`."""
        counting = chunk.weights > 0
        rows = int(np.count_nonzero(counting))
        nonzeros = chunk.nnz if rows == len(chunk) else int(np.diff(chunk.indptr)[counting].sum())
        each = 16 + (0 if chunk.targets is None else 4 * chunk.targets.shape[1])
        each += 0 if chunk.groups is None else 8
        size = self.bytes + 12 * nonzeros + each * rows
        return Size(self.rows + rows, self.nonzeros + nonzeros, size, self.features)

    def times(self, factor: float) -> Size:
        """So many times as many rows, with the same features."""
        rows, nonzeros, size = (round(number * factor) for number in self[:3])
        return Size(rows, nonzeros, size, self.features)


def passes_for(size: Size) -> int:
    """How many passes are made over rows of this size, which fit in the budget.

    A table of 600 rows and 20 columns, one of 450, 2,000 rows of text, and a million rows of few columns:

    >>> passes_for(Size(600, 12_000, features=20)), passes_for(Size(450, 9_000, features=20))
    (40, 22)
    >>> passes_for(Size(2_000, 184_000, features=4_800))
    5
    >>> passes_for(Size(1_000_000, 4_000_000, features=50))
    3
    """
    if not size.rows:
        return 1
    least, most = _CROWDED * size.features, _ROOMY * size.features
    beyond = min(max(size.rows, least), most) - least
    passes = _FEW + (_MANY - _FEW) * beyond // max(most - least, 1) if size.features else _MANY
    return min(passes, max(_LEAST, _WORK // max(size.nonzeros, 1)))


def bytes_of(replay: int | str) -> int:
    """A budget in bytes; 0: never replay. ValueError.

    >>> bytes_of("64MB"), bytes_of("1.5 GB"), bytes_of(0)
    (64000000, 1500000000, 0)
    """
    if not isinstance(replay, str):
        check_whole("replay", replay, 0, MOST_REPLAY)
        return int(replay)
    found = _SIZE.fullmatch(replay.strip())
    if found is None or (size := float(found[1]) * _UNITS[(found[2] or "").upper()]) > MOST_REPLAY:
        raise ValueError(f"replay must be a size such as 64MB or 1GB, or 0 for never, not {replay!r}")
    return int(size)


def check_passes(passes: int | str) -> None:
    """ValueError unless `passes` is a number of passes or ``auto``."""
    if isinstance(passes, str):
        if passes != AUTO:
            raise ValueError(f"passes must be a whole number, 1 or more, or 'auto', not {passes!r}")
        return
    check_whole("passes", passes, 1, MOST_PASSES)


def bytes_to_keep(replay: int, repeats: bool, cause: str) -> int:
    """The bytes to keep: `replay`, or none unless rows are passed over again. `DataError` if asked for.

    `cause` says what makes one pass of ``passes="auto"``.
    """
    if repeats or replay in (0, bytes_of(REPLAY)):
        return replay if repeats else 0
    raise DataError(
        f"with {cause}, --passes auto is one pass, which keeps no rows: leave --replay out, or use --passes 5"
    )


def is_automatic(recipe: Recipe) -> bool:
    """Whether ``passes="auto"`` may make several passes with the rule of this recipe."""
    return bool(type(recipe.make_rule()).AUTOMATIC)


def agreed_passes(passes: int | str, replay: int | str) -> tuple[int, int]:
    """The fields `passes` and `replay` of a `Plan`, from what the user said. ValueError.

    >>> agreed_passes("auto", "64MB"), agreed_passes(5, "64MB")
    ((1, 64000000), (5, 0))
    """
    budget = bytes_of(replay)
    check_passes(passes)
    if passes == AUTO:
        return 1, budget
    if budget not in (0, bytes_of(REPLAY)):
        raise ValueError(
            f"replay has no effect with {passes} passes, which read the data again: leave it out, or let"
            " passes be auto"
        )
    return int(passes), 0
