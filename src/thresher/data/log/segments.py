"""The files of a log: found, read, written, cut.

A log is a folder of segments. The records of all of them are one sequence of bytes; a segment is named by
the offset of its first record in it. It begins with `_MAGIC`, the length of its header (u4), the header
(JSON: the offset, the rows before it, the hash to begin with, which rows the log is for, and the version of
thresher), and the XXH64 of all these.

A record that ends in the middle, or whose hash is wrong, ends the log, if it was never synced: then a write
was cut short, and nothing in it was acknowledged. Otherwise, if a later record says that it was synced, the
log is damaged.
"""

from __future__ import annotations

import json
import os
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from thresher._version import __version__, upgrade_hint
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError, system_errors
from thresher.data.files.paths import SEGMENT
from thresher.data.log import records
from thresher.data.log.origin import LogOrigin
from thresher.data.stored import read

_MAGIC = b"thresher log 1\n\0"
_FORMAT = re.compile(rb"thresher log (\d+)\n\0")
_LENGTH = struct.Struct("<I")
_HASH = struct.Struct("<Q")
_LONGEST_HEADER = 1 << 26
_WINDOW = 1 << 20
"""Bytes read at a time"""


class LogError(DataError):
    """A log cannot be used: damaged, of another model, or in use."""


class _Note(TypedDict, total=False):
    ids: list[str]
    expired: list[str]
    labelled: list[str]
    key: str
    classes: list[str]


@dataclass(frozen=True)
class _Header:
    offset: int
    row: int
    hash: int
    origin: LogOrigin
    version: str


class LogPosition(NamedTuple):
    """A place between two records."""

    offset: int
    """bytes of all records before"""
    row: int
    """rows to be learned before"""
    hash: int
    """hash of the record before"""


class LogSegment(NamedTuple):
    """One file of a log."""

    path: Path
    begin: LogPosition
    """where its first record is"""
    header: int
    """bytes before the first record"""
    end: int
    """the offset at which the file ends, whether or not with a whole record"""
    origin: LogOrigin
    """which rows the log is for"""

    def byte(self, offset: int) -> int:
        """Where an offset of the log is in the file."""
        return offset - self.begin.offset + self.header


def segment_name(offset: int) -> str:
    """The name of the segment that begins at an offset."""
    return f"{offset:020}.log"


def header_bytes(begin: LogPosition, origin: Mapping[str, object]) -> bytes:
    """What a segment begins with; `origin` is a `LogOrigin` as JSON."""
    place = {"offset": begin.offset, "row": begin.row, "hash": begin.hash}
    header = {**place, "origin": origin, "version": __version__}
    text = json.dumps(header, sort_keys=True, ensure_ascii=False).encode()
    text += b" " * (-(len(_MAGIC) + _LENGTH.size + len(text) + _HASH.size) % 8)
    whole = _MAGIC + _LENGTH.pack(len(text)) + text
    return whole + _HASH.pack(xxhash.xxh64_intdigest(whole))


def read_segment(path: Path) -> LogSegment:
    """The header of a segment. `LogError` if it is not whole."""
    with system_errors(path, LogError), open(path, "rb", buffering=0) as file:
        start = file.read(len(_MAGIC) + _LENGTH.size)
        form = _FORMAT.match(start)
        if form and int(form[1]) != 1:
            found = f"format {int(form[1])}; thresher {__version__} reads format 1"
            raise LogError(f"{path}: {found}: install the version that wrote it")
        if not form or len(start) < len(_MAGIC) + _LENGTH.size:
            raise LogError(f"{path}: not a segment of a log")
        size = _LENGTH.unpack_from(start, len(_MAGIC))[0]
        rest = file.read(min(size, _LONGEST_HEADER) + _HASH.size)
        length = file.seek(0, os.SEEK_END) - len(start) - len(rest)
    whole = len(rest) == size + _HASH.size
    if not whole or _HASH.unpack_from(rest, size)[0] != xxhash.xxh64_intdigest(start + rest[:size]):
        raise LogError(f"{path}: the header is damaged")
    given: Any = None
    try:
        given = json.loads(rest[:size])
        header = read(_Header, given, "header")
    except (ValueError, RecursionError) as error:
        version = upgrade_hint(given.get("version")) if isinstance(given, dict) else ""
        raise LogError(f"{path}: {error}{version}") from error
    begin = LogPosition(header.offset, header.row, header.hash)
    if path.name != segment_name(begin.offset) or not all(0 <= one < 1 << 64 for one in begin):
        raise LogError(f"{path}: the header is not that of a segment of this name")
    return LogSegment(path, begin, len(start) + len(rest), begin.offset + length, header.origin)


def segment_paths(folder: str | os.PathLike[str]) -> list[Path]:
    """The files of a log, in order. `LogError` if there are none."""
    with system_errors(folder, LogError):
        names = sorted(
            one.name for one in os.scandir(folder) if SEGMENT.fullmatch(one.name) and one.is_file()
        )
    if not names:
        raise LogError(f"{folder}: not a log: it holds no segments")
    return [Path(folder, name) for name in names]


def segments_of(folder: str | os.PathLike[str]) -> list[LogSegment]:
    """The segments of a log, in order. `LogError` if one is missing or damaged."""
    found = [read_segment(path) for path in segment_paths(folder)]
    for one, other in pairwise(found):
        if one.end != other.begin.offset:
            raise LogError(f"{one.path}: its records do not end where {other.path.name} begins")
    return found


class LogRecord(NamedTuple):
    """A whole record in a buffer."""

    head: records.RecordHead
    offset: int
    """in the log"""
    buffer: bytes
    at: int

    @property
    def end(self) -> LogPosition:
        """Where the next begins."""
        return LogPosition(self.offset + self.head.end, self.head.last, self.head.hash)

    @property
    def body(self) -> memoryview:
        """Its note and its rows."""
        return memoryview(self.buffer)[self.at + records.HEAD : self.at + self.head.end]

    def note(self) -> dict[str, Any]:
        """What it says besides its rows. `DataError` if that is not what this version writes."""
        text = self.body[: self.head.note]
        try:
            found = dict[str, Any](msgspec.json.decode(text, type=_Note)) if text else {}
        except (RecursionError, msgspec.DecodeError) as error:
            raise DataError("the note of a record is not what this version writes") from error
        return found

    def rows(self) -> Chunk:
        """Its rows, whatever its kind. `DataError`; see `records.rows_of`."""
        words = np.frombuffer(self.buffer, "<u8", len(self.buffer) // 8)
        return records.rows_of(words, np.array([self.at // 8]))


class LogRun:
    """Records that follow each other in a buffer. Those of one row are read without one object for each."""

    def __init__(self, buffer: bytes, offset: int, words: NDArray[np.uint64], table: NDArray[Any]) -> None:
        """`words` is the buffer, which begins at an offset in the log, `table` that of `scan`."""
        self._buffer, self._offset, self._words, self._table = buffer, offset, words, table
        self._places = table[:-1, records.PLACE].astype(np.int64) // 8

    @classmethod
    def found(cls, buffer: bytes, at: LogPosition) -> LogRun:
        """The whole records at the beginning of a buffer, which continue the log from `at`."""
        words = np.frombuffer(buffer, "<u8", len(buffer) // 8)
        table = np.empty((len(words) // records.HEAD_WORDS + 1, 3), np.uint64)
        count = records.scan(words, np.uint64(at.row), np.uint64(at.hash), table)
        return cls(buffer, at.offset, words, table[: count + 1])

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[LogRecord]:
        """Each record."""
        for at in (8 * self._places).tolist():
            head = records.head_at(self._buffer, at)
            assert head is not None  # `scan` has found it
            yield LogRecord(head, self._offset + at, self._buffer, at)

    def part(self, lo: int, hi: int) -> LogRun:
        """Records lo to hi - 1."""
        return LogRun(self._buffer, self._offset, self._words, self._table[lo : hi + 1])

    @property
    def end(self) -> LogPosition:
        """Where the last ends."""
        at, row, found = self._table[-1].tolist()
        return LogPosition(self._offset + at, row, found)

    def before(self, offset: int) -> LogRun:
        """Those that begin before an offset in the log."""
        return self.part(0, int(np.searchsorted(8 * self._places, offset - self._offset)))

    def pieces(self, most_rows: int, most_values: int) -> Iterator[LogRun]:
        """The records in order, in pieces that end as soon as they have so many rows or values."""
        rows = (self._words[self._places + 1] >> np.uint64(32)).cumsum().astype(np.int64)
        values, lo = self._words[self._places + 2].cumsum().astype(np.int64), 0
        while lo < len(self):
            done = (rows[lo - 1], values[lo - 1]) if lo else (0, 0)
            ends = np.searchsorted(rows, done[0] + most_rows), np.searchsorted(values, done[1] + most_values)
            hi = min(int(min(ends)) + 1, len(self))
            yield self.part(lo, hi)
            lo = hi

    def rows(self) -> Chunk:
        """The rows to be learned. `DataError`; see `records.rows_of`."""
        kinds = self._words[self._places + 7] & np.uint64(255)
        return records.rows_of(self._words, self._places[kinds == records.ROWS])


def records_from(folder: str | os.PathLike[str], start: LogPosition | None = None) -> Iterator[LogRun]:
    """Records from a place on, or from the beginning, some at a time, up to the end of the log as it is now.

    `LogError` if a record is damaged, or if `start` is not a place of this log.
    """
    paths = segment_paths(folder)
    begins = [int(path.stem) for path in paths]
    if start is not None and start.offset < begins[0]:
        first = read_segment(paths[0]).begin.row
        raise LogError(f"{folder}: begins with row {first + 1:,}; what was before has been removed")
    number = 0 if start is None else bisect_right(begins, start.offset) - 1
    segment = read_segment(paths[number])
    at = segment.begin if start is None else start
    if _place_in(segment, at.offset) != at:
        raise LogError(
            f"{folder}: not the log that was read before, up to row {at.row:,}; if it was cut, remove the"
            " files *state and *model of its folder, too"
        )
    while True:
        for found in _records_in(segment, at, number + 1 == len(paths)):
            yield found
            at = found.end
        number += 1
        if number == len(paths):
            return
        if at.offset != begins[number]:
            raise LogError(_damage(segment, at, "damaged, or a segment after it is missing"))
        segment = read_segment(paths[number])
        if segment.begin != at:
            raise LogError(f"{segment.path}: of another log: it does not follow {paths[number - 1].name}")


def _damage(segment: LogSegment, at: LogPosition, what: str = "damaged") -> str:
    return f"{segment.path}: {what} at byte {segment.byte(at.offset):,}, after row {at.row:,}"


def place_at(folder: str | os.PathLike[str], offset: int) -> LogPosition | None:
    """The place at an offset, if it is one between two records that can be read."""
    before = [path for path in segment_paths(folder) if int(path.stem) <= offset]
    return _place_in(read_segment(before[-1]), offset) if before else None


def _place_in(segment: LogSegment, offset: int) -> LogPosition | None:
    """The place at an offset, as the record there tells; without one, as those before it do."""
    with system_errors(segment.path, LogError), open(segment.path, "rb", buffering=0) as file:
        file.seek(segment.byte(offset))
        if head := records.head_at(file.read(records.HEAD), 0):
            return LogPosition(offset, head.row, head.before)
    end = segment.begin
    for some in _records_in(segment, segment.begin, True):
        if end.offset >= offset:
            break
        end = some.before(offset).end
    return end if end.offset == offset else None


def _records_in(segment: LogSegment, at: LogPosition, last: bool) -> Iterator[LogRun]:
    """The whole records of one file, from a place on; `last` if no file follows it."""
    with system_errors(segment.path, LogError), open(segment.path, "rb", buffering=0) as file:
        size, looked_again = _WINDOW, False
        while True:
            file.seek(segment.byte(at.offset))
            buffer = file.read(size)
            found = LogRun.found(buffer, at)
            if found:
                yield found
                at, size, looked_again = found.end, _WINDOW, False
                continue
            head = records.head_at(buffer, 0)
            if head is not None and head.end > len(buffer) and len(buffer) == size:
                size = head.end
                continue
            if not last or not buffer or is_unsynced(file, segment.byte(at.offset), at.offset):
                return
            if looked_again:
                raise LogError(_damage(segment, at))
            looked_again = True  # it may have been written and synced since it was read


def is_unsynced(file: FileIO, place: int, offset: int) -> bool:
    """Whether no later record in the file says that this place, an offset in the log, was synced."""
    file.seek(place)
    rest = file.read()
    for at in [found.start() for found in re.finditer(records.MARK, rest)]:
        head = records.head_at(rest, at) if at % 8 == 0 else None
        if head is not None and head.synced > offset:
            run = LogRun.found(rest[at : at + head.end], LogPosition(0, head.row, head.before))
            if run:
                return False
    return True
