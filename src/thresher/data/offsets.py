"""Offsets: a number for each example that is added to its margin, such as the logarithm of an exposure.

Between the reader and the loops an offset is the last entry of its row, of a feature whose key is `OFFSET`,
also if it is 0. So hold-outs, orders, replays, caches, logs and other processes carry offsets without knowing
of them; a further array of a Chunk would have to go through each of these. What looks at features leaves the
entry out (`without_offsets`), and the loops, and predictions, take it off once for a chunk (`split_offsets`):
there the margin starts at the offset, as if the weight of that feature were fixed at 1. It is in no table, no
scale, no size of an example and no product, and is not counted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.chunk import Chunk, floats
from thresher.data.errors import DataError
from thresher.data.source import BesideRows, Source
from thresher.options.messages import mention

OFFSET = 2**64 - 1
"""The key of an offset: the largest, so that it is the last of its row"""

F32 = NDArray[np.float32]


def may_have_offsets(chunk: Chunk) -> bool:
    """Whether the last row ends with this key. Takes a fraction of a microsecond."""
    return bool(chunk.nnz and chunk.keys[-1] == OFFSET and chunk.indptr[-2] < chunk.nnz)


def offsets_of(chunk: Chunk) -> F32:
    """The offsets of the rows (n,). `DataError` for a row without one."""
    last = chunk.indptr[1:] - 1
    there = chunk.indptr[1:] > chunk.indptr[:-1]
    if chunk.nnz:
        there &= chunk.keys[last] == OFFSET
    if not there.all():
        raise DataError(
            "the model was trained with offsets, and these data have none: give a number for each row,"
            " offsets="
        )
    offsets: F32 = chunk.values[last]
    return offsets


def split_offsets(chunk: Chunk) -> tuple[Chunk, F32]:
    """The rows without their offsets, and these (n,). `DataError` for a row without one."""
    offsets, kept = offsets_of(chunk), np.ones(chunk.nnz, np.bool_)
    kept[chunk.indptr[1:] - 1] = False
    starts = chunk.indptr - np.arange(len(chunk) + 1)
    return replace(chunk, indptr=starts, keys=chunk.keys[kept], values=chunk.values[kept]), offsets


def without_offsets(chunk: Chunk) -> Chunk:
    """The rows without offsets, if they have any.

    In a matrix, the key may be that of the rest of a large number in column 0 (`engine.preparing`), which is
    no feature either.
    """
    if not may_have_offsets(chunk):
        return chunk
    kept = chunk.keys != OFFSET
    starts = np.concatenate([[0], np.cumsum(kept)])[chunk.indptr]
    return replace(chunk, indptr=starts, keys=chunk.keys[kept], values=chunk.values[kept])


def with_offsets(chunk: Chunk, offsets: ArrayLike) -> Chunk:
    """The rows, each with its offset of `offsets` (n,).

    `DataError` unless there is a finite number for each row, and for rows with a feature of the largest key.
    """
    found = floats(offsets, "offset")
    if len(found) != len(chunk):
        raise DataError(f"{len(found):,} offsets for {len(chunk):,} rows: give one for each row")
    if (chunk.keys == OFFSET).any():
        raise DataError(
            f"a row has the key {OFFSET}, which is that of offsets: it has one already, or it is the largest"
            " id, or the rest of a number in column 0 that float32 does not hold; put another column first"
        )
    starts, ends = chunk.indptr + np.arange(len(chunk) + 1), chunk.indptr[1:]
    keys, values = np.insert(chunk.keys, ends, np.uint64(OFFSET)), np.insert(chunk.values, ends, found)
    return replace(chunk, indptr=starts, keys=keys, values=values)


def shifted(source: Source, offsets: ArrayLike | None) -> Source:
    """The source, in which each row has an offset if there are `offsets`.

    `DataError` for files, whose offsets are a column, and for data that have offsets already.
    """
    if offsets is None:
        return source
    if source.layout is not None and source.layout.has_offsets:
        raise DataError(f"{mention('offset')} names a column of offsets: leave that or offsets= out")
    if source.origin is not None:
        raise DataError("offsets are for data in memory; for files, name the column, offset=")
    return BesideRows(source, "offset", floats(offsets, "offset"), with_offsets)


def unused_offsets() -> DataError:
    """The error for offsets that the model does not add to anything."""
    return DataError("offsets are given, but the model was trained without any: leave them out")
