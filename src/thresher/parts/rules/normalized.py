"""Updates that do not depend on the scale of a feature."""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.rates import Constant
from thresher.parts.registry import part
from thresher.parts.rules.adagrad_fobos import AdagradFobos
from thresher.parts.rules.sgd import Sgd

W, LARGEST, INVERSE, ROOT = range(4)  # columns of S
TIME, SUM, FACTOR = range(3)  # places in the clock


@part("rule")
class Normalized(NamedTuple):
    """Steps relative to s, the largest |x| of the feature so far, so that rescaling a feature has no effect.

    Before the example predicts: if |x| > s, w *= (s / |x|)^2 and s = |x|. Then N += sum of (x / s)^2
    and w -= eta (t / N) g / s^2. With `adaptive`, w *= s / |x| at a new s, and
    w -= eta sqrt(t / N) g / (s sqrt(sum of g^2)).

    An example without a gradient (zero slope or features) changes nothing; t counts the others. The
    intercept is learned separately, like a feature that occurs alone: s = 1 and t / N = 1. Predictions for
    rows that are not learned use the weights as they are. Small features have large weights, so the state
    is float64.

    Lazy update: none needed.

    Reference: Ross, Mineiro and Langford, Normalized Online Learning (UAI 2013), Algorithm 1 (NG) and
    Algorithm 2 (NAG, `adaptive`).

    >>> Normalized().clock0()  # examples with a gradient, N, eta times t / N or its root
    array([0., 0., 0.])
    """

    eta: float = 0.5
    adaptive: bool = True
    RELATIVE_IMPORTANCE = True
    SLOTS = ("w", "largest", "inverse", "root")
    CLOCK = ("t", "sum", "factor")
    DRIFTS = ()
    LIMITS = {"eta": "> 0"}
    TUNED = {"eta": (0.01, 3.0)}
    DTYPE = "float64"
    weight, idle = Sgd.weight, AdagradFobos.idle  # no gradient yet: the scale must be kept

    def intercept(self):
        """This rule, for a feature that is always 1."""
        return AdagradFobos(self.eta, 0.0, 0.0, 0.0) if self.adaptive else Sgd(Constant(self.eta))

    def meet(self, S, j, w, x, now):
        """The weight after rescaling to x."""
        if abs(x) <= S[j, LARGEST]:
            return w
        ratio = S[j, LARGEST] / abs(x)
        return w * ratio if self.adaptive else w * ratio * ratio

    def size_before_margin(self, S, j, x, now):
        """(x / s)^2, for N."""
        ratio = x * S[j, INVERSE]
        return ratio * ratio if abs(x) <= S[j, LARGEST] else 1.0

    def slope_after_margin(self, margin, value, slope, size, clock):
        """Count the example if it has a gradient."""
        if slope != 0.0 and size > 0.0:
            clock[TIME] += 1.0
            clock[SUM] += size
            ratio = clock[TIME] / clock[SUM]
            clock[FACTOR] = self.eta * (math.sqrt(ratio) if self.adaptive else ratio)
        return slope

    def step(self, S, j, w, x, slope, now):
        """The gradient step at the feature's scale."""
        g = slope * x
        if g == 0.0:
            return
        if abs(x) > S[j, LARGEST]:
            S[j, LARGEST] = abs(x)
            S[j, INVERSE] = 1.0 / S[j, LARGEST]
        move = now[FACTOR] * g * S[j, INVERSE]
        if self.adaptive:
            S[j, ROOT] = math.sqrt(S[j, ROOT] * S[j, ROOT] + g * g)
            S[j, W] = w - move / S[j, ROOT] if S[j, ROOT] > 0.0 else w
        else:
            S[j, W] = w - move * S[j, INVERSE]
