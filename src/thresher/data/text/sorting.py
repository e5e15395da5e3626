"""Sorting rows in place and merging repeated ids.

Keys ascend in every row of a Chunk, so margins are summed in the same order for every format, and repeats are
found. Keys are hashes, so they come in random order, and comparing two of them is a branch that is
mispredicted half the time. In lines, a counting sort with as many buckets as keys puts them nearly in order,
and a final pass (`_settle`) does the rest: 5 ns per key; merging sorted runs took 32. In tables, for up to 64
features, each key's position is the number of smaller keys: eight keys are compared with one at a time, and
there are no branches. Equal keys leave a gap in the positions, and then the row is merged as in svmlight.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment, var-annotated"

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.data.text.words import (
    address,
    bit_length,
    load_float,
    load_word,
    rank_eight,
    store_float,
    store_word,
)
from thresher.engine.compile.jit import compiled_apart, scalar

_RUN = 16
BUCKETS = 1 << 12
"""Size of the table in which `merge_row` counts."""
FEW = 64
"""Rows of up to this many features are sorted by counting, for each key, the smaller keys."""
ROW_ROOM = FEW + 8
"""Entries that such a row takes, in whole vectors"""
_CROWD, _ONE = np.uint64(256), np.uint64(1)
_LARGEST_KEY = np.uint64(2**64 - 1)


def room_for_sorting(ranks: bool = True, long: bool = True) -> tuple[Any, ...]:
    """Scratch space for `ascending`: to sort by `ranks`, and rows of more than `FEW` features.

    What sorts without space is not compiled.
    """
    words = np.empty(BUCKETS, np.uint64)
    return words, np.empty(ROW_ROOM, np.float32) if ranks else None, words if long else None


@compiled_apart
def sort_row(keys, values, start, stop):
    """Sort the row [start, stop) by key, stably. Needs as much scratch space after `stop`."""
    for lo in range(start, stop, _RUN):
        for i in range(lo + 1, min(lo + _RUN, stop)):
            key, value, j = keys[i], values[i], i
            while j > lo and keys[j - 1] > key:
                keys[j], values[j] = keys[j - 1], values[j - 1]
                j -= 1
            keys[j], values[j] = key, value
    width = _RUN
    while width < stop - start:
        for lo in range(start, stop - width, 2 * width):  # merge two runs
            for k in range(lo, lo + width):  # the first from a copy after the row
                keys[stop + k - lo], values[stop + k - lo] = keys[k], values[k]
            i, j, k, end = stop, lo + width, lo, min(lo + 2 * width, stop)
            while i < stop + width:
                if j < end and keys[j] < keys[i]:
                    keys[k], values[k] = keys[j], values[j]
                    j += 1
                else:
                    keys[k], values[k] = keys[i], values[i]
                    i += 1
                k += 1
        width *= 2


@scalar
def add_up(keys, values, start, stop):
    """Add the values of equal keys in the sorted row: ``(new stop, whether all sums are finite)``."""
    last, finite = start, True
    for k in range(start + 1, stop):
        if keys[k] == keys[last]:
            values[last] += values[k]
            finite &= np.isfinite(values[last])
        else:
            last += 1
            keys[last], values[last] = keys[k], values[k]
    return last + 1, finite


@scalar
def _settle(keys, values, start, stop):
    """Sort the nearly sorted row after `stop` into [start, stop); returns how many keys are repeated.

    One key is held back and compared with the next, and the smaller is stored: this swaps neighbours
    without a branch that would be mispredicted.
    """
    waiting, wait_at, largest, repeats = load_word(keys, 8 * stop), stop, np.uint64(0), 0
    for k in range(start, stop - 1):
        at = k + 1 + stop - start
        key = load_word(keys, 8 * at)
        repeats += key == waiting
        smaller = np.int64(key < waiting)
        flip, turn = (key ^ waiting) & np.uint64(-smaller), (at ^ wait_at) & -smaller
        out, out_at = waiting ^ flip, wait_at ^ turn
        waiting, wait_at = key ^ flip, at ^ turn
        value = load_float(values, out_at)
        store_word(keys, k, out)
        store_float(values, k, value)
        if out <= largest:
            place = k  # in the sorted row
            while place > start and load_word(keys, 8 * (place - 1)) > out:
                store_word(keys, place, load_word(keys, 8 * (place - 1)))
                store_float(values, place, load_float(values, place - 1))
                place -= 1
            store_word(keys, place, out)
            store_float(values, place, value)
            repeats += place > start and load_word(keys, 8 * (place - 1)) == out
        largest = max(largest, out)
    store_word(keys, stop - 1, waiting)
    store_float(values, stop - 1, load_float(values, wait_at))
    return repeats


@scalar
def _spread(keys, values, start, stop, counts):
    """Bucket-sort the row [start, stop) at the addresses `keys` and `values`.

    Uses scratch space from `stop` on, and counts at address `counts`. Returns ``(whether it sorted, number
    of repeated keys)``: it does not sort if too many keys fall into one bucket.
    """
    low, differing = np.uint64(0), np.int64(64)
    if bit_length(load_word(keys, 8 * start) | load_word(keys, 8 * ((start + stop) >> 1))) < 63:  # no hashes
        low = high = load_word(keys, 8 * start)
        for k in range(start + 1, stop):
            key = load_word(keys, 8 * k)
            low, high = min(low, key), max(high, key)
        differing = bit_length(high - low)
    width = bit_length(np.uint64(stop - start))
    shift, buckets = np.uint64(max(differing - width, 0)), np.int64(1) << width
    for bucket in range(buckets):
        store_word(counts, bucket, np.uint64(0))
    for k in range(start, stop):
        bucket = np.int64((load_word(keys, 8 * k) - low) >> shift)
        store_word(counts, bucket, load_word(counts, 8 * bucket) + _ONE)
    place, crowd = np.uint64(stop), np.uint64(0)
    for bucket in range(buckets):
        count = load_word(counts, 8 * bucket)
        store_word(counts, bucket, place)
        place, crowd = place + count, max(crowd, count)
    if crowd > _CROWD:
        return False, 0
    for k in range(start, stop):
        key = load_word(keys, 8 * k)
        bucket = np.int64((key - low) >> shift)
        place = load_word(counts, 8 * bucket)
        store_word(counts, bucket, place + _ONE)
        store_word(keys, np.int64(place), key)
        store_float(values, np.int64(place), load_float(values, k))
    return True, _settle(keys, values, start, stop)


@scalar
def merge_row(keys, values, start, stop, counts):
    """Sort the row and add up repeated keys, in linear time if keys are spread evenly, as hashes are.

    Returns what `add_up` returns. `counts` is uint64 scratch of size `BUCKETS`; rows of more than half its
    size are merge-sorted. Needs as much scratch space after `stop`.
    """
    size = stop - start
    if size > _RUN and 2 * size <= counts.size:
        done, repeats = _spread(address(keys), address(values), start, stop, address(counts))
        if done and repeats == 0:
            return stop, True
        if done:
            return add_up(keys, values, start, stop)
    sort_row(keys, values, start, stop)
    return add_up(keys, values, start, stop)


@scalar
def _rank_row(keys, values, start, stop, room_keys, room_values):
    """`ascending` for at most `FEW` features."""
    count = stop - start
    words, floats, out, out_values = address(room_keys), address(room_values), address(keys), address(values)
    for i in range(count):
        store_word(words, i, load_word(out, 8 * (start + i)))
        store_float(floats, i, load_float(out_values, start + i))
    for i in range(count, (count + 7) & ~7):
        store_word(words, i, _LARGEST_KEY)
    for i in range(0, count, 8):
        rank_eight(words, count, i, words + 8 * ROW_ROOM)
    total = np.int64(0)
    for i in range(count):
        key, rank = load_word(words, 8 * i), np.int64(load_word(words, 8 * (ROW_ROOM + i)))
        store_word(out, start + rank, key)
        store_float(out_values, start + rank, load_float(floats, i))
        total += rank
    if 2 * total == count * (count - 1):
        return stop, True
    for i in range(count):
        keys[start + i], values[start + i] = room_keys[i], room_values[i]
    sort_row(keys, values, start, stop)
    return add_up(keys, values, start, stop)


@scalar
def ascending(keys, values, start, stop, room_keys, room_values, counts):
    """Sort the row [start, stop) and add up equal keys: ``(new stop, whether all sums are finite)``.

    Needs as much scratch space after `stop`; twice `ROW_ROOM` entries of `room_keys` and `ROW_ROOM` of
    `room_values`, or None to sort by `merge_row` alone; and `counts` for that, or None if no row has more
    than `FEW` entries.
    """
    if counts is not None:
        if room_values is None:
            return merge_row(keys, values, start, stop, counts)
        if stop - start > FEW:
            falls = 0
            for k in range(start + 1, stop):
                falls += keys[k] < keys[k - 1]
            if falls == 0:
                return add_up(keys, values, start, stop)
            return merge_row(keys, values, start, stop, counts)
    if room_values is not None:
        return _rank_row(keys, values, start, stop, room_keys, room_values)
    return stop, True
