"""``thresher predict``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli import options
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import UsageError
from thresher.cli.overwriting import check_predictions

if TYPE_CHECKING:
    from thresher.data.chunk import Chunk
    from thresher.data.sources.text import Rows
    from thresher.learning.ensemble import Ensemble
    from thresher.learning.readout import Readout

NAME = "predict"
NAN = "nan"
_ESCAPES = str.maketrans({"\t": r"\t", "\n": r"\n", "\r": r"\r"})
SHORT = "Print one prediction per row."


class Output(StrEnum):
    """What to print for each row."""

    margin = "margin"
    probability = "probability"
    label = "label"
    spread = "spread"


_OutputFile = Annotated[
    Path | None,
    typer.Option("--output-file", "-o", metavar="FILE", help="Where to write.  [default: standard output]"),
]
_Wanted = Annotated[
    Output,
    typer.Option(
        metavar="margin|probability|label|spread",
        help="The weighted sum; the probability of the positive class; the class (or mean; for labels, "
        "those predicted, separated by commas); or, for an ensemble, the standard deviation of the "
        "probabilities of its models, or of their margins if there are no probabilities.",
    ),
]


_Identity = Annotated[
    str,
    typer.Option(
        "--id",
        metavar="COL",
        show_default=False,
        help="Print this column of a table, by name or number, and a tab before each prediction; tag prints "
        "the tags of VW text. It is a feature only if the model was trained on it. Tabs and line breaks in "
        "it are written as \\t, \\n and \\r.",
    ),
]


@reads_elsewhere
@takes(table=options.Writing)
def command(
    model: options.Model,
    data: options.Data,
    output_file: _OutputFile = None,
    output: _Wanted = Output.margin,
    identity: _Identity = "",
    table: options.Writing = options.NO_WRITING,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
) -> None:
    """Print one prediction per row; several outputs are separated by tabs.

    A row from standard input or a pipe is answered as soon as it has arrived. Labels are ignored and may be
    missing. A row skipped by --on-error gets nan, so that lines match rows.
    Class names are written unchanged; on a terminal, control characters are escaped.
    """
    from thresher.cli.output import output_file as opened
    from thresher.cli.output import tell_reading
    from thresher.data.listed import unquoted
    from thresher.learning.ensemble import load

    options.check_model_first(model, data, NAME)
    readout = load(model)
    wanted: Any = output.value
    broken = list[int]()
    answer = _answering(readout, wanted, broken)
    reading: Any = {"on_error": on_error, "threads": threads, "ids": unquoted(identity)}
    reading |= {"unlabelled": True, "live": True}
    source = table.opened(readout, data, readout.head.open_domain, **reading)
    options.check_outputs([output_file, options.quarantine_of(on_error)], [model, *source.names])
    check_predictions(output_file, readout.classes or (), identified=bool(identity))
    escaped = output_file is None and sys.stdout.isatty()
    words = _shown(readout.classes or (), escaped)
    with opened(output_file) as file:
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
        typer.echo(f"warning: {what} not finite: the values in these rows are too large", err=True)


def _identified(lines: list[str], rows: Rows, escaped: bool) -> list[str]:
    """The lines, after the id of their row if ids are read."""
    if rows.ids is None:
        return lines
    ids = _shown([one.translate(_ESCAPES) for one in rows.ids], escaped)
    return [f"{one}\t{line}" for one, line in zip(ids, lines, strict=True)]


def _answering(
    readout: Readout | Ensemble[Readout], wanted: Any, broken: list[int]
) -> Callable[[Chunk], Any]:
    """What to compute for the rows of a chunk; UsageError if the model cannot give it.

    Numbers of rows whose margins are not finite are added to `broken`.
    """
    import numpy as np

    from thresher.learning.ensemble import Ensemble

    if wanted == Output.spread:
        if not isinstance(readout, Ensemble):
            raise UsageError(
                "spread is for an ensemble, and this is one model: use thresher train --ensemble N"
            )
        return readout.spreads
    if wanted == Output.probability and not readout.head.joint.PROBABILITY:
        raise UsageError("this model's loss gives no probabilities; use --output margin or label")

    def respond(chunk: Chunk) -> Any:
        margins = readout.margins(chunk)
        if not np.isfinite(margins).all():
            broken.append(int((~np.isfinite(margins)).reshape(len(margins), -1).any(axis=1).sum()))
        return readout.respond(margins, wanted)

    return respond


def _nothing(answers: Any, wanted: Any) -> str:
    """The line of a row that was skipped."""
    return NAN if wanted == Output.label else "\t".join([NAN] * math.prod(answers.shape[1:]))


def _in_line(lines: list[str], rows: Rows, nothing: str) -> list[str]:
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
