"""Truncated gradient."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from thresher.engine.verbs import at
from thresher.parts.prox import truncate
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

W, PAID = range(2)  # columns of S
TIME, ETA, OWED = range(3)  # places in the clock


@part("rule")
class TruncatedGradient(NamedTuple):
    """w' = w - eta g; when t is a multiple of K = `every`: T1(w', eta K gravity, theta).

    T1(v, a, theta) moves v towards zero by a, stopping at zero, if |v| <= theta; otherwise it leaves v
    unchanged. ``theta=gravity`` is the paper's second setting.

    Lazy update: a coordinate untouched since step tau is truncated once, by the sum of eta_s K gravity
    over the multiples s of K in (tau, t]; this is exact because shrinking never lifts |w| over theta.

    Features that are of no use keep small weights from the last rows they were in. A larger `every`, or
    rda, drops more of them (docs/papers/langford-features.md). With few weights left, ``theta=gravity``
    and rounding often rank better (docs/papers/langford-curves.md).

    Reference: Langford, Li and Zhang, Sparse Online Learning via Truncated Gradient (JMLR 2009),
    section 3.3; lazy form in section 4.

    >>> TruncatedGradient(gravity=1e-3, every=10).clock0()  # t, eta_t, gravity so far
    array([1. , 0.5, 0. ])
    """

    rate: Any = InverseSqrt()
    gravity: float = 1e-6
    theta: float = math.inf
    every: float = 1.0
    SLOTS = ("w", "paid")
    CLOCK = ("t", "eta", "owed")
    DRIFTS = ("owed",)
    CLAMPS = ()
    PENALTIES = ("gravity",)
    LIMITS = {"every": "a whole number >= 1"}
    clock0, idle = Sgd.clock0, Sgd.idle

    def weight(self, S, j, now):
        return truncate(S[j, W], now[OWED] - S[j, PAID], self.theta)

    def place(self, S, rows, w, now):
        """Set the weights, with nothing outstanding."""
        S[rows, W], S[rows, PAID] = w, now[OWED]

    def step(self, S, j, w, x, slope, now):
        """The gradient step; this example's truncation is applied lazily."""
        S[j, W] = w - now[ETA] * slope * x
        S[j, PAID] = now[OWED]

    def tick(self, clock):
        """Every K-th example adds to the cumulative gravity."""
        if self.every == 1.0 or clock[TIME] % self.every == 0.0:
            clock[OWED] += clock[ETA] * self.every * self.gravity
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])
