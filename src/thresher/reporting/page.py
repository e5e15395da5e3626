"""The page: head, landmarks and parts in order.

``thresher.report``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from numpy.typing import ArrayLike

from thresher._version import __version__
from thresher.cluster.elsewhere import reads_elsewhere
from thresher.data.inputs.any_data import Data, with_labels
from thresher.drawing.svg import clean
from thresher.learning.diagnostics.findings import troubles_of_reading, warn
from thresher.learning.evaluation.slices import names_of_columns
from thresher.learning.files.atomic import check_writable, whole_file
from thresher.learning.model.prediction import ModelOrFile, codes_of, with_codes, with_columns
from thresher.options.data import ReadOptions
from thresher.options.option import settled
from thresher.reporting import about, chosen, quality, summary, training, weighing
from thresher.reporting.facts import Facts, facts_of, measure
from thresher.reporting.html import STYLE, Markup, el, joined

BEGINNING = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="thresher '
)
"""How every report begins, and no other file."""
_LINE = Markup("\n")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(facts: Facts) -> str:
    """The whole page. The same facts give the same bytes."""
    parts = {
        "warnings": ("Warnings", summary.warnings(facts)),
        "test": ("Test data", quality.part(facts)),
        "training": ("Training", training.part(facts)),
        "frontier": ("Frontier", chosen.part(facts)),
        "weights": ("Weights", weighing.part(facts)),
        "about": ("Settings and data", about.part(facts)),
    }
    shown = {name: part for name, part in parts.items() if part[1]}
    links = [el("li", el("a", title, href=f"#{name}")) for name, (title, _) in shown.items()]
    title = f"thresher report: {clean(facts.name, 80)}"
    body = el(
        "body",
        el("a", "Skip to the report", href="#report", class_="skip"),
        _LINE,
        el("header", el("h1", title), el("nav", el("ul", *links), aria_label="Parts of the report")),
        _LINE,
        el("main", summary.top(facts), *(joined([_LINE, part]) for _, part in shown.values()), id="report"),
        _LINE,
        el("footer", el("p", f"Written by thresher {__version__}. This page loads nothing from elsewhere.")),
    )
    return f'{BEGINNING}{__version__}">{_head(title)}\n{body}</html>\n'


def _head(title: str) -> Markup:
    return joined(
        [
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("title", title),
            Markup(f"<style>{STYLE}</style></head>"),
        ]
    )


@reads_elsewhere
def report(
    model: ModelOrFile,
    data: Data | None = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = None,
    slices: str | Sequence[str] = (),
    **reading: Unpack[ReadOptions],
) -> None:
    """Write a report about a model: one HTML page that loads nothing from elsewhere, of at most 300 KB.

    Args:
        model: a Model, a Readout, a fitted estimator, a `Frontier`; the path of a saved model, or of the
            folder that ``thresher path`` writes.
        data: labelled examples to measure the model on, anything that `thresher.train` accepts. The page
            contains none of their rows.
        path: the page; an older report there is replaced.
        y: labels of the rows of `data`, if `data` does not contain them.
        sample_weight: importances ``(n,)``, together with `y`.
        threshold: predict the positive class above it: see `evaluate`.
        slices: columns of a table, by name, position from 1 or pattern; the page has figures for each of
            their values. Text is one column, or one pattern.
        reading: how to read `data`, where that differs from the training data: the options of
            `thresher.open_source` and the fields of a `Layout`.

    Raises `ModelFileError`, `DataError`, ValueError for wrong options, FileExistsError if `path` exists and
    is not a report, OSError; TypeError if `model` is not a model.
    """
    settled(ReadOptions, reading, report)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, not {type(path).__name__}; labels are given as y=")
    columns = names_of_columns(slices)
    if data is None and not (y is None and sample_weight is None):
        raise ValueError("labels and weights are given without data")
    if data is None and reading:
        raise ValueError(f"{next(iter(reading))} says how to read data, but no data are given")
    target = check_target(path)
    facts = facts_of(os.fspath(model) if isinstance(model, str | os.PathLike) else model)
    if data is not None:
        labels = y if y is None else codes_of(model, y)
        data = with_labels(with_columns(model, with_codes(model, data)), labels, sample_weight)
        measure(facts, data, threshold, columns, **reading)
    if facts.test is not None:
        warn(troubles_of_reading(facts.test.lines))
    write(target, facts)


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path, if a report can be written there. FileExistsError for another kind of file, OSError."""
    target = Path(path)
    check_writable(target)
    with contextlib.suppress(FileNotFoundError):  # none, or removed meanwhile
        if target.is_file():
            with open(target, "rb") as file:
                head = file.read(len(BEGINNING))
            if head not in (b"", BEGINNING.encode()):
                raise FileExistsError(17, "is not a thresher report, so it is not overwritten", str(target))
    return target


def write(path: Path, facts: Facts) -> int:
    """Write the whole page, or leave the file unchanged. Returns its size in bytes; raises OSError."""
    whole = page(facts).encode("utf-8", "replace")
    with whole_file(path, "wb") as file:
        file.write(whole)
    return len(whole)
