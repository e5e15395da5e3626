"""An interior point method for logistic regression with L1, to compare others with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
_TOWARDS, _NEAR = 0.1, 0.99
"""The next duality gap is this share of the current one; steps go this share of the way to the border."""


def interior_point(X: Any, y: F64, l1: float, tolerance: float = 1e-9) -> Iterator[F64]:
    """Yield the weights after each step towards the minimum of ``sum log(1 + exp(-y X w)) + l1 |w|_1``.

    `X` is a scipy matrix (n, d) and y is 1 or -1. w = p - q with p, q >= 0, whose multipliers are a and b;
    each step solves the Newton equations of the optimality conditions, with p a = q b = mu and a falling mu.
    It stops when the gap p.a + q.b is below `tolerance` times n. (Koh, Kim and Boyd (JMLR 2007) solve the
    same problem with a barrier.)
    """
    d = X.shape[1]
    p, q, a, b = np.ones(d), np.ones(d), np.full(d, l1), np.full(d, l1)
    while p @ a + q @ b >= tolerance * len(y):
        mass = 1 / (1 + np.exp(y * (X @ (p - q))))
        gradient = -(X.T @ (y * mass))
        H = (X.T.multiply(mass * (1 - mass)) @ X).toarray()
        mu = _TOWARDS * (p @ a + q @ b) / (2 * d)
        P, Q = a / p, b / q
        up, down = gradient + l1 - mu / p, -gradient + l1 - mu / q
        both = 1 / P + 1 / Q
        move = H @ np.linalg.solve(H + np.diag(1 / both), (down / Q - up / P) / both)
        dp, dq = (-up - move) / P, (-down + move) / Q
        da, db = mu / p - a - P * dp, mu / q - b - Q * dq
        inside, outside = min(_room(p, dp), _room(q, dq)), min(_room(a, da), _room(b, db))
        p, q, a, b = p + inside * dp, q + inside * dq, a + outside * da, b + outside * db
        yield p - q


def _room(at: F64, step: F64) -> float:
    """How much of the step can be taken so that all stay positive."""
    falling = step < 0
    return min(1.0, _NEAR * float(np.min(-at[falling] / step[falling], initial=np.inf)))


def operations(X: Any) -> float:
    """Multiplications and additions of a step: the Hessian, its factorisation, margins and gradient."""
    counts = np.diff(X.indptr).astype(np.float64)
    return float((counts * (counts + 1)).sum() + X.shape[1] ** 3 / 3 + 4 * X.nnz)
