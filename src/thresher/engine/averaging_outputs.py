"""Averaging for models with many outputs or mini-batches: what the loops of `outputs` keep.

A row has two more columns per output, and a clock has a ring and a place, as in `averaging`. The mean is
over the weights before each step, where a step is one example or one batch. The outputs of a group are
coupled, so their sums are computed together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.averaging import BASE, COLUMNS, SEEN, Past, between, enter, last_drifts, missed
from thresher.engine.jit import helper, kernel
from thresher.engine.kernels import move_clocks, multiply
from thresher.engine.outputs import moment, owned
from thresher.engine.protocol import implements
from thresher.engine.snapshot import snapshot
from thresher.engine.verbs import areas, grouped, start_over

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
                multiply(owned(S[:, : S.shape[1] - COLUMNS], clocks, c), factor)


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


@helper
def means(row_rule, S, past, rows, begin, end, out):
    """Write to `out` the means of the weights of ``rows[begin:end]`` over all steps, a column per output."""
    missed_by(row_rule, S, past, rows, begin, end, np.arange(S.shape[2]), out)
    steps = max(past.places[0, SEEN], 1)
    for p in range(begin, end):
        for k in range(S.shape[2]):
            out[p - begin, k] = (S[rows[p], S.shape[1] - 2, k] + out[p - begin, k]) / steps


@kernel
def read_means(row_rule, S, past, rows, out):
    """Like `outputs.read_outputs`, for the mean weights."""
    means(row_rule, S, past, rows, 0, out.shape[0], out)
