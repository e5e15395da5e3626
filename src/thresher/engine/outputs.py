"""The loops of models with many outputs.

`S` has three axes: row (feature), column of the rule's state, output, so all state of a feature is
contiguous. To the verbs, ``S[r].T`` is a table with a row per output. Outputs share a clock if the rule's
clock does not depend on the examples (``clocks`` has one row); otherwise each has its own. `B` and
`bclocks` are the same for the intercepts. `targets` has a row per example, as the loss reads it: a class,
or a number for each output.

A rule that measures the example (`pa`, `pegasos`, `l1-ball` ...) has a clock for each output. A joint loss
divides its value among the outputs by squared slopes, which makes passive-aggressive steps those of the whole
matrix. Where the clock is shared the inner loops run over the outputs and are vectorised, provided that LLVM
finds no reference counts in them: see `compile.jit`.

These loops take uint32 rows with every store, so they are compiled once. Copying the rows cannot be measured
here; a loop on one output would lose a fifth.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.calibrating import calibrate_outputs
from thresher.engine.compile.inplace import snapshot
from thresher.engine.compile.jit import helper, kernel, scalar
from thresher.engine.kernels import LAST_HEAVIEST, LAST_MARGIN, LOSS_SUM, WEIGHT_SUM, end_example
from thresher.engine.protocol import implements
from thresher.engine.verbs import (
    catch_up,
    couple,
    end_step,
    grouped,
    idle,
    links,
    meet,
    remember,
    shown,
    step,
    values_slopes,
    weight,
)


@helper
def owned(S, clocks, c):
    """The outputs with clock c: one or all."""
    return S[:, :, c : S.shape[2] - clocks.shape[0] + 1 + c]


@implements("past")
class Forgotten(NamedTuple):
    """The past of a model with many outputs that is not averaged: keeps nothing."""

    unused: float = 0.0

    def end_step(self, rule, row_rule, bias_rule, S, clocks, bclocks):
        """Advance each clock."""
        for c in range(clocks.shape[0]):
            end_example(rule, bias_rule, owned(S, clocks, c), clocks[c], bclocks[c])


FORGOTTEN: Any = Forgotten()


@helper
def heaviest(margins):
    """Index of the largest margin, the first if several are equal."""
    best = 0
    for k in range(1, margins.size):
        if margins[k] > margins[best]:
            best = k
    return best


@helper
def note(tally, importance, value, margins):
    """Record the loss of an example, its first margin, and the output with the largest margin."""
    tally[LOSS_SUM] += importance * value
    tally[WEIGHT_SUM] += importance
    tally[LAST_MARGIN], tally[LAST_HEAVIEST] = margins[0], heaviest(margins)


@helper
def keep(kept, i, margins):
    """Copy the margins that example i was predicted with to `kept`, unless that is None."""
    if kept is not None:
        for k in range(margins.size):
            kept[i, k] = margins[k]


@helper
def moment(row_rule, S, clocks, k):
    """The clock of output k, its own or the shared one, as `now`."""
    return snapshot(row_rule, clocks[min(k, clocks.shape[0] - 1)], S)


@helper
def read_row(row_rule, S, row, clocks, out):
    """Settled weights of one feature for all outputs."""
    T, now = S[row].T, snapshot(row_rule, clocks[0], S)
    if clocks.shape[0] < out.size:
        for k in range(out.size):
            out[k] = weight(row_rule, T, k, now)
    else:
        for k in range(out.size):
            out[k] = weight(row_rule, S[:, :, k], row, snapshot(row_rule, clocks[k], S))
    couple(row_rule, T, out, now)


@scalar
def weigh(row_rule, S, now, rows, values, begin, end, held, margins, seen):
    """Write settled weights of an example's rows to `held`, weighted sums to `margins`; mark the rows."""
    for k in range(margins.size):
        margins[k] = S.dtype.type(0)
    for p in range(begin, end):
        if seen.size > 0:
            seen[rows[p]] = 1
        T, own, x = S[rows[p]].T, held[p - begin], S.dtype.type(values[p])
        if grouped(row_rule):
            for k in range(margins.size):
                own[k] = weight(row_rule, T, k, now)
            couple(row_rule, T, own, now)
        for k in range(margins.size):
            w = meet(row_rule, T, k, own[k] if grouped(row_rule) else weight(row_rule, T, k, now), x, now)
            own[k] = w
            margins[k] += w * x


@scalar
def step_rows(row_rule, S, now, rows, values, begin, end, held, slopes, active, count):
    """Step the outputs ``active[:count]`` of an example's rows; for a grouped rule, all outputs."""
    if count == slopes.size or (count > 0 and grouped(row_rule)):
        for p in range(begin, end):
            T, own, x = S[rows[p]].T, held[p - begin], S.dtype.type(values[p])
            for k in range(slopes.size):
                step(row_rule, T, k, own[k], x, slopes[k], now)
    elif count > 0:
        for p in range(begin, end):
            T, own = S[rows[p]].T, held[p - begin]
            for a in range(count):
                step(row_rule, T, active[a], own[active[a]], values[p], slopes[active[a]], now)


@helper
def find_active(slopes, importance, active):
    """Multiply the slopes by the importance; list and count the outputs whose slope is not zero."""
    count = 0
    for k in range(slopes.size):
        slopes[k] *= importance
        if slopes[k] != 0:
            active[count] = k
            count += 1
    return count


# fmt: off
@kernel
def learn_together(
    loss, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks,
    indptr, rows, values, targets, weights, lo, hi, longest, past, calibration, kept, seen, tally,
):
    # fmt: on
    """Like `kernels.learn`, for rules whose outputs share a clock: the inner loops run over the outputs.

    An output whose slope is zero takes no step, unless the rule is grouped. Every row must be in S.
    """
    outputs, clock, bclock = S.shape[2], clocks[0], bclocks[0]
    held, bias = np.empty((longest, outputs), S.dtype), np.zeros(outputs, S.dtype)
    margins, slopes = np.empty(outputs, S.dtype), np.empty(outputs, S.dtype)
    exact, shares, active = np.empty(outputs), np.empty(outputs), np.empty(outputs, np.int64)
    now, bnow = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S)
    for i in range(lo, hi):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        weigh(row_rule, S, now, rows, values, begin, end, held, margins, seen)
        if B.shape[0] > 0:
            read_row(bias_row_rule, B, 0, bclocks, bias)
        for k in range(outputs):
            exact[k] = margins[k] + bias[k]
        value = values_slopes(loss, exact, targets[i], shares, slopes)
        if not math.isfinite(value):
            return i
        note(tally, float(weights[i]), value, exact)
        keep(kept, i, exact)
        calibrate_outputs(loss, calibration, exact, float(weights[i]), targets[i])
        remember(past, rule, B, bias)
        count = find_active(slopes, S.dtype.type(weights[i]), active)
        catch_up(past, row_rule, S, rows, begin, end, active[:count])
        step_rows(row_rule, S, now, rows, values, begin, end, held, slopes, active, count)
        if B.shape[0] > 0:
            for a in range(count):
                k = active[a]
                step(bias_row_rule, B[0].T, k, bias[k], S.dtype.type(1), slopes[k], bnow)
        end_step(past, rule, row_rule, bias_rule, S, clocks, bclocks)
        now, bnow = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S)
    return hi


@kernel
def read_outputs(row_rule, S, clocks, rows, out):
    """Write the weights of `rows` (n,) to `out` (n, outputs); changes no state."""
    for p in range(out.shape[0]):
        own = out[p]
        read_row(row_rule, S, rows[p], clocks, own)
        for k in range(own.size):
            own[k] = shown(row_rule, S[:, :, k], rows[p], own[k], moment(row_rule, S, clocks, k))


@kernel
def add_up_outputs(weights, bias, indptr, rows, values, out):
    """Like `kernels.add_up`: margins (n, outputs)."""
    for i in range(out.shape[0]):
        for k in range(bias.size):
            out[i, k] = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            for k in range(bias.size):
                out[i, k] += float(weights[rows[p], k] * values[p])
        for k in range(bias.size):
            out[i, k] += bias[k]


@kernel
def score_outputs(loss, margins, targets, weights, out):
    """Write the weighted loss of each row of margins to `out`."""
    shares, slopes = np.empty(margins.shape[1]), np.empty(margins.shape[1])
    for i in range(out.size):
        value = values_slopes(loss, margins[i], targets[i], shares, slopes)
        out[i] = float(weights[i]) * value


@kernel
def respond_outputs(loss, margins, out):
    """Write the links of each row of margins to `out`."""
    for i in range(out.shape[0]):
        links(loss, margins[i], out[i])


@kernel
def idle_rows_of_outputs(row_rule, S, clocks, out):
    """Like `kernels.idle_rows`: which rows are idle for every output."""
    held = np.empty(S.shape[2], S.dtype)
    for j in range(out.size):
        read_row(row_rule, S, j, clocks, held)
        none = True
        for k in range(held.size):
            none &= idle(row_rule, S[:, :, k], j, held[k], moment(row_rule, S, clocks, k))
        out[j] = none
