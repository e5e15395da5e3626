"""Subgradient of the L1 norm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import at, steady
from thresher.parts.prox import soft
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd
from thresher.parts.series import replay

_MOST_REPLAYED = 2.0**42  # steps of all rows together: about two hours
W, SEEN, SUM = range(3)  # columns of S
TIME, ETA, SUM_NOW = range(3)  # places in the clock


@part("rule")
class Subgradient(NamedTuple):
    """w_{t+1} = w_t - eta g - eta l1 sign(w_t); weights below `theta` are read as zero at the end.

    The step overshoots zero and oscillates around it, so it gives no zeros of its own: the rule that the
    others were invented to replace. Nor does it come as near to the minimum as `fobos` with the same
    gradients: docs/papers/singer-solvers.md.

    Lazy update: eta_s l1 sign(w) for each missed step s. Until the weight crosses zero, that is a
    difference of running sums; after that, at a constant rate, it oscillates between r and r - eta l1,
    and at other rates the steps are replayed (the only lazy update here that costs more than O(1):
    1 to 2 ns a step). Step numbers must be exact, so the state is float64.

    Reference: Langford, Li and Zhang (JMLR 2009), section 3.2.

    >>> Subgradient(l1=0.1).clock0()  # t, eta_t, sum of eta
    array([1. , 0.5, 0. ])
    """

    rate: Any = InverseSqrt()
    l1: float = 1e-6
    theta: float = 0.0
    SLOTS = ("w", "seen", "sum")
    CLOCK = ("t", "eta", "sum")
    PENALTIES = ("l1", "theta")
    DTYPE = "float64"
    clock0 = Sgd.clock0

    def weight(self, S, j, now):
        v = S[j, W]
        w = soft(v, self.l1 * (now[SUM_NOW] - S[j, SUM]))
        if w != 0.0 or v == 0.0:
            return w
        if steady(self.rate):
            a = self.l1 * now[ETA]
            fitting = math.floor(abs(v) / a)
            rest = abs(v) - fitting * a
            if rest > 0.0 and (now[TIME] - 1.0 - S[j, SEEN] - fitting) % 2.0 == 1.0:
                rest -= a
            return math.copysign(1.0, v) * rest
        return replay(self.rate, self.l1, v, S[j, SEEN] + 1.0, now[TIME])

    def place(self, S, rows, w, now):
        """Set the weights, with no steps outstanding."""
        S[rows, W], S[rows, SEEN], S[rows, SUM] = w, now[TIME] - 1.0, now[SUM_NOW]

    def step(self, S, j, w, x, slope, now):
        """Gradient and penalty of this example together."""
        S[j, W] = w - now[ETA] * (slope * x + math.copysign(self.l1, w) * (w != 0.0))
        S[j, SEEN] = now[TIME]
        S[j, SUM] = now[SUM_NOW] + now[ETA]

    def sound(self, S, clock, steps):
        """Check that the steps to replay were taken, and are few enough."""
        t, v, seen = clock[TIME], S[:, W], S[:, SEEN]
        if not 1 <= t <= steps + 1 or (seen < 0).any() or (seen > t).any():
            return f"more steps are counted than the {steps} taken"
        crossed = (v != 0) & (np.abs(v) <= self.l1 * (clock[SUM_NOW] - S[:, SUM]))
        owed = 0.0 if steady(self.rate) else float(np.sum((t - seen)[crossed]))
        return f"{owed:g} steps would have to be replayed" if owed > _MOST_REPLAYED else ""

    def tick(self, clock):
        """Add one step size for all coordinates."""
        clock[SUM_NOW] += clock[ETA]
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])

    def shown(self, S, j, w, now):
        """Zero if the weight is small."""
        return 0.0 if abs(w) < self.theta else w

    def idle(self, S, j, w, now):
        """Whether the weight is exactly zero: only then does it stay the same."""
        return w == 0.0
