"""Models as bytes in the format of a model file, which runs no code when read; used by pickle.

The state of a fitted estimator is numbers, texts, arrays and such bytes, with their checksums. So damage is
detected, and tools that inspect pickles find nothing executable but the class itself.
"""

from __future__ import annotations

from contextlib import nullcontext

from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.prediction import LinearPredictor


def as_bytes(model: Model | LinearPredictor) -> bytes:
    """A Model with its learning state, or a LinearPredictor. Raises `DivergedError` as `model_file.save`."""
    with nullcontext() if isinstance(model, LinearPredictor) else model.feed.at_rest():
        return model_file.as_bytes(model_file.header_of(model), model_file.tensors_of(model))


def from_bytes(data: bytes, name: str = "the model") -> Model | LinearPredictor:
    """The inverse of `as_bytes`. Raises `ModelFileError`, whose message calls the model `name`."""
    header, tensors = model_file.from_bytes(data, name)
    read = model_file.predictor_of if header["recipe"]["rule"] is None else model_file.revive
    return read(name, header, tensors)
