"""Frequency-aware forward-backward splitting."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from thresher.engine.verbs import at
from thresher.parts.prox import norm_with, soft
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd
from thresher.parts.rules.truncated_gradient import ETA, OWED, PAID, TIME, TruncatedGradient, W

H = 2  # the column of S after those of `truncated-gradient`


class FrequencyAware(NamedTuple):
    """Parameters of rules whose penalty grows with h, a norm of the moves of a coordinate; 1 <= p <= inf."""

    rate: Any = InverseSqrt()
    l1: float = 1e-5
    p: float = 2.0
    cap: float = math.inf
    PENALTIES, LIMITS, DTYPE = ("l1",), {"p": ">= 1, inf included"}, "float64"


@part("rule")
class FtFobos(FrequencyAware):
    """w_{t+1} = soft(w_t - eta g, eta l1 h), h = min(cap, p-norm of the coordinate's eta_s g_s, s <= t).

    Rare coordinates have a small h and shrink little. p is any number from 1 to inf; for inf, h is the
    largest |eta_s g_s|. The cap applies for every p. With large p it is rarely needed; for p <= 2, h
    may grow without bound otherwise.

    Lazy update: shrink by l1 h (U_t - U_tau), U_t the sum of the step sizes, because h is constant
    between gradients. Sums of eta^2 g^2 grow ever more slowly, too slowly for float32, so the state is
    float64.

    Known weakness: with the penalty that makes the fewest errors, it keeps up to five times as many
    weights as `fobos`: docs/papers/oiwa-frequency.md.

    Reference: Oiwa, Matsushima and Nakagawa, Frequency-Aware Truncated Methods for Sparse Online
    Learning (ECML PKDD 2011), FT-FOBOS.

    >>> FtFobos(l1=0.1).clock0()  # t, eta_t, sum of eta l1
    array([1. , 0.5, 0. ])
    """

    SLOTS = ("w", "paid", "h")
    CLOCK = ("t", "eta", "owed")
    DRIFTS = ("owed",)
    clock0, place = Sgd.clock0, TruncatedGradient.place

    def weight(self, S, j, now):
        return soft(S[j, W], (now[OWED] - S[j, PAID]) * min(S[j, H], self.cap))

    def step(self, S, j, w, x, slope, now):
        """The gradient step, counted in h; this example's penalty is applied lazily."""
        move = now[ETA] * slope * x
        S[j, W] = w - move
        S[j, PAID] = now[OWED]
        S[j, H] = norm_with(S[j, H], move, self.p)

    def tick(self, clock):
        clock[OWED] += clock[ETA] * self.l1
        clock[TIME] += 1.0
        clock[ETA] = at(self.rate, clock[TIME])

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet: h must be kept."""
        return w == 0.0 and S[j, H] == 0.0
