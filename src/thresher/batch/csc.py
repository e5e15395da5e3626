"""Columns: all examples of a source in memory, stored by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.engine.jit import kernel

_SPARSE = 4
"""Keys are numbered by a lookup table instead of sorting, up to this many times the stored values."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """n examples with d features in compressed columns; an intercept, if any, is column d.

    Values are multiplied by the label, y x, so that a positive one supports a positive weight. Rows ascend
    within a column.
    """

    keys: NDArray[np.uint64]
    """(d,) feature keys, ascending"""
    starts: NDArray[np.int64]
    """column j is ``rows[starts[j]:starts[j + 1]]``"""
    rows: NDArray[np.int32]
    """(nnz,) index of the example"""
    values: NDArray[np.float32]
    """(nnz,) y x"""
    labels: NDArray[np.float64]
    """(n,) +1 or -1"""
    weights: NDArray[np.float64]
    """(n,) importance weights"""
    lowest_label: float
    """the label of the negative class in the data, 0 or -1"""

    @property
    def features(self) -> int:
        """Number of features, d."""
        return len(self.keys)

    @property
    def intercept(self) -> bool:
        """Whether there is a column for the intercept."""
        return len(self.starts) == self.features + 2


def columns_of(source: Any, intercept: bool) -> Columns:
    """Read a whole pass of `source`, whose labels are +1 and either -1 or 0.

    Takes 24 bytes per stored value at the peak and 8 afterwards. Raises the errors of the source, and
    OverflowError for more than 2**31 - 1 examples.
    """
    whole = concat([concat([chunk]) for chunk in source.chunks()])
    counting = whole.counting()
    return in_columns(counting if len(counting) else whole, intercept)


def in_columns(whole: Chunk, intercept: bool) -> Columns:
    """The examples of a chunk by feature; OverflowError for more than 2**31 - 1."""
    if len(whole) > np.iinfo(np.int32).max:
        raise OverflowError(f"{len(whole):,} examples: the batch solver takes at most 2**31 - 1")
    keys, column = _numbered(whole.keys)
    labels = np.where(whole.labels > 0, 1.0, -1.0)
    counts = np.bincount(column, minlength=len(keys))
    if intercept:
        counts = np.append(counts, len(whole))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    _transpose(whole.indptr, column, whole.values, labels, intercept, starts[:-1].copy(), rows, values)
    lowest = min(0.0, float(whole.labels.min(initial=0.0)))
    return Columns(keys, starts, rows, values, labels, _importance(whole), lowest)


def _importance(chunk: Chunk) -> NDArray[np.float64]:
    return chunk.weights.astype(np.float64)


def _numbered(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The distinct keys, ascending, and the index of each of `keys` among them."""
    top = int(keys.max(initial=0))
    if top >= _SPARSE * (len(keys) + 1024):
        different, number = np.unique(keys, return_inverse=True)
        return different, number.astype(np.int32)
    met = np.zeros(top + 1, np.bool_)
    met[keys] = True
    place = np.cumsum(met, dtype=np.int32)[keys]
    place -= 1
    return np.flatnonzero(met).astype(np.uint64), place


@kernel
def _transpose(
    indptr: Any, column: Any, given: Any, labels: Any, intercept: Any, ends: Any, rows: Any, values: Any
) -> None:
    """Append every value to its column; `ends` holds the next free position of each column."""
    for i in range(labels.size):
        for p in range(indptr[i], indptr[i + 1]):
            place = ends[column[p]]
            ends[column[p]] = place + 1
            rows[place] = i
            values[place] = labels[i] * given[p]
        if intercept:
            place = ends[ends.size - 1] + i
            rows[place] = i
            values[place] = labels[i]
