"""Figures formatted for people."""

from __future__ import annotations

from typing import Any

from thresher.data.errors import printable


def of_first_pass(loss: float | None, several: bool) -> str:
    """A progressive loss; that of the first pass if there were `several`, as it then says."""
    return f"{shown(loss)} (first pass)" if several and loss is not None else shown(loss)


def shown(value: Any) -> str:
    """Format a figure: thousands separators, six digits, yes or no, - for unknown; text on one line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))
