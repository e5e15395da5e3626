"""Models as bytes: those of a model file, from which no code runs. Pickles hold them."""

from __future__ import annotations

from thresher.learning import modelfile
from thresher.learning.model import Model
from thresher.learning.readout import Readout


def as_bytes(model: Model | Readout) -> bytes:
    """A Model with all that it goes on learning from, or a Readout. `DivergedError` as `modelfile.save`."""
    if not isinstance(model, Readout):
        with model.at_rest():
            return modelfile.as_bytes(modelfile.header_of(model), modelfile.tensors_of(model))
    return modelfile.as_bytes(modelfile.header_of_weights(model), modelfile.weights_of(model))


def from_bytes(data: bytes, name: str = "the model") -> Model | Readout:
    """The inverse; `ModelFileError`, in which it is called `name`."""
    header, tensors = modelfile.from_bytes(data, name)
    read = modelfile.readout_of if header["recipe"]["rule"] is None else modelfile.revive
    return read(name, header, tensors)
