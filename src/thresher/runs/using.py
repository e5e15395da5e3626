"""Using a model: predictions line by line, its figures on labelled data, a page about it, other languages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import printable
from thresher.data.files.paths import expand
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.engine.atomic import whole_file
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.evaluation.slices import measure_slices
from thresher.learning.files import model_file
from thresher.learning.inspection import plots
from thresher.learning.inspection.explanation import SKIPPED, explain
from thresher.learning.inspection.formatting import finite
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.prediction import ModelOrFile, source_for
from thresher.options.data import ReadOptions
from thresher.options.judging import TARGETS, MeasuringRun
from thresher.options.layouts import of_options
from thresher.options.messages import mention, shell_or_python
from thresher.options.option import Options, UsageError, given_options
from thresher.plans.repeat import remaking
from thresher.plans.run_setup import are_files, check_written

if TYPE_CHECKING:
    from thresher.reporting.facts import Facts

NAN, EXPLAIN, DECISION, PREDICTED = "nan", "explain", "decision", "predicted"
_FOR = {
    "interval": "interval",
    **dict.fromkeys(("cost", "threshold"), DECISION),
    **dict.fromkeys(("top", "output_class"), EXPLAIN),
}
"""What options of predictions are for"""
_LEVEL = 0.9
"""of intervals, if nothing else is asked for"""
_ESCAPES = str.maketrans({"\t": r"\t", "\n": r"\n", "\r": r"\r"})


@dataclass
class Predicting:
    """A model and the data that it is about to predict."""

    model: Any
    source: Source
    options: Options
    level: float
    """of intervals"""
    threshold: float | None = None
    """of decisions: a probability, or a margin of a loss without"""
    explained: Callable[[NDArray[np.float64]], list[int]] | None = None
    """of margins, the output of each row that is explained; None: all"""
    broken: int = field(default=0, init=False)
    """predictions so far that are not finite"""

    def lines(self, escaped: bool) -> Iterator[list[str]]:
        """The lines of some rows at a time, as they arrive. `DataError`.

        Class names and ids are `escaped` for a terminal, which would obey control characters.
        """

        def shown(words: Sequence[str]) -> Sequence[str]:
            return [*map(printable, words)] if escaped else words

        output: Any = self.options["output"]
        for rows in self.source.rows():
            margins: NDArray[np.float64] | None = None
            if output == EXPLAIN:  # JSON, which escapes control characters by itself
                found = explain(self.model, rows.chunk)
                margins = found.margins
                outputs = None if self.explained is None else self.explained(margins)
                objects = rows.in_place(found.told(self.options["top"], outputs), SKIPPED)
                if rows.ids is not None:
                    objects = [{"id": name, **one} for name, one in zip(rows.ids, objects, strict=True)]
                lines = [json.dumps(finite(one)) for one in objects]
            else:
                if output == "spread":
                    answers = self.model.spreads(rows.chunk)
                elif output == "interval":
                    answers = self.model.intervals(rows.chunk, self.level).reshape(len(rows.chunk), -1)
                else:
                    margins = self.model.margins(rows.chunk)
                    answers = (
                        np.where(
                            self.model.head.positive(margins, self.threshold), 1.0, self.model.lowest_label
                        )
                        if output == DECISION
                        else self.model.respond(margins, output)
                    )
                kind: Any = "label" if output == DECISION else output
                written = self.model.head.to_lines(answers, kind, shown(self.model.classes or ()))
                skipped = NAN if kind == "label" else "\t".join([NAN] * math.prod(answers.shape[1:]))
                lines = rows.in_place(written, skipped)
                if rows.ids is not None:
                    ids = shown([one.translate(_ESCAPES) for one in rows.ids])
                    lines = [f"{one}\t{line}" for one, line in zip(ids, lines, strict=True)]
            if margins is not None:
                self.broken += int(self.model.head.broken(margins).sum())
            yield lines


def _explainer(model: Any, name: str | None) -> Callable[[NDArray[np.float64]], list[int]] | None:
    """See `Predicting.explained`. `UsageError`."""
    if name is None:
        return None
    if name == PREDICTED and model.head.outputs.kind == "classes":
        return lambda margins: margins.argmax(axis=1).tolist()
    with of_options():
        found: int = model.head.output_of(name, model.classes or ())
    return lambda margins: [found] * len(margins)


def predict(
    model: Any,
    data: Any,
    options: Options,
    *,
    inputs: Sequence[Path] = (),
    outputs: Sequence[Path | None] = (),
) -> Predicting:
    """Open the data; `outputs` are files that will be written, `inputs` others that are read.

    Raises `UsageError` for what the model cannot give, `DataError`, OSError.
    """
    wanted = options["output"]
    for name, output in _FOR.items():
        if options[name] is not None and wanted != output:
            raise UsageError(f"{mention(name)} needs {mention(output=output)}")
    if wanted in ("spread", "interval"):
        check_ensemble(model, wanted)
    level = _LEVEL if options["interval"] is None else options["interval"]
    if wanted == "interval":
        model.check_interval(level)
    if wanted == "probability" and not model.head.has_probabilities:
        why = "this model's loss gives no probabilities"
        raise UsageError(f"{why}; use {mention(output='margin')} or {model.head.label}")
    cost, threshold = options["cost"], options["threshold"]
    if wanted == DECISION:
        if (cost is None) == (threshold is None):
            raise UsageError(f"a decision needs {mention('cost')} or {mention('threshold')}")
        with of_options():
            model.head.check_two("output")
            model.head.check_threshold(threshold)
        if cost is not None and not model.head.has_probabilities:
            why = "this model's loss gives no probabilities"
            raise UsageError(f"{why}: give {mention('threshold')}, of a margin")
        threshold = threshold if cost is None else float(cost[1] / sum(cost))
    explained = _explainer(model, options["output_class"])
    more = {"ids": options["id"], "unlabelled": True, "live": True}
    source = source_for(model, data, model.head.open_domain, more=more, **given_options(options, ReadOptions))
    check_written(outputs, options, inputs, data, source)
    return Predicting(model, source, options, level, threshold, explained)


def check_ensemble(model: object, wanted: str) -> None:
    """`UsageError` for a single model."""
    if not isinstance(model, Ensemble):
        raise UsageError(
            f"{wanted} is for an ensemble, and this is one model: use"
            f" {shell_or_python('thresher train --ensemble N', 'thresher.ensemble')}"
        )


def measure(
    model: Any, data: Any, options: Options, *, inputs: Sequence[Path] = ()
) -> tuple[dict[str, Any], Report, list[Finding]]:
    """Figures of a model on labelled data, and on the rows with each value of some columns.

    Also the counts of lines, and trouble.

    `inputs` are further files that are read. Raises `UsageError`, `DataError`, OSError.
    """
    head = model.head
    with of_options():
        head.check_two(*(name for name in ("top", "cost") if options[name]))
    if options["plot"] is not None and not (head.has_probabilities if head.classifies else head.count == 1):
        raise UsageError(f"{mention('plot')} draws a calibration, of probabilities or of one number")
    source = source_for(model, data, head.domain.closed(model.classes), **given_options(options, ReadOptions))
    check_written([], options, inputs, data, source)
    with of_options():
        found, slices = measure_slices(model, source, options["threshold"], options["slices"])
    told = {**found.figures(), **found.at(options["top"], options["cost"]), "nonzero": model.nonzero}
    told |= {"slices": slices} if slices else {}
    if options["plot"] is not None and found.binned is not None:
        plots.write(Path(options["plot"]), plots.agreement(head, found.binned, told))
    return told, source.report, found.troubles(source.report)


def report(
    model: object,
    data: Any,
    target: Path,
    options: Options,
    *,
    inputs: Sequence[Path] = (),
) -> tuple[Facts, Callable[[], int]]:
    """Facts for a page about the model, measured on `data`, if there are any; and what writes the page.

    That returns its size in bytes. `inputs` are further files that are read.

    Raises `UsageError`, `ModelFileError`, `DataError`, OSError; FileExistsError for a target of another kind.
    """
    from thresher.reporting import facts, page

    if data is None and (unused := given_options(options, MeasuringRun)):
        raise UsageError(f"{mention(next(iter(unused)))} needs data")
    target, found = page.check_target(target), facts.facts_of(model)
    if found.model is not None:
        with model_file.naming_file(found.name):
            found.command = remaking(Path(found.name), found.model.header, found.model.info).command
    if data is not None:
        files = expand(data) if are_files(data) else []
        check_written([target], options, [*inputs, *files])
        with of_options():
            reading = given_options(options, ReadOptions)
            facts.measure(found, data, options["threshold"], options["slices"], **reading)
    return found, partial(page.write, target, found)


def export(model: ModelOrFile, to: str, path: Path | None) -> str | bytes:
    """A model as one file in another language, written to a path if there is one. OSError.

    `DataError` for what the language cannot express, `ModelFileError`.
    """
    from thresher.exporting.description import describe

    if to not in TARGETS:
        raise UsageError(f"to must be one of {', '.join(TARGETS)}, not {to!r}")
    target, more = ("js", {"module": True}) if to == "mjs" else (to, {})
    content: str | bytes = import_module(f"thresher.exporting.{target}").content_of(describe(model), **more)
    if path is not None:
        with whole_file(path, "w" if isinstance(content, str) else "wb") as file:
            file.write(content)
    return content
