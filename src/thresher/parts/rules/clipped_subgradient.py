"""Subgradient of the L1 norm, clipped at zero."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import at
from thresher.parts.prox import soft
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

W, PAID = range(2)  # columns of S
TIME, ETA, OWED, OWED_NEXT = range(4)  # places in the clock


@part("rule")
class ClippedSubgradient(NamedTuple):
    """w' = w - eta (g + l1 sign(w)); if w != 0 and w' has the other sign: 0.

    A step that would cross zero stops there, whether because of the penalty or the gradient.

    Known weakness: not very sparse. It leaves many times as many weights as the minimum of its objective
    has: docs/papers/daume-sparse.md.

    Lazy update: a coordinate untouched since step tau is shrunk by l1 (U_t - U_tau), stopping at zero,
    with U_t the sum of the step sizes.

    Reference: Daume, A Course in Machine Learning (2012), ch. 12, eq. (12.8) as described in the text;
    Carpenter (2008).

    >>> ClippedSubgradient(l1=0.1).clock0()  # t, eta_t, sum of eta l1 without and with t
    array([1.  , 0.5 , 0.  , 0.05])
    """

    rate: Any = InverseSqrt()
    l1: float = 1e-6
    SLOTS = ("w", "paid")
    CLOCK = ("t", "eta", "owed", "owed_next")
    DRIFTS = ("owed",)
    PENALTIES = ("l1",)

    def intercept(self):
        """Plain gradient steps, which may cross zero."""
        return Sgd(self.rate)

    def clock0(self):
        """T, eta_t, sum of eta l1 before this example and with it."""
        return np.array([1.0, self.rate.at(1.0), 0.0, self.rate.at(1.0) * self.l1])

    def weight(self, S, j, now):
        """Settled weight of row j."""
        return soft(S[j, W], now[OWED] - S[j, PAID])

    def place(self, S, rows, w, now):
        """Set the weights, with no penalty outstanding."""
        S[rows, W], S[rows, PAID] = w, now[OWED]

    def step(self, S, j, w, x, slope, now):
        """Gradient and penalty of this example together, stopping at zero."""
        moved = w - now[ETA] * (slope * x + math.copysign(self.l1, w) * (w != 0))
        S[j, W] = moved * (w * moved >= 0)
        S[j, PAID] = now[OWED_NEXT]

    def tick(self, clock):
        """Add one penalty for all coordinates."""
        clock[OWED] = clock[OWED_NEXT]
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])
        clock[OWED_NEXT] += clock[ETA] * self.l1

    def drift(self, clock, out):
        """The cumulative penalty."""
        out[0] = clock[OWED]

    def area(self, S, j, n, sums, now):
        """Affine in the cumulative penalty."""
        return n * soft(S[j, W], sums[0] / n - S[j, PAID])

    def idle(self, S, j, w, now):
        """Whether the weight is zero: it then stays zero until its next gradient."""
        return w == 0.0
