"""Projection onto the probability simplex."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.parts import simplex_heap, threshold_heap
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.l1_ball import L1Ball
from thresher.parts.rules.sgd import ETA, Sgd
from thresher.parts.simplex_heap import COUNT, THRESHOLD, TOTAL, UNMET


@part("rule")
class Simplex(NamedTuple):
    """w' = w - eta g; w_{t+1} = argmin ||w - w'||_2 over w >= 0 with sum 1; w_1 = 1 / features.

    This is max(0, w' - theta) with the theta that makes the sum 1. There are `features` coordinates; those
    never met share one weight. With the loss `wealth` it mixes assets: an online portfolio.

    Lazy update: the sum of the thetas, as in `l1-ball`, as long as none is negative (always true if
    gradients are not positive). A negative theta lifts every coordinate from zero, so all are updated at
    once.

    Reference: Duchi, Shalev-Shwartz, Singer and Chandra (ICML 2008), Figure 1; Zinkevich (ICML 2003);
    for portfolios Cover (1991), Helmbold et al. (1998).

    >>> Simplex(features=4.0).clock0()  # t, eta_t, sum of thetas, sum and number of live weights, unmet, met
    array([1.  , 0.5 , 0.  , 0.  , 0.  , 0.25, 0.  ])
    """

    rate: Any = InverseSqrt()
    features: float = 10.0
    SLOTS = simplex_heap.COLUMNS
    CLOCK = ("t", "eta", "threshold", "total", "live", "unmet", "met")
    LIMITS = {"features": "a whole number >= 1"}
    DTYPE = "float64"
    tick, intercept = Sgd.tick, Sgd.intercept
    relocate, sound = L1Ball.relocate, simplex_heap.sound

    def clock0(self):
        """T, eta_t, sum of thetas, sum and number of live weights, weight of those never met, number met."""
        return np.array([1.0, self.rate.at(1.0), 0.0, 0.0, 0.0, 1.0 / self.features, 0.0])

    def weight(self, S, j, now):
        return (
            max(0.0, S[j, threshold_heap.V] - now[THRESHOLD]) if S[j, simplex_heap.MET] != 0.0 else now[UNMET]
        )

    def step(self, S, j, w, x, slope, now):
        S[j, threshold_heap.V] = w - now[ETA] * slope * x + now[THRESHOLD]

    def constrain(self, S, rows, begin, end, clock):
        """Move the threshold until the weights sum to one."""
        if begin == end:
            return
        simplex_heap.absorb(S, rows, begin, end, clock)
        unmet = max(0.0, self.features - clock[COUNT])
        if clock[TOTAL] + unmet * clock[UNMET] >= 1.0:
            simplex_heap.lower(S, rows, begin, end, clock, unmet)
        else:
            simplex_heap.lift(S, clock, unmet)
