"""The perceptron, and the averaged one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.parts.registry import part
from thresher.parts.rules.pa import Pa
from thresher.parts.rules.sgd import Sgd

W, MOMENTS = range(2)  # columns of S
TIME = 0  # the place in the clock


class Steps(NamedTuple):
    """What both have: steps of length eta."""

    eta: float = 1.0
    DRIFTS = ()
    LIMITS = {"eta": "> 0"}
    weight = Sgd.weight

    def slope_after_margin(self, margin, value, slope, size, clock):
        return self.eta * slope


@part("rule")
class Perceptron(Steps):
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

    SLOTS = ("w",)
    place, step, idle = Sgd.place, Pa.step, Sgd.idle


@part("rule")
class AveragedPerceptron(Steps):
    """Learns like `perceptron`, predicts with (w_1 + ... + w_T) / T, the mean of all weights so far.

    w_t are the weights that predicted example t, so every example counts once, whether it was a
    mistake or not. The progressive loss is that of w_t.

    Lazy update: none needed. The change d_s made by example s is in w_t for all t > s, so the mean is
    w_{T+1} - (1/T) sum of s d_s; a row holds w and that sum, in float64.

    Reference: Freund and Schapire (Machine Learning 1999), with the average instead of the vote;
    the mean as in Langford, Li and Zhang (JMLR 2009), theorem 3.2.

    >>> AveragedPerceptron().clock0()  # t
    array([1.])
    """

    SLOTS = ("w", "moments")
    CLOCK = ("t",)
    DTYPE = "float64"

    def clock0(self):
        return np.ones(1)

    def step(self, S, j, w, x, slope, now):
        """The step, and its contribution to the sum."""
        S[j, W] = w - slope * x
        S[j, MOMENTS] -= now[TIME] * slope * x

    def shown(self, S, j, w, now):
        """The mean of the weights that predicted."""
        return w - S[j, MOMENTS] / (now[TIME] - 1.0) if now[TIME] > 1.0 else w

    def tick(self, clock):
        clock[TIME] += 1.0

    def idle(self, S, j, w, now):
        return w == 0.0 and S[j, MOMENTS] == 0.0
