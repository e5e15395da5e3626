"""Figures by the values of a column of a table, such as the error by country.

The keys of a row do not tell the values of a column. So the data are read a second time beside the
first, by a source in which that column alone is a feature and all else is read as before: its rows are then
keys of values, in the same order. Columns of numbers are put in bins as ``--bins`` does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.columns import (
    ABSENT,
    BINS,
    CATEGORICAL,
    IGNORE,
    LABEL,
    LIST,
    NUMERIC,
    WEIGHT,
    column_meant,
    matching,
)
from thresher.data.errors import DataError
from thresher.data.features.names import find_names
from thresher.data.layout import AnyLayout, SettledLayout, has_columns
from thresher.data.source import Source
from thresher.learning.evaluation.curves import wilson
from thresher.learning.evaluation.figures import claimed
from thresher.learning.inspection.formatting import table_of
from thresher.learning.model.objective import F64, Head
from thresher.learning.model.prediction import source_for
from thresher.options.messages import mention

SHOWN = 20
"""maximum number of values with figures of their own"""
MOST = 10
"""maximum number of columns"""
_DISTINCT = 1 << 16
"""maximum number of values counted separately: the first to occur"""
_MISSING = -1
_OTHERS, _NONE = "all others", "no value"
_FEW, _FEW_OF_CLASS = 50, 10
"""A slice with fewer examples, or fewer of either of two classes, is small: its figures may be chance."""
_NORMAL = 1.959963984540054
"""the 97.5 % quantile of the normal distribution"""
_SUMS = (
    *("examples", "weight", "loss", "wrong", "outcome", "predicted"),
    *("weight2", "positive", "loss2", "loss_weight", "wrong2", "wrong_weight"),
)
"""Columns of the sums of a value. Losses, errors (squared, of numbers), outcomes and predictions are
multiplied by importances; sums of squares and products of these give standard errors."""
Figures = dict[str, Any]


def sliced(layout: AnyLayout | None, column: str) -> SettledLayout:
    """The layout in which `column` is the only feature. DataError if there is no such column."""
    if layout is None or not has_columns(layout):
        raise DataError(f"slices need a table with columns; these data have none, so there is no '{column}'")
    if column not in layout.columns:
        raise DataError(f"no column is called '{column}'; {column_meant(column, layout.columns)}")
    kinds = dict(zip(layout.columns, layout.kinds, strict=True))
    if kinds[column] in (LABEL, WEIGHT):
        raise DataError(f"'{column}' is the {kinds[column]}: choose another column to slice by")
    if kinds[column] == LIST:
        raise DataError(f"'{column}' contains lists: slice by a column with one value per row")
    own = BINS if kinds[column] in (NUMERIC, BINS) else CATEGORICAL
    kept = {name: kind if kind in (LABEL, WEIGHT, ABSENT) else IGNORE for name, kind in kinds.items()}
    plain = {name: getattr(AnyLayout, name) for name in ("hash", "bits", "ngrams", "interact")}
    return replace(layout, kinds=tuple({**kept, column: own}.values()), **plain)


class Slices:
    """Figures of a model for each value of a column, counted while the data are read.

    `beside` is a source of the same rows, with a layout of `sliced`. If the two
    readings skip different rows, values are attributed to the wrong rows: `check` detects that.
    """

    def __init__(
        self, column: str, head: Head, lowest: float, beside: Any, threshold: float | None = None
    ) -> None:
        self.column, self._threshold = column, threshold
        self._head, self._lowest, self._beside = head, lowest, beside
        self._chunks: Iterator[Chunk] = beside.chunks()
        self._waiting = concat([])
        self._places: dict[int, int] = {_MISSING: 0}
        self._sums = np.zeros((_DISTINCT + 2, len(_SUMS)))

    def add(self, chunk: Chunk, margins: F64) -> None:
        """Add the next examples."""
        keys = self._keys(len(chunk))
        values, inverse = np.unique(keys, return_inverse=True)
        places = np.array([self._place(value) for value in values.tolist()], np.int64)[inverse]
        weights = chunk.weights.astype(np.float64)
        loss, wrong, outcome, predicted = self._figures_of_rows(chunk, margins)
        missed, squares = wrong * weights, weights * weights
        positive = self._positive(chunk)
        each = (np.ones(len(chunk)), weights, loss, missed, outcome * weights, predicted * weights)
        more = (squares, positive, loss * loss, loss * weights, missed * missed, missed * weights)
        for k, one in enumerate((*each, *more)):
            np.add.at(self._sums[:, k], places, one)

    def _positive(self, chunk: Chunk) -> F64:
        """Which rows are of the positive class, if there are two classes."""
        two = self._head.classifies and self._head.outputs.kind == "one"
        return (chunk.labels > 0).astype(np.float64) if two else np.zeros(len(chunk))

    def _figures_of_rows(self, chunk: Chunk, margins: F64) -> tuple[F64, F64, F64, F64]:
        """For each row: loss times importance, error, outcome and prediction."""
        head, loss = self._head, self._head.losses(margins, chunk)
        guess = head.respond(margins, "label", self._lowest)
        several = head.outputs.kind in ("labels", "values")
        truth = np.asarray(head.targets(chunk) if several else chunk.labels, np.float64)
        if not head.classifies:
            wrong = _row_means((guess - truth.reshape(guess.shape)) ** 2)
            return loss, wrong, _row_means(truth), _row_means(guess)
        if head.outputs.kind == "classes":
            return loss, (guess != truth).astype(float), np.zeros(len(chunk)), np.zeros(len(chunk))
        likely = head.respond(margins, "probability", 0.0) if head.has_probabilities else margins
        positive = claimed(head, margins, likely, self._threshold)
        predicted = likely if head.has_probabilities else positive
        return loss, _row_means(positive != (truth > 0)), _row_means(truth > 0), _row_means(predicted)

    def _place(self, value: int) -> int:
        """The index at which a value is counted; the last index is for all values beyond the maximum."""
        place = self._places.get(value)
        if place is None:
            if len(self._places) > _DISTINCT:
                return _DISTINCT + 1
            place = self._places[value] = len(self._places)
        return place

    def _keys(self, rows: int) -> NDArray[np.int64]:
        """The values of the next rows, as keys; `_MISSING` if there is none."""
        while len(self._waiting) < rows and (chunk := next(self._chunks, None)) is not None:
            self._waiting = concat([self._waiting, chunk]) if len(self._waiting) else chunk
        if len(self._waiting) < rows:
            raise self._mismatch()
        taken, self._waiting = self._waiting.rows(0, rows), self._waiting.rows(rows, len(self._waiting))
        keys = np.full(rows, _MISSING, np.int64)
        there = np.diff(taken.indptr) > 0
        keys[there] = taken.keys[taken.indptr[:-1][there]].view(np.int64)
        return keys

    def _mismatch(self) -> DataError:
        return DataError(
            f"{mention(slices=self.column)}: rows cannot be matched because of bad lines: correct them"
        )

    def check(self, examples: int) -> None:
        """DataError unless both sources had the same rows."""
        with closing(self._chunks):  # type: ignore[type-var]
            rest = len(self._waiting) + sum(map(len, self._chunks))
        if rest or int(self._sums[:, 0].sum()) != examples:
            raise self._mismatch()

    def figures(self) -> list[Figures]:
        """Figures of the most frequent values (see `_row`), then of all others, then of missing values.

        Values are ordered by falling count, bins by their range.
        """
        counts = self._sums[:, 0]
        keys = np.array(list(self._places), np.int64)
        order = np.argsort(-counts[1 : len(keys)], kind="stable") + 1
        top = order[:SHOWN]
        named = self._names(keys[top])
        shown = [(named[k], self._sums[place]) for k, place in enumerate(top.tolist())]
        if self._binned:
            shown = [(_interval(name), sums) for name, sums in sorted(shown, key=lambda one: _order(one[0]))]
        found = [_row(name, sums, self._head) for name, sums in shown]
        rest = self._sums[order[SHOWN:]].sum(axis=0) + self._sums[-1]
        found += [_row(_OTHERS, rest, self._head)] if rest[0] else []
        return found + ([_row(_NONE, self._sums[0], self._head)] if counts[0] else [])

    def _names(self, keys: NDArray[np.int64]) -> list[str]:
        """The names of the values."""
        names = find_names(self._beside, np.sort(keys.view(np.uint64)))
        called = [names.get(key, str(key)) for key in keys.view(np.uint64).tolist()]
        return [name.removeprefix(f"{self.column}=") for name in called]

    @property
    def _binned(self) -> bool:
        """Whether the values are bin numbers."""
        layout = self._beside.layout
        return bool(dict(zip(layout.columns, layout.kinds, strict=True))[self.column] == BINS)


def _row_means(values: Any) -> F64:
    means: F64 = np.asarray(values, np.float64).reshape(len(values), -1).mean(axis=1)
    return means


def _row(name: str, sums: NDArray[np.float64], head: Head) -> Figures:
    """The figures of a value: ``value examples weight small loss`` and ``error`` or ``rmse``.

    With two classes or numbers also ``observed`` and ``predicted``: shares or means of both. Names ending in
    ``_low`` and ``_high`` are the ends of 95 % intervals: Wilson's of shares, by the normal distribution of
    means. A ``small`` slice has fewer than 50 examples, or fewer than 10 of either of two classes.
    """
    of = dict(zip(_SUMS, sums.tolist(), strict=True))
    examples, weight = int(of["examples"]), of["weight"]
    share = (lambda total: total / weight) if weight else (lambda total: None)
    count = weight * weight / of["weight2"] if of["weight2"] else 0.0
    two = head.classifies and head.outputs.kind == "one"
    rarer = min(of["positive"], examples - of["positive"]) if two else math.inf
    row: Figures = {"value": name, "examples": examples, "weight": weight}
    row |= {"small": examples < _FEW or rarer < _FEW_OF_CLASS, "loss": share(of["loss"])}
    losses = _of_mean(of, "loss")
    if losses and head.classifies and head.has_probabilities:  # such losses are positive
        losses = max(losses[0], 0.0), losses[1]
    row |= _ends("loss", losses)
    if head.classifies:
        row["error"] = share(of["wrong"])
        row |= _ends("error", wilson(of["wrong"] / weight, count) if weight else None)
    else:
        row["rmse"] = math.sqrt(of["wrong"] / weight) if weight else None
        squares = _of_mean(of, "wrong")
        row |= _ends("rmse", squares and (math.sqrt(max(squares[0], 0.0)), math.sqrt(squares[1])))
    if head.outputs.kind != "classes":
        row["observed"] = share(of["outcome"])
        row |= _ends("observed", wilson(of["outcome"] / weight, count) if two and weight else None, two)
        row["predicted"] = share(of["predicted"])
    return row


def _ends(name: str, interval: tuple[float, float] | None, known: bool = True) -> Figures:
    """The ends of an interval; None if they are unknown, nothing for a figure without intervals."""
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high} if known else {}


def _of_mean(of: Figures, name: str) -> tuple[float, float] | None:
    """The interval of a weighted mean; None for fewer than two examples."""
    weight = of["weight"]
    if of["examples"] < 2 or not weight:
        return None
    mean = of[name] / weight
    squares = of[f"{name}2"] - 2 * mean * of[f"{name}_weight"] + mean * mean * of["weight2"]
    corrected = max(squares, 0.0) * of["examples"] / (of["examples"] - 1)
    half = _NORMAL * math.sqrt(corrected) / weight
    return mean - half, mean + half


def _order(name: str) -> tuple[int, str]:
    return (int(name), "") if re.fullmatch(r"-?\d{1,5}", name) else (0, name)


def _interval(name: str) -> str:
    """The range of numbers in the bin with this number.

    >>> _interval("0"), _interval("1"), _interval("5"), _interval("-3")
    ('under 1', '1 to 2', '5.65 to 7.39', '-4.11 to -2.72')
    """
    if not re.fullmatch(r"-?\d{1,5}", name):
        return name
    size = abs(int(name))
    if size == 0:
        return "under 1"
    low, high = (math.exp(math.sqrt(k - 2)) if k > 2 else float(k) for k in (size, size + 1))
    ends = f"{low:.3g}", f"{high:.3g}"
    return f"-{ends[1]} to -{ends[0]}" if name.startswith("-") else " to ".join(ends)


def _meant(layout: AnyLayout | None, wanted: str) -> list[str]:
    if layout is None or not has_columns(layout):
        return []
    kinds = dict(zip(layout.columns, layout.kinds, strict=True))
    found = matching(wanted, layout.columns)
    return found if len(found) < 2 else [name for name in found if kinds[name] not in (LABEL, WEIGHT)]


def chosen_columns(layout: AnyLayout | None, wanted: Sequence[str]) -> list[str]:
    """The columns meant by names, positions from 1, ranges and patterns.

    Labels and weights are chosen only by name or position; a name that means no column is left as it is.
    ValueError for too many columns, and for a repeated one.
    """
    columns = [name for one in wanted for name in _meant(layout, one) or [one]]
    if len(columns) > MOST:
        raise ValueError(f"{len(columns)} columns to slice by: at most {MOST} are allowed")
    if len(set(columns)) < len(columns):
        raise ValueError("slices: name each column once")
    return columns


def slices_of(
    model: Any,
    source: Source,
    data: Any,
    columns: Sequence[str],
    threshold: float | None,
    reading: Mapping[str, Any],
) -> list[Slices]:
    """The slices of `source`, by the columns meant by `columns`; `data` are read once more for each.

    `reading` is how they are read. Raises the errors of `chosen_columns`, and DataError.
    """
    found = []
    errors = "fail" if reading.get("on_error", "fail") == "fail" else "skip"
    kept = {name: reading[name] for name in ("threads", "where") if name in reading}
    for column in chosen_columns(source.layout, columns):
        layout = sliced(source.layout, column)
        if not source.rereadable:
            once = "the data must be read twice, but these can be read only once"
            raise DataError(f"{mention(slices=column)}: {once}")
        beside = source_for(model, data, model.head.domain, layout=layout, on_error=errors, **kept)
        found.append(Slices(column, model.head, model.lowest_label, beside, threshold))
    return found


def figures_of_slices(slices: Sequence[Slices], examples: int) -> Figures:
    """``slices``: the figures by column, after all examples were read; nothing without slices. DataError."""
    for one in slices:
        one.check(examples)
    return {"slices": {one.column: one.figures() for one in slices}} if slices else {}


def names_of_columns(slices: Any) -> Sequence[str]:
    """The argument `slices` as a list. TypeError for anything but names."""
    columns = [slices] if isinstance(slices, str) else slices
    if not hasattr(columns, "__len__") or not all(isinstance(one, str) for one in columns):
        raise TypeError(f"slices must be names of columns, not {slices!r}")
    return columns


def shown_names(rows: Sequence[Figures]) -> list[str]:
    """The figures of a table of slices; the ends of their intervals belong to them."""
    return [
        name for name in rows[0] if not name.endswith(("_low", "_high")) and name not in ("weight", "small")
    ]


def interval_of(row: Figures, name: str) -> str | None:
    """The interval of a figure in words; None for a figure without, empty if it is unknown.

    >>> interval_of({"error": 0.1, "error_low": 0.05523, "error_high": 0.1744}, "error")
    '0.0552 to 0.174'
    """
    if f"{name}_low" not in row:
        return None
    ends = row[f"{name}_low"], row[f"{name}_high"]
    return "" if None in ends else "{:.3g} to {:.3g}".format(*ends)


SMALL = (
    f"A star marks small slices: fewer than {_FEW} examples, or fewer than "
    f"{_FEW_OF_CLASS} of either class; their figures may be chance"
)


def slice_lines(column: str, rows: Sequence[Figures]) -> list[str]:
    """The table of the slices by a column, as text."""
    if not rows:
        return []
    heads, table = list[str](), [list[Any]() for _ in rows]
    for name in shown_names(rows):
        heads += [name, *(["95% interval"] if interval_of(rows[0], name) is not None else [])]
        for row, cells in zip(rows, table, strict=True):
            cells.append(f"{row[name]}{' *' if row['small'] else ''}" if name == "value" else row[name])
            cells += [] if (interval := interval_of(row, name)) is None else [interval or "-"]
    lines = ["", f"by {column}", *table_of(heads, table)]
    return [*lines, *([SMALL] if any(row["small"] for row in rows) else [])]
