"""Step sizes for a rule that measures features and targets, and when it forgets a row.

`rules.ft_ftrl` gives the formulas. Its clock begins with `PLACES`.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.jit import scalar

PLACES = (
    *("t", "squares", "lengths", "slopes", "drift", "spread", "h", "per rho", "kappa", "inverse"),
    *("threshold", "floor"),
)
COUNT, SQUARES, LENGTHS, SLOPES, DRIFT, SPREAD, GROWTH, PER_LENGTH, FACTOR, INVERSE, THRESHOLD, FLOOR = range(
    12
)
_FEW = 5.0
"""A model with fewer examples than this for each feature is crowded."""
_WIDEST = 1e38
"""1 / s stays within float32: a feature that is never above 1e-38 is measured as if it were that once."""
_MOST = 4.0
"""The step size stays within e^-4 and e^4 of the one that `alpha` says."""


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


def damp(ratio, forget, S, time, clock):
    """For a new pass multiply threshold and divide kappa by ratio^(q / 2), q = min(1, 5 features / t)."""
    crowded = min(1.0, _FEW * _met(forget, S, time) / clock[COUNT]) if clock[COUNT] > 0.0 else 0.0
    factor = math.sqrt(ratio) ** crowded
    clock[GROWTH] -= math.log(factor)
    clock[THRESHOLD] *= factor


@scalar
def forgotten(forget, S, j, time):
    """Whether row j, (v, z, root, a, inverse, met), has no weight and no gradient in so many examples."""
    return forget > 0.0 and S[j, 0] == 0.0 and time - S[j, 5] > forget


def _met(forget, S, time):
    """How many rows have had a gradient and are not forgotten."""
    old = (S[:, 0] == 0.0) & (S.dtype.type(time) - S[:, 5] > forget) if forget > 0.0 else False
    return np.count_nonzero((S[:, 4] > 0.0) & np.logical_not(old))


@scalar
def rescale(S, j, x):
    """Measure row j against |x|, which is larger than all before, or the first."""
    inverse = min(1.0 / float(abs(x)), _WIDEST)
    ratio = inverse / S[j, 4] if S[j, 4] > 0.0 else 0.0
    S[j, 1], S[j, 2], S[j, 3], S[j, 4] = S[j, 1] * ratio, S[j, 2] * ratio, S[j, 3] * ratio, inverse
