"""Passive-aggressive with a squared slack penalty."""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.registry import part
from thresher.parts.rules.pa import Pa


@part("rule")
class PaIi(NamedTuple):
    """w' = w - f / (|g| |x|^2 + 1 / (2C)) sign(g) x, f the loss and g its slope, times the importance.

    w' minimises |w' - w|^2 / 2 + (C / |g|) max(0, f + g <w' - w, x>)^2. With the hinge loss
    (recommended; `absolute` for regression) |g| is the importance and f the importance times the hinge
    l: tau = l / (|x|^2 + 1 / (2C)), and an importance multiplies C, as in `pa-i`. Other losses are
    replaced by their tangent. The intercept is a feature of value 1.

    Lazy update: none needed.

    Reference: Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (JMLR 2006), section 3, PA-II.

    >>> PaIi(C=0.5).slope_after_margin(0.5, 0.5, -1.0, 1.0, None)
    -0.25
    """

    C: float = 0.3
    SLOTS = ("w",)
    DRIFTS = ()
    LIMITS = {"C": "> 0"}
    weight, size_before_margin, step = Pa.weight, Pa.size_before_margin, Pa.step
    place, idle = Pa.place, Pa.idle

    def slope_after_margin(self, margin, value, slope, size, clock):
        """The sign of the slope times the step length."""
        if slope == 0.0 or value <= 0.0:
            return 0.0
        return math.copysign(value / (abs(slope) * size + 0.5 / self.C), slope)
