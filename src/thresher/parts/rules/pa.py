"""Passive-aggressive: `pa`; with a maximum step, `pa-i`; with a squared slack penalty, `pa-ii`."""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd, W


@part("rule")
class Pa(NamedTuple):
    """w' = w - eta l / (s^2 |x|^2) s x, l the loss and s its slope: with eta = 1, s <w' - w, x> = -l.

    With the hinge loss (recommended; `absolute` for regression) this is tau = l / |x|^2, the smallest
    change after which the example has no loss. Other losses are replaced by their tangent. An
    importance has no effect unless it is 0. The intercept is a feature of value 1 and counts in |x|^2.

    Lazy update: none needed.

    Known weakness: a wrong label is learned as fully as a right one; see `pa-i` and `pa-ii`. On the
    topics of RCV1 it makes the most errors of four rules on three of four: docs/papers/singer-topics.md.
    And a loss of 0 changes nothing: with the loss `perceptron`, zero weights never change.

    Reference: Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (JMLR 2006), Figure 1; `eta` is the
    relaxation of Agmon (1954).

    >>> Pa().slope_after_margin(0.5, 0.5, -1.0, 2.0, None)  # half the loss, since |x|^2 = 2
    -0.25
    """

    eta: float = 1.0
    RELATIVE_IMPORTANCE = True
    SLOTS = ("w",)
    DRIFTS = ()
    LIMITS = {"eta": "> 0"}
    weight, place, idle = Sgd.weight, Sgd.place, Sgd.idle

    def size_before_margin(self, S, j, x, now):
        return x * x

    def slope_after_margin(self, margin, value, slope, size, clock):
        area = slope * size
        return self.eta * max(value, 0.0) / area if area != 0.0 else 0.0

    def step(self, S, j, w, x, slope, now):
        S[j, W] = w - slope * x


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
    SLOTS, DRIFTS = Pa.SLOTS, Pa.DRIFTS
    LIMITS = {"C": "> 0"}
    weight, size_before_margin, step = Pa.weight, Pa.size_before_margin, Pa.step
    place, idle = Pa.place, Pa.idle

    def slope_after_margin(self, margin, value, slope, size, clock):
        area = slope * size
        if area == 0.0:
            return 0.0
        whole = max(value, 0.0) / area
        return whole if abs(whole) < self.C * abs(slope) else self.C * slope


@part("rule")
class PaIi(PaI):
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

    def slope_after_margin(self, margin, value, slope, size, clock):
        """The sign of the slope times the step length."""
        if slope == 0.0 or value <= 0.0:
            return 0.0
        return math.copysign(value / (abs(slope) * size + 0.5 / self.C), slope)
