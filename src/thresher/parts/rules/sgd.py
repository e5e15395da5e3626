"""Stochastic gradient descent without a penalty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import at
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part


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
    DRIFTS = ()

    def clock0(self):
        """T, eta_t."""
        return np.array([1.0, self.rate.at(1.0)])

    def weight(self, S, j, now):
        """Settled weight of row j."""
        return S[j, 0]

    def place(self, S, rows, w, now):
        """Set the weights; there is no other state."""
        S[rows, 0] = w

    def step(self, S, j, w, x, slope, now):
        """The gradient step."""
        S[j, 0] = w - now[1] * slope * x

    def tick(self, clock):
        """Advance to the next step size."""
        clock[0] += 1.0
        clock[1] = at(self.rate, clock[0])

    def idle(self, S, j, w, now):
        """Whether the weight is zero."""
        return w == 0.0
