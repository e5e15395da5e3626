"""Restore the model of an estimator if learning makes its weights infinite or NaN."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thresher.learning.finite import DivergedError, is_extreme


@contextmanager
def restored_if_broken(estimator: Any, matrix: Any, weights: Any) -> Iterator[None]:
    """Restore the model after an error, if numbers are so large that they can break weights."""
    large = is_extreme(matrix.data, matrix.labels, matrix.targets, weights)
    kept = copy.copy(estimator._model) if large and "_model" in vars(estimator) else None
    try:
        yield
    except DivergedError:
        if kept is not None:
            vars(estimator._model).update(vars(kept))  # in place: others may refer to it
        raise
