"""Pegasos."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thresher.parts.prox import LIFT, SMALL, norm2_after
from thresher.parts.rates import Inverse
from thresher.parts.registry import part
from thresher.parts.rules.pa import Pa
from thresher.parts.rules.sgd import Sgd

V = 0  # the column of S
TIME, SCALE, NORM2, ETA = range(4)  # places in the clock


@part("rule")
class Pegasos(NamedTuple):
    """w' = (1 - 1/t) w - eta_t g with eta_t = 1 / (l2 t); then, if `project`, projected onto a ball.

    The projection scales w' by min(1, (1 / sqrt(l2)) / ||w'||).
    `skip_correct` leaves w unchanged if the loss is zero, but counts the example in t (Reid 2009).

    Lazy update: a scale shared by all coordinates. Rows hold v = w / scale; the norm of w is updated
    from margin and |x|^2. When the scale falls below 2^-40, all rows are multiplied by 2^-40.

    Reference: Shalev-Shwartz, Singer and Srebro (ICML 2007), Figure 1.

    >>> Pegasos(l2=0.5).clock0()  # t, scale, |w|^2, eta_t / scale
    array([1., 1., 0., 2.])
    """

    l2: float = 1e-4
    project: bool = True
    skip_correct: bool = False
    SLOTS = ("v",)
    CLOCK = ("t", "scale", "norm2", "eta")
    DRIFTS = ("scale",)
    LIMITS = {"l2": "> 0"}
    size_before_margin, idle = Pa.size_before_margin, Sgd.idle

    def intercept(self):
        """Plain gradient steps of this length, without shrinking and projection."""
        return Sgd(Inverse(1.0 / self.l2))

    def clock0(self):
        """T, scale, |w|^2, eta_t / scale."""
        return np.array([1.0, 1.0, 0.0, 1.0 / self.l2])

    def weight(self, S, j, now):
        return S[j, V] * now[SCALE]

    def slope_after_margin(self, margin, value, slope, size, clock):
        """Shrink all weights and compute the norm after the step.

        At t = 1 all weights are zero, and the factor would be zero too.
        """
        shrink = 1.0 - 1.0 / clock[TIME]
        if self.skip_correct and value == 0.0:
            shrink, slope = 1.0, 0.0
        eta = 1.0 / (self.l2 * clock[TIME])
        clock[NORM2] = norm2_after(shrink * shrink * clock[NORM2], shrink * margin, size, eta * slope)
        if clock[TIME] > 1.0:
            clock[SCALE] *= shrink
        clock[ETA] = eta / clock[SCALE]
        return slope

    def step(self, S, j, w, x, slope, now):
        """The gradient step, in units of the scale."""
        S[j, V] -= now[ETA] * slope * x

    def tick(self, clock):
        """Project onto the ball of radius 1 / sqrt(l2)."""
        if self.project and self.l2 * clock[NORM2] > 1.0:
            clock[SCALE] /= math.sqrt(self.l2 * clock[NORM2])
            clock[NORM2] = 1.0 / self.l2
        clock[TIME] += 1.0

    def renorm(self, clock):
        if clock[SCALE] >= SMALL:
            return 1.0
        clock[SCALE] *= LIFT
        return SMALL

    def area(self, S, j, n, sums, now):
        """Proportional to the scale."""
        return S[j, V] * sums[0]
