"""Confidence-weighted learning, with a diagonal covariance; soft, and soft with a squared penalty."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from thresher.parts.confidence import multiplier, precision
from thresher.parts.registry import part
from thresher.parts.rules.arow import Arow

K, ALPHA, PHI = range(3)  # places in the clock


@part("rule")
class Cw(NamedTuple):
    """w' = w + alpha y V x, then 1 / V += k x^2, so that y <w', x> = phi sqrt(x'V'x), phi = Phi^-1(eta).

    V is the diagonal of variances, initially 1. With p = <w, x> and v = x'Vx, alpha and k = alpha phi /
    sqrt(u) give the smallest change in Kullback-Leibler divergence after which the example is classified
    correctly with probability eta; u is the variance x'V'x of the full matrix V', of whose inverse only
    the diagonal is kept. Nothing changes if y p >= phi sqrt(v).

    Only the sign of the loss's slope is used, as y = -sign(slope): use a loss whose slope reveals the
    label at every margin, such as `logistic`. An example with slope 0 is not learned; an importance has
    no effect unless it is 0. Losses for regression are accepted but make no sense: they push margins past
    zero, to the side of the prediction on which the label lies. The intercept is a feature of value 1.

    Lazy update: none needed. A row holds w and q = 1 / V - 1, in float64, because a mistake roughly
    squares the variance of the margin.

    Known weakness: for the same reason, wrong labels soon make all variances vanish, and learning stops
    (below x'Vx = 2^-100); use `scw` or `arow` for noisy labels.

    Reference: Crammer, Dredze and Pereira (NIPS 2008), the convex constraint on the standard
    deviation; Dredze, Crammer and Pereira (ICML 2008).

    >>> Cw(eta=0.9).clock0().round(3)  # k, alpha, phi
    array([0.   , 0.   , 1.282])
    """

    eta: float = 0.9
    RELATIVE_IMPORTANCE = True
    SLOTS = ("w", "q")
    CLOCK = ("k", "alpha", "phi")
    DRIFTS = ()
    LIMITS = {"eta": "in (0.5, 1)"}
    DTYPE = "float64"
    weight, place, size_before_margin = Arow.weight, Arow.place, Arow.size_before_margin
    step, idle = Arow.step, Arow.idle

    def clock0(self):
        """K and alpha of the example, Phi^-1(eta)."""
        return np.array([0.0, 0.0, NormalDist().inv_cdf(self.eta)])

    def note_after_margin(self, margin, importance, value, slope, size, clock):
        """Alpha and k."""
        m, v = -margin * math.copysign(1.0, slope), 1.0 * size
        clock[ALPHA] = multiplier(m, v, v, clock[PHI])
        clock[K] = precision(clock[ALPHA], v, clock[PHI])

    def slope_after_margin(self, margin, value, slope, size, clock):
        return math.copysign(clock[ALPHA], slope) if slope != 0.0 else 0.0


@part("rule")
class Scw(NamedTuple):
    """The step of `cw` with alpha <= C, which limits the effect of a wrong label (SCW-I).

    (w', V') minimises KL(N(w', V'), N(w, V)) + C max(0, phi sqrt(x'V'x) - y <w', x>); an importance
    multiplies C. As in `cw`, only the diagonal of the inverse covariance matrix is kept, and only the
    sign of the loss's slope is used: use the loss `logistic`. Not for regression.

    Lazy update: none needed. A row holds w and q = 1 / V - 1.

    Reference: Wang, Zhao and Hoi (ICML 2012), SCW-I, Proposition 1.

    >>> Scw(C=0.5, eta=0.9).clock0().round(3)  # k, alpha, phi
    array([0.   , 0.   , 1.282])
    """

    C: float = 1.0
    eta: float = 0.9
    SLOTS, CLOCK, DRIFTS = Cw.SLOTS, Cw.CLOCK, Cw.DRIFTS
    LIMITS = {"C": "> 0", "eta": "in (0.5, 1)"}
    clock0, weight, size_before_margin = Cw.clock0, Cw.weight, Cw.size_before_margin
    place, slope_after_margin, step, idle = Cw.place, Cw.slope_after_margin, Cw.step, Cw.idle

    def note_after_margin(self, margin, importance, value, slope, size, clock):
        """Alpha and k."""
        m, v = -margin * math.copysign(1.0, slope), 1.0 * size
        clock[ALPHA] = min(self.C * importance, multiplier(m, v, v, clock[PHI]))
        clock[K] = precision(clock[ALPHA], v, clock[PHI])


@part("rule")
class ScwIi(Scw):
    """The step of `cw`, up to y <w', x> = phi sqrt(x'V'x) - alpha / (2C) (SCW-II).

    (w', V') minimises KL(N(w', V'), N(w, V)) + C max(0, phi sqrt(x'V'x) - y <w', x>)^2; an importance
    multiplies C. As in `cw`, only the diagonal of the inverse covariance matrix is kept, and only the
    sign of the loss's slope is used: use the loss `logistic`. Not for regression.

    Lazy update: none needed. A row holds w and q = 1 / V - 1.

    Reference: Wang, Zhao and Hoi (ICML 2012), SCW-II, Proposition 2.

    >>> ScwIi(C=0.5, eta=0.9).clock0().round(3)  # k, alpha, phi
    array([0.   , 0.   , 1.282])
    """

    def note_after_margin(self, margin, importance, value, slope, size, clock):
        """Alpha and k."""
        if slope == 0.0:
            return
        m, v = -margin * math.copysign(1.0, slope), 1.0 * size
        clock[ALPHA] = multiplier(m, v, v + 0.5 / (self.C * importance), clock[PHI])
        clock[K] = precision(clock[ALPHA], v, clock[PHI])
