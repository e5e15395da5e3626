"""A record of a log: rows or a note about rows, checked by a hash that covers all records before it.

A record has a head of 72 bytes, all numbers little-endian, then its body, padded to a multiple of 8 bytes::

    mark       4s   "thR1"
    size       u4   bytes of the body
    note       u4   bytes of the note
    rows       u4
    nnz        u8   stored values of the rows
    row        u8   rows to be learned in all records before this one
    time       u8   microseconds since 1970 at which it was made
    synced     u8   offset up to which the log was on disk when it was written
    before     u8   hash of the record before it, of the head of the log for the first
    kind       u1   `ROWS`, `KEPT`, `GONE` or `PROMOTED`
    flags      u1   1: keys are u4; 2: all values are 1; 4: all importances are 1
    targets    u2   labels per row, if there are several
    reserved   u4   0
    hash       u8   XXH64 of all this and the body, with `before` as its seed

The body is the note (JSON, padded to a multiple of 8 bytes), then keys, the number of values of each row
(u4), values, labels, importances and targets (all f4).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.errors import DataError

MARK = b"thR1"
_HEAD = struct.Struct("<4sIIIQQQQQBBHI")
_HASH = struct.Struct("<Q")
HEAD = _HEAD.size + _HASH.size
"""Bytes before the body"""
LARGEST = 1 << 30
"""Bytes of a body at most"""
ROWS, KEPT, GONE, PROMOTED = 1, 2, 3, 4
"""Kinds of records: rows to be learned; rows whose labels are still to come, with their ids; ids of such rows
that will never be learned; another model takes over."""
KINDS = {ROWS: "rows", KEPT: "kept", GONE: "gone", PROMOTED: "promoted"}
_NARROW, _ONES, _EVEN = 1, 2, 4
NOTHING = concat([])
"""A chunk without rows"""


class LogEntry(NamedTuple):
    """What is to be recorded."""

    kind: int
    chunk: Chunk = NOTHING
    note: Mapping[str, Any] = {}
    """in JSON: `key`, which a client gave to recognise it; `ids` of its rows"""
    time: int = 0
    """microseconds since 1970"""


class RecordHead(NamedTuple):
    """The head of a record, without its mark."""

    size: int
    note: int
    rows: int
    nnz: int
    row: int
    time: int
    synced: int
    before: int
    kind: int
    flags: int
    targets: int
    reserved: int
    hash: int

    @property
    def end(self) -> int:
        """The length of the whole record."""
        return HEAD + self.size

    @property
    def last(self) -> int:
        """Rows to be learned up to its end."""
        return self.row + (self.rows if self.kind == ROWS else 0)


class PackedEntry(NamedTuple):
    """A body, and what its head says of it."""

    body: bytes
    kind: int
    flags: int
    targets: int
    rows: int
    nnz: int
    note: int
    time: int


def packed(entry: LogEntry) -> PackedEntry:
    """An entry as bytes."""
    chunk = entry.chunk
    note = json.dumps(entry.note, separators=(",", ":"), ensure_ascii=False).encode() if entry.note else b""
    narrow = not chunk.nnz or int(chunk.keys.max()) >> 32 == 0
    ones, even = bool((chunk.values == 1).all()), bool((chunk.weights == 1).all())
    targets = chunk.targets
    parts: list[Any] = [note, bytes(-len(note) % 8)]
    parts.append(chunk.keys.astype("<u4" if narrow else "<u8").tobytes())
    parts.append(np.diff(chunk.indptr).astype("<u4").tobytes())
    parts += [] if ones else [chunk.values.astype("<f4").tobytes()]
    parts.append(chunk.labels.astype("<f4").tobytes())
    parts += [] if even else [chunk.weights.astype("<f4").tobytes()]
    parts += [] if targets is None else [targets.astype("<f4").tobytes()]
    body = b"".join(parts)
    body += bytes(-len(body) % 8)
    flags = narrow * _NARROW + ones * _ONES + even * _EVEN
    width = 0 if targets is None else targets.shape[1]
    return PackedEntry(body, entry.kind, flags, width, len(chunk), chunk.nnz, len(note), entry.time)


def sealed(record: PackedEntry, row: int, synced: int, before: int) -> tuple[bytes, int]:
    """A record as it is written, and its hash."""
    one = record
    numbers = (len(one.body), one.note, one.rows, one.nnz, row, one.time, synced, before)
    head = _HEAD.pack(MARK, *numbers, one.kind, one.flags, one.targets, 0)
    found = _hash(head, one.body, before)
    return b"".join((head, _HASH.pack(found), one.body)), found


def _hash(head: Any, body: Any, before: int) -> int:
    total = xxhash.xxh64(head, seed=before)
    total.update(body)
    return total.intdigest()


def head_at(buffer: Any, at: int) -> RecordHead | None:
    """The head at an offset of a buffer; None if there is none, whole and plausible."""
    if len(buffer) - at < HEAD:
        return None
    mark, *numbers = _HEAD.unpack_from(buffer, at)
    head = RecordHead(*numbers, *_HASH.unpack_from(buffer, at + _HEAD.size))
    fits = mark == MARK and head.size <= LARGEST and head.kind in KINDS and not head.reserved
    return head if fits and head.size == _size(head) else None


def _size(head: RecordHead) -> int:
    """How long the body must be."""
    size = head.note + -head.note % 8 + head.nnz * (4 if head.flags & _NARROW else 8) + 4 * head.rows
    size += 0 if head.flags & _ONES else 4 * head.nnz
    size += 4 * head.rows * (2 - bool(head.flags & _EVEN) + head.targets)
    return size + -size % 8


def is_whole(buffer: Any, at: int, head: RecordHead) -> bool:
    """Whether the record with this head is in the buffer, and unchanged since it was written."""
    view = memoryview(buffer)[at : at + head.end]
    return len(view) == head.end and _hash(view[: _HEAD.size], view[HEAD:], head.before) == head.hash


def note_of(buffer: Any, at: int, head: RecordHead) -> dict[str, Any]:
    """The note of a whole record. `DataError` if it is not one."""
    text = bytes(memoryview(buffer)[at + HEAD : at + HEAD + head.note])
    try:
        found = dict(json.loads(text)) if text else {}
        ids, texts = found.get("ids", []), [found.get(name, "") for name in ("key", "model")]
        fits = isinstance(ids, list) and all(isinstance(one, str) for one in [*ids, *texts])
    except (ValueError, TypeError, RecursionError):
        fits = False
    if not fits or (head.kind == PROMOTED and "model" not in found):
        raise DataError("the note of a record is not what this version writes")
    return found


def chunk_of(buffer: Any, at: int, head: RecordHead) -> Chunk:
    """The rows of a whole record; their arrays may be views of the buffer. `DataError` if they are not valid.

    Nothing checks that keys ascend, and numbers are finite: see `Chunk.check`.
    """
    place = at + HEAD + head.note + -head.note % 8

    def taken(kind: str, count: int) -> NDArray[Any]:
        nonlocal place
        array = np.frombuffer(buffer, kind, count, place)
        place += array.nbytes
        return array

    keys = taken("<u4", head.nnz).astype(np.uint64) if head.flags & _NARROW else taken("<u8", head.nnz)
    indptr = np.zeros(head.rows + 1, np.int64)
    np.cumsum(taken("<u4", head.rows), out=indptr[1:])
    values = np.ones(head.nnz, np.float32) if head.flags & _ONES else taken("<f4", head.nnz)
    labels = taken("<f4", head.rows)
    weights = np.ones(head.rows, np.float32) if head.flags & _EVEN else taken("<f4", head.rows)
    cells = taken("<f4", head.rows * head.targets).reshape(head.rows, head.targets) if head.targets else None
    chunk = Chunk(indptr, keys, values, labels, weights, targets=cells)
    chunk.check_arrays()
    return chunk
