"""Feature names in estimators: for columns, categories, words and dictionaries."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import thresher
from thresher.data.layout import Layout
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

TEXTS = ["a fine book", "no fine film", "the book", "a dull film no doubt"] * 15
FRAME = pl.DataFrame({"age": np.arange(60) % 9 - 4.0, "city": ["Rome", "Bonn", "Ulm"] * 20, "title": TEXTS})
Y = np.array([1, 0, 1, 0] * 15)
WORDS = {"fine", "book", "no", "film", "the", "dull", "doubt"}
INPUTS: dict[str, tuple[Any, Any, set[str]]] = {
    "table": (
        FRAME,
        Layout(text=("title",)),
        {"age", *(f"city={name}" for name in ("Rome", "Bonn", "Ulm")), *(f"title={word}" for word in WORDS)},
    ),
    "dictionaries": (
        FRAME.select("age", "city").to_dicts(),
        None,
        {"age", "city=Rome", "city=Bonn", "city=Ulm"},
    ),
    "texts": (TEXTS, None, WORDS),
    "pairs of words": (TEXTS, Layout(ngrams="words=2"), {"fine book", "no fine", "the book", "dull film"}),
    "frame of numbers": (
        pd.DataFrame({"age": np.arange(60) % 9 - 4.0, "x": np.ones(60)}),
        None,
        {"age", "x"},
    ),
}
inputs = pytest.mark.parametrize("name", INPUTS)


pytestmark = pytest.mark.usefixtures("plainly")


def fitted(name: str, **options: Any) -> Any:
    X, layout, _ = INPUTS[name]
    return SparseOnlineClassifier("sgd", layout=layout, random_state=0, **options).fit(X, Y)


@inputs
def test_names_are_kept_when_asked(name: str) -> None:
    X, _, wanted = INPUTS[name]
    model = fitted(name, names=True)
    found = model.get_feature_names_out()
    assert set(found) >= wanted
    assert len(found) == np.count_nonzero(np.asarray(model.coef_).any(axis=0))
    readable = dict(zip(model.model_.weights_frame().key, model.model_.weights_frame().feature, strict=True))
    assert set(readable.values()) == set(found)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_feature_names_out().tolist() == found.tolist()
    assert model.predict(X).tolist() == fitted(name).predict(X).tolist()


@pytest.mark.parametrize("name", ["table", "dictionaries", "texts"])
def test_without_asking_there_are_keys(name: str) -> None:
    model = fitted(name)
    with pytest.raises(ValueError, match=r"as feature_keys_ are: fit with names=True"):
        model.get_feature_names_out()


def test_names_found_later_and_of_further_examples() -> None:
    model = fitted("table")
    thresher.name_features(model, FRAME)
    assert (
        model.get_feature_names_out().tolist() == fitted("table", names=True).get_feature_names_out().tolist()
    )
    rows = INPUTS["dictionaries"][0]
    model = SparseOnlineClassifier("sgd", names=True)
    model.partial_fit(rows[:1], Y[:1], classes=[0, 1])
    assert set(model.get_feature_names_out()) == {"age", "city=Rome"}
    model.partial_fit(rows, Y)
    assert set(model.get_feature_names_out()) >= INPUTS["dictionaries"][2]


def test_names_of_an_iterator_and_of_a_hashed_store() -> None:
    model = SparseOnlineRegressor("sgd", names=True, random_state=0).fit(iter(TEXTS), Y)
    assert set(model.get_feature_names_out()) >= WORDS
    with pytest.raises(ValueError, match="weights of a hashed store have no names"):
        fitted("texts", names=True, store="hashed:8")
