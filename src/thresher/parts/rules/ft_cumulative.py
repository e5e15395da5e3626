"""Frequency-aware cumulative L1 penalty."""

from __future__ import annotations

from thresher.parts.prox import norm_with, receive
from thresher.parts.registry import part
from thresher.parts.rules.cumulative import DUE, DUE_NEXT, ETA, Cumulative
from thresher.parts.rules.ft_fobos import FrequencyAware
from thresher.parts.rules.sgd import Sgd

W, TAKEN, H = range(3)  # columns of S


@part("rule")
class FtCumulative(FrequencyAware):
    """`cumulative` with h u instead of u, h = min(cap, p-norm of the coordinate's eta_s g_s, s <= t).

    u_t = u_{t-1} + eta_t l1 in every example. If g != 0: w' = w - eta g, h includes eta g, and
    w'' = max(0, w' - (h u + q)) if w' > 0, min(0, w' + (h u - q)) if w' < 0; q += w'' - w'.
    A coordinate first seen late has a small h and therefore a small penalty. p and cap are as in
    `ft-fobos`.

    Lazy update: none during training; when the model is read, every weight first receives the rest of
    its penalty. The state is float64, as in `ft-fobos`.

    Known weakness: on seven sets of texts it makes no fewer errors than the simpler `ft-fobos`:
    docs/papers/oiwa-frequency.md.

    Reference: Oiwa, Matsushima and Nakagawa (ECML PKDD 2011), combined with the cumulative penalty of
    Tsuruoka, Tsujii and Ananiadou (ACL 2009).

    >>> FtCumulative(l1=0.1).clock0()  # t, eta_t, u without and with t
    array([1.  , 0.5 , 0.  , 0.05])
    """

    SLOTS = ("w", "taken", "h")
    CLOCK, DRIFTS = Cumulative.CLOCK, Cumulative.DRIFTS
    clock0, weight, tick = Cumulative.clock0, Cumulative.weight, Cumulative.tick
    place = Sgd.place

    def step(self, S, j, w, x, slope, now):
        """The gradient step, counted in h, then all of the penalty that is due."""
        move = now[ETA] * slope * x
        if move == 0:
            return
        S[j, H] = norm_with(S[j, H], move, self.p)
        moved = w - move
        S[j, W] = receive(moved, S[j, TAKEN], now[DUE_NEXT] * min(S[j, H], self.cap))
        S[j, TAKEN] += S[j, W] - moved

    def shown(self, S, j, w, now):
        """The weight after the rest of its penalty."""
        return receive(w, S[j, TAKEN], now[DUE] * min(S[j, H], self.cap))

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet: h and the penalty received must be kept."""
        return w == 0.0 and S[j, H] == 0.0 and S[j, TAKEN] == 0.0
