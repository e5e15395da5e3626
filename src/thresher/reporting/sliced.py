"""Figures by the values of columns, as tables: of test data, and of predictions made while learning."""

from __future__ import annotations

from typing import Any

from thresher.learning.evaluation.slices import SMALL, interval_of, shown_names
from thresher.reporting.html import Markup, el, joined, named, table


def slice_tables(slices: dict[str, list[dict[str, Any]]], kind: str = "") -> list[Markup]:
    """A table for each column; `kind` says what figures they are."""
    found = []
    for given, rows in slices.items():
        if not rows:
            continue
        column, names = named(given), shown_names(rows)
        titles = [name.upper() if name == "rmse" else name.capitalize() for name in names]
        notes = ["Below a figure: its 95% interval."]
        notes += ["Observed and predicted: mean outcome and mean prediction."] if "observed" in names else []
        notes += [f"{SMALL}."] if any(row["small"] for row in rows) else []
        cells = [[_cell(row, name) for name in names] for row in rows]
        caption = f"Figures by the value of {column}{kind}, the heaviest first"
        found += [el("h3", f"By {column}{kind}"), table(caption, titles, cells, " ".join(notes))]
    return found


def _cell(row: dict[str, Any], name: str) -> Any:
    """A figure above its interval; the value with a star if the slice is small."""
    if name == "value":
        return named(row[name]) + (" *" if row["small"] else "")
    interval = interval_of(row, name)
    if not interval:
        return row[name]
    return joined([f"{row[name]:.3g}", el("br"), el("small", interval)])
