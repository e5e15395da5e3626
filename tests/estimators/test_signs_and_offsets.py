"""Estimators with signs of weights, and with offsets in a column: the model of `thresher.train`."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import thresher
from thresher.sklearn import SparseFrontierRegressor, SparseOnlineClassifier, SparseOnlineRegressor

rng = np.random.default_rng(5)
X = rng.normal(size=(150, 12))
Y = X[:, 0] - X[:, 1] + 0.3 * X[:, 10] + 0.1 * rng.normal(size=150)
NAMED = pd.DataFrame(X, columns=[f"c{place}" for place in range(12)])
KINDS = NAMED.assign(kind=np.where(X[:, 2] > 0, "a", "b"))
IN_ORDER: dict[str, Any] = {"shuffle": False, "passes": 1}


@pytest.mark.parametrize(
    ("given", "signs", "same"),
    [
        (X, {"nonnegative": np.array([1, 10])}, (X, {"nonnegative": [1, 10]})),
        (NAMED, {"nonnegative": ["c1", "c10"]}, (X, {"nonnegative": "1,10"})),
        (NAMED, {"nonpositive": "c1*"}, (X, {"nonpositive": "1,10,11"})),
        (KINDS, {"nonnegative": "c1", "nonpositive": "c0"}, None),
        (KINDS, {"nonnegative": "*"}, None),
        (X, {"nonnegative": np.int64(1)}, (X, {"nonnegative": 1})),
    ],
)
def test_weights_are_those_of_train(given: Any, signs: Any, same: Any) -> None:
    fitted = clone(SparseOnlineRegressor(**IN_ORDER, **signs)).fit(given, Y)
    data, options = same or (given, signs)
    model = thresher.train(data, Y, "squared", passes=1, **options)
    assert fitted.predict(given).tolist() == model.predict(data).tolist()
    free = SparseOnlineRegressor(**IN_ORDER).fit(given, Y)
    assert not np.array_equal(fitted.predict(given), free.predict(given))


def test_every_model_of_a_frontier_keeps_signs() -> None:
    found = SparseFrontierRegressor(nonnegative=1, nonpositive=[0], l1s=4, random_state=0).fit(X, Y)
    weights = found.coef_path_.toarray()
    assert weights[:, 1].min() >= 0
    assert weights[:, 0].max() <= 0
    assert weights[:, 10].any()


def test_signs_are_of_columns_and_last() -> None:
    with pytest.raises(ValueError, match="nonnegative: no column is called '12'; there are 12 columns"):
        SparseOnlineClassifier(nonnegative=12).fit(X, Y > 0)
    with pytest.raises(ValueError, match=r"no column is called 'c99'; did you mean 'c9'\?"):
        SparseOnlineClassifier(nonpositive="c99").fit(NAMED, Y > 0)
    model = SparseOnlineRegressor(nonnegative=1).partial_fit(X, Y)
    with pytest.raises(ValueError, match="nonnegative is None, but was 1"):
        model.set_params(nonnegative=None).partial_fit(X, Y)


def test_offsets_of_a_column_are_added_to_margins() -> None:
    counts = rng.poisson(np.exp(0.5 * X[:, 0] + X[:, 3]))
    fitted = SparseOnlineRegressor(loss="poisson", layout={"offset": "c3"}, **IN_ORDER).fit(NAMED, counts)
    model = thresher.train(NAMED.drop(columns="c3"), counts, "poisson", offsets=X[:, 3], passes=1)
    assert np.allclose(
        fitted.predict(NAMED), model.predict(NAMED.drop(columns="c3"), "label", offsets=X[:, 3])
    )
    shifted = NAMED.assign(c3=NAMED.c3 + 1)
    assert np.allclose(fitted.predict(shifted), np.e * fitted.predict(NAMED), rtol=1e-5)
