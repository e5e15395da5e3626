"""Weights in the form of scikit-learn's linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from thresher.learning.model.objective import Objective
from thresher.learning.model.prediction import Readout
from thresher.learning.model.warm_start import start_from

F64 = NDArray[np.float64]


def as_readout(head: Objective, store: str, coef: Any, bias: F64) -> Readout:
    """A readout of `coef` ``(outputs, d)``, CSR, and `bias` ``(outputs,)``; keys are columns.

    A loss with a margin for each of two classes also accepts a single margin.
    """
    if head.count == 2 * coef.shape[0]:
        coef, bias = vstack([csr_matrix(coef.shape), coef]), np.r_[0.0, bias]
    columns = coef.tocsc()
    columns.eliminate_zeros()
    used: NDArray[Any] = np.flatnonzero(np.diff(columns.indptr))
    table = columns[:, used].toarray().T.astype(np.float64)
    weights = np.ascontiguousarray(table[:, 0] if head.count == 1 else table)
    return Readout(head, store, used.astype(np.uint64), weights, bias)


def begin_with(model: Any, width: int, coef: ArrayLike | None, intercept: ArrayLike | None) -> None:
    """Set weights and intercepts of a new model with `width` columns; None means zeros. ValueError."""
    outputs = model.head.count
    shapes = {
        (outputs, width),
        *([(width,)] if outputs == 1 else []),
        *([(1, width)] if outputs == 2 else []),
    }
    given: Any = csr_matrix((outputs, width)) if coef is None else coef
    if np.shape(given) not in shapes:
        raise ValueError(f"coef_init has shape {np.shape(given)}, expected {(outputs, width)}")
    table = csr_matrix(given if issparse(given) else np.atleast_2d(np.asarray(given)), dtype=np.float64)
    bias = np.zeros(table.shape[0]) if intercept is None else np.asarray(intercept, np.float64).reshape(-1)
    if bias.size != table.shape[0]:
        raise ValueError(f"intercept_init has {bias.size} numbers, expected {table.shape[0]}")
    if not (np.isfinite(table.data).all() and np.isfinite(bias).all()):
        raise ValueError("coef_init and intercept_init must be finite")
    start_from(model, as_readout(model.head, model.store, table, bias))
