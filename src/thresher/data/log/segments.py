"""The files of a log: found, read, written, cut.

A log is a folder of segments. The records of all of them are one sequence of bytes; a segment is named by
the offset of its first record in it. It begins with `_MAGIC`, the length of its header (u4), the header
(JSON: the offset, the rows before it, the hash to begin with, and which rows the log is for), and the XXH64
of all these.

A record that ends in the middle, or whose hash is wrong, ends the log, if it was never synced: then a write
was cut short, and nothing in it was acknowledged. Otherwise, if a later record says that it was synced, the
log is damaged.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from thresher.data.errors import DataError
from thresher.data.log import records
from thresher.data.log.records import MARK, RecordHead, head_at, is_whole

_MAGIC = b"thresher log 1\n\0"
_LENGTH = struct.Struct("<I")
_HASH = struct.Struct("<Q")
_NAME = re.compile(r"\d{20}\.log")
_LONGEST_HEADER = 1 << 26
_WINDOW = 1 << 20
"""Bytes read at a time"""


class LogError(DataError):
    """A log cannot be used: damaged, of another model, or in use."""


class LogPosition(NamedTuple):
    """A place between two records."""

    offset: int
    """bytes of all records before"""
    row: int
    """rows to be learned before"""
    hash: int
    """hash of the record before"""


@dataclass(frozen=True)
class LogSegment:
    """One file of a log."""

    path: Path
    begin: LogPosition
    """where its first record is"""
    header: int
    """bytes before the first record"""
    origin: Mapping[str, Any]
    """which rows the log is for: see `LogOrigin`"""

    @property
    def end(self) -> int:
        """The offset at which the file ends, whether or not with a whole record."""
        return self.begin.offset + max(self.path.stat().st_size - self.header, 0)


def is_log(path: str | os.PathLike[str]) -> bool:
    """Whether this is a folder with segments of a log."""
    try:
        return os.path.isdir(path) and any(_NAME.fullmatch(name) for name in os.listdir(path))
    except OSError:
        return False


def segment_name(offset: int) -> str:
    """The name of the segment that begins at an offset."""
    return f"{offset:020}.log"


def header_bytes(begin: LogPosition, origin: Mapping[str, Any]) -> bytes:
    """What a segment begins with."""
    header = {"offset": begin.offset, "row": begin.row, "hash": begin.hash, "origin": origin}
    text = json.dumps(header, sort_keys=True, ensure_ascii=False).encode()
    text += b" " * (-(len(_MAGIC) + _LENGTH.size + len(text) + _HASH.size) % 8)
    whole = _MAGIC + _LENGTH.pack(len(text)) + text
    return whole + _HASH.pack(xxhash.xxh64_intdigest(whole))


def read_segment(path: Path) -> LogSegment:
    """The header of a segment. `LogError` if it is not whole."""
    with open(path, "rb") as file:
        start = file.read(len(_MAGIC) + _LENGTH.size)
        if not start.startswith(_MAGIC) or len(start) < len(_MAGIC) + _LENGTH.size:
            raise LogError(f"{path}: not a segment of a log of this version")
        size = _LENGTH.unpack_from(start, len(_MAGIC))[0]
        rest = file.read(min(size, _LONGEST_HEADER) + _HASH.size)
    if len(rest) != size + _HASH.size or _HASH.unpack_from(rest, size)[0] != xxhash.xxh64_intdigest(
        start + rest[:size]
    ):
        raise LogError(f"{path}: the header is damaged")
    header = json.loads(rest[:size])
    begin = LogPosition(header["offset"], header["row"], header["hash"])
    return LogSegment(path, begin, len(start) + len(rest), header["origin"])


def segments_of(folder: str | os.PathLike[str]) -> list[LogSegment]:
    """The segments of a log, in order. `LogError` if one is missing or damaged."""
    try:
        names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    except OSError as error:
        raise LogError(f"{folder}: {error.strerror}") from error
    if not names:
        raise LogError(f"{folder}: not a log: it holds no segments")
    found = [read_segment(Path(folder, name)) for name in names]
    for one, other in pairwise(found):
        if one.end < other.begin.offset:
            raise LogError(f"{one.path}: cut off: its records end before {other.path.name} begins")
    return found


class LogRecord(NamedTuple):
    """A whole record in a buffer."""

    head: RecordHead
    offset: int
    """in the log"""
    buffer: bytes
    at: int

    @property
    def begin(self) -> LogPosition:
        """Where it begins."""
        return LogPosition(self.offset, self.head.row, self.head.before)

    @property
    def end(self) -> LogPosition:
        """Where the next begins."""
        return LogPosition(self.offset + self.head.end, self.head.last, self.head.hash)

    def note(self) -> dict[str, Any]:
        """What it says besides its rows."""
        return records.note_of(self.buffer, self.at, self.head)


def records_from(
    folder: str | os.PathLike[str], start: LogPosition | None = None
) -> Iterator[list[LogRecord]]:
    """Records from a place on, or from the beginning, some at a time, up to the end of the log as it is now.

    `LogError` if a record is damaged, or if `start` is not a place of this log.
    """
    segments = segments_of(folder)
    at = start or segments[0].begin
    if at.offset < segments[0].begin.offset:
        raise LogError(
            f"{folder}: begins with row {segments[0].begin.row + 1:,}; what was before has been removed"
        )
    for number, one in enumerate(segments):
        last = number + 1 == len(segments)
        stop = None if last else segments[number + 1].begin
        if stop is not None and at.offset >= stop.offset:
            continue
        for found in _records_in(one, at, last):
            yield found
            at = found[-1].end
        if stop is not None and at != stop:
            raise LogError(f"{one.path}: damaged at byte {at.offset - one.begin.offset + one.header:,}")
    if at.offset > segments[-1].end or (start is not None and at.offset < start.offset):
        raise LogError(f"{folder}: ends before row {at.row + 1:,}, where it is to be read from")


def _records_in(segment: LogSegment, at: LogPosition, last: bool) -> Iterator[list[LogRecord]]:
    """The whole records of one file, from a place on; `last` if no file follows it."""
    with open(segment.path, "rb", buffering=0) as file:
        place = at.offset - segment.begin.offset + segment.header
        size = _WINDOW
        while True:
            file.seek(place)
            buffer = file.read(size)
            found = [*_whole_records(buffer, at)]
            if found:
                yield found
                at, size = found[-1].end, _WINDOW
                place = at.offset - segment.begin.offset + segment.header
                continue
            head = head_at(buffer, 0)
            if head is None or head.end <= len(buffer) or len(buffer) < size:
                if buffer and not is_unsynced(file, place, at.offset):
                    raise LogError(f"{segment.path}: damaged at byte {place:,}, of row {at.row + 1:,}")
                return
            size = head.end


def _whole_records(buffer: bytes, at: LogPosition) -> Iterator[LogRecord]:
    """The whole records at the beginning of a buffer, which continue the log from `at`."""
    place = 0
    while (head := head_at(buffer, place)) is not None:
        if (head.row, head.before) != (at.row, at.hash) or not is_whole(buffer, place, head):
            return
        yield LogRecord(head, at.offset, buffer, place)
        at, place = LogPosition(at.offset + head.end, head.last, head.hash), place + head.end


def is_unsynced(file: Any, place: int, offset: int) -> bool:
    """Whether no later record in the file says that this place, an offset in the log, was synced."""
    file.seek(place)
    rest = file.read()
    found = rest.find(MARK, 1)
    while found >= 0:
        head = head_at(rest, found) if found % 8 == 0 else None
        if head is not None and head.synced > offset and is_whole(rest, found, head):
            return False
        found = rest.find(MARK, found + 1)
    return True
