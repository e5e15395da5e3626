"""The verbs: each is declared here once. Its signature is the protocol, its body the default.

The table in docs/design.md shows the first sentence of each docstring and the one after *Default:*.

`weight` is pure, `step` writes. In the first version `weight` applied a coordinate's lazy update and wrote
the result back. Now `predict`, `weights`, the sweep of the store and the progress table read without changing
anything (law 6 needs no copies), an example with slope 0 writes nothing, a weight is rounded to float32 once
per example instead of twice, and the loop saves a load and a store of a row.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.protocol import NUMBER, PAIR, TRUTH, rebuilt, verb

# Losses


@verb("loss", required=True, returns=PAIR)
def value_slope(self, margin, y):
    """Loss and its derivative with respect to the margin: ``(loss, slope)``."""


@verb("loss", returns=NUMBER)
def curvature(self, margin, y):
    """Second derivative of the loss by the margin, or that of a parabola above the loss. Default: unknown.

    A loss that defines it can be minimised in memory by Newton's method: `thresher boost`.
    """
    return math.nan


@verb("loss", returns=NUMBER)
def link(self, margin):
    """Map the margin to what `predict` prints: a probability, a mean. Default: the margin."""
    return margin


@verb("joint loss", required=True, arrays=True)
def values_slopes(self, margins, y, values, slopes):
    """Write the loss of an example to `values`, split over its outputs, and its derivatives to `slopes`."""


@verb("joint loss", arrays=True)
def links(self, margins, out):
    """Map the margins of all outputs to what `predict` prints, in `out`. Default: the margins."""
    out[:] = margins


@verb("joint loss", returns=NUMBER)
def rival(self, margins, k):
    """What a margin competes with: the loss is ONE of margins[k] less this. Default: unknown.

    It depends on the other margins only. ONE is a loss of two classes, of which output k is the positive one.
    A joint loss that defines both can be minimised in memory, one output after the other: `thresher boost`.
    """
    return math.nan


@verb("joint loss", returns=NUMBER)
def ceiling(self):
    """The largest loss of an example that `note_after_margin` is told. Default: infinite.

    The loss of a new class, whose margin is zero, is the largest margin of the others. Without a ceiling, the
    first step of `ft-ftrl` was as long, that of the next class longer: 600 classes in turn ended at 1e14.
    """
    return math.inf


# Step sizes


@verb("rate", required=True, returns=NUMBER)
def at(self, t):
    """Step size of example t = 1, 2, ..."""


@verb("rate", returns=TRUTH)
def steady(self):
    """Whether the step size is constant. Default: no."""
    return False


# Penalties of a feature's weights for all outputs


@verb("group", required=True, returns=NUMBER)
def alone(self, v, owed):
    """The weight of one output after a penalty of strength `owed`."""


@verb("group", required=True, arrays=True)
def together(self, out, owed):
    """Apply a penalty of strength `owed` to a feature's weights for all outputs, in place."""


@verb("group", required=True, arrays=True, returns=NUMBER)
def dual(self, v):
    """The dual norm of v: the smallest penalty strength that makes v zero."""


# Rules. First the verbs for an example, in the order of the calls; then those called between examples.


@verb("rule", compiled=False)
def clock0(self):
    """The clock before the first example, an array of float64. Default: zeros."""
    return np.zeros(len(self.CLOCK))


@verb("rule", compiled=False)
def begin_pass(self, clock, number, S, passes):
    """Start, or resume, pass `number` (from 1) of `passes` over the same data. Default: nothing.

    S holds the rows of one output. `passes` is 0 if it is not known how many will follow. A second call for
    the same pass must change nothing.

    For `ft-ftrl`, which cannot tell from the examples that they are repeated.
    """


@verb("rule", compiled=False)
def end_passes(self, clock, S):
    """End the passes over the same data: what is learned next is new. Default: nothing.

    S holds the rows of one output.
    """


@verb("rule", required=True, returns=NUMBER)
def weight(self, S, j, now):
    """Weight of row j, with the lazy update applied; changes nothing."""


@verb("rule", arrays=True)
def couple(self, T, out, now):
    """Settle the weights `out` of one feature for all outputs, whose rows are `T`. Default: nothing.

    Called if the rule is `grouped`.
    """


@verb("group", "rule", returns=TRUTH)
def grouped(self):
    """Whether the outputs of a feature are always stepped together. Default: no."""
    return False


@verb("rule", returns=NUMBER)
def meet(self, S, j, w, x, now):
    """The weight that an example with value x predicts with, given the settled one `w`. Default: `w`.

    This is the only verb that sees a value before the margin is known. `normalized` rescales a weight when
    its feature is larger than ever before, and the paper predicts with the rescaled weight. The default costs
    nothing: the machine code of `sgd` and `ftrl` has the same number of instructions with and without it.
    Prediction without learning does not call it, so what is saved is what predicts.
    """
    return w


@verb("rule", returns=NUMBER)
def size_before_margin(self, S, j, x, now):
    """What row j contributes to the `size` of the example: ``x * x``, ``x V x``, ... Default: 0."""
    return 0.0


@verb("rule")
def note_after_margin(self, margin, importance, value, slope, size, clock):
    """Store in the clock what the steps need to know of the whole example. Default: nothing.

    Called before `slope_after_margin`, for the rule and for the intercept's rule, each with its own clock.
    `margin` includes the intercept; `value`, up to the `ceiling` of the loss, and `slope` are multiplied by
    `importance`.

    `slope_after_margin` returns one number and cannot write the intercept's clock, but rules that keep a
    variance for each weight need two numbers of an example, the length of the step and the gain in
    confidence, and so does their intercept.
    """


@verb("rule", returns=NUMBER)
def slope_after_margin(self, margin, value, slope, size, clock):
    """The slope to step with, given margin, loss and size of the example. Default: the slope.

    `margin` excludes the intercept; `value` and `slope` are multiplied by the importance; `size` includes the
    intercept.
    """
    return slope


@verb("rule", required=True)
def step(self, S, j, w, x, slope, now):
    """Update row j: its settled weight is `w`, the gradient ``slope * x``."""


@verb("rule", returns=TRUTH)
def outgrown(self, S, j, x, now):
    """Whether x exceeds in magnitude all that row j has seen, so that `step` has more to do. Default: no.

    Used with `step_within` where lanes learn together, so that most steps skip the rare extra work.
    """
    return False


@verb("rule")
def step_within(self, S, j, w, x, slope, now):
    """Like `step`, for a row that is not `outgrown`. Default: `step`."""
    step(self, S, j, w, x, slope, now)


@verb("rule")
def step_on_sum(self, S, j, w, x, gradient, now):
    """Like `step`, for a batch whose examples are processed one by one. Default: a batch is one example.

    If a rule defines it, `size_before_margin`, `note_after_margin` and `slope_after_margin` are called for
    every example of a batch, then this step on the sum of their gradients; `x` has the largest |x| of the
    examples with a gradient. For other rules a batch is one example of slope 1, with the summed gradient as
    features.
    """
    step(self, S, j, w, gradient, S.dtype.type(1), now)


@verb("rule", returns=TRUTH)
def rewrites(self, clock):
    """Whether `constrain` is about to write rows that are not in the example. Default: no."""
    return False


@verb("rule", arrays=True)
def constrain(self, S, rows, begin, end, clock):
    """Restore constraints on all rows together, after the steps on ``rows[begin:end]``. Default: nothing."""


@verb("rule")
def tick(self, clock):
    """End the example. Default: nothing."""


@verb("rule", returns=NUMBER)
def renorm(self, clock):
    """A power of two to multiply every row by now. Default: 1.

    For rules that multiply all weights (L2, Pegasos) and keep one scale in the clock. A power of two is
    exact, so the result does not depend on when it is folded into the rows. With projection and lambda =
    1e-6, the scale of Pegasos would otherwise reach 1e-433 in a thousand steps.
    """
    return 1.0


@verb("rule", returns=NUMBER)
def unscaled(self):
    """How many of the last columns of a row `renorm` does not apply to. Default: 0."""
    return 0


@verb("rule", returns=NUMBER)
def shown(self, S, j, w, now):
    """The weight of row j as readers see it, given the settled one `w`. Default: `w`."""
    return w


@verb("rule", returns=TRUTH)
def idle(self, S, j, w, now):
    """Whether row j, with settled weight `w`, is equivalent to a row of zeros. Default: no."""
    return False


@verb("rule", arrays=True)
def relocate(self, S, count, clock):
    """Rebuild references to rows after rows have moved; ``S[:count]`` are in use. Default: nothing."""


@verb("rule", compiled=False)
def place(self, S, rows, w, now):
    """Write `rows`, which are zeros, so that their weights are `w`. Default: not supported.

    For warm starts: `rows` and `w` are arrays, `now` is the clock in the dtype of S.
    """


@verb("rule", compiled=False)
def place_measured(self, S, rows, scale, w, gradient, noise, examples, size, clock):
    """Write `rows`, which are zeros, as passes that led to the weights `w` would. Default: not supported.

    For weights that minimise a penalised loss. As long as `rows` are `scale`, the largest magnitudes of
    values, `gradient`, the derivatives of the sum of losses at `w`, and `noise`, the standard deviations of
    these that an `l1` of 1 stands for. `examples` (n, 2) are the losses and slopes of examples, and `size` is
    their mean size.
    """


@verb("rule", compiled=False)
def sound(self, S, clock, steps):
    """What is wrong with a state loaded from a file, in words, after at most `steps` steps. Default: "".

    Called with arrays of one output. For rules that keep row numbers or counts in S or clock: compiled code
    does not check them.
    """
    return ""


@verb("rule", compiled=False)
def intercept(self):
    """The rule for the intercept. Default: this rule, with PENALTIES at zero and no group.

    It has its own row and clock, so no rule needs to know about the intercept.
    """
    cls = type(self)
    groups = {f: d for f, d in cls._field_defaults.items() if f == "group"}
    return rebuilt(self, **dict.fromkeys(cls.PENALTIES, 0.0), **groups)


# Rules that can be averaged


@verb("rule")
def drift(self, clock, out):
    """Write the change of an untouched weight in one step to `out`, as DRIFTS numbers. Default: by CLOCK.

    A rule whose DRIFTS are not all names of its clock must define it.
    """


@verb("rule", returns=NUMBER)
def area(self, S, j, n, sums, now):
    """Sum of the weight of row j over n examples whose drifts sum to `sums`. Default: n times one weight.

    The weight is zero in all of them or in none; n = 1 gives the weight itself. The default is for rules
    without drifts, or with one, a number of the clock in which weights are linear: it takes their mean.
    """
    return n * weight(self, S, j, now)
