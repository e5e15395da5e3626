"""Predicting line by line: what is written for each row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.chunk import Chunk
from thresher.data.errors import printable
from thresher.data.source import ReadRows
from thresher.learning.inspection.explanation import SKIPPED, explain
from thresher.learning.inspection.formatting import finite
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.prediction import source_for
from thresher.options.data import ReadOptions
from thresher.options.messages import mention, spelled
from thresher.options.option import Options, UsageError, given_in
from thresher.plans.run_setup import check_written

NAN, EXPLAIN = "nan", "explain"
_LEVEL = 0.9
"""of intervals, if nothing else is asked for"""
_ESCAPES = str.maketrans({"\t": r"\t", "\n": r"\n", "\r": r"\r"})


@dataclass
class Predicting:
    """A model and the data that it is about to predict."""

    model: Any
    source: Any
    output: Any
    level: float
    """of intervals"""
    top: int | None = None
    """maximum number of terms of an explanation"""
    broken: int = field(default=0, init=False)
    """predictions so far that are not finite"""

    def lines(self, escaped: bool) -> Iterator[list[str]]:
        """The lines of some rows at a time, as they arrive. `DataError`.

        Class names and ids are `escaped` for a terminal, which would obey control characters.
        """
        for rows in self.source.rows():
            if self.output == EXPLAIN:
                yield self._explained(rows)
            else:
                yield _identified(self._written(rows, escaped), rows, escaped)

    def _written(self, rows: ReadRows, escaped: bool) -> list[str]:
        answers = self._answers(rows.chunk)
        words = _shown(self.model.classes or (), escaped)
        written = self.model.head.written(answers, self.output, words)
        return rows.in_place(written, _nothing(answers, self.output))

    def _explained(self, rows: ReadRows) -> list[str]:
        """JSON, which escapes control characters by itself."""
        found = explain(self.model, rows.chunk)
        self._count_broken(found.margins)
        objects = rows.in_place(found.told(self.top), SKIPPED)
        if rows.ids is not None:
            objects = [{"id": name, **one} for name, one in zip(rows.ids, objects, strict=True)]
        return [json.dumps(finite(one)) for one in objects]

    def _answers(self, chunk: Chunk) -> Any:
        if self.output == "spread":
            return self.model.spreads(chunk)
        if self.output == "interval":
            return self.model.intervals(chunk, self.level).reshape(len(chunk), -1)
        margins = self.model.margins(chunk)
        self._count_broken(margins)
        return self.model.respond(margins, self.output)

    def _count_broken(self, margins: Any) -> None:
        sound = np.isfinite(margins)
        if not sound.all():
            self.broken += int((~sound).reshape(len(margins), -1).any(axis=1).sum())


def prepare(
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
    if wanted in ("spread", "interval"):
        check_ensemble(model, wanted)
    level = _LEVEL if options["interval"] is None else options["interval"]
    if wanted == "interval":
        model.check_interval(level)
    elif options["interval"] is not None:
        raise UsageError(f"{mention('interval')} needs {mention(output='interval')}")
    if wanted == "probability" and not model.head.has_probabilities:
        why = "this model's loss gives no probabilities"
        raise UsageError(f"{why}; use {mention(output='margin')} or {model.head.label}")
    if options["top"] is not None and wanted != EXPLAIN:
        raise UsageError(
            f"{mention('top')} is for explanations: use {mention(output='explain')}, or leave it out"
        )
    more = {"ids": options["id"], "unlabelled": True, "live": True}
    source = source_for(model, data, model.head.open_domain, more=more, **given_in(options, ReadOptions))
    check_written(outputs, options, data, source, inputs=inputs)
    return Predicting(model, source, wanted, level, options["top"])


def check_ensemble(model: Any, wanted: str) -> None:
    """`UsageError` for a single model."""
    if not isinstance(model, Ensemble):
        raise UsageError(
            f"{wanted} is for an ensemble, and this is one model: use"
            f" {spelled('thresher train --ensemble N', 'thresher.ensemble')}"
        )


def _identified(lines: list[str], rows: ReadRows, escaped: bool) -> list[str]:
    """The lines, after the id of their row if ids are read."""
    if rows.ids is None:
        return lines
    ids = _shown([one.translate(_ESCAPES) for one in rows.ids], escaped)
    return [f"{one}\t{line}" for one, line in zip(ids, lines, strict=True)]


def _nothing(answers: Any, wanted: Any) -> str:
    """The line of a row that was skipped."""
    return NAN if wanted == "label" else "\t".join([NAN] * math.prod(answers.shape[1:]))


def _shown(words: Sequence[str], escaped: bool) -> Sequence[str]:
    return [*map(printable, words)] if escaped else words
