"""Data of other features than those of the model: refused, because nothing would match."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import thresher
from thresher.data.errors import DataError

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] > 0, 1, -1)
FRAME = pd.DataFrame(X, columns=["a", "b", "d"])
ROWS = FRAME.to_dict("records")
TRAIN: dict[str, Callable[[], Any]] = {
    "table": lambda: thresher.train(FRAME, Y, rule="sgd"),
    "csv": lambda: thresher.train("t.csv", label="y", rule="sgd"),
    "matrix": lambda: thresher.train(X, Y, rule="sgd"),
    "svmlight": lambda: thresher.train("t.svm", rule="sgd"),
    "rows": lambda: thresher.train(ROWS, Y, rule="sgd"),
    "vw": lambda: thresher.train("t.vw", rule="sgd"),
}
OF: dict[str, tuple[Any, dict[str, Any]]] = {
    "table": (FRAME, {}),
    "csv": ("t.csv", {"format": "csv", "label": "y"}),
    "matrix": (X, {}),
    "sparse": (sp.csr_matrix(X), {}),
    "svmlight": ("t.svm", {"format": "svmlight"}),
    "rows": (ROWS, {}),
    "vw": ("t.vw", {"format": "vw"}),
}
KINDS = {
    "table": "columns", "csv": "columns", "matrix": "ids", "sparse": "ids", "svmlight": "ids",
    "rows": "names", "vw": "names",
}  # fmt: skip


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plainly: None) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.assign(y=Y).to_csv("t.csv", index=False)
    dump_svmlight_file(X, Y, "t.svm", zero_based=True)
    lines = (f"{y} | a:{a} b:{b} d:{d}\n" for (a, b, d), y in zip(X, Y, strict=True))
    Path("t.vw").write_text("".join(lines))


PAIRS = [
    (model, data)
    for model in TRAIN
    for data in OF
    if KINDS[model] != KINDS[data]
    and (model, data) not in {("table", "rows"), ("csv", "rows")}  # rows of a table
    and (KINDS[model], data) != ("ids", "table")  # matched by position
]


@pytest.mark.parametrize(("model", "data"), PAIRS)
def test_features_of_another_kind_are_refused(model: str, data: str) -> None:
    trained, (given, how) = TRAIN[model](), OF[data]
    beside = given if isinstance(given, str) else (given, Y)
    unlabelled = {name: value for name, value in how.items() if name != "label"}
    asking: list[Callable[[], Any]] = [
        lambda: trained.predict(given, **unlabelled),
        lambda: trained.predictor().predict(given, **unlabelled),
        lambda: thresher.evaluate(trained, beside, **how),
        lambda: trained.learn(beside, **how),
    ]
    for ask in asking:
        with pytest.raises(
            DataError, match=r"the model was trained on .*(features|named columns)|no columns"
        ):
            ask()
    if data in ("matrix", "sparse"):
        with pytest.raises(DataError, match="the initial weights were learned from"):
            thresher.train(given, Y, rule="sgd", init=trained)


@pytest.mark.parametrize("data", ["matrix", "sparse", "rows"])
@pytest.mark.parametrize("model", ["table", "matrix", "rows"])
def test_a_holdout_of_another_kind_is_refused(model: str, data: str) -> None:
    given = OF[model][0]
    if KINDS[model] == KINDS[data] or (model, data) == ("table", "rows"):
        thresher.train(given, Y, rule="sgd", holdout=(OF[data][0], Y))
        return
    for ask, rule in ((thresher.train, "sgd"), (thresher.path, "fobos")):
        with pytest.raises(DataError, match=r"the data are .*, whose features are|named columns"):
            ask(given, Y, rule=rule, holdout=(OF[data][0], Y))


def test_columns_matched_by_position_are_told_of() -> None:
    model = thresher.train(X, Y, rule="sgd")
    with pytest.warns(thresher.TroubleWarning, match=r"matched by position.*\[by-position\]"):
        found = model.predict(FRAME)
    assert np.array_equal(found, model.predict(X))
    assert np.array_equal(model.predict(FRAME.set_axis(range(3), axis=1)), found)
    with pytest.warns(thresher.TroubleWarning, match="by-position"):
        thresher.evaluate(model, (FRAME, Y))
    with pytest.raises(DataError, match="the data have 3 columns, the hold-out 2"):
        thresher.train(X, Y, rule="sgd", holdout=(X[:, :2], Y))


def test_words_of_vw_for_a_model_of_ids() -> None:
    model = thresher.train("t.svm", rule="sgd")
    Path("ids.vw").write_text("1 | 0:1 1:2\n")
    assert len(model.predict("ids.vw", format="vw")) == 1
    with pytest.raises(DataError, match="whose features are ids; the features of VW text are names"):
        model.predict("t.vw", format="vw")


@pytest.mark.parametrize("classes", ["3,7", [3, 7], ["3", "7"]])
def test_classes_of_labels_that_are_other_numbers(classes: Any) -> None:
    labels = np.where(Y > 0, 7, 3)
    model = thresher.train(X, labels, rule="sgd", classes=classes)
    assert np.array_equal(model.predict(X, "label") == "7", model.predict(X) > 0)
    assert np.array_equal(model.predict(X), thresher.train(X, Y, rule="sgd").predict(X))
    with pytest.raises(DataError, match="example 1: expected one of the classes 3, 7 as label, found '8'"):
        thresher.train(X, labels + 1, rule="sgd", classes=classes)


def test_ids_for_a_hashed_model_of_vw_names() -> None:
    named = thresher.train("t.vw", rule="sgd", store="hashed:12")
    with pytest.raises(DataError, match="VW text, whose features are names; the features of svmlight are"):
        named.predict("t.svm", format="svmlight")
    Path("ids.vw").write_text("1 | 0:1 1:2\n-1 | 1:1\n")
    numbered = thresher.train("ids.vw", rule="sgd", store="hashed:12")
    assert len(numbered.predict("t.svm", format="svmlight")) == len(Y)


def test_numbers_and_names_in_dictionaries_do_not_mix() -> None:
    model = thresher.train(ROWS, Y, rule="sgd")
    for call in (lambda data: model.predict(data), lambda data: model.learn(data, Y[: len(data)])):
        with pytest.raises(DataError, match="the features of rows of numbered features are ids"):
            call([{7: 1.0}, {8: 1.0}])


def test_a_holdout_by_position_is_told_of() -> None:
    with pytest.warns(thresher.TroubleWarning, match="the data are a matrix, so the columns of the table"):
        thresher.train(X, Y, rule="sgd", holdout=(FRAME, Y))


def test_a_table_for_weights_of_vw_text() -> None:
    with pytest.raises(DataError, match="the initial weights were learned from VW text, whose features are"):
        thresher.train(FRAME, Y, rule="sgd", init=thresher.train("t.vw", rule="sgd"))


def test_dictionaries_for_texts_of_vw(tmp_path: Path) -> None:
    """They would get no n-grams."""
    path = tmp_path / "films.vw"
    path.write_text("1 |text not bad |year 1994\n-1 |text not good |year 1987\n" * 20)
    model = thresher.train(path, text=["text"], rule="sgd")
    for use in (model.predict, lambda rows: model.predict_one(rows[0]), lambda rows: model.learn(rows, [1])):
        with pytest.raises(DataError, match="VW text with the n-grams of text, which rows of named features"):
            use([{"text": "not good"}])
