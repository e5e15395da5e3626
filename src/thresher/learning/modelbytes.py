"""Models as bytes in the format of a model file, which runs no code when read; used by pickle."""

from __future__ import annotations

from thresher.learning import modelfile
from thresher.learning.model import Model
from thresher.learning.readout import Readout


def as_bytes(model: Model | Readout) -> bytes:
    """A Model with its learning state, or a Readout. Raises `DivergedError` as `modelfile.save`."""
    if not isinstance(model, Readout):
        with model.at_rest():
            return modelfile.as_bytes(modelfile.header_of(model), modelfile.tensors_of(model))
    return modelfile.as_bytes(modelfile.header_of_weights(model), modelfile.weights_of(model))


def from_bytes(data: bytes, name: str = "the model") -> Model | Readout:
    """The inverse of `as_bytes`. Raises `ModelFileError`, whose message calls the model `name`."""
    header, tensors = modelfile.from_bytes(data, name)
    read = modelfile.readout_of if header["recipe"]["rule"] is None else modelfile.revive
    return read(name, header, tensors)
