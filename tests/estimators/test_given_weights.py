"""Initial weights: those of one estimator given to another."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

from tests.plain import not_compiled
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

STEADY: dict[str, Any] = {"rule": "sgd", "rate": "constant:0.1", "dtype": "float64", "shuffle": False}
rng = np.random.default_rng(3)
X = (rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.6)).astype(np.float32).astype(float)
TARGETS = {
    "two classes": np.where(X @ [1, -2, 0, 1, 0] > 0, "yes", "no"),
    "three classes": np.argmax(X[:, :3] + rng.normal(size=(60, 3)), axis=1),
    "numbers": X @ [1.0, 0.0, 2.0, 0.0, -1.0],
    "two numbers": np.column_stack([X @ [1.0, 0, 0, 0, 2.0], X[:, 1]]),
}


def estimator(name: str, **options: Any) -> Any:
    kind = SparseOnlineRegressor if "numbers" in name else SparseOnlineClassifier
    return kind(**STEADY, **options)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", TARGETS)
def test_beginning_with_the_weights_of_a_model_is_going_on_with_it(name: str, sparse: bool) -> None:
    """With a constant step size, steps depend only on the weights."""
    y = TARGETS[name]
    with not_compiled():
        first = estimator(name, warm_start=True).fit(X[:40], y[:40])
        coef, intercept = first.coef_, first.intercept_
        given = csr_matrix(coef) if sparse else coef
        second = estimator(name).fit(X[:40], y[:40], coef_init=given, intercept_init=intercept)
        first.fit(X[:40], y[:40])
    assert np.abs(coef).sum() > 0
    np.testing.assert_array_equal(second.coef_, first.coef_)
    np.testing.assert_array_equal(second.intercept_, first.intercept_)
    assert not np.array_equal(second.coef_, coef)


def test_it_begins_as_sgd_classifier_does() -> None:
    y, started = TARGETS["two classes"], np.array([[0.5, 0.0, -1.0, 2.0, 0.0]])
    options: dict[str, Any] = {"alpha": 0.0, "learning_rate": "constant", "eta0": 0.1, "shuffle": False}
    theirs = SGDClassifier(loss="log_loss", penalty=None, max_iter=1, tol=None, **options)
    theirs.fit(X, y, coef_init=started.copy(), intercept_init=np.array([0.25]))
    with not_compiled():
        ours = estimator("two classes", passes=1).fit(X, y, coef_init=started, intercept_init=[0.25])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7)


@pytest.mark.parametrize(
    ("options", "given", "said"),
    [
        ({}, {"coef_init": np.ones((1, 4))}, r"coef_init has shape \(1, 4\), expected \(1, 5\)"),
        ({}, {"coef_init": np.full((1, 5), np.nan)}, "must be finite"),
        ({}, {"intercept_init": [1.0, 2.0]}, "intercept_init has 2 numbers, expected 1"),
        ({"rule": "rda"}, {"coef_init": np.ones((1, 5))}, "rda cannot start from given weights"),
        ({"store": "hashed:8"}, {"coef_init": np.ones((1, 5))}, "a store that is not hashed"),
        ({"fit_intercept": False}, {"intercept_init": [1.0]}, "the model has none"),
    ],
)
def test_what_cannot_be_begun_with_is_refused(options: Any, given: Any, said: str) -> None:
    model = SparseOnlineClassifier(**{**STEADY, "rate": None, **options})
    with not_compiled(), pytest.raises(ValueError, match=said):
        model.fit(X, TARGETS["two classes"], **given)
    assert not hasattr(model, "n_features_in_")


def test_texts_have_no_columns_to_begin_with() -> None:
    with not_compiled(), pytest.raises(ValueError, match="only with columns of a matrix"):
        SparseOnlineClassifier().fit(["a b", "c"], [0, 1], coef_init=np.ones((1, 2)))
