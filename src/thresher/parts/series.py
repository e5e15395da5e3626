"""Sums of what was missed, in closed form over consecutive numbers or penalty by penalty; and of what fades.

In a world that drifts, old gradients mislead. With a `half_life` of N examples, every sum of `ftrl` and
`ft-ftrl` over the examples is multiplied by 2^(-1/N) after each of them: it is then an exponentially weighted
sum (with batches, examples are batches). A row that was missed by k examples owes one power, 2^(-k/N), and
pays when it is read or stepped.

The times of which k is the difference are stored in the dtype of the state: float32 counts to 16.7 million,
then in twos, fours ... But differences telescope, so a row is never off by more than one rounded time. The
power is a float64, and so is what is added to a product before both are rounded to the dtype: for a row that
is in every example, 2^(-1/N) would otherwise be rounded to 1 from a half-life of 2e7 on.

Compiled loops get None for an infinite half-life (`in_dtype`), so the compiler leaves out the code for sums
that fade: a test at run time made `ftrl` 7 % slower, `ft-ftrl` 10 %, and eight lanes even more.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.compile.jit import helper, scalar
from thresher.engine.verbs import at

_LN2 = math.log(2.0)


@scalar
def fades(half_life):
    """Whether sums fade."""
    return half_life is not None and half_life < math.inf


@scalar
def left(half_life, amount, missed):
    """What is left of a sum after `missed` examples: amount 2^(-missed / half_life).

    >>> left(5.0, 3.0, 5.0)
    1.5
    """
    if half_life is None:
        return amount
    return amount * math.exp(-missed * (_LN2 / float(half_life)))


_SHORT = 0.02  # below this, a few terms of a power series are exact; above it, there is no cancellation


@helper
def decays(middle, n, rate):
    """Sum of exp(-rate m) - 1 over n consecutive m >= 0 of mean `middle`.

    >>> round(decays(1.0, 3.0, math.log(2.0)), 12)  # 0 - 1/2 - 3/4
    -1.25
    """
    half, falling = 0.5 * n * rate, math.exp(-rate * middle)
    if half < _SHORT:
        square, second = rate * rate, n * (n * n - 1.0) / 12.0  # sums of powers of n numbers of mean 0
        fourth = second * (3.0 * n * n - 7.0) / 20.0
        bulge = falling * square * (0.5 * second + square * fourth / 24.0)
    else:
        ends = math.exp(half - rate * middle) - math.exp(-half - rate * middle)
        bulge = ends / (2.0 * math.sinh(0.5 * rate)) - n * falling
    return n * math.expm1(-rate * middle) + bulge


_BLOCK = 64  # steps whose sizes are computed at once, vectorised four at a time


@helper
def replay(rate, l1, w, s, t):
    """Weight w after the penalties of steps s..t-1: by blocks, then one by one where it may reach zero."""
    pulls = np.empty(_BLOCK)
    while s < t and w != 0.0:
        count = min(_BLOCK, int(t - s))
        for i in range(count):
            pulls[i] = at(rate, s + i) * l1
        whole = math.inf
        if count == _BLOCK:  # four independent partial sums
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for i in range(0, _BLOCK, 4):
                a, b, c, d = a + pulls[i], b + pulls[i + 1], c + pulls[i + 2], d + pulls[i + 3]
            whole = (a + b) + (c + d)
        if whole < abs(w):
            w -= math.copysign(whole, w)
        else:
            for i in range(count):
                if w == 0.0:
                    break
                w -= math.copysign(pulls[i], w)
        s += count
    return w
