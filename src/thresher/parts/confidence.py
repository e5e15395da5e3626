"""A Gaussian over weights with a diagonal covariance, for rules that keep one.

Rows hold a mean w and a confidence q; the variance is 1 / (1 + q), so a row of zeros has mean 0 and
variance 1. The functions are scalar and stateless.
"""

from __future__ import annotations

import math

from thresher.engine.compile.jit import scalar

W, Q = range(2)  # columns of S
_TINY = 2.0**-100  # variances of a margin below this are taken for zero: their inverses would overflow


@scalar
def variance(S, j):
    """Variance of the weight in row j."""
    one = S.dtype.type(1)  # a literal would widen a float32
    return one / (one + S[j, Q])


@scalar
def multiplier(m, v, n, phi):
    """The alpha >= 0 with m + alpha n = phi sqrt(u), u = v / (1 + k v), k = alpha phi / sqrt(u).

    Zero where m >= phi sqrt(v) already. `m` is the mean of the margin, `v` its variance, n >= v. It is
    the root of n (n + v phi^2) alpha^2 + m (2 n + v phi^2) alpha + m^2 - phi^2 v = 0.

    >>> multiplier(0.0, 2.0, 2.0, 1.0)
    0.5
    """
    if v < _TINY or m >= phi * math.sqrt(v):
        return 0.0
    half = m * (n + 0.5 * v * phi * phi)
    square = n * (n + v * phi * phi)
    root = 0.5 * phi * math.sqrt(m * m * v * v * phi * phi + 4.0 * v * square)
    if m > 0.0:
        return (phi * phi * v - m * m) / (half + root)  # the same without cancellation
    return (root - half) / square


@scalar
def precision(alpha, v, phi):
    """The k above: what x^2 is multiplied by to give the growth of the inverse variance."""
    if alpha == 0.0:
        return 0.0
    pull = alpha * v * phi
    return alpha * phi * (pull + math.sqrt(pull * pull + 4.0 * v)) / (2.0 * v)
