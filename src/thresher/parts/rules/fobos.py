"""Forward-backward splitting with L1, L2 or both."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import alone, at, grouped, together
from thresher.parts.groups import Single
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

_LARGE = 2.0**40
V, PAID = range(2)  # columns of S
TIME, ETA, OWED, PRODUCT, INVERSE = range(5)  # places in the clock


@part("rule")
class Fobos(NamedTuple):
    """w_{t+1} = soft(w_t - eta_t g, eta l1) / (1 + eta l2).

    In the proximal step eta is eta_t, the choice for low regret, or with `next_rate` eta_{t+1}, the choice
    for minimising a fixed objective: each w_t then has the same step size in both terms.

    With many outputs, `group` = ``l2`` or ``linf`` makes l1 the strength of the mixed norm l1/l2 or l1/linf:
    soft becomes the prox of eta l1 ||.|| on the weights of a feature for all outputs.

    Known weakness: rare features are penalised as strongly as frequent ones. adagrad-fobos and ft-fobos
    keep more of the informative ones, with more weights in all: docs/papers/singer-rare.md.

    Lazy update: with P_t the product of the (1 + eta l2) and v = w P, a step shrinks |v| by just
    eta l1 P_{t-1}, so the missed penalty is a difference of running sums, and w = v / P. (With l2 = 0, P
    is 1.) When P exceeds 2^40, rows and sums are divided by 2^40, which is exact.

    Reference: Duchi and Singer (JMLR 2009), eq. (2) and (3), section 5, and section 3 for the two
    choices of the second step size; the lazy elastic net of Lipton and Elkan (2015), in other variables.

    >>> Fobos(l1=1e-3).clock0()  # t, eta_t, sum of eta l1 P, P, 1 / P
    array([1. , 0.5, 0. , 1. , 1. ])
    """

    rate: Any = InverseSqrt()
    l1: float = 1e-6
    l2: float = 0.0
    group: Any = Single()
    next_rate: bool = False
    SLOTS = ("v", "paid")
    CLOCK = ("t", "eta", "owed", "product", "inverse")
    DRIFTS = ("inverse", "owed * inverse")
    CLAMPS = ()
    PENALTIES = ("l1", "l2")
    idle = Sgd.idle

    def clock0(self):
        """T, eta_t, sum of eta l1 P so far, P, 1 / P."""
        return np.array([1.0, self.rate.at(1.0), 0.0, 1.0, 1.0])

    def weight(self, S, j, now):
        return alone(self.group, S[j, V], now[OWED] - S[j, PAID]) * now[INVERSE]

    def couple(self, T, out, now):
        """The prox of a group norm; it commutes with scaling."""
        together(self.group, out, (now[OWED] - T[0, PAID]) * now[INVERSE])

    def grouped(self):
        return grouped(self.group)

    def place(self, S, rows, w, now):
        """Set the weights, with no penalty outstanding."""
        S[rows, V], S[rows, PAID] = w * now[PRODUCT], now[OWED]

    def step(self, S, j, w, x, slope, now):
        """The gradient step; this example's penalty is applied lazily."""
        S[j, V] = (w - now[ETA] * slope * x) * now[PRODUCT]
        S[j, PAID] = now[OWED]

    def tick(self, clock):
        eta = clock[ETA]
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])
        if self.next_rate:
            eta = clock[ETA]
        clock[OWED] += eta * self.l1 * clock[PRODUCT]
        clock[PRODUCT] *= 1.0 + eta * self.l2
        clock[INVERSE] = 1.0 / clock[PRODUCT]

    def renorm(self, clock):
        if clock[PRODUCT] <= _LARGE:
            return 1.0
        clock[OWED] /= _LARGE
        clock[PRODUCT] /= _LARGE
        clock[INVERSE] *= _LARGE
        return 1.0 / _LARGE

    def drift(self, clock, out):
        """1 / P, and the cumulative penalty divided by P."""
        out[0], out[1] = clock[INVERSE], clock[OWED] * clock[INVERSE]

    def area(self, S, j, n, sums, now):
        """Linear in both."""
        return math.copysign(max((abs(S[j, V]) + S[j, PAID]) * sums[0] - sums[1], 0.0), S[j, V])
