"""Rows whose ids are out of order or repeated, put right in place."""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from thresher.data.sources.words import address, below, load_float, load_word, store_float, store_word

_RUN = 16
FEW = 64
"""Rows of so many features are sorted by counting, for each key, those below it."""
_LARGEST_KEY = np.uint64(2**64 - 1)


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
def sort_row(keys, values, start, stop):
    """Sort the row [start, stop) by key, equal keys in order. Needs as much room behind `stop`."""
    for lo in range(start, stop, _RUN):
        for i in range(lo + 1, min(lo + _RUN, stop)):
            key, value, j = keys[i], values[i], i
            while j > lo and keys[j - 1] > key:
                keys[j], values[j] = keys[j - 1], values[j - 1]
                j -= 1
            keys[j], values[j] = key, value
    width = _RUN
    while width < stop - start:
        for lo in range(start, stop - width, 2 * width):
            _merge_runs(keys, values, lo, lo + width, min(lo + 2 * width, stop), stop)
        width *= 2


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


@register_jitable
def ascending(keys, values, start, stop, room_keys, room_values):
    """Sort the row [start, stop) and add up equal keys: ``(new stop, whether all sums are finite)``.

    Needs as much room behind `stop`, and `FEW` + 8 entries of `room_keys` and `room_values`.
    """
    count = stop - start
    if count > FEW:
        sort_row(keys, values, start, stop)
        return add_up(keys, values, start, stop)
    words, floats, out, out_values = address(room_keys), address(room_values), address(keys), address(values)
    for i in range(count):
        store_word(words, i, load_word(out, 8 * (start + i)))
        store_float(floats, i, load_float(out_values, start + i))
    for i in range(count, (count + 7) & ~7):
        store_word(words, i, _LARGEST_KEY)
    total = np.int64(0)
    for i in range(count):
        key, rank = load_word(words, 8 * i), np.int64(0)
        for j in range(0, count, 8):
            rank += below(words, j, key)
        store_word(out, start + rank, key)
        store_float(out_values, start + rank, load_float(floats, i))
        total += rank
    if 2 * total == count * (count - 1):
        return stop, True
    for i in range(count):
        keys[start + i], values[start + i] = room_keys[i], room_values[i]
    sort_row(keys, values, start, stop)
    return add_up(keys, values, start, stop)
