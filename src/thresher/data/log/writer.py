"""Writing a log: one process at a time, many records with one sync; and cutting it.

What comes after the row at which a log is cut is kept in a folder of its own, and nothing is destroyed.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from thresher.data.log import segments
from thresher.data.log.records import PackedEntry, sealed
from thresher.data.log.source import LogOrigin
from thresher.engine.atomic import lock, whole_file

SEGMENT_BYTES = 64 << 20
_LOCK = "lock"
_NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EMFILE, errno.ENFILE, getattr(errno, "EDQUOT", errno.ENOSPC)}


class LogFullError(segments.LogError):
    """Records could not be written, for want of space or because of a limit; nothing of them is left."""


class LogFailedError(segments.LogError):
    """A sync or a write failed, so nothing is known of what is on disk: only reading it again can tell."""


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, if it does not exist, so that it is still there after a power failure."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def locked(folder: Path) -> int:
    """The descriptor of a lock on a log, held until it is closed. `LogError` if another process has it."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if lock(descriptor) is False:
        os.close(descriptor)
        raise segments.LogError(f"{folder}: another server writes this log")
    return descriptor


class LogWriter:
    """The end of a log, to which records are appended.

    A new log is for rows of this `origin`. What a write that was cut short has left at the end of an old log
    is cut off. Raises `LogError` if another process writes the log, if it is damaged, or if it is for other
    rows; OSError.
    """

    def __init__(
        self,
        folder: Path,
        origin: Mapping[str, Any],
        segment_bytes: int = SEGMENT_BYTES,
        segment_seconds: float = math.inf,
    ) -> None:
        """A file is followed by the next once it has so many bytes, or its first record is so old."""
        self.folder, self.origin, self.failed = folder, origin, False
        self._most, self._oldest, self._since = segment_bytes, segment_seconds * 1e6, 0
        self._new = not segments.is_log(folder)
        make_folder(folder)
        self._lock, self.cut = locked(folder), 0
        """`cut`: bytes of an unfinished write that were cut off"""
        try:
            self.end = segments.LogPosition(0, 0, 0)
            self._file, self._segment = self._go_on() if segments.is_log(folder) else self._begun()
        except BaseException:
            os.close(self._lock)
            raise

    def _go_on(self) -> tuple[int, segments.LogSegment]:
        """The last segment of an old log, which ends with its last whole record."""
        last = segments.segments_of(self.folder)[-1]
        have, asked = LogOrigin.of(last.origin), LogOrigin.of(self.origin)
        if have != asked:
            other = asked.unlike(have)
            which = f"a model of {other}" if other else f"another model ({have.model}, and not {asked.model})"
            remedy = "serve the file that it began with, or begin another log"
            raise segments.LogError(f"{self.folder}: the log is of {which}: {remedy}")
        self.end = last.begin
        for some in segments.records_from(self.folder, last.begin):
            self._since = self._since or some[0].head.time
            self.end = some.end
        file = os.open(last.path, os.O_RDWR | os.O_CLOEXEC)
        size = last.header + self.end.offset - last.begin.offset
        self.cut = os.fstat(file).st_size - size
        if self.cut:
            os.ftruncate(file, size)
        os.fsync(file)  # the process before may have been killed between a write and its sync
        sync_folder(self.folder)
        os.lseek(file, 0, os.SEEK_END)
        return file, last

    def _begun(self) -> tuple[int, segments.LogSegment]:
        """A new segment at the end."""
        path = self.folder / segments.segment_name(self.end.offset)
        with whole_file(path, "wb") as file:
            file.write(segments.header_bytes(self.end, self.origin))
        sync_folder(self.folder)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        return descriptor, segments.read_segment(path)

    def append(self, entries: Sequence[PackedEntry]) -> list[segments.LogPosition]:
        """Write and sync records; return where each ends.

        `LogFullError` if there is no room, then the log is as before; `LogFailedError` if it may not be.
        """
        if self.failed:
            raise LogFailedError(f"{self.folder}: an earlier write failed")
        if self.end == self._segment.begin or self.roll_if_due(entries[0].head.time):
            self._since = entries[0].head.time
        parts, ends, end = list[bytes](), list[segments.LogPosition](), self.end
        for entry in entries:
            whole, found = sealed(entry, end.row, self.end.offset, end.hash)
            end = segments.LogPosition(end.offset + len(whole), end.row + entry.head.last, found)
            parts.append(whole)
            ends.append(end)
        self._write(b"".join(parts))
        self.end = end
        return ends

    def _write(self, whole: bytes) -> None:
        view = memoryview(whole)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            size = self._segment.header + self.end.offset - self._segment.begin.offset
            try:
                os.ftruncate(self._file, size)
                os.lseek(self._file, 0, os.SEEK_END)
            except OSError:
                raise self._failure(error, lost=True) from error
            raise self._failure(error) from error
        try:
            getattr(os, "fdatasync", os.fsync)(self._file)
        except OSError as error:
            # the kernel may have dropped the pages and forgotten the error: a second sync would succeed
            raise self._failure(error, lost=True) from error
        for file, path in ((self._file, self._segment.path), (self._lock, self.folder / _LOCK)):
            try:
                there = os.path.samestat(os.fstat(file), os.stat(path))
            except FileNotFoundError:
                there = False
            if not there:
                self.failed = True
                raise LogFailedError(f"{path}: removed or replaced while it was in use")

    def _failure(self, error: OSError, *, lost: bool = False) -> segments.LogError:
        """The error to raise. The log stays usable only if there was no room, and no bytes are `lost`."""
        if error.errno in _NO_ROOM and not lost:
            return LogFullError(f"{self._segment.path}: {error.strerror}")
        self.failed = True
        return LogFailedError(f"{self._segment.path}: {error.strerror}")

    def roll_if_due(self, now: int) -> bool:
        """Go on in a new segment if this one is long, or old in microseconds since 1970; whether it was.

        The errors of `append`.
        """
        size = self.end.offset - self._segment.begin.offset
        if not size or self.failed or (size < self._most and now - self._since < self._oldest):
            return False
        try:
            file, segment = self._begun()
        except OSError as error:
            raise self._failure(error) from error
        os.close(self._file)
        self._file, self._segment = file, segment
        return True

    def close(self) -> None:
        """Close the files and let another process write."""
        os.close(self._file)
        os.close(self._lock)

    def abandon(self) -> None:
        """Close, and remove a new log that nobody needs."""
        if self._new and self.end == self._segment.begin:
            self._segment.path.unlink(missing_ok=True)
            (self.folder / _LOCK).unlink(missing_ok=True)
            with suppress(OSError):  # it holds other files
                self.folder.rmdir()
        self.close()


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


Beside = Callable[[segments.LogPosition], Sequence[Path]]
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
    if isinstance(moment, datetime):
        at = moment
    else:
        zone = moment.tzinfo or UTC
        at = datetime.combine(_span(folder)[1].astimezone(zone).date(), moment, zone)
        if at > (now := datetime.now(UTC)):
            raise segments.LogError(
                f"{moment:%H:%M} is still to come, as it is {now:%H:%M} UTC now: give a date, such as"
                f" {at - timedelta(days=1):%Y-%m-%dT%H:%M}"
            )
    return _cut(folder, lambda: _end_before(folder, at), beside)._replace(at=at)


def _cut(folder: Path, find: Callable[[], segments.LogPosition], beside: Beside) -> CutOff:
    segments.segment_paths(folder)
    lock = locked(folder)
    try:
        end = find()
        files = beside(end)
        paths = segments.segment_paths(folder)
        last = max(k for k, path in enumerate(paths) if int(path.stem) < end.offset or k == 0)
        if last + 1 < len(paths) and int(paths[last + 1].stem) == end.offset:
            with suppress(segments.LogError):  # a damaged one is cut off, too
                last += segments.read_segment(paths[last + 1]).begin == end
        kept, others = segments.read_segment(paths[last]), paths[last + 1 :]
        place = end.offset - kept.begin.offset + kept.header
        tail = kept.path.stat().st_size - place
        if not tail and not others and not files:
            return CutOff(None, 0, 0)
        size, rows = tail + sum(path.stat().st_size for path in others), _last_row(folder) - end.row
        names = (f"cut-{end.row}" + f"-{number}" * (number > 1) for number in count(1))
        spare = next(path for name in names if not (path := folder / name).exists())
        spare.mkdir()
        for path in files:  # first: a server that finds none learns what is left
            path.rename(spare / path.name)
        if tail:
            with (
                open(kept.path, "rb") as old,
                whole_file(spare / segments.segment_name(end.offset), "wb") as new,
            ):
                old.seek(place)
                new.write(segments.header_bytes(end, kept.origin))
                shutil.copyfileobj(old, new)
        for path in reversed(others):  # from the end: what is left is a log at any time
            to = spare / path.name
            while to.exists():
                to = to.with_name(f"{to.name}.other")
            path.rename(to)
        sync_folder(spare)
        sync_folder(folder)
        with open(kept.path, "r+b") as file:
            file.truncate(place)
            os.fsync(file.fileno())
        return CutOff(spare, size, rows)
    finally:
        os.close(lock)


def _end_of(folder: Path, row: int) -> segments.LogPosition:
    """The last place between two records, of those that can be read, up to which there are so many rows."""
    at, trouble, together = segments.read_segment(segments.segment_paths(folder)[0]).begin, "", ""
    try:
        for record in chain.from_iterable(segments.records_from(folder)):
            if record.end.row > row:
                together = f"rows {record.head.row + 1:,} to {record.head.last:,}"
                break
            at = record.end
    except segments.LogError as error:
        trouble = f": {error}"
    if at.row == row:
        return at
    if not together:
        raise segments.LogError(
            f"{folder}: the last row that can be read is {at.row:,}, not {row:,}{trouble}"
        )
    if at.row > row:
        raise segments.LogError(f"{folder}: begins with row {at.row + 1:,}")
    raise segments.LogError(f"{folder}: {together} came together: cut before or after all of them")


def _last_row(folder: Path) -> int:
    """The last row that can be read."""
    row = segments.read_segment(segments.segment_paths(folder)[0]).begin.row
    with suppress(segments.LogError):
        for record in chain.from_iterable(segments.records_from(folder)):
            row = record.end.row
    return row


def _span(folder: Path) -> tuple[datetime, datetime]:
    """When the first and the last record were written."""
    times = [one.head.time for one in chain.from_iterable(segments.records_from(folder))] or [0]
    return _START + timedelta(microseconds=min(times)), _START + timedelta(microseconds=max(times))


def _end_before(folder: Path, moment: datetime) -> segments.LogPosition:
    """Where the first record begins that was written at this moment or later; the end if there is none.

    `LogError` if that is the first of all.
    """
    limit = (moment - _START) / timedelta(microseconds=1)
    begin = end = segments.read_segment(segments.segment_paths(folder)[0]).begin
    for record in chain.from_iterable(segments.records_from(folder)):
        if record.head.time >= limit:
            break
        end = record.end
    else:
        return end
    if end == begin:
        first, last = _span(folder)
        until = f"{last:%H:%M:%S}" if last.date() == first.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        raise segments.LogError(
            f"{folder}: this would cut all {_last_row(folder) - begin.row:,} rows: the log spans"
            f" {first:%Y-%m-%d %H:%M:%S} to {until} UTC; give a time in between, or the row {begin.row} to"
            " cut all"
        )
    return end
