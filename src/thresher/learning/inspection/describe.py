"""The contents of a model file: how the model was trained, statistics of its weights, sizes of its parts.

Weights are grouped by column or namespace, using the names of features.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.columns import FEATURES, NUMERIC
from thresher.data.features.names import BETWEEN, Names, numeric_keys
from thresher.data.layout import SettledLayout
from thresher.data.stored import read
from thresher.engine.index import HashedIndex
from thresher.learning.files import model_file
from thresher.learning.files.checkpoint import SavedSet, TrainingState
from thresher.learning.files.model_file import LANES, NAMES, Tensors
from thresher.learning.inspection.feature_names import is_nameable
from thresher.learning.model.objective import figures_of as of_calibration
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import Header
from thresher.learning.training.passes import AUTO

_BETWEEN = BETWEEN.encode()
_UNNAMED = 0


def groups_of(readout: Readout) -> list[dict[str, Any]]:
    """For each column or namespace: numbers of nonzero features and weights, sum and maximum of their sizes.

    Columns come first, in their order, then products and namespaces by name, then all weights without a name,
    whose ``group`` is None. Columns whose weights cannot be told from those without a name are left out.
    Without names and numeric columns the list is empty.
    """
    layout = readout.layout or SettledLayout()
    kinds = layout.kind_of
    if readout.store.startswith(HashedIndex.NAME) or not (readout.names or NUMERIC in kinds.values()):
        return []
    groups = [b"", *(name.encode("utf-8", "surrogateescape") for name in kinds)]
    columns, mine = numeric_keys(layout), {name: number for number, name in enumerate(layout.columns, 1)}
    grouped = [(np.array([*columns], np.uint64), [mine[name] for name in columns.values()])]
    if readout.names is not None:
        grouped.insert(0, (readout.names.features, _groups_of_names(readout.names, groups, bool(kinds))))
    numbers = np.full(len(readout.keys), _UNNAMED, np.int64)
    for keys, found in grouped:
        places = np.searchsorted(readout.keys, keys)
        there = places < len(numbers)
        there[there] = readout.keys[places[there]] == keys[there]
        numbers[places[there]] = np.array(found, np.int64)[there]
    count = len(groups)
    features, nonzero = np.zeros((2, count), np.int64)
    norms, largest = np.zeros((2, count))
    for part, block in readout.blocks():
        own, sizes = numbers[part], np.abs(block)
        live = (sizes > 0).sum(axis=1)
        features += np.bincount(own[live > 0], minlength=count)
        np.add.at(nonzero, own, live)
        norms += np.bincount(own, sizes.sum(axis=1), count)
        np.maximum.at(largest, own, sizes.max(axis=1, initial=0.0))
    figures = {"features": features, "nonzero": nonzero, "l1_norm": norms, "largest": largest}
    sure = [kind in (FEATURES if readout.names is not None else (NUMERIC,)) for kind in kinds.values()]
    order = [*(k for k, known in enumerate(sure, 1) if known)]
    order += sorted(range(len(kinds) + 1, count), key=lambda k: groups[k])
    order += [_UNNAMED] if features[_UNNAMED] else []
    called = {k: groups[k].decode("utf-8", "backslashreplace") for k in order if k != _UNNAMED}
    return [
        {"group": called.get(k), **{name: array[k].item() for name, array in figures.items()}} for k in order
    ]


def _groups_of_names(names: Names, groups: list[bytes], columns: bool) -> list[int]:
    """The number of the group of each name; new groups are appended to `groups`."""
    known = {name: number for number, name in enumerate(groups) if number}

    def column(name: bytes) -> bytes:
        """The column of a feature, whose name may contain equals signs; its namespace; empty if none."""
        space, equals, _ = name.partition(b"=")
        while columns and space not in known and len(space) < len(name):
            space += b"=" + name[len(space) + 1 :].partition(b"=")[0]
        return space if columns or equals else b""

    letters, begin, found = names.letters.tobytes(), 0, list[int]()
    for end in names.ends.tolist():
        name, begin = letters[begin:end], end
        group = _BETWEEN.join(map(column, name.split(_BETWEEN))) if _BETWEEN in name else column(name)
        number = known.get(group)
        if number is None:
            number = known[group] = len(groups)
            groups.append(group)
        found.append(number)
    return found


_FROM_HEADER = ("examples", "progressive_loss", "nonzero", "features_seen")
_IF_KNOWN = ("left_out", "loss_of_later_passes")
"""What the header has only if rows were sampled, or after several passes, in which the progressive loss is
that of the first."""


def anatomy(path: str | Path, header: Header, tensors: Tensors) -> dict[str, Any]:
    """The content of ``thresher info --json`` for a model file or checkpoint. Raises `ModelFileError`."""
    readout = model_file.readout_of(path, header, tensors)
    recipe, stopped = dict(header["recipe"]), _stopped(path, header)
    layout, record = recipe.pop("layout") or {}, header.get("record")
    report = record or (header["training"]["position"]["report"] if stopped else {})
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
        "lines": {k: report[k] for k in ("lines", "examples", "blank", "skipped", "merged") if report},
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
            "best_pass": training.bests[0].number if [one.model for one in training.bests] == [0] else None,
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
