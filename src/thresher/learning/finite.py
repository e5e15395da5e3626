"""Weights stay finite: which examples may break that, and what is checked when they are learned."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.engine.preparing import any_beyond

EXTREME = np.float32(2.0**61)
"""The squares of a few such values overflow float32 once summed. Nanoseconds since 1970 stay below it."""


class DivergedError(ArithmeticError, ValueError):
    """A loss, a weight, or anything else that learning goes on from is no longer finite."""

    def __init__(
        self, what: str, remedy: str = "try a smaller step size, or scale features and labels"
    ) -> None:
        super().__init__(f"{what}: {remedy}")


class NothingLearnedWarning(UserWarning):
    """An example changed no weight, although it had a loss: the sum of its squared values overflowed."""


def is_finite(array: NDArray[Any]) -> bool:
    """Whether all of it is finite, as integers always are."""
    if array.dtype.kind != "f" or not array.size:
        return True
    return bool(np.isfinite(array.min()) and np.isfinite(array.max()))  # takes no memory; NaN spreads


def first_broken(rows: NDArray[Any]) -> int:
    """The first row that is not finite throughout, -1 for none."""
    if is_finite(rows):
        return -1
    return int(np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1))[0])


def has_extremes(chunk: Chunk) -> bool:
    """Whether there is a value so large that what is learned from it may not be finite."""
    return bool(any_beyond(read_only(chunk.values), EXTREME))


def is_extreme(*arrays: NDArray[Any] | None) -> bool:
    """Whether a number in any of the arrays may leave weights that are not finite."""
    return any(array is not None and bool((np.abs(array) >= EXTREME).any()) for array in arrays)


def ranges(chunk: Chunk, batch: int, begin: int) -> Iterator[tuple[int, int, bool]]:
    """The rows of `chunk` from `begin` on, which begin with a batch, as ``lo, hi, extreme``.

    A batch with extreme values is a range of its own.
    """
    if begin == len(chunk):
        return
    places = np.flatnonzero(np.abs(chunk.values) >= EXTREME)
    rows = np.searchsorted(chunk.indptr, places, side="right") - 1
    lo = begin
    for first in (np.unique(rows[rows >= begin] // batch) * batch).tolist():
        if lo < first:
            yield lo, first, False
        lo = min(first + batch, len(chunk))
        yield first, lo, True
    if lo < len(chunk):
        yield lo, len(chunk), False


def broken_row(loop: Any, chunk: Chunk) -> int:
    """A row of the features of `chunk` that is not finite, -1 for none."""
    rows = _rows_of(loop, chunk)
    place = first_broken(loop.S[rows])
    return place if place < 0 else int(rows[place])


def _rows_of(loop: Any, chunk: Chunk) -> NDArray[Any]:
    found = loop.index.find(*(read_only(a) for a in (chunk.keys, chunk.indptr, chunk.values)))
    rows: NDArray[Any] = found.rows[: found.indptr[-1]]
    return rows


class Before:
    """The rows of the features of `chunk`, as they were before it was learned."""

    def __init__(self, loop: Any, chunk: Chunk) -> None:
        self._loop, self.chunk = loop, chunk
        self._state, self._losses = self._now(), loop.losses

    def _now(self) -> tuple[NDArray[Any], NDArray[Any]]:
        own = len(self._loop.rule.SLOTS)  # the columns behind them keep an average
        return self._loop.S[_rows_of(self._loop, self.chunk), :own], self._loop.B[:, :own].copy()

    def taught_nothing(self) -> bool:
        """Whether there was a loss, its squares overflow, and nothing has changed."""
        return (
            self._loop.losses > self._losses
            and self._overflows()
            and all(np.array_equal(a, b) for a, b in zip(self._state, self._now(), strict=True))
        )

    def _overflows(self) -> bool:
        ends = self.chunk.indptr
        with np.errstate(over="ignore"):
            squares = np.square(self.chunk.values, dtype=self._loop.dtype)
            sums = [squares[lo:hi].sum() for lo, hi in pairwise(ends)]
        return not np.isfinite(sums).all()
