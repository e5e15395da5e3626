"""Gradient steps projected onto a Euclidean ball."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import at
from thresher.parts.prox import norm2_after
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.pegasos import Pegasos
from thresher.parts.rules.sgd import Sgd

TIME, SCALE, NORM2, STRETCHED, ETA = range(5)  # places in the clock


@part("rule")
class L2Ball(NamedTuple):
    """w' = w - eta g; then projected onto the ball: w' min(1, radius / |w'|_2).

    Bounds the weights without shrinking them, but gives no zeros.

    Lazy update: a scale shared by all coordinates. Rows hold v = w / scale; the norm of w is updated
    from margin and |x|^2. When the scale falls below 2^-40, all rows are multiplied by 2^-40.

    Reference: Zinkevich (ICML 2003), Algorithm 1, greedy projection.

    >>> L2Ball(radius=2).clock0()  # t, scale, |w|^2, eta_t / scale, eta_t
    array([1. , 1. , 0. , 0.5, 0.5])
    """

    rate: Any = InverseSqrt()
    radius: float = 10.0
    SLOTS = ("v",)
    CLOCK = ("t", "scale", "norm2", "stretched", "eta")
    DRIFTS = ("scale",)
    LIMITS = {"radius": "> 0"}
    weight, size_before_margin, step = Pegasos.weight, Pegasos.size_before_margin, Pegasos.step
    renorm, area, idle = Pegasos.renorm, Pegasos.area, Pegasos.idle
    intercept = Sgd.intercept  # steps of this length, without projection

    def clock0(self):
        """T, scale, |w|^2, eta_t / scale, eta_t."""
        eta = self.rate.at(1.0)
        return np.array([1.0, 1.0, 0.0, eta, eta])

    def slope_after_margin(self, margin, value, slope, size, clock):
        """Compute the norm after the step."""
        clock[NORM2] = norm2_after(clock[NORM2], margin, size, clock[ETA] * slope)
        clock[STRETCHED] = clock[ETA] / clock[SCALE]
        return slope

    def tick(self, clock):
        """Project onto the ball."""
        if clock[NORM2] > self.radius * self.radius:
            clock[SCALE] *= self.radius / math.sqrt(clock[NORM2])
            clock[NORM2] = self.radius * self.radius
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])
