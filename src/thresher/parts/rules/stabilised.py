"""Stabilised truncated gradient: gravity from a rejection rate, and stability selection."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher.engine.verbs import rewrites
from thresher.parts import bursts
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

TIME, ETA, BURSTS, REJECTION, FEATURES = range(5)  # places in the clock


@part("rule")
class Stabilised(NamedTuple):
    """w' = w - eta g; at the end of each burst of K = `every` steps: soft(w', G), G by a rejection rate.

    G is the smallest gravity that makes beta d (rounded) of the d weights of the active set zero. With
    `informative` the truncation is soft(w', G k), k the number of steps of this burst in which the
    coordinate had a gradient (g != 0), and features are ranked by |w'| / k; those with k = 0 cannot be
    truncated. Rare features are then the last to become zero, the more so the larger K.

    The active set is all features that had a gradient, until the first stage of `stage` bursts ends.
    At the end of each stage, features stay whose weight was not zero at the end of a share `purging`
    (pi_0) or more of its bursts; the others are purged for good, and features first met later are ignored.
    With p features before the first purge, u = d / p and gamma = `annealing`, beta is `rejection`
    (beta_0) times exp(-gamma (1 - u)) - (1 - u) exp(-gamma) for gamma > 0, u for gamma = 0,
    log(1 - gamma u) / log(1 - gamma) for gamma < 0: the fewer features are left, the fewer are rejected.
    With many outputs, each has its own active set.

    ``purging=0`` purges nothing, so beta is constant. ``rejection=0`` sets G = eta K `gravity`, with
    `informative` eta `gravity`, eta the step size of the burst's last step: without purging this is
    `truncated-gradient` or the paper's informative truncation. Otherwise `gravity` is ignored.

    Lazy update: none needed. The whole active set is visited at the end of each burst, so a burst should
    have at least as many non-zeros as the set has features. Purged rows are freed.

    The full text of the paper was not available, so some details follow its authors' published code:
    one G for the whole active set, annealing (there beta_0 multiplies the first term only, which is below
    zero near u = 0), purging (there also at equality), and the defaults except K, 20 there. Not
    implemented: selection counted at every step instead of every burst, unit norm after a burst, bursts
    that grow as features are purged, the vote of several chains. There p counts all columns; a stream only
    knows those it has met. `informative` combines the rejection rate with the paper's informative
    truncation.

    Reference: Ma and Zheng, Stabilized Sparse Online Learning for Sparse Data (JMLR 18, 2017).

    >>> Stabilised().clock0()  # t, eta_t, bursts of this stage, rejection rate, features of the first stage
    array([1. , 0.5, 0. , 0.8, 0. ])
    """

    rate: Any = InverseSqrt()
    rejection: float = 0.8
    annealing: float = -9.0
    purging: float = 0.85
    every: float = 1000.0
    stage: float = 5.0
    gravity: float = 1e-6
    informative: bool = False
    SLOTS = bursts.COLUMNS
    CLOCK = ("t", "eta", "bursts", "rejection", "features")
    DRIFTS = ()
    PENALTIES = ("gravity",)
    LIMITS = {
        "rejection": "in [0, 1]",
        "annealing": "any number",
        "purging": "in [0, 1]",
        "every": "a whole number >= 1",
        "stage": "a whole number >= 1",
    }
    tick, weight, intercept = Sgd.tick, Sgd.weight, Sgd.intercept

    def clock0(self):
        """T, eta_t, bursts of this stage, rejection rate, features of the first stage once it has ended."""
        return np.array([1.0, self.rate.at(1.0), 0.0, self.rejection, 0.0])

    def step(self, S, j, w, x, slope, now):
        """The gradient step, counted; none outside the active set after the first stage."""
        g, kept = slope * x, S[j, bursts.KEPT]
        moves = (g != 0) & (kept + (now[FEATURES] == 0) != 0)
        S[j, bursts.W] = w - now[ETA] * g * moves
        S[j, bursts.INFORMED] += moves
        S[j, bursts.KEPT] = kept + (moves & (kept == 0))

    def constrain(self, S, rows, begin, end, clock):
        """End a burst, and a stage if it was the last burst."""
        if not rewrites(self, clock):
            return
        live = bursts.active(S)
        if live.size == 0:
            return
        if self.rejection > 0.0:
            gravity = bursts.gravity_for(S, live, int(clock[REJECTION] * live.size + 0.5), self.informative)
        else:
            gravity = clock[ETA] * self.gravity * (1.0 if self.informative else self.every)
        bursts.truncate(S, live, gravity, self.informative)
        clock[BURSTS] += 1.0
        if self.purging > 0.0 and clock[BURSTS] == self.stage:
            kept = bursts.purge(S, live, self.stage, self.purging)
            clock[BURSTS] = 0.0
            clock[FEATURES] = max(clock[FEATURES], live.size)
            clock[REJECTION] = self.rejection * bursts.anneal(kept / clock[FEATURES], self.annealing)

    def rewrites(self, clock):
        """Whether a burst ends."""
        return clock[TIME] % self.every == 0.0

    def idle(self, S, j, w, now):
        """Whether the row is outside the active set."""
        return S[j, bursts.KEPT] == 0.0
