"""``thresher evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from thresher.options.arguments import DATA, MODEL
from thresher.options.judging import EvaluateCommand

ARGUMENTS, OPTIONS = (MODEL, DATA), EvaluateCommand
_SHOWN = 20
"""maximum number of classes in a printed confusion matrix"""


def command(model: str, data: list[str], options: EvaluateCommand) -> None:
    """Measure a model on labelled data: loss, error, AUC and more, beside those of the base rate."""
    from thresher.cli.output import tell_reading
    from thresher.cli.saving import check_model_first, check_picture
    from thresher.learning.model.ensemble import load
    from thresher.runs.evaluate import measure

    path = Path(model)
    check_picture(options["plot"])
    check_model_first(path, data, "evaluate")
    readout = load(path)
    found = measure(readout, data, options, inputs=[path])
    tell_reading(found.source.report)
    figures = {**found.figures, "nonzero": readout.nonzero}
    figures |= {"slices": figures.pop("slices")} if "slices" in figures else {}
    _show(figures, options["detail"], options["json"])


def _show(figures: dict[str, Any], detail: bool, as_json: bool) -> None:
    """Print the figures: everything as JSON, or those that are wanted as text."""
    from thresher.cli.output import show_figures

    if as_json:
        show_figures(figures, True)
        return
    flat = {name: value for name, value in figures.items() if not isinstance(value, list | dict)}
    show_figures(flat, False)
    for column, rows in figures.get("slices", {}).items():
        click.echo("\n".join(_by_value(column, rows)))
    if detail:
        click.echo("\n".join(_tables(figures)), nl=bool(figures.keys() & {"by_class", "calibration"}))


def _by_value(column: str, rows: list[dict[str, Any]]) -> list[str]:
    """The table of a slice, as text."""
    from thresher.cli.output import table_of
    from thresher.learning.evaluation.slices import SMALL, interval_of, shown_names

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
