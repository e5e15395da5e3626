"""Step sizes for a rule that measures features and targets, and when it forgets a row.

`rules.ft_ftrl` gives the formulas. Its clock begins with `PLACES`.
"""

from __future__ import annotations

import math

from thresher.engine.jit import scalar

COUNT, SQUARES, LENGTHS, DRIFT, SPREAD, GROWTH, RATE, INVERSE = range(8)
PLACES = ("t", "squares", "lengths", "drift", "spread", "h", "eta", "inverse")
_FEW = 20.0
"""A model with fewer examples than this for each weight is crowded."""
_MOST = 4.0
"""The step size stays within e^-4 and e^4 of the one that `alpha` says."""


@scalar
def measure(alpha, value, slope, size, clock):
    """Count an example with a gradient: t, N, L, and the step size with the h of before, and 1 over it."""
    if slope != 0.0 and size > 0.0:
        length = value / slope if value > 0.0 else slope
        clock[COUNT] += 1.0
        clock[SQUARES] += size
        clock[LENGTHS] += length * length
        plain = alpha * math.sqrt(clock[LENGTHS] / clock[SQUARES])
        clock[RATE] = plain * math.exp(clock[GROWTH])
        clock[INVERSE] = 1.0 / clock[RATE]


@scalar
def adapt_steps(adapt, moved, clock):
    """Set h from slope times margin: do longer steps pay?"""
    clock[DRIFT] += moved
    clock[SPREAD] += moved * moved
    if clock[SPREAD] > 0.0:
        growth = -adapt * clock[DRIFT] / math.sqrt(clock[SPREAD])
        clock[GROWTH] = min(max(growth, -_MOST), _MOST)


def damp(ratio, live, clock):
    """Divide the step size of a new pass by ratio^(q / 2), q = min(1, 20 live / t); returns the divisor."""
    crowded = min(1.0, _FEW * live / clock[COUNT]) if clock[COUNT] > 0.0 else 0.0
    divisor = math.sqrt(ratio) ** crowded
    clock[GROWTH] -= math.log(divisor)
    return divisor


@scalar
def inverse_of(x):
    """1 / |x| within float32: a feature that is never above 1e-38 is measured as if it were that once."""
    return min(1.0 / float(abs(x)), 1e38)


@scalar
def forgotten(forget, w, met, time):
    """Whether a coordinate is as good as new: no weight, and no gradient in so many examples."""
    return forget > 0.0 and w == 0.0 and time - met > forget
