"""The contents of a model file: how the model was trained, statistics of its weights, sizes of its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.formats.choosing import features_of
from thresher.engine.index import HashedIndex
from thresher.learning import header as headers
from thresher.learning import modelfile
from thresher.learning.grouping import groups_of
from thresher.learning.modelfile import LANES, NAMES, Tensors
from thresher.learning.readout import Readout
from thresher.learning.recipe import Header
from thresher.learning.record import of_this_version
from thresher.learning.repeating import AUTO
from thresher.learning.shares import renewed

_FROM_HEADER = ("examples", "progressive_loss", "nonzero", "features_seen")
_IF_KNOWN = ("loss_of_later_passes",)
"""What the header has only after several passes, in which the progressive loss is that of the first."""


def anatomy(path: str | Path, header: Header, tensors: Tensors) -> dict[str, Any]:
    """The content of ``thresher info --json`` for a model file or checkpoint. Raises `ModelFileError`."""
    readout = modelfile.readout_of(path, header, tensors)
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
        "features_live": _live(readout),
        "warm": header.get("warm", False),
        **stopped,
        **_facts_of_data(header, stopped),
        **_columns(header["recipe"]["layout"] or {}, groups_of(readout)),
        **({"solver": header["solver"]} if "solver" in header else {}),
        "weights": figures_of(readout),
        "by_output": _by_output(readout),
        "nameable": _is_nameable(readout),
        "bytes": _sizes(path, readout, tensors),
        "curve": [point.as_dict() for point in modelfile.curve_in(header)],
        "warnings": list(header["record"]["warnings"]) if "record" in header else [],
    }


def _kind(header: Header, tensors: Tensors) -> str:
    if LANES in header:
        return "checkpoint of many models"
    if "training" in header:
        return "checkpoint"
    return "model" if _state_in(tensors) else "weights only"


def _state_in(tensors: Tensors) -> int:
    """Bytes of the learning state, including the best pass in a checkpoint."""
    return sum(
        a.nbytes
        for name, a in tensors.items()
        if not name.startswith(("weights.", "scale.", "centre.", NAMES))
    )


def _stopped(path: str | Path, header: Header) -> dict[str, Any]:
    """Where the training of a checkpoint stopped."""
    if "training" not in header:
        return {}
    training = header["training"]
    with modelfile.naming_file(path):
        headers.check_training(training)
        if LANES in header:
            headers.check(header[LANES], {"recipes": "a list"}, LANES)
    names, _, where = training["data"]
    best = training["best"]
    return {
        "stopped": {
            **({"models": len(header[LANES]["recipes"])} if LANES in header else {}),
            "pass": training["position"]["number"],
            "passes": training["passes"] if training.get("settled", True) else AUTO,
            "replay": training.get("replay", 0),
            "patience": training["patience"],
            "order": training["order"],
            "holdout": training["holdout"][1] or renewed(training["holdout"][0]),
            "where": where,
            "data": names,
            "best_pass": None if best is None else best["number"],
        }
    }


def _facts_of_data(header: Header, stopped: dict[str, Any]) -> dict[str, Any]:
    """Line counts and layout of the data."""
    layout, record = header["recipe"]["layout"] or {}, header.get("record")
    record = record and of_this_version(record)
    report = record or (header["training"]["position"]["report"] if stopped else {})
    counts = {name: report[name] for name in ("lines", "examples", "blank", "skipped", "merged") if report}
    return {
        "record": record,
        "lines": counts,
        "layout": {name: value for name, value in layout.items() if name not in ("columns", "kinds")},
    }


def _columns(layout: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Each column with its kind and, if known, its weights; then products and namespaces."""
    known = {one["group"]: one for one in groups}
    columns = [
        {"column": name, "kind": kind, **{k: v for k, v in known.pop(name, {}).items() if k != "group"}}
        for name, kind in zip(layout.get("columns", []), layout.get("kinds", []), strict=True)
    ]
    return {"columns": columns, "groups": [*known.values()]}


def _is_nameable(readout: Readout) -> bool:
    """Whether the features have names that can be read from data."""
    hashed = readout.store.startswith(HashedIndex.NAME)
    return not hashed and readout.layout is not None and features_of(readout.layout) != "ids"


def _live(readout: Readout) -> int:
    """Number of features with a nonzero weight for any output."""
    return sum(int((block != 0).any(axis=1).sum()) for _, block in readout.blocks())


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
    """Number of nonzero weights of each output, if there are several."""
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
    """Bytes of the file and its parts, and of the memory that predicting takes."""
    names = sum(array.nbytes for name, array in tensors.items() if name.startswith(NAMES))
    return {
        "file": Path(path).stat().st_size,
        "weights": readout.keys.nbytes + readout.weights.nbytes,
        "names": names,
        "state": _state_in(tensors),
        "to_predict": readout.nbytes,
    }
