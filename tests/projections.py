"""The Euclidean projection of a whole vector onto the L1 ball: rules do the same lazily (`l1-ball`)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


def project_l1_ball(v: ArrayLike, radius: float = 1.0) -> Vector:
    """Argmin ||w - v||_2 over ||w||_1 <= radius: soft(v, theta), or v itself where it lies inside.

    Reference: Duchi et al. (ICML 2008), Figure 1.

    >>> project_l1_ball([-0.5, 2.0, -1.0], 2.0)
    array([-0. ,  1.5, -0.5])
    """
    given = np.asarray(v, np.float64)
    sizes = np.abs(given)
    if sizes.sum() <= radius:
        return given.copy()
    falling = np.sort(sizes)[::-1]
    excess = (np.cumsum(falling) - radius) / np.arange(1, len(falling) + 1)
    theta = excess[np.count_nonzero(falling > excess) - 1]
    moved: Vector = np.sign(given) * np.maximum(sizes - theta, 0.0)
    return moved
