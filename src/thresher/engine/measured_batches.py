"""The mini-batch loop for rules that process every example of a batch by itself.

The state and the arguments are as in `outputs`.

`ft-ftrl` divides by the largest |x|, and a sum of gradients has no such scale: two gradients that nearly
cancel, or slopes that are nearly zero, made the scale 1e-7 or 1e-38, and the weight as large as its inverse.
So a rule with `step_on_sum` measures every example separately, and only steps on the summed gradient.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.batches import (
    MOVED,
    PULL,
    begin_batch,
    close_batch,
    end_output,
    gather,
    margins_of,
    read_gathered,
)
from thresher.engine.compile.inplace import snapshot
from thresher.engine.compile.jit import helper, kernel
from thresher.engine.kernels import aim
from thresher.engine.outputs import note, read_row
from thresher.engine.verbs import (
    catch_up,
    end_step,
    grouped,
    meet,
    remember,
    size_before_margin,
    step_on_sum,
    values_slopes,
)


@helper
def aim_output(rule, row_rule, bias_rule, bias_row_rule, S, clock, B, bclock, rows, values, begin, end, k,
               bias, margin, importance, value, slope):  # fmt: skip
    """The slope that output k steps with for an example."""
    now, bnow, size = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S), 0.0
    for p in range(begin, end):
        x = S.dtype.type(values[p])
        size += float(size_before_margin(row_rule, S[:, :, k], rows[p], x, now))
    if B.shape[0] > 0:
        size += float(size_before_margin(bias_row_rule, B[:, :, k], 0, S.dtype.type(1), bnow))
    return aim(rule, bias_rule, margin - bias, bias, importance, value, slope, size, clock, bclock)


@helper
def measure(loss, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks, rows, values, begin, end,
            target, importance, bias, margins, shares, slopes, sums, noted):  # fmt: skip
    """Process an example for every output and add its slopes to `sums`; return whether its loss is finite."""
    value = values_slopes(loss, margins, target, shares, slopes)
    note(noted, importance, value, margins)
    for k in range(margins.size):
        c = min(k, clocks.shape[0] - 1)
        slopes[k] = aim_output(rule, row_rule, bias_rule, bias_row_rule, S, clocks[c], B, bclocks[c], rows,
                               values, begin, end, k, float(bias[k]), margins[k], importance,
                               importance * shares[k], importance * slopes[k])  # fmt: skip
        sums[PULL, k] += slopes[k]
        sums[MOVED, k] += abs(slopes[k])
    return math.isfinite(value)


@helper
def widen(rows, values, begin, end, slopes, places, extents):
    """Update `extents`, the largest |x| of each row, for every output with a slope that is not zero."""
    for p in range(begin, end):
        own = extents[places[rows[p]] - 1]
        for k in range(slopes.size):
            if slopes[k] != 0.0:
                own[k] = max(own[k], abs(float(values[p])))


@helper
def step_output(past, rule, row_rule, bias_rule, bias_row_rule, S, clock, B, bclock, which, touched, count,
                held, gradients, extents, b, pull, pulled):  # fmt: skip
    """One step of output ``which[0]`` on summed gradients, if `pulled` (some slope was not zero).

    Returns the number of rows written: `count` or 0.
    """
    k = which[0]
    if not pulled and not grouped(row_rule):
        return 0
    now, bnow, own = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S), S[:, :, k]
    catch_up(past, row_rule, S, touched, 0, count, which)
    for r in range(count):
        x = S.dtype.type(extents[r, k])
        w = meet(row_rule, own, touched[r], held[r, k], x, now)
        step_on_sum(row_rule, own, touched[r], w, x, S.dtype.type(gradients[r, k]), now)
        extents[r, k] = 0.0
    if B.shape[0] > 0 and pulled:
        step_on_sum(bias_row_rule, B[:, :, k], 0, b, S.dtype.type(1), S.dtype.type(pull), bnow)
    return count


@helper
def finish_batch(past, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks, every, touched, count,
                 held, gradients, extents, bias, sums):  # fmt: skip
    """Step every output, listed in `every`, then advance the clocks."""
    remember(past, rule, B, bias)
    for k in every:
        c = min(k, clocks.shape[0] - 1)
        written = step_output(past, rule, row_rule, bias_rule, bias_row_rule, S, clocks[c], B, bclocks[c],
                              every[k : k + 1], touched, count, held, gradients, extents, bias[k],
                              sums[PULL, k], sums[MOVED, k] > 0.0)  # fmt: skip
        end_output(past, rule, row_rule, S, clocks[c], c, k, touched, written)
    end_step(past, rule, row_rule, bias_rule, S, clocks, bclocks)


@helper
def copy_clocks(clocks, bclocks, target, btarget):
    """Copy the clocks, to save them before a batch or restore them."""
    for place in np.ndindex(clocks.shape):
        target[place] = clocks[place]
    for place in np.ndindex(bclocks.shape):
        btarget[place] = bclocks[place]


# fmt: off
@kernel
def learn_measured_batches(
    loss, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks,
    indptr, rows, values, targets, weights, lo, hi, batch, places, past, seen, tally,
):
    # fmt: on
    """Like `batches.learn_batches`, but each example is processed by itself, and only gradients are summed.

    So sizes, losses and slopes are per example, and s of a feature is computed from its values, not from
    their sums.
    """
    outputs, most, every = S.shape[2], np.int64(0), np.arange(S.shape[2])
    for first in range(lo, hi, batch):
        most = max(most, indptr[min(first + batch, hi)] - indptr[first])
    touched, gradients = np.empty(most, np.int64), np.empty((most, outputs))
    held, bias = np.empty((most, outputs), S.dtype), np.zeros(outputs, S.dtype)
    own, margins, shares = np.empty(outputs, S.dtype), np.empty(outputs), np.empty(outputs)
    slopes, sums, noted = np.empty(outputs), np.empty((3, outputs)), np.empty(4)
    extents, before, bbefore = np.zeros((most, outputs)), clocks.copy(), bclocks.copy()
    for first in range(lo, hi, batch):
        count, last, finite = np.int64(0), min(first + batch, hi), True
        begin_batch(sums, noted)
        copy_clocks(clocks, bclocks, before, bbefore)
        if B.shape[0] > 0:
            read_row(bias_row_rule, B, 0, bclocks, bias)
        for i in range(first, last):
            begin, end = indptr[i], indptr[i + 1]
            for k in range(outputs):
                margins[k] = bias[k]
            margins_of(row_rule, S, clocks, rows, values, begin, end, own, margins, seen)
            finite &= measure(loss, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks, rows,
                              values, begin, end, targets[i], float(weights[i]), bias, margins, shares,
                              slopes, sums, noted)  # fmt: skip
            count = gather(rows, values, begin, end, slopes, places, touched, count, gradients)
            widen(rows, values, begin, end, slopes, places, extents)
        read_gathered(row_rule, S, clocks, places, touched, count, held)
        if not finite:
            copy_clocks(before, bbefore, clocks, bclocks)
            return first
        close_batch(False, sums, slopes, noted, tally)
        finish_batch(past, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks, every, touched,
                     count, held, gradients, extents, bias, sums)  # fmt: skip
    return hi
