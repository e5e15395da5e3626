"""Step sizes for a rule that measures features and targets, and when it forgets a row.

`rules.ft_ftrl` gives the formulas. Its clock begins with `PLACES`.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.jit import helper, scalar
from thresher.engine.verbs import dual, grouped, step_within, together
from thresher.parts.registry import SpecError

PLACES = (
    *("t", "squares", "lengths", "slopes", "drift", "spread", "h", "per rho", "kappa", "inverse"),
    *("threshold", "floor", "pass", "time"),
)
COUNT, SQUARES, LENGTHS, SLOPES, DRIFT, SPREAD, GROWTH, PER_LENGTH, FACTOR, INVERSE = range(10)
THRESHOLD, FLOOR, PASS, TIME = range(10, 14)
_FEW = 5.0
"""A model with fewer examples than this for each feature is crowded."""
_WIDEST = 1e38
"""1 / s stays within float32: a feature that is never above 1e-38 is measured as if it were that once."""
_MOST = 4.0
"""The step size stays within e^-4 and e^4 of the one that `alpha` says."""


def begin(l1, forget, group, length):
    """The clock, of so many places, at the first example. SpecError for a group that forgets."""
    if forget > 0.0 and grouped(group):
        raise SpecError("ft-ftrl: forget does not work with a group; leave out one of them")
    clock = np.zeros(length)
    clock[THRESHOLD], clock[PASS], clock[TIME] = l1, 1.0, 1.0
    return clock


@scalar
def measure(alpha, value, slope, size, clock):
    """Count an example with a gradient: t, N, L, G; 1 / rho, kappa with the h of before, and 1 over both."""
    if slope != 0.0 and size > 0.0:
        length = value / slope if value > 0.0 else slope
        clock[COUNT] += 1.0
        clock[SQUARES] += size
        clock[LENGTHS] += length * length
        clock[SLOPES] += slope * slope
        clock[PER_LENGTH] = 1.0 / (alpha * math.sqrt(clock[LENGTHS] / clock[COUNT]))
        clock[FACTOR] = math.sqrt(clock[COUNT] / clock[SQUARES]) * math.exp(clock[GROWTH])
        clock[INVERSE] = clock[PER_LENGTH] / clock[FACTOR]
        clock[FLOOR] = clock[THRESHOLD] * math.sqrt(clock[SLOPES] / clock[COUNT])


@scalar
def adapt_steps(adapt, moved, clock):
    """Set h from slope times margin: do longer steps pay?"""
    if adapt > 0.0 and moved * moved > 0.0:
        clock[DRIFT] += moved
        clock[SPREAD] += moved * moved
        growth = -adapt * clock[DRIFT] / math.sqrt(clock[SPREAD])
        clock[GROWTH] = min(max(growth, -_MOST), _MOST)


def place(self, S, rows, w, now):
    """Features that are not measured yet: v = -w, at a scale of -1. There are none for a group."""
    if grouped(self.group):
        raise SpecError("ft-ftrl: weights cannot be placed where there is a group")
    S[rows, 0], S[rows, 4] = 0.0 - w, 0.0 - (w != 0.0)


def begin_pass(number, forget, S, clock):
    """Multiply the threshold, divide kappa by (p / old)^(q / 2) in pass p, q = min(1, 5 met / t)."""
    if number <= clock[PASS]:
        return
    met = _met(forget, S, clock[TIME])
    crowded = min(1.0, _FEW * met / clock[COUNT]) if clock[COUNT] > 0.0 else 0.0
    factor = math.sqrt(number / clock[PASS]) ** crowded
    clock[GROWTH] -= math.log(factor)
    clock[THRESHOLD] *= factor
    clock[PASS] = number


@scalar
def forgotten(forget, S, j, time):
    """Whether row j, (v, z, root, a, inverse, met), has no weight and no gradient in so many examples."""
    return forget > 0.0 and S[j, 0] == 0.0 and time - S[j, 5] > forget


@helper
def shrink_together(group, T, out):
    """The prox of a group norm on z of each output, as strong as their thresholds; then weights to `out`.

    Outputs are weighed by what they gathered: one whose slopes are next to nothing decides next to nothing.
    """
    if not grouped(group):
        return
    held = np.empty(out.size, out.dtype)
    for k in range(out.size):
        out[k], held[k] = T[k, 0] * T[k, 3], T[k, 5] * T[k, 3]
    together(group, out, dual(group, held))
    for k in range(out.size):
        if T[k, 3] > 0.0:
            out[k] *= T[k, 4] / T[k, 3]


def _met(forget, S, time):
    """How many rows have had a gradient and are not forgotten."""
    old = (S[:, 0] == 0.0) & (S.dtype.type(time) - S[:, 5] > forget) if forget > 0.0 else False
    return np.count_nonzero((S[:, 4] > 0.0) & np.logical_not(old))


def sound(self, S, clock, steps):
    """What is wrong with what was measured in `steps` examples, in words; "" if nothing. Plain Python."""
    measured = np.delete(clock[: len(PLACES)], (DRIFT, GROWTH))
    if not (measured >= 0.0).all():
        return "what is measured is not negative"
    if not (clock[PASS] >= 1.0 and clock[COUNT] <= steps and 1.0 <= clock[TIME] <= steps + 1):
        return f"passes count from 1, examples up to {steps}"
    return "" if (S[:, 2:4] >= 0.0).all() else "sums of squares are not negative"


@scalar
def share(forget, S, j, x, time):
    """(x / s)^2, where s is at least |x|."""
    ratio, one = x * S[j, 4], S.dtype.type(1)
    if S[j, 4] <= 0.0 or forgotten(forget, S, j, time):
        return one if x != 0.0 else ratio
    return min(ratio * ratio, one)


def outgrown(self, S, j, x, now):
    """Whether |x| is larger than all that row j has met, or the first; without branches for the others."""
    over = (S[j, 4] <= 0.0) | (abs(x) * S[j, 4] > S.dtype.type(1)) | forgotten(self.forget, S, j, now[TIME])
    return over & (x != 0.0) & (now[INVERSE] != 0.0)


def step(self, S, j, w, x, slope, now):
    """Measure row j anew where it is outgrown, then step it."""
    if slope == 0.0 or x == 0.0 or now[INVERSE] == 0.0:
        return
    rescale(self.forget, S, j, x, now)
    step_within(self, S, j, w, x, slope, now)


def step_on_sum(self, S, j, w, x, gradient, now):
    """Measure row j anew where one of the examples has outgrown it, then step it."""
    if gradient == 0.0 or x == 0.0 or now[INVERSE] == 0.0:
        return
    rescale(self.forget, S, j, x, now)
    step_within(self, S, j, w, gradient, S.dtype.type(1), now)


@scalar
def rescale(forget, S, j, x, now):
    """Measure row j against |x| if that is larger than all before, or the first."""
    if forgotten(forget, S, j, now[TIME]):
        S[j, 4] = 0.0
    if S[j, 4] <= 0.0 or abs(x) * S[j, 4] > S.dtype.type(1):
        inverse = min(1.0 / float(abs(x)), _WIDEST)
        if S[j, 4] < 0.0:
            give_evidence(S, j, S[j, 0] * S[j, 4] / inverse, now)
            S[j, 4] = inverse
        else:
            ratio = inverse / S[j, 4] if S[j, 4] > 0.0 else 0.0
            S[j, 1], S[j, 2], S[j, 3], S[j, 4] = S[j, 1] * ratio, S[j, 2] * ratio, S[j, 3] * ratio, inverse


@scalar
def give_evidence(S, j, v, now):
    """Row j with v = s w as the fewest gradients leave it: q^2 of one sign, each as large as slopes are (G).

    q - l1 (1 + 1 / q) = |v| / (rho kappa) says how many. A given weight has less behind it at least: without
    any its first gradient would be as large a step as that of a feature never met.
    """
    l1, usual = now[THRESHOLD], math.sqrt(now[SLOPES] / now[COUNT])
    wanted = abs(v) * now[INVERSE] + l1
    q = (wanted + math.sqrt(wanted * wanted + 4.0 * l1)) / 2.0
    S[j, 0], S[j, 1] = v, -math.copysign(q * q * usual, v)
    S[j, 2], S[j, 3] = q * usual, q * usual * now[PER_LENGTH]
