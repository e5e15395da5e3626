"""The binary cache for later passes: the chunks of a source, in files that can be mapped into memory.

A cache file is named after the content of the data and the options that affect parsing. So renaming the
data files keeps the cache valid, and changed data never match it. Cache files are in
``$THRESHER_CACHE_DIR``, the user's cache folder or a folder you give; you may remove them at any time.

A chunk is checked against its hash once per process, and not at all by the process that wrote it.
"""

from __future__ import annotations

import hashlib
import os
import queue
import re
import secrets
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.errors import DataError
from thresher.data.files.content import data_cache_folder, trusted_folder
from thresher.data.report import Report
from thresher.data.source import Chunks, Source
from thresher.engine.atomic import clear_abandoned
from thresher.engine.folders import CacheWarning as CacheWarning
from thresher.engine.folders import private_folder
from thresher.options.messages import warn_user

if TYPE_CHECKING:
    from thresher.data.cache_file import BatchWriter, CachedBatches, Note
    from thresher.data.files.content import Content
    from thresher.data.sources.parsed import TextSource


_AHEAD = 4
_STALE = 24 * 3600.0
_OURS = re.compile(r"[0-9a-f]+-[0-9a-f]{32}\.arrow|\d+-[0-9a-f]{16}\.(partial|narrow)")
"""Names of cache files; other files in the folder are left alone"""


class CacheEntry(NamedTuple):
    """A file of the cache."""

    path: Path
    bytes: int
    modified: float
    """seconds since 1970"""


def cache_entries(folder: str | os.PathLike[str] | None = None) -> list[CacheEntry]:
    """All finished and unfinished cache files, newest first."""
    entries = []
    for path in data_cache_folder(folder).glob("*-*.*"):
        with suppress(OSError):  # removed meanwhile
            if _OURS.fullmatch(path.name):
                status = path.stat()
                entries.append(CacheEntry(path, status.st_size, status.st_mtime))
    return sorted(entries, key=lambda entry: -entry.modified)


def clear_cache(folder: str | os.PathLike[str] | None = None) -> tuple[int, int]:
    """Remove every cache file; returns ``(files, bytes)`` removed. Files in use elsewhere may remain."""
    files = size = 0
    for entry in cache_entries(folder):
        if _remove(entry.path):
            files, size = files + 1, size + entry.bytes
    contents = data_cache_folder(folder) / "contents.json"
    clear_abandoned(contents)
    _remove(contents)
    return files, size


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _file_name(source: TextSource, fingerprint: str) -> str:
    from thresher.data.cache_file import VERSION

    size = sum(int(part.partition(".")[2], 16) for part in fingerprint.split("-"))
    words = f"{VERSION}\n{source.identity}\n{fingerprint}"
    return f"{size:x}-{hashlib.sha256(words.encode()).hexdigest()[:32]}.arrow"


def open_cache(source: TextSource, folder: str | os.PathLike[str] | None = None) -> CacheSource | None:
    """The valid cache of what `source` yields, or None.

    The data are hashed only if a cache for data of the same size exists and their hash is not known yet.
    A damaged cache is removed. A cache in a folder that others can write to is ignored.
    """
    from thresher.data.cache_file import DamagedCacheError

    place = trusted_folder(folder)
    if place is None:
        return None  # `CacheWriter` warns about the folder
    size = "*" if source.total_bytes is None else f"{source.total_bytes:x}"
    if not any(place.glob(f"{size}-*.arrow")) or not (source.rereadable or source.finished):
        return None
    path = place / _file_name(source, source.fingerprint())

    try:
        cached = CacheSource(path, source)
    except FileNotFoundError:
        return None
    except DamagedCacheError as error:
        _discarded(path, error)
        return None
    # the cache lacks the lines rejected in an earlier process: read the text again to write them out
    unwritten = source.on_error.path is not None and not source.finished
    return None if unwritten and cached.whole.skipped else cached


def _discarded(path: Path, error: Exception) -> None:
    warn_user(f"removed a damaged cache: {error}", CacheWarning)
    _remove(path)


class CacheWriter:
    """Writes a cache during training: `write` each chunk that the source yields, then `commit`.

    Create it before the pass begins. Writing happens in a separate thread. If the disk is full or
    anything else fails, one `CacheWarning` is issued and no cache is written; training continues.
    """

    def __init__(self, source: TextSource, folder: str | os.PathLike[str] | None = None) -> None:
        self._source = source
        source.keep_hash = True
        self._given = folder
        self._jobs: queue.Queue[tuple[Chunk, Note] | None] = queue.Queue(_AHEAD)
        self._error: Exception | None = None
        self._warned = False
        self._shown = 0
        self._writer: BatchWriter | None = None
        self._thread = threading.Thread(target=self._work, name="thresher-cache", daemon=True)
        self._thread.start()

    def write(self, chunk: Chunk) -> None:
        """Queue the chunk that the source has just yielded."""
        if self._error is not None:
            self._warn()
            return
        place, after = (list(spot) if spot else None for spot in (chunk.place, chunk.after))
        note = {"place": place, "after": after, "position": self._source.position_bytes}
        self._jobs.put((chunk, {**note, **self._new_entries()}))

    def _new_entries(self) -> Note:
        report = self._source.report.as_dict()
        bad = report.pop("first_bad")
        news, self._shown = bad[self._shown :], len(bad)
        return {"counts": report, "bad": news}

    def _work(self) -> None:
        from thresher.data.cache_file import BatchWriter

        try:
            self._folder = private_folder(data_cache_folder(self._given))
            self._path = self._folder / f"{os.getpid()}-{secrets.token_hex(8)}.partial"
            for entry in cache_entries(self._folder):
                if entry.path.suffix != ".arrow" and time.time() - entry.modified > _STALE:
                    _remove(entry.path)
            self._writer = BatchWriter(self._path, self._source.domain.width or 0, self._source.has_groups)
            while (job := self._jobs.get()) is not None:
                self._writer.write(*job)
        except Exception as error:  # noqa: BLE001 no error of the cache may stop training
            self._error = error
            while self._jobs.get() is not None:  # `write` may wait for room
                pass

    def commit(self) -> CacheSource | None:
        """Finish and rename the file at the end of a whole pass; None if writing failed."""
        self._stop()
        if self._error is None and self._writer is not None:
            try:
                self._shown = 0  # the last note holds all bad lines that are kept
                self._writer.finish({"end": True, "place": None, "after": None, **self._new_entries()})
                path = self._folder / _file_name(self._source, self._source.fingerprint())
                os.replace(self._path, path)  # not `whole_file`: the name is known only now, from the content
                return CacheSource(path, self._source, trusted=True)
            except Exception as error:  # noqa: BLE001 likewise
                self._error = error
        self.abandon()
        self._warn()
        return None

    def abandon(self) -> None:
        """Stop and remove the partial file; does nothing after `commit`."""
        self._stop()
        if self._writer is not None:
            with suppress(OSError):  # the folder may be gone
                self._writer.abandon()
            self._writer = None

    def _stop(self) -> None:
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warn_user(f"no cache was written: {self._error}", CacheWarning)


class CacheSource(Source):
    """A finished cache as a `Source`: the chunks, places and report of the source it was written from.

    If a chunk is damaged, the cache is removed and the pass continues from the same place with the text,
    provided that it can still be read.
    """

    keep_hash = True
    content: Sequence[Content] = ()
    """content of the data the cache was made from"""

    def __init__(self, path: Path, origin: TextSource, *, trusted: bool = False) -> None:
        from thresher.data.cache_file import CachedBatches
        from thresher.data.sources.reader import Arenas, default_threads

        super().__init__(origin.names)
        self.path = path
        self._reader: CachedBatches | None = CachedBatches(path, trusted)
        self._origin = origin
        self._threads = default_threads()
        self._arenas = Arenas(self._threads + 4)
        self.total_bytes, self.content = origin.total_bytes, origin.known()
        self.where, self.layout, self.marked = origin.where, origin.layout, origin.marked
        self.whole = _report(self._reader.last, Report())
        """the counts of a whole pass"""

    @property
    def origin(self) -> TextSource:
        """The files that the cache was made from."""
        return self._origin

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read (see `TextSource`); raises `DataError` at once."""
        self._origin.expect(content, whole, now=True)

    def confirm(self) -> None:
        """Does nothing: `expect` has checked everything."""

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """One pass, or the rest from `start` on (set `report` to its state there first)."""
        from thresher.data.cache_file import DamagedCacheError

        if start is None:
            self.report = Report()
        place = start
        if self._reader is not None:
            try:
                for chunk, note in self._read(self._reader, start):
                    self.report = _report(note, self.report)
                    self.position_bytes = note["position"]
                    place = chunk.after
                    yield chunk
                self.report = _report(self._reader.last, Report())
                return
            except DamagedCacheError as error:
                self._reader = None
                _discarded(self.path, error)
        if not self._origin.rereadable:
            raise DataError(f"{self.path}: the cache is damaged, and standard input cannot be read again")
        self._origin.report = self.report
        self._origin.expect(self.content, whole=True)
        for chunk in self._origin.chunks(place):
            self.report, self.position_bytes = self._origin.report, self._origin.position_bytes
            yield chunk
        self.report = self._origin.report

    def _read(self, reader: CachedBatches, start: StreamPosition | None) -> Iterator[tuple[Chunk, Note]]:
        """The chunks from the first on that does not begin before `start`."""

        def begin(k: int) -> tuple[int, ...]:
            return tuple(reader.note(k)["place"])

        first = 0 if start is None else bisect_left(range(reader.count), tuple(start), key=begin)
        waiting: deque[Future[tuple[Chunk, Note]]] = deque()
        with ThreadPoolExecutor(self._threads, "thresher-cache") as pool:
            try:
                for k in range(first, reader.count):
                    waiting.append(pool.submit(reader.chunk, k, self._arenas))
                    if len(waiting) > self._threads + 1:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


def _report(note: Note, before: Report) -> Report:
    report = Report.from_dict({**note["counts"], "first_bad": note["bad"]})
    report.first_bad = [*before.first_bad, *report.first_bad]
    return report
