"""The default: nothing to scale, nothing to tune."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thresher.engine.registry import part
from thresher.parts.measured import INVERSE, PLACES, RATE, adapt_steps, damp, forgotten, inverse_of, measure
from thresher.parts.prox import soft

PASS, THRESHOLD, TIME = range(len(PLACES), len(PLACES) + 3)


@part("rule")
class FtFtrl(NamedTuple):
    """FTRL-Proximal with a frequency-aware threshold, on features and targets of any scale.

    With s the largest |x| of the feature so far (z and sqrt(n) *= s / |x| when |x| is larger) and
    g = slope x / s: n += g^2, z += g - (sqrt(n) - sqrt(n_old)) s w / eta, and
    w = -soft(z, l1 sqrt(n)) eta / (s sqrt(n)).

    For a feature that says nothing z is a sum of noise whose standard deviation is sqrt(n): `l1` counts
    standard deviations, so it means the same for two hundred rows and for two billion.

    The step size is eta = alpha L sqrt(t / N) exp(h). L is the root mean square of loss / slope over the
    examples: how far a margin is from where the tangent of its loss reaches zero, which is about 1 for
    logistic loss, half the error for squared loss, the error for absolute loss (the slope itself where
    the loss is not above zero). So targets may be in thousandths or in millions. t counts the examples with a
    gradient, N is the sum of their (x / s)^2, with 1 for the intercept. While the first pass lasts
    h = -adapt U / sqrt(V), within -4 and 4, with U the sum of u = slope times margin (without the
    intercept) over the examples before, and V the sum of u^2: where longer steps would have done
    better on the whole, steps become longer.

    A later pass brings no new evidence, but z grows by p in p passes and sqrt(n) by sqrt(p) alone; and a
    model with many weights for its examples memorises them. At the start of pass p the threshold is
    multiplied and eta divided by (p / (p - 1))^(q / 2), where q = min(1, 20 live / t) and `live` is the
    number of weights that are not zero: with fewer than twenty examples a weight, by all of it.

    An example without a gradient changes none of this. The intercept is a feature that is always 1, with
    l1 = adapt = 0. Prediction uses the weights as they are.

    With `forget` above 0, a coordinate whose weight is zero and that had no gradient in the last `forget`
    examples is as new when it is met again, and its row is free until then.

    Owed by an untouched coordinate: nothing, since w depends on its own z, n and s, at its last step. The
    row holds v = s w and 1 / s: a larger |x| leaves v as it is, and a step takes one root and one quotient.

    Reference: McMahan et al., Ad Click Prediction (KDD 2013), Algorithm 1; the threshold by Oiwa, Matsushima
    and Nakagawa, Frequency-aware Truncated Methods (ECML PKDD 2011), equation 9 with p = 2; s, t and N by
    Ross, Mineiro and Langford, Normalized Online Learning (UAI 2013), Algorithm 2. Their union, L and h
    are this project's: docs/default.md.

    >>> FtFtrl(alpha=0.5).SLOTS
    ('v', 'z', 'root', 'inverse', 'met')
    """

    alpha: float = 3.0
    l1: float = 1.25
    adapt: float = 0.3
    forget: float = 0.0
    SLOTS = ("v", "z", "root", "inverse", "met")
    CLOCK = (*PLACES, "pass", "threshold", "time")
    DRIFTS = ()
    PENALTIES = ("l1",)
    LIMITS = {"alpha": "> 0"}

    def intercept(self):
        """The same without a threshold, at the plain step size."""
        return FtFtrl(self.alpha, 0.0, 0.0, 0.0)

    def clock0(self):
        """The first pass begins."""
        return np.array([*[0.0] * PASS, 1.0, self.l1, 1.0])

    def begin_pass(self, clock, number, live):
        """The threshold and the step size of pass `number`, from 1, which `live` weights begin."""
        if number > clock[PASS]:
            clock[THRESHOLD] *= damp(number / clock[PASS], live, clock)
            clock[PASS] = number

    def weight(self, S, j, now):
        """Weight of row j."""
        return S[j, 0] * S[j, 3]

    def meet(self, S, j, w, x, now):
        """The weight at the scale that x makes."""
        size = abs(x) * S[j, 3]
        return w / size if size > S.dtype.type(1) else w

    def gauge(self, S, j, x, now):
        """(x / s)^2, for N."""
        ratio, one = x * S[j, 3], S.dtype.type(1)
        if S[j, 3] == 0.0 or forgotten(self.forget, S[j, 0], S[j, 4], now[TIME]):
            return one if x != 0.0 else ratio
        return min(ratio * ratio, one)

    def assess(self, margin, importance, value, slope, size, clock):
        """Measure the example."""
        measure(self.alpha, value, slope, size, clock)

    def gain(self, margin, value, slope, size, clock):
        """Adapt the length of the steps to come, in the first pass."""
        if self.adapt > 0.0 and clock[PASS] == 1.0:
            adapt_steps(self.adapt, slope * margin, clock)
        return slope

    def tick(self, clock):
        """One more example."""
        clock[TIME] += 1.0

    def step(self, S, j, w, x, slope, now):
        """The scale of the feature, its gradient there, then w anew."""
        if slope * x == 0.0 or now[RATE] == 0.0:
            return
        if forgotten(self.forget, S[j, 0], S[j, 4], now[TIME]):
            S[j, 1] = S[j, 2] = S[j, 3] = 0.0
        if S[j, 3] == 0.0 or abs(x) * S[j, 3] > S.dtype.type(1):
            ratio = inverse_of(x) / S[j, 3] if S[j, 3] > 0.0 else 0.0
            S[j, 1], S[j, 2], S[j, 3] = S[j, 1] * ratio, S[j, 2] * ratio, inverse_of(x)
        g = slope * (x * S[j, 3])
        root = math.sqrt(S[j, 2] * S[j, 2] + g * g)
        if root > 0.0:
            z = S[j, 1] + g - (root - S[j, 2]) * S[j, 0] * now[INVERSE]
            S[j, 0] = -soft(z, now[THRESHOLD] * root) * now[RATE] / root
            S[j, 1], S[j, 2], S[j, 4] = z, root, now[TIME]

    def idle(self, S, j, w, now):
        """No gradient yet, or forgotten."""
        return S[j, 3] == 0.0 or forgotten(self.forget, S[j, 0], S[j, 4], now[TIME])
