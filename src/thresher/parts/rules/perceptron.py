"""The perceptron."""

from __future__ import annotations

from typing import NamedTuple

from thresher.parts.registry import part
from thresher.parts.rules.pa import Pa


@part("rule")
class Perceptron(NamedTuple):
    """w' = w - eta s x, s the slope of the loss times the importance.

    With the loss `perceptron` (recommended) this is w + eta y x on a mistake; a margin of 0 counts as
    one, and eta does not affect predictions. The intercept is a feature of value 1.

    Lazy update: none needed.

    Known weakness: if the data are not linearly separable it does not converge; see
    `averaged-perceptron`.

    Reference: Rosenblatt (1958); mistake bound: Novikoff (1962).

    >>> Perceptron().slope_after_margin(0.0, 0.0, -1.0, 2.0, None)
    -1.0
    """

    eta: float = 1.0
    SLOTS = ("w",)
    DRIFTS = ()
    LIMITS = {"eta": "> 0"}
    weight, place, step, idle = Pa.weight, Pa.place, Pa.step, Pa.idle

    def slope_after_margin(self, margin, value, slope, size, clock):
        """The slope times eta."""
        return self.eta * slope
