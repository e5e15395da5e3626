"""Figures formatted for people, and for JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from thresher.data.errors import printable

_NAME_WIDTH, _LONGEST = 22, 200
"""Characters of the names of figures, and at most of a cell of a table"""


def of_first_pass(loss: float | None, several: bool) -> str:
    """A progressive loss; that of the first pass if there were `several`, as it then says."""
    return f"{format_figure(loss)} (first pass)" if several and loss is not None else format_figure(loss)


def format_figure(value: object) -> str:
    """Format a figure: thousands separators, six digits, yes or no, - for unknown; text on one line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def shorten_command(command: str, most: int = 200) -> str:
    """A command whose words of more than `most` characters, such as lists of columns, are cut short.

    >>> shorten_command("thresher train DATA --numeric a,b,c,d,e,f,g,h", 12)
    'thresher train DATA --numeric a,b,c,...,h (shortened; JSON has it all)'
    """
    words = command.split(" ")
    found = [
        f"{','.join(one[: most // 2].split(',')[:-1])},...,{one.rsplit(',', 1)[-1]}"
        if len(one) > most and one.count(",") > 2
        else one
        for one in words
    ]
    return " ".join(found) + (" (shortened; JSON has it all)" if found != words else "")


def size_shown(size: float) -> str:
    """A number of bytes with three digits and a unit.

    >>> size_shown(23_016), size_shown(3.6e9)
    ('23 kB', '3.6 GB')
    """
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB"


def figure_lines(figures: Mapping[str, object]) -> list[str]:
    """One line per figure; of features seen *at least* so many, if some were freed."""
    figures = dict(figures)
    if figures.pop("features_freed", False):
        figures["features_seen"] = f"at least {format_figure(figures['features_seen'])}"
    return [
        f"{name.replace('_', ' '):<{_NAME_WIDTH}} {format_figure(value)}" for name, value in figures.items()
    ]


def tab_separated(
    rows: Sequence[Mapping[str, object]], names: Sequence[str], cell: Callable[[Any], str] = str
) -> str:
    """Rows as tab-separated values, a line each after that of `names`; what is None is empty."""
    cells = (["" if (one := row.get(name)) is None else cell(one) for name in names] for row in rows)
    return "".join("\t".join(line) + "\n" for line in [names, *cells])


def table_of_rows(
    rows: Sequence[Mapping[str, object]], names: Iterable[str] = (), most: int | None = None
) -> list[str]:
    """The lines of a table of rows, of which some may lack a figure: of these names, by default of all."""
    named = [*names] or [*dict.fromkeys(name for row in rows for name in row)]
    cells = [[row.get(name) for name in named] for row in rows[:most]]
    return table_of([name.replace("_", " ") for name in named], cells)


def table_of(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of a table: text aligned left, numbers right; cells of many characters are cut off."""
    given = [[format_figure(value) for value in row] for row in (heads, *rows)]
    cells = [[one if len(one) <= _LONGEST else f"{one[: _LONGEST - 3]}..." for one in row] for row in given]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    texts = [all(isinstance(row[k], str) for row in rows) for k in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(row, widths, texts, strict=True)
        ).rstrip()
        for row in cells
    ]


def finite(value: object) -> Any:
    """A JSON-compatible value: null in place of NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
