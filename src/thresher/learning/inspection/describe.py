"""The contents of a model file: how the model was trained, statistics of its weights, sizes of its parts.

Weights are grouped by column or namespace, using the names of features.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.columns import FEATURES, NUMERIC
from thresher.data.layout import SettledLayout
from thresher.data.stored import read
from thresher.engine.index import HashedIndex
from thresher.learning.files import model_file
from thresher.learning.files.checkpoint import SavedSet, TrainingState
from thresher.learning.files.model_file import LANES, NAMES, Tensors
from thresher.learning.inspection.effects import UNNAMED, Grouping
from thresher.learning.inspection.feature_names import is_nameable
from thresher.learning.model.objective import figures_of as of_calibration
from thresher.learning.model.prediction import LinearPredictor
from thresher.learning.model.recipe import Header
from thresher.learning.training.passes import AUTO


def groups_of(predictor: LinearPredictor) -> list[dict[str, Any]]:
    """For each column or namespace: numbers of nonzero features and weights, and its effect, if it is known.

    Columns come first, in their order, then products and namespaces by name, then all weights without a name,
    whose ``group`` is None. Columns whose weights cannot be told from those without a name are left out.
    Without names and numeric columns the list is empty; in a hashed store there are only effects.
    """
    kinds = (predictor.layout or SettledLayout()).kind_of
    if not (predictor.names or NUMERIC in kinds.values()):
        return []
    groups, hashed = Grouping.of(predictor), predictor.store.startswith(HashedIndex.NAME)
    effects = dict(predictor.record.effects) if predictor.record else {}
    count = len(groups.names)
    features, nonzero = np.zeros((2, count), np.int64)
    own = groups.of_keys(predictor.keys)
    for part, block in predictor.blocks():
        live = (block != 0).sum(axis=1)
        features += np.bincount(own[part][live > 0], minlength=count)
        np.add.at(nonzero, own[part], live)
    sure = [kind in (FEATURES if predictor.names is not None else (NUMERIC,)) for kind in kinds.values()]
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
    predictor = model_file.predictor_of(path, header, tensors)
    recipe, stopped = dict(header["recipe"]), dict[str, Any]()
    if "training" in header:
        with model_file.naming_file(path):
            training = read(TrainingState, header["training"], "training")
        best = training.scored[0].best(training.judge)[0] if [k for k, *_ in training.scored] == [0] else None
        stopped["stopped"] = {
            **({"models": len(read(SavedSet, header[LANES], LANES)["curves"])} if LANES in header else {}),
            "pass": training.position.number,
            "passes": training.passes if training.settled else AUTO,
            **{name: getattr(training, name) for name in ("replay", "patience", "judge", "order")},
            "holdout": str(training.holdout),
            "where": training.data.where,
            "data": training.data.names,
            "best_pass": best,
        }
    layout, record = recipe.pop("layout") or {}, header.get("record")
    groups = {one["group"]: one for one in groups_of(predictor)}
    columns = [
        {"column": name, "kind": kind, **{k: v for k, v in groups.pop(name, {}).items() if k != "group"}}
        for name, kind in zip(layout.get("columns", []), layout.get("kinds", []), strict=True)
    ]
    needs = [{k: v for k, v in one._asdict().items() if v} for one in model_file.needs_in(header)]
    learned = recipe.get("calibrate") or predictor.head.calibrated()
    weights, by_output = _figures_of(predictor)
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
        "features_live": sum(int((block != 0).any(axis=1).sum()) for _, block in predictor.blocks()),
        "warm": header.get("warm", False),
        **stopped,
        "record": record,
        "lines": {k: record[k] for k in ("lines", "examples", "blank", "skipped", "merged") if record},
        "layout": {name: value for name, value in layout.items() if name not in ("columns", "kinds")},
        "columns": columns,
        "groups": [*groups.values()],
        **({"needs": needs} if needs else {}),
        **({"solver": header["solver"]} if "solver" in header else {}),
        **({"calibration": of_calibration(predictor.head)} if learned else {}),
        "weights": weights,
        "by_output": by_output,
        "nameable": is_nameable(predictor),
        "bytes": {
            "file": Path(path).stat().st_size,
            "weights": predictor.keys.nbytes + predictor.weights.nbytes,
            "names": sum(array.nbytes for name, array in tensors.items() if name.startswith(NAMES)),
            "state": state,
            "to_predict": predictor.nbytes,
        },
        "curve": [point.as_dict() for point in model_file.curve_in(header)],
        "warnings": list(record["warnings"]) if record is not None else [],
    }


def _figures_of(predictor: LinearPredictor) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Counts and norms of all weights except the intercepts; of several outputs, also of each."""
    positive = negative = 0
    squares = largest = norm = 0.0
    nonzero, norms = np.zeros(predictor.head.count, np.int64), np.zeros(predictor.head.count)
    for _, block in predictor.blocks():
        sizes = np.abs(block)
        positive += int((block > 0).sum())
        negative += int((block < 0).sum())
        norm += float(sizes.sum())
        squares += float((sizes * sizes).sum())
        largest = max(largest, float(sizes.max(initial=0.0)))
        nonzero += (block != 0).sum(axis=0)
        norms += sizes.sum(axis=0)
    names = [] if predictor.head.outputs.kind == "one" else predictor.head.names(predictor.classes)
    return {
        "positive": positive,
        "negative": negative,
        "l1_norm": norm,
        "l2_norm": squares**0.5,
        "largest": largest,
        "intercept": predictor.bias.tolist(),
        "named": None if predictor.names is None else len(predictor.names),
        **({"unmet": predictor.unmet.tolist()} if predictor.unmet.any() else {}),
    }, [
        {"output": name, "nonzero": int(nonzero[k]), "l1_norm": float(norms[k])}
        for k, name in enumerate(names)
    ]
