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

The mean of w_1, ..., w_T needs every weight at every step, but between two visits a weight is affine in a few
numbers common to all rows (a summed penalty, a scale, their product), or a series with a closed form (AdaGrad
with l2). One float64 would lose 2^-39 in a sum of ones. Sums are kept for at most 2^14 examples, so an
example costs its non-zeros plus 2^-14 of the rows. On 101,331 rows of RCV1-like text, in ns of CPU time per
non-zero, direct store and float64, without and with the mean: `sgd` 2.9 and 7.8, `perceptron` 2.5 and 7.1
(`averaged-perceptron` takes 2.9, with one column less, so it stays), `ftrl` 5.6 and 10.9,
`truncated-gradient` 2.8 and 17.9. A mean that was ever non-zero must be kept forever, so the growing store
frees only rows that never had a weight.

Only models of one output that learn row by row are averaged. For several outputs and mini-batches this took a
loop of its own, with the sums of coupled outputs, and five to twelve times as long as without the mean.

Five rules cannot be averaged. `subgradient` oscillates around zero, and replays its steps if the rate is not
constant. `fobos-linf` follows the lowest cap so far, but its stack keeps only the caps that are the lowest
until the end. `simplex` raises weights from zero, and in both `simplex` and `eg` weights may start from
values other than zero, so a feature would owe weights from before it was first seen. With l2, a sum of
weights of `adagrad-rda` is one of quotients, which took more lines than the rule.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.engine.compile.jit import helper, kernel
from thresher.engine.protocol import snapshot
from thresher.engine.sound import Array
from thresher.engine.verbs import area, drift

_GUESSES = 5  # steps of Newton's method to find where a weight reaches zero
COLUMNS = 2  # after the rule's own: the sum, since
BASE, SEEN = range(2)  # of `place`: examples before the ring, examples in total


class Past(NamedTuple):
    """Clock and drift history, which with the row of a weight give its mean."""

    clock: Array
    ring: Array
    """(steps, 2, drifts)"""
    place: Array
    """(2,)"""
    newest: Array
    """(drifts,) of the last example"""
    more: Array
    """room for the sums of an example: as long as the longest example"""


@helper
def between(ring, lo, hi, out):
    """Sums of the drifts over the examples lo+1..hi of the ring."""
    for k in range(out.size):
        out[k] = (ring[hi, 0, k] - ring[lo, 0, k]) + (ring[hi, 1, k] - ring[lo, 1, k])


@helper
def remember(past, rule, B, bias):
    """Enter the example, and its drifts, into the ring; add its intercept."""
    ring, newest = past.ring, past.newest
    past.place[SEEN] += 1
    p = past.place[SEEN] - past.place[BASE]
    drift(rule, past.clock, newest)
    for k in range(newest.size):
        a, b = ring[p - 1, 0, k], newest[k]
        total = a + b
        part = total - a
        ring[p, 0, k] = total
        ring[p, 1, k] = ring[p - 1, 1, k] + ((a - (total - part)) + (b - part))
    if newest.size > 0:
        between(ring, p - 1, p, newest)
    if B.shape[0] > 0:
        B[0, B.shape[1] - 2] += bias


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
def sum_missed(past, row_rule, S, now, rows, begin, end, out):
    """Write to `out` the sums of the weights of ``rows[begin:end]`` over the examples since the last update.

    This is a single loop because arrays passed on from inside it would be reference-counted at every row.
    """
    ring, newest = past.ring, past.newest
    sums, width, since = np.empty(newest.size), newest.size, S.shape[1] - 1
    base, filled = past.place[BASE], past.place[SEEN] - past.place[BASE]
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
def begin_anew(past, row_rule, S, now):
    """Bring the sums of all rows up to date, and empty the ring.

    A row that has missed only zeros is not written: it may not be in use yet.
    """
    rows, more = np.arange(S.shape[0]), np.empty(S.shape[0])
    sum_missed(past, row_rule, S, now, rows, 0, rows.size, more)
    for j in range(rows.size):
        if more[j] != 0.0:
            S[j, S.shape[1] - 2] += more[j]
            S[j, S.shape[1] - 1] = past.place[SEEN]
    past.place[BASE] = past.place[SEEN]


@helper
def catch_up(past, row_rule, S, rows, begin, end):
    """Bring the sums of the rows up to date."""
    now = snapshot(row_rule, past.clock, S)
    sum_missed(past, row_rule, S, now, rows, begin, end, past.more)
    for p in range(begin, end):
        S[rows[p], S.shape[1] - 2] += past.more[p - begin]
        S[rows[p], S.shape[1] - 1] = past.place[SEEN]


@kernel
def read(row_rule, S, past, rows, out):
    """Like `kernels.read`, for the mean weights."""
    now, seen = snapshot(row_rule, past.clock, S), max(past.place[SEEN], 1)
    sum_missed(past, row_rule, S, now, rows, 0, out.size, out)
    for p in range(out.size):
        out[p] = (S[rows[p], S.shape[1] - 2] + out[p]) / seen
