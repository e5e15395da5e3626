"""Rows in memory as compact arrays, in the order in which they came."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, Place

BLOCK_BYTES = 64 << 20
"""Memory for this much is reserved at once. Only what is written takes memory."""
MOST_ROWS, MOST_VALUES = 1 << 15, 1 << 18
"""Maximum size of a chunk that is yielded, unless one row has more values."""
_IN_CACHE = 1 << 14
"""Keys that are mixed at a time: 2.6 ns each; all at once, 13."""


class CompactRows:
    """Copies of rows, without places and tags: 12 bytes per non-zero, 16 per row.

    Labels beyond the first take 4 bytes each, groups 8.
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, chunk: Chunk) -> None:
        """Append copies of all rows of `chunk`."""
        done = 0
        while done < len(chunk):
            if not self._blocks or not self._blocks[-1].room(chunk, done):
                self._blocks.append(_Block(chunk, done))
            done = self._blocks[-1].add(chunk, done)
        self._count += len(chunk)

    def chunks(self, first: int = 0) -> Iterator[Chunk]:
        """The rows from row `first` on, in chunks that do not depend on how the rows came.

        In a `Place`, offset and line both count rows.
        """
        before = 0
        for block in self._blocks:
            whole, lo = block.chunk(), max(first - before, 0)
            while lo < len(whole):
                hi = int(np.searchsorted(whole.indptr, whole.indptr[lo] + MOST_VALUES, side="right")) - 1
                hi = min(max(hi, lo + 1), lo + MOST_ROWS, len(whole))
                begin, end = before + lo, before + hi
                yield whole.rows(lo, hi).at(Place(0, begin, begin), Place(0, end, end))
                lo = hi
            before += len(whole)


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
        places = len(self._met)
        empty = max(places - int(np.count_nonzero(self._met)), 1)
        return round(-places * math.log(empty / places))


class _Block:
    """A piece of memory for rows: one large array, which returns to the system at once when it is freed."""

    def __init__(self, like: Chunk, row: int) -> None:
        """For rows like those of `like`, the first of which is row `row`."""
        self._width = 0 if like.targets is None else like.targets.shape[1]
        grouped = like.groups is not None
        rows = max(1, BLOCK_BYTES // (16 + 4 * self._width + 8 * grouped))
        values = max(BLOCK_BYTES // 12, int(like.indptr[row + 1] - like.indptr[row]))
        spans: list[tuple[int, Any]] = [
            (rows + 1, np.int64),
            (values, np.uint64),
            (rows * grouped, np.uint64),
        ]
        spans += [(values, np.float32), (rows, np.float32), (rows, np.float32)]
        spans += [(rows * self._width, np.float32)]
        root = np.empty(sum(length * np.dtype(kind).itemsize for length, kind in spans), np.uint8)
        arrays, at = list[NDArray[Any]](), 0
        for length, kind in spans:
            size = length * np.dtype(kind).itemsize
            arrays.append(root[at : at + size].view(kind))
            at += size
        self._indptr, self._keys, self._groups, self._values, self._labels, self._weights, targets = arrays
        self._targets = targets.reshape(rows, self._width) if self._width else None
        self._rows = self._nnz = self._indptr[0] = 0

    def room(self, chunk: Chunk, row: int) -> int:
        """How many rows of `chunk` fit, from `row` on."""
        most = int(chunk.indptr[row]) + len(self._keys) - self._nnz
        fitting = int(np.searchsorted(chunk.indptr, most, side="right")) - 1 - row
        return min(fitting, len(self._labels) - self._rows)

    def add(self, chunk: Chunk, row: int) -> int:
        """Append copies of the rows that fit, from `row` on; return the first that does not."""
        rows = chunk.rows(row, row + self.room(chunk, row))
        begin, first = self._rows, self._nnz
        end, last = begin + len(rows), first + rows.nnz
        np.add(rows.indptr[1:], first, out=self._indptr[begin + 1 : end + 1])
        self._keys[first:last], self._values[first:last] = rows.keys, rows.values
        self._labels[begin:end], self._weights[begin:end] = rows.labels, rows.weights
        if self._targets is not None:
            self._targets[begin:end] = rows.targets
        if len(self._groups):
            self._groups[begin:end] = 0 if rows.groups is None else rows.groups
        self._rows, self._nnz = end, last
        return row + len(rows)

    def chunk(self) -> Chunk:
        """All rows, as views."""
        rows, nnz = self._rows, self._nnz
        return Chunk(
            self._indptr[: rows + 1],
            self._keys[:nnz],
            self._values[:nnz],
            self._labels[:rows],
            self._weights[:rows],
            targets=None if self._targets is None else self._targets[:rows],
            groups=self._groups[:rows] if len(self._groups) else None,
        )
