"""Finding names for the weights in a model file."""

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
from thresher.options.option import given_in


@dataclass
class NamedModel:
    """A model file, and the names of its features."""

    header: dict[str, Any]
    tensors: dict[str, Any]
    names: Names

    def write(self, target: Path) -> None:
        """Write the model with the names. OSError."""
        kept = {name: array for name, array in self.tensors.items() if not name.startswith(model_file.NAMES)}
        model_file.write(target, self.header, kept | model_file.tensors_of_names(self.names))


def find(path: Path, data: Any, options: Any, target: Path) -> NamedModel:
    """Find the names for a model that will be written to `target`. `ModelFileError`, `DataError`, OSError."""
    before = stamp(path)
    header, tensors = model_file.read(path)
    names = find_in(model_file.readout_of(path, header, tensors), data, **given_in(options, ReadOptions))
    if target == path and stamp(path) != before:
        raise DataError(f"{path}: another process has changed it meanwhile: run thresher name again")
    return NamedModel(header, tensors, names)
