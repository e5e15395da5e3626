"""Exponentiated gradient."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

_FAR = 300.0  # an exponent that exceeds the common shift by more changes it
EXPONENT, COUNTED = range(2)  # columns of S
TIME, ETA, SHIFT, TOTAL, ERROR, SCALE = range(6)  # places in the clock


@part("rule")
class Eg(NamedTuple):
    """a_{t+1} = a_t - eta norm g; w = norm (e^a - e^-a) / Z, with Z the sum of all e^a + e^-a: EG+-.

    ||w||_1 stays below `norm`. Without `signed`, w = norm e^a / Z with Z the sum of all e^a: weights are
    positive and sum to `norm`. The sums are over `features` coordinates; those never met have a = 0, and so
    the weight norm / Z. The regret grows with log(features), that of gradient descent with |x|^2.

    Lazy update: the clock holds the common normaliser norm / Z with its rounding error; the exponents share
    a shift, so none overflows. Choose a rate near sqrt(2 log(features)) / (norm max|x| sqrt(t)).

    Known weakness: no weight is ever zero, while `l1-ball` leaves zeros: docs/papers/singer-ball.md.

    Reference: Kivinen and Warmuth (Information and Computation 1997), Figures 2 and 3.

    >>> Eg(norm=2.0, features=4.0).clock0()  # t, eta_t, shift, Z, its rounding error, norm / Z
    array([1.  , 0.5 , 0.  , 8.  , 0.  , 0.25])
    """

    rate: Any = InverseSqrt()
    norm: float = 10.0
    features: float = 1e5
    signed: bool = True
    SLOTS = ("exponent", "counted")
    CLOCK = ("t", "eta", "shift", "total", "error", "scale")
    LIMITS = {"norm": "> 0", "features": "a whole number >= 1"}
    DTYPE = "float64"
    tick, intercept = Sgd.tick, Sgd.intercept

    def clock0(self):
        """T, eta_t, shift, Z e^-shift, its rounding error, norm / that."""
        total = self.features * (2.0 if self.signed else 1.0)
        return np.array([1.0, self.rate.at(1.0), 0.0, total, 0.0, self.norm / total])

    def weight(self, S, j, now):
        up = math.exp(S[j, EXPONENT] - now[SHIFT])
        return now[SCALE] * (up - math.exp(-S[j, EXPONENT] - now[SHIFT]) if self.signed else up)

    def step(self, S, j, w, x, slope, now):
        """The step of the exponent."""
        S[j, EXPONENT] -= now[ETA] * self.norm * slope * x

    def constrain(self, S, rows, begin, end, clock):
        """Add the changes of the exponents to Z."""
        for p in range(begin, end):
            a, before = S[rows[p], EXPONENT], S[rows[p], COUNTED]
            S[rows[p], COUNTED] = a
            size = abs(a) if self.signed else a
            if size - clock[SHIFT] > _FAR:
                factor = math.exp(clock[SHIFT] - size)
                clock[SHIFT], clock[TOTAL], clock[ERROR] = size, clock[TOTAL] * factor, clock[ERROR] * factor
            change = math.exp(a - clock[SHIFT]) - math.exp(before - clock[SHIFT])
            if self.signed:
                change += math.exp(-a - clock[SHIFT]) - math.exp(-before - clock[SHIFT])
            change += clock[ERROR]
            total = clock[TOTAL] + change
            clock[ERROR] = change - (total - clock[TOTAL])
            clock[TOTAL] = total
        clock[SCALE] = self.norm / clock[TOTAL]

    def idle(self, S, j, w, now):
        """Whether the exponent is back at 0, if that means a weight of zero."""
        return self.signed and S[j, EXPONENT] == 0.0 and S[j, COUNTED] == 0.0
