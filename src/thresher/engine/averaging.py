"""Lazy averaging of weights: what the loop of averaged models keeps.

The averaged model reads the mean of the weights that predicted. A row has two more columns than its rule
needs: the sum of its weights over the first `since` examples, and `since`. Between two updates, a weight
follows a few numbers shared by all rows, its rule's DRIFTS, by a formula with a closed-form sum (`area`),
until it reaches zero and stays there. So the `ring` keeps the sums of the drifts over the last examples,
and a row adds what it missed when it is stepped or read.
``ring[p]`` holds the sums over the first p examples after ``place[BASE]``, each as two float64 (the second
is the rounding error of the first), so that differences are exact. When the ring is full, or all rows are
to be rewritten, every row is brought up to date and the ring starts empty; when that happens depends on
the stream alone. The state is float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.jit import helper, kernel
from thresher.engine.kernels import move_clocks, multiply
from thresher.engine.protocol import implements
from thresher.engine.snapshot import snapshot
from thresher.engine.verbs import area, drift

_GUESSES = 5  # steps of Newton's method to find where a weight reaches zero
COLUMNS = 2  # after the rule's own: the sum, since
BASE, SEEN = range(2)  # of `place`: examples before the ring, examples in total


class Past(NamedTuple):
    """What is needed, beside its row, to read the mean of a weight."""

    clock: Any
    ring: Any
    place: Any


@helper
def between(ring, lo, hi, out):
    """Sums of the drifts over the examples lo+1..hi of the ring."""
    for k in range(out.size):
        out[k] = (ring[hi, 0, k] - ring[lo, 0, k]) + (ring[hi, 1, k] - ring[lo, 1, k])


@helper
def enter(rule, clock, ring, place, newest):
    """Add an example to the ring; `newest` is set to its drifts."""
    place[SEEN] += 1
    p = place[SEEN] - place[BASE]
    drift(rule, clock, newest)
    for k in range(newest.size):
        a, b = ring[p - 1, 0, k], newest[k]
        total = a + b
        part = total - a
        ring[p, 0, k] = total
        ring[p, 1, k] = ring[p - 1, 1, k] + ((a - (total - part)) + (b - part))
    if newest.size > 0:
        between(ring, p - 1, p, newest)


@helper
def size_at(row_rule, S, j, now, ring, p, sums):
    """Magnitude of the weight of row j after p examples of the ring."""
    between(ring, p - 1, p, sums)
    return abs(area(row_rule, S, j, 1.0, sums, now))


@helper
def alive(row_rule, S, j, now, ring, start, n, sums):
    """For how many of the n examples after `start` row j was not zero, at least 1; their drifts in `sums`.

    Newton's method from below, which is exact if the weight falls steadily, then bisection.
    """
    low, high, guesses = 1, n, _GUESSES
    size = size_at(row_rule, S, j, now, ring, start + 1, sums)
    while high - low > 1:
        middle = (low + high) >> 1
        if guesses > 0:
            guesses -= 1
            left = size_at(row_rule, S, j, now, ring, start + low + 1, sums)
            if left == 0.0 or low + 2 == high:
                low += left > 0.0
                break
            steps = left / (size - left) if left < size else 0.5 * (high - low)
            low, size = low + 1, left
            middle = min(low + max(int(min(steps, high)), 1), high - 1)
        left = size_at(row_rule, S, j, now, ring, start + middle, sums)
        if left == 0.0:
            high = middle
        else:
            low, size = middle, left
    between(ring, start, start + low, sums)
    return low


@helper
def missed(row_rule, S, now, ring, place, newest, rows, begin, end, out):
    """Write to `out` the sums of the weights of ``rows[begin:end]`` over the examples since the last update.

    `newest` holds the drifts of the last example. This is a single loop because arrays passed on from inside
    it would be reference-counted at every row.
    """
    sums, width = np.empty(newest.size), newest.size
    base, filled, since = place[BASE], place[SEEN] - place[BASE], S.shape[1] - 1
    for p in range(begin, end):
        j = rows[p]
        start = max(np.int64(S[j, since]) - base, 0)
        n, more = filled - start, 0.0
        if n > 0:
            more = area(row_rule, S, j, 1.0 if width > 0 else float(n), newest, now)
        if n > 1 and width > 0:
            died = more == 0.0
            stop = start + (1 if died else n)
            for k in range(width):
                high = ring[stop, 0, k] - ring[start, 0, k]
                sums[k] = high + (ring[stop, 1, k] - ring[start, 1, k])
            more = area(row_rule, S, j, float(stop - start), sums, now)
            if died and more != 0.0:
                more = area(
                    row_rule, S, j, float(alive(row_rule, S, j, now, ring, start, n, sums)), sums, now
                )
        out[p - begin] = more


@helper
def begin_anew(row_rule, S, now, ring, place, newest):
    """Bring the sums of all rows up to date, and empty the ring.

    A row that has missed only zeros is not written: it may not be in use yet.
    """
    rows, more = np.arange(S.shape[0]), np.empty(S.shape[0])
    missed(row_rule, S, now, ring, place, newest, rows, 0, rows.size, more)
    for j in range(rows.size):
        if more[j] != 0.0:
            S[j, S.shape[1] - 2] += more[j]
            S[j, S.shape[1] - 1] = place[SEEN]
    place[BASE] = place[SEEN]


@implements("past")
class Adding(NamedTuple):
    """Adds up every weight. The sum of the intercept is always up to date."""

    clock: Any
    ring: Any
    """(steps, 2, drifts)"""
    place: Any
    """(2,)"""
    newest: Any
    """(drifts,) of the last example"""
    more: Any
    """room for the sums of an example: as long as the longest example"""

    def remember(self, rule, B, bias):
        """Enter the example into the ring."""
        enter(rule, self.clock, self.ring, self.place, self.newest)
        if B.shape[0] > 0:
            B[0, B.shape[1] - 2] += bias

    def catch_up(self, row_rule, S, rows, begin, end, active):
        """Bring the sums of the rows up to date."""
        now = snapshot(row_rule, self.clock, S)
        missed(row_rule, S, now, self.ring, self.place, self.newest, rows, begin, end, self.more)
        for p in range(begin, end):
            S[rows[p], S.shape[1] - 2] += self.more[p - begin]
            S[rows[p], S.shape[1] - 1] = self.place[SEEN]

    def start_over(self, row_rule, S, c):
        """Bring the sums of all rows up to date, and empty the ring."""
        now = snapshot(row_rule, self.clock, S)
        begin_anew(row_rule, S, now, self.ring, self.place, self.newest)

    def end_step(self, rule, row_rule, bias_rule, S, clocks, bclocks):
        """Advance the clocks; start over if the ring is full or all rows are to be rescaled."""
        now = snapshot(row_rule, clocks, S)
        factor = move_clocks(rule, bias_rule, clocks, bclocks)
        if factor != 1.0 or self.place[SEEN] - self.place[BASE] == self.ring.shape[0] - 1:
            begin_anew(row_rule, S, now, self.ring, self.place, self.newest)
        if factor != 1.0:
            multiply(S[:, : S.shape[1] - COLUMNS], factor)


@helper
def means(row_rule, S, past, newest, rows, begin, end, out):
    """Write the means of the weights of ``rows[begin:end]`` over all examples to `out`."""
    now, seen = snapshot(row_rule, past.clock, S), max(past.place[SEEN], 1)
    missed(row_rule, S, now, past.ring, past.place, newest, rows, begin, end, out)
    for p in range(begin, end):
        out[p - begin] = (S[rows[p], S.shape[1] - 2] + out[p - begin]) / seen


@helper
def last_drifts(past):
    """Drifts of the last example in the ring."""
    newest, p = np.zeros(past.ring.shape[2]), past.place[SEEN] - past.place[BASE]
    if p > 0 and newest.size > 0:
        between(past.ring, p - 1, p, newest)
    return newest


@kernel
def read(row_rule, S, past, rows, out):
    """Like `kernels.read`, for the mean weights."""
    means(row_rule, S, past, last_drifts(past), rows, 0, out.size, out)
