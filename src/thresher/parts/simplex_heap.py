"""Nonnegative weights that sum to one, as w = v minus a common threshold: the building blocks of `simplex`.

Rows are as in `ordered`, with `met`: 0 in a new row (all coordinates never met share one weight); 2 while the
row is zero or below after its step. From `THRESHOLD` on, the clock holds the threshold, the sum and number of
the live weights, the weight of the coordinates never met, and the number of those met.
"""

from __future__ import annotations

import numpy as np

from thresher.engine.compile.jit import helper
from thresher.parts import threshold_heap
from thresher.parts.threshold_heap import PLACE, SIZE, V, first, push, rebuild, remove, resize

MET = 5
_BELOW = 2.0
COLUMNS = (*threshold_heap.COLUMNS, "met")
THRESHOLD, TOTAL, LIVE, UNMET, COUNT = range(2, 7)


@helper
def absorb(S, rows, begin, end, clock):
    """Enter the rows just written; those at zero or below leave the heap."""
    total, live = clock[TOTAL], int(clock[LIVE])
    for p in range(begin, end):
        row = rows[p]
        clock[COUNT] += S[row, MET] == 0.0
        S[row, MET] = 1.0
        if S[row, PLACE] > 0:
            total -= S[row, SIZE] - clock[THRESHOLD]
        if S[row, V] > clock[THRESHOLD]:
            total += S[row, V] - clock[THRESHOLD]
            if S[row, PLACE] > 0:
                resize(S, row, S[row, V])
            else:
                push(S, row, S[row, V], live)
                live += 1
        elif S[row, PLACE] > 0:
            remove(S, row, live)
            live -= 1
        if S[row, PLACE] == 0.0:
            S[row, MET] = _BELOW
    clock[TOTAL], clock[LIVE] = total, live


@helper
def lower(S, rows, begin, end, clock, unmet):
    """Raise the threshold until all weights, `unmet` of which are equal, sum to one.

    Those of the rows just written whose weights are zero are reset.
    """
    threshold, total, live = clock[THRESHOLD], clock[TOTAL], int(clock[LIVE])
    alike = unmet if clock[UNMET] > 0.0 else 0.0
    while True:
        theta = (total + alike * clock[UNMET] - 1.0) / (live + alike)
        row = first(S, live) if live > 0 else 0
        least = S[row, SIZE] - threshold if live > 0 else 2.0
        if alike > 0.0 and clock[UNMET] <= min(theta, least):
            alike = 0.0
        elif live > 0 and least <= theta and live + alike > 1.0:
            remove(S, row, live)
            S[row, V] = 0.0
            total, live = total - least, live - 1
        else:
            break
    clock[THRESHOLD] = threshold + theta
    clock[UNMET] = clock[UNMET] - theta if alike > 0.0 else 0.0
    clock[TOTAL], clock[LIVE] = 1.0 - alike * clock[UNMET], live
    for p in range(begin, end):
        if S[rows[p], MET] == _BELOW:
            S[rows[p], MET], S[rows[p], V] = 1.0, 0.0


@helper
def theta_of(values, alike, value):
    """The threshold for sorted `values` and `alike` more of size `value`, counting the largest first."""
    above, count, i = 0.0, 0.0, values.size - 1
    while i >= 0 or alike > 0.0:
        together = alike > 0.0 and (i < 0 or value >= values[i])
        v, times = (value, alike) if together else (values[i], 1.0)
        if count > 0.0 and above - 1.0 >= count * v:
            break
        above, count = above + times * v, count + times
        if together:
            alike = 0.0
        else:
            i -= 1
    return (above - 1.0) / count


@helper
def lift(S, clock, unmet):
    """Lower the threshold below zero: settle and write all coordinates."""
    values, count = np.empty(int(clock[COUNT])), 0
    for row in range(S.shape[0]):
        if S[row, MET] != 0.0:
            lies = S[row, PLACE] > 0 or S[row, MET] == _BELOW
            values[count] = S[row, V] - clock[THRESHOLD] if lies else 0.0
            S[row, V], S[row, MET] = values[count], 1.0
            count += 1
    values.sort()  # makes the sum independent of the order of rows
    theta = theta_of(values, unmet, clock[UNMET])
    for row in range(S.shape[0]):
        if S[row, MET] != 0.0:
            S[row, V] = max(0.0, S[row, V] - theta)
            S[row, PLACE] = 1.0 if S[row, V] > 0.0 else 0.0
    clock[THRESHOLD], clock[UNMET] = 0.0, max(0.0, clock[UNMET] - theta)
    clock[TOTAL] = 1.0 - unmet * clock[UNMET]
    clock[LIVE] = rebuild(S, S.shape[0])


def sound(self, S, clock, steps):
    """What is wrong with heap and counts, in words; "" if nothing. Plain Python."""
    met = np.count_nonzero(S[:, MET])
    if clock[COUNT] != met:
        return f"{clock[COUNT]:g} coordinates should have been seen, but {met} rows were"
    return threshold_heap.heap_error(S, clock[LIVE])
