"""``thresher evaluate``."""

from __future__ import annotations

from pathlib import Path

import click

from thresher.options.arguments import DATA, MODEL
from thresher.options.judging import EvaluateCommand
from thresher.options.option import Options

ARGUMENTS, OPTIONS = (MODEL, DATA), EvaluateCommand


def command(model: str, data: list[str], options: Options) -> None:
    """Measure a model on labelled data: loss, error, AUC and more, beside those of the base rate."""
    from thresher.cli.output import show_figures, tell_skipped, tell_warnings
    from thresher.cli.saving import check_model_first, check_picture
    from thresher.learning.evaluation.figures import figure_tables
    from thresher.learning.evaluation.slices import slice_lines
    from thresher.learning.model.ensemble import load
    from thresher.runs.evaluate import measure

    path = Path(model)
    check_picture(options["plot"])
    check_model_first(path, data, "evaluate")
    found = measure(load(path, options["choose"]), data, options, inputs=[path])
    tell_skipped(found.source.report)
    tell_warnings(found.troubles)
    figures = found.figures
    if options["json"]:
        show_figures(figures, True)
        return
    show_figures(
        {name: value for name, value in figures.items() if not isinstance(value, list | dict)}, False
    )
    lines = [line for column, rows in figures.get("slices", {}).items() for line in slice_lines(column, rows)]
    if lines := [*lines, *(figure_tables(figures) if options["detail"] else [])]:
        click.echo("\n".join(lines))
