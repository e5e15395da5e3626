"""The verbs: how one generic kernel calls the parts that it is compiled for.

A *part* (loss, rate, rule) is a NamedTuple: its fields are run-time hyper-parameters, its class
selects the code. Each verb below is an ordinary function that calls the part's method of the same
name; `overload` lets compiled code do likewise, so one generic kernel compiles to one fused loop
for each combination of part classes, and the same source still runs as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic, overload

from thresher.engine.compiling import BORROWING as BORROWING
from thresher.engine.compiling import OPTIONS
from thresher.engine.compiling import Kernel as Kernel
from thresher.engine.compiling import helper as helper
from thresher.engine.compiling import kernel as kernel
from thresher.engine.compiling import scalar as scalar

# The verbs. `_verb` ties a function to the method of the same name of a part's class; Numba wants
# the parameter names of both to agree, which `part()` checks.


def _verb(
    function: Callable[..., Any], arrays: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`arrays` says that methods of this name may make arrays; those of a loop over coordinates may not."""
    return overload(function, jit_options=OPTIONS if arrays else BORROWING)


def _method(part: Any, name: str) -> Any:
    return getattr(getattr(part, "instance_class", None), name, None)


def snapshot(self, clock, S):
    """The clock as a tuple in the dtype of S: what `weight` and `step` read as `now`.

    A tuple lives in registers, so a loop over a row loads and rounds it once; and a running sum is
    rounded in the same way when a debt is noted and when it is paid, so that payments add up.
    """
    return tuple(S.dtype.type(value) for value in clock)


@_verb(snapshot)
def _snapshot(self, clock, S):
    length = len(self.instance_class.CLOCK)

    def impl(self, clock, S):
        return _as_tuple(clock, S, length)

    return impl


@intrinsic
def _as_tuple(typing_context, clock, S, length):
    """The first `length` (a literal) elements of `clock`, cast to the dtype of S, as a tuple."""
    if not isinstance(length, types.IntegerLiteral):
        return None  # Numba then asks again with the literal
    result = types.UniTuple(S.dtype, length.literal_value)

    def codegen(context, builder, signature, args):
        source = signature.args[0]
        data = context.make_array(source)(context, builder, args[0]).data
        items = []
        for k in range(result.count):
            place = builder.gep(data, [context.get_constant(types.intp, k)])
            items.append(context.cast(builder, builder.load(place), source.dtype, S.dtype))
        return context.make_tuple(builder, result, items)

    return result(clock, S, length), codegen


def value_slope(self, margin, y):
    """Loss and its derivative in the margin: ``(loss, slope)``."""
    return self.value_slope(margin, y)


@_verb(value_slope)
def _value_slope(self, margin, y):
    return _method(self, "value_slope")


def link(self, margin):
    """From the margin to what `predict` prints: a probability, a mean."""
    return self.link(margin)


@_verb(link)
def _link(self, margin):
    return _method(self, "link")


def values_slopes(self, margins, y, values, slopes):
    """Loss of an example with many outputs, shared out to `values`, and its derivatives to `slopes`."""
    return self.values_slopes(margins, y, values, slopes)


@_verb(values_slopes, arrays=True)
def _values_slopes(self, margins, y, values, slopes):
    return _method(self, "values_slopes")


def links(self, margins, out):
    """From the margins of all outputs to what `predict` prints."""
    self.links(margins, out)


@_verb(links, arrays=True)
def _links(self, margins, out):
    return _method(self, "links")


def alone(self, v, owed):
    """What a penalty of strength `owed` leaves of one output's weight."""
    return self.alone(v, owed)


@_verb(alone)
def _alone(self, v, owed):
    return _method(self, "alone")


def together(self, out, owed):
    """What a penalty of strength `owed` leaves of a feature's weights for all outputs, in place."""
    self.together(out, owed)


@_verb(together, arrays=True)
def _together(self, out, owed):
    return _method(self, "together")


def dual(self, v):
    """The dual norm of v: at this strength a penalty leaves nothing of it."""
    return self.dual(v)


@_verb(dual, arrays=True)
def _dual(self, v):
    return _method(self, "dual")


def at(self, t):
    """Step size of example t = 1, 2, ..."""
    return self.at(t)


@_verb(at)
def _at(self, t):
    return _method(self, "at")


def steady(self):
    """Whether the step size never changes."""
    return self.steady()


@_verb(steady)
def _steady(self):
    return _method(self, "steady")


def weight(self, S, j, now):
    """Weight of row j with all its debts paid; changes nothing."""
    return self.weight(S, j, now)


@_verb(weight)
def _weight(self, S, j, now):
    return _method(self, "weight")


def couple(self, T, out, now):
    """Settle the weights `out` of one feature for all outputs, whose rows are `T`, against each other."""
    self.couple(T, out, now)


@_verb(couple, arrays=True)
def _couple(self, T, out, now):
    return _method(self, "couple")


def grouped(self):
    """Whether the outputs of a feature are always stepped together."""
    return self.grouped()


@_verb(grouped)
def _grouped(self):
    return _method(self, "grouped")


def meet(self, S, j, w, x, now):
    """The weight that an example with value `x` predicts with, given the settled one; changes nothing."""
    return self.meet(S, j, w, x, now)


@_verb(meet)
def _meet(self, S, j, w, x, now):
    return _method(self, "meet")


def step(self, S, j, w, x, slope, now):
    """Write row j: its settled weight `w` after the gradient ``slope * x``."""
    return self.step(S, j, w, x, slope, now)


@_verb(step)
def _step(self, S, j, w, x, slope, now):
    return _method(self, "step")


def gauge(self, S, j, x, now):
    """A number summed over the row: ``x * x``, ``x V x``, ..."""
    return self.gauge(S, j, x, now)


@_verb(gauge)
def _gauge(self, S, j, x, now):
    return _method(self, "gauge")


def assess(self, margin, importance, value, slope, size, clock):
    """Note in the clock what the steps of an example need to know of it as a whole.

    Asked before `gain`, of the rule and of the intercept's, each with its own clock. `margin` is the
    whole one, intercept included; `value` and `slope` are multiplied by `importance`.
    """
    self.assess(margin, importance, value, slope, size, clock)


@_verb(assess)
def _assess(self, margin, importance, value, slope, size, clock):
    return _method(self, "assess")


def gain(self, margin, value, slope, size, clock):
    """The slope to step with, once margin (without intercept), loss and gauge of the row are known.

    `value` and `slope` are multiplied by the importance; `size` counts the intercept's gauge.
    """
    return self.gain(margin, value, slope, size, clock)


@_verb(gain)
def _gain(self, margin, value, slope, size, clock):
    return _method(self, "gain")


def tick(self, clock):
    """End of the example."""
    return self.tick(clock)


@_verb(tick)
def _tick(self, clock):
    return _method(self, "tick")


def constrain(self, S, rows, begin, end, clock):
    """After the steps of an example on ``rows[begin:end]``: restore what holds of all rows together."""
    self.constrain(S, rows, begin, end, clock)


@_verb(constrain, arrays=True)
def _constrain(self, S, rows, begin, end, clock):
    return _method(self, "constrain")


def rewrites(self, clock):
    """Whether `constrain` is about to write rows that the example does not touch."""
    return self.rewrites(clock)


@_verb(rewrites)
def _rewrites(self, clock):
    return _method(self, "rewrites")


def drift(self, clock, out):
    """Write what an untouched weight moves by, one number for each of DRIFTS, to `out`."""
    self.drift(clock, out)


@_verb(drift)
def _drift(self, clock, out):
    return _method(self, "drift")


def area(self, S, j, n, sums, now):
    """The weights of row j added up over n examples, over which the drifts add up to `sums`.

    None of them is zero unless all are, and n = 1 is the weight itself.
    """
    return self.area(S, j, n, sums, now)


@_verb(area)
def _area(self, S, j, n, sums, now):
    return _method(self, "area")


def areas(self, T, out, n, sums, now):
    """As `area`, for all outputs of a feature that settle each other; their rows are `T`.

    Exact where as many of them share the largest magnitude all along.
    """
    self.areas(T, out, n, sums, now)


@_verb(areas, arrays=True)
def _areas(self, T, out, n, sums, now):
    return _method(self, "areas")


def remember(self, rule, B, bias):
    """A step begins: what is kept of the past takes up the weights it begins with, `bias` the intercepts'."""
    self.remember(rule, B, bias)


@_verb(remember, arrays=True)
def _remember(self, rule, B, bias):
    return _method(self, "remember")


def catch_up(self, narrow, S, rows, begin, end, active):
    """Rows ``rows[begin:end]`` are about to be stepped for the outputs `active`."""
    self.catch_up(narrow, S, rows, begin, end, active)


@_verb(catch_up, arrays=True)
def _catch_up(self, narrow, S, rows, begin, end, active):
    return _method(self, "catch_up")


def start_over(self, narrow, S, c):
    """All rows are about to be rewritten for the outputs of clock c."""
    self.start_over(narrow, S, c)


@_verb(start_over, arrays=True)
def _start_over(self, narrow, S, c):
    return _method(self, "start_over")


def end_step(self, rule, narrow, free, S, clocks, bclocks):
    """Move the clocks on, and fold common scales that leave their range into the rows."""
    self.end_step(rule, narrow, free, S, clocks, bclocks)


@_verb(end_step, arrays=True)
def _end_step(self, rule, narrow, free, S, clocks, bclocks):
    return _method(self, "end_step")


def relocate(self, S, count, clock):
    """Rows have moved, ``S[:count]`` are in use: rebuild whatever points to rows."""
    self.relocate(S, count, clock)


@_verb(relocate, arrays=True)
def _relocate(self, S, count, clock):
    return _method(self, "relocate")


def renorm(self, clock):
    """A power of two that every row is to be multiplied by now (1 nearly always)."""
    return self.renorm(clock)


@_verb(renorm)
def _renorm(self, clock):
    return _method(self, "renorm")


def shown(self, S, j, w, now):
    """The weight of row j as it is read, given the settled one."""
    return self.shown(S, j, w, now)


@_verb(shown)
def _shown(self, S, j, w, now):
    return _method(self, "shown")


def idle(self, S, j, w, now):
    """Whether row j, of settled weight `w`, is as good as a row of zeros."""
    return self.idle(S, j, w, now)


@_verb(idle)
def _idle(self, S, j, w, now):
    return _method(self, "idle")
