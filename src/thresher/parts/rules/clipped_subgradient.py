"""Subgradient of the L1 norm, clipped at zero."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from thresher.parts.prox import soft
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.cumulative import Cumulative
from thresher.parts.rules.sgd import Sgd
from thresher.parts.rules.truncated_gradient import ETA, OWED, PAID, TruncatedGradient, W

OWED_NEXT = 3  # the place in the clock after those of `truncated-gradient`


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
    clock0, tick = Cumulative.clock0, Cumulative.tick
    place, idle = TruncatedGradient.place, Sgd.idle
    intercept = Sgd.intercept

    def weight(self, S, j, now):
        return soft(S[j, W], now[OWED] - S[j, PAID])

    def step(self, S, j, w, x, slope, now):
        """Gradient and penalty of this example together, stopping at zero."""
        moved = w - now[ETA] * (slope * x + math.copysign(self.l1, w) * (w != 0))
        S[j, W] = moved * (w * moved >= 0)
        S[j, PAID] = now[OWED_NEXT]
