"""Sparse DataFrames: their columns are features by name, in any order, as those of dense tables."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from thresher.data.errors import DataError
from thresher.data.inputs.any_data import as_source
from thresher.sklearn import SparseOnlineClassifier

_chance = np.random.default_rng(0)
_CELLS = pd.DataFrame({"a": _chance.choice([*"uvwxyz"], 90), "b": _chance.choice([*"pqr"], 90)})
Y = np.where((_CELLS.a < "x") ^ (_CELLS.b == "p"), 1, -1)
FRAME = pd.get_dummies(_CELLS, sparse=True)
OTHER_ORDER = FRAME[FRAME.columns[::-1]]
OPTIONS: Any = {"rule": "sgd", "rate": "constant:0.5"}


pytestmark = pytest.mark.usefixtures("plainly")


def _trained(**options: Any) -> thresher.Model:
    return thresher.train(FRAME, Y, **OPTIONS, **options)


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        OTHER_ORDER,
        FRAME.sparse.to_dense(),
        OTHER_ORDER.sparse.to_dense(),
        OTHER_ORDER.astype(pd.SparseDtype("float32", 0.0)),
    ],
    ids=["same", "order", "dense", "dense-order", "floats"],
)
def test_columns_are_matched_by_name(frame: pd.DataFrame) -> None:
    model = _trained()
    expected = model.predict(FRAME)
    assert len({*np.round(expected, 6)}) > 5
    assert np.array_equal(model.predict(frame), expected)
    assert thresher.evaluate(model, frame, Y) == thresher.evaluate(model, FRAME, Y)
    again, other = _trained(), _trained()
    again.learn(FRAME, Y)
    other.learn(frame, Y)
    assert np.allclose(again.predict(FRAME), other.predict(FRAME))


def test_training_in_another_order_gives_the_same_model() -> None:
    model, other = _trained(names=True), thresher.train(OTHER_ORDER, Y, names=True, **OPTIONS)
    assert [one.tolist() for one in model.weights()] == [one.tolist() for one in other.weights()]
    assert {*model.names.values()} == {*FRAME.columns}


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAME.iloc[:, 1:], "no column 'a_u'"),
        (FRAME.assign(more=FRAME.a_u), "column 'more' was not in the training data"),
        (pd.concat([FRAME, FRAME], axis=1), "two columns are called 'a_u'"),
    ],
    ids=["fewer", "more", "twice"],
)
def test_other_columns_are_refused(frame: pd.DataFrame, words: str) -> None:
    estimator = SparseOnlineClassifier(passes=1, **OPTIONS).fit(FRAME, Y)
    for model in (_trained(), estimator):
        with pytest.raises(DataError, match=words):
            thresher.predict(model, frame)
    with pytest.raises(ValueError, match=r"feature names|features, but|two columns are called"):
        estimator.predict(frame)


def test_another_column_can_be_dropped_or_skipped_as_the_message_says() -> None:
    model, frame = _trained(), FRAME.assign(more=FRAME.a_u)
    with pytest.raises(DataError, match=r'; drop it, or skip it with ignore="more"$'):
        thresher.predict(model, frame)
    wanted = thresher.predict(model, FRAME)
    assert np.array_equal(thresher.predict(model, frame, ignore="more"), wanted)
    assert np.array_equal(thresher.predict(model, frame.drop(columns="more")), wanted)


def test_zeros_and_frames_without_names() -> None:
    few = pd.DataFrame.sparse.from_spmatrix(FRAME.sparse.to_coo(), columns=[*range(1, 10)])
    model = thresher.train(few, Y, **OPTIONS)
    assert model.layout.columns[:3] == ("1", "2", "3")
    assert next(as_source((FRAME, Y), "real").chunks()).nnz == 180
    plain = pd.DataFrame.sparse.from_spmatrix(FRAME.sparse.to_coo().astype(float))
    model = thresher.train(plain, Y, **OPTIONS)
    assert model.numbering == (0, 8, True)
    assert np.array_equal(model.predict(plain.to_numpy()), model.predict(plain))


@pytest.mark.parametrize(
    "options",
    [{"interact": "a_*,b_*"}, {"categorical": "a_u"}, {"ignore": "b_*"}],
    ids=["interact", "categorical", "ignore"],
)
def test_options_for_columns_apply(options: Any) -> None:
    assert np.allclose(_trained(**options).predict(OTHER_ORDER), _trained(**options).predict(FRAME))


def test_a_label_and_missing_values_in_the_frame() -> None:
    model = thresher.train(FRAME.assign(y=pd.arrays.SparseArray(Y, fill_value=0)), label="y", **OPTIONS)
    assert np.array_equal(model.predict(OTHER_ORDER), model.predict(FRAME))
    cells = [1.0, np.nan] * 50
    holes = pd.DataFrame({name: pd.arrays.SparseArray(cells[k:] + cells[:k]) for k, name in enumerate("uv")})
    assert thresher.train(holes, [1, -1] * 50, **OPTIONS).layout.columns[:2] == ("u", "v")


@pytest.mark.parametrize(
    "make",
    [
        lambda: thresher.path(FRAME, Y, rule="fobos", l1=[0.001, 0.01], rate="constant:0.5"),
        lambda: thresher.boost(FRAME, Y, l1=0.5),
        lambda: SparseOnlineClassifier(passes=1, **OPTIONS).fit(FRAME, Y),
        lambda: SparseOnlineClassifier(passes=1, **OPTIONS).fit(FRAME.sparse.to_dense(), Y),
    ],
    ids=["path", "boost", "estimator", "estimator-dense"],
)
def test_names_count_for_every_kind_of_model(make: Callable[[], Any]) -> None:
    model = make()
    for frame in (OTHER_ORDER, OTHER_ORDER.sparse.to_dense()):
        assert np.array_equal(thresher.predict(model, frame), thresher.predict(model, FRAME))
        assert thresher.evaluate(model, frame, Y) == thresher.evaluate(model, (FRAME, Y))


def test_labels_that_are_words() -> None:
    words = np.where(Y > 0, "yes", "no")
    model = thresher.train(FRAME, words, **OPTIONS)
    assert {*model.predict(OTHER_ORDER, output="label").tolist()} == {"yes", "no"}
