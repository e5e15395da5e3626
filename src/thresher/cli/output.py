"""Results on standard output, and what was skipped on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import typer

from thresher.cli import streams
from thresher.cli.errors import reason_of

_NAME_WIDTH = 22


def show_figures(figures: Mapping[str, Any], as_json: bool) -> None:
    """One figure a line, or one JSON object on one line in which NaN and infinity are null."""
    from thresher.learning.figures import shown

    if as_json:
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in figures.items()}
        typer.echo(json.dumps(finite))
        return
    for name, value in figures.items():
        typer.echo(f"{name.replace('_', ' '):<{_NAME_WIDTH}} {shown(value)}")


def show_result(figures: Mapping[str, Any], as_json: bool, written: Path) -> None:
    """The same for a command that has `written` its work to a file: figures that nobody takes are dropped."""
    try:
        show_figures(figures, as_json)
        sys.stdout.flush()
    except OSError as error:
        streams.let_go(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            reason = reason_of(error)
            typer.echo(f"thresher: {written} is saved, but its figures cannot be printed: {reason}", err=True)


def tell_skipped(report: Any) -> None:
    """How many lines were skipped or merged, and the first of them, on standard error."""
    if report.skipped:
        lines = "line" if report.skipped == 1 else "lines"
        typer.echo(f"skipped {report.skipped:,} bad {lines} of {report.lines:,}:", err=True)
        for bad in report.first_bad:
            typer.echo(f"  {bad}", err=True)
        if report.skipped > len(report.first_bad):
            typer.echo(f"  ... and {report.skipped - len(report.first_bad):,} more", err=True)
    if report.merged:
        rows = "row" if report.merged == 1 else "rows"
        typer.echo(f"{report.merged:,} {rows} with repeated or unsorted ids: merged, sorted", err=True)


@contextmanager
def output_file(path: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears under its name only when it is whole."""
    if path is None:
        yield typer.get_text_stream("stdout")
        return
    from thresher.learning.wholefile import whole_file

    with whole_file(path) as file:
        yield file
