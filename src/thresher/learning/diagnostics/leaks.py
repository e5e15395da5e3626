"""Columns that tell the label alone, as one that is filled in with the label, or after it, does.

A column X tells the label Y if Y hardly changes from row to row where rows are in the order of X, those with
the same value shuffled. With n rows, of which r_i have a label up to that of row i, and l_i one from it on,

    xi = 1 - n sum_i |r_{i+1} - r_i| / (2 sum_i l_i (n - l_i))

tends to 0 if X says nothing of Y, and to 1 if Y is a function of X. Rows without a value of X are side by
side, so a column that is filled for one class tells the label, whatever it holds.

Reference: Chatterjee, A new coefficient of correlation, JASA 116 (2021), equation 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.columns import FEATURES, NUMBERS
from thresher.data.features.names import find_names
from thresher.data.layout import SettledLayout
from thresher.data.source import Source
from thresher.engine.sound import Array
from thresher.learning.diagnostics.advice import feature_names
from thresher.learning.model.objective import Objective

LEAST = 500
"""With fewer rows, a column may tell the label by chance, or because the data are a small example."""
_ROWS, _CELLS = 8192, 1 << 20
"""The first rows that are looked at: fewer, if columns are many"""
_TELLS = 0.97
"""The xi of a column that tells the label"""
_RARE = 10
"""Fewer rows with another label than the most frequent one tell nothing."""
Column = tuple[Any, NDArray[np.intp], Array]
"""Its name, or the key of a feature; the rows where it has a value; the values"""


def telling(source: Source, head: Objective, trained: SettledLayout | None) -> list[str]:
    """The names of the columns or features of `source` of which each tells the label alone. `DataError`.

    Features of rows without a layout are those of the layout that the model was `trained` with.
    """
    source = source.origin or source  # a cache has no cells
    one_label = head.outputs.kind in ("one", "classes") and source.rereadable
    if not one_label or source.is_log:  # a log grows, and its rows go
        return []
    layout = source.layout
    named = zip(layout.columns, layout.kinds, strict=True) if layout and source.has_cells else ()
    kinds = {name: kind for name, kind in named if kind in FEATURES}
    # the first rows that count, with the cells of these columns; the source is left as it was
    sliced, report, first = source.sliced, source.report, list[Chunk]()
    source.sliced, left = [*kinds], min(_ROWS, _CELLS // max(len(kinds), 1))
    try:
        with closing(source.chunks()) as chunks:
            for some in chunks:
                first.append(some.counting().rows(0, left))
                left -= len(first[-1])
                if left <= 0:
                    break
    finally:
        source.sliced, source.report = sliced, report
    chunk = concat(first)
    order = np.random.default_rng(0).permutation(len(chunk))
    labels = [chunk.labels] if head.classifies else [chunk.labels, chunk.labels != 0]
    each = [np.unique(one, return_inverse=True, return_counts=True)[1:] for one in labels]
    told = [(codes, counts) for codes, counts in each if len(chunk) - counts.max(initial=0) >= _RARE]
    if len(chunk) < LEAST or not told:
        return []
    missing = {"", *(layout.missing if layout else ())}
    least = min(len(chunk) - int(counts.max()) for _, counts in told)
    columns = _columns(chunk, kinds, missing) if kinds else _features(chunk, least)
    found = [
        name
        for name, *column in columns
        if any(_xi(codes, counts, order, *column) >= _TELLS for codes, counts in told)
    ]
    if kinds or not found:
        return [f"column {name}" for name in found]
    keys = np.array(found, np.uint64)
    names = find_names(source, keys) if source.nameable else None
    source.report = report
    return feature_names(found, layout or trained, names)


def _columns(chunk: Chunk, kinds: dict[str, str], missing: set[str]) -> Iterator[Column]:
    """The columns of a table."""
    assert chunk.cells is not None
    for k, (name, kind) in enumerate(kinds.items()):
        cells = chunk.cells[:, k]
        rows = np.flatnonzero([cell not in missing and bool(cell.strip()) for cell in cells.tolist()])
        values = cells[rows]  # objects: an array of texts would give each the room of the longest
        if kind in NUMBERS:
            with suppress(ValueError):
                values = values.astype(np.float64)
        yield name, rows, values


def _features(chunk: Chunk, least: int) -> Iterator[Column]:
    """The features of rows that have no columns, if nearly as many rows have them as must, `least`."""
    rows = np.repeat(np.arange(len(chunk)), np.diff(chunk.indptr))
    order = np.argsort(chunk.keys, kind="stable")
    keys, starts = np.unique(chunk.keys[order], return_index=True)
    for key, places in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
        if len(places) >= _TELLS * least:
            yield key, rows[places], chunk.values[places]


def _xi(
    labels: NDArray[np.intp],
    counts: NDArray[np.intp],
    order: NDArray[np.intp],
    rows: NDArray[np.intp],
    values: Array,
) -> float:
    """Chatterjee's coefficient; `labels` are codes in ascending order, each with its count of rows."""
    codes = np.zeros(len(labels), np.intp)  # 0: no value
    codes[rows] = np.unique(values, return_inverse=True)[1] + 1
    ordered = labels[order[np.argsort(codes[order], kind="stable")]]
    upto = np.cumsum(counts)
    onwards = len(labels) - upto + counts
    steps = np.abs(np.diff(upto[ordered])).sum(dtype=np.float64)
    most = 2 * (counts * onwards * (len(labels) - onwards)).sum(dtype=np.float64)
    return 1 - float(len(labels) * steps / most)
