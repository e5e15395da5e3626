"""Truncated gradient that shrinks a feature in proportion to its number of gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import at
from thresher.parts.prox import soft
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part

W, OWED, BURST = range(3)  # columns of S
TIME, ETA, BURST_NOW, PULL = range(4)  # places in the clock


@part("rule")
class InformativeTruncation(NamedTuple):
    """w' = w - eta g; at the end of each burst of K = `every` steps: soft(w', eta gravity k).

    k is the number of steps of this burst in which the coordinate had a gradient (g != 0), and eta the
    step size of the burst's last step. A feature in every row shrinks as with `truncated-gradient`, where
    k is K for all; a rare one shrinks only as often as it was learned.

    This is one part of the paper's algorithm, which is `stabilised`. Its gravity is fixed, so weights need
    not be ranked against one another, and the end of a burst costs nothing.

    Lazy update: a coordinate untouched since step tau is truncated at the end of the burst of tau; later
    bursts have k = 0. Bursts are counted, so the state is float64.

    Reference: Ma and Zheng, Stabilized Sparse Online Learning for Sparse Data (JMLR 18, 2017),
    informative truncation.

    >>> InformativeTruncation(gravity=0.1, every=4, rate=InverseSqrt(1.0)).clock0()  # t, eta_t, burst, pull
    array([1.  , 1.  , 0.  , 0.05])
    """

    rate: Any = InverseSqrt()
    gravity: float = 1e-4
    every: float = 10.0
    SLOTS = ("w", "owed", "burst")
    CLOCK = ("t", "eta", "burst", "pull")
    DRIFTS = ("t",)
    PENALTIES = ("gravity",)
    LIMITS = {"every": "a whole number >= 1"}
    DTYPE = "float64"

    def clock0(self):
        """T, eta_t, bursts so far, gravity at the end of this one."""
        return np.array([1.0, self.rate.at(1.0), 0.0, self.rate.at(self.every) * self.gravity])

    def weight(self, S, j, now):
        return soft(S[j, W], S[j, OWED] * (S[j, BURST] != now[BURST_NOW]))

    def place(self, S, rows, w, now):
        """Set the weights, with no truncation outstanding."""
        S[rows, W], S[rows, BURST] = w, now[BURST_NOW]

    def step(self, S, j, w, x, slope, now):
        """The gradient step; count the gradient if nonzero."""
        g = slope * x
        owed = S[j, OWED] * (S[j, BURST] == now[BURST_NOW])
        S[j, W] = w - now[ETA] * g
        S[j, OWED] = owed + now[PULL] * (g != 0)
        S[j, BURST] = now[BURST_NOW]

    def tick(self, clock):
        """Every K-th example ends a burst."""
        if clock[TIME] % self.every == 0.0:
            clock[BURST_NOW] += 1.0
            clock[PULL] = at(self.rate, clock[TIME] + self.every) * self.gravity
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])

    def area(self, S, j, n, sums, now):
        """One weight until the end of the burst, another after it."""
        last = sums[0] / n + 0.5 * (n - 1.0)
        behind = max(0.0, min(n, last - (S[j, BURST] + 1.0) * self.every))
        return (n - behind) * S[j, W] + behind * soft(S[j, W], S[j, OWED])

    def idle(self, S, j, w, now):
        """Whether the weight was truncated at the end of a burst, or is zero without any gradient."""
        return w == 0.0 and (S[j, W] != 0.0 or S[j, OWED] == 0.0)
