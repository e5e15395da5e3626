"""A Delta table as data, delta:FOLDER: a source of your own, for --module (docs/own.md).

A version of the table is a message with the rows that it has added, so a run learns the versions since the
last. Updates and deletions bring nothing. Needs the package deltalake, and a table with
the property ``delta.enableChangeDataFeed``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa

from thresher.data import DataError, Messages, Topic, Url

ONLY = "0"
"""The partition"""
FEED = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns that the table does not have itself"""


class DeltaTopic(Topic, scheme="delta"):
    """A table of Delta Lake."""

    form = "delta:FOLDER"
    place = "version {1}"

    def __init__(self, url: Url) -> None:
        from deltalake import DeltaTable  # type: ignore[import-not-found]
        from deltalake.exceptions import DeltaError  # type: ignore[import-not-found]

        self._errors = DeltaError
        try:
            self._table = DeltaTable(url.path)
        except DeltaError as error:
            raise DataError(str(error)) from error

    def identity(self) -> str:
        """A table that is made anew has another id."""
        return str(self._table.metadata().id)

    def partitions(self) -> Mapping[str, tuple[int, int]]:
        """The versions so far."""
        self._table.update_incremental()
        return {ONLY: (0, self._table.version() + 1)}

    def read(self, begin: Mapping[str, int], end: Mapping[str, int]) -> Mapping[str, Iterator[Messages]]:
        """One version at a time."""
        return {one: self._read(at, end[one]) for one, at in begin.items()}

    def _read(self, at: int, end: int) -> Iterator[Messages]:
        for version in range(at, end):
            yield Messages([version], [self._added(version)])

    def _added(self, version: int) -> bytes | None:
        try:
            feed = self._table.load_cdf(starting_version=version, ending_version=version)
            changes = pa.RecordBatchReader.from_stream(feed).read_all()
        except self._errors as error:  # such as versions that were removed
            raise DataError(f"version {version}: {error}") from error
        added = [one for one in changes.to_pylist() if one["_change_type"] == "insert"]
        rows = [{name: cell for name, cell in one.items() if name not in FEED} for one in added]
        return b"\n".join(json.dumps(one, default=str).encode() for one in rows) or None
