"""Forward-backward splitting with the Euclidean norm, not squared."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import rewrites
from thresher.parts.prox import SMALL, norm2_after
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.pa import Pa
from thresher.parts.rules.sgd import Sgd

_GENERATIONS = 2.0**23
V, GENERATION = range(2)  # columns of S
TIME, ETA, SCALE, NORM2, STRETCHED, GENERATION_NOW = range(6)  # places in the clock


@part("rule")
class FobosL2norm(NamedTuple):
    """w' = w - eta g; w_{t+1} = max(0, 1 - eta l2norm / |w'|_2) w': all weights become zero together.

    Lazy update: a scale shared by all coordinates, as in `pegasos`. The scale cannot be zero, so when all
    weights become zero a new generation begins, and a row of an older generation reads as zero.
    The norm is updated from margin and |x|^2, and reset to exactly zero at each new generation. The scale is
    folded into the rows below 2^-40, as is the generation when float32 could no longer count it.

    Reference: Duchi and Singer (JMLR 2009), section 5, regularisation by the l2 norm.

    >>> FobosL2norm().clock0()  # t, eta_t, scale, |w|^2, eta_t / scale, generation
    array([1. , 0.5, 1. , 0. , 0.5, 1. ])
    """

    rate: Any = InverseSqrt()
    l2norm: float = 1e-4
    SLOTS = ("v", "generation")
    CLOCK = ("t", "eta", "scale", "norm2", "stretched", "generation")
    DRIFTS = ("scale", "generation")
    PENALTIES = ("l2norm",)
    tick, size_before_margin, idle = Sgd.tick, Pa.size_before_margin, Sgd.idle
    intercept = Sgd.intercept  # steps of this length, without shrinking

    def clock0(self):
        """T, eta_t, scale, |w|^2, eta_t / scale, generation."""
        eta = self.rate.at(1.0)
        return np.array([1.0, eta, 1.0, 0.0, eta, 1.0])

    def weight(self, S, j, now):
        return S[j, V] * now[SCALE] * (S[j, GENERATION] == now[GENERATION_NOW])

    def slope_after_margin(self, margin, value, slope, size, clock):
        """Compute the norm after the step."""
        clock[NORM2] = norm2_after(clock[NORM2], margin, size, clock[ETA] * slope)
        clock[STRETCHED] = clock[ETA] / clock[SCALE]
        return slope

    def step(self, S, j, w, x, slope, now):
        """The gradient step, in units of the scale."""
        S[j, V] = S[j, V] * (S[j, GENERATION] == now[GENERATION_NOW]) - now[STRETCHED] * slope * x
        S[j, GENERATION] = now[GENERATION_NOW]

    def constrain(self, S, rows, begin, end, clock):
        """Shrink all weights, or set them all to zero."""
        if rewrites(self, clock):
            factor = SMALL if clock[SCALE] < SMALL else 1.0
            for j in range(S.shape[0]):
                alive = S[j, GENERATION] == clock[GENERATION_NOW]
                S[j, V] = S[j, V] * factor if alive else 0.0
                S[j, GENERATION] = 1.0 if alive else 0.0
            clock[SCALE], clock[GENERATION_NOW] = clock[SCALE] / factor, 1.0
        pull, norm = clock[ETA] * self.l2norm, math.sqrt(clock[NORM2])
        if norm > pull:
            clock[SCALE] *= 1.0 - pull / norm
            clock[NORM2] = (norm - pull) * (norm - pull)
        elif pull > 0.0:
            clock[SCALE], clock[NORM2], clock[GENERATION_NOW] = 1.0, 0.0, clock[GENERATION_NOW] + 1.0

    def rewrites(self, clock):
        """Whether the scale or the generation is about to be folded into the rows."""
        return clock[SCALE] < SMALL or clock[GENERATION_NOW] >= _GENERATIONS

    def area(self, S, j, n, sums, now):
        """Proportional to the scale, within a generation."""
        return S[j, V] * sums[0] * (n * S[j, GENERATION] == sums[1])
