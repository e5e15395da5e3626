"""For rules that scale all weights at once: rows hold v = w / scale, and |w|^2 is updated incrementally."""

from __future__ import annotations

from thresher.engine.compile.jit import scalar

SMALL, LIFT = 2.0**-40, 2.0**40
"""The scale is folded into the rows below SMALL; both are powers of two, so folding is exact."""


@scalar
def norm2_after(norm2, margin, size, move):
    """|w - move x|^2 from |w|^2, <w, x> and |x|^2; never negative, in spite of rounding."""
    return max(norm2 - move * (2.0 * margin - move * size), 0.0)


@scalar
def fold(clock, scale):
    """The factor for all rows if ``clock[scale]`` is below its range, else 1."""
    if clock[scale] >= SMALL:
        return 1.0
    clock[scale] *= LIFT
    return SMALL
