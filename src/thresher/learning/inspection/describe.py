"""The contents of a model file: how the model was trained, statistics of its weights, sizes of its parts.

Weights are grouped by column or namespace, using the names of features.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.columns import FEATURES, NUMERIC
from thresher.data.features.names import BETWEEN, Names, numeric_keys
from thresher.data.layout import SettledLayout
from thresher.engine.index import HashedIndex
from thresher.learning.files import model_file, schema
from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.model_file import LANES, NAMES, Tensors
from thresher.learning.inspection.feature_names import is_nameable
from thresher.learning.model.calibration import figures_of as of_calibration
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import Header
from thresher.learning.training.passes import AUTO

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
    numbers = np.full(len(readout.keys), _UNNAMED, np.int64)
    if readout.names is not None:
        _named(readout.keys, readout.names, groups, bool(kinds), numbers)
    columns, mine = numeric_keys(layout), {name: number for number, name in enumerate(layout.columns, 1)}
    keys = np.array([*columns], np.uint64)
    _enter(numbers, readout.keys, keys, np.array([mine[name] for name in columns.values()], np.int64))
    totals_of = _sums(readout, numbers, len(groups))
    sure = [kind in (FEATURES if readout.names is not None else (NUMERIC,)) for kind in kinds.values()]
    order = [*(k for k, known in enumerate(sure, 1) if known)]
    order += sorted(range(len(kinds) + 1, len(groups)), key=lambda k: groups[k])
    rows = [{"group": groups[k].decode("utf-8", "backslashreplace"), **totals_of[k]} for k in order]
    return rows + ([{"group": None, **totals_of[_UNNAMED]}] if totals_of[_UNNAMED]["features"] else [])


def _enter(into: Numbers, keys: NDArray[np.uint64], some: NDArray[np.uint64], groups: Numbers) -> None:
    """Set the group of those of `keys`, which ascend, that are among `some`."""
    places = np.searchsorted(keys, some)
    there = places < len(keys)
    there[there] = keys[places[there]] == some[there]
    into[places[there]] = groups[there]


def _named(keys: NDArray[np.uint64], names: Names, groups: list[bytes], columns: bool, into: Numbers) -> None:
    """Set the group of each row that has a name; new groups are appended to `groups`."""
    known = {name: number for number, name in enumerate(groups) if number}

    def column(name: bytes) -> bytes:
        """The column of a feature, whose name may contain equals signs; its namespace; empty if none."""
        space, equals, _ = name.partition(b"=")
        while columns and space not in known and len(space) < len(name):
            space += b"=" + name[len(space) + 1 :].partition(b"=")[0]
        return space if columns or equals else b""

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


def _sums(readout: Readout, numbers: Numbers, count: int) -> list[dict[str, Any]]:
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


_FROM_HEADER = ("examples", "progressive_loss", "nonzero", "features_seen")
_IF_KNOWN = ("left_out", "loss_of_later_passes")
"""What the header has only if rows were sampled, or after several passes, in which the progressive loss is
that of the first."""


def anatomy(path: str | Path, header: Header, tensors: Tensors) -> dict[str, Any]:
    """The content of ``thresher info --json`` for a model file or checkpoint. Raises `ModelFileError`."""
    readout = model_file.readout_of(path, header, tensors)
    recipe = dict(header["recipe"])
    recipe.pop("layout")
    stopped = _stopped(path, header)
    return {
        "model": str(path),
        "kind": _kind(header, tensors),
        "version": header["version"],
        **recipe,
        **{name: header.get(name) for name in _FROM_HEADER},
        **{name: header[name] for name in _IF_KNOWN if name in header},
        "features_live": sum(int((block != 0).any(axis=1).sum()) for _, block in readout.blocks()),
        "warm": header.get("warm", False),
        **stopped,
        **_facts_of_data(header, stopped),
        **_columns(header["recipe"]["layout"] or {}, groups_of(readout)),
        **_needs(header),
        **({"solver": header["solver"]} if "solver" in header else {}),
        **(
            {"calibration": of_calibration(readout.head)}
            if recipe.get("calibrate") or readout.head.calibrated()
            else {}
        ),
        "weights": figures_of(readout),
        "by_output": _by_output(readout),
        "nameable": is_nameable(readout),
        "bytes": _sizes(path, readout, tensors),
        "curve": [point.as_dict() for point in model_file.curve_in(header)],
        "warnings": list(header["record"]["warnings"]) if "record" in header else [],
    }


def _needs(header: Header) -> dict[str, Any]:
    needs = [{k: v for k, v in one._asdict().items() if v} for one in model_file.needs_in(header)]
    return {"needs": needs} if needs else {}


def _kind(header: Header, tensors: Tensors) -> str:
    if LANES in header:
        return "checkpoint of many models"
    if "training" in header:
        return "checkpoint"
    return "model" if _state_in(tensors) else "weights only"


def _state_in(tensors: Tensors) -> int:
    return sum(
        a.nbytes
        for name, a in tensors.items()
        if not name.startswith(("weights.", "scale.", "centre.", NAMES))
    )


def _stopped(path: str | Path, header: Header) -> dict[str, Any]:
    if "training" not in header:
        return {}
    with model_file.naming_file(path):
        training = TrainingState.from_dict(header["training"])
        if LANES in header:
            schema.check(header[LANES], {"recipes": list}, LANES)
    return {
        "stopped": {
            **({"models": len(header[LANES]["recipes"])} if LANES in header else {}),
            "pass": training.position.number,
            "passes": training.passes if training.settled else AUTO,
            "replay": training.replay,
            "patience": training.patience,
            "order": training.order,
            "holdout": training.holdout.given.names or training.holdout.share,
            "where": training.data.where,
            "data": training.data.names,
            "best_pass": training.bests[0].number if [*training.bests] == [0] else None,
        }
    }


def _facts_of_data(header: Header, stopped: dict[str, Any]) -> dict[str, Any]:
    layout, record = header["recipe"]["layout"] or {}, header.get("record")
    report = record or (header["training"]["position"]["report"] if stopped else {})
    counts = {name: report[name] for name in ("lines", "examples", "blank", "skipped", "merged") if report}
    return {
        "record": record,
        "lines": counts,
        "layout": {name: value for name, value in layout.items() if name not in ("columns", "kinds")},
    }


def _columns(layout: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    known = {one["group"]: one for one in groups}
    columns = [
        {"column": name, "kind": kind, **{k: v for k, v in known.pop(name, {}).items() if k != "group"}}
        for name, kind in zip(layout.get("columns", []), layout.get("kinds", []), strict=True)
    ]
    return {"columns": columns, "groups": [*known.values()]}


def figures_of(readout: Readout) -> dict[str, Any]:
    """Counts and norms of all weights except the intercepts."""
    positive = negative = 0
    total = squares = largest = 0.0
    for _, block in readout.blocks():
        sizes = np.abs(block)
        positive += int((block > 0).sum())
        negative += int((block < 0).sum())
        total += float(sizes.sum())
        squares += float((sizes * sizes).sum())
        largest = max(largest, float(sizes.max(initial=0.0)))
    return {
        "positive": positive,
        "negative": negative,
        "l1_norm": total,
        "l2_norm": squares**0.5,
        "largest": largest,
        "intercept": readout.bias.tolist(),
        "named": None if readout.names is None else len(readout.names),
        **({"unmet": readout.unmet.tolist()} if readout.unmet.any() else {}),
    }


def _by_output(readout: Readout) -> list[dict[str, Any]]:
    if readout.head.outputs.kind == "one":
        return []
    nonzero, totals = np.zeros(readout.head.count, np.int64), np.zeros(readout.head.count)
    for _, block in readout.blocks():
        nonzero += (block != 0).sum(axis=0)
        totals += np.abs(block).sum(axis=0)
    names = readout.head.names(readout.classes)
    return [
        {"output": names[k], "nonzero": count, "l1_norm": total}
        for k, (count, total) in enumerate(zip(nonzero.tolist(), totals.tolist(), strict=True))
    ]


def _sizes(path: str | Path, readout: Readout, tensors: Tensors) -> dict[str, int]:
    names = sum(array.nbytes for name, array in tensors.items() if name.startswith(NAMES))
    return {
        "file": Path(path).stat().st_size,
        "weights": readout.keys.nbytes + readout.weights.nbytes,
        "names": names,
        "state": _state_in(tensors),
        "to_predict": readout.nbytes,
    }
