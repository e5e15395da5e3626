"""Passive-aggressive with a maximum step."""

from __future__ import annotations

from typing import NamedTuple

from thresher.parts.registry import part
from thresher.parts.rules.pa import Pa


@part("rule")
class PaI(NamedTuple):
    """w' = w - min(C, f / (g^2 |x|^2)) g x, f the loss and g its slope, both times the importance.

    w' minimises |w' - w|^2 / 2 + C max(0, f + g <w' - w, x>). With the hinge loss (recommended;
    `absolute` for regression) this is tau = min(C, l / |x|^2), and an importance multiplies C. Other
    losses are replaced by their tangent. The intercept is a feature of value 1.

    Lazy update: none needed.

    Reference: Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (JMLR 2006), section 3, PA-I.

    >>> PaI(C=0.1).slope_after_margin(0.5, 0.5, -1.0, 2.0, None)
    -0.1
    """

    C: float = 0.3
    SLOTS = ("w",)
    DRIFTS = ()
    LIMITS = {"C": "> 0"}
    weight, size_before_margin, step = Pa.weight, Pa.size_before_margin, Pa.step
    place, idle = Pa.place, Pa.idle

    def slope_after_margin(self, margin, value, slope, size, clock):
        """The slope times tau."""
        area = slope * size
        if area == 0.0:
            return 0.0
        whole = max(value, 0.0) / area
        return whole if abs(whole) < self.C * abs(slope) else self.C * slope
