"""Regularised dual averaging with L1."""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.prox import soft
from thresher.parts.registry import part

GRADIENTS = 0  # the column of S
TIME, THRESHOLD, SCALE = range(3)  # places in the clock


@part("rule")
class Rda(NamedTuple):
    """w_{t+1} = -(sqrt(t) / gamma) soft(mean gradient, l1 + gamma rho / sqrt(t)).

    rho > 0 gives the enhanced method. With G the sum of gradients this is
    -soft(G, l1 t + gamma rho sqrt(t)) / (gamma sqrt(t)).

    Lazy update: none needed, since w is a closed form in its own G and in t. A sum of gradients must
    be kept, so only coordinates that never had a gradient are freed.

    Reference: Xiao, Dual Averaging Methods (JMLR 2010), eq. (10), Algorithm 2 and eq. (24).

    >>> Rda().clock0()  # gradients so far, threshold, scale
    array([0., 0., 0.])
    """

    gamma: float = 10.0
    l1: float = 1e-5
    rho: float = 0.0
    SLOTS = ("gradients",)
    CLOCK = ("t", "threshold", "scale")
    DRIFTS = ("scale", "threshold * scale")
    CLAMPS = ()
    PENALTIES = ("l1", "rho")
    LIMITS = {"gamma": "> 0"}

    def weight(self, S, j, now):
        """Weight of row j after the gradients so far."""
        return -soft(S[j, GRADIENTS], now[THRESHOLD]) * now[SCALE]

    def step(self, S, j, w, x, slope, now):
        S[j, GRADIENTS] += slope * x

    def tick(self, clock):
        clock[TIME] += 1.0
        root = math.sqrt(clock[TIME])
        clock[THRESHOLD] = self.l1 * clock[TIME] + self.gamma * self.rho * root
        clock[SCALE] = 1.0 / (self.gamma * root)

    def drift(self, clock, out):
        """The scale, and the threshold times it."""
        out[0], out[1] = clock[SCALE], clock[THRESHOLD] * clock[SCALE]

    def area(self, S, j, n, sums, now):
        """Linear in both."""
        return -math.copysign(max(abs(S[j, GRADIENTS]) * sums[0] - sums[1], 0.0), S[j, GRADIENTS])

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet."""
        return S[j, GRADIENTS] == 0.0
