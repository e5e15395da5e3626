"""Columns that tell the label alone, as one that is filled in with the label, or after it, does.

They are looked for in the first rows of data that can be read again, if a model is far better than a
constant, or if its mean is exp(margin), which cannot follow a copy of the label. A column is named if it
leaves next to nothing open there by itself: what a linear model can use of it, which is its order if it holds
numbers, its values if it holds categories, and where it has none; of a number, also which are 0. So is
one that is filled for one class only: a model does not see where numbers are missing, so those are looked at
however good it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.columns import FEATURES, NUMBERS
from thresher.data.features.names import find_names
from thresher.data.source import Source
from thresher.engine.sound import Array
from thresher.learning.diagnostics.advice import feature_names
from thresher.learning.model.objective import Objective

ROWS = 4096, 65536
"""The rows that are looked at: at first, and for columns that tell the label in these"""
LEAST = 500
"""With fewer, a column may tell the label by chance, or because the data are a small example."""
_CELLS = 1 << 20
_RARE = 10
"""Fewer rows with another label than the most frequent one tell nothing."""
_OPEN = 0.01
"""Share of the mistakes of a constant that a column may leave"""
_UNEXPLAINED = 1e-3
"""Share of the variance of the ranks of numbers that it may leave"""
_FILLED, _STRAY = 0.75, 0.02
"""Shares of a class, at least, and of the others, at most, where a column filled for it has values"""
_SINGLE = 0.02
"""Share of rows whose category occurs once, up to which others tell enough"""
F64 = NDArray[np.float64]


class Candidate(NamedTuple):
    """A column, or a feature: the rows where it has a value, and the values, numbers in order or codes."""

    name: Any
    """of a feature, its key"""
    rows: NDArray[np.intp]
    values: Array
    ordered: bool


def telling(source: Source, head: Objective, is_good: bool) -> list[str]:
    """The names of the columns or features of `source` of which each tells the label alone. `DataError`.

    Of a model that is not `is_good`, only columns that are filled for one class.
    """
    source = source.origin or source  # a cache has no cells
    layout = source.layout
    fits = head.outputs.kind in ("one", "classes") and (is_good or head.classifies or head.is_exponential)
    if not (fits and source.rereadable) or source.acknowledged:  # a log grows, and its rows go
        return []
    named = zip(layout.columns, layout.kinds, strict=True) if layout and source.has_cells else ()
    kinds = {name: kind for name, kind in named if kind in FEATURES}
    missing = {"", *(layout.missing if layout else ())}
    found, columns = set[Any](), kinds
    for rows in ROWS:
        chunk = _first(source, [*columns], min(rows, _CELLS // max(len(columns), 1)))
        if len(chunk) < LEAST:
            return []
        codes = np.unique(chunk.labels if head.classifies else chunk.labels != 0, return_inverse=True)[1]
        of_class = partial(_tells_class, codes, is_good or not head.classifies, bool(kinds))
        of_number = partial(_tells_number, _ranks(chunk.labels))
        tells = [of_class] if head.classifies else [of_number, of_class]
        each = _columns(chunk, columns, missing) if kinds else _features(chunk)
        found = {one.name for one in each if (not found or one.name in found) and any(f(one) for f in tells)}
        columns = {name: kind for name, kind in kinds.items() if name in found}
        if not found:
            return []
    if kinds:
        return [f"column {name}" for name in columns]
    report, keys = source.report, np.array(sorted(found), np.uint64)
    names = find_names(source, keys) if source.nameable else None
    source.report = report
    return feature_names(keys.tolist(), layout, names)


def _first(source: Source, columns: list[str], most: int) -> Chunk:
    """The first rows that count, with the cells of some columns; the source is left as it was."""
    before, report, found = source.sliced, source.report, list[Chunk]()
    source.sliced, left = columns, most
    try:
        with closing(source.chunks()) as chunks:
            for chunk in chunks:
                found.append(chunk.counting().rows(0, left))
                left -= len(found[-1])
                if left <= 0:
                    break
    finally:
        source.sliced, source.report = before, report
    return concat(found)


def _columns(chunk: Chunk, kinds: dict[str, str], missing: set[str]) -> Iterator[Candidate]:
    """The columns of a table."""
    assert chunk.cells is not None
    for k, (name, kind) in enumerate(kinds.items()):
        cells = chunk.cells[:, k]
        rows = np.flatnonzero([cell not in missing and bool(cell.strip()) for cell in cells.tolist()])
        values, ordered = cells[rows], False
        if kind in NUMBERS:
            with suppress(ValueError):
                values, ordered = values.astype(np.float64), True
        yield Candidate(name, rows, values if ordered else values.astype(str), ordered)


def _features(chunk: Chunk) -> Iterator[Candidate]:
    """The features of rows that have no columns."""
    rows = np.repeat(np.arange(len(chunk)), np.diff(chunk.indptr))
    order = np.argsort(chunk.keys, kind="stable")
    keys, starts = np.unique(chunk.keys[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    for key, start, end in zip(keys.tolist(), starts.tolist(), ends.tolist(), strict=True):
        places = order[start:end]
        if end - start >= _RARE:
            yield Candidate(key, rows[places], chunk.values[places].astype(np.float64), True)


def _tells_class(codes: NDArray[np.intp], is_good: bool, in_table: bool, column: Candidate) -> bool:
    """Whether the class is known from the value: with next to no mistakes, and no values that occur once.

    Or a column of a table is filled for one class; only these count unless `is_good`.
    """
    counts, own = np.bincount(codes), codes[column.rows]
    filled = np.bincount(own, minlength=len(counts))
    rest, absent = len(codes) - counts, counts - filled
    for_one = (filled >= _FILLED * counts) & (len(own) - filled <= _STRAY * rest)
    if in_table and (for_one & (counts >= _RARE) & (rest >= _RARE)).any():
        return True
    others = rest.min()
    if not is_good or not len(own) or others < _RARE or absent.sum() - absent.max() > _OPEN * others:
        return False
    values, places = np.unique(column.values, return_inverse=True)
    table = np.zeros((len(values), len(counts)), np.int64)
    np.add.at(table, (places, own), 1)
    mistakes = (table.sum(axis=1) - table.max(axis=1)).sum()
    if column.ordered:  # values of a class are side by side
        mistakes += max(np.count_nonzero(np.diff(table.argmax(axis=1))) - (len(counts) - 1), 0)
    else:
        single = table[table.sum(axis=1) == 1]
        mistakes += np.count_nonzero(single.argmax(axis=1) != counts.argmax())
        mistakes = min(mistakes, len(own) - table.sum(axis=0).max())
    return bool(absent.sum() - absent.max() + mistakes <= _OPEN * others)


def _tells_number(ranks: F64, column: Candidate) -> bool:
    """Whether the number rises or falls with the value, or is the same for the same value."""
    own, absent = ranks[column.rows], np.delete(ranks, column.rows)
    most = _UNEXPLAINED * float(((ranks - ranks.mean()) ** 2).sum())
    beside = float(((absent - absent.mean()) ** 2).sum()) if len(absent) else 0.0
    if beside >= most or not len(own):
        return False
    if column.ordered:
        x, y = _ranks(column.values) - (len(own) - 1) / 2, own - own.mean()
        scale = float((x @ x) * (y @ y))
        left = float(y @ y) - (float(x @ y) ** 2 / float(x @ x) if scale else 0.0)
    else:
        _, places, counts = np.unique(column.values, return_inverse=True, return_counts=True)
        means = np.bincount(places, own) / counts
        if np.count_nonzero(counts == 1) > _SINGLE * len(own):
            return False
        left = float(((own - means[places]) ** 2).sum())
    return beside + left <= most


def _ranks(values: NDArray[np.generic]) -> F64:
    """The places of values in their order; equal ones share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: F64 = (ends - (counts + 1) / 2)[places]
    return ranks
