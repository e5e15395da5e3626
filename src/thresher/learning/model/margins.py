"""Settled weights and their margins: one compiled function per rule, everything else is shared.

The code that adds ``read(rows) -> weights`` up to margins does not depend on the rule. On 413,340 non-zeros
of RCV1, in ns per non-zero, loops that did both and these: `sgd` 1.4 and 1.4, `fobos` 2.1 and 1.4, `ft-ftrl`
1.7 and 1.4, averaged `fobos` 14 and 2.3, two outputs of softmax 100 and 8.5, from a model file 98 and 3.2.
The time to compile the reading of another rule fell from 0.30 to 0.14 s, with averages from 1.3 to 0.8, with
many outputs from 0.93 to 0.39. The price is a second call: predicting a single row takes 4 µs more, of 11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.engine import kernels, outputs
from thresher.engine.index import GrowingIndex, Index, Resolved
from thresher.engine.sound import Array

Read = Callable[[Array, Array], None]
"""Writes the weights of rows (n,) uint32 to an array (n, *inner)."""
BLOCK = 1 << 16
"""Weights held at a time, unless the whole table is read."""
_TABLE = 1 << 22
"""Maximum number of weights in a table that is read as a whole."""
_PLACES: Array = read_only(np.arange(BLOCK, dtype=np.uint32))


def first_rows(read: Read, count: int, inner: tuple[int, ...], dtype: Any) -> Array:
    """Weights of the rows 0..count-1 ``(count, *inner)``."""
    out: Array = np.empty((count, *inner), dtype)
    step = _step(inner, BLOCK)
    if count <= step:
        read(_PLACES[:count], out)
        return out
    for begin in range(0, count, step):
        end = min(begin + step, count)
        read(read_only(np.arange(begin, end, dtype=np.uint32)), out[begin:end])
    return out


def margins(read: Read, index: Index, size: int, bias: Array, inner: tuple[int, ...], chunk: Chunk) -> Array:
    """Margins ``(n, *inner)`` of the rows of `chunk`, for a table of `size` rows.

    The table is read once if it is no longer than the chunk; else a row is read for each time it occurs.
    """
    if size <= chunk.nnz and size <= _step(inner, _TABLE):
        return table_margins(index, first_rows(read, size, inner, bias.dtype), bias, chunk)
    indptr, rows, values = _found(index, chunk)
    out, step = np.empty((len(chunk), *inner)), _step(inner, BLOCK)
    used = int(indptr[-1])  # an index may merge features; entries after these are unused
    if used <= step:
        _read_and_add_up(read, bias, indptr, rows[:used], values, out)
        return out
    lo = 0
    while lo < len(chunk):
        hi = max(int(np.searchsorted(indptr, indptr[lo] + step, "right")) - 1, lo + 1)
        part = slice(indptr[lo], indptr[hi])
        own = read_only(indptr[lo : hi + 1] - part.start)
        _read_and_add_up(read, bias, own, rows[part], values[part], out[lo:hi])
        lo = hi
    return out


def _read_and_add_up(read: Read, bias: Array, indptr: Array, rows: Array, values: Array, out: Array) -> None:
    held: Array = np.empty((len(rows), *out.shape[1:]), bias.dtype)
    read(rows, held)
    places = _PLACES if len(rows) <= BLOCK else read_only(np.arange(len(rows), dtype=np.uint32))
    _add_up(held, bias, indptr, places, values, out)


def _step(inner: tuple[int, ...], most: int) -> int:
    """Number of rows with at most `most` weights; at least one."""
    return max(1, most // inner[0]) if inner else most


def table_margins(index: Index, weights: Array, bias: Array, chunk: Chunk) -> Array:
    """Margins ``(n, *inner)`` of the rows of `chunk`, for settled `weights` ``(rows, *inner)`` of a table."""
    out = np.empty((len(chunk), *weights.shape[1:]))
    _add_up(weights, bias, *_found(index, chunk), out)
    return out


def finder_in(index: Index) -> Callable[[Chunk], Chunk] | None:
    """What looks up the keys of chunks in an index before these are used; None: it saves nothing."""
    if not isinstance(index, GrowingIndex):
        return None
    return lambda chunk: replace(chunk, found=(index, chunk.keys, find(index, chunk)))


def find(index: Index, chunk: Chunk) -> Resolved:
    """The rows of the features of a chunk."""
    return index.find(read_only(chunk.keys), read_only(chunk.indptr), read_only(chunk.values))


def _found(index: Index, chunk: Chunk) -> tuple[Array, Array, Array]:
    known = chunk.found
    ours = known is not None and known[0] is index and known[1] is chunk.keys
    found: Resolved = known[2] if ours else find(index, chunk)
    return read_only(found.indptr), read_only(found.rows), read_only(found.values)


def _add_up(weights: Array, bias: Array, indptr: Array, rows: Array, values: Array, out: Array) -> None:
    compiled = kernels.add_up if out.ndim == 1 else outputs.add_up_outputs
    compiled(weights, read_only(bias), indptr, rows, values, out)


def any_output(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which features have a flag up: ``(features,)``."""
    return flags if flags.ndim == 1 else np.asarray(flags.any(axis=1), np.bool_)
