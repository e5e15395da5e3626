"""Columns of categories whose values are written otherwise than in the training data."""

from __future__ import annotations

from typing import Any

from thresher.data.columns import CATEGORICAL, SPELLED
from thresher.data.formats.tables.heads import first_cells
from thresher.data.formats.tables.spellings import kind_of
from thresher.data.report import RESPELLED, Noticed
from thresher.data.text.numbers import means_missing

_ROWS = 100
_FEW = 20
"""Minimum number of values"""
_MOST_FILES = 10


def respelled(source: Any, first: int = 0) -> list[Noticed]:
    """The columns of values in training of which the first rows of a file, from file `first` on, hold none.

    Such a column held only numbers, booleans or dates, and now holds something else, so the model knows none
    of its values.
    """
    layout, found = source.layout, list[Noticed]()
    pairs = zip(layout.columns, layout.kinds, layout.spelling or ("",) * len(layout.columns), strict=True)
    known = {name: what for name, kind, what in pairs if kind == CATEGORICAL and what in SPELLED}
    files = range(first, min(len(source.names), _MOST_FILES)) if known else ()
    for file in files:
        cells = first_cells(source, known, _ROWS, file)
        for name, what in known.items():
            values = [cell.strip().encode("utf-8", "surrogatepass") for cell in cells.get(name, ())]
            values = [value for value in values if not means_missing(value)]
            kinds = {kind_of(value) for value in values}
            if len(values) >= _FEW and not kinds & {what, ""}:
                example = values[0].decode("utf-8", "replace")
                found.append(Noticed(RESPELLED, name, source.names[file], f"{what} {example}"))
    return found
