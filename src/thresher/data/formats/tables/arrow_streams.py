"""Sources for tables in memory and query results: any object that exports an Arrow stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from thresher.data.chunk import Place
from thresher.data.errors import DataError, shown
from thresher.data.formats.tables.arrow_batches import OBJECT
from thresher.data.formats.tables.arrow_files import (
    BatchFormat,
    BatchReader,
    Rows,
    cut,
    has_words,
    settled,
)
from thresher.data.formats.tables.where import MARKED, Filter
from thresher.data.inputs.arrays import is_missing
from thresher.data.layout import AnyLayout, Extension, Layout
from thresher.data.sources.parsed import ParsedSource
from thresher.options.messages import mention

_LARGE, _LARGEST = pa.decimal256(76, 0), 10**76
UNREADABLE = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeEncodeError,
)
"""Errors of pyarrow for values that it cannot convert"""
_CAST = ", which pyarrow cannot read: cast it, for example to float64, or leave it out"
NAME = "the table"
"""Its name in messages."""
_FEW = 1000
"""Rows that are read sooner than a thread has started."""


def reader_of(table: Any) -> Any:
    """The rows of a table as batches. The index of a pandas table is not read."""
    if not hasattr(table, "iloc"):
        return _stream_of(table)
    try:
        return _of_frame(table).to_reader()
    except UNREADABLE:
        for k, name in enumerate(table.columns):
            try:
                _of_frame(table.iloc[:, [k]])
            except UNREADABLE as error:
                raise fault_of(f"{NAME}: column", name, table.iloc[:, k], error) from error
        raise


def fault_of(what: str, name: Any, values: Any, error: Exception) -> DataError:
    """Why the column `name` of a table or of rows cannot be read: `error`, one of `UNREADABLE`."""
    where = f"{what} {shown(str(name).encode('utf-8', 'backslashreplace'))}"
    if isinstance(error, UnicodeEncodeError):
        row = next((k for k, one in enumerate(values, 1) if isinstance(one, str) and one == error.object), 0)
        text = shown(error.object.encode("utf-8", "backslashreplace"))
        where += f", row {row}" if row else ""
        return DataError(f"{where}: {text} is not valid Unicode (it holds a lone surrogate): correct it")
    kind = getattr(values, "dtype", None)
    if getattr(kind, "kind", "O") != "O":
        return DataError(f"{where} has type {kind}{_CAST}")
    return DataError(f"{where} is not all text or all numbers: {'; '.join(map(str, error.args))}")


def _stream_of(table: Any) -> Any:
    """The stream of a table. `DataError` for a column of a type that Arrow lacks, as some of polars."""
    try:
        types = zip(getattr(table, "columns", ()), getattr(table, "dtypes", ()), strict=False)
        if objects := [name for name, kind in types if str(kind) == "Object"]:
            # polars would give Python objects by their addresses
            found = pa.table(table)
            for name in objects:
                nothing = pa.nulls(len(found), OBJECT)
                found = found.set_column(found.column_names.index(name), name, nothing)
            return found.to_reader()
        return pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        names = list(getattr(table, "columns", ()))
        if len(names) < 2:
            what = f"column '{names[0]}' has type {table.dtypes[0]}" if names else "a column has a type"
            raise DataError(f"{NAME}: {what}{_CAST}") from error
        for name in names:
            _stream_of(table.select([name]))
        raise


def _of_frame(frame: Any) -> Any:
    """A pandas table as one of Arrow. Columns of one type of NumPy's numbers are taken out together.

    pandas and pyarrow take 0.2 ms for each column that is taken out alone.
    """
    frame = _spelled(frame)
    alike = defaultdict[Any, list[int]](list)
    for place, kind in enumerate(frame.dtypes):
        plain = isinstance(kind, np.dtype) and kind.kind in "iufb" and kind.itemsize <= 8
        alike[kind if plain else None].append(place)
    columns = dict[int, Any]()
    for kind, places in alike.items():
        some = frame.iloc[:, places]
        if kind is None:
            try:
                found = list(pa.Table.from_pandas(some, preserve_index=False).columns)
            except OverflowError:
                found = [column_of(some.iloc[:, k]) for k in range(some.shape[1])]
        else:
            found = [pa.array(one, from_pandas=True) for one in np.asfortranarray(some.to_numpy()).T]
        columns |= zip(places, found, strict=True)
    return pa.table([columns[k] for k in range(len(columns))], [*map(str, frame.columns)])


def _spelled(frame: Any) -> Any:
    """A pandas table with intervals and periods as the texts that pandas writes to CSV."""
    found = {}
    for place, kind in enumerate(frame.dtypes):
        values = getattr(getattr(kind, "categories", None), "dtype", kind)
        if type(values).__name__ in ("IntervalDtype", "PeriodDtype"):
            column = frame.iloc[:, place]
            categorical = values is not kind
            found[place] = (
                column.cat.rename_categories(str) if categorical else column.map(str, na_action="ignore")
            )
    if not found:
        return frame
    columns = [found.get(place, frame.iloc[:, place]) for place in range(frame.shape[1])]
    return type(frame)(dict(zip(frame.columns, columns, strict=True)), copy=False)


def column_of(values: Iterable[Any], nan_is_missing: bool | None = None) -> Any:
    """Values as an Arrow array; whole numbers beyond 64 bits as decimals. Raises the errors of pyarrow.

    NaN is missing in columns of pandas, unless `nan_is_missing` says otherwise.
    """
    try:
        return pa.array(values, from_pandas=nan_is_missing)
    except (OverflowError, pa.ArrowInvalid):
        given = [None if is_missing(value) else value for value in values]
        found = [value for value in given if value is not None]
        if all(isinstance(value, str) for value in found):
            return pa.array(given)
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
            raise
        if all(isinstance(value, int) and abs(value) < _LARGEST for value in found):
            return pa.array([None if value is None else Decimal(value) for value in given], _LARGE)
        return pa.array([None if value is None else float(value) for value in given], pa.float64())


class _ArrowStream:
    """An object with ``__arrow_c_stream__``; a ``RecordBatchReader`` can be read only once."""

    def __init__(self, given: Any) -> None:
        self.once = isinstance(given, pa.RecordBatchReader)
        self._given = given
        reader = reader_of(given)
        self.schema = reader.schema
        self._first: Any = reader
        self._started: list[Any] = []
        """batches already read from the first stream"""

    def size(self, name: str) -> None:
        """None: the size is unknown."""

    def head(self) -> Any:
        """The first batch, which `rows` will yield again; None if there is none or reading has started."""
        if self._first is None:
            return None
        if not self._started:
            self._started = list(islice(self._first, 1))
        return self._started[0] if self._started else None

    def rows(self, name: str, needed: list[str], start: int, *_: Any) -> Rows:
        """The batches, split into pieces."""
        reader = self._first or reader_of(self._given)
        started, self._first, self._started = self._started, None, []
        return cut(self._batches(chain(started, reader)), needed, start)

    def _batches(self, reader: Iterator[Any]) -> Iterator[tuple[Any, float | None]]:
        for batch in reader:
            yield batch, None


class StreamSource(ParsedSource):
    """The rows of `given`, which has ``__arrow_c_stream__``: pandas, polars, pyarrow, DuckDB.

    `layout` sets the kinds of columns; the other arguments and errors are those of `open_source`. A
    ``pyarrow.RecordBatchReader`` can be read only once; for other objects, each pass requests a new stream.
    Nothing is cached.
    """

    def __init__(
        self,
        given: Any,
        layout: AnyLayout | None = None,
        *,
        where: str = "",
        marked: str = "",
        unlabelled: bool = False,
        weighed_beside: bool = False,
        **options: Any,
    ) -> None:
        """`weighed_beside`: whether importances were given beside the table."""
        if isinstance(layout, Layout) and not isinstance(layout, Extension) and layout.missing:
            raise DataError(
                f"{NAME}: {mention('missing')} is only for csv and tsv; replace these cells by None"
            )
        self._stream = _ArrowStream(given)
        unnamed = replace(layout or AnyLayout(), format="")  # data read later may have any format
        settled_by, kinds = settled(
            *(unnamed, self._stream.schema, NAME, unlabelled),
            self._stream.head,
        )
        filters = [Filter(where, self._stream.schema, NAME)] if where else []
        marks = [Filter(marked, self._stream.schema, NAME, MARKED)] if marked else []
        form = BatchFormat([kinds], filters, marks, has_words(kinds, self._stream.schema))
        options |= {"where": where, "marked": marked, "unlabelled": unlabelled}
        super().__init__([NAME], settled_by, form, layout, may_be_words=form.may_be_words, **options)
        self.rereadable, self.weighed_beside = not self._stream.once, weighed_beside
        counted = isinstance(given, pa.Table) or hasattr(given, "iloc")  # others may run a query to count
        self.is_small = counted and len(given) <= _FEW

    def first_batch(self) -> Any:
        """The first rows as a record batch; None if there are none or reading has started."""
        return self._stream.head()

    def _nothing(self) -> str:
        hint = "; a reader can be read only once, so make a table of it first" if self._stream.once else ""
        return super()._nothing() + hint

    def blocks(self, start: Place | None) -> BatchReader:
        """A reader of the batches of a pass."""
        return BatchReader(self.names, self._stream, self._form, start, {}, None, self.sliced)
