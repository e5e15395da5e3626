"""Figures by the values of a column of a table, such as the error by country.

The keys of a row do not tell the values of a column. So readers give the texts in these columns beside the
rows (`Source.sliced`, `Chunk.cells`), whether or not the column is a feature. Columns of numbers are put in
bins as ``--bins`` does. Sums in float64 are added row by row, and values are numbered as they occur, so that
chunks make no difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import MOST_CELLS, Chunk
from thresher.data.columns import LABEL, WEIGHT, ColumnValues, matching, read_beside
from thresher.data.errors import OneLineError, first_few
from thresher.data.formats.tables.table_rows import bin_of
from thresher.data.layout import AnyLayout, has_columns
from thresher.data.source import Source
from thresher.learning.evaluation.curves import NORMAL, error_of_mean, wilson
from thresher.learning.evaluation.evaluate import row_errors, row_means
from thresher.learning.evaluation.figures import Assessment, assess
from thresher.learning.inspection.formatting import table_of
from thresher.learning.model.objective import F64, Objective
from thresher.options.messages import mention

SHOWN = 20
"""maximum number of values with figures of their own"""
MOST = 10
"""maximum number of columns"""
_OTHERS, _NONE = "all others", "no value"
_BIN = re.compile(r"-?\d{1,5}")
"""The number of a bin"""
_LONGEST = 60
"""Characters of a value in a table; the rest is cut off"""
_FEW, _FEW_OF_CLASS = 50, 10
"""A slice with fewer examples, or fewer of either of two classes, is small: its figures may be chance."""
_SUMS = (
    *("examples", "weight", "loss", "wrong", "outcome", "predicted"),
    *("weight2", "positive", "loss2", "loss_weight", "wrong2", "wrong_weight"),
)
"""Columns of the sums of a value. Losses, errors (squared, of numbers), outcomes and predictions are
multiplied by importances; sums of squares and products of these give standard errors."""
_COLUMNS = ("value", "examples", "weight", "loss", "error", "rmse", "observed", "predicted", "ratio")
"""What a table shows, in this order"""
Figures = dict[str, Any]


def _bin(text: str) -> str:
    """The number of the bin of a text, if it is a number; empty if that is not finite."""
    try:
        number = np.float32(text)
    except ValueError:
        return text
    return str(bin_of(number)) if np.isfinite(number) else ""


class Slices:
    """Figures of a model for each value of a column, which is column `k` of `Chunk.cells`."""

    def __init__(
        self, k: int, values: ColumnValues, head: Objective, threshold: float | None, every: bool = False
    ) -> None:
        """With `every` value told apart, numbers are not put in bins, and all are shown."""
        self.column, self._k, self._head, self._threshold = values.column, k, head, threshold
        self.values, self._binned = values, values.is_number and not every
        self._shown = MOST_CELLS if every else SHOWN
        self._sums = np.zeros((MOST_CELLS, len(_SUMS)))

    def add(self, chunk: Chunk, margins: F64) -> None:
        """Add the next examples, of importance above 0."""
        assert chunk.cells is not None
        cells, head = chunk.cells[:, self._k], self._head
        places = self.values.numbers(cells)
        weights, kind = chunk.weights.astype(np.float64), head.outputs.kind
        loss, truth, none = head.losses(margins, chunk), head.truth(chunk), np.zeros(len(chunk))
        positive = (chunk.labels > 0).astype(np.float64) if head.is_of_two else none
        wrong, outcome, predicted = row_errors(head, margins, truth, self._threshold), none, none
        if not head.classifies:
            outcome, predicted = row_means(truth), row_means(head.respond(margins, "label", 0.0))
        elif kind != "classes":
            claims = head.positive(margins, self._threshold)
            likely = head.respond(margins, "probability", 0.0) if head.has_probabilities else claims
            outcome, predicted = row_means(truth > 0), row_means(likely)
        missed, squares = wrong * weights, weights * weights
        each = (np.ones(len(chunk)), weights, loss, missed, outcome * weights, predicted * weights)
        more = (squares, positive, loss * loss, loss * weights, missed * missed, missed * weights)
        for k, one in enumerate((*each, *more)):
            np.add.at(self._sums[:, k], places, one)

    def figures(self) -> list[Figures]:
        """Figures of the heaviest values (see `_row`), then of all others, then of missing values.

        Values are ordered by falling importance, bins by their range. One called like a row of others is in
        quotes.
        """
        names, sums = [*self.values.known], self._sums
        order = np.argsort(-sums[1 : len(names) + 1, 1], kind="stable") + 1
        shown = [(names[place - 1], sums[place]) for place in order[: self._shown].tolist()]
        if self._binned:
            shown.sort(key=lambda one: (int(one[0]), "") if _BIN.fullmatch(one[0]) else (0, one[0]))
        called = [f'"{name}"' if name.strip('"') in (_OTHERS, _NONE) else name for name, _ in shown]
        called = [*map(_interval, called)] if self._binned else called
        rest = sums[order[self._shown :]].sum(axis=0) + sums[-1]
        each = [*zip(called, (one for _, one in shown), strict=True), (_OTHERS, rest), (_NONE, sums[0])]
        return [_row(name, one, self._head) for name, one in each if one[0]]


def _row(name: str, sums: NDArray[np.float64], head: Objective) -> Figures:
    """The figures of a value: ``value examples weight small loss`` and ``error`` or ``rmse``.

    With two classes or numbers also ``observed`` and ``predicted``: shares or means of both, and of one
    output the ``ratio`` of predicted to observed, which is 1 if the model is calibrated. Names ending in
    ``_low`` and ``_high`` are the ends of 95 % intervals: Wilson's of shares, by the normal distribution of
    means. A ``small`` slice has fewer than 50 examples, or fewer than 10 of either of two classes.
    """
    of = dict(zip(_SUMS, sums.tolist(), strict=True))
    examples, weight = int(of["examples"]), of["weight"]
    count = weight * weight / of["weight2"]
    two = head.classifies and head.outputs.kind == "one"
    rarer = min(of["positive"], examples - of["positive"]) if two else math.inf
    row: Figures = {"value": name, "examples": examples, "weight": weight}
    row |= {"small": examples < _FEW or rarer < _FEW_OF_CLASS, "loss": of["loss"] / weight}

    def of_mean(figure: str) -> tuple[float, float] | tuple[None, None]:
        more = (of[figure], of[f"{figure}2"], of[f"{figure}_weight"])
        error = error_of_mean(examples, weight, of["weight2"], *more)
        if error is None:
            return None, None
        return of[figure] / weight - NORMAL * error, of[figure] / weight + NORMAL * error

    low, high = of_mean("loss")
    if low is not None and head.classifies and head.has_probabilities:  # such losses are positive
        low = max(low, 0.0)
    row["loss_low"], row["loss_high"] = low, high
    if head.classifies:
        row["error"] = of["wrong"] / weight
        row["error_low"], row["error_high"] = wilson(of["wrong"] / weight, count)
    else:
        row["rmse"] = math.sqrt(of["wrong"] / weight)
        ends = (None if end is None else math.sqrt(max(end, 0.0)) for end in of_mean("wrong"))
        row["rmse_low"], row["rmse_high"] = ends
    if head.outputs.kind != "classes":
        row["observed"] = of["outcome"] / weight
        if two:
            row["observed_low"], row["observed_high"] = wilson(of["outcome"] / weight, count)
        row["predicted"] = of["predicted"] / weight
    if head.outputs.kind == "one":
        row["ratio"] = of["predicted"] / of["outcome"] if of["outcome"] else None
    return row


def _interval(name: str) -> str:
    """The range of numbers in the bin with this number.

    >>> _interval("0"), _interval("1"), _interval("5"), _interval("-3")
    ('under 1', '1 to 2', '5.65 to 7.39', '-4.11 to -2.72')
    """
    if not _BIN.fullmatch(name):
        return name
    size = abs(int(name))
    if size == 0:
        return "under 1"
    low, high = (math.exp(math.sqrt(k - 2)) if k > 2 else float(k) for k in (size, size + 1))
    ends = f"{low:.3g}", f"{high:.3g}"
    return f"-{ends[1]} to -{ends[0]}" if name.startswith("-") else " to ".join(ends)


def chosen_columns(layout: AnyLayout | None, wanted: Sequence[str]) -> list[str]:
    """The columns meant by names, positions from 1, ranges and patterns.

    Labels and weights are chosen only by name or position; a name that means no column is left as it is.
    ValueError for too many columns, and for a repeated one.
    """
    columns = list[str]()
    kinds = layout.kind_of if has_columns(layout) else {}
    for one in wanted:
        found = matching(one, [*kinds])
        if len(found) > 1:
            found = [name for name in found if kinds[name] not in (LABEL, WEIGHT)]
        columns += found or [one]
    if len(columns) > MOST or len(set(columns)) < len(columns):
        given = first_few(columns)
        raise OneLineError(f"{mention('slices')}: name up to {MOST} columns, each once, not {given}")
    return columns


def measure_slices(
    model: Any, source: Source, threshold: float | None, columns: Sequence[str]
) -> tuple[Assessment, Figures]:
    """How good a model is on `source`, and figures of the rows with each value of some columns, by column.

    Of models by value, also of each value that has a model of its own; of others, those of the model of all
    rows. Raises the errors of `assess` and of `chosen_columns`, and `DataError`.
    """
    chosen, before = chosen_columns(source.layout, columns), len(source.sliced)
    read_beside(source, chosen, lambda column: mention(slices=column))
    each = [ColumnValues(one, source.layout, MOST_CELLS - 1, _bin) for one in chosen if source.layout]
    slices = [Slices(k, values, model.head, threshold) for k, values in enumerate(each, before)]
    if model.values:
        slices = [Slices(0, model.column_values(), model.head, threshold, every=True), *slices]
    found = assess(model, source, threshold, *slices)
    return found, {one.column: one.figures() for one in slices}


def figure_names(rows: Sequence[Figures]) -> list[str]:
    """The figures of a table of slices. Importances are shown unless they are numbers of examples."""
    weighed = any(row["weight"] != row["examples"] for row in rows)
    return [name for name in _COLUMNS if name in rows[0] and (weighed or name != "weight")]


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
    for name in figure_names(rows):
        heads += [name, *(["95% interval"] if interval_of(rows[0], name) is not None else [])]
        for row, cells in zip(rows, table, strict=True):
            value, star = row[name], " *" if row["small"] else ""
            if name == "value":
                value = f"{value[:_LONGEST]}{'...' if len(value) > _LONGEST else ''}{star}"
            interval = interval_of(row, name)
            cells += [value] if interval is None else [value, interval or "-"]
    lines = ["", f"by {column}", *table_of(heads, table)]
    return [*lines, *([SMALL] if any(row["small"] for row in rows) else [])]
