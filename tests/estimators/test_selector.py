"""SparseStabilitySelector selects as `thresher.select` does, for every kind of target, in a pipeline."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import make_pipeline

import thresher
from tests.plain import not_compiled
from thresher.sklearn import SparseOnlineClassifier, SparseStabilitySelector

CHANCE = np.random.default_rng(4)
X = CHANCE.normal(size=(200, 12))
Y = X[:, 3] - X[:, 7] + CHANCE.normal(0, 0.3, 200)


def fitted(y: Any, **options: Any) -> SparseStabilitySelector:
    with not_compiled():
        return SparseStabilitySelector(bags=4, random_state=0, passes=2, **options).fit(X, y)


TARGETS: dict[str, Any] = {
    "two classes": np.where(Y > 0, "b", "a"),
    "three classes": np.digitize(Y, [-1, 1]),
    "a number": Y,
    "numbers": np.column_stack([X[:, 3], X[:, 7]]),
    "labels": np.column_stack([X[:, 3] > 0, X[:, 7] > 0]).astype(int),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_it_finds_the_features_of_every_kind_of_target(kind: str) -> None:
    found = fitted(TARGETS[kind])
    assert {3, 7} <= {*found.get_support(indices=True).tolist()}
    assert found.transform(X).shape == (200, found.get_support().sum()) != X.shape
    assert (found.get_support() == (found.share_ >= found.threshold_)).all()


def test_it_is_the_function() -> None:
    found, y = fitted(Y > 0, shuffle=False, nonzero=3), np.where(Y > 0, 1, -1)
    with not_compiled():
        seed = int(np.random.RandomState(0).randint(1 << 31))
        same = thresher.select(X, y, bags=4, passes=2, nonzero=3, seed=seed)
    assert found.selection_.figures() == same.figures()
    assert found.share_[same.keys.astype(int)].tolist() == same.share.tolist()
    assert found.mean_weight_[same.keys.astype(int)].tolist() == same.mean.tolist()


def test_sparse_rows_and_pickles() -> None:
    found = fitted(Y > 0)
    with not_compiled():
        one = SparseStabilitySelector(bags=4, random_state=0, passes=2)
        assert one.fit(csr_matrix(X), Y > 0).mean_weight_.tolist() == found.mean_weight_.tolist()
    again = pickle.loads(pickle.dumps(found))
    assert again.get_support().tolist() == found.get_support().tolist()
    assert isinstance(found, SelectorMixin)


def test_in_a_pipeline() -> None:
    with not_compiled():
        steps = make_pipeline(
            SparseStabilitySelector(bags=4, random_state=0, passes=2),
            SparseOnlineClassifier(random_state=0, passes=2),
        )
        steps.fit(X, Y > 0)
        assert steps.score(X, Y > 0) > 0.85
        assert steps[-1].n_features_in_ == steps[0].get_support().sum() < 12
    assert {"x3", "x7"} <= {*steps[0].get_feature_names_out()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bags": 3}, "bags must be an even number"),
        ({"share": 0.7}, "share must be a share above 0, up to 0.5"),
        ({"false": -1}, "false must be a number above 0"),
        ({"nonzero": 0}, "nonzero must be a whole number of at least 1"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message), not_compiled():
        SparseStabilitySelector(**options).fit(X, Y > 0)


@pytest.mark.parametrize("rows", [pd.DataFrame({"a": Y, "b": ["u", "v"] * 100}), ["a text"] * 200])
def test_what_holds_no_numbers(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"takes columns of numbers, and X is .*: use thresher\.select"):
        SparseStabilitySelector().fit(rows, Y > 0)
