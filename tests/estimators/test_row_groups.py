"""Estimators hold out whole groups of examples."""

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

from thresher.sklearn import SparseFrontierClassifier, SparseFrontierRegressor, SparseOnlineClassifier
from thresher.sklearn.row_order import folds, groups_of_examples, held_out

USERS = np.repeat(np.arange(30), 4)
X = np.eye(30)[USERS]
"""a feature for each user: a model that has seen a user knows all of its rows"""
Y = np.where(np.random.default_rng(1).random(30) < 0.5, 1, 0)[USERS]


def test_groups_are_whole() -> None:
    rows = np.random.default_rng(2).permutation(120)
    groups = groups_of_examples([f"user {k}" for k in USERS], 120)
    labels = Y[rows].astype(np.float32)
    for splits in (folds(labels, rows, 7, groups), held_out(labels, rows, 0.2, groups)):
        for learned, held in splits:
            assert np.array_equal(learned, ~held)
            assert not {*USERS[rows[learned]].tolist()} & {*USERS[rows[held]].tolist()}
    assert sum(held.sum() for _, held in folds(labels, rows, 7, groups)) == 120
    assert held_out(labels, rows, 0.2, groups)[0][1].sum() == 24


@pytest.mark.parametrize("options", [{}, {"cv": 5}, {"cv": GroupKFold(5)}], ids=str)
def test_a_frontier_is_judged_on_users_that_it_has_not_seen(options: dict[str, Any]) -> None:
    with sklearn.config_context(enable_metadata_routing=False):
        apart = SparseFrontierClassifier(l1s=[0.001, 0.01], random_state=0, **options).fit(X, Y, groups=USERS)
        assert apart.loss_path_[0] > 0.6
        if options.get("cv") == 5:
            mixed = SparseFrontierClassifier(l1s=[0.001, 0.01], random_state=0, cv=5).fit(X, Y)
            assert mixed.loss_path_[0] < 0.5


def test_groups_that_do_not_fit() -> None:
    for wrong, words in (
        (USERS[:5], "groups has 5 values for n_samples=120"),
        (np.ones(120), "none of 1 groups"),
    ):
        with pytest.raises(ValueError, match=words):
            SparseFrontierRegressor(l1s=2).fit(X, Y, groups=wrong)
    with pytest.raises(ValueError, match="cv=5 folds are too many for 2 groups"):
        SparseFrontierRegressor(l1s=2, cv=5).fit(X, Y, groups=USERS > 3)
    with pytest.raises(ValueError, match="none of 1 groups"):
        SparseOnlineClassifier(early_stopping=True).fit(X, Y, groups=np.ones(120))


def test_groups_are_routed() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        frontier = SparseFrontierClassifier(l1s=2, passes=1).set_fit_request(groups=True)
        search = GridSearchCV(frontier, {"passes": [1]}, cv=GroupKFold(2)).fit(X, Y, groups=USERS)
        assert search.best_estimator_.loss_path_.shape == (2,)
