"""Step-size schedules: eta_t for example t = 1, 2, ..."""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.registry import part


@part("rate")
class Constant(NamedTuple):
    """eta_t = eta0.

    >>> Constant(0.5).at(100)
    0.5
    """

    eta0: float = 0.5
    LIMITS = {"eta0": "> 0"}
    TUNED = {"eta0": (0.01, 10.0)}

    def at(self, t):
        return self.eta0

    def steady(self):
        return True


@part("rate")
class InverseSqrt(NamedTuple):
    """eta_t = eta0 / sqrt(t): the rate of Zinkevich (2003), regret O(sqrt(T)).

    >>> InverseSqrt(0.5).at(100)
    0.05
    """

    eta0: float = 0.5
    LIMITS, TUNED = Constant.LIMITS, Constant.TUNED

    def at(self, t):
        return self.eta0 / math.sqrt(t)


@part("rate")
class Inverse(InverseSqrt):
    """eta_t = eta0 / t: for strongly convex objectives.

    >>> Inverse(0.5).at(100)
    0.005
    """

    def at(self, t):
        return self.eta0 / t


@part("rate")
class Power(NamedTuple):
    """eta_t = eta0 (t0 / (t0 + t - 1))^p: roughly constant for t0 examples, then falling like t^-p.

    >>> Power(0.5, t0=10, p=1).at(11)
    0.25
    """

    eta0: float = 0.5
    t0: float = 1000.0
    p: float = 0.5
    LIMITS, TUNED = {"eta0": "> 0", "t0": "> 0"}, Constant.TUNED

    def at(self, t):
        falling = self.t0 / (self.t0 + t - 1.0)
        # a square root is five times as fast as a power, and p = 1/2 is common
        return self.eta0 * (math.sqrt(falling) if self.p == 0.5 else falling**self.p)
