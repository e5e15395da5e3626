"""A model whose weights are all zero is valid: zeros of the right shape everywhere."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor

import thresher
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor
from thresher.sklearn.convert import from_sklearn, to_sklearn

pytestmark = pytest.mark.usefixtures("plainly")

X = np.random.default_rng(0).normal(size=(12, 4))
TWO = (X[:, 0] > 0).astype(int)
THREE = np.arange(12) % 3
LABELS = np.column_stack([TWO, 1 - TWO, THREE > 0]).astype(int)
TEXTS, ROWS = ["a b", "c"] * 6, [{"a": 1.0, "b": "x"}] * 12
TABLE = pd.DataFrame({"a": ["x", "y"] * 6, "b": X[:, 0]})
SOFTMAX = {"rule": "adagrad-fobos", "loss": "softmax"}
Given = tuple[type, dict[str, Any], Any, Any, tuple[int, ...], int]
CASES: dict[str, Given] = {
    "two": (SparseOnlineClassifier, {}, X, TWO, (1, 4), 1),
    "two, averaged": (SparseOnlineClassifier, {"average": True}, X, TWO, (1, 4), 1),
    "two, sparse": (SparseOnlineClassifier, {}, csr_matrix(X), TWO, (1, 4), 1),
    "two, hashed": (SparseOnlineClassifier, {"store": "hashed:8"}, X, TWO, (1, 0), 1),
    "two, jointly": (SparseOnlineClassifier, SOFTMAX, X, TWO, (1, 4), 1),
    "classes": (SparseOnlineClassifier, {}, X, THREE, (3, 4), 3),
    "classes, jointly": (SparseOnlineClassifier, SOFTMAX, X, THREE, (3, 4), 3),
    "labels": (SparseOnlineClassifier, {}, X, LABELS, (3, 4), 3),
    "texts": (SparseOnlineClassifier, {}, TEXTS, TWO, (1, 0), 1),
    "dictionaries": (SparseOnlineClassifier, {}, ROWS, THREE, (3, 0), 3),
    "table": (SparseOnlineClassifier, {}, TABLE, THREE, (3, 0), 3),
    "number": (SparseOnlineRegressor, {}, X, X[:, 0], (4,), 1),
    "column": (SparseOnlineRegressor, {}, X, X[:, :1], (1, 4), 1),
    "numbers": (SparseOnlineRegressor, {}, X, X[:, :2], (2, 4), 2),
    "number of a text": (SparseOnlineRegressor, {}, TEXTS, X[:, 0], (0,), 1),
    "numbers of a table": (SparseOnlineRegressor, {}, TABLE, X[:, :2], (2, 0), 2),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def fitted(case: Given) -> Any:
    kind, options, given, y = case[:4]
    return kind(l1=1e6, random_state=0, passes=1, **options).fit(given, y)


def assert_zeros(model: Any, shape: tuple[int, ...], outputs: int) -> None:
    coef = model.coef_
    assert coef.shape == (np.atleast_2d(np.zeros(shape)).shape if issparse(coef) else shape)
    assert abs(coef).sum() == 0
    assert model.intercept_.shape == (outputs,)
    assert model.feature_keys_.shape == (0,)


@cases
def test_weights_are_zeros_of_the_right_shape(case: Given) -> None:
    model = fitted(case)
    again = pickle.loads(pickle.dumps(model))
    for found in (model, again, again.sparsify(), again.densify()):
        assert_zeros(found, *case[4:])
    assert_zeros(clone(model).fit(*case[2:4]), *case[4:])
    np.testing.assert_array_equal(again.predict(case[2]), model.predict(case[2]))


@cases
def test_no_column_is_named_or_selected(case: Given) -> None:
    model, given = fitted(case), case[2]
    if model._model.store.startswith("hashed"):
        with pytest.raises(ValueError, match="weights of a hashed store have no names"):
            model.get_feature_names_out()
        return
    for found in (model, pickle.loads(pickle.dumps(model)).sparsify()):
        assert found.get_feature_names_out().tolist() == []
    if case[4][-1] == 0:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # newer versions warn that nothing was selected
        assert SelectFromModel(model, prefit=True, threshold=1e-12).transform(given).shape == (12, 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_conversion_and_back(sparse: bool) -> None:
    for name, targets in {
        "two": (SGDClassifier(loss="log_loss"), LogisticRegression()),
        "classes": (SGDClassifier(loss="log_loss"),),
        "classes, jointly": (LogisticRegression(),),
        "number": (SGDRegressor(), LinearRegression()),
        "column": (LinearRegression(),),
        "numbers": (LinearRegression(),),
    }.items():
        model = fitted(CASES[name])
        model = model.sparsify() if sparse else model
        for target in targets:
            theirs = to_sklearn(model, target)
            np.testing.assert_allclose(theirs.predict(X), model.predict(X))
            assert_zeros(from_sklearn(theirs), *CASES[name][4:])


def test_onnx() -> None:
    with pytest.raises(ValueError, match="no feature has a weight"):
        thresher.export(fitted(CASES["two"]), "onnx")
