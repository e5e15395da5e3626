"""Running scales and means of columns.

Columns are the numeric ones of a table; in data without columns, every feature is a column. Scaling divides
values and never shifts them, so zeros stay zero. Centring subtracts the running means of columns that are
hardly ever zero.

A rule sees values, so every rule, loss, store and batch works with centred ones without knowing, and a long
sparse stream pays nothing. A diagonal rule on centred columns is enough: a second-order core tried on narrow
tables was no better. Which columns are centred is decided by the stream itself, row by row, so cuts, formats
and orders of columns do not matter. It could not wait for the first hundred rows, because `learn` must answer
after one. The price is that the first row of data without columns is lost, and the next few in part: on 150
rows of sparse features the progressive loss is 2 % higher, on 1,000 rows .5 %. Nearly all of that is the
first row: centring only what has been in all rows so far, at first, changed nothing that repeated orders
confirm. Weights are for values as they are: only the intercept changes, by the negative sum of w_j m_j, which
readers compute from the means in the file.

A missing number is a stored 0 (`Layout.gaps`) where columns are centred: zeros are not stored otherwise, a 0
changes no sum where keys collide and no product, and readers, caches and replay need no further array. NaN
would have to be kept out of all three; NaN beside the values, as in matrices, takes 16 bytes for a value, not
12, and a tenth more time here. Where ``bits`` lets columns share a key, a sum of 0 is missing too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.data.columns import NUMERIC, matching
from thresher.data.errors import DataError
from thresher.data.feature_specs import terms_of
from thresher.data.features.names import numeric_keys
from thresher.data.layout import SettledLayout, has_columns
from thresher.engine import centring as preparing
from thresher.engine.lookup import empty_index, find, find_or_add, reindex, resize
from thresher.engine.sound import MOST_STEPS, Array, State, Tensors, check_keys, check_tensor, require
from thresher.learning.model.objective import F64
from thresher.options.messages import mention

U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
Numbers = NDArray[np.uint32]


_NO_KEYS, _START = np.zeros(0, np.uint64), np.zeros(1, np.int64)
FIRST_ROOM = 1 << 6
"""Features for which there is room at first."""


class Columns:
    """Columns by their keys ``(columns,)``, which ascend at first, and what is `kept` of each.

    Columns are numbered from 1; `kept` ``(1 + columns, ...)`` begins with what features have that are none.

    If every feature is one, they grow: each feature seen so far is a column, numbered in the order of
    appearance, and memory grows with them. They have their own index, keyed by the features as read. The
    index of the weights cannot be used: it frees idle rows, which would lose the statistics of their
    features; with a hashed store several features share a row; and features waiting for admission have no
    row. In checkpoints keys ascend, so the file does not depend on the order in which they were seen.
    """

    def __init__(self, keys: U64, kept: NDArray[Any], grow: bool = False) -> None:
        self.kept = kept
        self._known = np.concatenate([np.zeros(1, np.uint64), keys])
        self._count, self.grow = len(self._known), grow
        self._make_room(FIRST_ROOM if grow else 0)

    def __len__(self) -> int:
        return self._count - 1

    def numbers(self, keys: U64) -> Numbers:
        """The column of each key; 0 for a feature that is not a column."""
        found = np.empty(len(keys), np.uint32)
        find(self._slots, self._known, read_only(keys), found)
        return found

    def at(self, keys: U64) -> F64:
        """What is kept of these features."""
        found: F64 = self.kept[self.numbers(keys)]
        return found

    def meet(self, chunk: Chunk) -> Numbers:
        """The column of each key of `chunk`, which may be new if they grow; for examples that are counted."""
        if not self.grow:
            return self.numbers(chunk.keys)
        keys, indptr, numbers = read_only(chunk.keys), read_only(chunk.indptr), np.empty(chunk.nnz, np.uint32)
        lo, hi = 0, len(chunk)
        while lo < hi:
            tables = (self._slots, self._known, self._count, len(self._known))
            lo, self._count = find_or_add(*tables, keys, indptr, lo, hi, numbers)
            if lo < hi:
                self._make_room(int(indptr[lo + 1] - indptr[lo]))
        if self._count > len(self.kept):
            self.kept = resize(self.kept, 2 * len(self))
        return numbers

    def in_order(self) -> tuple[U64, NDArray[Any]]:
        """Keys in ascending order, and what is kept ``(1 + columns, ...)`` in this order."""
        met = self._known[1 : self._count]
        order = np.argsort(met)
        return met[order], self.kept[np.append(0, order + 1)]

    def _make_room(self, needed: int) -> None:
        if needed:
            self._known = resize(self._known, max(2 * self._count, self._count + needed))
        self._slots = empty_index(len(self._known))
        reindex(self._slots, self._known, self._count)


class Divisors(Columns):
    """The divisor of each column, ``(columns,)`` float64, or 1: all that prediction needs of a scale."""

    def __init__(self, keys: U64, by: F64) -> None:
        super().__init__(keys, np.append(1.0, by))
        self.keys, self.by = keys, by


def divide(chunk: Chunk, by: F64) -> Chunk:
    """`chunk` with its values divided by these numbers, rounded to float32."""
    return replace(chunk, values=(chunk.values / by).astype(np.float32))


def divisors_of(tensors: Tensors) -> Divisors | None:
    """The divisors in a model file; None without scaling. StateError."""
    if "scale.by" not in tensors and "scale.keys" not in tensors:
        return None
    keys = check_keys(tensors, "scale.keys")
    by = check_tensor(tensors, "scale.by", (len(keys),), np.float64)
    require((by > 0).all(), "scale.by", "columns must be divided by positive numbers")
    return Divisors(keys, by)


class Scaling:
    """The statistics of a scale over the examples so far."""

    NAME: ClassVar[str]
    SHAPE: ClassVar[tuple[int, ...]] = ()
    """shape of the statistics of a column"""
    _take_in: Callable[[Numbers, Chunk, int, F32], None]
    """add the columns of a chunk, before which there were so many examples, and write the divided values"""
    _divisors: Callable[[Array, int], F64]
    """the divisors for statistics ``(n, *SHAPE)`` of so many rows; 1 for a column without values"""

    def __init__(self) -> None:
        self._columns = Columns(_NO_KEYS, np.zeros((1, *self.SHAPE)), grow=True)
        self._by: F64 | None = None
        """divisors in order of column numbers, cached until examples are added"""

    def bind(self, layout: SettledLayout | None) -> None:
        """Scale the numeric columns of `layout`; `DataError` if it has none.

        Without columns, every feature is scaled from the first example on. Has no effect once columns are
        known.
        """
        known = len(self._columns) or not self._columns.grow
        if known or layout is None or not has_columns(layout):
            return
        if NUMERIC not in layout.kinds:
            nothing = f"there is nothing to scale by {self.NAME}"
            raise DataError(f"{nothing}: the table has no numeric columns")
        for factor in terms_of(layout.interact).factors:
            for name in matching(factor, layout.columns):
                if layout.kind_of[name] == NUMERIC:
                    remedy = f"leave it out of {mention('interact')}, or make it categorical"
                    why = f"is scaled by {self.NAME} after interactions are computed ('{factor}')"
                    raise DataError(f"column '{name}' {why}: {remedy}")
        keys = np.array(sorted(numeric_keys(layout)), np.uint64)
        self._columns = Columns(keys, np.zeros((len(keys) + 1, *self.SHAPE)))

    def transform(self, chunk: Chunk, before: int, again: bool) -> Chunk:
        """Add `chunk`, which follows `before` examples; divide each value by its divisor at that example.

        Rows that come `again` are not added.
        """
        if again:
            return self.read(chunk, before)
        numbers, out = self._columns.meet(chunk), np.empty(chunk.nnz, np.float32)
        self._by = None
        self._take_in(numbers, chunk, before, out)
        return replace(chunk, values=out)

    def read(self, chunk: Chunk, rows: int) -> Chunk:
        """`chunk`, divided by the divisors after `rows` examples; changes nothing."""
        columns = self._columns
        if not len(columns):
            return chunk
        numbers = columns.numbers(chunk.keys)
        if self._by is None and chunk.nnz < len(columns):  # few values: compute only their divisors
            return divide(chunk, self._divisors(columns.kept[numbers], rows))
        if self._by is None:
            self._by = self._divisors(columns.kept[: len(columns) + 1], rows)
        return divide(chunk, self._by[numbers])

    def divisors(self, rows: int, needed: U64 | None) -> Divisors | None:
        """The divisors after `rows` examples; None before the columns are known.

        If every feature is a column, only divisors of the features `needed` are included; None: of all.
        """
        if not len(self._columns):
            return None
        keys, kept = self._columns.in_order()
        kept = kept[1:]
        if needed is not None and self._columns.grow:
            wanted = np.isin(keys, needed, assume_unique=True)
            keys, kept = keys[wanted], kept[wanted]
        return Divisors(keys, self._divisors(kept, rows))

    def state(self) -> State:
        """Columns and statistics."""
        return dict(zip(("scale.keys", "scale.kept"), self._columns.in_order(), strict=True))

    def check(self, state: Tensors) -> None:
        """StateError unless `state` holds statistics of this scale."""
        keys = check_keys(state, "scale.keys")
        check_tensor(state, "scale.kept", (len(keys) + 1, *self.SHAPE), np.float64)

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        keys, kept = state["scale.keys"].copy(), state["scale.kept"].copy()
        self._columns, self._by = Columns(keys, kept, self._columns.grow), None


class MaxAbs(Scaling):
    """x_j / m_j, where m_j is the largest |x_j| of the examples so far, the current one included.

    Zeros and missing values are the same and change nothing. Columns with m_j = 0 are not divided.
    Values that are learned lie in [-1, 1]; later, in prediction, they need not.
    """

    NAME = "max-abs"

    def _take_in(self, columns: Numbers, chunk: Chunk, before: int, out: F32) -> None:
        preparing.scale_by_largest(self._columns.kept, columns, read_only(chunk.values), out)

    def _divisors(self, kept: Array, rows: int) -> F64:
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
        preparing.scale_by_deviation(self._columns.kept, before, columns, *numbers, out)

    def _divisors(self, kept: NDArray[np.generic], rows: int) -> F64:
        by = np.empty(len(kept))
        preparing.deviations(np.concatenate([np.zeros((1, 3)), kept]), rows, by)
        return by


SCALES: dict[str, type[Scaling]] = {scale.NAME: scale for scale in (MaxAbs, Standard)}


FIRST = int(preparing.SPARE) + 1
"""A column occurs in one of this many first examples."""


_NO_RESTS = np.zeros(0, np.float32)


class Spreads:
    """How far each feature takes the margin for a weight of 1, over the examples so far; each counts once.

    s_j^2 = Var(x_j) / P(x_j != 0): the variance for a column that is always there, nearly the mean square of
    the values for a rare feature. With the standard deviation alone, frequent features would come first
    whatever they say: `plans.stability`. Missing numbers do not count; what float32 has lost of large ones
    does. Sums are over the examples one by one, so it does not matter where the stream is cut.
    """

    def __init__(self) -> None:
        self._columns, self._rows = Columns(_NO_KEYS, np.zeros((1, 4)), grow=True), 0

    def add(self, chunk: Chunk, gaps: bool) -> None:
        """Add the next examples; with `gaps`, a stored 0 is a missing number."""
        chunk = chunk.counting()
        numbers = self._columns.meet(chunk)
        rests = _NO_RESTS if chunk.rests is None else chunk.rests
        preparing.add_spreads(self._columns.kept, numbers, gaps, read_only(chunk.values), read_only(rests))
        self._rows += len(chunk)

    def of(self, keys: U64) -> F64:
        """The s of these features; 0 for those that do not vary, or were never there."""
        sums = self._columns.at(keys).T
        count, mean = np.maximum(sums[preparing.ROWS], 1), sums[preparing.MEAN]
        zeros = 1 - sums[preparing.ROWS] / np.maximum(self._rows - sums[preparing.MISSING], 1)
        found: F64 = np.sqrt(sums[preparing.SQUARES] / count + np.square(mean) * zeros)
        return found

    def state(self) -> State:
        """Features in ascending order, their sums, and the number of examples."""
        keys, sums = self._columns.in_order()
        return {"keys": keys, "sums": sums, "rows": np.array([self._rows])}

    def check(self, state: Tensors) -> None:
        """StateError unless `state` holds such sums."""
        keys = check_keys(state, "keys")
        check_tensor(state, "sums", (len(keys) + 1, 4), np.float64)
        check_tensor(state, "rows", (1,), np.int64)

    def restore(self, state: State) -> None:
        """Go on from a `state`."""
        self._columns = Columns(state["keys"].copy(), state["sums"].copy(), grow=True)
        (self._rows,) = state["rows"].tolist()


@dataclass(eq=False)
class Means:
    """Columns that are centred, by their keys ``(columns,)``, which ascend, and what is `kept` of each.

    That is ``(columns, 3)``: two counts and the mean. With `gaps`, a stored 0 is a missing value, which adds
    nothing to a margin.
    """

    keys: U64 = field(default_factory=_NO_KEYS.copy)
    kept: F64 = field(default_factory=lambda: np.zeros((0, 3)))
    gaps: bool = False

    @property
    def means(self) -> F64:
        """The means ``(columns,)``."""
        return self.kept[:, preparing.CENTRE]

    def of(self, chunk: Chunk, counts: bool = False) -> Chunk:
        """`chunk` with the means subtracted, in float64, then rounded to float32; its rows may be counted."""
        room = chunk.nnz + len(chunk) * len(self.keys) + 1
        ends, keys = np.zeros(len(chunk) + 1, np.int64), np.empty(room, np.uint64)
        values, rests = np.empty(room, np.float32), _NO_RESTS if chunk.rests is None else chunk.rests
        given = (read_only(one) for one in (chunk.indptr, chunk.keys, chunk.values, rests))
        how = self.kept, counts, self.gaps
        count = preparing.centre(read_only(self.keys), *how, *given, ends, values, keys)
        return chunk.with_features(ends, keys[:count], values[:count])

    def tensors(self) -> Tensors:
        """As stored in a model file."""
        own = {"centre.means": self.means, "centre.counts": self.kept[:, preparing.COUNT]}
        return {"centre.keys": self.keys, **own, "centre.gaps": np.array([self.gaps])}


NO_MEANS = Means()


def ones(keys: U64) -> Chunk:
    """An example for each of these features, which is 1, with all others 0: its margin is their weight."""
    count = len(keys)
    return Chunk.from_csr(np.arange(count + 1), keys, np.ones(count), np.zeros(count))


def _are_among(keys: U64, known: U64) -> NDArray[np.bool_]:
    """Which of `keys` are among those `known`, which ascend."""
    if not len(known):
        return np.zeros(len(keys), np.bool_)
    found: NDArray[np.bool_] = known[np.searchsorted(known[:-1], keys)] == keys
    return found


class Centring(Means):
    """Subtracts from a column the mean of its values so far, this example included: x - mean.

    Columns are numeric ones of a table; in data without columns every feature may be one. A column is centred
    as long as it is zero in at most two examples, or in at most a tenth of those so far; after 100 examples
    it is settled for good which ones are. A feature that an example does not have is 0; a missing cell of a
    table adds nothing, which means the mean, and is not counted.

    Means are sums in float64 over the examples one by one, so it does not matter where the stream is cut. A
    value is the sum of its float32 and of its rest, if it has one.
    """

    _wanted: U64 | None = None
    """keys that may be columns; None: all"""

    def bind(self, layout: SettledLayout | None) -> None:
        """Centre the numeric columns of `layout`, if it has columns."""
        if layout is None:
            return
        numeric = NUMERIC in layout.kinds
        self.gaps = layout.gaps and numeric
        if has_columns(layout):
            self._wanted = np.array(sorted(numeric_keys(layout)) if numeric else [], np.uint64)

    def transform(self, chunk: Chunk, before: int, again: bool) -> Chunk:
        """`chunk`, which follows `before` examples, centred by the means up to each of its examples.

        Rows that come `again` are not counted.
        """
        if again:
            return self.read(chunk, before)
        first = min(max(FIRST - before, 0), len(chunk))
        parts = list[Chunk]()
        for k in range(first):  # features of the first examples become columns that were zero before
            row = chunk.rows(k, k + 1)
            new = row.keys[~_are_among(row.keys, self.keys)]
            new = new if self._wanted is None else new[_are_among(new, self._wanted)]
            if len(new):
                keys, fresh = np.concatenate([self.keys, new]), np.zeros((len(new), 3))
                fresh[:, : preparing.CENTRE] = before + k
                order = np.argsort(keys)
                self.keys, self.kept = keys[order], np.concatenate([self.kept, fresh])[order]
            parts.append(self.of(row, counts=True))
        rest = chunk if first == 0 else chunk.rows(first, len(chunk))
        if len(rest) and (centred := self.read(rest, before, counts=True)) is not rest:
            rest = centred
            self.drop_columns()
        if not parts:
            return rest
        bases = np.cumsum([0, *(one.nnz for one in parts)])
        ends = [one.indptr[1:] + base for one, base in zip((*parts, rest), bases, strict=True)]
        made = (np.concatenate([getattr(one, name) for one in (*parts, rest)]) for name in ("keys", "values"))
        return chunk.with_features(np.concatenate([_START, *ends]), *made)

    def drop_columns(self) -> None:
        """Forget the columns that have left, which are centred no more."""
        kept = self.kept[:, preparing.COUNT] >= 0
        if not kept.all():
            self.keys, self.kept = self.keys[kept], self.kept[kept]

    def read(self, chunk: Chunk, rows: int, counts: bool = False) -> Chunk:
        """`chunk`, centred by the means of the `rows` so far, which do not change unless its own count."""
        changes = len(self.keys) or self.gaps or chunk.rests is not None
        return self.of(chunk, counts) if changes else chunk

    def state(self) -> State:
        """Columns and means."""
        return {"centre.keys": self.keys, "centre.kept": self.kept}

    def check(self, state: Tensors) -> None:
        """StateError unless `state` holds means."""
        keys = check_keys(state, "centre.keys")
        kept = check_tensor(state, "centre.kept", (len(keys), 3), np.float64)
        counts = kept[:, : preparing.CENTRE]
        require(((counts >= 0) & (counts <= MOST_STEPS)).all(), "centre.kept", "counts are out of range")

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.keys, self.kept = state["centre.keys"].copy(), state["centre.kept"].copy()


def means_of(tensors: Tensors) -> Means | None:
    """The means in a model file; None without centring. StateError."""
    if not any(name.startswith("centre.") for name in tensors):
        return None
    keys = check_keys(tensors, "centre.keys")
    means, counts = (
        check_tensor(tensors, f"centre.{n}", (len(keys),), np.float64) for n in ("means", "counts")
    )
    require(((counts >= 0) & (counts <= MOST_STEPS)).all(), "centre.counts", "counts are out of range")
    gaps = check_tensor(tensors, "centre.gaps", (1,), np.bool_)
    return Means(keys, np.column_stack([counts, np.zeros(len(keys)), means]), bool(gaps[0]))
