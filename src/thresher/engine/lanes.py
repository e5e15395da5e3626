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
for 75 non-zeros, and vectorised versions would round differently. So would code that is contracted or
reassociated: each lane keeps its bits, and what LLVM cannot vectorise, such as the `expm1` of `adagrad-fobos`
with `l2`, stays scalar. With explicit vectors every rule would have to be written twice.

Eight lanes share a table (rows, columns, 8), clocks (scalars, 8), and the numbers of their parts. A verb of
lane k gets its part and a copy of its row or clock, which compiled code keeps in registers and always writes
back (with the old values if the slope is 0). So whatever branches a rule has, each load and store is
unconditional and one of eight neighbours, and LLVM merges the eight. The verbs are those that all other loops
call; plain Python does the same on plain arrays. The code declares that table, scratch and stack do not
overlap, and that the loop must not be unrolled before it is vectorised. Without these declarations, or with
views of a lane's columns instead of copies, `fobos` took 17.8 ns per non-zero instead of 6.5, all of it
scalar.

A number that all lanes share is one number instead of eight, and that is part of the type. So a branch on it
(``l2 == 0``, the `p` of a norm, `forget`) is taken outside the loop: `adagrad-fobos` went from 4.6 to 2.5
times one lane, `ft-fobos` from 4.5 to 2.4. The price is a compilation for each set of parameters that differ;
in `path` that is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.engine.compile.jit import in_place, kernel, scalar
from thresher.engine.kernels import AHEAD, aim, count, move_clocks, raised
from thresher.engine.sound import Array
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

LANES = 8


@in_place
def each_lane(body, args):
    """Call ``body(k, *args)`` for every lane k."""
    for k in range(LANES):
        body(k, *args)


# Parts


def side_by_side(parts: Sequence[object]) -> tuple[Any, tuple[Any, ...]]:
    """Merge parts for `part_of`: the first part, and for each of its numbers an array over lanes.

    None stands in place of an array if all lanes have the same number, or the field is not a number. What the
    lanes share is then known before a loop over lanes starts, and tests of it are hoisted out of the loop.
    """
    return parts[0], tuple(_column(own) for own in zip(*(_leaves(part) for part in parts), strict=True))


def _column(values: Sequence[Any]) -> Any:
    """Numbers as an array; None if they are all the same, including the sign of zero, or none is given."""
    if values[0] is None:
        return None
    column = np.array(values, type(values[0]))
    return None if column.tobytes() == column[:1].tobytes() * len(column) else column


def _leaves(part: Any) -> list[object]:
    found: list[Any] = []
    for value in part:
        found += _leaves(value) if isinstance(value, tuple) else [value]
    return found


def _make_part(template: Any, columns: Any, k: Any) -> object:
    """A part whose fields come from the columns, an iterator."""
    values = []
    for value in template:
        if isinstance(value, tuple):
            values.append(_make_part(value, columns, k))
        else:
            own = next(columns)
            values.append(value if own is None else type(value)(own[k]))
    return tuple.__new__(type(template), values)


@in_place
def part_of(parts, k):
    """The part of lane k, from the result of `side_by_side`."""
    return _make_part(parts[0], iter(parts[1]), k)


@in_place
def on_stack(parts):
    """Copy merged parts, with their numbers on the stack."""
    return parts


@in_place
def lanes_like(value):
    """An uninitialised array (LANES,) for values of this type."""
    return np.empty(LANES, object)  # holds values of any type, unconverted


# Clocks, on the stack


@in_place
def clocks_like(parts, value):
    """An uninitialised array (scalars, LANES) for clocks of such values."""
    return np.empty((len(parts[0].CLOCK), LANES), np.asarray(value).dtype)


@in_place
def clock_of(parts, clocks, k):
    """A copy of the clock of lane k: (scalars,)."""
    return clocks[:, k].copy()


@in_place
def put_clock(parts, clocks, k, clock, wanted):
    """Write the clock back if `wanted`."""
    if wanted:
        clocks[:, k] = clock


@in_place
def now_of(parts, nows, k):
    """The clock of lane k in the form verbs of a coordinate read; see `snapshot`."""
    return tuple(nows[:, k])


# Rows of a table (rows, columns, LANES)


@in_place
def row_of(parts, S, j, k):
    """A copy of row j of lane k, as a table with one row: (1, columns)."""
    return S[np.newaxis, j, :, k].copy()


@in_place
def put_row(parts, S, j, k, row, wanted):
    """Write the row back if `wanted`."""
    if wanted:
        S[j, :, k] = row[0]


@in_place
def fetch_lanes(parts, S, j):
    """Prefetch row j of all lanes into the cache; see `fetch`."""


# Numbers of lanes: on the stack (LANES,), or in scratch (entries, LANES)


@in_place
def take(numbers, place):
    """The number at a place: lane k, or (entry, k) in scratch."""
    return numbers[place]


@in_place
def put(numbers, place, value):
    """Write the number at a place."""
    numbers[place] = value


class LaneStream(NamedTuple):
    """Examples, and the rows of their features."""

    indptr: NDArray[np.int64]
    rows: Array
    values: NDArray[np.float32]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32]
    offsets: NDArray[np.float32] | None
    """None without any"""


class Side(NamedTuple):
    """The weights of all lanes, or their intercepts: rules, table, clocks, and snapshots of the clocks."""

    rule: Any
    row_rule: Any
    table: Array
    clocks: Array
    nows: Array


class Example(NamedTuple):
    """The current example in each lane; `importance`, and the offset at `place`, are shared."""

    importance: float
    offsets: NDArray[np.float32] | None
    place: int
    margins: Array
    sizes: Array
    biases: Array
    values: Array
    slopes: Array
    steps: Array
    grown: Array


@scalar
def copy_clocks(source, target):
    """Copy clocks (scalars, LANES), or take snapshots of them, like `snapshot`."""
    for c in range(source.shape[0]):
        for k in range(LANES):
            target[c, k] = source[c, k]


@scalar
def settle(k, side, j, x, scratch, at, example):
    """Store the settled weight of row j, and add its contribution to margin and size."""
    rule, now = part_of(side.row_rule, k), now_of(side.rule, side.nows, k)
    row = row_of(side.row_rule, side.table, j, k)
    w = meet(rule, row, 0, weight(rule, row, 0, now), x, now)
    put(scratch, (at, k), w)
    put(example.margins, k, take(example.margins, k) + w * x)
    put(example.sizes, k, take(example.sizes, k) + size_before_margin(rule, row, 0, x, now))


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
def turn(k, own, bias, home, alive, example):
    """Update the clocks with the example and store the slope to step with."""
    living, size, one = alive[k] != 0, take(example.sizes, k), own.table.dtype.type(1)
    value = take(example.values, k) * example.importance
    slope = take(example.slopes, k) * example.importance
    if bias.table.shape[0] > 0:
        row, now = row_of(bias.row_rule, bias.table, home, k), now_of(bias.rule, bias.nows, k)
        size += size_before_margin(part_of(bias.row_rule, k), row, 0, one, now)
    rule, clock = part_of(own.rule, k), clock_of(own.rule, own.clocks, k)
    bias_rule, bclock = part_of(bias.rule, k), clock_of(bias.rule, bias.clocks, k)
    margin, importance = take(example.margins, k), example.importance
    b = raised(take(example.biases, k), example.offsets, example.place)
    slope = aim(rule, bias_rule, margin, b, importance, value, value, slope, size, clock, bclock)
    put(example.steps, k, own.table.dtype.type(slope if living else 0.0))
    put_clock(own.rule, own.clocks, k, clock, living)
    put_clock(bias.rule, bias.clocks, k, bclock, living)


@scalar
def note_outgrown(k, side, j, x, example):
    """Record whether lane k steps row j and the row is `outgrown`."""
    row, now = row_of(side.row_rule, side.table, j, k), now_of(side.rule, side.nows, k)
    grown = outgrown(part_of(side.row_rule, k), row, 0, x, now) & (take(example.steps, k) != 0)
    put(example.grown, k, 1 if grown else 0)


@scalar
def move(k, stepping, side, j, x, weights, entry, example):
    """Step row j of lane k from its settled weight, which is among `weights`."""
    row, slope = row_of(side.row_rule, side.table, j, k), take(example.steps, k)
    now = now_of(side.rule, side.nows, k)
    stepping(part_of(side.row_rule, k), row, 0, take(weights, (*entry, k)), x, slope, now)
    put_row(side.row_rule, side.table, j, k, row, slope != 0)


@scalar
def move_all(own, bias, home, rows, values, begin, end, scratch, example):
    """Step every coordinate of an example, in the lanes whose slope is not zero."""
    moving = False
    for k in range(LANES):
        moving = moving or example.steps[k] != 0
    if moving:
        for p in range(begin, end):
            each_lane(note_outgrown, (own, rows[p], values[p], example))
            grown = 0
            for k in range(LANES):
                grown |= example.grown[k]
            if grown != 0:
                each_lane(move, (step, own, rows[p], values[p], scratch, (p - begin,), example))
            else:
                each_lane(move, (step_within, own, rows[p], values[p], scratch, (p - begin,), example))
        if bias.table.shape[0] > 0:
            each_lane(move, (step, bias, home, bias.table.dtype.type(1), example.biases, (), example))


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
def learn_one(losses, own, bias, stream, i, hi, scratch, seen, tally, alive, factors, example):
    """Predict, then learn example i; False if that is impossible, and nothing has changed.

    That is so if one of its rows is beyond `seen`, which marks the rows that are met unless it is empty.
    """
    begin, end, last = (
        np.uint64(stream.indptr[i]),
        np.uint64(stream.indptr[i + 1]),
        np.uint64(stream.indptr[hi] - 1),
    )
    zero, home, rows, S = own.table.dtype.type(0), np.uint64(0), stream.rows, own.table
    marking, marks = seen.size > 0, np.uint64(seen.size)
    copy_clocks(own.clocks, own.nows)
    copy_clocks(bias.clocks, bias.nows)
    for k in range(LANES):
        example.margins[k], example.sizes[k], example.biases[k] = zero, zero, zero
    for p in range(begin, end):
        if marking:
            if rows[p] >= marks:
                return False
            seen[rows[p]] = 1
        fetch_lanes(own.row_rule, S, rows[p + AHEAD if p + AHEAD < last else last])
        each_lane(settle, (own, rows[p], S.dtype.type(stream.values[p]), scratch, p - begin, example))
    if bias.table.shape[0] > 0:
        each_lane(settle_bias, (bias, home, example))
    if not lose(losses, float(stream.labels[i]), alive, example):
        return False
    for k in range(LANES):
        if alive[k]:
            margin = example.margins[k] + raised(example.biases[k], example.offsets, example.place)
            count(tally[k], example.importance, example.values[k], margin)
    each_lane(turn, (own, bias, home, alive, example))
    copy_clocks(own.clocks, own.nows)
    copy_clocks(bias.clocks, bias.nows)
    move_all(own, bias, home, rows, stream.values, begin, end, scratch, example)
    each_lane(tick_lane, (own, bias, alive, factors))
    columns = S.shape[1] - unscaled(part_of(own.row_rule, 0))
    for k in range(LANES):
        if factors[k] != 1.0:
            for j in range(S.shape[0]):
                for c in range(columns):
                    S[j, c, k] *= factors[k]
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
    copy_clocks(own_clocks.T, clocks)
    copy_clocks(own_bclocks.T, bclocks)
    copy_clocks(own.clocks, own.nows)
    copy_clocks(bias.clocks, bias.nows)
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
    copy_clocks(clocks, own_clocks.T)
    copy_clocks(bclocks, own_bclocks.T)
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
