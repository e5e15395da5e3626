"""The source of a user's own rule, for tests that edit it, and code that reads its factor."""

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
        return {factor} * S[j, 0]

    def step(self, S, j, w, x, slope, now):
        S[j, 0] -= self.eta * slope * x
"""
READ = """
import json, os
import numpy as np
from thresher import parts
from thresher.engine import kernels

def read(rule):
    rule, out = parts.make("rule", rule) if isinstance(rule, str) else rule, np.empty(1)
    kernels.read(rule, np.ones((1, 1)), rule.clock0(), np.zeros(1, np.int64), out)
    return float(out[0])

def compiled():
    return [kernels.read.loaded, kernels.read.compiled]
"""
"""`read` is the factor; `compiled` how often code was found in the cache, and how often it was not."""
