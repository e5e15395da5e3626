"""Forward-backward splitting with the maximum norm."""

from __future__ import annotations

from typing import Any, NamedTuple

from thresher.parts import cap_stack, threshold_heap
from thresher.parts.cap_stack import BELOW, CAPPED, CAPS
from thresher.parts.rates import InverseSqrt
from thresher.parts.registry import part
from thresher.parts.rules.sgd import ETA, TIME, Sgd


@part("rule")
class FobosLinf(NamedTuple):
    """w' = w - eta g; w_{t+1} = argmin ||w - w'||^2 / 2 + eta linf ||w||_inf = w' - proj(w').

    proj is the projection onto the L1 ball of radius eta linf. So |w| is capped at the c for which the
    excess sums to eta linf, and all weights become zero if ||w'||_1 is at most that.

    Lazy update: the smallest cap since the last visit. A stack holds each cap that some weight is at,
    with the number of those weights; a heap holds the weights below their caps, the largest first. An
    example of k coordinates costs O(k log n), but O(n) if nearly every one of n weights has its own cap.

    Reference: Duchi and Singer (JMLR 2009), section 5.4.

    >>> FobosLinf(linf=0.1).clock0()  # t, eta_t, weights in the heap, weights at a cap, caps on the stack
    array([1. , 0.5, 0. , 0. , 0. ])
    """

    rate: Any = InverseSqrt()
    linf: float = 1e-3
    SLOTS = cap_stack.COLUMNS
    CLOCK = ("t", "eta", "below", "capped", "caps")
    PENALTIES = ("linf",)
    DTYPE = "float64"
    clock0, tick, intercept = Sgd.clock0, Sgd.tick, Sgd.intercept
    weight, sound = cap_stack.weight, cap_stack.sound

    def step(self, S, j, w, x, slope, now):
        S[j, threshold_heap.V] = w - now[ETA] * slope * x

    def constrain(self, S, rows, begin, end, clock):
        """Cap the largest weights."""
        below, held, caps = int(clock[BELOW]), int(clock[CAPPED]), int(clock[CAPS])
        below, held = cap_stack.absorb(S, rows, begin, end, clock[TIME], below, held, caps)
        cut = clock[ETA] * self.linf
        if cut > 0.0:
            below, held, caps = cap_stack.cap(S, clock[TIME], below, held, caps, cut)
        clock[BELOW], clock[CAPPED], clock[CAPS] = below, held, caps
