"""The model of an estimator stays as it was where what is learned breaks its weights."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thresher.learning.finite import DivergedError, is_extreme


@contextmanager
def restored_if_broken(estimator: Any, matrix: Any, weights: Any) -> Iterator[None]:
    """Where numbers are so large that they may break weights, take back the model as it was if they do."""
    large = is_extreme(matrix.data, matrix.labels, matrix.targets, weights)
    kept = copy.copy(estimator._model) if large and "_model" in vars(estimator) else None
    try:
        yield
    except DivergedError:
        if kept is not None:
            vars(estimator._model).update(vars(kept))  # in place: others may hold it
        raise
