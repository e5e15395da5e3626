"""Rules that multiply all weights at once: rows hold v = w / scale, and the norm of w is kept up to date."""

from __future__ import annotations

from thresher.engine.jit import scalar

SMALL, LIFT = 2.0**-40, 2.0**40
"""Where the scale is folded into the rows: both powers of two, so that folding is exact."""


@scalar
def norm2_after(norm2, margin, size, move):
    """|w - move x|^2 from |w|^2, <w, x> and |x|^2; rounding never takes it below zero."""
    return max(norm2 - move * (2.0 * margin - move * size), 0.0)


@scalar
def fold(clock, scale):
    """The factor for all rows when ``clock[scale]`` leaves its range, 1 otherwise."""
    if clock[scale] >= SMALL:
        return 1.0
    clock[scale] *= LIFT
    return SMALL
