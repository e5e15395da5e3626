"""Cutting a log: what comes after a row is kept in a folder of its own, and nothing is destroyed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from itertools import count
from pathlib import Path
from typing import NamedTuple

from thresher.data.log.segments import (
    LogError,
    LogPosition,
    LogRecord,
    LogSegment,
    header_bytes,
    read_segment,
    records_from,
    segment_name,
    segment_paths,
)
from thresher.data.log.writer import locked, sync_folder
from thresher.engine.atomic import whole_file

_START = datetime(1970, 1, 1, tzinfo=UTC)


class CutOff(NamedTuple):
    """What was cut off a log."""

    folder: Path | None
    """where it is; None if there was nothing"""
    bytes: int
    rows: int
    """of those that can be read"""
    at: datetime | None = None
    """the moment before which the log ends, if it was cut at a time"""


Beside = Callable[[LogPosition], Sequence[Path]]
"""Files in the folder that do not belong to a log which ends there. `LogError` if it may not end there."""


def cut_after(folder: Path, row: int, beside: Beside = lambda end: ()) -> CutOff:
    """Cut a log after a row, which may be the last before a damaged place.

    If the computer stops on the way, the log is the old one, without its last segments at most, and these
    are in the other folder, with the files `beside`. `LogError` if there is no such row, if one request
    brought it together with later ones, or if a server writes the log; OSError.
    """
    return _cut(folder, lambda: _end_of(folder, row), beside)


def cut_before(folder: Path, moment: datetime | time, beside: Beside = lambda end: ()) -> CutOff:
    """Cut a log before the first record from this moment on, or this time (UTC) of the day of the last one.

    `LogError` also for a time that is still to come, and for one up to which there is no record.
    """
    at = moment if isinstance(moment, datetime) else _on_last_day(folder, moment)
    return _cut(folder, lambda: _end_before(folder, at), beside)._replace(at=at)


def _cut(folder: Path, find: Callable[[], LogPosition], beside: Beside) -> CutOff:
    segment_paths(folder)
    lock = locked(folder)
    try:
        end = find()
        files = beside(end)
        kept, others = _kept(folder, end)
        place = end.offset - kept.begin.offset + kept.header
        tail = kept.path.stat().st_size - place
        if not tail and not others and not files:
            return CutOff(None, 0, 0)
        size, rows = tail + sum(path.stat().st_size for path in others), _last_row(folder) - end.row
        spare = _new_folder(folder, f"cut-{end.row}")
        for path in files:  # first: a server that finds none learns what is left
            path.rename(spare / path.name)
        if tail:
            with open(kept.path, "rb") as old, whole_file(spare / segment_name(end.offset), "wb") as new:
                old.seek(place)
                new.write(header_bytes(end, kept.origin))
                while piece := old.read(1 << 20):
                    new.write(piece)
        for path in reversed(others):  # from the end: what is left is a log at any time
            path.rename(_unused(spare, path.name))
        sync_folder(spare)
        sync_folder(folder)
        with open(kept.path, "r+b") as file:
            file.truncate(place)
            os.fsync(file.fileno())
        return CutOff(spare, size, rows)
    finally:
        os.close(lock)


def _end_of(folder: Path, row: int) -> LogPosition:
    """The last place between two records, of those that can be read, up to which there are so many rows."""
    at, trouble = None, ""
    try:
        for some in records_from(folder):
            for record in some:
                at = at or record.begin
                if record.end.row > row:
                    return _checked(at, row, f"rows {record.head.row + 1:,} to {record.head.last:,}", folder)
                at = record.end
    except LogError as error:
        trouble = f": {error}"
    at = at or read_segment(segment_paths(folder)[0]).begin
    return _checked(at, row, "", folder, trouble)


def _records(folder: Path) -> Iterator[LogRecord]:
    return (record for some in records_from(folder) for record in some)


def _last_row(folder: Path) -> int:
    """The last row that can be read."""
    row = read_segment(segment_paths(folder)[0]).begin.row
    with suppress(LogError):
        for record in _records(folder):
            row = record.end.row
    return row


def _span(folder: Path) -> tuple[datetime, datetime]:
    """When the first and the last record were written."""
    times = [one.head.time for one in _records(folder)] or [0]
    return _START + timedelta(microseconds=min(times)), _START + timedelta(microseconds=max(times))


def _on_last_day(folder: Path, moment: time) -> datetime:
    """A time on the day of the last record. `LogError` if it is still to come."""
    zone = moment.tzinfo or UTC
    found = datetime.combine(_span(folder)[1].astimezone(zone).date(), moment, zone)
    if found > (now := datetime.now(UTC)):
        raise LogError(
            f"{moment:%H:%M} is still to come, as it is {now:%H:%M} UTC now: give a date, such as"
            f" {found - timedelta(days=1):%Y-%m-%dT%H:%M}"
        )
    return found


def _end_before(folder: Path, moment: datetime) -> LogPosition:
    """Where the first record begins that was written at this moment or later; the end if there is none.

    `LogError` if that is the first of all.
    """
    limit = (moment - _START) / timedelta(microseconds=1)
    begin = end = read_segment(segment_paths(folder)[0]).begin
    for record in _records(folder):
        if record.head.time >= limit:
            break
        end = record.end
    else:
        return end
    if end == begin:
        first, last = _span(folder)
        until = f"{last:%H:%M:%S}" if last.date() == first.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        raise LogError(
            f"{folder}: this would cut all {_last_row(folder) - begin.row:,} rows: the log spans"
            f" {first:%Y-%m-%d %H:%M:%S} to {until} UTC; give a time in between, or the row {begin.row} to"
            " cut all"
        )
    return end


def _checked(at: LogPosition, row: int, together: str, folder: Path, trouble: str = "") -> LogPosition:
    """The place, if it is after this row."""
    if at.row == row:
        return at
    if not together:
        raise LogError(f"{folder}: the last row that can be read is {at.row:,}, not {row:,}{trouble}")
    if at.row > row:
        raise LogError(f"{folder}: begins with row {at.row + 1:,}")
    raise LogError(f"{folder}: {together} came together: cut before or after all of them")


def _kept(folder: Path, end: LogPosition) -> tuple[LogSegment, list[Path]]:
    """The segment in which the log will end, and those after it, which may be damaged."""
    paths = segment_paths(folder)
    last = max(k for k, path in enumerate(paths) if int(path.stem) < end.offset or k == 0)
    if last + 1 < len(paths) and int(paths[last + 1].stem) == end.offset:
        with suppress(LogError):  # a damaged one is cut off, too
            last += read_segment(paths[last + 1]).begin == end
    return read_segment(paths[last]), paths[last + 1 :]


def _new_folder(folder: Path, name: str) -> Path:
    for number in count(1):
        path = folder / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError


def _unused(folder: Path, name: str) -> Path:
    path = folder / name
    return path if not path.exists() else _unused(folder, f"{name}.other")
