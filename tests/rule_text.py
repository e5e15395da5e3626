"""The text of a rule such as a user may write, for tests that edit it."""

RULE = """
from typing import NamedTuple
import numpy as np
from thresher.parts.registry import part
{before}

@part("rule")
class Own(NamedTuple):
    eta: float = 1.0
    SLOTS = ("w",)
    CLOCK = ("t",)

    def clock0(self):
        return np.ones(1)

    def weight(self, S, j, now):
        return S[j, 0]

    def step(self, S, j, w, x, slope, now):
        S[j, 0] = w - {factor} * slope * x
"""
