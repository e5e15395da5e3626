"""The content of a report: read from a model file or folder, and measured on test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.data.errors import DataError
from thresher.data.report import Report
from thresher.learning.diagnostics.column_findings import troubles_at_first
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.evaluation.figures import Assessment
from thresher.learning.evaluation.slices import measure_slices
from thresher.learning.files import model_file
from thresher.learning.files.choice import FrontierTable
from thresher.learning.inspection.describe import anatomy
from thresher.learning.model.prediction import LinearPredictor, source_for
from thresher.plans.models import Frontier
from thresher.plans.stability import Selection

_MEMORY = "memory"


@dataclass
class Test:
    """How good a model is on test data."""

    figures: dict[str, Any]
    """the figures of ``thresher evaluate --json``"""
    assessment: Assessment
    slices: dict[str, list[dict[str, Any]]]
    lines: Report
    names: list[str]
    troubles: list[Finding]
    """trouble with them"""
    counted: str
    """what examples count by: Weight, or Examples if all weigh the same"""


@dataclass
class ReportedModel:
    """The content of a model file."""

    header: dict[str, Any]
    predictor: LinearPredictor
    info: dict[str, Any]
    """the figures of ``thresher info --json``"""


@dataclass
class Facts:
    """The content of a report."""

    name: str
    """name of the file"""
    model: ReportedModel | None
    """None for a selection"""
    frontier: FrontierTable | None = None
    test: Test | None = None
    command: str | None = None
    """the command that reproduces the model"""
    selection: Selection | None = None
    """what ``thresher select`` has found"""


def facts_of(given: object) -> Facts:
    """The facts about a model, models or a selection, in memory or in a file.

    Raises `ModelFileError`; TypeError for anything else.
    """
    save: Any = type(given).save if isinstance(given, Frontier | Selection) else model_file.save
    with model_file.file_of(given, save) as path:
        found = model_file.Contents.of(path)
        if model_file.SELECTION in found.run:
            return Facts(path.name, None, selection=Selection.load(found))
        header, tensors = found.model(found.chosen())
        predictor = model_file.predictor_of(path, header, tensors)
        model = ReportedModel(header, predictor, anatomy(path, header, tensors))
        return Facts(path.name, model, found.frontier())


def measure(
    facts: Facts,
    data: Any,
    threshold: float | None,
    columns: Sequence[str],
    **reading: Any,
) -> None:
    """Measure the model on test data, which are read once.

    Raises the errors of reading; DataError without a model; ValueError for other options.
    """
    if facts.selection is not None:
        raise DataError(f"{facts.name}: a selection has no model to measure")
    assert facts.model is not None
    predictor = facts.model.predictor
    source = source_for(predictor, data, predictor.head.domain.closed(predictor.classes), **reading)
    found, slices = measure_slices(predictor, source, threshold, columns)
    facts.test = Test(
        found.figures(),
        found,
        slices,
        source.report,
        [Path(name).name for name in source.names if name != _MEMORY],
        [*troubles_at_first(source), *found.troubles(source.report)],
        "Examples" if found.plain.alike else "Weight",
    )
