"""Checkpoints: a model together with the state of its training."""

from __future__ import annotations

from pathlib import Path

from thresher.learning import header as headers
from thresher.learning import modelfile
from thresher.learning.model import Model
from thresher.learning.training_state import TrainingState

_BEST = "best."


def save(path: Path, model: Model, training_state: TrainingState) -> None:
    """Write everything that `load` needs to resume bit for bit. Raises OSError, `DivergedError`."""
    header = {**modelfile.header_of(model), "training": training_state.as_dict()}
    tensors = modelfile.tensors_of(model)
    if training_state.best is not None:
        tensors |= {f"{_BEST}{name}": array for name, array in training_state.best.state.items()}
    modelfile.write(path, header, tensors)


def load(path: Path) -> tuple[Model, TrainingState]:
    """The model in a checkpoint and the state of its training; `ModelFileError` if there is no checkpoint."""
    if not path.exists():
        raise modelfile.ModelFileError(f"{path}: no such file, so there is no training to resume")
    header, tensors = modelfile.read(path)
    if "training" not in header:
        raise modelfile.ModelFileError(f"{path}: a finished model, not a checkpoint")
    with modelfile.naming_file(path):
        headers.check_training(header["training"])
    model = modelfile.revive(path, header, tensors)
    best = {name.removeprefix(_BEST): array for name, array in tensors.items() if name.startswith(_BEST)}
    if header["training"]["best"] is not None:
        with modelfile.naming_file(f"{path}: best"):
            model.check(best)
    with modelfile.naming_file(path):
        return model, TrainingState.from_dict(header["training"], best)
