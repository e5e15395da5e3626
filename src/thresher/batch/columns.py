"""All examples of a source in memory, stored by feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.source import Source
from thresher.engine.compile.jit import kernel

_SPARSE = 4
"""Keys are numbered by a lookup table instead of sorting, up to this many times the stored values."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureColumns:
    """n examples with d features in compressed columns; an intercept, if any, is column d.

    Rows ascend within a column.
    """

    keys: NDArray[np.uint64]
    """(d,) feature keys, ascending"""
    starts: NDArray[np.int64]
    """column j is ``rows[starts[j]:starts[j + 1]]``"""
    rows: NDArray[np.int32]
    """(nnz,) index of the example"""
    values: NDArray[np.float32]
    """(nnz,)"""
    labels: NDArray[np.float64]
    """(n,)"""
    weights: NDArray[np.float64]
    """(n,) importance weights"""
    base: NDArray[np.float64]
    """(n,) what is added to the margins: see `Chunk.base`"""

    @property
    def intercept(self) -> bool:
        """Whether there is a column for the intercept."""
        return len(self.starts) == len(self.keys) + 2


def rows_of(source: Source) -> Chunk:
    """All rows of a pass, also those of importance 0; raises the errors of the source."""
    return concat([concat([chunk]) for chunk in source.chunks()])


def in_columns(whole: Chunk, intercept: bool) -> FeatureColumns:
    """The examples of a chunk by feature; OverflowError for more than 2**31 - 1.

    Takes 24 bytes per stored value at the peak, with those of the chunk, and 8 afterwards.
    """
    if len(whole) > np.iinfo(np.int32).max:
        raise OverflowError(f"{len(whole):,} examples: the batch solver takes at most 2**31 - 1")
    # the distinct keys, ascending, and the index of each of the stored ones among them
    top = int(whole.keys.max(initial=0))
    if top >= _SPARSE * (len(whole.keys) + 1024):
        keys, number = np.unique(whole.keys, return_inverse=True)
        column = number.astype(np.int32)
        del number
    else:
        met = np.zeros(top + 1, np.bool_)
        met[whole.keys] = True
        column = np.cumsum(met, dtype=np.int32)[whole.keys]
        column -= 1
        keys = np.flatnonzero(met).astype(np.uint64)
        del met
    counts = np.bincount(column, minlength=len(keys))
    if intercept:
        counts = np.append(counts, len(whole))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    _transpose(whole.indptr, column, whole.values, starts[:-1].copy(), rows, values)
    if intercept:
        rows[starts[-2] :], values[starts[-2] :] = np.arange(len(whole)), 1.0
    labels, weights = whole.labels.astype(np.float64), whole.weights.astype(np.float64)
    return FeatureColumns(keys, starts, rows, values, labels, weights, whole.base())


@kernel
def _transpose(
    indptr: NDArray[np.int64],
    column: NDArray[np.int32],
    given: NDArray[np.float32],
    ends: NDArray[np.int64],
    rows: NDArray[np.int32],
    values: NDArray[np.float32],
) -> None:
    """Append every value to its column; `ends` holds the next free position of each column."""
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            place = ends[column[p]]
            ends[column[p]] = place + 1
            rows[place] = i
            values[place] = given[p]
