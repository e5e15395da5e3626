"""Keep weights finite: find examples that may break this, and check what was learned from them.

Examples with extreme values are learned one at a time. A hinge loss is finite at an infinite margin, so
testing the loss misses a broken weight, and testing each weight would slow the loop. So the loop keeps the
largest value of each example, which is free while it waits for the sum, and stops before an example whose
squares may overflow. Scanning the values beforehand read memory twice (4.1 instead of 3.6 ns per non-zero in
memory); loops of many outputs and lanes still do. Only there is each example checked. Everything else is
found by a minimum and a maximum over the table, before anything is written.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.data.errors import DataError, OneLineError
from thresher.data.layout import SettledLayout
from thresher.engine.index import Resolved, words_of
from thresher.engine.lookup import set_aside
from thresher.engine.protocol import writes
from thresher.engine.sound import Array
from thresher.learning.diagnostics.advice import feature_names

EXTREME = np.float32(2.0**61)
"""The squares of a few such values overflow a float32 sum. Nanoseconds since 1970 are below it."""

HEAVIEST = 1e15
"""Importance times label (at least 1) up to which float32 holds squares of slopes, and any sums of them"""

LIGHT = f"an importance that is at most {HEAVIEST:.0e} (times the label, if that is above 1)"


class Offsets(NamedTuple):
    """The offsets with which no slope of a loss is beyond `HEAVIEST`, whatever the weights have learned."""

    low: float
    high: float

    @classmethod
    def of(cls, loss: Any) -> Offsets:
        """Those of a loss of one output."""
        return cls(-_largest(loss, -1.0), _largest(loss, 1.0))

    @property
    def expected(self) -> str:
        """What is expected of an offset, for messages."""
        exposure = " (of an exposure, give the logarithm)" if self.high < -self.low else ""
        return f"an offset from {self.low:.4g} to {self.high:.4g}, the limits of this loss{exposure}"

    def beyond(self, offsets: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which of the offsets of rows are not among them."""
        return (offsets < self.low) | (offsets > self.high)

    def check(self, offsets: NDArray[np.float32], before: int) -> None:
        """`DataError` for the first row beyond them; `before` examples came before."""
        if (wrong := self.beyond(offsets)).any():
            k = int(np.argmax(wrong))
            found = f"expected {self.expected}, found {offsets[k]:g}"
            raise DataError(f"example {before + k + 1:,}: {found}")


def rows_beyond(
    model: Any, layout: SettledLayout, chunk: Chunk, labelled: bool, learned: bool
) -> list[tuple[NDArray[np.bool_], Iterable[str]]]:
    """For each limit that rows are beyond, which rows, and what was expected of each of these.

    They are rows to predict, or if `labelled` to learn; `learned`: now, or when their labels come.
    """
    found = list[tuple[NDArray[np.bool_], Iterable[str]]]()
    if learned and has_extremes(chunk):
        rows, places = extremes(chunk)
        texts = (
            f"a value below 2^61 ({EXTREME:.2g}) in magnitude, found {chunk.values[at]:.6g} in {name}"
            for at, name in zip(places, feature_names(chunk.keys[places].tolist(), layout), strict=True)
        )
        found.append((np.isin(np.arange(len(chunk)), rows), texts))
    if labelled:
        targets = chunk.labels if chunk.targets is None else chunk.targets
        found.append((too_heavy(targets, chunk.weights), repeat(LIGHT)))
    if model.shifted and chunk.offsets is not None:
        offsets = Offsets.of(model.head.loss)
        found.append((offsets.beyond(chunk.offsets), repeat(offsets.expected)))
    return [one for one in found if one[0].any()]


@functools.lru_cache(typed=True)  # parts of different classes can be equal tuples
def _largest(loss: Any, sign: float) -> float:
    """The largest magnitude of an offset of this sign, to a thousandth."""
    powers = 1e15 ** np.linspace(0, 1, 35_000)

    def heavy(k: Any) -> bool:
        try:
            slopes = [loss.value_slope(sign * float(powers[k]), y)[1] for y in (0.0, 1.0)]
        except ArithmeticError:
            return True
        return not np.abs(slopes).max() <= HEAVIEST

    return float(powers[bisect(range(len(powers)), False, key=heavy) - 1])


class DivergedError(OneLineError, ArithmeticError):
    """A loss, a weight or another part of the learning state is no longer finite."""

    def __init__(
        self, what: str, remedy: str = "try a smaller step size, or scale features and labels"
    ) -> None:
        super().__init__(f"{what}: {remedy}")


def is_finite(array: Array) -> bool:
    """Whether all elements are finite; integers always are."""
    if array.dtype.kind != "f" or not array.size:
        return True
    # Squares may overflow, so the second way decides; NaN propagates in both. For more than 10,000 numbers
    # of float64, BLAS starts threads that wait busily for milliseconds.
    quick = array.itemsize < 8 or array.size <= 10_000
    if quick and math.isfinite(np.vdot(array, array)):
        return True
    return math.isfinite(array.min()) and math.isfinite(array.max())


def first_broken(rows: Array) -> int:
    """The first row with a non-finite element, or -1."""
    if is_finite(rows):
        return -1
    return int(np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1))[0])


def has_extremes(chunk: Chunk) -> bool:
    """Whether a value is so large that learning from it may give non-finite weights."""
    values = chunk.values
    return bool(values.size and max(values.max(), -values.min()) >= EXTREME)


def extremes(chunk: Chunk) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows with extreme values, and the place of the first of each."""
    places = np.flatnonzero(np.abs(chunk.values) >= EXTREME)
    rows, firsts = np.unique(np.searchsorted(chunk.indptr, places, side="right") - 1, return_index=True)
    return rows, places[firsts]


def too_heavy(labels: NDArray[np.float32], importances: NDArray[np.generic]) -> NDArray[np.bool_]:
    """The rows beyond `HEAVIEST`: float32 may not hold what they teach. `labels` are (n,) or (n, outputs)."""
    largest = np.abs(labels if labels.ndim > 1 else labels[:, np.newaxis]).max(axis=1, initial=1)
    heavy: NDArray[np.bool_] = largest.astype(np.float64) * importances > HEAVIEST
    return heavy


def no_margin_fits(loss: Any, label: float) -> bool:
    """Whether the loss of a label is infinite whatever the margin."""
    for margin in (-1.0, 0.0, 1.0):
        with suppress(ArithmeticError, ValueError):  # in plain Python, log(0) raises ValueError
            if np.isfinite(loss.value_slope(margin, label)[0]):
                return False
    return True


def ranges(chunk: Chunk, batch: int, begin: int) -> Iterator[tuple[int, int, bool]]:
    """Split the rows of `chunk` from `begin`, the start of a batch, into ranges ``lo, hi, extreme``.

    A batch with extreme values is a range of its own.
    """
    if begin == len(chunk):
        return
    rows = extremes(chunk)[0] if has_extremes(chunk) else np.empty(0, np.int64)
    lo = begin
    for first in (np.unique(rows[rows >= begin] // batch) * batch).tolist():
        if lo < first:
            yield lo, first, False
        lo = min(first + batch, len(chunk))
        yield first, lo, True
    if lo < len(chunk):
        yield lo, len(chunk), False


class Undo:
    """The state of a loop before a piece is learned, and the way back to it.

    Only the rows of the features of the piece are copied, each once, unless the rule may write others.
    """

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        # of an averaged model all rows, when the ring is full
        self._writes_all = loop.history is not None or any(
            writes(type(loop.rule), verb) for verb in ("constrain", "renorm")
        )
        self._marks, self._mark = np.zeros(0, np.uint32), 0
        """the number of the piece that each row was last a part of, and that of the last piece"""

    def note(self, resolved: Resolved, lo: int) -> None:
        """Keep the state before the examples lo..hi-1 of `resolved` are learned."""
        S, rows = self._loop.S, resolved.rows[resolved.indptr[lo] : resolved.indptr[resolved.hi]]
        self._mark = (self._mark + 1) % (1 << 32)
        if not self._mark or len(self._marks) < len(S):
            self._marks, self._mark = np.zeros(len(S), np.uint32), 1
        words, own = words_of(S), np.empty(len(rows), np.uint32)
        copies = np.empty((len(rows), words.shape[1]), np.uint32)
        count = set_aside(words, read_only(rows), self._marks, np.uint32(self._mark), own, copies)
        self._rows = read_only(own[:count])
        self._table = slice(self._loop.index.used) if self._writes_all else self._rows
        self._before = S[self._table].copy() if self._writes_all else copies[:count]
        self._beside = [one.copy() for one in self._loop.beside_rows()]

    def undone(self) -> bool:
        """Go back if anything that may have been written since is not finite; whether it was so."""
        loop = self._loop
        weights = np.empty((len(self._rows), *loop.S.shape[2:]), loop.dtype)
        loop.read_rows(self._rows, weights)
        written = loop.S[self._table] if self._writes_all else loop.S.take(self._rows, axis=0)
        if all(map(is_finite, (weights, written, loop.intercepts(), *loop.clocks().values()))):
            return False
        words_of(loop.S)[self._table] = words_of(self._before)
        for now, before in zip(loop.beside_rows(), self._beside, strict=True):
            now[...] = before
        return True
