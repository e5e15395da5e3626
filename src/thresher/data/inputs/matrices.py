"""Rows in memory: how many keys they have, draws and hashes of them; data that are known by their rows."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, StreamPosition, read_only
from thresher.data.files.content import Content, change_error
from thresher.data.source import Chunks, Source, SourceWrapper
from thresher.engine.compile.jit import kernel

_IN_CACHE = 1 << 14
"""Keys that are mixed at a time: 2.6 ns each; all at once, 13."""


class DistinctKeys:
    """How many different keys were met, within a few per thousand up to millions.

    The number depends on the set of keys alone: not on their order, nor on how a model stores them. Each key
    marks one of m places; from the share of places without a mark, z, there are about -m log(z) keys
    (Whang, Vander-Zanden and Taylor (1990), linear counting).
    """

    _BITS = 20
    _ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)

    def __init__(self) -> None:
        self._met = np.zeros(1 << self._BITS, bool)

    def add(self, keys: NDArray[np.uint64]) -> None:
        """Keys, some of which may have been met."""
        for first in range(0, len(keys), _IN_CACHE):
            mixed = keys[first : first + _IN_CACHE] * self._ODD[0]
            mixed ^= mixed >> np.uint64(32)  # one product spreads consecutive keys too evenly
            mixed *= self._ODD[1]
            self._met[(mixed >> np.uint64(64 - self._BITS)).view(np.int64)] = True

    @property
    def count(self) -> int:
        """The number of different keys."""
        places, marked = len(self._met), int(np.count_nonzero(self._met))
        return round(-places * math.log(max(places - marked, 1) / places))

    @classmethod
    def of(cls, keys: NDArray[np.uint64]) -> int:
        """The number of different `keys`."""
        counted = cls()
        counted.add(keys)
        return counted.count


MOST_COPIES = 16
"""Largest number of copies of an example; if its weight is larger, each copy weighs more than 1."""
_U1, _U2, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(32)
_W1, _W2, _W3, _W4 = (np.uint32(c) for c in (0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F))
_W5, _W6 = np.uint32(15), np.uint32(13)
_ONE = np.uint64(1)

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]


@kernel
def _copy_row(indices, data, last, keys, values):
    """Copy one row; False if its keys are unsorted, or a key or value is invalid."""
    least = np.uint64(0)
    for k in range(len(keys)):
        key, value = np.uint64(indices[k]), np.float32(data[k])
        if key < least or key > last or not abs(value) < np.inf:
            return False
        keys[k], values[k] = key, value
        least = key + _ONE
    return True


@kernel
def _hash(starts, indices, data, longest, out):
    """A hash of the keys and values of each row, whatever their order.

    It consists of two 32-bit sums, since vector instructions multiply 32-bit numbers.
    """
    numbers = np.empty(longest, np.float32)
    bits = numbers.view(np.uint32)
    for i in range(len(out)):
        begin, size = np.uint64(starts[i]), starts[i + 1] - starts[i]
        for k in range(size):
            numbers[k] = np.float32(data[begin + np.uint64(k)])
        one, other = np.uint32(0), np.uint32(0)
        for k in range(size):
            key = np.uint64(indices[begin + np.uint64(k)])
            key ^= key >> _HALF
            word = (np.uint32(key) + _W1) * _W2 ^ bits[k] * _W3
            word = (word ^ (word >> _W5)) * _W4
            one += word ^ (word >> _W6)
            word = (word ^ bits[k] ^ (word >> _W6)) * _W3
            other += word ^ (word >> _W5)
        out[i] = np.uint64(one) << _HALF | np.uint64(other)


def hashes_of(matrix: Chunk) -> U64:
    """A hash of each example, including its labels and offset, but not its importance."""
    out = np.empty(len(matrix), np.uint64)
    longest = int(np.diff(matrix.indptr).max(initial=0))
    own, more = (read_only(matrix.indptr), read_only(matrix.keys)), np.zeros_like(out)
    _hash(*own, read_only(matrix.values), longest, out)
    if matrix.rests is not None:
        _hash(*own, read_only(matrix.rests), longest, more)
        out ^= mix_bits(more)
    all_labels = matrix.labels[:, np.newaxis] if matrix.targets is None else matrix.targets
    offsets = [] if matrix.offsets is None else [matrix.offsets]
    for column in (*np.ascontiguousarray(all_labels.T), *offsets):
        out = mix_bits(out ^ (column.view(np.uint32).astype(np.uint64) * _U1))
    return out


_IMPORTANCE = read_only(np.ones(1, np.float32))


def one_row(indices: NDArray[Any], data: NDArray[Any], last: np.uint64, label: float) -> Chunk | None:
    """One example of importance 1, in a few microseconds; None if it needs the checks of a matrix."""
    size = len(indices)
    keys, values = np.empty(size, np.uint64), np.empty(size, np.float32)
    if len(data) != size or not _copy_row(indices, data, last, keys, values):
        return None
    indptr, labels = np.array((0, size), np.int64), np.array((label,), np.float32)
    for array in (indptr, keys, values, labels):
        array.flags.writeable = False
    return Chunk(indptr, keys, values, labels, _IMPORTANCE)


def mix_bits(words: U64) -> U64:
    """Mix the bits of each word: every bit of the result depends on every bit of the word."""
    words = (words ^ (words >> _HALF)) * _U1
    words = (words ^ (words >> np.uint64(29))) * _U2
    return words ^ (words >> _HALF)


class Draw(NamedTuple):
    """The rows of a matrix to learn, in order (a row may repeat), and their importance weights."""

    rows: I64
    weights: F32

    def take(self, places: NDArray[Any] | slice) -> Draw:
        """The entries at `places`, given as indices, as a mask or as a slice."""
        return Draw(self.rows[places], self.weights[places])


def in_order(weights: NDArray[Any]) -> Draw:
    """The rows in their own order, without those of weight zero."""
    rows = np.flatnonzero(weights)
    return Draw(rows, np.asarray(weights, np.float32)[rows])


def as_copies(weights: NDArray[Any]) -> Draw:
    """Repeat each row as often as it weighs: weight 2.5 gives two copies, and a third of importance 0.5.

    A weight over `MOST_COPIES` gives that many copies of equal importance.
    """
    whole = np.minimum(np.ceil(weights), MOST_COPIES).astype(np.int64)
    rows = np.repeat(np.arange(len(weights)), whole)
    each = np.where(weights > MOST_COPIES, weights / MOST_COPIES, 1.0)[rows]
    last = np.cumsum(whole)[whole > 0] - 1
    fraction = weights - np.floor(weights)
    fractional = (fraction > 0) & (weights < MOST_COPIES)
    each[last[fractional[whole > 0]]] = fraction[fractional]
    return Draw(rows, each.astype(np.float32))


def by_content(matrix: Chunk, draw: Draw, seed: int) -> I64:
    """A permutation of `draw` that depends only on its examples and `seed`, not on their order.

    Equal examples are numbered, and each is placed by the hash of example, importance and number.
    """
    weights = draw.weights.view(np.uint32).astype(np.uint64)
    hashes = mix_bits(hashes_of(matrix)[draw.rows] ^ (weights * _U2) ^ mix_bits(np.full(1, seed, np.uint64)))
    order = np.argsort(hashes)  # need not be stable: equal hashes mean equal examples
    ascending = hashes[order]
    again = np.concatenate([[False], ascending[1:] == ascending[:-1]])
    if again.any():
        place = np.arange(len(order))
        first = np.maximum.accumulate(np.where(again, 0, place))
        order = order[np.argsort(mix_bits(ascending + (place - first).astype(np.uint64) * _U1))]
    return order


_MASK = (1 << 64) - 1


def identify(source: Source) -> Source:
    """`source` if it can identify its content, as file sources can; otherwise `source` in a `ByRows`."""
    known = source.origin is not None or source.is_log
    return source if known or isinstance(source, ByRows) else ByRows(source)


class ByRows(SourceWrapper[Source]):
    """A source whose content is identified by the number of its rows and the sum of their hashes.

    Each pass may yield the rows in a different order, as a query does, but they must be the same rows.
    """

    keep_hash = False
    content: Sequence[Content] = ()
    _whole = False
    _missing: int | None = None
    """number of rows expected, until this pass has read them all; then None"""

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read: all rows (`whole`), or the first ones."""
        self.keep_hash, self.content, self._whole = True, content, whole

    def confirm(self) -> None:
        """Raise `DataError` unless everything expected has been read."""
        if self._missing is not None:
            raise change_error(self._source.names[0], self._missing, self._missing, "rows")

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """One pass; with `keep_hash`, raises `DataError` if its rows differ from those read before."""
        if not self.keep_hash:
            yield from self._source.chunks(start)
            return
        before, rows, total = [*self.content, Content(0, 0)][0], 0, 0
        self._missing = before.size or None
        with closing(self._source.chunks()) as chunks:
            for chunk in chunks:
                weights = chunk.weights.view(np.uint32).astype(np.uint64)
                hashes = mix_bits(hashes_of(chunk) ^ (weights * _U1))
                rows, total = rows + len(chunk), (total + int(hashes.sum(dtype=np.uint64))) & _MASK
                if rows == before.size:
                    if total != before.hash:
                        raise change_error(self._source.names[0], rows, rows, "rows")
                    self._missing = None
                if rows > before.size and not self._whole:
                    self.content = [Content(total, rows)]
                if start is None or (chunk.place is not None and chunk.place >= start):
                    yield chunk
        if rows < before.size or (self._whole and rows > before.size):
            raise change_error(self._source.names[0], rows, before.size, "rows")
        self.content, self._whole = [Content(total, rows)], True
