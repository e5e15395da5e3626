"""The binary cache for later passes: the chunks of a source, in files that can be mapped into memory.

A cache file is named after the content of the data and the options that affect parsing. So renaming the
data files keeps the cache valid, and changed data never match it. Cache files are in
``$THRESHER_CACHE_DIR``, the user's cache folder or a folder you give; you may remove them at any time.

In a file, each chunk is a record, whose parts are padded to multiples of 8 bytes: a hash of the rest and the
size of the head (both u8), the head (JSON: a note, with the place of the chunk and the counts so far, and the
names, dtypes and shapes of its arrays), and these arrays. Keys are u4 where those of the chunk fit. A last
record without rows holds the final report. The file ends with where each record begins and the last one ends,
their number (all u8) and a mark, without which it is incomplete.

A chunk is checked against its hash once per process, and not at all by the process that wrote it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import secrets
import struct
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import xxhash

from thresher.data.chunk import Chunk, StreamPosition, concat
from thresher.data.errors import DataError
from thresher.data.report import Report
from thresher.data.source import Chunks, Source
from thresher.data.sources.parsed import Quarantine
from thresher.data.sources.reader import Arenas, default_threads
from thresher.engine.atomic import CacheWarning as CacheWarning
from thresher.engine.atomic import cache_folder, private_folder
from thresher.options.messages import warn_user

if TYPE_CHECKING:
    from thresher.data.files.content import Content
    from thresher.data.sources.parsed import TextSource

VERSION = 5
"""Version of the file layout and of the parsers; caches of other versions are not found"""
_MARK, _HEAD, _END = b"thrRows4", struct.Struct("<QQ"), struct.Struct("<Q8s")
_LARGEST_NARROW = 2**32 - 1
_WINDOW = 16 << 20
"""Bytes before the current chunk that stay mapped"""
_AHEAD = 4
_STALE = 24 * 3600.0
_PARTIAL = f"*-{'[0-9a-f]' * 16}.partial"
"""Names of files that are being written; a killed process leaves one"""
Note = dict[str, Any]
"""What is kept of a chunk beside its arrays"""


class DamagedCacheError(Exception):
    """A cache file is incomplete or has changed since it was written."""


class CachedRows:
    """Reads a cache file by memory map. Raises `DamagedCacheError` if it is incomplete or has changed."""

    def __init__(self, path: Path, arenas: Arenas, trusted: bool = False) -> None:
        """`trusted`: do not check the chunks, since this process has just written the file."""
        self._path, self._arenas, self._dropped = path, arenas, 0
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            count, mark = _END.unpack_from(self._map, len(self._map) - _END.size)
            if mark != _MARK:
                raise ValueError("incomplete")
            begin = len(self._map) - _END.size - 8 * (count + 1)
            self._places: list[int] = np.frombuffer(self._map, "<u8", count + 1, begin).tolist()
        except (OSError, ValueError, OverflowError, struct.error) as error:
            raise DamagedCacheError(f"{path}: {error}") from error
        self.count = count - 1
        self._checked = bytearray([trusted] * count)
        self.last = self.chunk(self.count)[1]

    def head(self, k: int) -> tuple[Note, int]:
        """What was noted of chunk `k`, and where its arrays begin."""
        try:
            at = self._places[k] + _HEAD.size
            size: int = _HEAD.unpack_from(self._map, at - _HEAD.size)[1]
            note = json.loads(self._map[at : at + size])
            if not isinstance(note, dict):
                raise ValueError("a chunk has no note")
            return note, at + size + -size % 8
        except (ValueError, IndexError, struct.error) as error:
            raise DamagedCacheError(f"{self._path}: {error}") from error

    def chunk(self, k: int) -> tuple[Chunk, Note]:
        """Chunk `k`, checked against its hash when first read.

        Its arrays are views of the map, except that 32-bit keys are widened into an arena.
        """
        (note, at), begin = self.head(k), self._places[k]
        if not self._checked[k]:
            with memoryview(self._map) as whole, whole[begin + 8 : self._places[k + 1]] as rest:
                found = xxhash.xxh64_intdigest(rest)
            if found != _HEAD.unpack_from(self._map, begin)[0]:
                raise DamagedCacheError(f"{self._path}: chunk {k} has changed")
        self._checked[k] = True
        # unmap pages well before, so that they do not count as memory of this process: they stay in the
        # system's page cache, and a view still in use maps them again
        if not 0 <= begin - self._dropped <= 2 * _WINDOW:
            end = max(begin - _WINDOW, 0) // mmap.PAGESIZE * mmap.PAGESIZE
            first, self._dropped = self._dropped, end
            if first < end and hasattr(mmap, "MADV_DONTNEED"):
                self._map.madvise(mmap.MADV_DONTNEED, first, end - first)
        arrays = dict[str, Any]()
        for name, kind, shape in note["arrays"]:
            arrays[name] = np.ndarray(shape, kind, self._map, at)
            at += arrays[name].nbytes + -arrays[name].nbytes % 8
        if arrays["keys"].dtype != np.uint64:
            wide = self._arenas.columns(0, len(arrays["keys"])).keys
            wide[:] = arrays["keys"]
            arrays["keys"] = wide
        spots = (note.get(name) for name in ("place", "after"))  # the last record has none
        place, after = (StreamPosition(*spot) if spot else None for spot in spots)
        return Chunk(**arrays, place=place, after=after), note


def _file_name(source: TextSource, fingerprint: str) -> str:
    size = sum(int(part.partition(".")[2], 16) for part in fingerprint.split("-"))
    words = f"{VERSION}\n{source.identity}\n{fingerprint}"
    return f"{size:x}-{hashlib.sha256(words.encode()).hexdigest()[:32]}.rows"


def open_cache(source: TextSource, folder: str | os.PathLike[str] | None = None) -> CacheSource | None:
    """The valid cache of what `source` yields, or None.

    The data are hashed only if a cache for data of the same size exists and their hash is not known yet.
    A damaged cache is removed. A cache in a folder that others can write to is ignored.
    """
    size = "*" if source.total_bytes is None else f"{source.total_bytes:x}"
    try:
        place = cache_folder() / "data" if folder is None else Path(folder)
        if not any(place.glob(f"{size}-*.rows")) or not (source.total_bytes is not None or source.finished):
            return None
        private_folder(place)
    except OSError:
        return None  # `CacheWriter` warns about the folder
    path = place / _file_name(source, source.fingerprint())
    try:
        cached = CacheSource(path, source)
    except DamagedCacheError as error:
        if not isinstance(error.__cause__, FileNotFoundError):  # another process may remove it at any time
            _discard(path, error)
        return None
    if source.on_error.path is not None and not source.finished:
        if cached.whole.skipped:  # the lines themselves are not in the cache: read the text to write them
            return None
        Quarantine(source.on_error.path, keep=None).close()  # in place of those of an earlier run
    return cached


def _discard(path: Path, error: Exception) -> None:
    warn_user(f"removed a damaged cache: {error}", CacheWarning)
    with suppress(OSError):
        path.unlink()


class CacheWriter:
    """Writes a cache during training: `write` each chunk that the source yields, then `commit`.

    Create it before the pass begins. Writing happens in a separate thread. If the disk is full or
    anything else fails, one `CacheWarning` is issued and no cache is written; training continues.
    """

    def __init__(self, source: TextSource, folder: str | os.PathLike[str] | None = None) -> None:
        source.keep_hash = True
        self._source, self._shown, self._places, self._failed = source, 0, [0], False
        self._file: Any = None
        self._cache: CacheSource | None = None
        self._pool, self._jobs = ThreadPoolExecutor(1, "thresher-cache"), deque[Future[None]]()
        self._do(lambda: self._begin(folder))

    def write(self, chunk: Chunk) -> None:
        """Queue the chunk that the source has just yielded."""
        place, after = (list(spot) if spot else None for spot in (chunk.place, chunk.after))
        note = {"place": place, "after": after, "position": self._source.position_bytes}
        note |= self._new_entries()
        self._do(lambda: self.append(self._file, chunk, note))

    def _do(self, job: Callable[[], None], left: int = _AHEAD) -> None:
        """Queue a job, and wait until at most so many are `left`. One that fails is the last."""
        try:
            if not self._failed:
                self._jobs.append(self._pool.submit(job))
            while not self._failed and len(self._jobs) > left:
                self._jobs.popleft().result()
        except Exception as error:  # noqa: BLE001 no error of the cache may stop training
            self._failed = True
            warn_user(f"no cache was written: {error}", CacheWarning)

    def _new_entries(self) -> Note:
        report = self._source.report.as_dict()
        bad = report.pop("first_bad")
        news, self._shown = bad[self._shown :], len(bad)
        return {"counts": report, "bad": news}

    def _begin(self, given: str | os.PathLike[str] | None) -> None:
        self._folder = private_folder(cache_folder() / "data" if given is None else Path(given))
        self._path = self._folder / f"{os.getpid()}-{secrets.token_hex(8)}.partial"
        for path in self._folder.glob(_PARTIAL):
            with suppress(OSError):  # removed meanwhile
                if time.time() - path.stat().st_mtime > _STALE:
                    path.unlink()
        self._file = open(self._path, "wb")  # noqa: SIM115

    def append(self, file: BinaryIO, chunk: Chunk, note: Note) -> None:
        """Append a record."""
        arrays: dict[str, Any] = chunk.arrays()
        if int(chunk.keys.max(initial=0)) <= _LARGEST_NARROW:
            arrays["keys"] = chunk.keys.astype(np.uint32)
        forms = [(name, one.dtype.str, one.shape) for name, one in arrays.items()]
        head = json.dumps({**note, "arrays": forms}).encode()
        total, pieces = xxhash.xxh64(), list[bytes | memoryview]([len(head).to_bytes(8, "little"), head])
        pieces += [np.ascontiguousarray(one).reshape(-1).view(np.uint8).data for one in arrays.values()]
        padded = [one for piece in pieces for one in (piece, bytes(-len(piece) % 8))]
        for one in padded:
            total.update(one)
        file.write(total.intdigest().to_bytes(8, "little"))
        file.writelines(padded)
        self._places.append(file.tell())

    def commit(self) -> CacheSource | None:
        """Finish, sync and rename the file at the end of a whole pass; None if writing failed."""
        self._do(self._complete, 0)
        self.abandon()
        return self._cache

    def _complete(self) -> None:
        self._shown = 0  # the last note holds all bad lines that are kept
        self.append(self._file, concat([]), self._new_entries())
        self._file.write(np.array(self._places, "<u8").data)
        self._file.write(_END.pack(len(self._places) - 1, _MARK))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        path = self._folder / _file_name(self._source, self._source.fingerprint())
        os.replace(self._path, path)  # not `whole_file`: the name is known only now, from the content
        self._cache = CacheSource(path, self._source, trusted=True)

    def abandon(self) -> None:
        """Stop and remove the partial file; does nothing after `commit`."""
        self._pool.shutdown(cancel_futures=True)
        if self._file is not None:
            with suppress(OSError):  # the disk may be full
                self._file.close()
            with suppress(OSError):  # the folder may be gone
                self._path.unlink(missing_ok=True)
            self._file = None


class CacheSource(Source):
    """A finished cache as a `Source`: the chunks, places and report of the source it was written from.

    If a chunk is damaged, the cache is removed and the pass continues from the same place with the text,
    provided that it can still be read.
    """

    keep_hash = True
    content: Sequence[Content] = ()
    """content of the data the cache was made from"""

    def __init__(self, path: Path, origin: TextSource, *, trusted: bool = False) -> None:
        super().__init__(origin.names)
        self.path, self._origin, self._threads = path, origin, default_threads()
        self._reader: CachedRows | None = CachedRows(path, Arenas(self._threads + 4), trusted)
        self.total_bytes, self.content = origin.total_bytes, origin.known()
        self.where, self.layout, self.marked = origin.where, origin.layout, origin.marked
        self.whole = _report(self._reader.last, Report())
        """the counts of a whole pass"""

    @property
    def origin(self) -> TextSource:
        """The files that the cache was made from."""
        return self._origin

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read (see `TextSource`); raises `DataError` at once.

        So nothing is left for `confirm`.
        """
        self._origin.expect(content, whole, now=True)

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """One pass, or the rest from `start` on (set `report` to its state there first)."""
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
                _discard(self.path, error)
        if not self._origin.rereadable:
            raise DataError(f"{self.path}: the cache is damaged, and standard input cannot be read again")
        self._origin.report = self.report
        self._origin.expect(self.content, whole=True)
        for chunk in self._origin.chunks(place):
            self.report, self.position_bytes = self._origin.report, self._origin.position_bytes
            yield chunk
        self.report = self._origin.report

    def _read(self, reader: CachedRows, start: StreamPosition | None) -> Iterator[tuple[Chunk, Note]]:
        """The chunks from the first on that does not begin before `start`."""
        first = 0
        if start is not None:
            places = range(reader.count)
            first = bisect_left(places, [*start], key=lambda k: reader.head(k)[0]["place"])
        waiting: deque[Future[tuple[Chunk, Note]]] = deque()
        with ThreadPoolExecutor(self._threads, "thresher-cache") as pool:
            try:
                for k in range(first, reader.count):
                    waiting.append(pool.submit(reader.chunk, k))
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
