"""Step sizes for a rule that measures features and targets, and when it forgets a row.

`rules.ft_ftrl` gives the formulas. Its clock begins with `PLACES`.
"""

from __future__ import annotations

import math

from thresher.engine.jit import scalar

COUNT, SQUARES, LENGTHS, DRIFT, SPREAD, GROWTH, RATE = range(7)
PLACES = ("t", "squares", "lengths", "drift", "spread", "h", "eta")
_MOST = 4.0
"""The step size stays within e^-4 and e^4 of the one that `alpha` says."""


@scalar
def measure(alpha, value, slope, size, clock):
    """Count an example with a gradient: t, N, L, and the step size with the h of before."""
    if slope != 0.0 and size > 0.0:
        length = value / slope if value > 0.0 else slope
        clock[COUNT] += 1.0
        clock[SQUARES] += size
        clock[LENGTHS] += length * length
        plain = alpha * math.sqrt(clock[LENGTHS] / clock[SQUARES])
        clock[RATE] = plain * math.exp(clock[GROWTH])


@scalar
def adapt_steps(adapt, moved, clock):
    """Set h from slope times margin: do longer steps pay?"""
    clock[DRIFT] += moved
    clock[SPREAD] += moved * moved
    if clock[SPREAD] > 0.0:
        growth = -adapt * clock[DRIFT] / math.sqrt(clock[SPREAD])
        clock[GROWTH] = min(max(growth, -_MOST), _MOST)


def damp_steps(ratio, live, clock):
    """Divide the step size of a new pass by ratio^q, q = min(1, live weights / examples)."""
    if clock[COUNT] > 0.0:
        clock[GROWTH] -= min(1.0, live / clock[COUNT]) * math.log(ratio)


@scalar
def forgotten(forget, w, met, time):
    """Whether a coordinate is as good as new: no weight, and no gradient in so many examples."""
    return forget > 0.0 and w == 0.0 and time - met > forget
