"""Projection onto the L1 ball."""

from __future__ import annotations

from typing import Any, NamedTuple

from thresher.parts import threshold_heap
from thresher.parts.prox import soft
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import Sgd

TIME, ETA, THRESHOLD, NORM, LIVE = range(5)  # places in the clock


@part("rule")
class L1Ball(NamedTuple):
    """w' = w - eta g; w_{t+1} = argmin ||w - w'||_2 over ||w||_1 <= radius.

    This is soft(w', theta) with the theta >= 0 that makes the L1 norm `radius`; theta is 0 inside the ball.

    Known weakness: not very sparse along a stream, because each step moves all features of its row:
    docs/papers/singer-on-the-fly.md and docs/papers/singer-ball.md.

    Lazy update: the sum of the thetas, which all coordinates share. The live ones are in a heap, so an
    example of k coordinates costs O(k log n) for n live ones: the smallest are removed while they are no
    larger than theta, and each is removed at most once after it enters.

    Reference: Duchi, Shalev-Shwartz, Singer and Chandra (ICML 2008), Figures 1 to 3, with a heap instead of
    their red-black tree.

    >>> L1Ball(radius=2.0).clock0()  # t, eta_t, sum of thetas, ||w||_1, live coordinates
    array([1. , 0.5, 0. , 0. , 0. ])
    """

    rate: Any = InverseSqrt()
    radius: float = 100.0
    SLOTS = threshold_heap.COLUMNS
    CLOCK = ("t", "eta", "threshold", "norm", "live")
    DRIFTS = ("threshold",)
    LIMITS = {"radius": "> 0"}
    DTYPE = "float64"
    clock0, tick, intercept = Sgd.clock0, Sgd.tick, Sgd.intercept

    def weight(self, S, j, now):
        return soft(S[j, threshold_heap.V], now[THRESHOLD])

    def step(self, S, j, w, x, slope, now):
        moved = w - now[ETA] * slope * x
        S[j, threshold_heap.V] = moved + now[THRESHOLD] if moved > 0 else moved - now[THRESHOLD]

    def constrain(self, S, rows, begin, end, clock):
        """Raise the threshold until the live weights fit."""
        norm, live = threshold_heap.absorb(
            S, rows, begin, end, clock[THRESHOLD], clock[NORM], int(clock[LIVE]), self.radius
        )
        if norm > self.radius:
            theta, live = threshold_heap.lower(S, clock[THRESHOLD], norm, live, self.radius)
            clock[THRESHOLD] += theta
            norm = self.radius
        clock[NORM], clock[LIVE] = norm, live

    def relocate(self, S, count, clock):
        threshold_heap.rebuild(S, count)

    def sound(self, S, clock, steps):
        return threshold_heap.heap_error(S, clock[LIVE])

    def idle(self, S, j, w, now):
        return S[j, threshold_heap.PLACE] == 0.0
