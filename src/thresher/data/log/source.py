"""A log as a source of Chunks, the rows to be learned in order; and as figures, all that it holds."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.errors import DataError
from thresher.data.features.names import numeric_keys
from thresher.data.files.content import Content
from thresher.data.labels import Domain, domain_of
from thresher.data.layout import AnyLayout, Extension, Layout, SettledLayout
from thresher.data.log import records, segments
from thresher.data.log.origin import LogOrigin, other_features
from thresher.data.log.segments import LogError, LogPosition, LogRun, place_at, records_from, segments_of
from thresher.data.report import Report
from thresher.data.source import Chunks, Source
from thresher.options.messages import mention

MOST_ROWS, MOST_VALUES = 1 << 12, 1 << 18
"""Size of a chunk, unless a record is larger."""


class NoExamplesError(DataError):
    """A log holds no rows to learn."""


def open_log(
    folder: str | os.PathLike[str], domain: str | Domain, layout: AnyLayout | None, chosen: str
) -> LogSource:
    """A log as data, for a model with this layout. `chosen` are columns that select or identify rows.

    `DataError` for these, which a log does not have, and for a model with other features.
    """
    if chosen:
        raise DataError(f"{folder}: the rows of a log have no columns such as '{chosen}'")
    source = LogSource(folder, domain)
    have = source.layout or SettledLayout()
    if isinstance(layout, Layout):
        names = [*_ASKED] if isinstance(layout, Extension) else [one.name for one in fields(Layout)]
        for one in names:
            if one != "gaps" and getattr(layout, one) != getattr(Layout, one):
                raise DataError(f"{folder}: the rows of a log are features already: leave {mention(one)} out")
    if isinstance(layout, SettledLayout | Extension) and (other := other_features(layout, have)):
        raise DataError(f"{folder}: the rows have other features than those of the model: {other}")
    return source


_ASKED = ("label", "weight", "offset", "numeric", "bins", "categorical", "text")
"""Options that are not those of a model which goes on"""


class LogSource(Source):
    """The rows of a log to be learned. A `StreamPosition` has the `offset` in the log; `line` counts rows.

    What is read is known to be the same as before by the hash of the record at which reading goes on, which
    covers all before it. `DataError` unless the folder holds a log.
    """

    position_bytes = 0
    is_log = True
    most_rows, most_values = MOST_ROWS, MOST_VALUES

    def __init__(self, folder: str | os.PathLike[str], domain: str | Domain = "") -> None:
        """`domain`: which labels a model takes; empty: those of the log."""
        super().__init__([os.fspath(folder)])
        segments = segments_of(folder)
        self.folder, self.begin = os.fspath(folder), segments[0].begin
        origin = segments[-1].origin
        self.layout, self.domain = origin.layout, domain or origin.domain
        labels = domain_of(origin.domain)
        if labels.most:
            self.words = labels.of_words(self.layout.classes if self.layout else ()).words
        self.total_bytes = segments[-1].end - self.begin.offset
        self._read, self._expected = self.begin, dict[int, int]()

    @property
    def content(self) -> Sequence[Content]:
        """The hash of the last record read, and where it ends."""
        return [Content(self._read.hash, self._read.offset)]

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect this hash where an earlier run stopped."""
        self._expected = {one.size: one.hash for one in content}

    def records(self, start: LogPosition | None) -> Iterator[LogRun]:
        """The records from a place on, or from the beginning."""
        return records_from(self.folder, start)

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """The rows, several records at a time; the hash is checked that was expected where it starts."""
        at = self.begin if start is None else self._position(start)
        self._read = max(self._read, at)
        if start is None:
            self.report = Report()
        for some in self.records(at):
            for piece in some.pieces(self.most_rows, self.most_values):
                begin, at = at, piece.end
                if self.words is not None:
                    for record in piece:
                        self.words.add(record.note().get("classes", ()))
                try:
                    chunk = piece.rows()
                    check_rows(chunk, self.domain, self.layout)
                except DataError as error:
                    raise LogError(f"{self.folder}: after row {begin.row:,}: {error}") from error
                self._read = max(self._read, at)
                self.position_bytes = at.offset - self.begin.offset
                if len(chunk):
                    self.report.add(len(chunk), len(chunk))
                    yield chunk.at(*(StreamPosition(0, one.offset, one.row) for one in (begin, at)))
        if start is None and not self.report.lines:
            raise NoExamplesError(f"{self.folder}: no examples: the log holds no labelled rows yet")

    def _position(self, start: StreamPosition) -> LogPosition:
        """The place between records, which is known to be the one of before.

        The hash that is known may be one further on: of records without rows, or of rows that were read
        ahead. It covers what is before it as well.
        """
        known = self._expected | {self._read.offset: self._read.hash}
        if start.offset in known:
            return LogPosition(start.offset, start.line, known[start.offset])
        at = place_at(self.folder, start.offset)
        there = (place_at(self.folder, one) for one in self._expected)
        same = [one and one.hash for one in there] == [*self._expected.values()]
        if at is None or at.row != start.line or not same:
            raise LogError(f"{self.folder}: not the log that was read before, up to row {start.line:,}")
        return at


def check_rows(chunk: Chunk, domain: str | Domain, layout: SettledLayout | None) -> None:
    """`DataError` for rows that no model with this layout, and labels of this domain, can learn."""
    chunk.check()
    one = domain_of(domain)
    if chunk.targets is not None and one.width is None and not one.open:
        raise DataError(f"expected {one.meaning}, found {chunk.targets.shape[1]} labels for each row")
    one.check(chunk.labels, chunk.targets)
    if layout is not None and layout.bits and chunk.nnz and int(chunk.keys.max()) > layout.mask:
        raise DataError(f"a key has more than {layout.bits} bits: {int(chunk.keys.max())}")


class LiveLog(LogSource):
    """A log that is still written: at its end, chunks wait for more."""

    most_rows, most_values = 1 << 10, 1 << 15

    def __init__(
        self,
        folder: str | os.PathLike[str],
        wait: Callable[[LogPosition], LogPosition | None],
        turn: Callable[[Chunk], AbstractContextManager[None]],
    ) -> None:
        """`wait` returns the end of what is synced once it is beyond a place; None if no more will come.

        Each chunk is used within `turn`.
        """
        super().__init__(folder)
        self.names, self.total_bytes = ["the log"], None
        self._wait, self.turn = wait, turn

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """The rows as they come."""
        with closing(super().chunks(start)) as chunks:
            for chunk in chunks:
                with self.turn(chunk):
                    yield chunk

    def records(self, start: LogPosition | None) -> Iterator[LogRun]:
        """The records from a place on, up to what is synced, as they come."""
        at = start or self.begin
        next(records_from(self.folder, at), None)  # a place beyond the end is an error, not worth waiting for
        while (end := self._wait(at)) is not None:
            for some in records_from(self.folder, at):
                synced = some.before(end.offset)
                if not synced:
                    break
                yield synced
                at = synced.end


def contents_of(folder: str | os.PathLike[str], last: int = 0) -> dict[str, Any]:
    """The figures of a log, all of which is read and checked, and its last records, as JSON shows them.

    `LogError` if the folder is not a log; what is damaged is among the figures.
    """
    paths = segments.segment_paths(folder)
    origin = LogOrigin(None, "open", "")
    first: segments.LogRecord | None = None
    end: segments.LogRecord | None = None
    count = keys = 0
    waiting, newest, damage = set[str](), deque[segments.LogRecord](maxlen=last), None
    try:
        origin = segments.read_segment(paths[0]).origin
        for some in segments.records_from(folder):
            try:
                check_rows(some.rows(), origin.domain, origin.layout)
                fit = True
            except DataError:  # of many records at once; which of them?
                fit = False
            for one in some:
                kind = one.head.kind
                try:
                    if kind in (records.KEPT, records.LABELS) or (kind == records.ROWS and not fit):
                        domain = "open" if kind == records.KEPT else origin.domain
                        check_rows(one.rows(), domain, origin.layout)
                    note = one.note()
                except DataError as error:
                    segment = segments.read_segment(max(at for at in paths if int(at.stem) <= one.offset))
                    where = f"{segment.path}: byte {segment.byte(one.offset):,}, after row {one.head.row:,}"
                    raise segments.LogError(f"{where}: {error}") from error
                if kind == records.KEPT:
                    waiting.update(note.get("ids", []))
                else:
                    waiting.difference_update(note.get("ids", []), note.get("expired", ()))
                count += 1
                keys += "key" in note
                first, end = first or one, one
            newest.extend(some)
    except segments.LogError as error:
        damage = str(error)
    begin, layout, unfinished = first.head.row if first else 0, origin.layout, None
    if damage is None:  # what is left of a write that was cut short
        tail = segments.read_segment(paths[-1])
        unfinished = tail.end - (end.end.offset if end else tail.begin.offset)
    names = numeric_keys(layout)
    return {
        "log": str(folder),
        "rows": end.end.row - begin if end else 0,
        "first_row": begin + 1 if end else None,
        "last_row": end.end.row if end else None,
        "records": count,
        "waiting_for_labels": len(waiting),
        "keys": keys,
        "first_time": _time(first.head.time) if first else None,
        "last_time": _time(end.head.time) if end else None,
        "segments": len(paths),
        "bytes": sum(path.stat().st_size for path in paths),
        "unfinished_bytes": unfinished,
        "model": origin.model,
        "labels": origin.domain,
        "format": layout.format if layout else None,
        "columns": [*layout.columns] if layout else [],
        "damage": damage,
        "last": [_record(one, origin, names) for one in newest],
    }


def _time(microseconds: int) -> str | None:
    if not microseconds:
        return None
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} microseconds"
    return when.isoformat().replace("+00:00", "Z")


def _record(one: segments.LogRecord, origin: LogOrigin, names: dict[int, str]) -> dict[str, Any]:
    """A record as JSON shows it."""
    head, note = one.head, one.note()
    found = {"kind": records.KINDS[head.kind], "after_row": head.row, "time": _time(head.time), **note}
    if head.kind == records.GONE:
        return found
    chunk = one.rows()
    ids = next((note[name] for name in ("ids", "expired") if name in note), None)
    found.pop("ids", None)
    rows = [_row(chunk.rows(k, k + 1), origin, names, head.kind != records.KEPT) for k in range(len(chunk))]
    for k, row in enumerate(rows):
        rows[k] = {"row": head.row + k + 1} | row if head.kind == records.ROWS else row
        rows[k] = {"id": ids[k]} | rows[k] if ids and len(ids) == len(rows) else rows[k]
    return {**found, "rows": rows}


def _row(chunk: Chunk, origin: LogOrigin, names: dict[int, str], labelled: bool) -> dict[str, Any]:
    found = dict[str, Any]()
    if labelled and chunk.targets is not None:
        found["label"] = chunk.targets[0].tolist()
    elif labelled:
        found["label"] = label = chunk.labels.item(0)
        words, domain = origin.layout and origin.layout.classes, domain_of(origin.domain)
        if domain.most:
            found["label"] = words[int(label)] if words and label < len(words) else int(label)
        elif words and domain.has_classes:  # those of the model
            step = (domain.high - domain.low) / (len(words) - 1)
            found["label"] = words[max(round((label - domain.low) / step), 0)]
    if chunk.offsets is not None:
        found["offset"] = chunk.offsets.item(0)
    features = zip(chunk.keys.tolist(), chunk.values.tolist(), strict=True)
    named = {names.get(key, str(key)): value for key, value in features}
    return {**found, "importance": chunk.weights.item(0), "features": named}
