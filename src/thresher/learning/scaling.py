"""Running scales of columns: values are divided, never shifted, so zeros stay zero.

Columns are the numeric ones of a table; in data without columns, every feature is a column.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.data.columns import NUMERIC, matching
from thresher.data.errors import DataError
from thresher.data.features.names import numeric_keys
from thresher.data.interactions import terms_of
from thresher.data.layout import SettledLayout, has_columns
from thresher.engine import preparing
from thresher.engine.lookup import REGISTERS, empty_index, find, find_or_add, reindex, resized
from thresher.engine.sound import Tensors, ascending, given, require
from thresher.learning.head import F64
from thresher.options.synonyms import did_you_mean

U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
Numbers = NDArray[np.uint32]


_FIRST_ROOM = 1 << 10


class Columns:
    """Columns by their keys ``(columns,)``, which ascend; columns are numbered from 1."""

    def __init__(self, keys: U64) -> None:
        self._known = np.concatenate([np.zeros(1, np.uint64), keys])
        self._slots = empty_index(len(self._known))
        reindex(self._slots, self._known, len(self._known))

    def __len__(self) -> int:
        return len(self._known) - 1

    @property
    def met(self) -> U64:
        """The keys of the columns, in order of their numbers."""
        return self._known[1:]

    def numbers(self, keys: U64) -> Numbers:
        """The column of each key; 0 for a feature that is not a column."""
        found = np.empty(len(keys), np.uint32)
        find(self._slots, self._known, read_only(keys), found)
        return found

    def meet(self, chunk: Chunk) -> Numbers:
        """The column of each key of `chunk`; called for examples that are counted."""
        return self.numbers(chunk.keys)


class Features(Columns):
    """Every feature seen so far is a column, numbered in the order of appearance. Memory grows with them."""

    def __init__(self, keys: U64) -> None:
        super().__init__(keys)
        self._count = len(self._known)
        self._registers = np.zeros(REGISTERS, np.uint8)  # required by find_or_add; never read
        self._make_room(_FIRST_ROOM)

    def __len__(self) -> int:
        return self._count - 1

    @property
    def met(self) -> U64:
        """The keys of the columns, in order of their numbers."""
        return self._known[1 : self._count]

    def meet(self, chunk: Chunk) -> Numbers:
        """The column of each key of `chunk`; keys seen for the first time become new columns."""
        keys, indptr, numbers = read_only(chunk.keys), read_only(chunk.indptr), np.empty(chunk.nnz, np.uint32)
        lo, hi = 0, len(chunk)
        while lo < hi:
            tables = (self._slots, self._known, self._registers, self._count, len(self._known))
            lo, self._count = find_or_add(*tables, keys, indptr, lo, hi, numbers)
            if lo < hi:
                self._make_room(int(indptr[lo + 1] - indptr[lo]))
        return numbers

    def _make_room(self, needed: int) -> None:
        self._known = resized(self._known, max(2 * self._count, self._count + needed))
        self._slots = empty_index(len(self._known))
        reindex(self._slots, self._known, self._count)


def columns_in(layout: SettledLayout, wanted: str) -> Columns:
    """The numeric columns of a settled table; `DataError` if there are none to scale by `wanted`."""
    if NUMERIC not in layout.kinds:
        raise DataError(f"there is nothing to scale by {wanted}: the table has no numeric columns")
    _check_no_products(layout, wanted)
    return Columns(np.unique(np.array([*numeric_keys(layout)], np.uint64)))


def _check_no_products(layout: SettledLayout, wanted: str) -> None:
    """`DataError` for products of scaled columns: products are computed from the unscaled values."""
    kinds = dict(zip(layout.columns, layout.kinds, strict=True))
    for factor in terms_of(layout.interact).factors:
        for name in matching(factor, layout.columns):
            if kinds[name] == NUMERIC:
                raise DataError(
                    f"column '{name}' is scaled by {wanted}, but interactions are computed before that: leave"
                    f" numeric columns out of --interact ('{factor}'), or make '{name}' categorical"
                )


class Divisors:
    """The divisor of each column, ``(columns,)`` float64: all that prediction needs of a scale."""

    def __init__(self, keys: U64, by: F64) -> None:
        self.keys, self.by = keys, by
        """keys ascend"""
        self._columns = Columns(keys)

    def at(self, keys: U64) -> F64:
        """The divisors of these features; 1 for features that are not columns."""
        found: F64 = np.concatenate([np.ones(1), self.by])[self._columns.numbers(keys)]
        return found

    def of(self, chunk: Chunk) -> Chunk:
        """`chunk` with its columns divided, rounded to float32."""
        return _divided(chunk, self.at(chunk.keys))


def _divided(chunk: Chunk, by: F64) -> Chunk:
    return replace(chunk, values=(chunk.values / by).astype(np.float32))


def _checked_keys(tensors: Tensors) -> U64:
    keys = given(tensors, "scale.keys", (None,), np.uint64)
    require(ascending(keys), "scale.keys", "keys ascend")
    return keys


def divisors_of(tensors: Tensors) -> Divisors | None:
    """The divisors in a model file; None without scaling. StateError."""
    if "scale.by" not in tensors and "scale.keys" not in tensors:
        return None
    keys = _checked_keys(tensors)
    by = given(tensors, "scale.by", (len(keys),), np.float64)
    require((by > 0).all(), "scale.by", "columns must be divided by positive numbers")
    return Divisors(keys, by)


class Scaling:
    """The statistics of a scale over the examples so far."""

    NAME: ClassVar[str]
    SHAPE: ClassVar[tuple[int, ...]] = ()
    """shape of the statistics of a column"""

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._kept: NDArray[Any] = np.zeros((1, *self.SHAPE))
        self._by: F64 | None = None
        """divisors in order of column numbers, cached until examples are added"""

    def bind(self, layout: SettledLayout | None) -> None:
        """Scale the numeric columns of `layout`; `DataError` if it has none.

        Without columns, every feature is scaled from the first example on. Has no effect after the first
        call.
        """
        if self._columns is None and layout is not None and has_columns(layout):
            self._begin(columns_in(layout, self.NAME), None)

    def _begin(self, columns: Columns, kept: NDArray[Any] | None) -> None:
        self._columns, self._by = columns, None
        self._kept = np.zeros((len(columns) + 1, *self.SHAPE)) if kept is None else kept.copy()

    def running(self, chunk: Chunk, before: int) -> Chunk:
        """Add `chunk`, which follows `before` examples; divide each value by its divisor at that example."""
        if self._columns is None:
            self._begin(Features(np.zeros(0, np.uint64)), None)
        assert self._columns is not None
        numbers, out = self._columns.meet(chunk), np.empty(chunk.nnz, np.float32)
        if len(self._columns) >= len(self._kept):
            self._kept = resized(self._kept, 2 * len(self._columns))
        self._by = None
        self._take_in(numbers, chunk, before, out)
        return replace(chunk, values=out)

    def read(self, chunk: Chunk, rows: int) -> Chunk:
        """`chunk`, divided by the divisors after `rows` examples; changes nothing."""
        if self._columns is None:
            return chunk
        numbers = self._columns.numbers(chunk.keys)
        if self._by is None and chunk.nnz < len(self._columns):  # few values: compute only their divisors
            return _divided(chunk, self._divisors(self._kept[numbers], rows))
        if self._by is None:
            self._by = self._divisors(self._kept[: len(self._columns) + 1], rows)
        return _divided(chunk, self._by[numbers])

    def _take_in(self, columns: Numbers, chunk: Chunk, before: int, out: F32) -> None:
        raise NotImplementedError

    def divisors(self, rows: int, needed: U64 | None) -> Divisors | None:
        """The divisors after `rows` examples; None before the columns are known.

        If every feature is a column, only divisors of the features `needed` are included; None: of all.
        """
        if self._columns is None:
            return None
        keys, kept = self._in_order()
        if needed is not None and isinstance(self._columns, Features):
            wanted = np.isin(keys, needed, assume_unique=True)
            keys, kept = keys[wanted], kept[wanted]
        return Divisors(keys, self._divisors(kept, rows))

    def _in_order(self) -> tuple[U64, NDArray[Any]]:
        """Keys in ascending order, and the statistics of each."""
        met = np.zeros(0, np.uint64) if self._columns is None else self._columns.met
        order = np.argsort(met)
        return met[order], self._kept[1:][order]

    def _divisors(self, kept: NDArray[Any], rows: int) -> F64:
        """The divisors for statistics ``(n, *SHAPE)``; 1 for a column without values."""
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """Columns and statistics."""
        keys, kept = self._in_order()
        return {"scale.keys": keys, "scale.kept": np.concatenate([self._kept[:1], kept])}

    def check(self, state: Tensors) -> None:
        """StateError unless `state` holds statistics of this scale."""
        keys = _checked_keys(state)
        given(state, "scale.kept", (len(keys) + 1, *self.SHAPE), np.float64)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from `state`."""
        if len(keys := state["scale.keys"].copy()):
            of_table = self._columns is not None and not isinstance(self._columns, Features)
            self._begin(Columns(keys) if of_table else Features(keys), state["scale.kept"])


class MaxAbs(Scaling):
    """x_j / m_j, where m_j is the largest |x_j| of the examples so far, the current one included.

    Zeros and missing values are the same and change nothing. Columns with m_j = 0 are not divided.
    Values that are learned lie in [-1, 1]; later, in prediction, they need not.
    """

    NAME = "max-abs"

    def _take_in(self, columns: Numbers, chunk: Chunk, before: int, out: F32) -> None:
        preparing.scale_by_largest(self._kept, columns, read_only(chunk.values), out)

    def _divisors(self, kept: NDArray[Any], rows: int) -> F64:
        return np.where(kept > 0, kept, 1.0)


class Standard(Scaling):
    """x_j / sigma_j, where sigma_j is the standard deviation of x_j over all t examples so far.

    sigma_j^2 = (1/t) sum_s (x_sj - mean_j)^2, the current example included; each example counts once whatever
    its importance, unless that is 0. A zero or missing value is the number 0, as in the model. A column with
    only one value so far, as after its first example, has sigma_j = 0 and is divided by the magnitude of that
    value.

    The mean is not subtracted, because zeros would not stay zero: a column whose mean is large compared with
    its spread stays large; use `MaxAbs` for it. The sums follow Welford and Chan, Golub and LeVeque (1983);
    zeros are added lazily when a column next appears.
    """

    NAME = "standard"
    SHAPE = (3,)

    def _take_in(self, columns: Numbers, chunk: Chunk, before: int, out: F32) -> None:
        numbers = (read_only(chunk.indptr), read_only(chunk.values))
        preparing.scale_by_deviation(self._kept, before, columns, *numbers, out)

    def _divisors(self, kept: NDArray[Any], rows: int) -> F64:
        by = np.empty(len(kept))
        preparing.deviations(np.concatenate([np.zeros((1, 3)), kept]), rows, by)
        return by


SCALES: dict[str, type[Scaling]] = {scale.NAME: scale for scale in (MaxAbs, Standard)}


def make_scaling(name: str) -> Scaling:
    """The scale called `name`; ValueError if there is none."""
    if name not in SCALES:
        near = did_you_mean("scale", str(name), SCALES)
        raise ValueError(f"no scale is called {name!r}; known: {', '.join(SCALES)}{near}")
    return SCALES[name]()
