"""A page about a model, which may be measured on test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from thresher.data.files.paths import expand
from thresher.learning.files import model_file
from thresher.options.data import ReadOptions
from thresher.options.layouts import of_options
from thresher.options.option import Options, given_in
from thresher.plans.repeat import remaking
from thresher.plans.run_setup import are_files, check_written
from thresher.reporting import page
from thresher.reporting.facts import Facts, facts_of, measure


@dataclass
class Reporting:
    """A page whose content is known."""

    facts: Facts
    target: Path

    def write(self) -> int:
        """Write the page; return its size in bytes. OSError."""
        return page.write(self.target, self.facts)


def prepare(
    model: Any,
    data: Any,
    target: Path,
    options: Options,
    *,
    inputs: Sequence[Path] = (),
    offsets: ArrayLike | None = None,
) -> Reporting:
    """Read the model, and measure it on `data`, with these `offsets`, if there are any.

    `inputs` are further files that are read.

    Raises `UsageError`, `ModelFileError`, `DataError`, OSError; FileExistsError for a target of another kind.
    """
    target, found = page.check_target(target), facts_of(model)
    if found.model is not None:
        with model_file.naming_file(found.name):
            found.command = remaking(Path(found.name), found.model.header, found.model.info)
    if data is not None:
        files = expand(data) if are_files(data) else []
        check_written([target], options, data, inputs=[*inputs, *files])
        with of_options():
            reading = given_in(options, ReadOptions)
            measure(found, data, options["threshold"], options["slices"], offsets, **reading)
    return Reporting(found, target)
