"""The values of a column of a table, for which rows are counted, or models learned, apart.

The keys of a row do not tell the values of a column. So readers give the texts in some columns beside the
rows (`Source.sliced`, `Chunk.cells`), whether or not the column is a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.columns import BINS, LABEL, LIST, NUMERIC, SPELLED, WEIGHT, column_meant
from thresher.data.errors import DataError
from thresher.data.layout import SettledLayout, has_columns
from thresher.data.source import Source
from thresher.data.text.spelling import respelled

_TEXTS = 1 << 20
"""Spellings of values that are remembered"""


class ColumnValues:
    """The values of a column, numbered from 1 in the order of their first rows; 0 stands for none.

    One value has one spelling: ``1`` and ``1.0`` are the same number. `named` gives the value of a text in a
    column of numbers, if it is another. Values that are `known` have the first numbers. Beyond `most` values,
    all have the number `most`.
    """

    def __init__(
        self,
        column: str,
        layout: SettledLayout,
        most: int,
        named: Callable[[str], str] = respelled,
        known: Sequence[str] = (),
    ) -> None:
        self.column, self._most = column, most
        self.is_number = layout.kind_of[column] in (NUMERIC, BINS)
        is_spelled = layout.spelling_of[column] in SPELLED
        self._named = named if self.is_number else respelled if is_spelled else str
        self._missing = {"", *layout.missing}
        self.know(known)

    def know(self, values: Sequence[str]) -> None:
        """Number these values, the first of all."""
        self._texts = dict[str, int]()
        """the number of the value of texts that were met"""
        self.known = {value: k for k, value in enumerate(values, 1)}
        """the number of each value"""

    def numbers(self, texts: NDArray[Any], *, new: bool = True) -> NDArray[np.int64]:
        """The numbers of the values in cells ``(n,)``; of `new` values the next ones, else 0."""
        listed = texts.tolist()
        found = [*map(self._texts.get, listed)]
        if None in found:
            pairs = zip(listed, found, strict=True)
            found = [self._number(text, new) if number is None else number for text, number in pairs]
        return np.array(found, np.int64)

    def _number(self, text: str, new: bool) -> int:
        value = "" if text in self._missing or not text.strip() else self._named(text)
        number = self.known.get(value) if value else 0
        if number is None:
            number = len(self.known) + 1 if new else 0
            if not new or number == self._most:
                return number
            self.known[value] = number
        if len(self._texts) >= _TEXTS:
            self._texts.clear()
        self._texts[text] = number
        return number


def apart(
    chunk: Chunk, numbers: NDArray[np.integer[Any]], count: int
) -> tuple[NDArray[np.int64], Callable[[int], Chunk]]:
    """The order that sorts rows by their `numbers` (n,), below `count`, and the rows with a number."""
    order = np.argsort(numbers, kind="stable")
    ends = [0, *np.cumsum(np.bincount(numbers, minlength=count)).tolist()]
    by_number = chunk.take(order)
    return order, lambda number: by_number.rows(ends[number], ends[number + 1])


def read_beside(source: Source, columns: Sequence[str], named: Callable[[str], str]) -> None:
    """Let `source` give the cells of these columns, after those that it gives already, from now on.

    `DataError` if it cannot; `named` tells the option that wants a column.
    """
    layout = source.layout
    for column in columns:
        wanted = named(column)
        if not has_columns(layout):
            raise DataError(f"{wanted} needs a table with columns; these data have none")
        if column not in layout.columns:
            raise DataError(f"no column is called '{column}'; {column_meant(column, layout.columns)}")
        kind, other = layout.kind_of[column], f"choose another column ({wanted})"
        if kind in (LABEL, WEIGHT):
            raise DataError(f"'{column}' is the {kind}: {other}")
        if kind == LIST:
            raise DataError(f"'{column}' contains lists, not one value per row: {other}")
        if not source.has_cells:
            why = "these data hold features, not columns, by which rows could be told apart"
            raise DataError(f"{wanted}: {why}")
    source.sliced = [*source.sliced, *columns]
