"""A model as one file in another language."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from thresher.engine.atomic import whole_file
from thresher.exporting.description import describe
from thresher.learning.model.prediction import ModelOrFile
from thresher.options.judging import TARGETS
from thresher.options.option import UsageError


@dataclass
class Export:
    """A file that is about to be written."""

    content: str | bytes

    def write(self, target: Path) -> None:
        """Write it. OSError."""
        text = isinstance(self.content, str)
        with whole_file(target, "w" if text else "wb") as file:
            file.write(self.content)


def prepare(model: ModelOrFile, to: str) -> Export:
    """The content of a file for the target `to`. `DataError` for what it cannot express, `ModelFileError`."""
    if to not in TARGETS:
        raise UsageError(f"to must be one of {', '.join(TARGETS)}, not {to!r}")
    return Export(import_module(f"thresher.exporting.{to}").write(describe(model)))
