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

Four rules cannot be averaged. `subgradient` oscillates around zero, and replays its steps if the rate is not
constant. `fobos-linf` follows the lowest cap so far, but its stack keeps only the caps that are the lowest
until the end. `simplex` raises weights from zero, and in both `simplex` and `eg` weights may start from
values other than zero, so a feature would owe weights from before it was first seen.

One output has a form of its own (`Adding`): in that for many, `sgd` takes twice as long on RCV1 (18 instead
of 9.5 ns per non-zero), `ftrl` and `truncated-gradient` half as long again.

For models with many outputs or mini-batches (`Pasts`), a row has two more columns per output, and a clock has
a ring and a place, as in `averaging`. The mean is over the weights before each step, where a step is one
example or one batch. The outputs of a group are coupled, so their sums are computed together.

`learn_together` and `learn_batches` tell the `past` when a step begins, which rows it writes, when all rows
are rewritten and when it ends; without averaging it is a part whose verbs are empty, so it is compiled away.
Outputs that share a clock share a ring; others have one each, shorter for more than 64 outputs (2^20 entries
in all). A batch counts once whatever its size, including the short last one: that is the mean of Polyak and
Juditsky, and for batches of one that of theorem 3.2 of Langford, Li and Zhang.

The prox of a group sums itself. The prox of a norm commutes with scaling, and along the drifts the weights of
a feature are linear while the same outputs share the largest magnitude (l1/linf; for l1/l2 until all are
zero). So the sum over such a span is one prox, of the summed drifts; there are at most as many spans as
outputs.

With 20 softmax classes, 10,000 rows of 80 non-zeros among 20,000 features, in ns of CPU time per non-zero and
output, direct store and float64, without and with the mean: `sgd` 0.9 and 6.8, `ftrl` 2.1 and 13.6, `fobos`
1.2 and 13.8, or 48 with an l1 (1e-4) for which nearly every weight becomes zero between two visits. That time
goes into the search for the point where it became zero; bisection without Newton's method took half as long
again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.compile.jit import helper, kernel
from thresher.engine.kernels import move_clocks, multiply
from thresher.engine.outputs import moment, owned
from thresher.engine.protocol import implements, snapshot
from thresher.engine.verbs import area, areas, drift, grouped, start_over

_GUESSES = 5  # steps of Newton's method to find where a weight reaches zero
COLUMNS = 2  # after the rule's own: the sum, since
BASE, SEEN = range(2)  # of `place`: examples before the ring, examples in total


class Past(NamedTuple):
    """Clock and drift history; with the row of a weight, they give its mean."""

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
            multiply(rule, S[:, : S.shape[1] - COLUMNS], factor)


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
    now, seen = snapshot(row_rule, past.clock, S), max(past.place[SEEN], 1)
    missed(row_rule, S, now, past.ring, past.place, last_drifts(past), rows, 0, out.size, out)
    for p in range(out.size):
        out[p] = (S[rows[p], S.shape[1] - 2] + out[p]) / seen


_BLOCK = 1 << 10  # rows whose sums are in memory at a time


@implements("past")
class Pasts(NamedTuple):
    """Clocks ``(clocks, scalars)``, rings ``(clocks, steps, 2, drifts)`` and places ``(clocks, 2)``."""

    clocks: Any
    rings: Any
    places: Any

    def remember(self, rule, B, bias):
        """Enter the step into every ring; the sums of the intercepts are always up to date."""
        newest = np.empty(self.rings.shape[3])
        for c in range(self.places.shape[0]):
            enter(rule, self.clocks[c], self.rings[c], self.places[c], newest)
        if B.shape[0] > 0:
            for k in range(bias.size):
                B[0, B.shape[1] - 2, k] += bias[k]

    def catch_up(self, row_rule, S, rows, begin, end, active):
        """Bring the sums of the rows up to date."""
        if active.size > 0:
            catch_up_rows(row_rule, S, self, rows, np.int64(begin), np.int64(end), active, True)

    def start_over(self, row_rule, S, c):
        """Bring the sums of all rows up to date, and empty the ring.

        A row that has missed only zeros is not written: it may not exist yet.
        """
        rows, every = np.arange(S.shape[0]), np.arange(S.shape[2])
        active = every if self.places.shape[0] == 1 else every[c : c + 1]
        for begin in range(0, rows.size, _BLOCK):
            catch_up_rows(row_rule, S, self, rows, begin, min(begin + _BLOCK, rows.size), active, False)
        self.places[c, BASE] = self.places[c, SEEN]

    def end_step(self, rule, row_rule, bias_rule, S, clocks, bclocks):
        """Advance each clock; start over if its ring is full or its rows are to be rescaled."""
        for c in range(clocks.shape[0]):
            factor = move_clocks(rule, bias_rule, clocks[c], bclocks[c])
            full = self.places[c, SEEN] - self.places[c, BASE] == self.rings.shape[1] - 1
            if factor != 1.0 or full:
                start_over(self, row_rule, S, c)
            if factor != 1.0:
                multiply(rule, owned(S[:, : S.shape[1] - COLUMNS], clocks, c), factor)


@helper
def past_of(past, k):
    """The past of output k, its own or the shared one."""
    c = min(k, past.places.shape[0] - 1)
    return Past(past.clocks[c], past.rings[c], past.places[c])


@helper
def largest(row_rule, T, now, ring, p, sums, out):
    """How many outputs share the largest magnitude after p steps of the ring; 0 if all are zero."""
    between(ring, p - 1, p, sums)
    areas(row_rule, T, out, 1.0, sums, now)
    top, count = np.abs(out).max(), 0
    for k in range(out.size):
        count += top > 0.0 and abs(out[k]) == top
    return count


@helper
def missed_together(row_rule, T, now, ring, place, sums, part, out):
    """Like `missed`, for one feature of a grouped rule.

    The weights are linear in the drifts as long as the same outputs are largest. As penalties accumulate,
    the number of largest outputs only grows, until all are zero, so bisection finds where it changes.
    """
    p, filled = max(np.int64(T[0, T.shape[1] - 1]) - place[BASE], 0), place[SEEN] - place[BASE]
    out[:] = 0.0
    while p < filled:
        number = largest(row_rule, T, now, ring, p + 1, sums, part)
        if number == 0:
            break
        low, high = p + 1, filled + 1
        if largest(row_rule, T, now, ring, filled, sums, part) == number:
            low = filled
        while high - low > 1:
            middle = (low + high) >> 1
            if largest(row_rule, T, now, ring, middle, sums, part) == number:
                low = middle
            else:
                high = middle
        between(ring, p, low, sums)
        areas(row_rule, T, part, float(low - p), sums, now)
        for k in range(out.size):
            out[k] += part[k]
        p = low


@helper
def missed_by(row_rule, S, past, rows, begin, end, active, out):
    """Write to `out` the sums of the weights of ``rows[begin:end]`` over the steps since their last update.

    `out` has a column per output in `active`, which must be all outputs for a grouped rule.
    """
    one = past_of(past, 0)
    now, newest = snapshot(row_rule, one.clock, S), last_drifts(one)
    if grouped(row_rule):
        sums, part = np.empty(newest.size), np.empty(active.size)
        for p in range(begin, end):
            missed_together(row_rule, S[rows[p]].T, now, one.ring, one.place, sums, part, out[p - begin])
    else:
        for a in range(active.size):
            k, one = active[a], past_of(past, active[a])
            now, newest = moment(row_rule, S, past.clocks, k), last_drifts(one)
            missed(row_rule, S[:, :, k], now, one.ring, one.place, newest, rows, begin, end, out[:, a])


@helper
def catch_up_rows(row_rule, S, past, rows, begin, end, active, zeros):
    """Bring the sums of ``rows[begin:end]`` up to date, with `zeros` even where only zeros were missed."""
    if grouped(row_rule):
        active = np.arange(S.shape[2])
    more, seen = np.empty((end - begin, active.size)), past.places[0, SEEN]
    missed_by(row_rule, S, past, rows, begin, end, active, more)
    for p in range(begin, end):
        for a in range(active.size):
            if zeros or more[p - begin, a] != 0.0:
                S[rows[p], S.shape[1] - 2, active[a]] += more[p - begin, a]
                S[rows[p], S.shape[1] - 1, active[a]] = seen


@kernel
def read_means(row_rule, S, past, rows, out):
    """Like `outputs.read_outputs`, for the mean weights."""
    missed_by(row_rule, S, past, rows, 0, out.shape[0], np.arange(S.shape[2]), out)
    steps = max(past.places[0, SEEN], 1)
    for p in range(out.shape[0]):
        for k in range(S.shape[2]):
            out[p, k] = (S[rows[p], S.shape[1] - 2, k] + out[p, k]) / steps
