"""AdaGrad by composite mirror descent, with L1, L2 or both."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thresher.engine.registry import part


@part("rule")
class AdagradFobos(NamedTuple):
    """w_{t+1} = soft(w_t - eta g / a, eta l1 / a) / (1 + eta l2 / a), a = delta + sqrt(sum of g^2).

    A coordinate with few or small gradients keeps a large step: rare features are learned as fast as
    frequent ones.

    Owed by a coordinate untouched for n steps: its a stands still, so the penalty is the same each
    time. With l2 = 0 it is n eta l1 / a. Else, with c = 1 / (1 + eta l2 / a), n steps take |w| to
    c^n (|w| + l1 / l2) - l1 / l2, stopping at zero. Steps are counted, so the state is float64.

    Reference: Duchi, Hazan and Singer (JMLR 2011), composite mirror descent with a diagonal
    matrix, section 5.1; its lazy form there.

    >>> AdagradFobos().clock0()  # steps so far
    array([0.])
    """

    eta: float = 0.5
    l1: float = 1e-5
    l2: float = 0.0
    delta: float = 1e-3
    SLOTS = ("w", "root", "scale", "paid")
    CLOCK = ("steps",)
    PENALTIES = ("l1", "l2")
    LIMITS = {"eta": "> 0"}
    DTYPE = "float64"

    def clock0(self):
        """Steps so far."""
        return np.zeros(1)

    def weight(self, S, j, now):
        """Settled weight of row j; `scale` is eta / a, zero in a new row."""
        w, n, scale = S[j, 0], now[0] - S[j, 3], S[j, 2]
        if w == 0.0:
            return w
        if self.l2 == 0.0:
            left = abs(w) - n * self.l1 * scale
        else:
            ratio = self.l1 / self.l2
            left = abs(w) + math.expm1(-n * math.log1p(self.l2 * scale)) * (abs(w) + ratio)
        return math.copysign(max(left, 0.0), w)

    def step(self, S, j, w, x, slope, now):
        """Add the gradient to the root of squares, then step; this example's penalty is owed."""
        g = slope * x
        S[j, 1] = math.sqrt(S[j, 1] * S[j, 1] + g * g)
        a = self.delta + S[j, 1]
        S[j, 2] = self.eta / a if a > 0.0 else 0.0
        S[j, 0] = w - S[j, 2] * g
        S[j, 3] = now[0]

    def tick(self, clock):
        """One more step to owe."""
        clock[0] += 1.0

    def idle(self, S, j, w):
        """No gradient yet: the sum of squares is needed for good."""
        return w == 0.0 and S[j, 1] == 0.0
