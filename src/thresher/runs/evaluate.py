"""Measuring a model on labelled data, and on the rows with each value of some columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from thresher.data.source import Source
from thresher.learning.diagnostics.column_findings import troubles_of_reading
from thresher.learning.diagnostics.findings import Finding, worse_than_base
from thresher.learning.evaluation.figures import Assessment, assessed, check_threshold
from thresher.learning.evaluation.slices import figures_of_slices, slices_of
from thresher.learning.inspection import plots
from thresher.learning.model.prediction import source_for
from thresher.options.data import ReadOptions
from thresher.options.layouts import of_options
from thresher.options.option import Options, given_in
from thresher.plans.run_setup import check_written


@dataclass
class Measured:
    """The figures of a model on data."""

    figures: dict[str, Any]
    assessment: Assessment
    source: Source
    troubles: list[Finding]


def measure(
    model: Any, data: Any, options: Options, *, inputs: Sequence[Path] = (), offsets: ArrayLike | None = None
) -> Measured:
    """Measure a model; `inputs` are further files that are read, `offsets` those of rows in memory.

    Raises `UsageError`, `DataError`, OSError.
    """
    with of_options():
        check_threshold(model.head, options["threshold"])
    reading = given_in(options, ReadOptions)
    source = source_for(model, data, model.head.domain, offsets=offsets, **reading)
    check_written([], options, data, source, inputs=inputs)
    with of_options():
        extras = slices_of(source, options["slices"], model.head, options["threshold"])
    found = assessed(model, source, options["threshold"], *extras)
    figures = {**found.figures(), "nonzero": model.nonzero, **figures_of_slices(extras)}
    if options["plot"] is not None:
        plots.write(Path(options["plot"]), plots.agreement(model.head, found.binned, figures))
    troubles = [*found.troubles, *troubles_of_reading(source.report), *worse_than_base(figures, model.head)]
    return Measured(figures, found, source, troubles)
