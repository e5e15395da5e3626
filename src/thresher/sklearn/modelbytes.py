"""Models as bytes: those of a model file, from which no code runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thresher.learning import modelfile
from thresher.learning.finite import DivergedError, is_extreme
from thresher.learning.readout import Readout

_NAME = "the model in the estimator"


def as_bytes(model: Any) -> bytes:
    """A Model with all that it goes on learning from, or a Readout."""
    if not isinstance(model, Readout):
        return modelfile.as_bytes(modelfile.header_of(model), modelfile.tensors_of(model))
    return modelfile.as_bytes(modelfile.header_of_weights(model), modelfile.weights_of(model))


def from_bytes(data: bytes) -> Any:
    """The inverse; `ModelFileError`."""
    header, tensors = modelfile.from_bytes(data, _NAME)
    read = modelfile.readout_of if header["recipe"]["rule"] is None else modelfile.revive
    return read(_NAME, header, tensors)


@contextmanager
def restored_if_broken(estimator: Any, matrix: Any, weights: Any) -> Iterator[None]:
    """Where numbers are so large that they may break weights, take back the model as it was if they do."""
    large = is_extreme(matrix.data, matrix.labels, matrix.targets, weights)
    kept = as_bytes(estimator._model) if large and "_model" in vars(estimator) else b""
    try:
        yield
    except DivergedError:
        if kept:
            vars(estimator._model).update(vars(from_bytes(kept)))  # in place: others may hold it
        raise
