"""Scalar functions without state that several rules share."""

from __future__ import annotations

import math

from thresher.engine.jit import scalar


@scalar
def soft(v, a):
    """Soft threshold sign(v) max(|v| - a, 0), the prox of a|.|; a >= 0.

    Written as v less its clamp to [-a, a]: no branch, and no literal that would widen a float32.
    """
    return v - max(-a, min(v, a))


@scalar
def truncate(v, a, theta):
    """T1(v, a, theta) of Langford, Li and Zhang: soft(v, a) where |v| <= theta, else v."""
    return soft(v, a) if theta == math.inf or abs(v) <= theta else v
