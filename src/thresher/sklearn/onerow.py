"""The short way to learn one example: validation takes many times as long as learning it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

_CSR = (csr_matrix, csr_array)


def chunk_of_row(X: Any, y: Any, width: int, labels: dict[Any, float] | None) -> Any:
    """The one example of a CSR or dense X ``(1, width)`` and y ``(1,)``; None for anything else.

    `labels` are those of the classes; None where y is the label itself. What it does not accept at a glance
    goes the long way, where what is wrong with it is said.
    """
    from thresher.data.matrices import one_row
    from thresher.learning.finite import EXTREME

    kind = type(X)
    if (kind not in _CSR and kind is not np.ndarray) or X.shape != (1, width) or X.dtype.kind != "f":
        return None
    if type(y) not in (np.ndarray, list) or len(y) != 1:
        return None
    label = y[0]
    if labels is not None:
        label = labels.get(label) if isinstance(label, str | int | float | np.generic) else None
        if label is None:
            return None
    elif not isinstance(label, float | int) or not abs(label) < EXTREME:
        return None
    if kind in _CSR:
        return one_row(X.indices, X.data, np.uint64(width - 1), label)
    row = X[0]
    columns = row.nonzero()[0]
    return one_row(columns, row[columns], np.uint64(width - 1), label)
