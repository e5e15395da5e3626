"""Models as bytes: those of a model file, from which no code runs."""

from __future__ import annotations

from typing import Any

from thresher import parts
from thresher._version import __version__
from thresher.learning import modelfile
from thresher.learning.readout import Readout

_NAME = "the model in the estimator"


def as_bytes(model: Any) -> bytes:
    """A Model with all that it goes on learning from, or a Readout."""
    if not isinstance(model, Readout):
        return modelfile.as_bytes(modelfile.header_of(model), modelfile.tensors_of(model))
    header = {
        "format": modelfile.FORMAT,
        "version": __version__,
        "rule": None,
        "rate": None,
        "loss": parts.spec_of(model.loss),
        "outputs": model.head.outputs.spec,
        "store": model.store,
        "lowest_label": model.lowest_label,
        "layout": modelfile.noted(model.layout),
    }
    return modelfile.as_bytes(header, modelfile.weights_of(model))


def from_bytes(data: bytes) -> Any:
    """The inverse; `ModelFileError`."""
    header, tensors = modelfile.from_bytes(data, _NAME)
    read = modelfile.readout_of if header["rule"] is None else modelfile.revive
    return read(_NAME, header, tensors)
