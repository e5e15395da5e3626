"""Euclidean projections of a whole vector onto the simplex and the L1 ball, by sorting and by pivots.

Rules do the same lazily (`l1-ball`, `simplex`); these are the plain forms they are compared with.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.engine.compile.jit import kernel

Vector = NDArray[np.float64]


@kernel
def threshold_by_sorting(v, total):
    """The theta with sum_j max(0, v_j - theta) = total > 0, in O(n log n).

    `v` (n,) float64, n >= 1. Reference: Duchi et al. (ICML 2008), Figure 1.

    >>> threshold_by_sorting(np.array([0.5, 2.0, 1.0]), 2.0)
    0.5
    """
    u = np.sort(v)
    above, theta = 0.0, 0.0
    for n in range(1, u.size + 1):
        above += u[u.size - n]
        theta = (above - total) / n
        if n == u.size or theta >= u[u.size - n - 1]:
            break
    return theta


@kernel
def threshold_by_pivots(v, total):
    """The same in O(n) expected: each random pivot settles the side of it that the threshold is not on.

    `v` (n,) float64, n >= 1. Reference: Duchi et al. (ICML 2008), Figure 2.

    >>> threshold_by_pivots(np.array([0.5, 2.0, 1.0]), 2.0)
    0.5
    """
    u = v.copy()
    low, high, above, count = 0, u.size, 0.0, 0  # u[low:high] is undecided; `count` elements lie above theta
    state = np.uint64(0x9E3779B97F4A7C15)
    while low < high:
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        pivot = u[low + int((state >> np.uint64(33)) % np.uint64(high - low))]
        middle, equal, total_above = low, low, 0.0
        for i in range(low, high):  # larger ones first, then equal ones
            if u[i] >= pivot:
                x = u[i]
                total_above += x
                u[i], u[middle] = u[middle], x
                if x > pivot:
                    u[middle], u[equal] = u[equal], x
                    equal += 1
                middle += 1
        if above + total_above - (count + middle - low) * pivot < total:
            above, count, low = above + total_above, count + middle - low, middle
        else:
            high = equal
    return (above - total) / count


def project_simplex(v: ArrayLike, total: float = 1.0) -> Vector:
    """Argmin ||w - v||_2 over w >= 0 with sum `total`: max(0, v - theta), ``(n,)`` float64.

    >>> project_simplex([0.5, 2.0, 1.0], 2.0)
    array([0. , 1.5, 0.5])
    """
    given = np.asarray(v, np.float64)
    moved: Vector = np.maximum(0.0, given - threshold_by_pivots(given, float(total)))
    return moved


def project_l1_ball(v: ArrayLike, radius: float = 1.0) -> Vector:
    """Argmin ||w - v||_2 over ||w||_1 <= radius: soft(v, theta), or v itself where it lies inside.

    >>> project_l1_ball([-0.5, 2.0, -1.0], 2.0)
    array([-0. ,  1.5, -0.5])
    """
    given = np.asarray(v, np.float64)
    sizes = np.abs(given)
    return given.copy() if sizes.sum() <= radius else np.sign(given) * project_simplex(sizes, radius)
