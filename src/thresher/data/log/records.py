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
    kind       u1   `ROWS`, `KEPT`, `GONE` or `LABELS`
    flags      u1   1: keys are u4; 2: all values are 1; 4: all importances are 1; 8: rows have offsets;
                    16: values have rests
    targets    u2   labels per row, if there are several
    reserved   u4   0
    hash       u8   XXH64 of all this and the body, with `before` as its seed

The body is the note (JSON, padded to a multiple of 8 bytes), then keys, the number of values of each row
(u4), values, rests, labels, importances, offsets and targets (all f4).
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, assignment"

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat, read_only
from thresher.data.errors import DataError
from thresher.data.features.murmur import turn
from thresher.engine.compile.jit import kernel, scalar

HEAD_WORDS = 9
"""Of which the last is the hash"""
MARK = b"thR1"
_MARK_WORD = np.uint64(int.from_bytes(MARK, "little"))
NARROW, ONES, EVEN, SHIFTED, WIDE = 1, 2, 4, 8, 16
"""Flags: keys are u4; all values are 1; all importances are 1; rows have offsets; values have rests"""
PLACE, ROW, HASH = 0, 1, 2
"""Columns of the table of `scan`"""
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONE, _TWO, _THREE, _FOUR = (
    np.uint64(one) for one in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63)
)


@scalar
def _round(lane, word):
    return turn(lane + word * _TWO, 31) * _ONE


@scalar
def _hash(words, at, size, seed):
    """XXH64 of a record: its head, without the hash, and `size` words of body (Collet 2012)."""
    a, b, c, d = seed + _ONE + _TWO, seed + _TWO, seed, seed - _ONE
    place, left = at, size + HEAD_WORDS - 1
    while left >= 4:
        a, b = _round(a, words[place]), _round(b, words[place + 1])
        c, d = _round(c, words[place + 2]), _round(d, words[place + 3])
        left -= 4
        place += 4
        if place == at + HEAD_WORDS - 1:
            place += 1
    found = turn(a, 1) + turn(b, 7) + turn(c, 12) + turn(d, 18)
    for lane in (a, b, c, d):
        found = (found ^ _round(np.uint64(0), lane)) * _ONE + _FOUR
    found += np.uint64(8) * np.uint64(size + HEAD_WORDS - 1)
    for p in range(place, place + left):
        found = turn(found ^ _round(np.uint64(0), words[p]), 27) * _ONE + _FOUR
    found = (found ^ (found >> np.uint64(33))) * _TWO
    found = (found ^ (found >> np.uint64(29))) * _THREE
    return found ^ (found >> _HALF)


@kernel
def scan(words, row, before, table):
    """Find the whole records at the beginning, which continue a log after `row` rows and the hash `before`.

    Row k of `table` (n + 1, 3) is the place of record k in bytes, the rows before it and the hash of the one
    before it; that after the last says where it ends. Returns the number of records, n at most.
    """
    at, count = 0, 0
    table[0, PLACE], table[0, ROW], table[0, HASH] = 0, row, before
    while count + 1 < table.shape[0] and at + HEAD_WORDS <= words.size:
        note, rows, nnz = words[at + 1] & _LOW, words[at + 1] >> _HALF, words[at + 2]
        kind, flags = words[at + 7] & np.uint64(255), int((words[at + 7] >> np.uint64(8)) & np.uint64(255))
        targets = words[at + 7] >> np.uint64(16)
        if (words[at] & _LOW) != _MARK_WORD or kind < 1 or kind > 4 or targets >> np.uint64(16) or nnz > _LOW:
            break
        halves = nnz * np.uint64(1 + (flags & NARROW == 0) + (flags & ONES == 0) + (flags & WIDE != 0))
        halves += rows * (np.uint64(2 + (flags & EVEN == 0) + (flags & SHIFTED != 0)) + targets)
        needed = (note + np.uint64(7)) // np.uint64(8) + (halves + np.uint64(1)) // np.uint64(2)
        size, found = np.int64(needed), words[at + HEAD_WORDS - 1]
        if np.uint64(8) * needed != words[at] >> _HALF or at + HEAD_WORDS + size > words.size:
            break
        if words[at + 3] != row or words[at + 6] != before or _hash(words, at, size, before) != found:
            break
        if kind == 1:
            row += rows
        before = found
        at += HEAD_WORDS + size
        count += 1
        table[count, PLACE], table[count, ROW], table[count, HASH] = 8 * at, row, before
    return count


@scalar
def _read(floats, at, ones, out, first, count):
    """Copy numbers from a body, unless all are 1, which is not stored; return where they end."""
    for p in range(count):
        out[first + p] = np.float32(1) if ones else floats[at + p]
    return at if ones else at + count


@kernel
def decode(
    places, width, words, halves, floats, indptr, keys, values, rests, labels, weights, offsets, targets
):
    """Write the rows of the records at `places` (in words) to arrays of the right lengths.

    Those of `targets`, with `width` of them for each row, follow each other. Whether all counts fit.
    """
    row, first = 0, 0
    indptr[0] = 0
    for k in range(places.size):
        at = places[k]
        note, rows, nnz = words[at + 1] & _LOW, np.int64(words[at + 1] >> _HALF), np.int64(words[at + 2])
        flags, outputs = words[at + 7] >> np.uint64(8), (words[at + 7] >> np.uint64(16)) & np.uint64(65535)
        place = 2 * (at + HEAD_WORDS + np.int64((note + np.uint64(7)) // np.uint64(8)))
        narrow = flags & np.uint64(NARROW) != 0
        for p in range(nnz):
            keys[first + p] = np.uint64(halves[place + p]) if narrow else words[place // 2 + p]
        place += nnz if narrow else 2 * nnz
        end = first
        for i in range(rows):
            end += np.int64(halves[place + i])
            indptr[row + i + 1] = end
        shifted = flags & np.uint64(SHIFTED) != 0
        if end != first + nnz or outputs != width or shifted != (offsets.size > 0):
            return False
        place = _read(floats, place + rows, flags & np.uint64(ONES) != 0, values, first, nnz)
        place = _read(floats, place, False, rests, first, nnz * (flags & np.uint64(WIDE) != 0))
        place = _read(floats, place, False, labels, row, rows)
        place = _read(floats, place, flags & np.uint64(EVEN) != 0, weights, row, rows)
        place = _read(floats, place, False, offsets, row, rows * shifted)
        _read(floats, place, False, targets, row * width, rows * width)
        row, first = row + rows, end
    return True


_HEAD = struct.Struct("<4sIIIQQQQQBBHIQ")
HEAD = _HEAD.size
"""Bytes before the body"""
LARGEST = 1 << 30
"""Bytes of a body at most"""
ROWS, KEPT, GONE, LABELS = 1, 2, 3, 4
"""Kinds of records: rows to be learned; rows whose labels are still to come, with their ids; ids of such rows
that will never be learned; labels and importances of kept rows, which are learned
later."""
KINDS = {ROWS: "rows", KEPT: "kept", GONE: "gone", LABELS: "labels"}
_NONE = np.empty((0, 0), np.float32)
NOTHING = concat([])
"""A chunk without rows"""


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

    def hash_of_rows(self, body: Any) -> int:
        """A hash of the rows in its body."""
        return int(xxhash.xxh64_intdigest(memoryview(body)[self.note + -self.note % 8 :], seed=self.flags))


class PackedEntry(NamedTuple):
    """A record before it has a place in a log."""

    head: RecordHead
    body: bytes


def pack(kind: int, chunk: Chunk, said: Mapping[str, Any] = {}, time: int = 0) -> PackedEntry:
    """A record of this kind, made at a `time` in microseconds since 1970. What is `said` is its note."""
    note = json.dumps(said, separators=(",", ":")).encode() if said else b""
    optional = (chunk.rests, chunk.offsets, chunk.targets)
    rests, offsets, targets = (_NONE if one is None else one for one in optional)
    narrow = not np.count_nonzero(chunk.keys >> _HALF)
    ones, even = (not np.count_nonzero(one != 1) for one in (chunk.values, chunk.weights))
    flags = (
        narrow * NARROW + ones * ONES + even * EVEN + (offsets.size > 0) * SHIFTED + (rests.size > 0) * WIDE
    )
    keys, counts = chunk.keys.astype("<u4") if narrow else chunk.keys, chunk.indptr[1:] - chunk.indptr[:-1]
    values, weights = _NONE if ones else chunk.values, _NONE if even else chunk.weights
    arrays = (keys, counts.astype("<u4"), values, rests, chunk.labels, weights, offsets, targets)
    parts = [note, bytes(-len(note) % 8), *[one.tobytes() for one in arrays]]
    whole = b"".join([*parts, bytes(-sum(map(len, parts)) % 8)])
    if len(whole) > LARGEST:
        raise DataError(f"{len(chunk):,} rows are too many for one record: send fewer at a time")
    width, sizes = (
        targets.shape[1] if targets.ndim == 2 else 0,
        (len(whole), len(note), len(chunk), chunk.nnz),
    )
    return PackedEntry(RecordHead(*sizes, 0, time, 0, 0, kind, flags, width, 0, 0), whole)


def seal(one: PackedEntry, row: int, synced: int, before: int) -> tuple[bytes, int]:
    """A record as it is written, and its hash."""
    placed = one.head._replace(row=row, synced=synced, before=before)
    head = _HEAD.pack(MARK, *placed)[:-8]  # without the hash
    total = xxhash.xxh64(head, seed=before)
    total.update(one.body)
    return b"".join((head, total.intdigest().to_bytes(8, "little"), one.body)), total.intdigest()


def head_at(buffer: Any, at: int) -> RecordHead | None:
    """The head at an offset of a buffer; None if there is none. Whether its counts fit, `scan` says."""
    if len(buffer) - at < HEAD:
        return None
    mark, *numbers = _HEAD.unpack_from(buffer, at)
    head = RecordHead(*numbers)
    return head if mark == MARK and head.size <= LARGEST and head.kind in KINDS else None


def rows_of(words: NDArray[np.uint64], places: NDArray[np.int64]) -> Chunk:
    """The rows of whole records at some places, in words of a buffer. `DataError` if arrays are not valid.

    Nothing checks that keys ascend, and numbers are finite: see `Chunk.check`.
    """
    rows = int((words[places + 1] >> np.uint64(32)).sum())
    nnz = int(words[places + 2].sum())
    width = int(words[places[0] + 7] >> np.uint64(16)) & 0xFFFF if len(places) else 0
    shifted = len(places) > 0 and int(words[places[0] + 7]) >> 8 & SHIFTED > 0
    wide = (words[places + 7] >> np.uint64(8) & np.uint64(WIDE)).any()
    indptr, keys = np.empty(rows + 1, np.int64), np.empty(nnz, np.uint64)
    values, labels, weights = (np.empty(count, np.float32) for count in (nnz, rows, rows))
    offsets, targets = np.empty(rows * shifted, np.float32), np.empty((rows, width), np.float32)
    rests = np.zeros(nnz * wide, np.float32)
    views = words, words.view("<u4"), words.view("<f4")
    arrays = (indptr, keys, values, rests, labels, weights, offsets, targets.reshape(-1))
    if not decode(read_only(places), width, *views, *arrays):
        raise DataError("a record does not have as many values, or labels for each row, as it should")
    chunk = Chunk(indptr, keys, values, labels, weights, rests=rests if wide else None)
    return replace(chunk, targets=targets if width else None, offsets=offsets if shifted else None)
