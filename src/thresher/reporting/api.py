"""``thresher.report``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from numpy.typing import ArrayLike

from thresher.learning.given import Data, with_labels
from thresher.learning.keywords import SourceOptions, check_names
from thresher.learning.wholefile import check_writable, whole_file
from thresher.reporting.facts import Facts, facts_of, measure
from thresher.reporting.page import BEGINNING, page


def report(
    model: Any,
    data: Data | None = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = None,
    slices: str | Sequence[str] = (),
    **reading: Unpack[SourceOptions],
) -> None:
    """Write a report about a model: one HTML page that loads nothing from elsewhere, of at most 300 KB.

    Args:
        model: a Model, a Readout, a fitted estimator, a `Frontier`; the path of a saved model, or of the
            folder that ``thresher path`` writes.
        data: labelled examples to measure the model on, whatever `thresher.train` takes; no rows of them
            are in the page.
        path: of the page; an older report there is replaced.
        y: labels of the rows of `data`, where they stand beside them.
        sample_weight: importances ``(n,)``, beside `y`.
        threshold: the positive class is predicted above it: see `evaluate`.
        slices: columns of a table, for each value of which there are figures; text is one column.
        reading: how `data` are read, where it is not as the training data were: the options of
            `thresher.open_source` and the fields of a `Layout`.

    Raises `ModelFileError`, `DataError`, ValueError for wrong options, FileExistsError where `path` is no
    report, OSError; TypeError for what is no model.
    """
    check_names(report, reading, SourceOptions)
    target = check_target(path)
    facts = facts_of(os.fspath(model) if isinstance(model, str | os.PathLike) else model)
    if data is not None:
        columns = [slices] if isinstance(slices, str) else list(slices)
        measure(facts, with_labels(data, y, sample_weight), threshold, columns, **reading)
    write(target, facts)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Where a report can be written; FileExistsError for a file that is no report, OSError."""
    target = Path(path)
    check_writable(target)
    if target.is_file() and target.stat().st_size:
        with open(target, "rb") as file:
            if file.read(len(BEGINNING)) != BEGINNING.encode():
                raise FileExistsError(17, "is not a thresher report, so it is not overwritten", str(target))
    return target


def write(path: Path, facts: Facts) -> int:
    """Write the page whole, or leave what was there; its size in bytes. Raises OSError."""
    whole = page(facts).encode("utf-8", "replace")
    with whole_file(path, "wb") as file:
        file.write(whole)
    return len(whole)
