"""Finding names for the weights in a file of models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.data.errors import DataError
from thresher.data.features.names import Names
from thresher.engine.atomic import stamp
from thresher.learning.files import model_file
from thresher.learning.inspection.feature_names import find_in
from thresher.options.data import ReadOptions
from thresher.options.option import Options, given_in


@dataclass
class NamedModels:
    """The content of a file, and the names of the features of its models."""

    found: model_file.Contents
    models: dict[int, tuple[dict[str, Any], dict[str, Any]]]
    """header and tensors of each, with the names of its features"""
    names: Names

    @property
    def nonzero(self) -> int:
        """The number of nonzero weights of all models."""
        return sum(int(header["nonzero"]) for header, _ in self.models.values())

    def write(self, target: Path) -> None:
        """Write the models with the names. OSError."""
        every = [self.models.get(k) for k in range(len(self.found))]
        model_file.write_all(target, every, self.found.run, self.found.beside())


def find(path: Path, data: Any, options: Options, target: Path) -> NamedModels:
    """Find the names for models that will be written to `target`. `ModelFileError`, `DataError`, OSError."""
    before = stamp(path)
    found = model_file.Contents.of(path)
    if not found.there or model_file.TRAINING in found.run:
        found.chosen()
        raise DataError(f"{path}: a checkpoint: name the model once it is trained")
    models = {k: found.model(k) for k in found.there}
    readouts = {k: model_file.readout_of(path, *one) for k, one in models.items()}
    names = find_in([*readouts.values()], data, **given_in(options, ReadOptions))
    for k, (header, tensors) in models.items():
        own = {name: array for name, array in tensors.items() if not name.startswith(model_file.NAMES)}
        models[k] = header, own | model_file.tensors_of_names(readouts[k].names or Names.of({}))
    if target == path and stamp(path) != before:
        raise DataError(f"{path}: another process has changed it meanwhile: run thresher name again")
    return NamedModels(found, models, names)
