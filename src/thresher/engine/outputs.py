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

Mini-batches: the summed gradient of a batch is one step, with the same state and arguments. A batch is one
example whose features are the summed gradient, with slope and importance 1. So every rule supports
mini-batches, even rules that measure the example, and a batch of one equals the example itself. Rows of an
incomplete batch wait in the model, and in its state.

`ft-ftrl` divides by the largest |x|, and a sum of gradients has no such scale: two gradients that nearly
cancel, or slopes that are nearly zero, made the scale 1e-7 or 1e-38, and the weight as large as its inverse.
So a rule with `step_on_sum` measures every example separately, and only steps on the summed gradient.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.calibrating import calibrate_outputs, copy_calibration
from thresher.engine.compile.jit import helper, kernel, scalar
from thresher.engine.kernels import LAST_HEAVIEST, LAST_MARGIN, LOSS_SUM, WEIGHT_SUM, aim, end_example, raised
from thresher.engine.protocol import snapshot
from thresher.engine.verbs import (
    ceiling,
    constrain,
    couple,
    grouped,
    idle,
    links,
    meet,
    rival,
    shown,
    size_before_margin,
    step,
    step_on_sum,
    values_slopes,
    weight,
)


@helper
def end_step(rule, bias_rule, S, clocks, bclocks):
    """Advance each clock."""
    for c in range(clocks.shape[0]):
        own = S[:, :, c : S.shape[2] - clocks.shape[0] + 1 + c]  # the outputs with clock c: one or all
        end_example(rule, bias_rule, own, clocks[c], bclocks[c])


@helper
def note(tally, importance, value, margins):
    """Record the loss of an example, its first margin, and which one is largest, the first of equal ones."""
    best = 0
    for k in range(1, margins.size):
        if margins[k] > margins[best]:
            best = k
    tally[LOSS_SUM] += importance * value
    tally[WEIGHT_SUM] += importance
    tally[LAST_MARGIN], tally[LAST_HEAVIEST] = margins[0], best


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


# fmt: off
@kernel
def learn_together(
    loss, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks,
    indptr, rows, values, targets, known, weights, lo, hi, longest, calibration, seen, tally,
):
    # fmt: on
    """Like `kernels.learn`, for rules whose outputs share a clock: the inner loops run over the outputs.

    An output whose slope is zero takes no step, unless the rule is grouped. Every row must be in S. `known`
    has how many outputs, the first ones, each example has a loss of; others have a slope of zero.
    """
    outputs, clock, bclock = S.shape[2], clocks[0], bclocks[0]
    held, bias = np.empty((longest, outputs), S.dtype), np.zeros(outputs, S.dtype)
    margins, slopes = np.empty(outputs, S.dtype), np.zeros(outputs, S.dtype)
    exact, shares, active = np.empty(outputs), np.empty(outputs), np.empty(outputs, np.int64)
    now, bnow = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S)
    for i in range(lo, hi):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        weigh(row_rule, S, now, rows, values, begin, end, held, margins, seen)
        if B.shape[0] > 0:
            read_row(bias_row_rule, B, 0, bclocks, bias)
        for k in range(outputs):
            exact[k] = margins[k] + bias[k]
        n = known[i]
        value = values_slopes(loss, exact[:n], targets[i], shares[:n], slopes[:n])
        if not math.isfinite(value):
            return i
        note(tally, float(weights[i]), value, exact[:n])
        calibrate_outputs(loss, calibration, exact[:n], float(weights[i]), targets[i])
        importance, count = S.dtype.type(weights[i]), 0
        for k in range(outputs):
            slopes[k] *= importance
            if slopes[k] != 0:
                active[count] = k
                count += 1
        step_rows(row_rule, S, now, rows, values, begin, end, held, slopes, active, count)
        if B.shape[0] > 0:
            for a in range(count):
                k = active[a]
                step(bias_row_rule, B[0].T, k, bias[k], S.dtype.type(1), slopes[k], bnow)
        end_step(rule, bias_rule, S, clocks, bclocks)
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
    """Write the weighted loss of each row of margins to `out`.

    A margin of -inf is that of a class that is not known: it is left out, or zero if the row is of the class.
    """
    outputs = margins.shape[1]
    shares, slopes = np.empty(outputs), np.empty(outputs)
    own, target = np.empty(outputs), np.empty(targets.shape[1])
    for i in range(out.size):
        n = 0
        for k in range(target.size):
            target[k] = targets[i, k]
        for k in range(outputs):
            margin = margins[i, k]
            if margin == -np.inf and target.size == 1 and targets[i, 0] == k:
                margin = 0.0
            if margin != -np.inf:
                if target.size == 1 and targets[i, 0] == k:
                    target[0] = n
                own[n] = margin
                n += 1
        value = values_slopes(loss, own[:n], target, shares[:n], slopes[:n])
        out[i] = float(weights[i]) * value


@kernel
def rivals(loss, margins, k, out):
    """Write what the margin of output k competes with, in each row of margins, to `out`."""
    for i in range(out.size):
        out[i] = rival(loss, margins[i], k)


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



PULL, LOSS, COUNTED, MOVED, SHIFT = range(5)
"""Sums over a batch: slopes (the gradient of the intercept), losses, losses up to the `ceiling`, magnitudes
of slopes, slopes * offset"""


@helper
def gather(rows, values, begin, end, slopes, places, touched, count, gradients, extents):
    """Add ``slopes * x`` of an example to the gradients of its rows; return the new number of rows.

    ``places[row]`` is the index of a row in `touched` and `gradients`, plus one; 0 for none yet. `extents` is
    None, or has the x of the largest |x| of each row, for every output with a slope that is not zero.
    """
    for p in range(begin, end):
        place = places[rows[p]]
        if place == 0:
            touched[count] = rows[p]
            count += 1
            place = places[rows[p]] = count
            gradients[place - 1] = 0.0
        for k in range(slopes.size):
            gradients[place - 1, k] += slopes[k] * values[p]
        if extents is not None:
            own = extents[place - 1]
            for k in range(slopes.size):
                if slopes[k] != 0.0 and abs(values[p]) > abs(own[k]):
                    own[k] = values[p]
    return count


@helper
def finish_batch(rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks, touched, count,
                 held, gradients, extents, bias, sums, slopes, importance):  # fmt: skip
    """Step every output, then advance the clocks.

    It steps on an example with features `gradients`, the sum of slopes for its intercept, and the offset; or,
    with `extents`, on summed gradients, if some slope was not zero.
    """
    for k in range(S.shape[2]):
        c, written = min(k, clocks.shape[0] - 1), 0
        clock, bclock, own, pull = clocks[c], bclocks[c], S[:, :, k], sums[PULL, k]
        now, bnow = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S)
        if extents is None:
            margin, size = 0.0, 0.0
            for r in range(count):
                x = S.dtype.type(gradients[r, k])
                held[r, k] = meet(row_rule, own, touched[r], held[r, k], x, now)
                margin += float(held[r, k] * x)
                size += float(size_before_margin(row_rule, own, touched[r], x, now))
            if B.shape[0] > 0:
                size += float(size_before_margin(bias_row_rule, B[:, :, k], 0, S.dtype.type(pull), bnow))
            lift = bias[k] * pull + sums[SHIFT, k]
            value, counted = sums[LOSS, k], sums[COUNTED, k]
            slope = S.dtype.type(
                aim(rule, bias_rule, margin, lift, importance, value, counted, slopes[k], size, clock, bclock)
            )
            if slope != 0 or grouped(row_rule):
                now, bnow, written = snapshot(rule, clock, S), snapshot(bias_rule, bclock, S), count
                for r in range(count):
                    step(row_rule, own, touched[r], held[r, k], S.dtype.type(gradients[r, k]), slope, now)
                if B.shape[0] > 0 and slope != 0:
                    step(bias_row_rule, B[:, :, k], 0, bias[k], S.dtype.type(pull), slope, bnow)
        elif sums[MOVED, k] > 0.0 or grouped(row_rule):
            written = count
            for r in range(count):
                x = S.dtype.type(extents[r, k])
                w = meet(row_rule, own, touched[r], held[r, k], x, now)
                step_on_sum(row_rule, own, touched[r], w, x, S.dtype.type(gradients[r, k]), now)
                extents[r, k] = 0.0
            if B.shape[0] > 0 and sums[MOVED, k] > 0.0:
                step_on_sum(bias_row_rule, B[:, :, k], 0, bias[k], S.dtype.type(1), S.dtype.type(pull), bnow)
        constrain(rule, own, touched, 0, written, clock)
    end_step(rule, bias_rule, S, clocks, bclocks)


@helper
def measure(each, loss, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks, rows, values, begin,
            end, target, n, importance, bias, margins, shares, slopes, sums, noted, calibration,
            offset):  # fmt: skip
    """Weighted slopes of an example, added to the sums of its batch; returns whether its loss is finite."""
    for k in range(margins.size):
        margins[k] += offset
    value = values_slopes(loss, margins[:n], target, shares[:n], slopes[:n])
    for k in range(n, margins.size):  # classes not met yet
        shares[k] = slopes[k] = 0.0
    note(noted, importance, value, margins[:n])
    if math.isfinite(value):
        calibrate_outputs(loss, calibration, margins[:n], importance, target)
    counted = importance * min(1.0, ceiling(loss) / value) if value > 0.0 else importance
    for k in range(margins.size):
        slopes[k] *= importance
        if each is not None:
            c, size, b = min(k, clocks.shape[0] - 1), 0.0, float(bias[k]) + offset
            now, bnow = snapshot(rule, clocks[c], S), snapshot(bias_rule, bclocks[c], S)
            for p in range(begin, end):
                x = S.dtype.type(values[p])
                size += float(size_before_margin(row_rule, S[:, :, k], rows[p], x, now))
            if B.shape[0] > 0:
                size += float(size_before_margin(bias_row_rule, B[:, :, k], 0, S.dtype.type(1), bnow))
            slopes[k] = aim(rule, bias_rule, margins[k] - b, b, importance, importance * shares[k],
                            counted * shares[k], slopes[k], size, clocks[c], bclocks[c])  # fmt: skip
        sums[PULL, k] += slopes[k]
        sums[LOSS, k] += importance * shares[k]
        sums[COUNTED, k] += counted * shares[k]
        sums[MOVED, k] += abs(slopes[k])
        sums[SHIFT, k] += slopes[k] * offset
    return math.isfinite(value)


@helper
def margins_of(row_rule, S, clocks, rows, values, begin, end, own, bias, margins, seen):
    """Write the margins of an example, the intercepts `bias` included; mark its rows in `seen`."""
    for k in range(margins.size):
        margins[k] = bias[k]
    for p in range(begin, end):
        if seen.size > 0:
            seen[rows[p]] = 1
        x = S.dtype.type(values[p])
        read_row(row_rule, S, rows[p], clocks, own)
        for k in range(margins.size):
            now = moment(row_rule, S, clocks, k)
            margins[k] += float(meet(row_rule, S[:, :, k], rows[p], own[k], x, now)) * float(x)


@helper
def copy_clocks(each, clocks, bclocks, target, btarget):
    """Copy the clocks, to save them before a batch or restore them, if they change within it."""
    if each is not None:
        for place in np.ndindex(clocks.shape):
            target[place] = clocks[place]
        for place in np.ndindex(bclocks.shape):
            btarget[place] = bclocks[place]


# fmt: off
@kernel
def learn_batches(
    loss, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks,
    indptr, rows, values, targets, known, weights, offsets, lo, hi, batch, each, places, calibration,
    seen, tally,
):
    # fmt: on
    """Learn examples lo..hi-1 in mini-batches of `batch`: the summed gradient is one step of each output.

    The step is that of one example with slope and importance 1 and the gradient as features; a batch of one
    is the example itself. Returns the first example not learned: `hi`, or the first of a batch with a loss
    that is not finite, which has changed nothing. `places` (rows of S,) int64 must be zero, and is zero again
    on return.

    Unless `each` is None, each example is processed by itself, and only gradients are summed. So sizes,
    losses and slopes are per example, and s of a feature is computed from its values, not from their sums.
    """
    outputs, most = S.shape[2], np.int64(0)
    for first in range(lo, hi, batch):
        most = max(most, indptr[min(first + batch, hi)] - indptr[first])
    touched, gradients = np.empty(most, np.int64), np.empty((most, outputs))
    held, bias = np.empty((most, outputs), S.dtype), np.zeros(outputs, S.dtype)
    own, margins, shares = np.empty(outputs, S.dtype), np.empty(outputs), np.empty(outputs)
    slopes, ones, sums, noted = np.empty(outputs), np.ones(outputs), np.empty((5, outputs)), np.empty(4)
    before, bbefore = clocks.copy(), bclocks.copy()
    extents = None if each is None else np.zeros((most, outputs))
    for first in range(lo, hi, batch):
        count, last, finite = np.int64(0), min(first + batch, hi), True
        single = each is None and last - first == 1
        copy_calibration(calibration, False)
        copy_clocks(each, clocks, bclocks, before, bbefore)
        for k in range(outputs):  # which compiles faster than slice assignments
            sums[PULL, k] = sums[LOSS, k] = sums[COUNTED, k] = sums[MOVED, k] = sums[SHIFT, k] = 0.0
        noted[LOSS_SUM] = noted[WEIGHT_SUM] = 0.0
        if B.shape[0] > 0:
            read_row(bias_row_rule, B, 0, bclocks, bias)
        for i in range(first, last):
            begin, end = indptr[i], indptr[i + 1]
            margins_of(row_rule, S, clocks, rows, values, begin, end, own, bias, margins, seen)
            finite &= measure(each, loss, rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks,
                              rows, values, begin, end, targets[i], known[i], float(weights[i]), bias,
                              margins, shares, slopes, sums, noted, calibration,
                              raised(0.0, offsets, i))  # fmt: skip
            count = gather(rows, values, begin, end, ones if single else slopes, places, touched, count,
                           gradients, extents)  # fmt: skip
        for r in range(count):
            places[touched[r]] = 0
            read_row(row_rule, S, touched[r], clocks, held[r])
        if not finite:
            copy_clocks(each, before, bbefore, clocks, bclocks)
            copy_calibration(calibration, True)
            return first
        for k in (LOSS_SUM, WEIGHT_SUM):
            noted[k] += tally[k]
        for k in range(tally.size):
            tally[k] = noted[k]
        for k in range(outputs):  # the slope of a batch of several is 1, or 0 if all were 0
            if single:
                sums[PULL, k], sums[SHIFT, k] = 1.0, raised(0.0, offsets, first)
            else:
                slopes[k] = 1.0 if sums[MOVED, k] > 0.0 else 0.0
        importance = float(weights[first]) if single else 1.0
        finish_batch(rule, row_rule, bias_rule, bias_row_rule, S, clocks, B, bclocks, touched,
                     count, held, gradients, extents, bias, sums, slopes, importance)  # fmt: skip
    return hi
