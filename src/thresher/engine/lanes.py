"""The loop of `kernels.learn` for eight lanes: models of one rule class and one loss class, other numbers.

The lanes of a coordinate are adjacent in S (rows, columns, LANES): its row is found and fetched, and its
value read, once for all. Each lane does the same roundings in the same order as alone, so the results are
bit-identical. For rules that change only the rows of the example: those without `constrain` and `relocate`.

Figures are in ns per non-zero, with rows already found. 8 lanes of `fobos` take 6.5 (one: 3.0), of `ftrl` 8.8
(4.8). The loop takes twice as long to compile as that of one lane.

Work that a rule does rarely is apart: `ft-ftrl` rescales a feature at one step in 25, and doing that in every
vector cost as much as all the rest. So the loop first asks whether the row is `outgrown` in any lane (3.4
ns), and otherwise calls `step_within`: 8 lanes went from 4.0 to 2.1 times one.

Losses remain scalar. Eight times `exp` and `log1p` take 0.12 µs per example, a third of what `fobos` takes
for 75 non-zeros, and vectorised versions would round differently. Code that LLVM cannot vectorise, such as
the `expm1` of `adagrad-fobos` with `l2`, stays scalar and correct: nothing is contracted or reassociated, so
each lane keeps its bits. With explicit vectors every rule would have to be written twice, and with a vector
type for the numbers of a lane `if` would have to mean something else.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.compile.jit import kernel, scalar
from thresher.engine.kernels import AHEAD, aim, count, move_clocks, raised
from thresher.engine.lanewise import (
    LANES,
    clock_of,
    clocks_like,
    each_lane,
    fetch_lanes,
    held,
    hold,
    lanes_like,
    now_of,
    on_stack,
    part_of,
    put,
    put_clock,
    put_row,
    row_of,
    taken,
)
from thresher.engine.verbs import (
    meet,
    outgrown,
    size_before_margin,
    step,
    step_within,
    unscaled,
    value_slope,
    weight,
)


class LaneStream(NamedTuple):
    """Examples, and the rows of their features."""

    indptr: Any
    rows: Any
    values: Any
    labels: Any
    weights: Any
    offsets: Any
    """None without any"""


class Side(NamedTuple):
    """The weights of all lanes, or their intercepts: rules, table, clocks, and snapshots of the clocks."""

    rule: Any
    row_rule: Any
    table: Any
    clocks: Any
    nows: Any


class Example(NamedTuple):
    """The current example in each lane; `importance`, and the offset at `place`, are shared."""

    importance: Any
    offsets: Any
    place: Any
    margins: Any
    sizes: Any
    biases: Any
    values: Any
    slopes: Any
    steps: Any
    grown: Any


@scalar
def take_clocks(side, clocks):
    """Copy clocks (LANES, scalars) to the stack."""
    for c in range(side.clocks.shape[0]):
        for k in range(LANES):
            side.clocks[c, k] = clocks[k, c]


@scalar
def give_clocks(side, clocks):
    """Copy the clocks back from the stack."""
    for c in range(side.clocks.shape[0]):
        for k in range(LANES):
            clocks[k, c] = side.clocks[c, k]


@scalar
def read_clocks(side):
    """Take snapshots of the clocks, like `snapshot`."""
    for c in range(side.clocks.shape[0]):
        for k in range(LANES):
            side.nows[c, k] = side.clocks[c, k]


@scalar
def settle(k, side, j, x, scratch, at, example):
    """Store the settled weight of row j, and add its contribution to margin and size."""
    rule, now = part_of(side.row_rule, k), now_of(side.rule, side.nows, k)
    row = row_of(side.row_rule, side.table, j, k)
    w = meet(rule, row, 0, weight(rule, row, 0, now), x, now)
    hold(scratch, at, k, w)
    put(example.margins, k, taken(example.margins, k) + w * x)
    put(example.sizes, k, taken(example.sizes, k) + size_before_margin(rule, row, 0, x, now))


@scalar
def settle_all(side, rows, values, begin, end, last, scratch, seen, example):
    """Settle all rows of an example; False if one is beyond `seen`, which marks rows met unless empty."""
    marking, marks = seen.size > 0, np.uint64(seen.size)
    for p in range(begin, end):
        if marking:
            if rows[p] >= marks:
                return False
            seen[rows[p]] = 1
        fetch_lanes(side.row_rule, side.table, rows[p + AHEAD if p + AHEAD < last else last])
        x = side.table.dtype.type(values[p])
        each_lane(settle, (side, rows[p], x, scratch, p - begin, example))
    return True


@scalar
def settle_bias(k, side, home, example):
    """Settle the intercept."""
    row, now = row_of(side.row_rule, side.table, home, k), now_of(side.rule, side.nows, k)
    put(example.biases, k, weight(part_of(side.row_rule, k), row, 0, now))


@scalar
def lose(losses, label, alive, example):
    """Value and slope of the losses. False if one that was `alive` is not finite: it no longer is alive."""
    sound = True
    for k in range(LANES):
        margin = float(example.margins[k] + raised(example.biases[k], example.offsets, example.place))
        example.values[k], example.slopes[k] = value_slope(part_of(losses, k), margin, label)
        if alive[k] and not math.isfinite(example.values[k]):
            alive[k], sound = 0, False
    return sound


@scalar
def count_all(tally, alive, example):
    """Record the losses of an example."""
    for k in range(LANES):
        if alive[k]:
            margin = example.margins[k] + raised(example.biases[k], example.offsets, example.place)
            count(tally[k], example.importance, example.values[k], margin, None, 0)


@scalar
def turn(k, own, bias, home, alive, example):
    """Update the clocks with the example and store the slope to step with."""
    living, size, one = alive[k] != 0, taken(example.sizes, k), own.table.dtype.type(1)
    value = taken(example.values, k) * example.importance
    slope = taken(example.slopes, k) * example.importance
    if bias.table.shape[0] > 0:
        row, now = row_of(bias.row_rule, bias.table, home, k), now_of(bias.rule, bias.nows, k)
        size += size_before_margin(part_of(bias.row_rule, k), row, 0, one, now)
    rule, clock = part_of(own.rule, k), clock_of(own.rule, own.clocks, k)
    bias_rule, bclock = part_of(bias.rule, k), clock_of(bias.rule, bias.clocks, k)
    margin, importance = taken(example.margins, k), example.importance
    b = raised(taken(example.biases, k), example.offsets, example.place)
    slope = aim(rule, bias_rule, margin, b, importance, value, slope, size, clock, bclock)
    put(example.steps, k, own.table.dtype.type(slope if living else 0.0))
    put_clock(own.rule, own.clocks, k, clock, living)
    put_clock(bias.rule, bias.clocks, k, bclock, living)


@scalar
def note_outgrown(k, side, j, x, example):
    """Record whether lane k steps row j and the row is `outgrown`."""
    row, now = row_of(side.row_rule, side.table, j, k), now_of(side.rule, side.nows, k)
    grown = outgrown(part_of(side.row_rule, k), row, 0, x, now) & (taken(example.steps, k) != 0)
    put(example.grown, k, 1 if grown else 0)


@scalar
def outgrown_in_any(side, j, x, example):
    """Whether row j is outgrown in any lane."""
    each_lane(note_outgrown, (side, j, x, example))
    found = 0
    for k in range(LANES):
        found |= example.grown[k]
    return found != 0


@scalar
def move(k, stepping, side, j, w, x, example):
    """Step row j of lane k from its settled weight."""
    row, slope = row_of(side.row_rule, side.table, j, k), taken(example.steps, k)
    now = now_of(side.rule, side.nows, k)
    stepping(part_of(side.row_rule, k), row, 0, w, x, slope, now)
    put_row(side.row_rule, side.table, j, k, row, slope != 0)


@scalar
def move_weight(k, stepping, side, j, x, scratch, at, example):
    """Step row j from the stored weight."""
    move(k, stepping, side, j, held(scratch, at, k), x, example)


@scalar
def move_bias(k, side, home, example):
    """Step the intercept."""
    move(k, step, side, home, taken(example.biases, k), side.table.dtype.type(1), example)


@scalar
def move_all(own, bias, home, rows, values, begin, end, scratch, example):
    """Step every coordinate of an example, in the lanes whose slope is not zero."""
    moving = False
    for k in range(LANES):
        moving = moving or example.steps[k] != 0
    if moving:
        for p in range(begin, end):
            if outgrown_in_any(own, rows[p], values[p], example):
                each_lane(move_weight, (step, own, rows[p], values[p], scratch, p - begin, example))
            else:
                each_lane(move_weight, (step_within, own, rows[p], values[p], scratch, p - begin, example))
        if bias.table.shape[0] > 0:
            each_lane(move_bias, (bias, home, example))


@scalar
def tick_lane(k, own, bias, alive, factors):
    """Advance the clocks; store the factor for every row."""
    living = alive[k] != 0
    clock, bclock = clock_of(own.rule, own.clocks, k), clock_of(bias.rule, bias.clocks, k)
    factor = move_clocks(part_of(own.rule, k), part_of(bias.rule, k), clock, bclock)
    put(factors, k, factor if living else 1.0)
    put_clock(own.rule, own.clocks, k, clock, living)
    put_clock(bias.rule, bias.clocks, k, bclock, living)


@scalar
def multiply_all(rule, S, factors):
    """Multiply all rows of each lane by its factor, but for the columns that are `unscaled`."""
    columns = S.shape[1] - unscaled(part_of(rule, 0))
    for k in range(LANES):
        if factors[k] != 1.0:
            for j in range(S.shape[0]):
                for c in range(columns):
                    S[j, c, k] *= factors[k]


@scalar
def learn_one(losses, own, bias, stream, i, hi, scratch, seen, tally, alive, factors, example):
    """Predict, then learn example i; False if that is impossible, and nothing has changed."""
    begin, end, last = (
        np.uint64(stream.indptr[i]),
        np.uint64(stream.indptr[i + 1]),
        np.uint64(stream.indptr[hi] - 1),
    )
    zero, home = own.table.dtype.type(0), np.uint64(0)
    read_clocks(own)
    read_clocks(bias)
    for k in range(LANES):
        example.margins[k], example.sizes[k], example.biases[k] = zero, zero, zero
    if not settle_all(own, stream.rows, stream.values, begin, end, last, scratch, seen, example):
        return False
    if bias.table.shape[0] > 0:
        each_lane(settle_bias, (bias, home, example))
    if not lose(losses, float(stream.labels[i]), alive, example):
        return False
    count_all(tally, alive, example)
    each_lane(turn, (own, bias, home, alive, example))
    read_clocks(own)
    read_clocks(bias)
    move_all(own, bias, home, stream.rows, stream.values, begin, end, scratch, example)
    each_lane(tick_lane, (own, bias, alive, factors))
    multiply_all(own.row_rule, own.table, factors)
    return True


@scalar
def run(parts, S, own_clocks, B, own_bclocks, stream, lo, hi, scratch, seen, tally, alive):
    """The body of `learn_lanes`, without reference counting."""
    zero, one, home = S.dtype.type(0), S.dtype.type(1), np.uint64(0)
    b, losses, rule, bias_rule = zero, on_stack(parts[0]), on_stack(parts[1]), on_stack(parts[3])
    clocks, nows = clocks_like(rule, 0.0), clocks_like(rule, zero)
    bclocks, bnows = clocks_like(bias_rule, 0.0), clocks_like(bias_rule, zero)
    own = Side(rule, on_stack(parts[2]), S, clocks, nows)
    bias = Side(bias_rule, on_stack(parts[4]), B, bclocks, bnows)
    take_clocks(own, own_clocks)
    take_clocks(bias, own_bclocks)
    read_clocks(own)
    read_clocks(bias)
    first, now, row = part_of(own.row_rule, 0), now_of(rule, nows, 0), row_of(own.row_rule, S, home, 0)
    w, size = (
        meet(first, row, 0, weight(first, row, 0, now), one, now),
        size_before_margin(first, row, 0, one, now),
    )
    if B.shape[0] > 0:
        b = weight(
            part_of(bias.row_rule, 0), row_of(bias.row_rule, B, home, 0), 0, now_of(bias_rule, bnows, 0)
        )
    # same types as the variables of `kernels.learn`
    margins, sizes, biases = lanes_like(zero + w * one), lanes_like(zero + size), lanes_like(b)
    values, slopes, factors, steps = lanes_like(0.0), lanes_like(0.0), lanes_like(0.0), lanes_like(zero)
    grown = lanes_like(np.uint8(0))
    done = hi
    for i in range(lo, hi):
        shared = float(stream.weights[i]), stream.offsets, i
        example = Example(*shared, margins, sizes, biases, values, slopes, steps, grown)
        if not learn_one(losses, own, bias, stream, i, hi, scratch, seen, tally, alive, factors, example):
            done = i
            break
    give_clocks(own, own_clocks)
    give_clocks(bias, own_bclocks)
    return done


@kernel
def learn_lanes(parts, S, clocks, B, bclocks, stream, lo, hi, longest, seen, tally, alive):
    """Like `kernels.learn`, for the lanes that are `alive`; returns the first example not learned.

    `parts` are loss, rule, row rule, and the rules of the intercept, each as `part_of` takes them. LANES is
    the last axis of the tables S and B, and the first of clocks and `tally`. The first example not learned is
    `hi`; or the first with a row beyond `seen`; or the first whose loss is not finite in a lane that was
    `alive` and no longer is. It has changed nothing, and the other lanes continue from it.
    """
    scratch = np.empty((longest, LANES), S.dtype)
    return run(parts, S, clocks, B, bclocks, stream, lo, hi, scratch, seen, tally, alive)
