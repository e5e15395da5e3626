"""Group weights by column or namespace, using the names of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.columns import FEATURES, NUMERIC
from thresher.data.features.names import BETWEEN, Names, numeric_keys
from thresher.data.layout import SettledLayout
from thresher.engine.index import HashedIndex
from thresher.learning.readout import Readout

_BETWEEN = BETWEEN.encode()
_UNNAMED = 0
Numbers = NDArray[np.int64]


def groups_of(readout: Readout) -> list[dict[str, Any]]:
    """For each column or namespace: numbers of nonzero features and weights, sum and maximum of their sizes.

    Columns come first, in their order, then products and namespaces by name, then all weights without a name,
    whose ``group`` is None. Columns whose weights cannot be told from those without a name are left out.
    Without names and numeric columns the list is empty.
    """
    layout = readout.layout or SettledLayout()
    kinds = dict(zip(layout.columns, layout.kinds, strict=True))
    if readout.store.startswith(HashedIndex.NAME) or not (readout.names or NUMERIC in kinds.values()):
        return []
    groups = [b"", *(name.encode("utf-8", "surrogateescape") for name in kinds)]
    numbers = _numeric(readout, layout)
    if readout.names is not None:
        _named(readout.keys, readout.names, groups, bool(kinds), numbers)
    totals_of = _sums(readout, numbers, len(groups))
    sure = [kind in (FEATURES if readout.names is not None else (NUMERIC,)) for kind in kinds.values()]
    order = [*(k for k, known in enumerate(sure, 1) if known)]
    order += sorted(range(len(kinds) + 1, len(groups)), key=lambda k: groups[k])
    rows = [{"group": groups[k].decode("utf-8", "backslashreplace"), **totals_of[k]} for k in order]
    return rows + ([{"group": None, **totals_of[_UNNAMED]}] if totals_of[_UNNAMED]["features"] else [])


def _numeric(readout: Readout, layout: SettledLayout) -> Numbers:
    """The group of each row that belongs to a numeric column; its key is known."""
    numbers = np.full(len(readout.keys), _UNNAMED, np.int64)
    columns, mine = numeric_keys(layout), {name: number for number, name in enumerate(layout.columns, 1)}
    keys = np.array([*columns], np.uint64)
    _enter(numbers, readout.keys, keys, np.array([mine[name] for name in columns.values()], np.int64))
    return numbers


def _enter(into: Numbers, keys: NDArray[np.uint64], some: NDArray[np.uint64], groups: Numbers) -> None:
    """Set the group of those of `keys`, which ascend, that are among `some`."""
    places = np.searchsorted(keys, some)
    there = places < len(keys)
    there[there] = keys[places[there]] == some[there]
    into[places[there]] = groups[there]


def _named(keys: NDArray[np.uint64], names: Names, groups: list[bytes], columns: bool, into: Numbers) -> None:
    """Set the group of each row that has a name; new groups are appended to `groups`."""
    known = {name: number for number, name in enumerate(groups) if number}
    column = _column_among(known) if columns else _before_equals
    letters, begin = names.letters.tobytes(), 0
    found = np.empty(len(names), np.int64)
    for k, end in enumerate(names.ends.tolist()):
        name, begin = letters[begin:end], end
        group = _BETWEEN.join(map(column, name.split(_BETWEEN))) if _BETWEEN in name else column(name)
        number = known.get(group)
        if number is None:
            number = known[group] = len(groups)
            groups.append(group)
        found[k] = number
    _enter(into, keys, names.features, found)


def _before_equals(name: bytes) -> bytes:
    """The namespace of a feature; empty if it has none."""
    space, equals, _ = name.partition(b"=")
    return space if equals else b""


def _column_among(columns: dict[bytes, int]) -> Callable[[bytes], bytes]:
    """A function from feature to column; names of columns may contain equals signs."""

    def column(name: bytes) -> bytes:
        space = name.partition(b"=")[0]
        while space not in columns and len(space) < len(name):
            space += b"=" + name[len(space) + 1 :].partition(b"=")[0]
        return space

    return column


def _sums(readout: Readout, numbers: Numbers, count: int) -> list[dict[str, Any]]:
    """For each group: number of features, number of weights, sum and maximum of their sizes."""
    features, nonzero = np.zeros((2, count), np.int64)
    totals, largest = np.zeros((2, count))
    for part, block in readout.blocks():
        mine, sizes = numbers[part], np.abs(block)
        live = (sizes > 0).sum(axis=1)
        features += np.bincount(mine[live > 0], minlength=count)
        np.add.at(nonzero, mine, live)
        totals += np.bincount(mine, sizes.sum(axis=1), count)
        np.maximum.at(largest, mine, sizes.max(axis=1, initial=0.0))
    columns = zip(*(one.tolist() for one in (features, nonzero, totals, largest)), strict=True)
    return [dict(zip(("features", "nonzero", "l1_norm", "largest"), one, strict=True)) for one in columns]
