"""Offsets: a number for each example that is added to its margin, such as the logarithm of an exposure.

They stand beside the labels of a `Chunk`. The loops, and predictions, start the margin at the offset, as if
it were the value of a feature whose weight is fixed at 1. It is in no table, no scale, no size of an example
and no product, and is not counted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.chunk import Chunk, floats
from thresher.data.errors import DataError

F32 = NDArray[np.float32]


def offsets_of(chunk: Chunk, shifted: bool) -> F32 | None:
    """The offsets of the rows (n,); None for a model that is not `shifted`.

    `DataError` for rows without offsets if it is, and for others if it is not.
    """
    if chunk.offsets is not None and not shifted:
        raise DataError("offsets are given, but the model was trained without any: leave them out")
    if chunk.offsets is None and shifted and len(chunk):
        raise DataError(
            "the model was trained with offsets, and these data have none: give a number for each row,"
            " offsets="
        )
    return chunk.offsets


def with_offsets(chunk: Chunk, offsets: ArrayLike) -> Chunk:
    """The rows, each with its offset of `offsets` (n,).

    `DataError` unless there is a finite number for each row, and for rows that have offsets.
    """
    found = floats(offsets, "offset")
    if len(found) != len(chunk):
        raise DataError(f"{len(found):,} offsets for {len(chunk):,} rows: give one for each row")
    if chunk.offsets is not None:
        raise DataError("the rows have offsets already: leave offsets= out")
    return replace(chunk, offsets=found)
