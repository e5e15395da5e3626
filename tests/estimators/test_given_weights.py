"""Estimators with initial weights, signs, offsets and groups of rows: the models of `thresher.train`."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold

import thresher
from tests.plain import not_compiled
from thresher.data.inputs.any_data import groups_of
from thresher.sklearn import (
    SparseOnlineClassifier,
    SparseOnlineRegressor,
)
from thresher.sklearn.row_order import held_out

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
        ({}, {"coef_init": np.full((1, 5), np.nan)}, "not finite in float64: feature 0"),
        ({}, {"intercept_init": [1.0, 2.0]}, "intercept_init has 2 numbers, expected 1"),
        ({"rule": "rda"}, {"coef_init": np.ones((1, 5))}, "rda cannot start from given weights"),
        ({"store": "hashed:8"}, {"coef_init": np.ones((1, 5))}, "and no hashed store"),
        ({"fit_intercept": False}, {"intercept_init": [1.0]}, "the model has none"),
    ],
)
def test_what_cannot_be_begun_with_is_refused(options: Any, given: Any, said: str) -> None:
    model = SparseOnlineClassifier(**{**STEADY, "rate": None, **options})
    with not_compiled(), pytest.raises(ValueError, match=said):
        model.fit(X, TARGETS["two classes"], **given)
    assert not hasattr(model, "n_features_in_")


def test_texts_have_no_columns_to_begin_with() -> None:
    with not_compiled(), pytest.raises(ValueError, match="is for columns of a matrix"):
        SparseOnlineClassifier().fit(["a b", "c"], [0, 1], coef_init=np.ones((1, 2)))


chance = np.random.default_rng(5)
SIGNED = chance.normal(size=(150, 12))
Y = SIGNED[:, 0] - SIGNED[:, 1] + 0.3 * SIGNED[:, 10] + 0.1 * chance.normal(size=150)
NAMED = pd.DataFrame(SIGNED, columns=[f"c{place}" for place in range(12)])
KINDS = NAMED.assign(kind=np.where(SIGNED[:, 2] > 0, "a", "b"))
IN_ORDER: dict[str, Any] = {"shuffle": False, "passes": 1}


@pytest.mark.parametrize(
    ("given", "signs", "same"),
    [
        (SIGNED, {"nonnegative": np.array([1, 10])}, (SIGNED, {"nonnegative": [1, 10]})),
        (NAMED, {"nonpositive": "c1*"}, (SIGNED, {"nonpositive": "1,10,11"})),
        (KINDS, {"nonnegative": "c1", "nonpositive": "c0"}, None),
        (SIGNED, {"nonnegative": np.int64(1)}, (SIGNED, {"nonnegative": 1})),
    ],
)
@pytest.mark.usefixtures("plainly")
def test_weights_are_those_of_train(given: Any, signs: Any, same: Any) -> None:
    fitted = clone(SparseOnlineRegressor(**IN_ORDER, **signs)).fit(given, Y)
    data, options = same or (given, signs)
    model = thresher.train(data, Y, "squared", passes=1, **options)
    assert fitted.predict(given).tolist() == model.predict(data).tolist()
    free = SparseOnlineRegressor(**IN_ORDER).fit(given, Y)
    assert not np.array_equal(fitted.predict(given), free.predict(given))


@pytest.mark.usefixtures("plainly")
def test_signs_are_of_columns_and_last() -> None:
    with pytest.raises(ValueError, match="nonnegative: no column is called '12'; there are 12 columns"):
        SparseOnlineClassifier(nonnegative=12).fit(SIGNED, Y > 0)
    with pytest.raises(ValueError, match=r"no column is called 'c99'; did you mean 'c9'\?"):
        SparseOnlineClassifier(nonpositive="c99").fit(NAMED, Y > 0)
    model = SparseOnlineRegressor(nonnegative=1).partial_fit(SIGNED, Y)
    with pytest.raises(ValueError, match="nonnegative is None, but was 1"):
        model.set_params(nonnegative=None).partial_fit(SIGNED, Y)


@pytest.mark.usefixtures("plainly")
def test_offsets_of_a_column_are_added_to_margins() -> None:
    counts = chance.poisson(np.exp(0.5 * SIGNED[:, 0] + SIGNED[:, 3]))
    fitted = SparseOnlineRegressor(loss="poisson", layout={"offset": "c3"}, **IN_ORDER).fit(NAMED, counts)
    model = thresher.train(NAMED.drop(columns="c3"), counts, "poisson", offsets=SIGNED[:, 3], passes=1)
    assert np.allclose(
        fitted.predict(NAMED), model.predict(NAMED.drop(columns="c3"), "label", offsets=SIGNED[:, 3])
    )
    shifted = NAMED.assign(c3=NAMED.c3 + 1)
    assert np.allclose(fitted.predict(shifted), np.e * fitted.predict(NAMED), rtol=1e-5)


USERS = np.repeat(np.arange(30), 4)
GROUPED = np.eye(30)[USERS]
"""a feature for each user: a model that has seen a user knows all of its rows"""
GROUPED_Y = np.where(np.random.default_rng(1).random(30) < 0.5, 1, 0)[USERS]


def test_held_out_groups_are_whole() -> None:
    rows = np.random.default_rng(2).permutation(120)
    groups = groups_of([f"user {k}" for k in USERS])
    held = held_out(GROUPED_Y[rows].astype(np.float32), rows, 0.2, groups)
    assert not {*USERS[rows[~held]].tolist()} & {*USERS[rows[held]].tolist()}
    assert held.sum() == 24


def test_held_out_examples_are_a_share_of_each_class() -> None:
    held = held_out(np.repeat([0.0, 1.0], [80, 20]).astype(np.float32), np.arange(100), 0.1)
    assert (held[:80].sum(), held[80:].sum()) == (8, 2)


def test_a_model_stops_by_users_that_it_has_not_seen() -> None:
    """Of users that it knows, each further pass makes it better; of others it knows nothing."""
    model = SparseOnlineClassifier("ftrl:alpha=1", early_stopping=True, passes=30, patience=1, random_state=0)
    with not_compiled(), sklearn.config_context(enable_metadata_routing=False):
        apart = clone(model).fit(GROUPED, GROUPED_Y, groups=USERS)
        mixed = model.fit(GROUPED, GROUPED_Y)
    assert apart.n_iter_ < 5 < mixed.n_iter_


def test_groups_that_do_not_fit() -> None:
    model = SparseOnlineClassifier(early_stopping=True)
    for wrong, words in (
        (USERS[:5], r"inconsistent numbers of samples: \[120, 5\]"),
        (np.ones(120), "none of 1 groups"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(GROUPED, GROUPED_Y, groups=wrong)


def test_groups_are_routed() -> None:
    with sklearn.config_context(enable_metadata_routing=True), not_compiled():
        model = SparseOnlineClassifier("ftrl", early_stopping=True, passes=1).set_fit_request(groups=True)
        search = GridSearchCV(model, {"passes": [1]}, cv=GroupKFold(2))
        search.fit(GROUPED, GROUPED_Y, groups=USERS)
        with pytest.raises(ValueError, match="none of 1 groups"):
            clone(model).fit(GROUPED, GROUPED_Y, groups=np.ones(120))
    assert search.best_score_ > 0
