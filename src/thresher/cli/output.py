"""Results on standard output; skipped lines and warnings on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thresher.cli import signals
from thresher.data.errors import reason_of
from thresher.options.option import Options

if TYPE_CHECKING:
    from thresher.data.report import Report
    from thresher.learning.diagnostics.findings import Finding
    from thresher.learning.training.progress import Row
    from thresher.learning.training.trainer import Outcome


def show_figures(figures: Mapping[str, object], as_json: bool) -> None:
    """Print one figure per line, or one JSON object on one line, with null for NaN and infinity."""
    from thresher.learning.inspection.formatting import figure_lines, finite

    if as_json:
        click.echo(json.dumps(finite(figures)))
    elif figures:
        click.echo("\n".join(figure_lines(figures)))


def show(found: Mapping[str, object], as_json: bool) -> None:
    """Print a result as Python prints it, or as JSON."""
    if as_json:
        show_figures(found, True)
    else:
        click.echo(repr(found))


def show_run(
    figures: Mapping[str, object],
    outcome: Outcome,
    options: Options,
    table: Sequence[str] = (),
    whole: Mapping[str, object] | None = None,
) -> None:
    """Print the figures of a run once its result is saved, if it is: after a `table` of its models.

    As JSON, what is `whole` comes before the figures, and the warnings after them. Before, lines and rows
    that were not learned, and the warnings, on standard error.
    """
    from thresher.options.messages import as_shown

    for report in outcome.reports:
        tell_skipped(report)
    if (count := outcome.figures.get("importance_0")) and outcome.figures["examples"]:
        # if none was learned, a warning says so
        click.echo(f"{count:,} {'row' if count == 1 else 'rows'} of importance 0: not learned", err=True)
    tell_warnings(outcome.warnings)
    if options["json"]:
        told = [{"name": one.name, "message": as_shown(one.message)} for one in outcome.warnings]
        figures = {**(whole or {}), **figures, "warnings": told}
    elif table and not options["quiet"]:
        click.echo("\n".join(table))
    show_result(figures, options["json"], options["model"])


def show_result(figures: Mapping[str, object], as_json: bool, written: Path | None) -> None:
    """Print figures. If the result was `written` to a file, ignore a closed pipe."""
    if written is None:
        show_figures(figures, as_json)
        return
    try:
        show_figures(figures, as_json)
        sys.stdout.flush()
    except OSError as error:
        signals.discard_unwritten(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            reason = reason_of(error)
            click.echo(f"thresher: {written} is saved, but its figures cannot be printed: {reason}", err=True)


def tell_skipped(report: Report) -> None:
    """Print how many lines were skipped or merged, and the first of them, on standard error."""
    if report.skipped:
        lines = "line" if report.skipped == 1 else "lines"
        click.echo(f"skipped {report.skipped:,} bad {lines} of {report.lines:,}:", err=True)
        for bad in report.first_bad:
            click.echo(f"  {bad}", err=True)
        if report.skipped > len(report.first_bad):
            click.echo(f"  ... and {report.skipped - len(report.first_bad):,} more", err=True)
    if report.merged:
        rows = "row" if report.merged == 1 else "rows"
        click.echo(f"{report.merged:,} {rows} with repeated or unsorted ids: merged, sorted", err=True)


def figures_of_run(outcome: Outcome) -> dict[str, Any]:
    """Counts and times of a training of several models."""
    of_one = "progressive_loss", "nonzero", "examples_per_second", "importance_0", "solved"
    return {name: value for name, value in outcome.figures.items() if name not in of_one}


def solution_figure(model: Any) -> dict[str, str]:
    """How the model was solved in memory, if it was, as a figure."""
    from thresher.learning.training.record import solution_in_words

    solved = None if model.record is None else model.record.solved
    return {} if solved is None else {"solved": solution_in_words(asdict(solved))}


def budget_figures(use: dict[str, Any] | None, as_json: bool) -> dict[str, Any]:
    """The use of a budget of weights, if there is one, as a figure."""
    from thresher.plans.budget import sentence

    return {"budget": use if as_json else sentence(use)} if use else {}


def tell_reading(report: Report) -> None:
    """Print what a model that does not learn should tell of the lines and columns of data."""
    from thresher.learning.diagnostics.column_findings import troubles_of_reading

    tell_skipped(report)
    tell_warnings(troubles_of_reading(report))


def tell_warnings(warnings: Sequence[Finding]) -> None:
    """Print one line per warning that is not told yet on standard error."""
    from thresher.learning.diagnostics.findings import untold

    for trouble in untold(warnings):
        click.echo(one_line(f"warning: {trouble.message}"), err=True)


def one_line(message: str) -> str:
    """A message as it is printed."""
    from thresher.data.errors import printable
    from thresher.options.messages import as_shown

    return printable(as_shown(message))


def write_curve(path: Path | None, table: Iterable[Row]) -> None:
    """Write the table as tab-separated values with a header, if a path is given."""
    if path is None:
        return
    from thresher.engine.atomic import whole_file
    from thresher.learning.inspection.formatting import tab_separated
    from thresher.learning.training.progress import Row

    with whole_file(path) as file:
        file.write(tab_separated([row._asdict() for row in table], Row._fields, "{:.9g}".format))
