"""``thresher predict``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from thresher.options.arguments import DATA, MODEL
from thresher.options.judging import PredictCommand
from thresher.options.option import Options

ARGUMENTS, OPTIONS = (MODEL, DATA), PredictCommand


def command(model: str, data: list[str], options: Options) -> None:
    """Print one prediction per row; several outputs are separated by tabs.

    A row from standard input or a pipe is answered as soon as it has arrived. Labels are ignored and may be
    missing. A row skipped by --on-error gets nan, so that lines match rows.
    Class names are written unchanged; on a terminal, control characters are escaped.
    """
    from thresher.cli.output import output_file as opened
    from thresher.cli.output import tell_reading
    from thresher.cli.saving import check_model_first, check_predictions
    from thresher.learning.model.ensemble import load
    from thresher.runs.predict import prepare

    path, target = Path(model), options["output_file"]
    check_model_first(path, data, "predict")
    readout = load(path, options["choose"])
    run = prepare(readout, data, options, inputs=[path], outputs=[target])
    check_predictions(target, readout.classes or (), identified=bool(options["id"]))
    with opened(target) as file:
        for lines in run.lines(escaped=target is None and sys.stdout.isatty()):
            file.write("".join(line + "\n" for line in lines))
            file.flush()
    tell_reading(run.source.report)
    if run.broken:
        what = "1 prediction is" if run.broken == 1 else f"{run.broken:,} predictions are"
        click.echo(f"warning: {what} not finite: the values in these rows are too large", err=True)
