"""Scalar functions that several rules share.

Rules that scale all weights at once have rows v = w / scale, and update |w|^2 incrementally.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.compile.jit import scalar

_ZERO = np.float32(0)  # a literal would widen a float32


@scalar
def soft(v, a):
    """Soft threshold sign(v) max(|v| - a, 0), the prox of a|.|. A threshold below 0, by rounding, is 0.

    Written as v less its clamp to [-a, a], without a branch.
    """
    a = max(a, _ZERO)
    return v - max(-a, min(v, a))


@scalar
def truncate(v, a, theta):
    """T1(v, a, theta) of Langford, Li and Zhang: soft(v, a) where |v| <= theta, else v."""
    return soft(v, a) if theta == math.inf or abs(v) <= theta else v


@scalar
def receive(w, taken, due):
    """Weight w after the rest of its penalty: `due` in all, of which `taken` (signed) was taken.

    w > 0: max(0, w - (due + taken)); w < 0: min(0, w + (due - taken)). Never |taken| > due.
    """
    return soft(w, due + math.copysign(1, w) * taken)


@scalar
def norm_with(norm, entry, p):
    """The p-norm of a vector of p-norm `norm` and one more entry."""
    entry = abs(entry)
    if p == 1:
        return norm + entry
    if p == 2:
        return math.sqrt(norm * norm + entry * entry)
    top = max(norm, entry)
    if p == math.inf or top == 0:
        return top
    return top * ((norm / top) ** p + (entry / top) ** p) ** (1 / p)


SMALL, LIFT = 2.0**-40, 2.0**40
"""The scale is folded into the rows below SMALL; both are powers of two, so folding is exact."""


@scalar
def norm2_after(norm2, margin, size, move):
    """|w - move x|^2 from |w|^2, <w, x> and |x|^2; never negative, in spite of rounding."""
    return max(norm2 - move * (2.0 * margin - move * size), 0.0)
