"""Results on standard output, and what was skipped on standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import typer

_NAME_WIDTH = 22


def show_figures(figures: Mapping[str, Any], as_json: bool) -> None:
    """One figure a line, or one JSON object on one line in which NaN and infinity are null."""
    if as_json:
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in figures.items()}
        typer.echo(json.dumps(finite))
        return
    for name, value in figures.items():
        typer.echo(f"{name.replace('_', ' '):<{_NAME_WIDTH}} {shown(value)}")


def shown(value: Any) -> str:
    """A figure for people: thousands apart, six digits, yes or no, - for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


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
