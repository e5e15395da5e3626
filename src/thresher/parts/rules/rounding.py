"""Simple coefficient rounding."""

from __future__ import annotations

from typing import Any, NamedTuple

from thresher.engine.verbs import at
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.truncated_gradient import TruncatedGradient

W, ROUNDED = range(2)  # columns of S
TIME, ETA, ROUNDINGS = range(3)  # places in the clock


@part("rule")
class Rounding(NamedTuple):
    """w' = w - eta g; when t is a multiple of K = `every`: 0 if |w'| < theta.

    (The paper's formula for T0 has the inequality the wrong way round; this follows its text.)

    Known weakness: with many rare features, whose weights are all small, it rounds the useful ones away
    too; on RCV1 truncated-gradient ranks better with as many weights: docs/papers/langford-curves.md.

    Lazy update: one rounding, if a multiple of K has passed since. The number of roundings is compared
    for equality, so the state is float64, exact up to 2^53.

    Reference: Langford, Li and Zhang (JMLR 2009), section 3.1.

    >>> Rounding(theta=0.1).clock0()  # t, eta_t, roundings so far
    array([1. , 0.5, 0. ])
    """

    rate: Any = InverseSqrt()
    theta: float = 1e-3
    every: float = 1.0
    SLOTS = ("w", "rounded")
    CLOCK = ("t", "eta", "roundings")
    DRIFTS = ("roundings",)
    PENALTIES = ("theta",)
    LIMITS = {"every": "a whole number >= 1"}
    DTYPE = "float64"
    clock0, place = TruncatedGradient.clock0, TruncatedGradient.place
    step, idle = TruncatedGradient.step, TruncatedGradient.idle

    def weight(self, S, j, now):
        w = S[j, W]
        return 0.0 if S[j, ROUNDED] != now[ROUNDINGS] and abs(w) < self.theta else w

    def tick(self, clock):
        """Count a rounding at every K-th example."""
        if clock[TIME] % self.every == 0.0:
            clock[ROUNDINGS] += 1.0
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])
