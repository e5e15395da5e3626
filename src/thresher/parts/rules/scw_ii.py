"""Soft confidence-weighted learning with a squared penalty, with a diagonal covariance."""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.confidence import multiplier, precision
from thresher.parts.registry import part
from thresher.parts.rules.cw import Cw

K, ALPHA, PHI = range(3)  # places in the clock


@part("rule")
class ScwIi(NamedTuple):
    """The step of `cw`, up to y <w', x> = phi sqrt(x'V'x) - alpha / (2C) (SCW-II).

    (w', V') minimises KL(N(w', V'), N(w, V)) + C max(0, phi sqrt(x'V'x) - y <w', x>)^2; an importance
    multiplies C. As in `cw`, only the diagonal of the inverse covariance matrix is kept, and only the
    sign of the loss's slope is used: use the loss `logistic`. Not for regression.

    Lazy update: none needed. A row holds w and q = 1 / V - 1.

    Reference: Wang, Zhao and Hoi (ICML 2012), SCW-II, Proposition 2.

    >>> ScwIi(C=0.5, eta=0.9).clock0().round(3)  # k, alpha, phi
    array([0.   , 0.   , 1.282])
    """

    C: float = 1.0
    eta: float = 0.9
    SLOTS = ("w", "q")
    CLOCK = ("k", "alpha", "phi")
    DRIFTS = ()
    LIMITS = {"C": "> 0", "eta": "in (0.5, 1)"}
    clock0, weight, size_before_margin = Cw.clock0, Cw.weight, Cw.size_before_margin
    place, slope_after_margin, step, idle = Cw.place, Cw.slope_after_margin, Cw.step, Cw.idle

    def note_after_margin(self, margin, importance, value, slope, size, clock):
        """Alpha and k."""
        if slope == 0.0:
            return
        m, v = -margin * math.copysign(1.0, slope), 1.0 * size
        clock[ALPHA] = multiplier(m, v, v + 0.5 / (self.C * importance), clock[PHI])
        clock[K] = precision(clock[ALPHA], v, clock[PHI])
