"""Linear models as ONNX, which has LinearClassifier and LinearRegressor for them, in ``ai.onnx.ml``.

Its numbers are float32. Columns of numbers are centred and scaled in the graph; NaN is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.columns import NUMERIC
from thresher.data.errors import DataError, NoPackageError
from thresher.data.labels import give_back
from thresher.engine.centring import FAR
from thresher.exporting import description
from thresher.exporting.description import CALIBRATED, IDENTITY, OTHER_TARGETS, SOFTMAX, Link, RawPrediction
from thresher.learning.diagnostics.advice import feature_names

_OPSET, _ML_OPSET, _IR = 17, 3, 8
KEYS = "thresher.feature_keys"
"""Metadata key: the feature keys of the input columns, if they are not those of a matrix"""
COLUMNS = "thresher.columns"
"""Metadata key: the names of the input columns, as a list in JSON"""
_PROBABILITIES = {Link(description.SIGMOID, 1.0): "LOGISTIC", Link(SOFTMAX, 1.0): "SOFTMAX"}
_GIVEN = "X"


def content_of(found: RawPrediction) -> bytes:
    """The model as bytes. `DataError` for what ONNX cannot express, and without the package onnx."""
    import json

    if find_spec("onnx") is None:
        raise NoPackageError("ONNX", "onnx")
    _check(found)
    (model,) = found.models
    keys = [one.key for one in found.columns] or model.keys.tolist()
    weights, none = dict(zip(model.keys.tolist(), model.weights, strict=True)), np.zeros(len(found.names))
    table = np.array([weights.get(key, none) for key in keys], float).reshape(len(keys), len(none)).T
    classes: list[Any] = [*found.labels]
    if not found.layout.classes:
        classes = [int(float(one)) for one in classes]
    elif found.head.outputs.most:  # as `predict` gives them
        classes = give_back(tuple(classes)).tolist()
    told = {KEYS: " ".join(map(str, keys))}
    if found.columns:
        told = {COLUMNS: json.dumps([one.name for one in found.columns])}
    prepared = _preparing_nodes(found, keys)
    return bytes(_proto(found, table, classes if found.labels else None, told, *prepared).SerializeToString())


def _check(found: RawPrediction) -> None:
    """`DataError` for what ONNX cannot express.

    So are columns so far from zero that float32 cannot tell their values apart. One counts if that could
    change a probability by a hundredth, the mean of a count by one percent, or a number by one percent of 1
    or of the intercept.
    """
    unfit, link = next((one for one in found.columns if one.kind != NUMERIC), None), found.link
    refused = (
        (unfit, f"column '{unfit.name}', which is {unfit.kind}" if unfit else ""),
        (found.products, "products of columns"),
        (found.store is not None, "a hashed store"),
        (found.kind == "labels", "several labels of a row"),
        (len(found.models) > 1, "an ensemble, only one of its models"),
    )
    if why := next((why for holds, why in refused if holds), ""):
        raise DataError(f"ONNX cannot express {why}: {OTHER_TARGETS}")
    (model,) = found.models
    heaviest = dict(zip(model.keys.tolist(), abs(model.weights).max(axis=1, initial=0).tolist(), strict=True))
    scale = max(link.by, 1.0) if link.name in (CALIBRATED, SOFTMAX) else 1.0
    least = 0.01 * max(1.0, float(abs(model.intercepts).max())) if link.name == IDENTITY else 0.01
    for key, mean in model.means.items():
        step = float(np.spacing(np.float32(abs(mean)))) * (abs(mean) >= FAR)
        error = scale * heaviest.get(key, 0.0) * step / 2 / model.divisors.get(key, 1.0)
        if error > least:
            (name,) = feature_names([key], found.layout, found.known)
            wrong = f"float32, in which ONNX computes, makes errors of {error:.2g} in margins"
            remedy = "subtract a constant from it before training, or export to C or JavaScript"
            raise DataError(f"{name} lies near {mean:.6g}, where {wrong}: {remedy}")


def _preparing_nodes(found: RawPrediction, keys: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """Nodes that make ``ready`` of X, centred and scaled, with 0 for what is missing; and their tensors."""
    import onnx

    (model,) = found.models
    means, by = model.means, model.divisors
    if not found.columns and not by and not means:
        return [], []
    numbers = {"means": [means.get(key, 0.0) for key in keys], "divisors": [by.get(key, 1.0) for key in keys]}
    tensors = [onnx.numpy_helper.from_array(np.array(v, np.float64), name) for name, v in numbers.items()]
    tensors.append(onnx.numpy_helper.from_array(np.zeros(1, np.float32), "zero"))
    node, absent = onnx.helper.make_node, "present" if not found.missing_is_mean else _GIVEN
    nodes = [node("IsNaN", [_GIVEN], ["missing"])]
    nodes += [] if found.missing_is_mean else [node("Where", ["missing", "zero", _GIVEN], ["present"])]
    nodes += [
        node("Cast", [absent], ["wide"], to=onnx.TensorProto.DOUBLE),
        node("Sub", ["wide", "means"], ["centred"]),
        node("Div", ["centred", "divisors"], ["scaled"]),
        node("Cast", ["scaled"], ["single"], to=onnx.TensorProto.FLOAT),
        node("Where", ["missing", "zero", "single"], ["ready"])
        if found.missing_is_mean
        else node("Identity", ["single"], ["ready"]),
    ]
    return nodes, tensors


def _proto(
    found: RawPrediction,
    table: NDArray[Any],
    classes: Sequence[Any] | None,
    told: dict[str, str],
    nodes: Sequence[Any],
    tensors: Sequence[Any],
) -> Any:
    """An ``onnx.ModelProto`` with the input ``X`` ``(n, columns)``, which `nodes` turn into ``ready``.

    `table` has the weights ``(outputs, columns)``; `classes` is None if numbers are predicted.
    Outputs: ``label`` and ``probabilities`` (``scores`` if the loss has none) for classes, else ``variable``.
    """
    import onnx

    if not table.shape[1]:
        raise DataError("no feature has a weight: there are no columns to export")
    make, info, given = (
        onnx.helper.make_node,
        onnx.helper.make_tensor_value_info,
        "ready" if nodes else _GIVEN,
    )
    head, link, bias = found.head, found.link, found.models[0].intercepts
    no_link = f"ONNX has no link function for the loss {parts.part_name(type(head.loss))!r}"
    columns, number, domain = table.shape[1], onnx.TensorProto.FLOAT, "ai.onnx.ml"
    if classes is None:
        if link.name not in (IDENTITY, description.EXP):
            raise DataError(no_link)
        exponential = link.name == description.EXP
        bias = bias + link.by if exponential else bias
        numbers = {"coefficients": table.ravel().tolist(), "intercepts": bias.tolist()}
        to = "margin" if exponential else "variable"
        made = [make("LinearRegressor", [given], [to], domain=domain, targets=len(bias), **numbers)]
        made += [make("Exp", ["margin"], ["variable"])] if exponential else []
        outputs = [info("variable", number, [None, len(bias)])]
    else:
        if link.name in (CALIBRATED, SOFTMAX):
            table, bias = link.by * table, link.by * bias + link.plus
            link = Link(description.SIGMOID if link.name == CALIBRATED else SOFTMAX, 1.0)
        transform = "NONE"
        if head.has_probabilities:
            if link not in _PROBABILITIES:
                raise DataError(no_link)
            # the difference of two margins of softmax
            transform = "LOGISTIC" if len(bias) == 1 else _PROBABILITIES[link]
        if len(bias) == 1:
            table, bias = np.concatenate([-table, table]), np.concatenate([-bias, bias])
        names, kind = {"classlabels_strings": classes}, onnx.TensorProto.STRING
        if not all(isinstance(one, str) for one in classes):
            if not all(isinstance(one, bool | int | float) and int(one) == one for one in classes):
                raise DataError(f"ONNX needs whole numbers or text as classes, not {classes}")
            names, kind = {"classlabels_ints": [*map(int, classes)]}, onnx.TensorProto.INT64
        name = "probabilities" if head.has_probabilities else "scores"
        shared = transform == "LOGISTIC" and len(bias) > 2
        scored = "each" if shared else name
        numbers = {"coefficients": table.ravel().tolist(), "intercepts": bias.tolist()}
        more = {"post_transform": transform, **numbers, **names}
        made = [make("LinearClassifier", [given], ["label", scored], domain=domain, **more)]
        made += [make("Normalizer", [scored], [name], domain=domain, norm="L1")] if shared else []
        outputs = [info("label", kind, [None]), info(name, number, [None, len(bias)])]
    shape = info(_GIVEN, number, [None, columns])
    graph = onnx.helper.make_graph([*nodes, *made], "thresher", [shape], outputs, [*tensors])
    opsets = [onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid(domain, _ML_OPSET)]
    model = onnx.helper.make_model(graph, producer_name="thresher", opset_imports=opsets, ir_version=_IR)
    onnx.helper.set_model_props(model, told)
    onnx.checker.check_model(model)
    return model
