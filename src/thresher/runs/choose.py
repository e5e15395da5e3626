"""Taking one of many models out of their file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.learning.files import model_file
from thresher.learning.files.choice import check_choice
from thresher.options.option import UsageError
from thresher.plans.budget import use_of


@dataclass(frozen=True)
class Chosen:
    """A model of a file."""

    header: dict[str, Any]
    tensors: dict[str, Any]
    figures: dict[str, Any]
    """what is known of it: for a frontier, its row of the table"""
    use: dict[str, Any] | None
    """what it uses of a budget of weights, if it was chosen by one"""

    def write(self, target: Path) -> None:
        """Write the model alone. OSError."""
        model_file.write(target, self.header, self.tensors)


def prepare(models: Path, which: str) -> Chosen:
    """Find the model that `which` selects. `UsageError` if there is none, `ModelFileError`."""
    found = model_file.Contents.of(models)
    try:
        number = found.chosen(which if which.isdecimal() else check_choice(which))
    except model_file.ModelFileError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error
    header, tensors = found.model(number)
    alone = {name: value for name, value in header.items() if name not in model_file.RUN}
    if (table := found.frontier()) is None:
        return Chosen(alone, tensors, {"nonzero": header["nonzero"]}, None)
    figures = table.points[number].as_dict(table.penalty)
    del figures["dropped"]
    return Chosen(alone, tensors, figures, use_of(table.points, number, which))
