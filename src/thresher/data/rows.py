"""Rows: examples in memory that can be taken in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.engine.jit import kernel

_GROWTH = 1.25


@kernel
def _gather(starts, keys, values, rows, indptr, out_keys, out_values):  # type: ignore[no-untyped-def]
    """Copy the keys and values of `rows` to the places in `indptr`."""
    for i in range(len(rows)):
        to = indptr[i]
        for k in range(starts[rows[i]], starts[rows[i] + 1]):
            out_keys[to] = keys[k]
            out_values[to] = values[k]
            to += 1


class Rows:
    """Concatenated chunks: 12 bytes per non-zero and 16 per row, up to a quarter more while it grows.

    Places and tags are not kept.
    """

    def __init__(self) -> None:
        self._count = self._nnz = 0
        self._starts = np.zeros(1, np.int64)
        self._keys, self._values = np.empty(0, np.uint64), np.empty(0, np.float32)
        self._labels, self._weights = np.empty(0, np.float32), np.empty(0, np.float32)
        self._targets: NDArray[np.float32] | None = None
        self._groups: NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        return self._count

    def add(self, chunk: Chunk) -> None:
        """Append a copy of all rows of `chunk`."""
        count, nnz = self._count + len(chunk), self._nnz + chunk.nnz
        _make_room(nnz, self._keys, self._values)
        _make_room(count, self._labels, self._weights)
        _make_room(count + 1, self._starts)
        self._starts[self._count + 1 : count + 1] = chunk.indptr[1:] + self._nnz
        self._keys[self._nnz : nnz], self._values[self._nnz : nnz] = chunk.keys, chunk.values
        self._labels[self._count : count], self._weights[self._count : count] = chunk.labels, chunk.weights
        if chunk.targets is not None:
            if self._targets is None:
                self._targets = np.empty((0, chunk.targets.shape[1]), np.float32)
            _make_room(count, self._targets)
            self._targets[self._count : count] = chunk.targets
        if chunk.groups is not None:
            self._groups = np.empty(0, np.uint64) if self._groups is None else self._groups
            _make_room(count, self._groups)
            self._groups[self._count : count] = chunk.groups
        self._count, self._nnz = count, nnz

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows (n,), in this order."""
        kept = self.take(rows)
        self._count, self._nnz = len(kept), kept.nnz
        self._starts, self._keys, self._values = kept.indptr, kept.keys, kept.values
        self._labels, self._weights, self._targets = kept.labels, kept.weights, kept.targets
        self._groups = kept.groups

    def trim(self) -> None:
        """Release unused memory."""
        _resize(self._nnz, self._keys, self._values)
        _resize(self._count, self._labels, self._weights)
        _resize(self._count + 1, self._starts)
        if self._targets is not None:
            _resize(self._count, self._targets)
        if self._groups is not None:
            _resize(self._count, self._groups)

    def take(self, rows: NDArray[np.int64]) -> Chunk:
        """Copies of these rows (n,), in this order."""
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self._starts[rows + 1] - self._starts[rows], out=indptr[1:])
        keys, values = np.empty(indptr[-1], np.uint64), np.empty(indptr[-1], np.float32)
        _gather(self._starts, self._keys, self._values, rows, indptr, keys, values)
        targets = None if self._targets is None else self._targets[rows]
        groups = None if self._groups is None else self._groups[rows]
        return Chunk(
            indptr, keys, values, self._labels[rows], self._weights[rows], targets=targets, groups=groups
        )


def _make_room(need: int, *arrays: NDArray[Any]) -> None:
    """Grow arrays of equal length to at least `need` entries or rows."""
    have = len(arrays[0])
    if need > have:
        _resize(max(need, int(have * _GROWTH)), *arrays)


def _resize(length: int, *arrays: NDArray[Any]) -> None:
    """Resize in place, so that old and new arrays need not fit in memory together."""
    for array in arrays:
        array.resize((length, *array.shape[1:]), refcheck=False)
