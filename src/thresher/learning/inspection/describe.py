"""The contents of a model file: how the model was trained, statistics of its weights, sizes of its parts.

Weights are grouped by column or namespace, using the names of features. Two models are compared by weights
that changed and options that differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.columns import FEATURES, NUMERIC
from thresher.data.errors import DataError
from thresher.data.formats.listing import kind_of_features
from thresher.data.labels import listed_words
from thresher.data.layout import SettledLayout
from thresher.data.stored import read
from thresher.engine.index import HashedIndex
from thresher.engine.sound import Array
from thresher.learning.diagnostics.effects import UNNAMED, Grouping
from thresher.learning.files import model_file
from thresher.learning.files.checkpoint import SavedSet, TrainingState
from thresher.learning.files.model_file import LANES, NAMES, RECIPE, Tensors
from thresher.learning.inspection.feature_names import is_nameable
from thresher.learning.model.objective import F64
from thresher.learning.model.objective import figures_of as of_calibration
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import Header
from thresher.learning.model.warm_start import has_small_keys
from thresher.learning.training.passes import AUTO


def groups_of(readout: Readout) -> list[dict[str, Any]]:
    """For each column or namespace: numbers of nonzero features and weights, and its effect, if it is known.

    Columns come first, in their order, then products and namespaces by name, then all weights without a name,
    whose ``group`` is None. Columns whose weights cannot be told from those without a name are left out.
    Without names and numeric columns the list is empty; in a hashed store there are only effects.
    """
    kinds = (readout.layout or SettledLayout()).kind_of
    if not (readout.names or NUMERIC in kinds.values()):
        return []
    groups, hashed = Grouping.of(readout), readout.store.startswith(HashedIndex.NAME)
    effects = dict(readout.record.effects) if readout.record else {}
    count = len(groups.names)
    features, nonzero = np.zeros((2, count), np.int64)
    own = groups.of_keys(readout.keys)
    for part, block in readout.blocks():
        live = (block != 0).sum(axis=1)
        features += np.bincount(own[part][live > 0], minlength=count)
        np.add.at(nonzero, own[part], live)
    sure = [kind in (FEATURES if readout.names is not None else (NUMERIC,)) for kind in kinds.values()]
    order = [*(k for k, known in enumerate(sure, 1) if known)]
    order += sorted(range(len(kinds) + 1, count), key=lambda k: groups.names[k])
    order += [UNNAMED] if features[UNNAMED] else []
    found = list[dict[str, Any]]()
    for k in order:
        name = groups.called(k)
        counts = {} if hashed else {"features": features[k].item(), "nonzero": nonzero[k].item()}
        found.append({"group": name, **counts, **({"effect": effects.get(name, 0.0)} if effects else {})})
    return found


_FROM_HEADER = ("examples", "progressive_loss", "nonzero", "features_seen")
_IF_KNOWN = ("features_freed", "left_out", "loss_of_later_passes")
"""What the header has only if rows of features were freed, if rows were sampled, or after several passes, in
which the progressive loss is that of the first."""


def anatomy(path: str | Path, header: Header, tensors: Tensors) -> dict[str, Any]:
    """The content of ``thresher info --json`` for a model file or checkpoint. Raises `ModelFileError`."""
    readout = model_file.readout_of(path, header, tensors)
    recipe, stopped = dict(header["recipe"]), _stopped(path, header)
    layout, record = recipe.pop("layout") or {}, header.get("record")
    groups = {one["group"]: one for one in groups_of(readout)}
    columns = [
        {"column": name, "kind": kind, **{k: v for k, v in groups.pop(name, {}).items() if k != "group"}}
        for name, kind in zip(layout.get("columns", []), layout.get("kinds", []), strict=True)
    ]
    needs = [{k: v for k, v in one._asdict().items() if v} for one in model_file.needs_in(header)]
    learned = recipe.get("calibrate") or readout.head.calibrated()
    weights, by_output = _figures_of(readout)
    plain = ("weights.", "scale.", "centre.", NAMES)
    state = sum(array.nbytes for name, array in tensors.items() if not name.startswith(plain))
    kind = "model" if state else "weights only"
    if "training" in header:
        kind = "checkpoint of many models" if LANES in header else "checkpoint"
    return {
        "model": str(path),
        "kind": kind,
        "version": header["version"],
        **recipe,
        **{name: header.get(name) for name in _FROM_HEADER},
        **{name: header[name] for name in _IF_KNOWN if name in header},
        "features_live": sum(int((block != 0).any(axis=1).sum()) for _, block in readout.blocks()),
        "warm": header.get("warm", False),
        **stopped,
        "record": record,
        "lines": {k: record[k] for k in ("lines", "examples", "blank", "skipped", "merged") if record},
        "layout": {name: value for name, value in layout.items() if name not in ("columns", "kinds")},
        "columns": columns,
        "groups": [*groups.values()],
        **({"needs": needs} if needs else {}),
        **({"solver": header["solver"]} if "solver" in header else {}),
        **({"calibration": of_calibration(readout.head)} if learned else {}),
        "weights": weights,
        "by_output": by_output,
        "nameable": is_nameable(readout),
        "bytes": {
            "file": Path(path).stat().st_size,
            "weights": readout.keys.nbytes + readout.weights.nbytes,
            "names": sum(array.nbytes for name, array in tensors.items() if name.startswith(NAMES)),
            "state": state,
            "to_predict": readout.nbytes,
        },
        "curve": [point.as_dict() for point in model_file.curve_in(header)],
        "warnings": list(record["warnings"]) if record is not None else [],
    }


def _stopped(path: str | Path, header: Header) -> dict[str, Any]:
    """Where training stopped, if the file is a checkpoint."""
    if "training" not in header:
        return {}
    with model_file.naming_file(path):
        training = TrainingState.from_dict(header["training"])
        if LANES in header:
            read(SavedSet, header[LANES], LANES)
    best = training.scored[0].best(training.judge)[0] if [k for k, *_ in training.scored] == [0] else None
    return {
        "stopped": {
            **({"models": len(header[LANES]["recipes"])} if LANES in header else {}),
            "pass": training.position.number,
            "passes": training.passes if training.settled else AUTO,
            "replay": training.replay,
            "patience": training.patience,
            "judge": training.judge,
            "order": training.order,
            "holdout": training.holdout.given.names or training.holdout.share,
            "where": training.data.where,
            "data": training.data.names,
            "best_pass": best,
        }
    }


def _figures_of(readout: Readout) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Counts and norms of all weights except the intercepts; of several outputs, also of each."""
    positive = negative = 0
    squares = largest = norm = 0.0
    nonzero, norms = np.zeros(readout.head.count, np.int64), np.zeros(readout.head.count)
    for _, block in readout.blocks():
        sizes = np.abs(block)
        positive += int((block > 0).sum())
        negative += int((block < 0).sum())
        norm += float(sizes.sum())
        squares += float((sizes * sizes).sum())
        largest = max(largest, float(sizes.max(initial=0.0)))
        nonzero += (block != 0).sum(axis=0)
        norms += sizes.sum(axis=0)
    names = [] if readout.head.outputs.kind == "one" else readout.head.names(readout.classes)
    return {
        "positive": positive,
        "negative": negative,
        "l1_norm": norm,
        "l2_norm": squares**0.5,
        "largest": largest,
        "intercept": readout.bias.tolist(),
        "named": None if readout.names is None else len(readout.names),
        **({"unmet": readout.unmet.tolist()} if readout.unmet.any() else {}),
    }, [
        {"output": name, "nonzero": int(nonzero[k]), "l1_norm": float(norms[k])}
        for k, name in enumerate(names)
    ]


STEP = 1 << 19
"""Keys that are compared at a time."""
_HASHING = ("hash", "bits", "seed")
"""Fields of a layout that determine the key of a name."""


def _farthest(
    top: int,
    keys: NDArray[np.generic],
    outputs: NDArray[np.generic],
    before: Array,
    after: Array,
) -> list[Array]:
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
    most: list[Array] = [np.zeros(0, kind) for kind in (np.uint64, np.int64, float, float)]
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
    if a.head.outputs.spec != b.head.outputs.spec:
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
    every = np.union1d(a.keys, b.keys)
    for begin in range(0, len(every), STEP):
        keys, tables = every[begin : begin + STEP], list[F64]()
        for one in (a, b):
            own = slice(np.searchsorted(one.keys, keys[0]), np.searchsorted(one.keys, keys[-1], "right"))
            table = np.repeat(one.unmet.astype(np.float64)[np.newaxis], len(keys), axis=0)
            table[np.searchsorted(keys, one.keys[own])] = one.weights[own].reshape(-1, one.head.count)
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
