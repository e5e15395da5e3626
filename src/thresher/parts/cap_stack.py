"""Caps on all coordinates: the lazy update of a coordinate is the smallest cap since its last visit.

Rows hold v and `seen` (the example of the last visit), and are in one of three states by `place`: below their
caps, in a heap of `ordered` with sizes -|v|; at a cap (-1); or zero and new (0). The stack of caps is stored
in columns of the state too, the latest on top: `time`, `cap` and `members`, the number of weights at the
cap. Caps rise from bottom to top, because a new cap absorbs all higher ones; so the smallest since a visit is
the first whose time is no earlier. Caps without members may be removed, and are before there are as many
caps as weights: a stack never needs more rows than are in use.
"""

from __future__ import annotations

import numpy as np

from thresher.engine.compile.jit import helper, scalar
from thresher.parts import threshold_heap
from thresher.parts.threshold_heap import PLACE, SIZE, V, first, push, remove, resize

SEEN, TIME, CAP, MEMBERS = range(5, 9)
COLUMNS = (*threshold_heap.COLUMNS, "seen", "time", "cap", "members")
BELOW, CAPPED, CAPS = range(2, 5)
"""Places in the clock: weights in the heap, weights at a cap, caps on the stack"""
_AT_A_CAP = -1.0


@scalar
def first_since(S, seen, caps):
    """The position on a stack of `caps` of the first cap made at `seen` or later; `caps` if there is none."""
    low, high = 0, caps
    while low < high:
        middle = (low + high) >> 1
        if S[middle, TIME] < seen:
            low = middle + 1
        else:
            high = middle
    return low


def weight(self, S, j, now):
    """Weight of row j under its smallest cap."""
    v, caps = S[j, V], int(now[CAPS])
    if v == 0.0:
        return v
    place = first_since(S, S[j, SEEN], caps)
    if place == caps:
        return v
    return max(-S[place, CAP], min(v, S[place, CAP]))


@helper
def absorb(S, rows, begin, end, time, below, capped, caps):
    """Enter the rows just written, which are below all caps again: ``(weights below, at a cap)``."""
    for p in range(begin, end):
        row = rows[p]
        size = abs(S[row, V])
        if S[row, PLACE] > 0:
            if size > 0.0:
                resize(S, row, -size)
            else:
                remove(S, row, below)
                below -= 1
        else:
            if S[row, PLACE] == _AT_A_CAP:
                S[first_since(S, S[row, SEEN], caps), MEMBERS] -= 1.0
                capped -= 1
            S[row, PLACE] = 0.0
            if size > 0.0:
                push(S, row, -size, below)
                below += 1
        S[row, SEEN] = time
    return below, capped


@helper
def cap(S, time, below, capped, caps, cut):
    """Cap the largest weights so that the excess sums to `cut`: ``(weights below, at a cap, caps)``."""
    total, members = 0.0, 0.0
    while True:
        while caps > 0 and S[caps - 1, MEMBERS] == 0.0:
            caps -= 1
        largest = -S[first(S, below), SIZE] if below > 0 else -1.0
        level = max(largest, S[caps - 1, CAP] if caps > 0 else -1.0)
        if level < 0.0 or (members > 0.0 and total - cut >= members * level):
            break
        if level == largest:
            row = first(S, below)
            remove(S, row, below)
            S[row, PLACE] = _AT_A_CAP
            total, members, below, capped = total + level, members + 1.0, below - 1, capped + 1
        else:
            caps -= 1
            total += level * S[caps, MEMBERS]
            members += S[caps, MEMBERS]
    if members == 0.0:
        return below, capped, caps
    if caps >= below + capped:  # remove those without members
        kept = 0
        for place in range(caps):
            if S[place, MEMBERS] > 0.0:
                S[kept, TIME], S[kept, CAP] = S[place, TIME], S[place, CAP]
                S[kept, MEMBERS] = S[place, MEMBERS]
                kept += 1
        caps = kept
    S[caps, TIME], S[caps, CAP], S[caps, MEMBERS] = time, max((total - cut) / members, 0.0), members
    return below, capped, caps + 1


def sound(self, S, clock, steps):
    """What is wrong with heap and stack, in words; "" if nothing. Plain Python."""
    below, capped, caps = clock[BELOW : CAPS + 1]
    if not (caps == np.floor(caps) and 0 <= caps <= len(S)):
        return f"a stack of {caps:g} caps does not fit in {len(S)} rows"
    times, held = S[: int(caps), TIME], S[: int(caps), MEMBERS]
    if (times[1:] < times[:-1]).any():
        return "the caps on the stack are not in order of time"
    under = np.searchsorted(times, S[S[:, PLACE] == _AT_A_CAP, SEEN])
    if capped != under.size:
        return f"{capped:g} rows should lie at a cap, but {under.size} do"
    if not np.array_equal(np.bincount(under, minlength=held.size), held):
        return "the caps on the stack have more or fewer members than their counts say"
    return threshold_heap.heap_error(S, below, (0.0, _AT_A_CAP))
