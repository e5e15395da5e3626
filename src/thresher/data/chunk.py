"""Chunk: a block of examples, as rows of a compressed sparse matrix with 64-bit keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.errors import DataError, nonfinite, printable

_ARRAYS = "indptr", "keys", "values", "labels", "weights"
_DTYPES = tuple(np.dtype(name) for name in ("int64", "uint64", "float32", "float32", "float32"))
_EXTRAS = "targets", "groups", "cells", "offsets"
OF_VALUES = "keys", "values", "rests"
"""Arrays with an entry for each value"""
MOST_CELLS = 1 << 17
"""Numbers that stand for cells are below this."""


class StreamPosition(NamedTuple):
    """The start of a line in a source: file index, offset in uncompressed bytes, lines before it there."""

    file: int
    offset: int
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """n examples with nnz stored values in total.

    The keys of a row are unique and ascending. Values, labels and weights are finite; weights
    (importances) are not negative. The arrays may share memory with others: do not write to them.
    """

    indptr: NDArray[np.int64]
    """(n + 1,) row i is ``keys[indptr[i]:indptr[i + 1]]``; starts at 0"""
    keys: NDArray[np.uint64]
    """(nnz,) feature keys"""
    values: NDArray[np.float32]
    """(nnz,) feature values"""
    labels: NDArray[np.float32]
    """(n,)"""
    weights: NDArray[np.float32]
    """(n,) importance weights; default 1"""
    place: StreamPosition | None = None
    """where this chunk begins in its source"""
    after: StreamPosition | None = None
    """where the next chunk begins: a pass started there continues after this chunk"""
    targets: NDArray[np.float32] | None = None
    """(n, outputs) labels, if the source has several per example; `labels` is their first column"""
    groups: NDArray[np.uint64] | None = None
    """(n,) hashes of what the rows are grouped by, such as their user; 0 for a row without a group"""
    cells: NDArray[Any] | None = None
    """(n, columns) the values of some columns of a table beside the features (see `Source.sliced`): texts as
    they are read, then numbers that stand for them"""
    offsets: NDArray[np.float32] | None = None
    """(n,) numbers that are added to the margins of the examples, such as logarithms of exposures. Loops, and
    predictions, start the margin at the offset, as if it were the value of a feature whose weight is fixed at
    1: it is in no table, no scale, no size of an example and no product, and is not counted."""
    rests: NDArray[np.float32] | None = None
    """(nnz,) what float32 has lost of large values, NaN for what is missing: see `engine.centring`"""
    found: Any = None
    """an index, the keys, and their rows in it, if these were looked up while this chunk was read"""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def nnz(self) -> int:
        """Number of stored values in all rows."""
        return len(self.keys)

    def extras(self) -> dict[str, NDArray[Any]]:
        """The arrays, by name, that this chunk has but others may lack, with a row for each example."""
        return {name: array for name in _EXTRAS if (array := getattr(self, name)) is not None}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays that this chunk has, by name."""
        own = {name: getattr(self, name) for name in _ARRAYS} | self.extras()
        return own if self.rests is None else own | {"rests": self.rests}

    def span(self) -> tuple[int, int] | None:
        """The lowest and the highest key; None without any. Looks only at the ends of rows."""
        if not self.nnz:
            return None
        begins, ends = self.indptr[:-1], self.indptr[1:]
        filled = ends > begins
        if not filled.all():
            begins, ends = begins[filled], ends[filled]
        return int(self.keys[begins].min()), int(self.keys[ends - 1].max())

    def check_arrays(self) -> None:
        """Raise `DataError` if shapes, dtypes or `indptr` are invalid.

        Compiled code relies on them. For a single row this takes less than a microsecond.
        """
        ends, keys, values, labels, weights = self.indptr, self.keys, self.values, self.labels, self.weights
        try:
            rows, numbers, targets = labels.shape, keys.shape, self.targets
            fit = (
                (ends.dtype, keys.dtype, values.dtype, labels.dtype, weights.dtype) == _DTYPES
                and weights.shape == rows
                and values.shape == numbers
                and ends.shape == (rows[0] + 1,)
                and labels.ndim == keys.ndim == 1
                and ends.item(0) == 0
                and ends.item(-1) == numbers[0]
                and (
                    targets is None
                    or (targets.dtype == np.float32 and targets.shape == (*rows, targets.shape[1]))
                )
                and (self.groups is None or (self.groups.dtype == np.uint64 and self.groups.shape == rows))
                and (self.cells is None or self.cells.shape[:1] == rows)
                and (
                    self.offsets is None or (self.offsets.dtype == np.float32 and self.offsets.shape == rows)
                )
                and (self.rests is None or (self.rests.dtype == np.float32 and self.rests.shape == numbers))
                and (rows[0] < 2 or (ends[1:] >= ends[:-1]).all())
            )
        except (AttributeError, IndexError):
            fit = False
        if not fit:
            raise DataError(
                "the arrays of a Chunk must be indptr (n + 1,) int64 from 0 to nnz, keys (nnz,)"
                " uint64, values (nnz,), labels (n,), weights (n,) float32: use Chunk.from_csr"
            )

    def check(self) -> None:
        """Raise `DataError` for anything a Chunk must not hold. Call it once, on a Chunk from a caller."""
        self.check_arrays()
        falls, begins = self.keys[1:] <= self.keys[:-1], np.zeros(self.nnz + 1, bool)
        begins[self.indptr] = True
        if (falls & ~begins[1:-1]).any():
            raise DataError("the keys of a row must be unique and ascending: use Chunk.from_csr")
        own = self.values, self.labels, self.weights, self.targets, self.offsets
        for what, numbers in zip(("value", "label", "weight", "label", "offset"), own, strict=True):
            if numbers is not None:
                floats(numbers.ravel(), what)
        if self.rests is not None and np.isinf(self.rests).any():
            raise DataError("what float32 has lost of a value must be finite, or NaN where it is missing")
        _check_importances(self.weights)

    def rows(self, lo: int, hi: int) -> Chunk:
        """Rows ``lo <= i < hi`` (clipped like a slice); all arrays but `indptr` are views."""
        lo, hi, _ = slice(lo, hi).indices(len(self))
        hi = max(lo, hi)
        first, last = int(self.indptr[lo]), int(self.indptr[hi])
        whole = lo == 0 and hi == len(self)
        return Chunk(
            self.indptr[: hi + 1] if lo == 0 else self.indptr[lo : hi + 1] - first,
            self.keys[first:last],
            self.values[first:last],
            self.labels[lo:hi],
            self.weights[lo:hi],
            self.place if lo == 0 else None,
            self.after if whole else None,
            rests=None if self.rests is None else self.rests[first:last],
            **{name: array[lo:hi] for name, array in self.extras().items()},
        )

    def with_features(
        self, indptr: NDArray[np.int64], keys: NDArray[np.uint64], values: NDArray[np.float32]
    ) -> Chunk:
        """These examples with other features, without rests, in half the time of `replace`."""
        others = self.place, self.after, self.targets, self.groups, self.cells, self.offsets
        return Chunk(indptr, keys, values, self.labels, self.weights, *others)

    def pieces(self, most: int, rows: int | None = None) -> Iterator[Chunk]:
        """The rows in order, in chunks of at most `most` stored values, or of one row that has more.

        They have at most so many `rows`, if given.
        """
        lo, last = 0, len(self)
        if self.nnz <= most and (rows is None or last <= rows):
            yield self
            return
        while lo < last:
            hi = self.end_within(lo, most)
            hi = hi if rows is None else min(hi, lo + rows)
            yield self.rows(lo, hi)
            lo = hi

    def end_within(self, lo: int, most: int) -> int:
        """The end of the longest range of rows from `lo` with at most `most` stored values, or of one row."""
        return max(lo + 1, int(np.searchsorted(self.indptr, self.indptr[lo] + most, side="right")) - 1)

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Chunk:
        """A copy of some rows, given as a mask (n,), or by number in any order, without a place."""
        from thresher.engine.centring import copy_rows  # files are opened without Numba

        self.check_arrays()
        rows: NDArray[Any] = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.indptr[rows + 1] - self.indptr[rows], out=indptr[1:])
        keys, values = np.empty(indptr[-1], np.uint64), np.empty(indptr[-1], np.float32)
        arrays = read_only(self.indptr), read_only(self.keys), read_only(self.values)
        copy_rows(*arrays, read_only(rows), indptr, keys, values)
        rests = None if self.rests is None else replace(self, values=self.rests, rests=None).take(rows).values
        extras: Any = {name: array[rows] for name, array in self.extras().items()}
        return Chunk(indptr, keys, values, self.labels[rows], self.weights[rows], rests=rests, **extras)

    def ascending(self) -> Chunk:
        """The rows with ascending keys; values of repeated keys are added up in order. `DataError`."""
        starts, keys = self.indptr, self.keys
        rises = keys[1:] > keys[:-1]
        # from the last key of a row to the next row
        rises[starts[(starts > 0) & (starts < len(keys))] - 1] = True
        if rises.all():
            return self
        row = np.repeat(np.arange(len(self)), np.diff(starts))
        order = np.lexsort((keys, row))
        row, keys = row[order], keys[order]
        fresh = np.ones(len(keys), bool)
        fresh[1:] = (keys[1:] != keys[:-1]) | (row[1:] != row[:-1])
        values, rests = self.values[order], None if self.rests is None else self.rests[order]
        if not fresh.all():
            starts = np.append(0, np.cumsum(np.bincount(row[fresh], minlength=len(self))))
            keys, values = keys[fresh], _sum_runs(values, fresh)
            rests = None if rests is None else _sum_runs(rests, fresh)
        return replace(self, indptr=starts, keys=keys, values=values, rests=rests)

    def counting(self) -> Chunk:
        """The rows of importance above 0, the only ones that are learned; the chunk itself if all are."""
        return self if np.count_nonzero(self.weights) == len(self) else self.take(self.weights > 0)

    def end_of(self, lo: int, count: int) -> int:
        """The end of the shortest range of rows from `lo` with `count` rows of importance above 0, if any."""
        hi = min(lo + count, len(self))
        if np.count_nonzero(self.weights[lo:hi]) == hi - lo:
            return hi
        counting = np.flatnonzero(self.weights[lo:])
        return lo + int(counting[count - 1]) + 1 if count <= len(counting) else len(self)

    def base(self) -> NDArray[np.float64]:
        """What is added to the margins (n,): the offsets, 0 without any."""
        return np.zeros(len(self)) if self.offsets is None else self.offsets.astype(np.float64)

    def offsets_if(self, shifted: bool) -> NDArray[np.float32] | None:
        """The offsets; None for a model that is not `shifted`.

        `DataError` for rows without offsets if it is, and for others if it is not.
        """
        if self.offsets is not None and not shifted:
            raise DataError("offsets are given, but the model was trained without any: leave them out")
        if self.offsets is None and shifted and len(self):
            raise DataError(
                "the model was trained with offsets, and these data have none: give a number for each row,"
                " offsets="
            )
        return self.offsets

    def with_offsets(self, offsets: ArrayLike) -> Chunk:
        """The rows, each with its offset of `offsets` (n,).

        `DataError` unless there is a finite number for each row, and for rows that have offsets.
        """
        found = floats(offsets, "offset")
        if len(found) != len(self):
            raise DataError(f"{len(found):,} offsets for {len(self):,} rows: give one for each row")
        if self.offsets is not None:
            raise DataError("the rows have offsets already: leave offsets= out")
        return replace(self, offsets=found)

    def at(self, place: StreamPosition | None, after: StreamPosition | None = None) -> Chunk:
        """A chunk of these examples with other places."""
        return replace(self, place=place, after=after)

    @classmethod
    def of_rows(
        cls, rows: Iterable[tuple[Any, Mapping[int, float]]], weights: ArrayLike | None = None
    ) -> Chunk:
        """A chunk of ``(label, {key: value})`` pairs; a label may be several. Errors as in `from_csr`."""
        listed = list(rows)
        lengths = [len(features) for _, features in listed]
        try:
            keys = np.array([key for _, row in listed for key in row], dtype=np.uint64)
        except (OverflowError, TypeError, ValueError) as error:
            raise DataError(f"feature keys must be whole numbers from 0 to 2**64 - 1: {error}") from error
        values = [value for _, row in listed for value in row.values()]
        labels = [label for label, _ in listed]
        return cls.from_csr(np.cumsum([0, *lengths]), keys, values, labels, weights)

    @classmethod
    def from_csr(
        cls,
        indptr: ArrayLike,
        indices: ArrayLike,
        data: ArrayLike,
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        rests: NDArray[np.float32] | None = None,
    ) -> Chunk:
        """A chunk of checked CSR arrays, copied only if their dtype or order is wrong.

        Shapes: (n + 1,), (nnz,), (nnz,), (n,) or with several outputs (n, outputs), (n,), (nnz,). Keys are
        sorted within each row; values of repeated keys are added in order. Raises `DataError` if shapes
        disagree, a key is negative or not a whole number, or a number is not finite in float32.
        """
        starts = np.asarray(indptr)
        if starts.ndim != 1 or len(starts) == 0 or starts.dtype.kind not in "iu":
            raise DataError("indptr must be a nonempty one-dimensional array of whole numbers")
        starts = np.ascontiguousarray(starts, np.int64)
        check_starts(starts, int(starts[-1]))
        keys = np.asarray(indices)
        keys = keys if keys.size else np.zeros(0, np.uint64)
        if keys.ndim != 1 or keys.dtype.kind not in "iu":
            raise DataError(
                "feature keys must be a one-dimensional array of whole numbers from 0 to 2**64 - 1"
            )
        if keys.dtype.kind == "i" and (keys < 0).any():
            raise DataError(f"feature keys must not be negative, found {keys[keys < 0][0]}")
        keys = np.ascontiguousarray(keys, np.uint64)
        table = np.asarray(labels)
        many = table.reshape(len(table), -1) if table.ndim == 2 else None
        values = floats(data, "value", (starts, keys))
        targets = floats(labels if many is None else many[:, 0], "label")
        each = None if many is None else floats(many.ravel(), "label").reshape(many.shape)
        importance = np.ones(len(targets), np.float32) if weights is None else floats(weights, "weight")
        if len(starts) != len(targets) + 1 or len(importance) != len(targets):
            counts = f"{len(starts) - 1} rows, {len(targets)} labels"
            counts += "" if weights is None else f", {len(importance)} weights"
            raise DataError(f"{counts}: the numbers must be equal")
        if len(keys) != len(values) or starts[-1] != len(keys):
            raise DataError(f"indptr ends at {starts[-1]}, with {len(keys)} keys and {len(values)} values")
        _check_importances(importance)
        return cls(starts, keys, values, targets, importance, targets=each, rests=rests).ascending()


def _check_importances(weights: NDArray[np.float32]) -> None:
    if (weights < 0).any():
        raise DataError(f"example {int(np.argmax(weights < 0)) + 1}: the importance weight is negative")


def check_starts(starts: NDArray[Any], last: int) -> None:
    """Raise `DataError` unless row starts begin at 0, never fall, and end at `last` at most."""
    if not ascends(starts, last):
        raise DataError("indptr must start at 0, never decrease, and not exceed the number of values")


def ascends(starts: NDArray[Any], last: int) -> bool:
    """Whether the starts of slices begin at 0, never fall, and end at `last` at most."""
    return bool(starts[0] == 0 and (starts[1:] >= starts[:-1]).all() and starts[-1] <= last)


def floats(
    numbers: ArrayLike, what: str, csr: tuple[NDArray[np.int64], NDArray[np.uint64]] | None = None
) -> NDArray[np.float32]:
    """Numbers (n,) as float32. `DataError`, which says `what` they are, unless each is finite.

    With the starts of rows and the keys of values in `csr`, it says the row and the column.
    """
    try:
        given = np.asarray(numbers)
        if given.dtype.kind == "c":
            raise TypeError("it is complex")
        with np.errstate(over="ignore"):
            singles = np.ascontiguousarray(given, np.float32)
    except (TypeError, ValueError) as error:
        several = isinstance(numbers, list | tuple | np.ndarray) and not np.iscomplexobj(numbers)
        listed: Any = numbers if several else ()
        for k, one in enumerate(listed):
            try:
                float(one)
            except (TypeError, ValueError):
                found = printable(repr(one)[:40])
                raise DataError(f"{what} {k + 1} is not a number: {found}") from error
        raise DataError(f"each {what} must be a number: {error}") from error
    if given.ndim != 1:
        raise DataError(f"{what}s must be one-dimensional, found shape {given.shape}")
    finite = np.isfinite(singles)
    if not finite.all():
        wrong = int(np.argmin(finite))
        if csr is None or wrong >= len(csr[1]):
            raise DataError(f"{what} {wrong + 1} is not finite in float32: {given[wrong]}")
        where = f"row {np.searchsorted(csr[0], wrong, 'right')}, column {csr[1][wrong]}"
        hint = "; fill in missing values" if np.isnan(singles[wrong]) else ""
        raise DataError(f"{where}: {nonfinite(float(given[wrong]))} is not allowed{hint}")
    return singles


def _sum_runs(values: NDArray[np.float32], fresh: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The sum of each of the values that are `fresh` and those after it that are not. `DataError`."""
    sums = np.zeros(int(fresh.sum()), np.float32)
    with np.errstate(over="ignore"):
        np.add.at(sums, np.cumsum(fresh) - 1, values)
    if np.isinf(sums).any():
        raise DataError("the sum of the values of a repeated key is too large for float32")
    return sums


def concat(chunks: Sequence[Chunk]) -> Chunk:
    """All rows of `chunks` in order, copied to new arrays."""
    if not chunks:
        return Chunk.from_csr([0], [], [], [])
    each = [chunk.arrays() for chunk in chunks]
    if any("rests" in one for one in each):
        each = [{"rests": np.zeros(len(one["keys"]), np.float32)} | one for one in each]
    bases = np.cumsum([0, *(chunk.nnz for chunk in chunks)])
    starts = [one.pop("indptr")[1:] + base for one, base in zip(each, bases, strict=False)]
    shared = [name for name in each[0] if all(name in one for one in each)]
    arrays: dict[str, Any] = {name: np.concatenate([one[name] for one in each]) for name in shared}
    indptr = np.concatenate([np.zeros(1, np.int64), *starts])
    return Chunk(indptr, **arrays, place=chunks[0].place, after=chunks[-1].after)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view, so that one compiled kernel serves both writable and read-only arrays."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)  # quicker than through `flags`
    return view
