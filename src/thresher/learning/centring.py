"""Centring: the running means of columns that are hardly ever zero are subtracted from their values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.data.columns import NUMERIC
from thresher.data.features.names import numeric_keys
from thresher.data.layout import SettledLayout, has_columns
from thresher.engine import preparing
from thresher.engine.rests import FAR
from thresher.engine.sound import MOST_STEPS, Tensors, ascending, given, require
from thresher.learning.head import F64
from thresher.learning.scaling import Divisors

U64 = NDArray[np.uint64]
_WHOLE = 2**64 - 1
"""Mask of all bits of a key"""
_FIRST = int(preparing.SPARE) + 1
"""A column occurs in one of this many first examples."""


class Means:
    """Columns that are centred, by their keys ``(columns,)``, which ascend, and their means ``(columns,)``.

    With `gaps`, a stored 0 is a missing value, which adds nothing to a margin. Keys have the bits of `mask`.
    """

    def __init__(self, keys: U64, means: F64, counts: F64, gaps: bool = False, mask: int = _WHOLE) -> None:
        self.keys, self.means, self.counts, self.gaps, self.mask = keys, means, counts, gaps, mask
        """`counts`: the number of examples of each mean ``(columns,)``"""

    def __eq__(self, other: object) -> bool:
        """Whether the same values are subtracted from the same columns."""
        return (
            isinstance(other, Means)
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.means, other.means)
        )

    __hash__ = None  # type: ignore[assignment]

    def of(self, chunk: Chunk) -> Chunk:
        """`chunk` with the means subtracted, in float64, then rounded to float32."""
        table = np.column_stack([np.ones(len(self.keys)), np.zeros(len(self.keys)), self.means])
        return _centred(self.keys, table, chunk, counts=False, gaps=self.gaps, mask=self.mask)

    def tensors(self) -> Tensors:
        """As stored in a model file."""
        reading = {"centre.gaps": np.array([self.gaps]), "centre.mask": np.array([self.mask], np.uint64)}
        return {"centre.keys": self.keys, "centre.means": self.means, "centre.counts": self.counts, **reading}

    def ones(self) -> Chunk:
        """An example for each column, which is 1, with all others 0."""
        count = len(self.keys)
        return Chunk.from_csr(np.arange(count + 1), self.keys, np.ones(count), np.zeros(count))

    def intercept(self, weights: F64, bias: NDArray[Any], divisors: Divisors | None) -> F64:
        """The intercepts for values as they are, in float64: those for centred ones less what means add.

        `weights` are the margins of `ones` without intercepts `bias`, which would hide small ones.
        """
        by = np.ones(len(self.keys)) if divisors is None else divisors.at(self.keys)
        found: F64 = bias - (self.means / by) @ weights.reshape(len(self.keys), len(bias))
        return found


def _centred(keys: U64, means: F64, chunk: Chunk, *, counts: bool, gaps: bool, mask: int) -> Chunk:
    room = chunk.nnz + len(chunk) * len(keys) + 1
    ends, of_kept, kept = (
        np.zeros(len(chunk) + 1, np.int64),
        np.empty(room, np.float32),
        np.empty(room, np.uint64),
    )
    given = (read_only(chunk.indptr), read_only(chunk.keys), read_only(chunk.values))
    how = counts, gaps, np.uint64(mask)
    count = preparing.centre(read_only(keys), means, *how, *given, ends, of_kept, kept)
    return replace(chunk, indptr=ends, keys=kept[:count], values=of_kept[:count])


def alone(chunk: Chunk, layout: SettledLayout | None) -> Chunk:
    """`chunk` without rests and gaps: features as users know them."""
    mask, gaps = (_WHOLE, False) if layout is None else (layout.mask, layout.gaps and has_columns(layout))
    in_memory = layout is None or not (layout.format or has_columns(layout))
    if not (gaps and preparing.any_beyond(read_only(chunk.values), FAR)) and not (
        in_memory and _is_open_ended(chunk)
    ):
        return chunk
    return _centred(np.zeros(0, np.uint64), np.zeros((0, 3)), chunk, counts=False, gaps=False, mask=mask)


def _is_open_ended(chunk: Chunk) -> bool:
    """Whether it may have rests or gaps of a matrix."""
    span = chunk.span()
    return span is not None and span[1] >> 63 == 1


class Centring:
    """Subtracts from a column the mean of its values so far, this example included: x - mean.

    Columns are numeric ones of a table; in data without columns every feature may be one. A column is centred
    as long as it is zero in at most two examples, or in at most a tenth of those so far; after 100 examples
    it is settled for good which ones are. A feature that an example does not have is 0; a missing cell of a
    table adds nothing, which means the mean, and is not counted.

    Means are sums in float64 over the examples one by one, so it does not matter where the stream is cut. A
    value is the sum of its float32 and of its rest, if the row has one (see `rests`).
    """

    def __init__(self) -> None:
        self._keys, self._means = np.zeros(0, np.uint64), np.zeros((0, 3))
        self._wanted: U64 | None = None
        """keys that may be columns; None: all"""
        self._gaps, self._mask = False, _WHOLE

    def bind(self, layout: SettledLayout | None) -> None:
        """Centre the numeric columns of `layout`, if it has columns."""
        if layout is None:
            return
        numeric = NUMERIC in layout.kinds
        self._gaps, self._mask = layout.gaps and numeric, layout.mask
        if has_columns(layout):
            self._wanted = np.unique(np.array([*numeric_keys(layout)] if numeric else [], np.uint64))

    def running(self, chunk: Chunk, before: int) -> Chunk:
        """`chunk`, which follows `before` examples, centred by the means up to each of its examples."""
        first = min(max(_FIRST - before, 0), len(chunk))
        parts = [self._meet(chunk.rows(k, k + 1), before + k) for k in range(first)]
        rest = chunk if first == 0 else chunk.rows(first, len(chunk))
        if len(rest) and self._changes(rest):
            rest = self._centred(rest, counts=True)
            self._keep(self._means[:, preparing.COUNT] >= 0)
        return rest if first == 0 else joined([*parts, rest], chunk)

    def _meet(self, chunk: Chunk, before: int) -> Chunk:
        """The next of the first examples; its features become columns that were zero before."""
        new = alone(chunk, None).keys if self._wanted is None else np.intersect1d(chunk.keys, self._wanted)
        new = np.setdiff1d(new, self._keys)
        keys = np.concatenate([self._keys, new])
        fresh = np.tile([float(before), float(before), 0.0], (len(new), 1))
        order = np.argsort(keys)
        self._keys, self._means = keys[order], np.concatenate([self._means, fresh])[order]
        return self._centred(chunk, counts=True)

    def _centred(self, chunk: Chunk, *, counts: bool) -> Chunk:
        return _centred(self._keys, self._means, chunk, counts=counts, gaps=self._gaps, mask=self._mask)

    def _keep(self, those: NDArray[np.bool_]) -> None:
        if not those.all():
            self._keys, self._means = self._keys[those], self._means[those]

    def _changes(self, chunk: Chunk) -> bool:
        return bool(len(self._keys) or self._gaps or (self._wanted is None and _is_open_ended(chunk)))

    def read(self, chunk: Chunk) -> Chunk:
        """`chunk`, centred by the means so far, which do not change."""
        if not self._changes(chunk):
            return chunk
        return self._centred(chunk, counts=False)

    def means(self) -> Means:
        """The means so far."""
        found = self._means[:, preparing.CENTRE], self._means[:, preparing.COUNT]
        return Means(self._keys, *found, self._gaps, self._mask)

    def start_from(self, means: Means) -> int:
        """Go on with these columns and no others; returns the number of examples from which that is so."""
        counts = np.maximum(means.counts, preparing.UNDECIDED)
        self._keys, self._means = means.keys, np.column_stack([counts, np.zeros(len(counts)), means.means])
        return _FIRST

    def state(self) -> dict[str, NDArray[Any]]:
        """Columns and means."""
        return {"centre.keys": self._keys, "centre.kept": self._means}

    def check(self, state: Tensors) -> None:
        """StateError unless `state` holds means."""
        keys = given(state, "centre.keys", (None,), np.uint64)
        require(ascending(keys), "centre.keys", "keys ascend")
        kept = given(state, "centre.kept", (len(keys), 3), np.float64)
        counts = kept[:, : preparing.CENTRE]
        require(
            (counts >= 0).all() and (counts <= MOST_STEPS).all(), "centre.kept", "counts are out of range"
        )

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from `state`."""
        self._keys, self._means = state["centre.keys"].copy(), state["centre.kept"].copy()


def means_of(tensors: Tensors) -> Means | None:
    """The means in a model file; None without centring. StateError."""
    if not any(name.startswith("centre.") for name in tensors):
        return None
    keys = given(tensors, "centre.keys", (None,), np.uint64)
    require(ascending(keys), "centre.keys", "keys ascend")
    means = given(tensors, "centre.means", (len(keys),), np.float64)
    counts = given(tensors, "centre.counts", (len(keys),), np.float64)
    require((counts >= 0).all() and (counts <= MOST_STEPS).all(), "centre.counts", "counts are out of range")
    gaps = given(tensors, "centre.gaps", (1,), np.bool_)
    mask = given(tensors, "centre.mask", (1,), np.uint64)
    return Means(keys, means, counts, bool(gaps[0]), int(mask[0]))


def joined(parts: list[Chunk], chunk: Chunk) -> Chunk:
    """The examples of `chunk`, prepared in parts."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(one.indptr) for one in parts)])
    keys, values = (
        np.concatenate(arrays) for arrays in zip(*((p.keys, p.values) for p in parts), strict=True)
    )
    return replace(chunk, indptr=np.cumsum(sizes), keys=keys, values=values)
