"""Loops over records: finding whole ones, their rows as arrays, arrays as a body.

A record of one row takes them a fraction of a microsecond, and ten in Python. The layout of a record is that
of `records`; here it is a sequence of words of 8 bytes, which `words`, `halves` and `floats` are views of.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, assignment"

from __future__ import annotations

import numpy as np

from thresher.engine.compile.jit import kernel, scalar

HEAD_WORDS = 9
"""Of which the last is the hash"""
MARK = np.uint64(int.from_bytes(b"thR1", "little"))
NARROW, ONES, EVEN = 1, 2, 4
"""Flags: keys are u4; all values are 1; all importances are 1"""
PLACE, ROW, HASH = 0, 1, 2
"""Columns of the table of `scan`"""
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONE, _TWO, _THREE, _FOUR = (
    np.uint64(one) for one in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63)
)


@scalar
def _turn(word, by):
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@scalar
def _mixed(word):
    return _turn(word * _TWO, 31) * _ONE


@scalar
def _round(lane, word):
    return _turn(lane + word * _TWO, 31) * _ONE


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
    found = _turn(a, 1) + _turn(b, 7) + _turn(c, 12) + _turn(d, 18)
    for lane in (a, b, c, d):
        found = (found ^ _mixed(lane)) * _ONE + _FOUR
    found += np.uint64(8) * np.uint64(size + HEAD_WORDS - 1)
    for p in range(place, place + left):
        found = _turn(found ^ _mixed(words[p]), 27) * _ONE + _FOUR
    found = (found ^ (found >> np.uint64(33))) * _TWO
    found = (found ^ (found >> np.uint64(29))) * _THREE
    return found ^ (found >> _HALF)


@scalar
def _body_words(words, at):
    """The words of a body that the head at `at` announces; -1 if it is not the head of a record."""
    size, note, rows, nnz = words[at] >> _HALF, words[at + 1] & _LOW, words[at + 1] >> _HALF, words[at + 2]
    kind, flags = words[at + 7] & np.uint64(255), int((words[at + 7] >> np.uint64(8)) & np.uint64(255))
    targets, reserved = (words[at + 7] >> np.uint64(16)) & np.uint64(65535), words[at + 7] >> _HALF
    if (words[at] & _LOW) != MARK or kind < 1 or kind > 5 or reserved != 0 or nnz > _LOW:
        return -1
    halves = nnz * np.uint64(1 + (flags & NARROW == 0) + (flags & ONES == 0))
    halves += rows * (np.uint64(2 + (flags & EVEN == 0)) + targets)
    needed = (note + np.uint64(7)) // np.uint64(8) + (halves + np.uint64(1)) // np.uint64(2)
    return np.int64(needed) if np.uint64(8) * needed == size else -1


@kernel
def scan(words, row, before, table):
    """Find the whole records at the beginning, which continue a log after `row` rows and the hash `before`.

    Row k of `table` (n + 1, 3) is the place of record k in bytes, the rows before it and the hash of the one
    before it; that after the last says where it ends. Returns the number of records, n at most.
    """
    at, count = 0, 0
    table[0, PLACE], table[0, ROW], table[0, HASH] = 0, row, before
    while count + 1 < table.shape[0] and at + HEAD_WORDS <= words.size:
        size = _body_words(words, at)
        if size < 0 or at + HEAD_WORDS + size > words.size or words[at + 3] != row:
            break
        found = words[at + HEAD_WORDS - 1]
        if words[at + 6] != before or _hash(words, at, size, before) != found:
            break
        if words[at + 7] & np.uint64(255) == 1:
            row += words[at + 1] >> _HALF
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


@scalar
def _write(floats, at, numbers):
    """Copy numbers to a body; return whether all are 1."""
    ones = True
    for p in range(numbers.size):
        floats[at + p] = numbers[p]
        ones &= numbers[p] == np.float32(1)
    return ones


@kernel
def decode(places, words, halves, floats, indptr, keys, values, labels, weights, targets):
    """Write the rows of the records at `places` (in words) to arrays of the right lengths.

    Returns the first record whose counts do not fit, or -1.
    """
    row, first, width = 0, 0, targets.shape[1]
    indptr[0] = 0
    for k in range(places.size):
        at = places[k]
        note, rows, nnz = words[at + 1] & _LOW, np.int64(words[at + 1] >> _HALF), np.int64(words[at + 2])
        flags, outputs = words[at + 7] >> np.uint64(8), (words[at + 7] >> np.uint64(16)) & np.uint64(65535)
        place = 2 * (at + HEAD_WORDS + np.int64((note + np.uint64(7)) // np.uint64(8)))
        if flags & np.uint64(NARROW):
            for p in range(nnz):
                keys[first + p] = halves[place + p]
            place += nnz
        else:
            for p in range(nnz):
                keys[first + p] = words[place // 2 + p]
            place += 2 * nnz
        end = first
        for i in range(rows):
            end += np.int64(halves[place + i])
            indptr[row + i + 1] = end
        if end != first + nnz or outputs != width:
            return k
        place = _read(floats, place + rows, flags & np.uint64(ONES) != 0, values, first, nnz)
        place = _read(floats, place, False, labels, row, rows)
        place = _read(floats, place, flags & np.uint64(EVEN) != 0, weights, row, rows)
        for i in range(rows * width):
            targets[row + i // width, i % width] = floats[place + i]
        row, first = row + rows, end
    return -1


@kernel
def encode(indptr, keys, values, labels, weights, targets, words, halves, floats):
    """Write rows to a body of which there are three views: ``(halves written, flags)``."""
    nnz, rows, every = keys.size, labels.size, np.uint64(0)
    for p in range(nnz):
        every |= keys[p]
    narrow = every >> _HALF == 0
    for p in range(nnz):
        if narrow:
            halves[p] = keys[p]
        else:
            words[p] = keys[p]
    at = nnz if narrow else 2 * nnz
    for i in range(rows):
        halves[at + i] = indptr[i + 1] - indptr[i]
    at += rows
    ones = _write(floats, at, values)
    at += 0 if ones else nnz
    _write(floats, at, labels)
    at += rows
    even = _write(floats, at, weights)
    at += 0 if even else rows
    for i in range(targets.size):
        floats[at + i] = targets[i // targets.shape[1], i % targets.shape[1]]
    at += targets.size
    halves[at] = 0  # or left as it was by what is not stored
    return at + at % 2, narrow * NARROW + ones * ONES + even * EVEN
