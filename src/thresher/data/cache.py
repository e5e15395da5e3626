"""The binary cache for later passes: the chunks of a source, in files that can be mapped into memory.

A cache file is named after the content of the data and the options that affect parsing. So renaming the
data files keeps the cache valid, and changed data never match it. Cache files are in
``$THRESHER_CACHE_DIR``, the user's cache folder or a folder you give; you may remove them at any time.

One cache file: chunks as record batches of an Arrow IPC file.

A batch has the columns `features` (large_list<struct<key, value>>: the list offsets are the chunk's `indptr`,
the two children its `keys` and `values`), `label` and `weight`, and with several outputs `targets`
(fixed_size_list<float>[outputs]), and if rows are grouped `group` (uint64). Its metadata are JSON: place,
counts so far, and a hash of all its numbers. A last batch without rows holds the final report; a file without
it is incomplete. Keys are uint32 while all of them fit.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import queue
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, Place
from thresher.data.errors import DataError
from thresher.data.files.content import data_cache_folder, trusted_folder
from thresher.data.files.xxh64 import Hash64
from thresher.data.report import Report
from thresher.data.sources.reader import Arenas
from thresher.engine.compile.codecache import CacheWarning as CacheWarning
from thresher.engine.compile.codecache import private_folder
from thresher.options.messages import warn_user

if TYPE_CHECKING:
    from thresher.data.files.content import Content
    from thresher.data.sources.text import TextSource


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
        if _OURS.fullmatch(path.name):
            try:
                status = path.stat()
            except OSError:
                continue
            entries.append(CacheEntry(path, status.st_size, status.st_mtime))
    return sorted(entries, key=lambda entry: -entry.modified)


def clear_cache(folder: str | os.PathLike[str] | None = None) -> tuple[int, int]:
    """Remove every cache file; returns ``(files, bytes)`` removed. Files in use elsewhere may remain."""
    files = size = 0
    for entry in cache_entries(folder):
        if _remove(entry.path):
            files, size = files + 1, size + entry.bytes
    _remove(data_cache_folder(folder) / "contents.json")
    return files, size


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _file_name(source: TextSource, fingerprint: str) -> str:

    size = sum(int(part.partition(".")[2], 16) for part in fingerprint.split("-"))
    words = f"{VERSION}\n{source.identity}\n{fingerprint}"
    return f"{size:x}-{hashlib.sha256(words.encode()).hexdigest()[:32]}.arrow"


def open_cache(source: TextSource, folder: str | os.PathLike[str] | None = None) -> CacheSource | None:
    """The valid cache of what `source` yields, or None.

    The data are hashed only if a cache for data of the same size exists and their hash is not known yet.
    A damaged cache is removed. A cache in a folder that others can write to is ignored.
    """
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
        """Counts so far, and the bad lines since the last chunk."""
        report = self._source.report.as_dict()
        bad = report.pop("first_bad")
        news, self._shown = bad[self._shown :], len(bad)
        return {"counts": report, "bad": news}

    def _work(self) -> None:

        try:
            self._folder = private_folder(data_cache_folder(self._given))
            self._path = self._folder / f"{os.getpid()}-{secrets.token_hex(8)}.partial"
            for entry in cache_entries(self._folder):
                if entry.path.suffix != ".arrow" and time.time() - entry.modified > _STALE:
                    _remove(entry.path)
            self._writer = BatchWriter(self._path, self._source.outputs, self._source.has_groups)
        except Exception as error:  # noqa: BLE001 no error of the cache may stop training
            self._error = error
        while (job := self._jobs.get()) is not None:
            if self._error is None and self._writer is not None:
                try:
                    self._writer.write(*job)
                except Exception as error:  # noqa: BLE001 likewise
                    self._error = error

    def commit(self) -> CacheSource | None:
        """Finish and rename the file at the end of a whole pass; None if writing failed."""
        self._stop()
        if self._error is None and self._writer is not None:
            try:
                self._shown = 0  # the last note holds all bad lines that are kept
                self._writer.finish({"end": True, "place": None, "after": None, **self._new_entries()})
                path = self._folder / _file_name(self._source, self._source.fingerprint())
                os.replace(self._path, path)
                return CacheSource(path, self._source, trusted=True)
            except Exception as error:  # noqa: BLE001 likewise
                self._error = error
        self._give_up()
        self._warn()
        return None

    def abandon(self) -> None:
        """Stop and remove the partial file; does nothing after `commit`."""
        self._stop()
        self._give_up()

    def _stop(self) -> None:
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def _give_up(self) -> None:
        if self._writer is not None:
            with suppress(OSError):  # the folder may be gone
                self._writer.abandon()
            self._writer = None

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warn_user(f"no cache was written: {self._error}", CacheWarning)


class CacheSource:
    """A finished cache as a `Source`: the chunks, places and report of the source it was written from.

    If a chunk is damaged, the cache is removed and the pass continues from the same place with the text,
    provided that it can still be read.
    """

    def __init__(
        self, path: Path, origin: TextSource, threads: int | None = None, *, trusted: bool = False
    ) -> None:

        from thresher.data.sources.reader import Arenas, default_threads

        self.path = path
        self._reader: CachedBatches | None = CachedBatches(path, trusted)
        self._origin = origin
        self._threads = threads or default_threads()
        self._arenas = Arenas(self._threads + 4)
        self.names = origin.names
        self.total_bytes = origin.total_bytes
        self.position_bytes = 0
        self.report = Report()
        self.rereadable = True
        self.identity = origin.identity
        self.where, self.layout = origin.where, origin.layout
        self.keep_hash = True
        self.content: Sequence[Content] = origin.known()
        """content of the data the cache was made from"""
        self.whole = _report(self._reader.last, Report())
        """the counts of a whole pass"""

    def fingerprint(self) -> str:
        """The fingerprint of the data the cache was made from."""
        return self._origin.fingerprint()

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read (see `TextSource`); raises `DataError` at once."""
        self._origin.expect(content, whole, now=True)

    def confirm(self) -> None:
        """Does nothing: `expect` has checked everything."""

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
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
                _discarded(self.path, error)
        yield from self._text(place)

    def _read(self, reader: CachedBatches, start: Place | None) -> Iterator[tuple[Chunk, Note]]:
        first = 0 if start is None else _position(reader, start)
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

    def _text(self, place: Place | None) -> Iterator[Chunk]:
        if not self._origin.rereadable:
            raise DataError(f"{self.path}: the cache is damaged, and standard input cannot be read again")
        self._origin.report = self.report
        self._origin.expect(self.content, whole=True)
        for chunk in self._origin.chunks(place):
            self.report, self.position_bytes = self._origin.report, self._origin.position_bytes
            yield chunk
        self.report = self._origin.report


def _position(reader: CachedBatches, start: Place) -> int:
    """Index of the first chunk that does not begin before `start`."""
    lo, hi = 0, reader.count
    while lo < hi:
        middle = (lo + hi) // 2
        if tuple(reader.note(middle)["place"]) < start:
            lo = middle + 1
        else:
            hi = middle
    return lo


def _report(note: Note, before: Report) -> Report:
    """The report after the chunk of `note`, given the report before it."""
    report = Report.from_dict({**note["counts"], "first_bad": note["bad"]})
    report.first_bad = [*before.first_bad, *report.first_bad]
    return report


VERSION = 2
"""Version of the file layout and of the parsers; caches of other versions are not found."""

Note = dict[str, Any]
"""Metadata of a batch."""

_NOTE = b"thresher"
_LARGEST_NARROW = 2**32 - 1
_WINDOW = 16 << 20
"""Bytes before the current chunk that stay mapped."""


class DamagedCacheError(Exception):
    """A cache file is incomplete or has changed since it was written."""


def schema(key_type: Any, outputs: int = 0, grouped: bool = False) -> Any:
    """The Arrow schema of a file with keys of `key_type` and `outputs` targets per row."""
    feature = pa.struct([pa.field("key", key_type, False), pa.field("value", pa.float32(), False)])
    return pa.schema(
        [
            pa.field("features", pa.large_list(pa.field("item", feature, False)), False),
            pa.field("label", pa.float32(), False),
            pa.field("weight", pa.float32(), False),
            *([pa.field("targets", _cells(outputs), False)] if outputs else []),
            *([pa.field("group", pa.uint64(), False)] if grouped else []),
        ],
        metadata={"thresher-cache": str(VERSION)},
    )


def _cells(outputs: int) -> Any:
    return pa.list_(pa.field("item", pa.float32(), False), outputs)


def _hash(arrays: list[NDArray[Any]]) -> str:
    total = Hash64()
    for array in arrays:
        total.update(array)
    return f"{total.digest():016x}"


def _arrays(batch: Any) -> list[NDArray[Any]]:
    """indptr, keys, values, labels, weights and any targets and groups of a batch, as views of its memory."""
    lists = batch.column(0)
    pairs = lists.values
    columns = [lists.offsets, pairs.field(0), pairs.field(1), batch.column(1), batch.column(2)]
    arrays = [column.to_numpy(zero_copy_only=True) for column in columns]
    if "targets" in batch.schema.names:
        targets = batch.column("targets")
        cells = targets.flatten().to_numpy(zero_copy_only=True)
        arrays.append(cells.reshape(len(targets), targets.type.list_size))
    if "group" in batch.schema.names:
        arrays.append(batch.column("group").to_numpy(zero_copy_only=True))
    return arrays


class BatchWriter:
    """Writes chunks to `path`. Every method raises `OSError` if the disk is full or failing."""

    def __init__(self, path: Path, outputs: int = 0, grouped: bool = False) -> None:
        """`outputs`: targets per row, 0 for chunks without targets; `grouped`: whether rows have groups."""
        self._path, self._outputs, self._grouped = path, outputs, grouped
        self._key_type = pa.uint32()
        self._open(path)

    def _open(self, path: Path) -> None:
        self._sink = open_sink(path)
        self._writer = pa.ipc.new_file(self._sink, schema(self._key_type, self._outputs, self._grouped))

    def write(self, chunk: Chunk, note: Note) -> None:
        """Append one chunk and its metadata."""
        keys: NDArray[Any] = chunk.keys
        if self._key_type == pa.uint32():
            if chunk.nnz and int(keys.max()) > _LARGEST_NARROW:
                self._widen()
            else:
                keys = keys.astype(np.uint32)
        more: list[NDArray[Any]] = [] if chunk.targets is None else [chunk.targets]
        if self._grouped:
            more.append(np.zeros(len(chunk), np.uint64) if chunk.groups is None else chunk.groups)
        self._append([chunk.indptr, keys, chunk.values, chunk.labels, chunk.weights, *more], note)

    def _append(self, arrays: list[NDArray[Any]], note: Note) -> None:
        indptr, keys, values, labels, weights, *more = arrays
        form = schema(self._key_type, self._outputs, self._grouped)
        groups = [pa.array(more[-1])] if self._grouped else []
        feature = form.field(0).type.value_field.type
        pairs = pa.StructArray.from_arrays([pa.array(keys), pa.array(values)], fields=list(feature))
        lists = pa.LargeListArray.from_arrays(pa.array(indptr), pairs, type=form.field(0).type)
        cells = [
            pa.FixedSizeListArray.from_arrays(pa.array(t.ravel()), type=_cells(self._outputs))
            for t in more[: len(more) - self._grouped]
        ]
        batch = pa.record_batch([lists, pa.array(labels), pa.array(weights), *cells, *groups], schema=form)
        known = {**note, "hash": _hash(arrays)}
        self._writer.write_batch(batch, custom_metadata={_NOTE: json.dumps(known).encode()})

    def _widen(self) -> None:
        """Rewrite the batches so far with 64-bit keys, when a key first exceeds 32 bits."""
        self._close()
        before = self._path.with_suffix(".narrow")
        os.replace(self._path, before)
        self._key_type = pa.uint64()
        self._open(self._path)
        try:
            old = pa.ipc.open_file(pa.memory_map(str(before)))
            for k in range(old.num_record_batches):
                batch, extra = old.get_batch_with_custom_metadata(k)
                indptr, keys, *others = _arrays(batch)
                self._append([indptr, keys.astype(np.uint64), *others], json.loads(extra[_NOTE]))
        finally:
            before.unlink(missing_ok=True)

    def finish(self, note: Note) -> None:
        """Append the last batch and sync the file to disk."""
        nothing = np.zeros(0, np.float32)
        keys = np.zeros(0, np.uint32 if self._key_type == pa.uint32() else np.uint64)
        more: list[NDArray[Any]] = [nothing] if self._outputs else []
        more += [np.zeros(0, np.uint64)] if self._grouped else []
        self._append([np.zeros(1, np.int64), keys, nothing, nothing, nothing, *more], note)
        self._close()
        with open(self._path, "rb") as file:
            os.fsync(file.fileno())

    def _close(self) -> None:
        self._writer.close()
        self._sink.close()

    def abandon(self) -> None:
        """Close and remove the file."""
        try:
            self._close()
        except (OSError, pa.ArrowException):
            self._sink.close()
        self._path.unlink(missing_ok=True)


def open_sink(path: Path) -> Any:
    """Open `path` for writing."""
    return pa.OSFile(str(path), "w")


class CachedBatches:
    """Reads a cache file by memory map. Raises `DamagedCacheError` if it is incomplete or has changed."""

    def __init__(self, path: Path, trusted: bool = False) -> None:
        """`trusted`: do not check the chunks, since this process has just written the file.

        FileNotFoundError if there is none.
        """
        self._dropped = 0
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            buffer = pa.py_buffer(self._map)
            self._base: int = buffer.address
            self._file = pa.ipc.open_file(buffer)
            self.count = self._file.num_record_batches - 1
            self.last: Note = self._batch(self.count)[1]
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException, ValueError, KeyError, IndexError) as error:
            raise DamagedCacheError(f"{path}: {error}") from error
        if self.last.get("end") is not True:
            raise DamagedCacheError(f"{path}: incomplete")
        self._checked = bytearray([trusted] * self.count)

    def _batch(self, k: int) -> tuple[Any, Note]:
        batch, extra = self._file.get_batch_with_custom_metadata(k)
        note = json.loads(extra[_NOTE])
        if not isinstance(note, dict):
            raise ValueError("the batch has no metadata")
        return batch, note

    def note(self, k: int) -> Note:
        """The metadata of chunk `k`."""
        try:
            return self._batch(k)[1]
        except (OSError, pa.ArrowException, ValueError, KeyError) as error:
            raise DamagedCacheError(str(error)) from error

    def chunk(self, k: int, arenas: Arenas) -> tuple[Chunk, Note]:
        """Chunk `k`, checked against its hash when first read.

        Its arrays are views of the map, except that 32-bit keys are widened into an arena.
        """
        try:
            batch, note = self._batch(k)
            arrays = _arrays(batch)
        except (OSError, pa.ArrowException, ValueError, KeyError) as error:
            raise DamagedCacheError(str(error)) from error
        if not self._checked[k] and _hash(arrays) != note.get("hash"):
            raise DamagedCacheError(f"chunk {k} has changed")
        self._checked[k] = True
        indptr, keys, values, labels, weights, *more = arrays
        groups = more.pop() if "group" in batch.schema.names else None
        targets = more[0] if more else None
        self._unmap_before(labels.__array_interface__["data"][0] - self._base)
        if keys.dtype != np.uint64:
            wide = arenas.columns(0, len(keys)).keys
            wide[:] = keys
            keys = wide
        place, after = (Place(*note[name]) if note[name] else None for name in ("place", "after"))
        return Chunk(indptr, keys, values, labels, weights, None, place, after, targets, groups), note

    def _unmap_before(self, offset: int) -> None:
        """Unmap pages well before `offset`, so that they do not count as memory of this process.

        They stay in the system's page cache; a view still in use maps them again.
        """
        if not 0 <= offset - self._dropped <= 2 * _WINDOW:
            end = max(offset - _WINDOW, 0) // mmap.PAGESIZE * mmap.PAGESIZE
            begin, self._dropped = self._dropped, end
            if begin < end and hasattr(mmap, "MADV_DONTNEED"):
                self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)
