"""Convert linear models from and to scikit-learn.

Every conversion is verified on a few examples: a model that would predict differently is an error.

Whether LogisticRegression or SGDClassifier computes the probabilities of a loss from a margin is found by
comparing both models on the features with the largest weights. So there is no table of names that could be
wrong.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from thresher.data.inputs import arrays
from thresher.learning.model import agreement, objective
from thresher.sklearn.classifier import SparseOnlineClassifier
from thresher.sklearn.estimator import as_predictor
from thresher.sklearn.regressor import SparseOnlineRegressor

_PROBED = 8
"""Number of features in the examples that verify a conversion"""
_METHODS = ("decision_function", "predict_proba", "predict")


def from_sklearn(estimator: Any, loss: object = None) -> SparseOnlineClassifier | SparseOnlineRegressor:
    """Convert a fitted linear model: SGDClassifier, LogisticRegression, SGDRegressor, Ridge ...

    The result can predict and be saved, but has no state to continue learning from.

    Args:
        estimator: the fitted scikit-learn model.
        loss: determines the link. None: whichever of ``logistic``, ``softmax`` and ``modified-huber`` gives
            the same probabilities, ``hinge`` without probabilities, ``squared`` or ``poisson`` for numbers.

    Raises ValueError if no loss gives the same predictions.
    """
    check_is_fitted(estimator)
    if not hasattr(estimator, "coef_"):
        raise ValueError(f"{type(estimator).__name__} has no coef_: it is not a linear model")
    if issparse(estimator.coef_) and estimator.coef_.ndim == 1:  # its predict does not accept sparse X
        estimator = copy(estimator).densify()
    losses = [loss] if loss is not None else ["squared", "poisson"]
    if loss is None and is_classifier(estimator):
        losses = (
            ["logistic", "softmax", "modified-huber"] if hasattr(estimator, "predict_proba") else ["hinge"]
        )
    found: ValueError | None = None
    for candidate in losses:
        model = _with_weights(estimator, candidate)
        try:
            _check_same(estimator, model)
        except ValueError as error:
            found = error
        else:
            return model
    raise ValueError(f"no loss of {', '.join(map(str, losses))} predicts like {estimator!r}: {found}")


def to_sklearn(model: Any, target: Any) -> Any:
    """A fitted copy of `target` (SGDClassifier, LogisticRegression, Ridge ...) with these weights.

    Raises ValueError if it would predict differently, probabilities included. LogisticRegression is for two
    classes or ``softmax``, ``SGDClassifier(loss="log_loss")`` for two classes or one against the rest.
    """
    check_is_fitted(model)
    if not model._weighs_columns():
        raise ValueError("in scikit-learn only columns of a matrix can have weights: see feature_keys_")
    fitted = clone(target)
    coef = model.coef_
    if issparse(coef) and not hasattr(fitted, "sparsify"):  # the target needs dense weights
        one = not is_classifier(model) and not model._targets
        coef = coef.toarray()[0] if one else coef.toarray()
    fitted.coef_, fitted.intercept_ = coef, model.intercept_
    for name in ("classes_", "feature_names_in_", "n_features_in_", "n_iter_", "t_"):
        if hasattr(model, name):
            setattr(fitted, name, getattr(model, name))
    _check_same(model, fitted)
    return fitted


def _with_weights(estimator: Any, loss: Any) -> SparseOnlineClassifier | SparseOnlineRegressor:
    classifies = is_classifier(estimator)
    model = SparseOnlineClassifier(loss=loss) if classifies else SparseOnlineRegressor(loss=loss)
    if not classifies:
        none = csr_matrix((1, np.shape(estimator.coef_)[-1]))
        model._targets = estimator.predict(_as_fitted(estimator, none)).shape[1:]
    elif isinstance(estimator.classes_, list) or np.ndim(estimator.classes_) != 1:
        raise ValueError("expected a model for classes, not for several outputs")
    else:
        model._note_classes(np.asarray(estimator.classes_), None, True)
    coef = csr_matrix(
        np.atleast_2d(estimator.coef_) if isinstance(estimator.coef_, np.ndarray) else estimator.coef_
    )
    bias = np.broadcast_to(np.asarray(estimator.intercept_, np.float64).ravel(), coef.shape[0]).copy()
    model._kind, model._sparse, model.n_features_in_ = arrays.MATRIX, None, coef.shape[1]
    model._model = as_predictor(objective.Objective(model.loss, model._outputs()), model._store(), coef, bias)
    model._model.numbering = agreement.Numbering(0, coef.shape[1] - 1, True)
    for name in ("feature_names_in_", "n_iter_"):
        if hasattr(estimator, name):
            setattr(model, name, getattr(estimator, name))
    return model


def _check_same(one: Any, other: object) -> None:
    """ValueError if two models predict differently from their heaviest features."""
    coef = csr_matrix(one.coef_)
    heavy = np.unique(coef.indices[np.argsort(-np.abs(coef.data))[:_PROBED]])
    rows = np.arange(len(heavy))
    X = csr_matrix((np.ones(len(heavy)), (rows, heavy)), shape=(len(heavy) + 1, coef.shape[1]))
    for method in _METHODS:
        lacking = [type(model).__name__ for model in (one, other) if not hasattr(model, method)]
        if len(lacking) == 1:
            raise ValueError(f"{lacking[0]} with this loss has no {method}, but the other model has one")
        if lacking:
            continue
        ours, theirs = (getattr(model, method)(_as_fitted(model, X)) for model in (one, other))
        close = partial(np.allclose, rtol=1e-5, atol=1e-6) if ours.dtype.kind == "f" else np.array_equal
        if ours.shape != theirs.shape or not close(ours, theirs):
            raise ValueError(f"{type(one).__name__} and {type(other).__name__} differ in {method}")


def _as_fitted(model: object, X: Any) -> Any:
    if not hasattr(model, "feature_names_in_"):
        return X
    import pandas as pd

    return pd.DataFrame(X.toarray(), columns=model.feature_names_in_)
