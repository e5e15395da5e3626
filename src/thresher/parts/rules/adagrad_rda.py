"""AdaGrad with dual averaging, with L1, L2 or both."""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.prox import soft
from thresher.parts.registry import part

GRADIENTS, ROOT = range(2)  # columns of S
STEPS, THRESHOLD, PULL = range(3)  # places in the clock


@part("rule")
class AdagradRda(NamedTuple):
    """w_{t+1} = -eta t soft(mean gradient, l1) / (a + eta l2 t), a = delta + sqrt(sum of g^2).

    Lazy update: a closed form in t, w = -eta soft(G, l1 t) / (a + eta l2 t), with G the sum of
    gradients.

    Reference: Duchi, Hazan and Singer (JMLR 2011), primal-dual subgradient with a diagonal
    matrix, section 5.1.

    >>> AdagradRda(l1=0.1).clock0()  # steps, l1 t, eta l2 t
    array([0., 0., 0.])
    """

    eta: float = 0.5
    l1: float = 1e-5
    l2: float = 0.0
    delta: float = 1e-3
    SLOTS = ("gradients", "root")
    CLOCK = ("steps", "threshold", "pull")
    CLAMPS = ()
    PENALTIES = ("l1", "l2")
    LIMITS = {"eta": "> 0"}
    TUNED = {"eta": (0.01, 3.0), "l1": (1e-7, 1e-3)}

    def weight(self, S, j, now):
        """Weight of row j after the gradients so far."""
        top = soft(S[j, GRADIENTS], now[THRESHOLD])
        if top == 0:
            return top
        return -self.eta * top / (self.delta + S[j, ROOT] + now[PULL])

    def step(self, S, j, w, x, slope, now):
        """Add the gradient, and its square to the root of squares."""
        g = slope * x
        S[j, GRADIENTS] += g
        S[j, ROOT] = math.sqrt(S[j, ROOT] * S[j, ROOT] + g * g)

    def tick(self, clock):
        """Advance threshold and l2 term to the next example."""
        clock[STEPS] += 1.0
        clock[THRESHOLD] = self.l1 * clock[STEPS]
        clock[PULL] = self.eta * self.l2 * clock[STEPS]

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet."""
        return S[j, GRADIENTS] == 0.0 and S[j, ROOT] == 0.0
