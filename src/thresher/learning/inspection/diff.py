"""Compare two models: weights that changed, options that differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError
from thresher.data.formats.listing import kind_of_features
from thresher.data.labels import listed_words
from thresher.data.layout import SettledLayout
from thresher.engine.index import HashedIndex
from thresher.learning.files.model_file import RECIPE
from thresher.learning.model.objective import F64
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import Header
from thresher.learning.model.warm_start import has_small_keys

STEP = 1 << 19
"""Keys of each model that are compared at a time."""
_HASHING = ("hash", "bits", "seed")
"""Fields of a layout that determine the key of a name."""


def _farthest(
    top: int, keys: NDArray[Any], outputs: NDArray[Any], before: NDArray[Any], after: NDArray[Any]
) -> list[NDArray[Any]]:
    """The `top` largest changes of weights; on ties, the first in order of key and output."""
    far = np.abs(after - before)
    least = np.partition(far, len(far) - top)[len(far) - top] if 0 < top < len(far) else 0.0
    likely = np.flatnonzero(far >= least)
    order = likely[np.lexsort((outputs[likely], keys[likely], -far[likely]))[:top]]
    return [array[order] for array in (keys, outputs, before, after)]


def compare(a: Readout, b: Readout, headers: tuple[Header, Header], top: int = 20) -> dict[str, Any]:
    """The content of ``thresher diff --json``. `DataError` if keys or outputs have different meanings."""
    _check_comparable(a, b)
    counts = dict.fromkeys(("added", "removed", "changed_sign", "grew", "shrank", "same"), 0)
    total = squares = largest = 0.0
    most: list[NDArray[Any]] = [np.zeros(0, kind) for kind in (np.uint64, np.int64, float, float)]
    for keys, before, after in _pairs(a, b):
        was, now, turned = before != 0, after != 0, before * after < 0
        kept, growth = was & now & ~turned, np.abs(after) - np.abs(before)
        flags = (now & ~was, was & ~now, turned, kept & (growth > 0), kept & (growth < 0))
        for kind, flag in zip(counts, (*flags, kept & (growth == 0)), strict=True):
            counts[kind] += int(flag.sum())
        change = np.abs(after - before)
        total, squares = total + float(change.sum()), squares + float((change * change).sum())
        largest = max(largest, float(change.max(initial=0.0)))
        rows, outputs = np.nonzero(change)
        found = keys[rows], outputs, before[rows, outputs], after[rows, outputs]
        most = _farthest(top, *map(np.concatenate, zip(most, found, strict=True)))
    intercepts = [one.bias.astype(float).tolist() for one in (a, b)]
    scaled_alike = a.means == b.means and (
        a.divisors is b.divisors
        if a.divisors is None or b.divisors is None
        else all(map(np.array_equal, (a.divisors.keys, a.divisors.by), (b.divisors.keys, b.divisors.by)))
    )
    called, many = b.head.names(b.classes), a.head.outputs.kind != "one"
    return {
        "equal": not largest and intercepts[0] == intercepts[1] and scaled_alike,
        **counts,
        "l1_distance": total,
        "l2_distance": squares**0.5,
        "largest_change": largest,
        "intercept": intercepts,
        "scales_differ": not scaled_alike,
        "options": _differing(*headers),
        "moved": [
            {
                "feature": key,
                "name": next((name for one in (b, a) if one.names and (name := one.names.get(key))), None),
                **({"output": called[output]} if many else {}),
                "before": before,
                "after": after,
            }
            for key, output, before, after in zip(*(one.tolist() for one in most), strict=True)
        ],
    }


def _check_comparable(a: Readout, b: Readout) -> None:
    """`DataError` if the same key or output means something else in the two models."""
    if a.head.outputs != b.head.outputs:
        raise DataError(f"their outputs differ: {a.head.outputs.spec} and {b.head.outputs.spec}")
    if a.classes != b.classes:
        both = f"{listed_words(a.classes)} and {listed_words(b.classes)}"
        raise DataError(f"the classes or their order differ: {both}")
    if a.store != b.store and any(one.store.startswith(HashedIndex.NAME) for one in (a, b)):
        raise DataError(f"their stores differ: {a.store} and {b.store}")
    if a.layout is None or b.layout is None:
        return  # the caller knows what keys from memory mean
    kinds = [kind_of_features(one.format) for one in (a.layout, b.layout)]
    if kinds[0] != kinds[1] and "columns" in kinds:
        raise DataError(f"their features differ: {kinds[0]} and {kinds[1]}")
    if kinds[0] != kinds[1] and not has_small_keys(a if kinds[0] == "names" else b):
        raise DataError("their features differ: ids in one model, hashes of names in the other")
    if kinds == ["ids", "ids"]:
        return
    for name in _HASHING:
        mine, theirs = getattr(a.layout, name), getattr(b.layout, name)
        if mine != theirs and kinds[0] == kinds[1]:
            raise DataError(f"their names are hashed differently: {name} {mine} and {theirs}")


def _pairs(a: Readout, b: Readout) -> Iterator[tuple[NDArray[np.uint64], F64, F64]]:
    """Some of the keys that either has, in order, with the weights that both have for them."""
    marks = np.union1d(a.keys[::STEP], b.keys[::STEP])
    bounds = [(one, [*np.searchsorted(one.keys, marks).tolist(), len(one.keys)]) for one in (a, b)]
    for k in range(len(marks)):
        parts = [(one, slice(ends[k], ends[k + 1])) for one, ends in bounds]
        mine, theirs = (one.keys[part] for one, part in parts)
        keys, tables = mine if np.array_equal(mine, theirs) else np.union1d(mine, theirs), list[F64]()
        for one, part in parts:
            table = np.repeat(one.unmet.astype(np.float64)[np.newaxis], len(keys), axis=0)
            table[np.searchsorted(keys, one.keys[part])] = one.weights[part].reshape(-1, one.head.count)
            tables.append(table)
        yield keys, tables[0], tables[1]


def _differing(a: Header, b: Header) -> dict[str, list[Any]]:
    """Options of the recipes, of the layouts and of columns, with both values where these differ."""
    recipes, layouts = (a["recipe"], b["recipe"]), [one["recipe"]["layout"] or {} for one in (a, b)]
    found = {name: [one.get(name) for one in recipes] for name in RECIPE if name != "layout"}
    for name in sorted((layouts[0].keys() | layouts[1].keys()) - {"columns", "kinds"}):
        values = [one.get(name, getattr(SettledLayout, name, None)) for one in layouts]
        found["layout_seed" if name == "seed" else name] = values
    kinds = [dict(zip(one.get("columns", []), one.get("kinds", []), strict=True)) for one in layouts]
    for name in dict.fromkeys([*kinds[0], *kinds[1]]):
        found[f"column {name}"] = [one.get(name) for one in kinds]
    return {name: both for name, both in found.items() if both[0] != both[1]}
