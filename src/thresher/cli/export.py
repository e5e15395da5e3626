"""``thresher export``."""

from __future__ import annotations

import click

from thresher.options.arguments import MODEL
from thresher.options.judging import ExportCommand
from thresher.options.option import Options

ARGUMENTS, OPTIONS = (MODEL,), ExportCommand


def command(model: str, options: Options) -> None:
    """Write a model as one file without dependencies, which predicts from raw values in another language.

    What a target cannot express is refused before anything is written.
    """
    from pathlib import Path

    from thresher.cli.saving import check_export
    from thresher.plans.run_setup import check_outputs
    from thresher.runs.export import prepare

    target = options["output_file"]
    check_outputs([target], [model])
    check_export(target)
    made = prepare(Path(model), options["to"])
    if target is None:
        click.echo(made.content, nl=False)
    else:
        made.write(target)
