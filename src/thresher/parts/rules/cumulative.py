"""Stochastic gradient descent with cumulative L1 penalty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import at
from thresher.parts.prox import receive
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part


@part("rule")
class Cumulative(NamedTuple):
    """A coordinate is penalised when it has a gradient, for all the examples so far at once.

    u_t = u_{t-1} + eta_t l1 in every example. Where g != 0: w' = w - eta g, then
    w'' = max(0, w' - (u + q)) if w' > 0, min(0, w' + (u - q)) if w' < 0, and q += w'' - w'. So q is
    the penalty that a coordinate has had and u what it could have had: what is clipped at zero is
    not forgiven, and w wavers less than with a penalty of the last few examples alone.

    Owed by an untouched coordinate: nothing while learning goes on, by definition. When the model
    is read, every weight first receives what is left of its penalty, as if it had a gradient now.
    A coordinate met late has u against it at once, the known weakness with rare features.

    Reference: Tsuruoka, Tsujii and Ananiadou, Stochastic Gradient Descent Training for
    L1-regularized Log-linear Models with Cumulative Penalty (ACL 2009), section 3.2, Figure 2.

    >>> Cumulative(l1=0.1).clock0()  # t, eta_t, u without and with t
    array([1.  , 0.5 , 0.  , 0.05])
    """

    rate: Any = InverseSqrt()
    l1: float = 1e-6
    SLOTS = ("w", "taken")
    CLOCK = ("t", "eta", "due", "due_next")
    DRIFTS = ()
    PENALTIES = ("l1",)

    def clock0(self):
        """T, eta_t, u before this example and with it."""
        return np.array([1.0, self.rate.at(1.0), 0.0, self.rate.at(1.0) * self.l1])

    def weight(self, S, j, now):
        """Weight of row j as it was left."""
        return S[j, 0]

    def place(self, S, rows, w, now):
        """All of the penalty so far is taken."""
        S[rows, 0], S[rows, 1] = w, -np.sign(w) * now[2]

    def step(self, S, j, w, x, slope, now):
        """The gradient step, then all of the penalty that is due."""
        g = slope * x
        if g == 0:
            return
        moved = w - now[1] * g
        S[j, 0] = receive(moved, S[j, 1], now[3])
        S[j, 1] += S[j, 0] - moved

    def tick(self, clock):
        """One more penalty for all."""
        clock[2] = clock[3]
        clock[0] += 1.0
        clock[1] = at(self.rate, clock[0])
        clock[3] += clock[1] * self.l1

    def shown(self, S, j, w, now):
        """The weight once it has had its whole penalty."""
        return receive(w, S[j, 1], now[2])

    def idle(self, S, j, w, now):
        """No gradient yet: the penalty it has had is needed for good."""
        return w == 0.0 and S[j, 1] == 0.0
