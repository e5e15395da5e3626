"""`fit` warns of the data in the words of `thresher.train`; docs/warnings.md says what estimators call it."""

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import thresher
from tests.covering import covering
from thresher.data.layout import Layout
from thresher.learning.diagnostics.findings import TroubleWarning
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

CHANCE = np.random.default_rng(0)
N = 200
Y = CHANCE.integers(0, 2, N)
A = np.round(Y + CHANCE.normal(size=N), 2)
COLUMNS = {
    "id-columns": [f"u{k}" for k in range(N)],
    "codes-as-numbers": 10000 + 317 * CHANCE.integers(0, 90, N),
    "text-columns": [f"row {k} of some words" for k in range(N)],
    "numbers-as-categories": [*map(str, A[:-1]), "many"],
    "dates-as-categories": [f"2023-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(N)],
}


pytestmark = pytest.mark.usefixtures("plainly")


def said(act: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    assert all(one.category is TroubleWarning for one in caught)
    return [str(one.message) for one in caught]


def named(messages: list[str]) -> list[str]:
    return [message.rpartition(" [")[2].removesuffix("]") for message in messages]


def remedies(message: str) -> list[dict[str, Any]]:
    """The parameters that a message tells users to set: options of columns belong to the layout."""
    columns = re.findall(r'\b(ignore|categorical|text)="([^"]*)"', message)
    others = re.findall(r'\b(scale|rule)="([^"]*)"', message)
    return [{"layout": {name: value}} for name, value in columns] + [{name: value} for name, value in others]


def plain(**options: Any) -> SparseOnlineClassifier:
    return SparseOnlineClassifier(**{"passes": 1, "random_state": 0, **options})


@pytest.mark.parametrize(("made", "name"), covering([pd.DataFrame, pl.DataFrame, pa.table], [*COLUMNS]))
def test_fit_warns_of_columns_as_train_does(made: Any, name: str) -> None:
    X = made({"a": A, "zip": COLUMNS[name]})
    (message,) = said(lambda: plain().fit(X, Y))
    assert said(lambda: thresher.train(X, Y)) == [message]
    assert named([message]) == [name]
    assert "--" not in message
    for options in remedies(message):
        assert said(lambda options=options: plain(**options).fit(X, Y)) == []
    assert remedies(message) or name.endswith("categories")


def test_partial_fit_warns_once() -> None:
    X = pd.DataFrame({"a": A, "user": COLUMNS["id-columns"]})
    model = plain()
    assert named(said(lambda: model.partial_fit(X, Y, classes=[0, 1]))) == ["id-columns"]
    assert said(lambda: model.partial_fit(X, Y)) == []
    assert said(lambda: model.partial_fit(X[:1], Y[:1])) == []


def test_a_run_is_warned_of() -> None:
    order = np.argsort(Y, kind="stable")
    sorted_rows = np.column_stack([A, A])[order]
    (message,) = said(lambda: plain(shuffle=False).fit(sorted_rows, Y[order]))
    assert message.endswith('order="once", or order="buffer:N" for a stream [sorted-labels]')
    assert said(lambda: plain(shuffle=True).fit(sorted_rows, Y[order])) == []
    (message,) = said(lambda: plain(rule="ftrl", l1=1e9).fit(sorted_rows, Y[order]))
    assert "use a smaller l1 (currently 1e+09) [no-weights]" in message


def test_importances_are_warned_of_unless_classes_weigh_more_on_purpose() -> None:
    heavy = np.where(Y, 50.0, 1.0)
    fit = plain(shuffle=False).fit
    assert named(said(lambda: fit(A[:, np.newaxis], Y, sample_weight=heavy))) == ["importances"]
    weighted = plain(shuffle=False, class_weight={0: 1.0, 1: 50.0})
    assert said(lambda: weighted.fit(A[:, np.newaxis], Y)) == []


def test_a_column_of_large_numbers_has_its_name() -> None:
    X = pd.DataFrame({"a": A, "hour": 14102100.0 + CHANCE.integers(0, 24, N)})
    (message,) = said(lambda: plain(rule="ftrl").fit(X, Y))
    assert "(column hour up to 14,102,123)" in message
    for options in remedies(message):
        assert said(lambda options=options: plain(**{"rule": "ftrl", **options}).fit(X, Y)) == []


@pytest.mark.parametrize(
    ("load", "as_frame"), covering([load_iris, load_breast_cancer, load_wine, load_diabetes], [False, True])
)
def test_ordinary_data_give_no_warnings(load: Any, as_frame: bool) -> None:
    X, y = load(return_X_y=True, as_frame=as_frame)
    online = SparseOnlineRegressor if load is load_diabetes else SparseOnlineClassifier
    assert said(lambda: online(passes=1, random_state=0).fit(X, y)) == []


def test_a_layout_is_a_dictionary_too() -> None:
    X = pd.DataFrame({"a": A, "zip": COLUMNS["codes-as-numbers"]})
    text: Any = "zip"
    layouts: list[Any] = [{"categorical": "zip"}, Layout(categorical=("zip",)), Layout(categorical=text)]
    found = [plain(layout=layout, l1=0.0).fit(X, Y).feature_keys_.tolist() for layout in layouts]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 1 + X.zip.nunique()
    with pytest.raises(ValueError, match="layout has no option categoric; it has bins, "):
        plain(layout={"categoric": "zip"}).fit(X, Y)
