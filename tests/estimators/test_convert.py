"""Weights to and from scikit-learn and to ONNX: the result predicts the same, or conversion is refused."""

import pickle
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import thresher
from thresher.exporting.onnx import KEYS
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor
from thresher.sklearn.convert import from_sklearn, to_sklearn

X, Y = load_iris(return_X_y=True)
X = scale(X)
TWO = Y < 2
WORDS = np.array(["setosa", "versicolor", "virginica"])[Y]
SGD = SGDClassifier(loss="log_loss", random_state=0)


def model_of(loss: str = "logistic", y: Any = WORDS, rule: str = "ft-ftrl") -> SparseOnlineClassifier:
    return SparseOnlineClassifier(rule, loss, l1=0.1, random_state=0).fit(X, y)


def assert_same(one: Any, other: Any, given: Any = X) -> None:
    for method in ("predict_proba", "decision_function", "predict"):
        assert hasattr(one, method) == hasattr(other, method)
        if hasattr(one, method):
            ours, theirs = getattr(one, method)(given), getattr(other, method)(given)
            if ours.dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("estimator", "y", "loss"),
    [
        (SGD, WORDS, "logistic"),
        (SGD, TWO, "logistic"),
        (LogisticRegression(max_iter=500), WORDS, "softmax"),
        (LogisticRegression(), TWO, "logistic"),
        (LinearSVC(), Y, "hinge"),
    ],
    ids=["several", "two", "joint", "logistic", "hinge"],
)
def test_from_a_classifier(estimator: Any, y: Any, loss: str) -> None:
    theirs = estimator.fit(X, y)
    model = from_sklearn(theirs)
    assert model.loss == loss
    assert_same(model, theirs)
    np.testing.assert_allclose(model.coef_, theirs.coef_)
    assert_same(pickle.loads(pickle.dumps(model)), theirs)
    with pytest.raises(ValueError, match="cannot continue learning"):
        model.partial_fit(X[:1], y[:1])


def test_from_a_regressor() -> None:
    for estimator, y in (
        (SGDRegressor(random_state=0), X[:, 0]),
        (Ridge(), X[:, :2]),
        (PoissonRegressor(), Y),
    ):
        theirs = estimator.fit(X, y)
        np.testing.assert_allclose(from_sklearn(theirs).predict(X), theirs.predict(X), rtol=1e-5)
    sparse = SGDClassifier(penalty="l1", alpha=0.1, random_state=0).fit(X, Y).sparsify()
    assert_same(from_sklearn(sparse), sparse)


def test_names_of_columns_are_kept() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = from_sklearn(LogisticRegression(max_iter=500).fit(frame, Y))
    assert list(model.feature_names_in_) == list("abcd")
    back = to_sklearn(model, LogisticRegression())
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))


@pytest.mark.usefixtures("plainly")
def test_to_scikit_learn() -> None:
    assert_same(to_sklearn(model_of(), SGD), model_of())
    assert_same(to_sklearn(model_of(y=TWO), LogisticRegression()), model_of(y=TWO))
    softmax = model_of("softmax", rule="adagrad-fobos")
    assert_same(to_sklearn(softmax, LogisticRegression()), softmax)
    hinge = from_sklearn(LinearSVC().fit(X, Y))
    assert_same(to_sklearn(hinge, SGDClassifier()), hinge)
    numbers = SparseOnlineRegressor(random_state=0).fit(X, X[:, 0])
    for target in (SGDRegressor(), LinearRegression()):
        np.testing.assert_allclose(to_sklearn(numbers, target).predict(X), numbers.predict(X), rtol=1e-5)


def test_what_would_predict_otherwise_is_refused() -> None:
    with pytest.raises(ValueError, match="differ in predict_proba"):
        to_sklearn(model_of(), LogisticRegression())
    with pytest.raises(ValueError, match="has no predict_proba"):
        to_sklearn(model_of(), SGDClassifier(loss="hinge"))
    with pytest.raises(ValueError, match="no loss of hinge predicts"):
        from_sklearn(SGDClassifier(loss="modified_huber", random_state=0).fit(X, Y), loss="hinge")
    with pytest.raises(ValueError, match="not a linear model"):
        from_sklearn(DecisionTreeClassifier().fit(X, Y))
    with pytest.raises(ValueError, match="columns of a matrix"):
        to_sklearn(SparseOnlineClassifier().fit(["a b", "c d"], [0, 1]), SGD)


def run(made: Any, given: Any) -> list[Any]:
    """Outputs for the columns of `given` that have a weight."""
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    used = [int(key) for key in session.get_modelmeta().custom_metadata_map[KEYS].split()]
    found: list[Any] = session.run(None, {"X": csr_array(given)[:, used].toarray().astype(np.float32)})
    return found


@pytest.mark.parametrize("y", [WORDS, Y, TWO], ids=["words", "numbers", "two"])
def test_onnx_of_classes(y: Any) -> None:
    model = model_of(y=y)
    labels, proba = run(thresher.export(model, "onnx"), X)
    np.testing.assert_array_equal(labels > 0 if y is TWO else labels, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("plainly")
def test_onnx_has_what_it_can_hold() -> None:
    wide = csr_array((X.ravel(), np.tile([7, 70, 700, 9_999_999], 150), np.arange(0, 601, 4)), (150, 10**7))
    model = SparseOnlineClassifier(l1=0.1, random_state=0).fit(wide, WORDS)
    made = thresher.export(model, "onnx")
    (keys,) = [prop.value for prop in onnx.load_from_string(made).metadata_props if prop.key == KEYS]
    assert keys == "7 70 700 9999999"
    np.testing.assert_array_equal(run(made, wide)[0], model.predict(wide))
    labels = SparseOnlineClassifier(random_state=0).fit(X, np.column_stack([Y > 0, Y > 1]).astype(int))
    with pytest.raises(ValueError, match="several labels"):
        thresher.export(labels, "onnx")
