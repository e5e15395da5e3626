"""The averaged perceptron."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.parts.registry import part
from thresher.parts.rules.perceptron import Perceptron

W, MOMENTS = range(2)  # columns of S
TIME = 0  # the place in the clock


@part("rule")
class AveragedPerceptron(NamedTuple):
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

    eta: float = 1.0
    SLOTS = ("w", "moments")
    CLOCK = ("t",)
    DRIFTS = ()
    LIMITS = {"eta": "> 0"}
    DTYPE = "float64"
    weight, slope_after_margin = Perceptron.weight, Perceptron.slope_after_margin

    def clock0(self):
        """T."""
        return np.ones(1)

    def step(self, S, j, w, x, slope, now):
        """The step, and its contribution to the sum."""
        S[j, W] = w - slope * x
        S[j, MOMENTS] -= now[TIME] * slope * x

    def shown(self, S, j, w, now):
        """The mean of the weights that predicted."""
        return w - S[j, MOMENTS] / (now[TIME] - 1.0) if now[TIME] > 1.0 else w

    def tick(self, clock):
        """Advance to the next example."""
        clock[TIME] += 1.0

    def idle(self, S, j, w, now):
        """Whether the weight has never changed."""
        return w == 0.0 and S[j, MOMENTS] == 0.0
