"""Stochastic gradient descent without a penalty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import at
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part

W = 0  # the column of S
TIME, ETA = range(2)  # places in the clock


@part("rule")
class Sgd(NamedTuple):
    """w_{t+1} = w_t - eta_t g_t. Never sets a weight to zero: the baseline.

    Lazy update: none needed.

    Reference: Robbins and Monro (1951); Langford, Li and Zhang (JMLR 2009), section 2.

    >>> Sgd().clock0()  # t, eta_t
    array([1. , 0.5])
    """

    rate: Any = InverseSqrt()
    SLOTS = ("w",)
    CLOCK = ("t", "eta")
    DRIFTS = CLAMPS = ()

    def intercept(self):
        return Sgd(self.rate)

    def clock0(self):
        """T and eta_t; all else is zero."""
        clock = np.zeros(len(self.CLOCK))
        clock[:2] = 1.0, self.rate.at(1.0)
        return clock

    def weight(self, S, j, now):
        return S[j, W]

    def place(self, S, rows, w, now):
        """Set the weights; there is no other state."""
        S[rows, W] = w

    def step(self, S, j, w, x, slope, now):
        S[j, W] = w - now[ETA] * slope * x

    def tick(self, clock):
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])

    def idle(self, S, j, w, now):
        """Whether the weight is zero: it then stays zero until its next gradient."""
        return w == 0.0
