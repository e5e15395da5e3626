"""Coin betting: no step size to choose."""

from __future__ import annotations

from typing import NamedTuple

from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

W, THETA, WON, SUM, LARGEST, SCALE = range(6)  # columns of S


@part("rule")
class Coin(NamedTuple):
    """Each coordinate bets on the sign of its next gradient; its winnings determine its step size.

    If g != 0, with L the largest |g| and s the largest |x| where g != 0, G = sum |g|, theta = -sum g and
    R = max(R - g w, 0), the winnings: w = theta / (L max(G + L, alpha L)) (wealth L / s + R).
    A coordinate starts with `wealth` L / s and at first bets at most 1 / alpha of it. Neither needs
    tuning like a step size, because winnings grow exponentially.

    In the paper the initial wealth is L, which gives all weights the same initial size. Divided by s, it
    is the paper's rule for the feature x / s while s is constant, and rescaling a feature has no effect.

    Lazy update: none needed. R, G and theta are sums, so the state is float64.

    Reference: Orabona and Tommasi, Training Deep Networks without Learning Rates Through Coin Betting
    (NIPS 2017), Algorithm 2, from w_1 = 0. The bet theta / G goes back to the estimator of Krichevsky
    and Trofimov: Orabona and Pal, Coin Betting and Parameter-Free Online Learning (NIPS 2016).

    >>> Coin().SLOTS
    ('w', 'theta', 'won', 'sum', 'largest', 'scale')
    """

    wealth: float = 1.0
    alpha: float = 100.0
    RELATIVE_IMPORTANCE = True
    SLOTS = ("w", "theta", "won", "sum", "largest", "scale")
    DRIFTS = ()
    LIMITS = {"wealth": "> 0", "alpha": "> 0"}
    DTYPE = "float64"
    weight = Sgd.weight

    def step(self, S, j, w, x, slope, now):
        """Settle the last bet, then place the next."""
        g = slope * x
        if g == 0.0:
            return
        S[j, THETA] -= g
        S[j, WON] = max(S[j, WON] - g * w, 0.0)
        S[j, SUM] += abs(g)
        S[j, LARGEST] = max(S[j, LARGEST], abs(g))
        S[j, SCALE] = max(S[j, SCALE], abs(x))
        held = self.wealth * S[j, LARGEST] / S[j, SCALE] + S[j, WON]
        S[j, W] = (
            S[j, THETA] / S[j, LARGEST] * held / max(S[j, SUM] + S[j, LARGEST], self.alpha * S[j, LARGEST])
        )

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet."""
        return w == 0.0 and S[j, LARGEST] == 0.0
