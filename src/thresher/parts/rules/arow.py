"""Adaptive regularisation of weights, with a diagonal covariance."""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.confidence import Q, W, variance
from thresher.parts.registry import part
from thresher.parts.rules.pa import Pa

SPREAD = 0  # the place in the clock


@part("rule")
class Arow(NamedTuple):
    """w' = w - f / (|g| v + r) sign(g) V x, then 1 / V += |g| x^2 / r, for a loss f > 0 with slope g.

    V is the diagonal of variances, initially 1, v = x'Vx; f and g are times the importance. (w', V')
    minimises KL(N(w', V'), N(w, V)) + |g| / (2r) ((f / |g| + sign(g) <w' - w, x>)^2 + x'V'x) over
    diagonal V'. With the hinge loss (recommended) and no importances this is the paper's alpha =
    max(0, 1 - y p) / (v + r); an importance divides r. With `absolute` it is recursive least squares.
    Other losses are replaced by their tangent. The intercept is a feature of value 1.

    Lazy update: none needed. A row holds w and q = 1 / V - 1.

    Reference: Crammer, Kulesza and Dredze (NIPS 2009), Figure 1; the covariance is the exact
    minimiser over diagonal matrices.

    >>> Arow(r=1.0).slope_after_margin(0.0, 1.0, -1.0, 3.0, None)
    -0.25
    """

    r: float = 1.0
    SLOTS = ("w", "q")
    CLOCK = ("spread",)
    DRIFTS = ()
    LIMITS = {"r": "> 0"}
    weight, place = Pa.weight, Pa.place

    def size_before_margin(self, S, j, x, now):
        """The terms of x'Vx."""
        return x * x * variance(S, j)

    def note_after_margin(self, margin, importance, value, slope, size, clock):
        """Set the growth of the inverse variances."""
        clock[SPREAD] = abs(slope) / self.r

    def slope_after_margin(self, margin, value, slope, size, clock):
        """The sign of the slope times alpha."""
        if slope == 0.0 or value <= 0.0:
            return 0.0
        return math.copysign(value / (abs(slope) * size + self.r), slope)

    def step(self, S, j, w, x, slope, now):
        """Update the mean, then the variance."""
        S[j, W] = w - slope * x * variance(S, j)
        S[j, Q] += now[SPREAD] * x * x

    def idle(self, S, j, w, now):
        """Whether the variance is still the initial one."""
        return w == 0.0 and S[j, Q] == 0.0
