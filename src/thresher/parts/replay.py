"""Apply missed penalties one by one, for rates without a closed-form sum."""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.jit import helper
from thresher.engine.verbs import at

_BLOCK = 64  # steps whose sizes are computed at once, vectorised four at a time


@helper
def added(pulls):
    """Sum of a block, as four independent partial sums."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(0, _BLOCK, 4):
        a, b, c, d = a + pulls[i], b + pulls[i + 1], c + pulls[i + 2], d + pulls[i + 3]
    return (a + b) + (c + d)


@helper
def replayed(rate, l1, w, s, t):
    """Weight w after the penalties of steps s..t-1: by blocks, then one by one where it may reach zero."""
    pulls = np.empty(_BLOCK)
    while s < t and w != 0.0:
        count = min(_BLOCK, int(t - s))
        for i in range(count):
            pulls[i] = at(rate, s + i) * l1
        whole = added(pulls) if count == _BLOCK else math.inf
        if whole < abs(w):
            w -= math.copysign(whole, w)
        else:
            for i in range(count):
                if w == 0.0:
                    break
                w -= math.copysign(pulls[i], w)
        s += count
    return w
