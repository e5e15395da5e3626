"""Source: anything that yields Chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import xxhash

from thresher.data.chunk import Chunk, Place
from thresher.data.errors import DataError
from thresher.data.labels import Domain, check_labels
from thresher.data.layout import SettledLayout
from thresher.data.report import Report


class Source(Protocol):
    """Where training reads its data, pass after pass."""

    names: list[str]
    """the files, for messages"""
    total_bytes: int | None
    """length of all files as stored; None if unknown"""
    position_bytes: int
    """how much of `total_bytes` has been read for the chunks yielded so far"""
    report: Report
    """counts of the lines yielded so far in this pass; set it before `chunks(start)` to continue a pass"""
    rereadable: bool
    """whether a second pass is possible"""
    layout: SettledLayout | None
    """how bytes become features; None if the source has no bytes"""
    where: str
    """which rows of a table are read; empty: all"""

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """One pass, from the beginning or from a chunk's `place` or `after` on."""
        ...

    def fingerprint(self) -> str:
        """A string that identifies the content."""
        ...


class MemorySource:
    """Chunks in memory as a source. In a `Place`, `offset` counts chunks and `line` counts rows."""

    in_memory = True
    """whether reading again takes neither time nor memory"""

    def __init__(self, chunks: Chunk | Iterable[Chunk], domain: str | Domain = "real") -> None:
        self._chunks = [chunks] if isinstance(chunks, Chunk) else list(chunks)
        for chunk in self._chunks:
            chunk.check()
        if not any(len(chunk) for chunk in self._chunks):
            raise DataError("no examples")
        for chunk in self._chunks:
            check_labels(chunk.labels, domain, chunk.targets)
        self.names = ["memory"]
        self.total_bytes: int | None = sum(12 * c.nnz + 16 * len(c) for c in self._chunks)
        self.position_bytes = 0
        self.report = Report()
        self.rereadable = True
        self.layout: SettledLayout | None = None
        self.columns: int | None = None
        """the number of columns, if the examples are a matrix"""
        self.by_position = False
        """whether they are a table with names that was made a matrix"""
        self.where = ""

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """The chunks, each with its place."""
        first = start.offset if start else 0
        if start is None:
            self.report = Report()
        rows = sum(len(chunk) for chunk in self._chunks[:first])
        self.position_bytes = sum(12 * c.nnz + 16 * len(c) for c in self._chunks[:first])
        for k, chunk in enumerate(self._chunks[first:], first):
            place, rows = Place(0, k, rows), rows + len(chunk)
            self.report.add(len(chunk), len(chunk), 0, 0, 0, [])
            self.position_bytes += 12 * chunk.nnz + 16 * len(chunk)
            yield chunk.at(place, Place(0, k + 1, rows))

    def fingerprint(self) -> str:
        """A hash of all numbers."""
        return fingerprint_of(self._chunks)


def fingerprint_of(chunks: Iterable[Chunk]) -> str:
    """A hash of all numbers in `chunks`."""
    total = xxhash.xxh64()
    for chunk in chunks:
        for array in (chunk.indptr, chunk.keys, chunk.values, chunk.labels, chunk.weights):
            total.update(array.tobytes())
        if chunk.targets is not None:
            total.update(chunk.targets.tobytes())
    return total.hexdigest()


class Through:
    """A source that changes the chunks of another; everything else is taken from that source."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    @property
    def report(self) -> Report:
        """The report of the underlying source on this pass."""
        report: Report = self._source.report
        return report

    @report.setter
    def report(self, report: Report) -> None:
        self._source.report = report

    @property
    def keep_hash(self) -> bool:
        """Whether the underlying source hashes what it reads."""
        return bool(self._source.keep_hash)

    @keep_hash.setter
    def keep_hash(self, keep: bool) -> None:
        self._source.keep_hash = keep

    @property
    def namer(self) -> Any:
        """What receives the names of features; missing if the underlying source has none to give."""
        return self._source.namer

    @namer.setter
    def namer(self, namer: Any) -> None:
        self._source.namer = namer


class Watched(Through):
    """A source whose chunks are looked at on the way, alone or with the rows skipped among them."""

    def begin(self) -> None:
        """A pass from the beginning, or from a place, begins."""

    def look(self, chunk: Chunk) -> None:
        """A chunk is about to be used."""

    def end(self) -> None:
        """A pass from the beginning has ended."""

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """The chunks of the source."""
        return self._looked_at(self._source.chunks(start), lambda chunk: chunk, start)

    @property
    def rows(self) -> Callable[..., Iterator[Any]]:
        """The method that yields chunks with their skipped rows; missing if the source has none."""
        given = self._source.rows
        return lambda start=None: self._looked_at(given(start), lambda rows: rows.chunk, start)

    def _looked_at(
        self, parts: Iterable[Any], chunk_of: Callable[[Any], Chunk], start: Place | None
    ) -> Iterator[Any]:
        self.begin()
        for part in parts:
            self.look(chunk_of(part))
            yield part
        if start is None:
            self.end()
