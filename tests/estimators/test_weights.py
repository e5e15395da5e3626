"""Weights of estimators: of centred columns, for raw values; and where all are zero."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor

import thresher
from thresher.learning.diagnostics.findings import TroubleWarning
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor
from thresher.sklearn.convert import from_sklearn, to_sklearn

pytestmark = pytest.mark.usefixtures("plainly")
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame({"a": RNG.normal(50, 1, 90), "b": RNG.normal(-9, 1, 90)})
Y = (FRAME.a.to_numpy() > 50) * 1
GAPPED = FRAME.assign(a=FRAME.a.where(np.arange(90) % 6 != 2))
OPTIONS: Any = {"centre": True, "dtype": "float64", "shuffle": False, "passes": 1}
ASKED = pd.DataFrame({"a": [None, GAPPED.a.mean(), 0.0], "b": [-9.0] * 3}, dtype=float)


def means_the_mean(answers: Any) -> None:
    assert answers[0] == pytest.approx(answers[1], abs=1e-4)
    assert answers[2] != pytest.approx(answers[0], abs=1e-2)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_a_missing_value_means_the_mean(kind: Any, tmp_path: Path) -> None:
    fitted = SparseOnlineClassifier(**OPTIONS).fit(kind(GAPPED), Y)
    table = thresher.train((GAPPED, Y), centre=True, passes=1, dtype="float64")
    found, expected = fitted.model_.predictor().means, table.predictor().means
    assert sorted(found.means) == sorted(expected.means)
    means_the_mean(fitted.decision_function(kind(ASKED)))
    answers = fitted.decision_function(kind(GAPPED))
    assert answers == pytest.approx(table.predict(GAPPED), abs=1e-5)
    fitted.model_.save(tmp_path / "model")
    with pytest.warns(TroubleWarning, match="by-position"):
        means_the_mean(thresher.load(tmp_path / "model").predict(kind(ASKED)))
    plain = FRAME.to_numpy() @ fitted.coef_.ravel() + fitted.intercept_
    assert plain == pytest.approx(fitted.decision_function(kind(FRAME)), abs=1e-4)


def test_a_missing_value_of_a_part_means_the_mean_of_all_so_far() -> None:
    parts, whole = SparseOnlineRegressor(**OPTIONS), SparseOnlineRegressor(**OPTIONS).fit(GAPPED, Y)
    for lo in range(0, 90, 30):
        parts.partial_fit(GAPPED[lo : lo + 30], Y[lo : lo + 30])
    np.testing.assert_array_equal(parts.predict(GAPPED), whole.predict(GAPPED))
    means_the_mean(parts.predict(ASKED))


def test_zeros_are_no_missing_values() -> None:
    X = FRAME.to_numpy().copy()
    X[::20, 0] = 0.0
    dense = SparseOnlineClassifier(**OPTIONS).fit(X, Y)
    stored = sparse.csr_array((X.ravel(), np.tile([0, 1], 90), np.arange(0, 181, 2)), shape=X.shape)
    again = SparseOnlineClassifier(**OPTIONS).fit(stored, Y)
    np.testing.assert_array_equal(again.decision_function(stored), dense.decision_function(X))
    assert dense.model_.predictor().means.means[0] == pytest.approx(X[:, 0].mean())


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_array, pd.DataFrame])
def test_large_numbers_keep_their_digits(kind: Any) -> None:
    X, far = FRAME.to_numpy(), FRAME.to_numpy() + np.array([2.0**31, 0.0])
    near, distant = (SparseOnlineClassifier(**OPTIONS).fit(one, Y) for one in (X, kind(far)))
    answers = distant.decision_function(kind(far))
    assert answers == pytest.approx(near.decision_function(X), abs=1e-4)
    assert far @ distant.coef_.ravel() + distant.intercept_ == pytest.approx(answers, abs=1e-4)
    rows = SparseOnlineClassifier(**OPTIONS)
    for k in range(90):
        rows.partial_fit(far[k : k + 1], Y[k : k + 1], classes=[0, 1])
    np.testing.assert_array_equal(rows.decision_function(far), distant.decision_function(kind(far)))


@pytest.mark.parametrize(("mean", "spread"), [(1.6e12, 1e10), (1.6e15, 1e12), (1.6e18, 1e16), (1e30, 1e28)])
def test_weights_and_intercept_are_right_however_far_a_column_is(mean: float, spread: float) -> None:
    """No rest is taken for a feature, and no weight is too small beside the intercept."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(3, 1, 400), rng.normal(mean, spread, 400)])
    y = (X[:, 0] - 3 + (X[:, 1] - mean) / spread + rng.normal(size=400) > 0) * 1.0
    model = thresher.train((X, y), centre=True, passes=1)
    predictor = model.predictor()
    assert predictor.keys.tolist() == [0, 1]
    plain = X @ predictor.weights.astype(float) + model.intercept
    assert plain == pytest.approx(model.predict(X), abs=1e-4)
    assert predictor.intercept == pytest.approx(model.intercept, rel=1e-12)


def test_weights_to_start_from_are_for_values_as_they_are() -> None:
    X = np.random.default_rng(2).normal(5, 1, (60, 2))
    y = (X[:, 0] > 5) * 1
    start: Any = {"coef_init": np.array([[2.0, 0.0]]), "intercept_init": [-10.0]}
    model = SparseOnlineClassifier(random_state=0).fit(X, y, **start)
    assert not model.model_.recipe.centre
    assert model.fit(X, y).model_.recipe.centre == SparseOnlineClassifier().fit(X, y).model_.recipe.centre


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
    "two, sparse": (SparseOnlineClassifier, {}, csr_matrix(X), TWO, (1, 4), 1),
    "two, hashed": (SparseOnlineClassifier, {"store": "hashed:8"}, X, TWO, (1, 0), 1),
    "two, jointly": (SparseOnlineClassifier, SOFTMAX, X, TWO, (1, 4), 1),
    "classes": (SparseOnlineClassifier, {}, X, THREE, (3, 4), 3),
    "classes, jointly": (SparseOnlineClassifier, SOFTMAX, X, THREE, (3, 4), 3),
    "labels": (SparseOnlineClassifier, {}, X, LABELS, (3, 4), 3),
    "texts": (SparseOnlineClassifier, {}, TEXTS, TWO, (1, 0), 1),
    "dictionaries": (SparseOnlineClassifier, {}, ROWS, THREE, (3, 0), 3),
    "number": (SparseOnlineRegressor, {}, X, X[:, 0], (4,), 1),
    "column": (SparseOnlineRegressor, {}, X, X[:, :1], (1, 4), 1),
    "numbers": (SparseOnlineRegressor, {}, X, X[:, :2], (2, 4), 2),
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
