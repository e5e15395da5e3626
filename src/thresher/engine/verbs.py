"""The verbs: each is declared here, once. Its signature is what parts are asked, its body is the default.

The first sentence of a docstring and the one that begins with *Default:* are its line in docs/design.md.
"""

from __future__ import annotations

from thresher.engine.protocol import IN_SPECS, rebuilt, verb

# Losses


@verb("loss", required=True)
def value_slope(self, margin, y):
    """Loss and its derivative in the margin: ``(loss, slope)``."""


@verb("loss")
def link(self, margin):
    """From the margin to what `predict` prints: a probability, a mean. Default: the margin."""
    return margin


@verb("joint loss", required=True, arrays=True)
def values_slopes(self, margins, y, values, slopes):
    """Loss of an example with many outputs, shared out to `values`, and its derivatives to `slopes`."""


@verb("joint loss", arrays=True)
def links(self, margins, out):
    """From the margins of all outputs to what `predict` prints, in `out`. Default: the margins."""
    out[:] = margins


# Step sizes


@verb("rate", required=True)
def at(self, t):
    """Step size of example t = 1, 2, ..."""


@verb("rate")
def steady(self):
    """Whether the step size never changes. Default: no."""
    return False


# Penalties of a feature's weights for all outputs


@verb("group", required=True)
def alone(self, v, owed):
    """What a penalty of strength `owed` leaves of one output's weight."""


@verb("group", required=True, arrays=True)
def together(self, out, owed):
    """What a penalty of strength `owed` leaves of a feature's weights for all outputs, in place."""


@verb("group", required=True, arrays=True)
def dual(self, v):
    """The dual norm of v: at this strength a penalty leaves nothing of it."""


# Rules. One after the other as an example asks them, then what is asked between examples.


@verb("rule", required=True, compiled=False)
def clock0(self):
    """The clock before the first example, an array of float64."""


@verb("rule", compiled=False)
def begin_pass(self, clock, number, S):
    """Pass `number` (from 1) over the same data begins, or goes on after a stop. Default: nothing.

    S holds the rows of one output. Told twice of a pass, it changes nothing.
    """


@verb("rule", required=True)
def weight(self, S, j, now):
    """Weight of row j with all its debts paid; changes nothing."""


@verb("rule", arrays=True)
def couple(self, T, out, now):
    """Settle the weights `out` of one feature for all outputs, whose rows are `T`. Default: nothing.

    Asked where the rule is `grouped`.
    """


@verb("group", "rule")
def grouped(self):
    """Whether the outputs of a feature are always stepped together. Default: no."""
    return False


@verb("rule")
def meet(self, S, j, w, x, now):
    """The weight that an example with value x predicts with, given the settled one. Default: itself."""
    return w


@verb("rule")
def size_before_margin(self, S, j, x, now):
    """What row j adds to the `size` of the example: ``x * x``, ``x V x``, ... Default: 0."""
    return 0.0


@verb("rule")
def note_after_margin(self, margin, importance, value, slope, size, clock):
    """Note in the clock what the steps of an example need to know of it as a whole. Default: nothing.

    Comes before `slope_after_margin`, for the rule and for the intercept's, each with its own clock. `margin`
    is the whole one, intercept included; `value` and `slope` are multiplied by `importance`.
    """


@verb("rule")
def slope_after_margin(self, margin, value, slope, size, clock):
    """The slope to step with, given margin, loss and size of the example. Default: the slope.

    `margin` is without the intercept; `value` and `slope` are multiplied by the importance; `size`
    counts what the intercept adds to it.
    """
    return slope


@verb("rule", required=True)
def step(self, S, j, w, x, slope, now):
    """Write row j: its settled weight `w` after the gradient ``slope * x``."""


@verb("rule")
def outgrown(self, S, j, x, now):
    """Whether x is larger than row j has been measured for, so that its `step` does more. Default: no.

    Asked, with `step_within`, where lanes learn together: what few steps do is then left out of the others.
    """
    return False


@verb("rule")
def step_within(self, S, j, w, x, slope, now):
    """As `step`, of a row that is not `outgrown`. Default: `step`."""
    step(self, S, j, w, x, slope, now)


@verb("rule")
def step_on_sum(self, S, j, w, x, gradient, now):
    """As `step`, once for a batch measured example by example. Default: batches are measured as one.

    A rule that writes it is asked about every example of a batch (`size_before_margin`, `note_after_margin`,
    `slope_after_margin`), then to step on the sum of their gradients; `x` is the largest |x| of those that
    have one. For others a batch is one example of slope 1, which has the summed gradient for features.
    """
    step(self, S, j, w, gradient, S.dtype.type(1), now)


@verb("rule")
def rewrites(self, clock):
    """Whether `constrain` is about to write rows that the example does not touch. Default: no."""
    return False


@verb("rule", arrays=True)
def constrain(self, S, rows, begin, end, clock):
    """After the steps on ``rows[begin:end]``: restore what holds of all rows together. Default: nothing."""


@verb("rule")
def tick(self, clock):
    """End of the example. Default: nothing."""


@verb("rule")
def renorm(self, clock):
    """A power of two that every row is to be multiplied by now. Default: 1."""
    return 1.0


@verb("rule")
def shown(self, S, j, w, now):
    """The weight of row j as it is read, given the settled one. Default: itself."""
    return w


@verb("rule")
def idle(self, S, j, w, now):
    """Whether row j, of settled weight `w`, is as good as a row of zeros. Default: no."""
    return False


@verb("rule", arrays=True)
def relocate(self, S, count, clock):
    """Rows have moved, ``S[:count]`` are in use: rebuild whatever points to rows. Default: nothing."""


@verb("rule", compiled=False)
def place(self, S, rows, w, now):
    """Write `rows`, which are zeros, so that their weights are `w`. Default: no state has a given weight.

    For warm starts: `rows` and `w` are arrays, `now` is the clock in the dtype of S.
    """


@verb("rule", compiled=False)
def sound(self, S, clock, steps):
    """What is wrong with a state from a file, in words, after at most so many steps. Default: "".

    Asked with arrays of one output. For rules that keep places of rows, or counts, in S or clock, which
    compiled code trusts.
    """
    return ""


@verb("rule", compiled=False)
def intercept(self):
    """The rule that the intercept is learned by. Default: this one, PENALTIES at zero and no group."""
    cls = type(self)
    groups = {f: d for f, d in cls._field_defaults.items() if f in IN_SPECS}
    return rebuilt(self, **dict.fromkeys(cls.PENALTIES, 0.0), **groups)


# Rules that can be averaged


@verb("rule")
def drift(self, clock, out):
    """Write what an untouched weight moves by, a number for each of DRIFTS, to `out`. Default: nothing."""


@verb("rule")
def area(self, S, j, n, sums, now):
    """The weights of row j added up over n examples, whose drifts add up to `sums`. Default: n weights.

    None of them is zero unless all are, and n = 1 is the weight itself.
    """
    return n * weight(self, S, j, now)


@verb("rule", arrays=True)
def areas(self, T, out, n, sums, now):
    """As `area`, for all outputs of a feature that `couple` settles. Default: n times what it leaves.

    Exact where as many of them share the largest magnitude all along. Their rows are `T`. To be written
    where there are `couple` and DRIFTS.
    """
    for k in range(out.size):
        out[k] = weight(self, T, k, now)
    couple(self, T, out, now)
    for k in range(out.size):
        out[k] *= n


# What loops keep of the past; for one output clocks are vectors, intercepts numbers, `active` says nothing


@verb("past", arrays=True)
def remember(self, rule, B, bias):
    """A step begins with the weights as they are, and with the intercepts `bias`. Default: nothing."""


@verb("past", arrays=True)
def catch_up(self, row_rule, S, rows, begin, end, active):
    """Rows ``rows[begin:end]`` are about to be stepped for the outputs `active`. Default: nothing."""


@verb("past", arrays=True)
def start_over(self, row_rule, S, c):
    """All rows are about to be rewritten for the outputs of clock c. Default: nothing."""


@verb("past", required=True, arrays=True)
def end_step(self, rule, row_rule, bias_rule, S, clocks, bclocks):
    """Move the clocks on, and fold common scales that leave their range into the rows."""
