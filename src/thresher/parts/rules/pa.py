"""Passive-aggressive."""

from __future__ import annotations

from typing import NamedTuple

from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

W = 0  # the column of S


@part("rule")
class Pa(NamedTuple):
    """w' = w - eta l / (s^2 |x|^2) s x, l the loss and s its slope: with eta = 1, s <w' - w, x> = -l.

    With the hinge loss (recommended; `absolute` for regression) this is tau = l / |x|^2, the smallest
    change after which the example has no loss. Other losses are replaced by their tangent. An
    importance has no effect unless it is 0. The intercept is a feature of value 1 and counts in |x|^2.

    Lazy update: none needed.

    Known weakness: a wrong label is learned as fully as a right one; see `pa-i` and `pa-ii`. On the
    topics of RCV1 it makes the most errors of four rules on three of four: docs/papers/singer-topics.md.
    And a loss of 0 changes nothing: with the loss `perceptron`, zero weights never change.

    Reference: Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (JMLR 2006), Figure 1; `eta` is the
    relaxation of Agmon (1954).

    >>> Pa().slope_after_margin(0.5, 0.5, -1.0, 2.0, None)  # half the loss, since |x|^2 = 2
    -0.25
    """

    eta: float = 1.0
    RELATIVE_IMPORTANCE = True
    SLOTS = ("w",)
    DRIFTS = ()
    LIMITS = {"eta": "> 0"}
    weight, place, idle = Sgd.weight, Sgd.place, Sgd.idle

    def size_before_margin(self, S, j, x, now):
        """|x|^2."""
        return x * x

    def slope_after_margin(self, margin, value, slope, size, clock):
        """The slope times tau."""
        area = slope * size
        return self.eta * max(value, 0.0) / area if area != 0.0 else 0.0

    def step(self, S, j, w, x, slope, now):
        """The step."""
        S[j, W] = w - slope * x
