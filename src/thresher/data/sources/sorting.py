"""Rows whose ids are out of order or repeated, put right in place."""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, assignment"

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

_RUN = 16
_CROWD = 1 << 10
"""Keys with equal upper bits that are still sorted by insertion."""


@register_jitable
def _merge_runs(keys, values, a, b, c, room):
    """Merge the sorted runs [a, b) and [b, c), equal keys in order, by way of the places from `room` on."""
    for k in range(b - a):
        keys[room + k] = keys[a + k]
        values[room + k] = values[a + k]
    i, stop, j, k = room, room + b - a, b, a
    while i < stop:
        if j < c and keys[j] < keys[i]:
            keys[k], values[k] = keys[j], values[j]
            j += 1
        else:
            keys[k], values[k] = keys[i], values[i]
            i += 1
        k += 1


@register_jitable
def _insert(keys, values, start, stop):
    """Sort [start, stop) by insertion: quick where nearly all is in order, or little."""
    for i in range(start + 1, stop):
        key, value, j = keys[i], values[i], i
        while j > start and keys[j - 1] > key:
            keys[j], values[j] = keys[j - 1], values[j - 1]
            j -= 1
        keys[j], values[j] = key, value


@register_jitable
def sort_row(keys, values, start, stop):
    """Sort the row [start, stop) by key, equal keys in order. Needs as much room behind `stop`."""
    for lo in range(start, stop, _RUN):
        _insert(keys, values, lo, min(lo + _RUN, stop))
    width = _RUN
    while width < stop - start:
        for lo in range(start, stop - width, 2 * width):
            _merge_runs(keys, values, lo, lo + width, min(lo + 2 * width, stop), stop)
        width *= 2


@register_jitable
def sort_hashed(keys, values, start, stop, counts):
    """`sort_row` for hashes, whose upper bits spread: one round by these, then insertion.

    `counts` (int64, any size from 2 on) is scratch. Where many upper bits are equal all the same (repeats, or
    names made to collide), this is `sort_row`.
    """
    size, shift = stop - start, 64
    buckets = 1
    while 2 * buckets <= counts.size and buckets < size:
        buckets, shift = 2 * buckets, shift - 1
    if buckets == 1:
        return
    counts[:buckets] = 0
    for k in range(start, stop):
        counts[np.int64(keys[k] >> np.uint64(shift))] += 1
    if counts[:buckets].max() > _CROWD:
        sort_row(keys, values, start, stop)
        return
    for k in range(start, stop):
        keys[k + size], values[k + size] = keys[k], values[k]
    before = start
    for b in range(buckets):
        before, counts[b] = before + counts[b], before
    for k in range(start + size, stop + size):
        b = np.int64(keys[k] >> np.uint64(shift))
        keys[counts[b]], values[counts[b]] = keys[k], values[k]
        counts[b] += 1
    _insert(keys, values, start, stop)


@register_jitable
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
