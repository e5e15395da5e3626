"""The content of a report: read from a model file or folder, and measured on test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.data.report import Report
from thresher.learning.diagnostics.column_findings import troubles_at_first
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.evaluation.curves import BinnedRanking
from thresher.learning.evaluation.figures import Assessment
from thresher.learning.evaluation.slices import measured
from thresher.learning.files import model_file
from thresher.learning.files.choice import FrontierTable
from thresher.learning.inspection.describe import anatomy
from thresher.learning.model.objective import F64, Objective
from thresher.learning.model.prediction import Readout, source_for
from thresher.plans.models import Frontier
from thresher.plans.stability import Selection

_MEMORY = "memory"
CLASSES = 10
"""maximum number of classes with ROC curves"""
_COARSE = 16
"""bits of the score cells of each class, if there are several"""


@dataclass
class Test:
    """How good a model is on test data."""

    figures: dict[str, Any]
    """the figures of ``thresher evaluate --json``"""
    assessment: Assessment
    rankings: list[tuple[str, BinnedRanking]]
    """names of classes, and the curves of each against the rest"""
    slices: dict[str, list[dict[str, Any]]]
    lines: Report
    names: list[str]
    troubles: list[Finding]
    """trouble with them"""
    learned: list[Finding]
    """that the model has learned some of them, which is among the `troubles`"""


@dataclass
class ReportedModel:
    """The content of a model file."""

    header: dict[str, Any]
    readout: Readout
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

    def save(given: Any, path: Path) -> None:
        given.save(path) if isinstance(given, Frontier | Selection) else model_file.save(given, path)

    with model_file.file_of(given, save) as path:
        found = model_file.Contents.of(path)
        if model_file.SELECTION in found.run:
            return Facts(path.name, None, selection=Selection.load(found))
        header, tensors = found.model(found.chosen())
        readout = model_file.readout_of(path, header, tensors)
        model = ReportedModel(header, readout, anatomy(path, header, tensors))
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
    readout = facts.model.readout
    source = source_for(readout, data, readout.head.domain.closed(readout.classes), **reading)
    ranks = _Ranks(readout.head, readout.classes)
    found, slices = measured(readout, source, threshold, columns, *([ranks] if ranks.found else []))
    facts.test = Test(
        found.figures(),
        found,
        ranks.found,
        slices,
        source.report,
        [Path(name).name for name in source.names if name != _MEMORY],
        [*troubles_at_first(source), *found.troubles(source.report)],
        found.learned(),
    )


class _Ranks:
    """ROC curves: of two classes, or of each of a few classes against the rest."""

    def __init__(self, head: Objective, words: Sequence[str]) -> None:
        self._head, kind = head, head.outputs.kind
        self.found: list[tuple[str, BinnedRanking]] = []
        if head.classifies and kind == "one":
            self.found = [("", BinnedRanking())]
        elif head.classifies and head.count <= CLASSES:
            self.found = [(name, BinnedRanking(_COARSE)) for name in head.names(words)]

    def add(self, chunk: Chunk, margins: F64) -> None:
        weights, head = chunk.weights.astype(np.float64), self._head
        if head.outputs.kind == "one":
            self.found[0][1].add(margins, chunk.labels > 0, weights)
            return
        scores = margins
        if head.outputs.kind == "classes":
            truth = chunk.labels[:, np.newaxis] == np.arange(head.count) + head.outputs.low
            scores = head.probabilities(margins) if head.has_probabilities else margins
        else:
            truth = head.targets(chunk) > 0
        for k, (_, ranking) in enumerate(self.found):
            ranking.add(scores[:, k], truth[:, k], weights)
