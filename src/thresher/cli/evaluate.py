"""``thresher evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.cli import options
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import UsageError
from thresher.cli.plotting import plot as drawing

NAME = "evaluate"
SHORT = "Measure a model on labelled data."
_SHOWN = 20
"""maximum number of classes in a printed confusion matrix"""

Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="T",
        help="Predict the positive class above this probability, or margin where the loss has no"
        " probabilities.  [default: 0.5 of a probability, 0 of a margin]",
    ),
]
Slices = Annotated[
    list[str] | None,
    typer.Option(
        "--slice",
        metavar="COL",
        help="Also show figures for each value of a column of a table, given by name, number or pattern; "
        "repeat for more.  [default: none]",
    ),
]
_Detail = Annotated[
    bool, typer.Option("--detail", help="Also print the confusion matrix, each class and the calibration.")
]
_Plot = Annotated[
    Path | None,
    drawing("the calibration; or, if there are no probabilities, the error by class or by output"),
]


@reads_elsewhere
@takes(table=options.Judging)
def command(
    model: options.Model,
    data: options.Data,
    threshold: Threshold = None,
    detail: _Detail = False,
    slices: Slices = None,
    plot: _Plot = None,
    table: options.Judging = options.NO_JUDGING,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Measure a model on labelled data: loss, error, AUC and more, beside those of the base rate."""
    from thresher.cli.output import tell_reading
    from thresher.learning.assessment import assessed, check_threshold
    from thresher.learning.ensemble import load
    from thresher.learning.slices import figures_of_slices

    options.check_model_first(model, data, NAME)
    readout = load(model)
    try:
        check_threshold(readout.head, threshold)
    except ValueError as error:
        raise UsageError(str(error)) from error
    source = table.opened(readout, data, readout.head.domain, on_error=on_error, threads=threads)
    options.check_outputs([plot, options.quarantine_of(on_error)], [model, *source.names])
    reading = {"on_error": on_error, "threads": threads, "where": table.where}
    beside = _beside(readout, source, data, slices, threshold, reading)
    found = assessed(readout, source, threshold, *beside)
    figures = {**found.figures(), "nonzero": readout.nonzero}
    figures |= figures_of_slices(beside, found.examples)
    if plot is not None:
        from thresher.learning import pictures

        pictures.write(plot, pictures.agreement(readout.head, found.binned, figures))
    tell_reading(source.report)
    _show(figures, detail, as_json)


def _show(figures: dict[str, Any], detail: bool, as_json: bool) -> None:
    """Print the figures: everything as JSON, or those that are wanted as text."""
    from thresher.cli.output import show_figures

    if as_json:
        show_figures(figures, True)
        return
    flat = {name: value for name, value in figures.items() if not isinstance(value, list | dict)}
    show_figures(flat, False)
    for column, rows in figures.get("slices", {}).items():
        typer.echo("\n".join(_by_value(column, rows)))
    if detail:
        typer.echo("\n".join(_tables(figures)), nl=bool(figures.keys() & {"by_class", "calibration"}))


def _beside(
    model: Any, source: Any, data: list[str], columns: list[str] | None, threshold: float | None, reading: Any
) -> list[Any]:
    """What measures the slices. UsageError for wrong columns, and the errors of reading."""
    from thresher.data.listed import unquoted
    from thresher.learning.slices import slices_of

    try:
        return [*slices_of(model, source, data, [*map(unquoted, columns or ())], threshold, reading)]
    except ValueError as error:
        if type(error) is ValueError:  # of options
            raise UsageError(str(error)) from error
        raise


def _by_value(column: str, rows: list[dict[str, Any]]) -> list[str]:
    """The table of a slice, as text."""
    from thresher.cli.output import table_of
    from thresher.learning.slices import SMALL, interval_of, shown_names

    if not rows:
        return []
    heads, table = list[str](), [list[Any]() for _ in rows]
    for name in shown_names(rows):
        heads += [name, *(["95% interval"] if interval_of(rows[0], name) is not None else [])]
        for row, cells in zip(rows, table, strict=True):
            cells.append(f"{row[name]}{' *' if row['small'] else ''}" if name == "value" else row[name])
            cells += [] if (interval := interval_of(row, name)) is None else [interval or "-"]
    lines = ["", f"by {column}", *table_of(heads, table)]
    return [*lines, *([SMALL] if any(row["small"] for row in rows) else [])]


def _tables(figures: dict[str, Any]) -> list[str]:
    """The figures that are tables, as text."""
    from thresher.cli.output import table_of

    lines: list[str] = []
    classes, counted = figures.get("by_class"), figures.get("confusion")
    if classes and counted and len(classes) <= _SHOWN:
        names = [one["class"] for one in classes]
        rows = [[name, *row] for name, row in zip(names, counted, strict=True)]
        lines += ["", "confusion: a row for each true class, a column for each predicted one"]
        lines += table_of(["", *names], rows)
    for name in ("by_class", "calibration"):
        if found := figures.get(name):
            lines += ["", name.replace("_", " ")]
            lines += table_of([*found[0]], [[*one.values()] for one in found])
    return lines
