"""One cache file: chunks as record batches of an Arrow IPC file.

A batch has the columns `features` (large_list<struct<key, value>>: the list offsets are the chunk's `indptr`,
the two children its `keys` and `values`), `label` and `weight`, and with several outputs `targets`
(fixed_size_list<float>[outputs]), and if rows are grouped `group` (uint64). Its metadata are JSON: place,
counts so far, and a hash of all its numbers. A last batch without rows holds the final report; a file without
it is incomplete. Keys are uint32 while all of them fit.
"""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.sources.reader import Arenas

VERSION = 3
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
    number = pa.field("item", pa.float32(), False)
    fields = {
        "features": pa.large_list(pa.field("item", feature, False)),
        "label": pa.float32(),
        "weight": pa.float32(),
        **({"targets": pa.list_(number, outputs)} if outputs else {}),
        **({"group": pa.uint64()} if grouped else {}),
    }
    known = {"thresher-cache": str(VERSION)}
    return pa.schema([pa.field(name, kind, False) for name, kind in fields.items()], metadata=known)


def _hash(arrays: list[NDArray[Any]]) -> str:
    total = xxhash.xxh64()
    for array in arrays:
        total.update(array.data)
    return total.hexdigest()


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
        indptr, keys, values, *columns = arrays
        form = schema(self._key_type, self._outputs, self._grouped)
        kinds = form.types[1:]
        feature = form.field(0).type.value_field.type
        pairs = pa.StructArray.from_arrays([pa.array(keys), pa.array(values)], fields=list(feature))
        lists = pa.LargeListArray.from_arrays(pa.array(indptr), pairs, type=form.field(0).type)
        found = [
            pa.array(one)
            if one.ndim == 1
            else pa.FixedSizeListArray.from_arrays(pa.array(one.ravel()), type=kind)
            for one, kind in zip(columns, kinds, strict=True)
        ]
        known = {**note, "hash": _hash(arrays)}
        batch = pa.record_batch([lists, *found], schema=form)
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
        targets = nothing.reshape(0, self._outputs) if self._outputs else None
        keys = np.zeros(0, np.uint64)
        self.write(Chunk(np.zeros(1, np.int64), keys, nothing, nothing, nothing, targets=targets), note)
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
        self._path, self._dropped = path, 0
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            buffer = pa.py_buffer(self._map)
            self._base: int = buffer.address
            self._file = pa.ipc.open_file(buffer)
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException, ValueError) as error:
            raise DamagedCacheError(f"{path}: {error}") from error
        self.count = self._file.num_record_batches - 1
        self.last = self.note(self.count)
        if self.last.get("end") is not True:
            raise DamagedCacheError(f"{path}: incomplete")
        self._checked = bytearray([trusted] * self.count)

    def _batch(self, k: int) -> tuple[list[NDArray[Any]], bool, Note]:
        """The arrays of a batch, whether groups are the last of them, and its metadata."""
        try:
            batch, extra = self._file.get_batch_with_custom_metadata(k)
            note = json.loads(extra[_NOTE])
            if not isinstance(note, dict):
                raise ValueError("the batch has no metadata")
            return _arrays(batch), "group" in batch.schema.names, note
        except (OSError, pa.ArrowException, ValueError, KeyError, IndexError) as error:
            raise DamagedCacheError(f"{self._path}: {error}") from error

    def note(self, k: int) -> Note:
        """The metadata of chunk `k`."""
        return self._batch(k)[2]

    def chunk(self, k: int, arenas: Arenas) -> tuple[Chunk, Note]:
        """Chunk `k`, checked against its hash when first read.

        Its arrays are views of the map, except that 32-bit keys are widened into an arena.
        """
        arrays, grouped, note = self._batch(k)
        if not self._checked[k] and _hash(arrays) != note.get("hash"):
            raise DamagedCacheError(f"chunk {k} has changed")
        self._checked[k] = True
        indptr, keys, values, labels, weights, *more = arrays
        groups = more.pop() if grouped else None
        targets = more[0] if more else None
        # unmap pages well before, so that they do not count as memory of this process: they stay in the
        # system's page cache, and a view still in use maps them again
        offset = labels.__array_interface__["data"][0] - self._base
        if not 0 <= offset - self._dropped <= 2 * _WINDOW:
            end = max(offset - _WINDOW, 0) // mmap.PAGESIZE * mmap.PAGESIZE
            begin, self._dropped = self._dropped, end
            if begin < end and hasattr(mmap, "MADV_DONTNEED"):
                self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)
        if keys.dtype != np.uint64:
            wide = arenas.columns(0, len(keys)).keys
            wide[:] = keys
            keys = wide
        place, after = (StreamPosition(*note[name]) if note[name] else None for name in ("place", "after"))
        return Chunk(indptr, keys, values, labels, weights, None, place, after, targets, groups), note
