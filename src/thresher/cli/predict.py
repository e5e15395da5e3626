"""``thresher predict``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from thresher.cli import options
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import UsageError
from thresher.cli.overwriting import check_predictions

NAME = "predict"
SHORT = "Print one prediction per row."


class Output(StrEnum):
    """What to print for each row."""

    margin = "margin"
    probability = "probability"
    label = "label"


_OutputFile = Annotated[
    Path | None,
    typer.Option("--output-file", "-o", metavar="FILE", help="Where to write.  [default: standard output]"),
]
_Wanted = Annotated[
    Output,
    typer.Option(
        metavar="margin|probability|label",
        help="The weighted sum, the probability of the positive class, or the class (or mean; for labels, "
        "those predicted, separated by commas).",
    ),
]


@reads_elsewhere
@takes(table=options.Writing)
def command(
    model: options.Model,
    data: options.Data,
    output_file: _OutputFile = None,
    output: _Wanted = Output.margin,
    table: options.Writing = options.NO_WRITING,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
) -> None:
    """Print one prediction per row; several outputs are separated by tabs.

    Labels are ignored and may be missing. Class names are written unchanged; on a terminal, control
    characters are escaped.
    """
    from thresher.cli.output import output_file as opened
    from thresher.cli.output import tell_skipped
    from thresher.data import open_source
    from thresher.learning import modelfile

    options.check_model_first(model, data, NAME)
    readout, _ = modelfile.load_readout(model)
    if output is Output.probability and not readout.head.joint.PROBABILITY:
        raise UsageError("this model's loss gives no probabilities; use --output margin or label")
    layout = table.like(readout.layout)
    source = open_source(
        data,
        layout=layout,
        domain=readout.head.open_domain,
        on_error=on_error,
        threads=threads,
        unlabelled=True,
        where=table.where,
    )
    options.check_outputs([output_file, options.quarantine_of(on_error)], [model, *source.names])
    check_predictions(output_file, readout.classes or ())
    words = _words_for(readout.classes or (), output_file)
    with opened(output_file) as file:
        for chunk in source.chunks():
            predicted = readout.respond(readout.margins(chunk), output.value)
            file.write("".join(line + "\n" for line in readout.head.written(predicted, output.value, words)))
    tell_skipped(source.report)


def _words_for(words: Sequence[str], output_file: Path | None) -> Sequence[str]:
    """Names of classes for the output: escaped for a terminal, which would obey control characters."""
    from thresher.data.errors import printable

    return [*map(printable, words)] if output_file is None and sys.stdout.isatty() else words
