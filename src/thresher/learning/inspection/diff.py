"""Compare two models: weights that changed, options that differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError
from thresher.data.formats.choosing import features_of
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


class Moved(NamedTuple):
    """The weights that changed most, each array ``(n,)``."""

    keys: NDArray[Any]
    outputs: NDArray[Any]
    before: NDArray[Any]
    after: NDArray[Any]

    def those(self, rows: NDArray[Any]) -> Moved:
        """Select `rows`."""
        return Moved(self.keys[rows], self.outputs[rows], self.before[rows], self.after[rows])

    def joined(self, other: Moved, top: int) -> Moved:
        """The `top` largest changes of both; on ties, the first in order of key and output."""
        keys, outputs, before, after = (np.concatenate(pair) for pair in zip(self, other, strict=True))
        far = np.abs(after - before)
        least = np.partition(far, len(far) - top)[len(far) - top] if 0 < top < len(far) else 0.0
        likely = Moved(keys, outputs, before, after).those(np.flatnonzero(far >= least))
        far = np.abs(likely.after - likely.before)
        return likely.those(np.lexsort((likely.outputs, likely.keys, -far))[:top])


def compare(a: Readout, b: Readout, headers: tuple[Header, Header], top: int = 20) -> dict[str, Any]:
    """The content of ``thresher diff --json``. `DataError` if keys or outputs have different meanings."""
    check_comparable(a, b)
    counts = dict.fromkeys(("added", "removed", "changed_sign", "grew", "shrank", "same"), 0)
    total = squares = largest = 0.0
    most = Moved(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    for keys, before, after in _pairs(a, b):
        for name, many in _counted(before, after).items():
            counts[name] += many
        change = np.abs(after - before)
        total, squares = total + float(change.sum()), squares + float((change * change).sum())
        largest = max(largest, float(change.max(initial=0.0)))
        rows, outputs = np.nonzero(change)
        here = Moved(keys[rows], outputs, before[rows, outputs], after[rows, outputs])
        most = most.joined(here, top)
    intercepts = [a.bias.astype(float).tolist(), b.bias.astype(float).tolist()]
    options = _differing(*headers)
    alike = not largest and intercepts[0] == intercepts[1] and _scaled_alike(a, b)
    return {
        "equal": alike,
        **counts,
        "l1_distance": total,
        "l2_distance": squares**0.5,
        "largest_change": largest,
        "intercept": intercepts,
        "scales_differ": not _scaled_alike(a, b),
        "options": options,
        "moved": _as_dicts(most, a, b),
    }


def check_comparable(a: Readout, b: Readout) -> None:
    """`DataError` if the same key or output means something else in the two models."""
    if a.head.outputs != b.head.outputs:
        raise DataError(f"their outputs differ: {a.head.outputs.spec} and {b.head.outputs.spec}")
    if a.classes != b.classes:
        raise DataError(
            f"the classes or their order differ: {listed_words(a.classes)} and {listed_words(b.classes)}"
        )
    if a.store != b.store and any(one.store.startswith(HashedIndex.NAME) for one in (a, b)):
        raise DataError(f"their stores differ: {a.store} and {b.store}")
    if a.layout is None or b.layout is None:
        return  # the caller knows what keys from memory mean
    kinds = [features_of(one) for one in (a.layout, b.layout)]
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
    marks = np.union1d(a.keys[::STEP], b.keys[::STEP])
    for k, low in enumerate(marks):
        parts = []
        for one in (a, b):
            lo = int(np.searchsorted(one.keys, low))
            hi = int(np.searchsorted(one.keys, marks[k + 1])) if k + 1 < len(marks) else len(one.keys)
            parts.append((one, slice(lo, hi)))
        mine, theirs = (one.keys[part] for one, part in parts)
        keys = mine if np.array_equal(mine, theirs) else np.union1d(mine, theirs)
        before, after = (_weights(one, part, keys) for one, part in parts)
        yield keys, before, after


def _weights(one: Readout, part: slice, keys: NDArray[np.uint64]) -> F64:
    """The weights of `keys`; only those of the rows in `part` are stored."""
    table = np.repeat(one.unmet.astype(np.float64)[np.newaxis], len(keys), axis=0)
    stored = one.weights[part].reshape(-1, one.head.count)
    table[np.searchsorted(keys, one.keys[part])] = stored
    return table


def _counted(before: F64, after: F64) -> dict[str, int]:
    """How many weights were added, removed, and so on; weights that are zero in both are not counted."""
    was, now, turned = before != 0, after != 0, before * after < 0
    kept = was & now & ~turned
    more, less = np.abs(after) > np.abs(before), np.abs(after) < np.abs(before)
    flags = (now & ~was, was & ~now, turned, kept & more, kept & less, kept & ~more & ~less)
    names = ("added", "removed", "changed_sign", "grew", "shrank", "same")
    return {name: int(flag.sum()) for name, flag in zip(names, flags, strict=True)}


def _scaled_alike(a: Readout, b: Readout) -> bool:
    if a.means != b.means:
        return False
    if a.divisors is None or b.divisors is None:
        return a.divisors is b.divisors
    same = np.array_equal(a.divisors.keys, b.divisors.keys)
    return same and np.array_equal(a.divisors.by, b.divisors.by)


def _differing(a: Header, b: Header) -> dict[str, list[Any]]:
    found = {
        name: [a["recipe"].get(name), b["recipe"].get(name)]
        for name in RECIPE
        if name != "layout" and a["recipe"].get(name) != b["recipe"].get(name)
    }
    layouts = [one["recipe"]["layout"] or {} for one in (a, b)]
    for name in sorted(layouts[0].keys() | layouts[1].keys()):
        mine, theirs = (one.get(name, getattr(SettledLayout, name, None)) for one in layouts)
        if name not in ("columns", "kinds") and mine != theirs:
            found[name if name != "seed" else "layout_seed"] = [mine, theirs]
    kinds = [dict(zip(one.get("columns", []), one.get("kinds", []), strict=True)) for one in layouts]
    for name in dict.fromkeys([*kinds[0], *kinds[1]]):
        mine, theirs = (one.get(name) for one in kinds)
        if mine != theirs:
            found[f"column {name}"] = [mine, theirs]
    return found


def _as_dicts(moved: Moved, a: Readout, b: Readout) -> list[dict[str, Any]]:
    called, many = b.head.names(b.classes), a.head.outputs.kind != "one"
    rows = zip(*(one.tolist() for one in moved), strict=True)
    return [
        {
            "feature": key,
            "name": next((name for one in (b, a) if one.names and (name := one.names.get(key))), None),
            **({"output": called[output]} if many else {}),
            "before": before,
            "after": after,
        }
        for key, output, before, after in rows
    ]
