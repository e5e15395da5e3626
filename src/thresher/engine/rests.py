"""Rests: what float32 loses of a large number, as an entry of its own beside the number.

A value x with |x| >= `FAR` of a column that may be centred is stored as float32(x), and if that is not x, the
row has a second entry with the *rest* x - float32(x). Its key is the complement of the column's key, in the
bits of keys that are kept. So rows are cut, sorted, stored and sent as all rows are, and centring subtracts
the mean from the sum of both.

In a matrix a missing value, which is told from 0 if columns are centred, is a rest of 0 without a number.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg"

from __future__ import annotations

import numpy as np

from thresher.engine.jit import scalar

FAR = 2.0**16
"""Below this size, no number has a rest: float32 keeps differences of 1/256 there."""
FARTHEST = 2.0**70
"""From this size on, no number has one, since digits of text may not be known to float64."""
_ONE, _TOP = np.uint64(1), np.uint64(63)
_HALF_STEP = 2.0**-24
"""A rest is at most this share of its number."""


@scalar
def rest_of(wide, value):
    """The rest (float32) of the float64 `wide`, which is stored as the float32 `value`; 0: none."""
    if FAR <= abs(value) < FARTHEST:
        return np.float32(wide - np.float64(value))
    return np.float32(0)


@scalar
def has_highest_bit(keys, begin, end):
    """Whether the last key of the row [begin, end) may be the complement of a column of a matrix."""
    return end > begin and keys[end - _ONE] >> _TOP == _ONE


@scalar
def is_gap(keys, values, begin, end, key):
    """Whether the row [begin, end) of a matrix says that the value of `key` is missing."""
    other = _place_of(keys, begin, end, ~key)
    return other < end and values[other] == np.float32(0)


@scalar
def _place_of(keys, begin, end, key):
    """The place of `key` in the ascending keys [begin, end); `end` if it is not there."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> _ONE
        if keys[middle] < key:
            low = middle + _ONE
        else:
            high = middle
    return low if low < end and keys[low] == key else end


@scalar
def has_far(values, begin, end):
    """Whether a value in [begin, end) may have a rest. Places in rows are uint64."""
    found = False
    for p in range(begin, end):  # no early exit, which would prevent vectorisation
        found |= abs(values[p]) >= FAR
    return found


@scalar
def _is_rest(rest, value):
    return abs(value) >= FAR and abs(rest) <= abs(value) * _HALF_STEP


@scalar
def rest_beside(keys, values, begin, end, p, mask):
    """The rest of entry `p` of the row [begin, end), whose keys have the bits of `mask`; 0: none."""
    if abs(values[p]) >= FAR:
        other = _place_of(keys, begin, end, keys[p] ^ mask)
        if other < end and _is_rest(values[other], values[p]):
            return np.float64(values[other])
    return 0.0


@scalar
def is_rest(keys, values, begin, end, p, mask):
    """Whether entry `p` of the row [begin, end) is the rest of another."""
    other = _place_of(keys, begin, end, keys[p] ^ mask)
    return other < end and _is_rest(values[p], values[other])
