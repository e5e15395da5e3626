"""Tables in memory, and results of queries, as sources: whatever hands out an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thresher.data.chunk import Place
from thresher.data.errors import DataError
from thresher.data.formats.tables.arrow_files import BatchReader, Rows, TableFormat, cut, settled
from thresher.data.formats.tables.where import Filter
from thresher.data.layout import AnyLayout
from thresher.data.source import fingerprint_of
from thresher.data.sources.text import TextSource

if TYPE_CHECKING:
    from thresher.data.files.watches import Watches

NAME = "the table"
"""What messages call it."""


def reader_of(table: Any) -> Any:
    """The rows of a table as batches. The index of a table of pandas is none of its columns."""
    if hasattr(table, "iloc"):
        return pa.Table.from_pandas(table, preserve_index=False).to_reader()
    return pa.RecordBatchReader.from_stream(table)


class _Stream:
    """What has ``__arrow_c_stream__``; a stream that has begun, or a reader of batches, comes but once."""

    def __init__(self, given: Any) -> None:
        self.once = isinstance(given, pa.RecordBatchReader)
        self._given = given
        reader = reader_of(given)
        self.schema = reader.schema
        self._first: Any = reader
        self._begun: list[Any] = []
        """what was read of it"""

    def size(self, name: str) -> None:
        """Not known."""

    def head(self) -> Any:
        """The first batch, which stays to be read; None where there is none, or reading has begun."""
        if self._first is None:
            return None
        if not self._begun:
            self._begun = list(islice(self._first, 1))
        return self._begun[0] if self._begun else None

    def rows(self, name: str, needed: list[str], start: int, *_: Any) -> Rows:
        """Its batches, in pieces."""
        reader = self._first or reader_of(self._given)
        begun, self._first, self._begun = self._begun, None, []
        return cut(self._batches(chain(begun, reader)), needed, start)

    def _batches(self, reader: Iterator[Any]) -> Iterator[tuple[Any, float | None]]:
        for batch in reader:
            yield batch, None


class StreamSource(TextSource):
    """The rows of `given`, which has ``__arrow_c_stream__``: pandas, polars, pyarrow, DuckDB.

    `layout` says what its columns are; other arguments, and errors, are as for `open_source`. A
    ``pyarrow.RecordBatchReader`` can be read once only; of all else each pass asks for a stream anew. Nothing
    is cached.
    """

    def __init__(
        self,
        given: Any,
        layout: AnyLayout | None = None,
        *,
        domain: str = "binary",
        on_error: str = "fail",
        threads: int | None = None,
        unlabelled: bool = False,
        where: str = "",
    ) -> None:
        self._stream = _Stream(given)
        unnamed = replace(layout or AnyLayout(), format="")  # files to come tell theirs
        settled_by, kinds = settled(unnamed, self._stream.schema, NAME, unlabelled)
        form = TableFormat([kinds], [Filter(where, self._stream.schema, NAME)] if where else [])
        super().__init__(
            [NAME], settled_by, form, domain=domain, on_error=on_error, threads=threads, where=where
        )
        del self.identity  # which is for caches

    def head(self) -> Any:
        """The first rows as a record batch; None where there is none, or reading has begun."""
        return self._stream.head()

    def _can_be_reread(self) -> bool:
        return not self._stream.once

    def _in_order(self) -> bool:
        return False

    def _size(self) -> int | None:
        return None

    def _watches(self) -> None:
        return None

    def _blocks(self, start: Place | None, watches: Watches | None) -> BatchReader:
        return BatchReader(self.names, self._stream, self._format, start, {}, watches)

    def fingerprint(self) -> str:
        """Hash of all its features, for which it is read once more."""
        if not self.rereadable:
            raise DataError(f"{NAME} can be read once only")
        return fingerprint_of(self.chunks())
