"""Models as ONNX: ``ai.onnx.ml`` LinearClassifier and LinearRegressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from thresher.learning.wholefile import whole_file

_OPSET, _ML_OPSET, _IR = 17, 3, 8
COLUMNS = "thresher.feature_keys"
"""Metadata key: the feature keys of the input columns, if they are not those of X"""


def to_onnx(model: Any, path: Any = None, *, columns: str = "all") -> Any:
    """Convert a fitted estimator to an ``onnx.ModelProto``, also written to `path` if given.

    Its input ``X`` is float32 ``(n, d)``. With `columns` ``used`` it has only the columns of
    ``feature_keys_``, in that order, and its metadata list them; this is required for tables, dictionaries
    and texts, whose keys are hashes of names (docs/sklearn.md shows how to compute them). Outputs: ``label``
    and ``probabilities`` (``scores`` if the loss has none) for a classifier, ``variable`` for a regressor.

    Raises ValueError for several labels at once, for a link ONNX does not have, for classes that are neither
    whole numbers nor text, and if no column is ``used``.
    """
    import onnx

    check_is_fitted(model)
    if columns not in ("all", "used"):
        raise ValueError(f"columns must be 'all' or 'used', not {columns!r}")
    if columns == "all" and not model._weighs_columns():
        raise ValueError(
            "features that are not columns of a matrix have keys instead of positions: use columns='used'"
        )
    keys = model.feature_keys_
    coef = csr_matrix(model.coef_)
    if columns == "used" and model._weighs_columns():
        coef = coef[:, keys.astype(np.int64)]
    if not coef.shape[1]:
        raise ValueError("no feature has a weight: there are no columns to export")
    table, bias = coef.toarray(), np.asarray(model.intercept_)
    nodes, outputs = (_classifier if is_classifier(model) else _regressor)(model, table, bias)
    given = onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, table.shape[1]])
    graph = onnx.helper.make_graph(nodes, "thresher", [given], outputs)
    opsets = [onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    made = onnx.helper.make_model(graph, producer_name="thresher", opset_imports=opsets, ir_version=_IR)
    if columns == "used":
        onnx.helper.set_model_props(made, {COLUMNS: " ".join(map(str, keys.tolist()))})
    onnx.checker.check_model(made)
    if path is not None:
        with whole_file(path, "wb") as file:
            onnx.save_model(made, file)
    return made


def _ml_node(kind: str, outputs: list[str], **attributes: Any) -> Any:
    import onnx

    return onnx.helper.make_node(kind, ["X"], outputs, domain="ai.onnx.ml", **attributes)


def _classifier(model: Any, table: NDArray[Any], bias: NDArray[Any]) -> tuple[list[Any], list[Any]]:
    import onnx

    if model._multilabel:
        raise ValueError("ONNX's LinearClassifier predicts one class per example, not several labels")
    if len(bias) == 1:
        table, bias = np.concatenate([-table, table]), np.concatenate([-bias, bias])
    names, kind = _names(model.classes_)
    transform, name = _transform(model), "probabilities" if hasattr(model, "predict_proba") else "scores"
    shared = transform == "LOGISTIC" and len(bias) > 2
    scored = "each" if shared else name
    numbers = {"coefficients": table.ravel().tolist(), "intercepts": bias.tolist()}
    nodes = [_ml_node("LinearClassifier", ["label", scored], post_transform=transform, **numbers, **names)]
    if shared:
        made = onnx.helper.make_node("Normalizer", [scored], [name], domain="ai.onnx.ml", norm="L1")
        nodes.append(made)
    info = onnx.helper.make_tensor_value_info
    return nodes, [info("label", kind, [None]), info(name, onnx.TensorProto.FLOAT, [None, len(bias)])]


def _names(classes: NDArray[Any]) -> tuple[dict[str, Any], int]:
    """Attributes that name the classes, and the type of the labels."""
    import onnx

    listed = classes.tolist()
    if all(isinstance(name, str) for name in listed):
        return {"classlabels_strings": listed}, onnx.TensorProto.STRING
    if all(isinstance(name, bool | int | float) and int(name) == name for name in listed):
        return {"classlabels_ints": [int(name) for name in listed]}, onnx.TensorProto.INT64
    raise ValueError(f"ONNX needs whole numbers or text as classes, not {listed}")


def _transform(model: Any) -> str:
    """ONNX's name for the link from margins to probabilities, found by comparing values."""
    if not hasattr(model, "predict_proba"):
        return "NONE"
    head = model._model.head
    margins = np.array([[0.5, -1.0, 2.0][: head.count] + [0.0] * (head.count - 3)])
    found = head.respond(margins[:, 0] if head.count == 1 else margins, "probability", 0.0)
    forms = {"LOGISTIC": 1 / (1 + np.exp(-margins)), "SOFTMAX": np.exp(margins) / np.exp(margins).sum()}
    for name, expected in forms.items():
        if np.allclose(found.ravel(), expected.ravel()):
            return name if head.count != 2 else "LOGISTIC"  # with two classes there is one margin
    raise ValueError(f"ONNX has no link function for the loss {model.loss!r}")


def _regressor(model: Any, table: NDArray[Any], bias: NDArray[Any]) -> tuple[list[Any], list[Any]]:
    import onnx

    head = model._model.head
    margins = np.arange(3.0) if head.count == 1 else np.tile(np.arange(3.0)[:, np.newaxis], head.count)
    means = head.respond(margins, "label", 0.0).reshape(3, -1)[:, 0]
    exponential = not np.allclose(means, np.arange(3.0))
    if exponential:
        if not np.allclose(means[1:] / means[:-1], np.e):
            raise ValueError(f"ONNX has no link function for the loss {model.loss!r}")
        bias = bias + np.log(means[0])
    numbers = {"coefficients": table.ravel().tolist(), "intercepts": bias.tolist(), "targets": len(bias)}
    nodes = [_ml_node("LinearRegressor", ["margin" if exponential else "variable"], **numbers)]
    if exponential:
        nodes.append(onnx.helper.make_node("Exp", ["margin"], ["variable"]))
    info = onnx.helper.make_tensor_value_info
    return nodes, [info("variable", onnx.TensorProto.FLOAT, [None, len(bias)])]
