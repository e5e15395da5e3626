"""Results on standard output; skipped lines and warnings on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from thresher.cli import streams
from thresher.cli.errors import reason_of

if TYPE_CHECKING:
    from thresher.learning.training import Outcome
    from thresher.learning.trouble import Trouble

_NAME_WIDTH = 22


def show_figures(figures: Mapping[str, Any], as_json: bool) -> None:
    """Print one figure per line, or one JSON object on one line, with null for NaN and infinity."""
    from thresher.learning.figures import shown

    if as_json:
        click.echo(json.dumps(_finite(figures)))
        return
    for name, value in figures.items():
        click.echo(f"{name.replace('_', ' '):<{_NAME_WIDTH}} {shown(value)}")


def _finite(value: Any) -> Any:
    """A JSON-compatible value: null in place of NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table_of(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of a table: text aligned left, numbers right."""
    from thresher.learning.figures import shown

    cells = [[shown(head) for head in heads], *([shown(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    texts = [all(isinstance(row[k], str) for row in rows) for k in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(row, widths, texts, strict=True)
        ).rstrip()
        for row in cells
    ]


def show_result(figures: Mapping[str, Any], as_json: bool, written: Path) -> None:
    """Print figures after the result was `written` to a file; ignore a closed pipe."""
    try:
        show_figures(figures, as_json)
        sys.stdout.flush()
    except OSError as error:
        streams.discard_unwritten(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            reason = reason_of(error)
            click.echo(f"thresher: {written} is saved, but its figures cannot be printed: {reason}", err=True)


def tell_skipped(report: Any) -> None:
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


def tell_outcome(outcome: Outcome) -> None:
    """Print skipped lines and rows, and the warnings, of a training on standard error."""
    for report in outcome.reports:
        tell_skipped(report)
    tell_weightless(outcome.weightless, outcome.examples)
    tell_warnings(outcome.warnings)


def tell_reading(report: Any) -> None:
    """Print what a model that does not learn should tell of the lines and columns of data."""
    from thresher.learning.trouble import troubles_of_reading

    tell_skipped(report)
    tell_warnings(troubles_of_reading(report))


def tell_weightless(count: int, learned: int) -> None:
    """Print how many rows had importance 0, unless none was `learned`, of which a warning tells."""
    if count and learned:
        click.echo(f"{count:,} {'row' if count == 1 else 'rows'} of importance 0: not learned", err=True)


def tell_warnings(warnings: Sequence[Trouble]) -> None:
    """Print one line per warning on standard error."""
    from thresher.data.errors import printable

    for trouble in warnings:
        click.echo(printable(f"warning: {trouble.message}"), err=True)


def in_json(warnings: Sequence[Trouble]) -> list[dict[str, str]]:
    """The warnings, for the JSON output."""
    return [trouble._asdict() for trouble in warnings]


@contextmanager
def output_file(path: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears under its name only when complete."""
    if path is None:
        yield sys.stdout
        return
    from thresher.learning.wholefile import whole_file

    with whole_file(path) as file:
        yield file
