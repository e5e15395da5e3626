"""Rows of CSR arrays of any number types, handed out as Chunks in any order."""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, Place
from thresher.data.errors import DataError
from thresher.data.report import Report
from thresher.engine.jit import kernel
from thresher.engine.tables import fetch

PIECE = 1 << 17
"""Non-zeros of an outgoing chunk: it is learned while it lies in a cache"""
MOST_COPIES = 16
"""An example may stand for so many of weight 1; beyond, each copy weighs more."""
_C1, _C2, _C3 = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9
_U1, _U2, _U3, _HALF = np.uint64(_C1), np.uint64(_C2), np.uint64(_C3), np.uint64(32)
_ONE, _LAST = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_SORTED, _UNSORTED = -1, -2
_FAR, _LINE = 4, 8
"""Rows ahead that are fetched, and how many numbers of eight bytes a line of the cache has."""

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]


@kernel
def _copy(starts, indices, data, last, rows, indptr, keys, values):
    """Copy `rows` to where `indptr` says. `_SORTED`, `_UNSORTED`, or a row with a bad number or key."""
    found = _SORTED
    for i in range(len(rows)):
        if i + _FAR < len(rows):
            begin, end = starts[rows[i + _FAR]], starts[rows[i + _FAR] + 1]
            for k in range(begin, end, _LINE):
                fetch(indices, np.uint64(k))
                fetch(data, np.uint64(k))
        to, least = indptr[i], np.uint64(0)
        for k in range(starts[rows[i]], starts[rows[i] + 1]):
            key, value = np.uint64(indices[k]), np.float32(data[k])
            if key < least:
                found = _UNSORTED
            if key > last or not abs(value) < np.inf:
                return rows[i]
            keys[to], values[to] = key, value
            least = key + _ONE
            to += 1
    return found


@kernel
def _hash(starts, indices, data, out):
    """A hash of each row: of which numbers stand under which keys, in whatever order."""
    number = np.zeros(1, np.float32)
    bits = number.view(np.uint32)
    for i in range(len(out)):
        total = np.uint64(0)
        for k in range(starts[i], starts[i + 1]):
            number[0] = data[k]
            word = (np.uint64(indices[k]) + _U3) * _U1 ^ np.uint64(bits[0]) * _U2
            total += (word ^ (word >> _HALF)) * _U3
        out[i] = total


class Matrix(NamedTuple):
    """n examples: CSR arrays of integers and floats as they come, labels, and targets of many outputs."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    labels: F32
    targets: F32 | None = None
    last: np.uint64 = _LAST
    """the highest key that there may be"""

    @property
    def size(self) -> int:
        """How many examples."""
        return len(self.indptr) - 1

    def take(self, rows: I64, weights: F32, room: Room | None = None) -> Chunk:
        """Copies of these rows (n,), in this order, in `room`; DataError for a number or key that is none."""
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.indptr[rows + 1] - self.indptr[rows], out=indptr[1:])
        keys, values = (room or Room()).of(int(indptr[-1]))
        arrays = read_only(self.indptr), read_only(self.indices), read_only(self.data)
        found = _copy(*arrays, self.last, read_only(rows), indptr, keys, values)
        if found >= 0:
            raise DataError(
                f"row {found + 1} of X holds a number that is not finite in float32, or a column out of range"
            )
        targets = None if self.targets is None else self.targets[rows]
        if found == _UNSORTED:
            labels = self.labels[rows] if targets is None else targets
            return Chunk.from_csr(indptr, keys, values, labels, weights)
        return Chunk(indptr, keys, values, self.labels[rows], weights, targets=targets)

    def hashes(self) -> U64:
        """A hash of each example, its label included: equal for equal ones."""
        out = np.empty(self.size, np.uint64)
        _hash(read_only(self.indptr), read_only(self.indices), read_only(self.data), out)
        said = self.labels[:, np.newaxis] if self.targets is None else self.targets
        for column in np.ascontiguousarray(said.T):
            out = mixed(out ^ (column.view(np.uint32).astype(np.uint64) * _U1))
        return out


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written through: one compiled kernel serves both kinds of array."""
    view = array.view()
    view.flags.writeable = False
    return view


class Room:
    """Arrays that are used again for one chunk after the other."""

    def __init__(self) -> None:
        self._keys, self._values = np.empty(0, np.uint64), np.empty(0, np.float32)

    def of(self, nnz: int) -> tuple[U64, F32]:
        """Keys and values for so many numbers."""
        if nnz > len(self._keys):
            self._keys, self._values = np.empty(nnz, np.uint64), np.empty(nnz, np.float32)
        return self._keys[:nnz], self._values[:nnz]


def mixed(words: U64) -> U64:
    """Every bit of the result depends on every bit of the word."""
    words = (words ^ (words >> _HALF)) * _U1
    words = (words ^ (words >> np.uint64(29))) * _U2
    return words ^ (words >> _HALF)


class Draw(NamedTuple):
    """Which rows of a matrix are learned, one after the other, and the importance of each time."""

    rows: I64
    weights: F32

    @property
    def size(self) -> int:
        """How many."""
        return len(self.rows)

    def take(self, places: NDArray[Any]) -> Draw:
        """Those at some places, by number or by flag."""
        return Draw(self.rows[places], self.weights[places])


def in_order(weights: NDArray[Any]) -> Draw:
    """The rows as they come; without those of weight zero."""
    rows = np.flatnonzero(weights)
    return Draw(rows, np.asarray(weights, np.float32)[rows])


def as_copies(weights: NDArray[Any]) -> Draw:
    """Each row as often as it weighs: a row of weight 2.5 twice, and once more with importance 0.5.

    A weight over `MOST_COPIES` is so many copies of equal importance.
    """
    whole = np.minimum(np.ceil(weights), MOST_COPIES).astype(np.int64)
    rows = np.repeat(np.arange(len(weights)), whole)
    each = np.where(weights > MOST_COPIES, weights / MOST_COPIES, 1.0)[rows]
    last = np.cumsum(whole)[whole > 0] - 1
    fraction = weights - np.floor(weights)
    parted = (fraction > 0) & (weights < MOST_COPIES)
    each[last[parted[whole > 0]]] = fraction[parted]
    return Draw(rows, each.astype(np.float32))


def by_content(matrix: Matrix, draw: Draw, seed: int) -> I64:
    """Places of `draw` in an order that its examples and `seed` decide, however they lie.

    The n-th of several equal ones goes where the hash of example, importance and n sends it.
    """
    weights = draw.weights.view(np.uint32).astype(np.uint64)
    hashes = mixed(matrix.hashes()[draw.rows] ^ (weights * _U2) ^ mixed(np.full(1, seed, np.uint64)))
    order = np.argsort(hashes, kind="stable")
    ascending = hashes[order]
    again = np.concatenate([[False], ascending[1:] == ascending[:-1]])
    if again.any():
        place = np.arange(len(order))
        first = np.maximum.accumulate(np.where(again, 0, place))
        order = order[np.argsort(mixed(ascending + (place - first).astype(np.uint64) * _U1), kind="stable")]
    return order


class MatrixSource:
    """The examples of a draw, pass after pass, as a source.

    A chunk is good until the next one is asked for.
    """

    def __init__(self, matrix: Matrix, draw: Draw, shuffle: int | None = None) -> None:
        """`shuffle` is the seed of the order of the passes after the first; None: all as they come."""
        self._matrix, self._draw, self._seed, self._room = matrix, draw, shuffle, Room()
        self.spec = "as-is" if shuffle is None else "every"
        self.names, self.layout = ["memory"], None
        self.total_bytes: int | None = None
        self.position_bytes = 0
        self.report = Report()
        self.rereadable = True
        self._number = 1

    def reads(self, passes: int) -> int:
        """Every pass reads."""
        return passes

    def over(self, source: Any, number: int) -> MatrixSource:
        """Itself, in the order of pass `number`."""
        self._number = number
        return self

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """One pass."""
        draw = self._draw
        if self._number > 1 and self._seed is not None:
            draw = draw.take(np.random.default_rng([self._seed, self._number]).permutation(draw.size))
        lengths = self._matrix.indptr[draw.rows + 1] - self._matrix.indptr[draw.rows]
        ends = np.cumsum(lengths, dtype=np.int64)
        lo = 0
        while lo < draw.size:
            full = PIECE + (ends[lo - 1] if lo else 0)
            hi = max(lo + 1, int(np.searchsorted(ends, full, side="right")))
            chunk = self._matrix.take(draw.rows[lo:hi], draw.weights[lo:hi], self._room)
            yield chunk.at(Place(0, lo, lo), Place(0, hi, hi))
            lo = hi
