"""``thresher predict``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from thresher.options.arguments import DATA, MODEL
from thresher.options.data import ReadOptions
from thresher.options.judging import PredictCommand
from thresher.options.option import UsageError, given_in

if TYPE_CHECKING:
    from thresher.data.chunk import Chunk
    from thresher.data.source import ReadRows
    from thresher.learning.model.ensemble import Ensemble
    from thresher.learning.model.weights import Readout

ARGUMENTS, OPTIONS = (MODEL, DATA), PredictCommand
NAN = "nan"
_ESCAPES = str.maketrans({"\t": r"\t", "\n": r"\n", "\r": r"\r"})


def command(model: str, data: list[str], options: PredictCommand) -> None:
    """Print one prediction per row; several outputs are separated by tabs.

    A row from standard input or a pipe is answered as soon as it has arrived. Labels are ignored and may be
    missing. A row skipped by --on-error gets nan, so that lines match rows.
    Class names are written unchanged; on a terminal, control characters are escaped.
    """
    from thresher.cli.output import output_file as opened
    from thresher.cli.output import tell_reading
    from thresher.cli.saving import check_model_first, check_predictions
    from thresher.learning.model.ensemble import load
    from thresher.learning.model.prediction import source_for
    from thresher.runs.preparing import check_outputs, quarantine_of

    path, target, wanted = Path(model), options["output_file"], cast(Any, options["output"])
    check_model_first(path, data, "predict")
    readout = load(path)
    broken = list[int]()
    answer = _answering(readout, wanted, broken)
    reading = given_in(options, ReadOptions)
    more = {"ids": options["id"], "unlabelled": True, "live": True}
    source = source_for(readout, data, readout.head.open_domain, more=more, **reading)
    check_outputs([target, quarantine_of(options["on_error"])], [path, *source.names])
    check_predictions(target, readout.classes or (), identified=bool(options["id"]))
    escaped = target is None and sys.stdout.isatty()
    words = _shown(readout.classes or (), escaped)
    with opened(target) as file:
        for rows in source.rows():
            answers = answer(rows.chunk)
            lines = _in_line(readout.head.written(answers, wanted, words), rows, _nothing(answers, wanted))
            file.write("".join(line + "\n" for line in _identified(lines, rows, escaped)))
            file.flush()
    tell_reading(source.report)
    _tell_broken(sum(broken))


def _tell_broken(count: int) -> None:
    """Print how many predictions were not finite, if any."""
    if count:
        what = "1 prediction is" if count == 1 else f"{count:,} predictions are"
        click.echo(f"warning: {what} not finite: the values in these rows are too large", err=True)


def _identified(lines: list[str], rows: ReadRows, escaped: bool) -> list[str]:
    """The lines, after the id of their row if ids are read."""
    if rows.ids is None:
        return lines
    ids = _shown([one.translate(_ESCAPES) for one in rows.ids], escaped)
    return [f"{one}\t{line}" for one, line in zip(ids, lines, strict=True)]


def _answering(
    readout: Readout | Ensemble[Readout], wanted: Any, broken: list[int]
) -> Callable[[Chunk], Any]:
    """What to compute for the rows of a chunk; `UsageError` if the model cannot give it.

    Numbers of rows whose margins are not finite are added to `broken`.
    """
    import numpy as np

    from thresher.learning.model.ensemble import Ensemble

    if wanted == "spread":
        if not isinstance(readout, Ensemble):
            raise UsageError(
                "spread is for an ensemble, and this is one model: use thresher train --ensemble N"
            )
        return readout.spreads
    if wanted == "probability" and not readout.head.joint.PROBABILITY:
        raise UsageError("this model's loss gives no probabilities; use --output margin or label")

    def respond(chunk: Chunk) -> Any:
        margins = readout.margins(chunk)
        if not np.isfinite(margins).all():
            broken.append(int((~np.isfinite(margins)).reshape(len(margins), -1).any(axis=1).sum()))
        return readout.respond(margins, wanted)

    return respond


def _nothing(answers: Any, wanted: Any) -> str:
    """The line of a row that was skipped."""
    return NAN if wanted == "label" else "\t".join([NAN] * math.prod(answers.shape[1:]))


def _in_line(lines: list[str], rows: ReadRows, nothing: str) -> list[str]:
    """The lines of examples, with `nothing` for each row skipped among them."""
    found, before = list[str](), 0
    for gap in rows.gaps:
        found += [*lines[before:gap], nothing]
        before = gap
    return [*found, *lines[before:]]


def _shown(words: Sequence[str], escaped: bool) -> Sequence[str]:
    """Words for the output: escaped for a terminal, which would obey control characters."""
    from thresher.data.errors import printable

    return [*map(printable, words)] if escaped else words
