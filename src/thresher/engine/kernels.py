"""The main loops: learn, read, sum up, find idle rows. They name no loss and no rule.

`S` is the state table: one row per coordinate, columns `SLOTS` (w first). `clock` holds the scalars shared
by all coordinates. `B` (one row) and `bclock` are the same for the intercept, whose rule is `bias_rule`. A
row of zeros is a coordinate not in use yet. Each rule is passed twice: as it is, to advance the clock, and
as `row_rule`, with its numbers in the dtype of `S`, to update coordinates.

A float64 `theta` in place of `row_rule`'s would widen the arithmetic of a float32 row.

The loops have long lists of arguments because named tuples of related ones cost time. `learn` then had 9
arguments instead of 19 and gave the same models, but Numba checks the types of nested tuples at every call:
an example of three non-zeros took 18 µs instead of 15. A first run with `--average` took 0.2 to 0.5 s of CPU
time longer to compile, of 9.7, and `ft-ftrl` was 2 % slower in two measurements.

Without averaging `past` is None, and `state` if nothing is calibrated. Numba evaluates ``past is not None``
before it infers types, so none of that code is compiled.

The direct store marks and checks rows inside `learn` (`seen`). A separate pass over the keys took 0.9 ns per
non-zero, since they are read from memory twice; inside the loop it overlaps with the sum of the margin and
takes 0.3.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.averaging import BASE, COLUMNS, SEEN, begin_anew, catch_up, remember
from thresher.engine.calibrating import calibrate
from thresher.engine.compile.jit import helper, inlined, kernel, scalar
from thresher.engine.lookup import fetch
from thresher.engine.protocol import snapshot
from thresher.engine.verbs import (
    constrain,
    curvature,
    idle,
    link,
    meet,
    note_after_margin,
    relocate,
    renorm,
    rewrites,
    shown,
    size_before_margin,
    slope_after_margin,
    step,
    tick,
    unscaled,
    value_slope,
    weight,
)

AHEAD = np.uint64(48)
"""How many non-zeros ahead rows of the table are prefetched"""
LOSS_SUM, WEIGHT_SUM, LAST_MARGIN, LAST_HEAVIEST = range(4)  # columns of `tally`


@scalar
def count(tally, importance, value, margin):
    """Record the loss of an example, and its margin."""
    tally[LOSS_SUM] += importance * value
    tally[WEIGHT_SUM] += importance
    tally[LAST_MARGIN] = margin


@scalar
def raised(b, offsets, i):
    """What is added to the features of example i: the intercept, and its offset unless `offsets` is None."""
    if offsets is None:  # resolved at compile time
        return b
    return b + float(offsets[i])


@helper
def aim(rule, bias_rule, margin, b, importance, value, counted, slope, size, clock, bclock):
    """The slope to step with; `margin` excludes the intercept and the offset, whose sum is `b`.

    `counted` is the loss, `value`, up to its `ceiling`.
    """
    note_after_margin(rule, float(margin + b), importance, counted, slope, size, clock)
    note_after_margin(bias_rule, float(margin + b), importance, counted, slope, size, bclock)
    return slope_after_margin(rule, margin, value, slope, size, clock)


@inlined
def move(row_rule, bias_row_rule, S, now, B, bnow, rows, values, scratch, begin, end, b, slope):
    """Step every coordinate of an example from its settled weight, held in `scratch` and `b`.

    In `learn` itself, LLVM would not inline the steps of `ft-ftrl`, which then takes a third longer.
    """
    for p in range(begin, end):
        step(row_rule, S, rows[p], scratch[p - begin], values[p], slope, now)
    if B.shape[0] > 0:
        step(bias_row_rule, B, rows.dtype.type(0), b, S.dtype.type(1), slope, bnow)


@inlined
def move_clocks(rule, bias_rule, clock, bclock):
    """Advance the clocks to the next example; return the factor to multiply every row by."""
    tick(rule, clock)
    tick(bias_rule, bclock)
    return renorm(rule, clock)


@helper
def multiply(rule, S, factor):
    """Multiply every row, but for the columns that are `unscaled`."""
    scaled = S[:, : S.shape[1] - unscaled(rule)]
    for place in np.ndindex(scaled.shape):
        scaled[place] *= factor


@inlined
def end_example(rule, bias_rule, S, clock, bclock):
    """Advance the clocks; fold a common scale that has left its range into all rows."""
    factor = move_clocks(rule, bias_rule, clock, bclock)
    if factor != 1.0:
        multiply(rule, S, factor)


@inlined
def close(past, rule, row_rule, bias_rule, S, rows, begin, end, clock, bclock):
    """Finish an example after rows begin..end-1 were stepped."""
    if past is None:  # resolved at compile time, so the other branch is not compiled
        constrain(rule, S, rows, begin, end, clock)
        end_example(rule, bias_rule, S, clock, bclock)
    else:
        if rewrites(rule, clock):
            begin_anew(past, row_rule, S, snapshot(row_rule, clock, S))
        constrain(rule, S, rows, begin, end, clock)
        now = snapshot(row_rule, clock, S)
        factor = move_clocks(rule, bias_rule, clock, bclock)
        full = past.place[SEEN] - past.place[BASE] == past.ring.shape[0] - 1
        if factor != 1.0 or full:
            begin_anew(past, row_rule, S, now)
        if factor != 1.0:
            multiply(rule, S[:, : S.shape[1] - COLUMNS], factor)


@kernel
def learn(
    loss, rule, row_rule, bias_rule, bias_row_rule, S, clock, B, bclock,
    indptr, rows, values, labels, weights, offsets, lo, hi, limit, scratch, past, state, seen, tally,
):  # fmt: skip
    """Predict, then learn, examples lo..hi-1; return the first example not learned.

    That is `hi`, or the first example whose loss is not finite, with a value above `limit` in magnitude, or
    with a row beyond `seen`; it has changed nothing. `seen` marks every row met, unless it is empty.
    A row's settled weight is kept in `scratch` (as long as the longest example) between reading and stepping,
    so that it is rounded to the state's dtype once per example. Arithmetic on weights is in that dtype, on
    the clock in float64. `offsets` are added to the margins, unless None. `past` is None, or adds up weights
    for averaging; `state` is None, or learns what margins mean (`calibrating`). `tally` sums
    weighted loss and weight.
    """
    home = rows.dtype.type(0)  # same type as rows, so `step` is compiled once
    marking, marks, last = seen.size > 0, np.uint64(seen.size), np.uint64(indptr[hi] - 1)
    for i in range(lo, hi):
        now, bnow = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S)
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])  # unsigned: no test for negative indices
        margin, size, top = S.dtype.type(0), S.dtype.type(0), values.dtype.type(0)
        for p in range(begin, end):
            if marking:
                if rows[p] >= marks:
                    return i
                seen[rows[p]] = 1
            fetch(S, rows[p + AHEAD if p + AHEAD < last else last])  # min and max take time to compile
            x, top = S.dtype.type(values[p]), abs(values[p]) if abs(values[p]) > top else top
            w = scratch[p - begin] = meet(row_rule, S, rows[p], weight(row_rule, S, rows[p], now), x, now)
            margin += w * x
            size += size_before_margin(row_rule, S, rows[p], x, now)
        b = S.dtype.type(0)
        if B.shape[0] > 0:
            b = weight(bias_row_rule, B, home, bnow)
            size += size_before_margin(bias_row_rule, B, home, S.dtype.type(1), bnow)
        lift = raised(b, offsets, i)
        value, slope = value_slope(loss, float(margin + lift), float(labels[i]))
        if not math.isfinite(value) or top >= limit:
            return i
        importance = float(weights[i])
        count(tally, importance, value, margin + lift)
        if state is not None:
            given = link(loss, tally[LAST_MARGIN])
            calibrate(state, given, tally[LAST_MARGIN], importance, labels[i] > 0)
        if past is not None:
            remember(past, rule, B, b)
        value, slope = value * importance, slope * importance
        slope = aim(rule, bias_rule, margin, lift, importance, value, value, slope, size, clock, bclock)
        slope = S.dtype.type(slope)
        if slope == 0:
            end = begin  # no row is written
        else:
            now, bnow = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S)
            if past is not None:
                catch_up(past, row_rule, S, rows, begin, end)
            move(row_rule, bias_row_rule, S, now, B, bnow, rows, values, scratch, begin, end, b, slope)
        close(past, rule, row_rule, bias_rule, S, rows, begin, end, clock, bclock)
    return hi


@kernel
def read(row_rule, S, clock, rows, out):
    """Write the weights of `rows` (n,) to `out` (n,), in the state's dtype; changes no state."""
    now = snapshot(row_rule, clock, S)
    for p in range(out.size):
        out[p] = shown(row_rule, S, rows[p], weight(row_rule, S, rows[p], now), now)


@kernel
def add_up(weights, bias, indptr, rows, values, out):
    """Margins (n,) of examples, given the weights that `rows` index; the same code for every rule.

    Products are in the dtype of the weights, their sum in float64.
    """
    for i in range(out.size):
        margin = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            margin += float(weights[rows[p]] * values[p])
        out[i] = margin + bias[0]


@kernel
def score(loss, margins, labels, weights, out):
    """Write the weighted loss of each margin to `out`."""
    for i in range(out.size):
        out[i] = float(weights[i]) * value_slope(loss, margins[i], float(labels[i]))[0]


@kernel
def derive(loss, lo, hi, labels, importance, z, slopes, curvatures):
    """Set g, and h unless it is None, of rows lo..hi-1, whose margins are `z`; the sum of their losses."""
    total = 0.0
    for i in range(lo, hi):
        value, slope = value_slope(loss, z[i], labels[i])
        total += importance[i] * value
        slopes[i] = importance[i] * slope
        if curvatures is not None:  # resolved at compile time
            curvatures[i] = importance[i] * curvature(loss, z[i], labels[i])
    return total


@kernel
def respond(loss, margins, out):
    """Write the link of each margin to `out`."""
    for i in range(out.size):
        out[i] = link(loss, margins[i])


@kernel
def idle_rows(row_rule, S, clock, out):
    """Write to `out` (n,) which of the first n rows are equivalent to rows of zeros."""
    now = snapshot(row_rule, clock, S)
    for j in range(out.size):
        out[j] = idle(row_rule, S, j, weight(row_rule, S, j, now), now)


@kernel
def relocate_rows(row_rule, S, count, clock):
    """Tell a rule that rows have moved, and that `count` are left."""
    relocate(row_rule, S, count, clock)
