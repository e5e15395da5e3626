"""Running scales of numeric columns: their values are divided, never shifted, so zeros stay zeros."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.data.columns import NUMERIC, matching
from thresher.data.errors import DataError
from thresher.data.features.murmur import hash_bytes
from thresher.data.interactions import terms_of
from thresher.data.layout import SettledLayout
from thresher.engine import preparing
from thresher.engine.lookup import empty_index, find, reindex
from thresher.engine.sound import Tensors, ascending, given, require
from thresher.learning.head import F64

U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
Numbers = NDArray[np.uint32]


class Columns:
    """The keys of numeric columns, ``(columns,)`` ascending; they are numbered from 1 on."""

    def __init__(self, keys: U64) -> None:
        self.keys = keys
        self._known = np.concatenate([np.zeros(1, np.uint64), keys])
        self._slots = empty_index(len(self._known))
        reindex(self._slots, self._known, len(self._known))

    def __len__(self) -> int:
        return len(self.keys)

    def numbers(self, keys: U64) -> Numbers:
        """The column of each key, 0 for a feature that is no numeric column."""
        found = np.empty(len(keys), np.uint32)
        find(self._slots, self._known, read_only(keys), found)
        return found


def columns_in(layout: SettledLayout | None, wanted: str) -> Columns:
    """The numeric columns of settled data; `DataError` where there are none to be scaled as `wanted`."""
    given = layout or SettledLayout()
    names = numeric_columns(given)
    if not names:
        raise DataError(
            f"there is nothing to scale by {wanted}: the data have no numeric columns, as tables may have"
            " (csv, tsv, jsonl, parquet, arrow); the rules ft-ftrl and normalized need no scaling"
        )
    _check_no_products(given, names, wanted)
    return Columns(np.unique(np.array([key_of(name, given) for name in names], np.uint64)))


def numeric_columns(layout: SettledLayout) -> list[str]:
    """The names of the columns that are numbers."""
    return [name for name, kind in zip(layout.columns, layout.kinds, strict=True) if kind == NUMERIC]


def key_of(name: str, layout: SettledLayout) -> int:
    """The key of a numeric column."""
    return hash_bytes(name.encode(), layout.seed) & layout.mask


def _check_no_products(layout: SettledLayout, numeric: list[str], wanted: str) -> None:
    """`DataError` for products of columns that are scaled: they are made of the values as they are read."""
    for factor in terms_of(layout.interact).factors:
        for name in matching(factor, layout.columns):
            if name in numeric:
                raise DataError(
                    f"column '{name}' is scaled by {wanted}, but its products are made before: leave the"
                    f" numeric columns out of --interact (it says '{factor}'), or make '{name}' categorical"
                )


class Divisors:
    """What each column is divided by, ``(columns,)`` float64: all that a prediction needs of a scale."""

    def __init__(self, columns: Columns, by: F64) -> None:
        self.columns, self.by = columns, by

    def of(self, chunk: Chunk) -> Chunk:
        """`chunk` with its columns divided, rounded to float32."""
        by = np.concatenate([np.ones(1), self.by])[self.columns.numbers(chunk.keys)]
        return replace(chunk, values=(chunk.values / by).astype(np.float32))


def _checked_keys(tensors: Tensors) -> U64:
    keys = given(tensors, "scale.keys", (None,), np.uint64)
    require(ascending(keys), "scale.keys", "keys ascend")
    return keys


def divisors_of(tensors: Tensors) -> Divisors | None:
    """Those in a model file; None where nothing is scaled. StateError."""
    if "scale.by" not in tensors and "scale.keys" not in tensors:
        return None
    keys = _checked_keys(tensors)
    by = given(tensors, "scale.by", (len(keys),), np.float64)
    require((by > 0).all(), "scale.by", "columns are divided by positive numbers")
    return Divisors(Columns(keys), by)


class Scaling:
    """The statistics of a scale, over the examples so far."""

    NAME: ClassVar[str]
    SHAPE: ClassVar[tuple[int, ...]] = ()
    """of what is kept of a column"""

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._kept: NDArray[Any] = np.zeros((1, *self.SHAPE))

    def bind(self, layout: SettledLayout | None) -> None:
        """Scale the numeric columns of the settled `layout`, unless there are columns yet; `DataError`."""
        if self._columns is None:
            self._begin(columns_in(layout, self.NAME), None)

    def _begin(self, columns: Columns, kept: NDArray[Any] | None) -> None:
        self._columns = columns
        self._kept = np.zeros((len(columns) + 1, *self.SHAPE)) if kept is None else kept.copy()

    @property
    def columns(self) -> Columns:
        """What is scaled; ValueError as long as that is not known."""
        if self._columns is None:
            raise ValueError(
                f"say which columns are to be scaled by {self.NAME}: set the layout of the model"
            )
        return self._columns

    def running(self, chunk: Chunk, before: int) -> Chunk:
        """Take in `chunk` (`before` examples came before it), each value divided as of its own example."""
        out = np.empty(chunk.nnz, np.float32)
        self._take_in(self.columns.numbers(chunk.keys), chunk, before, out)
        return replace(chunk, values=out)

    def _take_in(self, columns: Numbers, chunk: Chunk, before: int, out: F32) -> None:
        raise NotImplementedError

    def divisors(self, rows: int) -> Divisors | None:
        """As they are after `rows` examples; None as long as the columns are not known."""
        return None if self._columns is None else Divisors(self._columns, self._divisors(rows))

    def _divisors(self, rows: int) -> F64:
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """Columns and statistics."""
        keys = np.zeros(0, np.uint64) if self._columns is None else self._columns.keys
        return {"scale.keys": keys, "scale.kept": self._kept}

    def check(self, state: Tensors) -> None:
        """StateError for what are no statistics of this scale."""
        keys = _checked_keys(state)
        given(state, "scale.kept", (len(keys) + 1, *self.SHAPE), np.float64)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from `state`."""
        if len(state["scale.keys"]):
            self._begin(Columns(state["scale.keys"].copy()), state["scale.kept"])


class MaxAbs(Scaling):
    """x_j / m_j, where m_j is the largest |x_j| of the examples so far, the current one included.

    Zeros and missing values cannot be told apart and change nothing. As long as m_j = 0 nothing is divided.
    What is learned from lies in [-1, 1]; what is predicted later need not.
    """

    NAME = "max-abs"

    def _take_in(self, columns: Numbers, chunk: Chunk, before: int, out: F32) -> None:
        preparing.scale_by_largest(self._kept, columns, read_only(chunk.values), out)

    def _divisors(self, rows: int) -> F64:
        largest = self._kept[1:]
        return np.where(largest > 0, largest, 1.0)


class Standard(Scaling):
    """x_j / sigma_j, where sigma_j is the standard deviation of x_j over all t examples so far.

    sigma_j^2 = (1/t) sum_s (x_sj - mean_j)^2, the current example included, each counted once whatever its
    importance. A zero or missing value is the number 0, as it is to the model. A column that has shown
    one value only (as any has at its first example) has sigma_j = 0 and is divided by that value's magnitude.

    Its mean is not taken off, since zeros would then be none: a column that lies far from zero beside its
    spread stays large, which `MaxAbs` mends. The sums are those of Welford and of Chan, Golub and
    LeVeque (1983), with zeros taken in when a column is next met.
    """

    NAME = "standard"
    SHAPE = (3,)

    def _take_in(self, columns: Numbers, chunk: Chunk, before: int, out: F32) -> None:
        numbers = (read_only(chunk.indptr), read_only(chunk.values))
        preparing.scale_by_deviation(self._kept, before, columns, *numbers, out)

    def _divisors(self, rows: int) -> F64:
        by = np.empty(len(self._kept) - 1)
        preparing.deviations(self._kept.copy(), rows, by)
        return by


SCALES: dict[str, type[Scaling]] = {scale.NAME: scale for scale in (MaxAbs, Standard)}


def make_scaling(name: str) -> Scaling:
    """The scale of a name; ValueError if there is none."""
    if name not in SCALES:
        raise ValueError(f"no scale is called {name!r}; known: {', '.join(SCALES)}")
    return SCALES[name]()
