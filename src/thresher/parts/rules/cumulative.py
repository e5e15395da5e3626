"""Stochastic gradient descent with cumulative L1 penalty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import at
from thresher.parts.prox import receive
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

W, TAKEN = range(2)  # columns of S
TIME, ETA, DUE, DUE_NEXT = range(4)  # places in the clock


@part("rule")
class Cumulative(NamedTuple):
    """When a coordinate has a gradient, it receives its penalty for all examples so far at once.

    u_t = u_{t-1} + eta_t l1 in every example. If g != 0: w' = w - eta g, then
    w'' = max(0, w' - (u + q)) if w' > 0, min(0, w' + (u - q)) if w' < 0, and q += w'' - w'. So q is
    the penalty that a coordinate has received, u what it could have received: the part clipped at
    zero remains due, and w fluctuates less than with a penalty for the last few examples alone.

    Lazy update: by definition, none during training. When the model is read, every weight first
    receives the rest of its penalty, as if it had a gradient now.

    Known weakness: a coordinate first seen late receives all of u at once, which hurts rare features. On
    seven sets of texts it makes the most errors, with `fobos`: docs/papers/oiwa-frequency.md.

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
    weight = Sgd.weight

    def clock0(self):
        """T, eta_t, sum of eta l1 before this example and with it."""
        return np.array([1.0, self.rate.at(1.0), 0.0, self.rate.at(1.0) * self.l1])

    def place(self, S, rows, w, now):
        """Set the weights, with all of the penalty so far received."""
        S[rows, W], S[rows, TAKEN] = w, -np.sign(w) * now[DUE]

    def step(self, S, j, w, x, slope, now):
        """The gradient step, then all of the penalty that is due."""
        g = slope * x
        if g == 0:
            return
        moved = w - now[ETA] * g
        S[j, W] = receive(moved, S[j, TAKEN], now[DUE_NEXT])
        S[j, TAKEN] += S[j, W] - moved

    def tick(self, clock):
        clock[DUE] = clock[DUE_NEXT]
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])
        clock[DUE_NEXT] += clock[ETA] * self.l1

    def shown(self, S, j, w, now):
        """The weight after the rest of its penalty."""
        return receive(w, S[j, TAKEN], now[DUE])

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet: the penalty received must be kept."""
        return w == 0.0 and S[j, TAKEN] == 0.0
