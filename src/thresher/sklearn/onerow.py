"""A shortcut for learning a single example, for which validation takes much longer than learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

_CSR = (csr_matrix, csr_array)
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))  # in the machine's byte order


def chunk_of_row(X: Any, y: Any, width: int, labels: dict[Any, float] | None) -> Any:
    """A Chunk of the only example of a CSR or dense X ``(1, width)`` and y ``(1,)``; None for anything else.

    `labels` maps classes to labels; None if y is the label itself. Inputs that are not obviously valid take
    the normal route, which reports what is wrong.
    """
    from thresher.data.matrices import one_row
    from thresher.learning.finite import EXTREME

    kind = type(X)
    if (kind not in _CSR and kind is not np.ndarray) or X.shape != (1, width) or X.dtype not in _DTYPES:
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
    if kind in _CSR and not X.indices.dtype.isnative:
        return None
    if kind in _CSR:
        return one_row(X.indices, X.data, np.uint64(width - 1), label)
    row = X[0]
    columns = row.nonzero()[0]
    return one_row(columns, row[columns], np.uint64(width - 1), label)
