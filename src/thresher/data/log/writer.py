"""Writing a log: one process at a time, many records with one sync."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from thresher.data.errors import reason_of
from thresher.data.files.paths import is_log
from thresher.data.log import segments
from thresher.data.log.origin import LogOrigin
from thresher.data.log.records import PackedEntry, seal
from thresher.data.stored import said
from thresher.engine.atomic import lock, whole_file

SEGMENT_BYTES = 64 << 20
_LOCK = "lock"
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
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


class LogWriter:
    """The end of a log, to which records are appended.

    A new log is for rows of this `origin`. What a write that was cut short has left at the end of an old log
    is cut off. Raises `LogError` if another process writes the log, if it is damaged, or if it is for other
    rows; OSError.
    """

    def __init__(
        self,
        folder: Path,
        origin: LogOrigin,
        segment_bytes: int = SEGMENT_BYTES,
        segment_seconds: float = math.inf,
    ) -> None:
        """A file is followed by the next once it has so many bytes, or its first record is so old."""
        self.folder, self.origin, self.failed = folder, origin, False
        self._most, self._oldest, self._since = segment_bytes, segment_seconds * 1e6, 0
        self._new = not is_log(folder)
        make_folder(folder)
        self._lock, self.cut = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), 0
        """`cut`: bytes of an unfinished write that were cut off"""
        try:
            if lock(self._lock) is False:
                raise segments.LogError(f"{folder}: another server writes this log")
            self.end = segments.LogPosition(0, 0, 0)
            self._segment = self._last() if is_log(folder) else self._begun()
            self._file = os.open(self._segment.path, _APPENDING)
            size = self._segment.byte(self.end.offset)
            self.cut = os.fstat(self._file).st_size - size
            if self.cut:
                os.ftruncate(self._file, size)
            os.fsync(self._file)  # the process before may have been killed between a write and its sync
            sync_folder(folder)
        except BaseException:
            os.close(self._lock)
            raise

    def _last(self) -> segments.LogSegment:
        """The last segment of an old log, which ends with its last whole record."""
        last = segments.segments_of(self.folder)[-1]
        have, own = last.origin, self.origin
        if have != own:
            other = own.unlike(have)
            which = f"a model of {other}" if other else f"another model ({have.model}, and not {own.model})"
            remedy = "serve the file that it began with, or begin another log"
            raise segments.LogError(f"{self.folder}: the log is of {which}: {remedy}")
        self.end = last.begin
        for some in segments.records_from(self.folder, last.begin):
            self._since = self._since or next(iter(some)).head.time
            self.end = some.end
        return last

    def _begun(self) -> segments.LogSegment:
        """A new segment at the end."""
        path = self.folder / segments.segment_name(self.end.offset)
        with whole_file(path, "wb") as file:
            file.write(segments.header_bytes(self.end, said(self.origin)))
        sync_folder(self.folder)
        return segments.read_segment(path)

    def append(self, entries: Sequence[PackedEntry]) -> None:
        """Write and sync records.

        `LogFullError` if there is no room, then the log is as before; `LogFailedError` if it may not be.
        """
        if self.failed:
            raise LogFailedError(f"{self.folder}: an earlier write failed")
        if self.end == self._segment.begin or self.roll_if_due(entries[0].head.time):
            self._since = entries[0].head.time
        parts, end = list[bytes](), self.end
        for entry in entries:
            whole, found = seal(entry, end.row, self.end.offset, end.hash)
            end = segments.LogPosition(end.offset + len(whole), end.row + entry.head.last, found)
            parts.append(whole)
        view = memoryview(b"".join(parts))
        with self._failing():
            try:
                while view:
                    view = view[os.write(self._file, view) :]
            except OSError:
                with self._failing(lost=True):
                    os.ftruncate(self._file, self._segment.byte(self.end.offset))
                raise
        # the kernel may drop the pages and forget the error: a second sync would succeed
        with self._failing(lost=True):
            getattr(os, "fdatasync", os.fsync)(self._file)
        for file, path in ((self._file, self._segment.path), (self._lock, self.folder / _LOCK)):
            try:
                there = os.path.samestat(os.fstat(file), os.stat(path))
            except FileNotFoundError:
                there = False
            if not there:
                self.failed = True
                raise LogFailedError(f"{path}: removed or replaced while it was in use")
        self.end = end

    @contextmanager
    def _failing(self, *, lost: bool = False) -> Iterator[None]:
        """Turn errors of the system into those of the log.

        It stays usable only if there was no room, and no bytes are `lost`.
        """
        try:
            yield
        except OSError as error:
            full = error.errno in _NO_ROOM and not lost
            self.failed = not full
            kind = LogFullError if full else LogFailedError
            raise kind(f"{self._segment.path}: {reason_of(error)}") from error

    def roll_if_due(self, now: int) -> bool:
        """Go on in a new segment if this one is long, or old in microseconds since 1970; whether it was.

        The errors of `append`.
        """
        size = self.end.offset - self._segment.begin.offset
        if not size or self.failed or (size < self._most and now - self._since < self._oldest):
            return False
        with self._failing():
            segment = self._begun()
            file = os.open(segment.path, _APPENDING)
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
