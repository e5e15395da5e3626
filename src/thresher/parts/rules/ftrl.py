"""FTRL-Proximal."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thresher.parts.prox import soft
from thresher.parts.registry import part

W, Z, ROOT = range(3)  # columns of S
INVERSE = 0  # the place in the clock


@part("rule")
class Ftrl(NamedTuple):
    """w = -soft(z, l1) / ((beta + sqrt(n)) / alpha + l2), with sums z and n per coordinate.

    n += g^2, z += g - (sqrt(n) - sqrt(n_old)) w / alpha.

    Lazy update: none needed, since w depends only on its own z and n. The row holds w itself and the
    root of n, so a read is one load and a step one square root.

    Reference: McMahan et al., Ad Click Prediction (KDD 2013), Algorithm 1.

    >>> Ftrl(alpha=0.5).SLOTS
    ('w', 'z', 'root')
    """

    alpha: float = 0.5
    beta: float = 1.0
    l1: float = 1.0
    l2: float = 0.0
    SLOTS = ("w", "z", "root")
    CLOCK = ("inverse",)
    DRIFTS = ()
    PENALTIES = ("l1", "l2")
    LIMITS = {"alpha": "> 0"}
    TUNED = {"alpha": (0.01, 3.0), "l1": (0.01, 10.0)}

    def clock0(self):
        """1 / alpha: multiplying is cheaper than dividing, and every step needs it twice."""
        return np.array([1.0 / self.alpha])

    def weight(self, S, j, now):
        """Weight of row j."""
        return S[j, W]

    def place(self, S, rows, w, now):
        """Set the z that gives weight w without any gradient."""
        S[rows, W] = w
        S[rows, Z] = -w * (self.beta * now[INVERSE] + self.l2) - np.sign(w) * self.l1

    def step(self, S, j, w, x, slope, now):
        """Add the gradient, then recompute w."""
        g = slope * x
        if g * g == 0:
            return  # nothing changes; with beta = l2 = 0 the code below would divide by zero
        root = math.sqrt(S[j, ROOT] * S[j, ROOT] + g * g)
        z = S[j, Z] + g - (root - S[j, ROOT]) * now[INVERSE] * w
        S[j, W] = -soft(z, self.l1) / ((self.beta + root) * now[INVERSE] + self.l2)
        S[j, Z] = z
        S[j, ROOT] = root

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet."""
        return S[j, Z] == 0.0 and S[j, ROOT] == 0.0
