"""Intervals from the models of an ensemble: the reach, in standard deviations, that covers a share of them.

The models of `poisson` bags are fits to bootstrap samples, so their deviation estimates the standard error of
one fit (Qin, Petricek, Karampatziakis, Li and Langford, Efficient Online Bootstrapping for Large Scale
Learning (2013); for steps of stochastic gradients, Fang, Xu and Yang, Online Bootstrap Confidence Intervals
for the Stochastic Gradient Descent Estimator (JMLR 2018)). `experiments/uncertainty.py` measured how often
the truth is inside, and compared quantiles of the models: docs/uncertainty.md has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.learning.model.objective import F64

FEWEST = 8
"""Fewer models say too little about their deviation."""
MOST_LEVEL = 0.999999999999999
"""The quantile of a level closer to 1 is that of 1 in float64, which is not finite."""
_HALVINGS = 60
"""Halvings of an interval of angles after which its ends are equal in float64"""


class WeightIntervals(NamedTuple):
    """Weights of an ensemble, for values as they are, whatever columns the models scale.

    For many outputs the arrays but `keys` are ``(features, outputs)``.
    """

    keys: NDArray[np.uint64]
    """features with a nonzero weight in any of the models ``(features,)``, which ascend"""
    weights: F64
    """means over all models, zeros included ``(features,)``"""
    lower: F64
    upper: F64
    alive: F64
    """share of the models in which the weight is not zero"""
    intercepts: F64
    """mean, lower and upper ``(3,)`` or ``(3, outputs)``"""

    def heaviest(self, top: int | None = None) -> list[tuple[int, int, tuple[float, ...]]]:
        """Key, output, and weight, lower, upper and share alive; the largest mean first."""
        table = np.stack([self.weights, self.lower, self.upper, self.alive], axis=-1)
        table = table.reshape(len(self.keys), -1, 4)
        rows, columns = np.nonzero(table[..., 3])
        order = np.lexsort((columns, self.keys[rows], -np.abs(table[rows, columns, 0])))[:top]
        rows, columns = rows[order], columns[order]
        each = zip(self.keys[rows].tolist(), columns.tolist(), table[rows, columns].tolist(), strict=True)
        return [(key, output, tuple(numbers)) for key, output, numbers in each]

    def biases(self) -> list[tuple[float, ...]]:
        """For each output intercept, lower, upper and 1: every model has an intercept."""
        return [(*one, 1.0) for one in self.intercepts.reshape(3, -1).T.tolist()]


def reach(level: float, models: int) -> float:
    """Half the width of an interval that covers `level`, in standard deviations of so many models.

    The mean of N models is one error of the fit and 1/sqrt(N) of another away from the truth, and the
    deviation is estimated: t sqrt(1 + 1/N), with t a quantile of Student's distribution of N - 1 degrees of
    freedom.

    >>> round(reach(0.9, 8), 2), round(reach(0.9, 100), 2)
    (2.01, 1.67)
    """
    return student(float(level), models - 1) * math.sqrt(1 + 1 / models)


@cache
def student(level: float, nu: int) -> float:
    """The t with -t <= T <= t in a share `level` of draws of Student's T with `nu` degrees of freedom.

    With T = sqrt(nu) / tan(u), the density of u is proportional to sin(u)^(nu - 1), and |T| > t where u is
    below some angle, which is found by bisection. The integrals are sums over the nodes of Gauss and
    Legendre, with relative errors of 1e-12.

    >>> round(student(0.95, 7), 9)  # tables have 2.365
    2.364624252
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def below(angle: float) -> float:
        return float(weights @ np.sin(angle * (1 + nodes) / 2) ** (nu - 1)) * angle

    low, high = 0.0, math.pi / 2
    wanted = (1 - level) * below(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if below(middle) > wanted else (middle, high)
    return math.sqrt(nu) / math.tan(high)


def around(each: Sequence[F64], level: float) -> tuple[F64, F64, F64]:
    """The means of numbers of the models, and the ends of their intervals."""
    middle, half = mean(each), reach(level, len(each)) * deviation(each)
    return middle, middle - half, middle + half


def total(given: Sequence[F64]) -> F64:
    """The sum, added in this order whatever the number of rows."""
    found = given[0].copy()
    for one in given[1:]:
        found += one
    return found


def mean(given: Sequence[F64]) -> F64:
    """The mean, by `total`."""
    return total(given) / len(given)


def deviation(given: Sequence[F64]) -> F64:
    """Standard deviations; the divisor is the number of models less one."""
    middle = mean(given)
    return np.sqrt(total([(one - middle) ** 2 for one in given]) / (len(given) - 1))
