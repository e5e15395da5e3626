"""Labels that are words, in Python: tables, files and examples in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from tests.data.tables import Streamed, write_csv
from thresher.data import DataError
from thresher.data.inputs.any_data import as_source
from thresher.data.layout import Layout, SettledLayout
from thresher.data.opening import classes_among
from thresher.learning.model.recipe import Recipe
from thresher.sklearn import SparseOnlineClassifier

pytestmark = pytest.mark.usefixtures("plainly")

LAYOUT = Layout(label="kind")
CLASSES = ("bird", "fish", "fly")


def frame(words: tuple[str, ...] = CLASSES, count: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(1)
    which = (len(words) - 1 - np.arange(count)) % len(words)
    numbers = {f"x{j}": random.normal(size=count) + (which == j) * 2 for j in range(3)}
    return pd.DataFrame({"kind": np.array(words, object)[which], **numbers})


def weights_of(model: Any) -> list[bytes]:
    return [array.tobytes() for array in model.weights()]


def test_a_table_and_its_file_give_one_model(tmp_path: Path) -> None:
    table = frame()
    rows: Any = table.to_dict("records")
    write_csv(rows, tmp_path / "a.csv")
    model = thresher.train(tmp_path / "a.csv", layout=LAYOUT, passes=2)
    other = thresher.train(table, layout=LAYOUT, passes=2)
    assert (model.classes, model.recipe.outputs) == (CLASSES, "classes:1-3")
    assert str(model.recipe.loss).startswith("softmax")
    assert weights_of(other) == weights_of(model)
    assert weights_of(thresher.train(table, model.recipe, passes=2)) == weights_of(model)
    codes = table.assign(kind=[CLASSES.index(word) + 1 for word in table.kind])
    assert weights_of(thresher.train(codes, loss="softmax", layout=LAYOUT, passes=2)) == weights_of(model)
    thresher.save(model, tmp_path / "m")
    assert thresher.load(tmp_path / "m").classes == CLASSES
    figures = thresher.evaluate(tmp_path / "m", table)
    assert figures == thresher.evaluate(model, tmp_path / "a.csv")
    assert figures["error"] < 0.3
    chunk = next(as_source(table, model.head.domain, layout=model.layout).chunks())
    labels = model.predict(chunk, "label")
    assert figures["error"] == pytest.approx(np.mean(labels != table.kind.to_numpy()))
    assert thresher.predict(tmp_path / "m", table, "label").tolist() == labels.tolist()
    frame_of = model.weights_frame()
    shares = model.weights()[1].T[[CLASSES.index(word) for word in frame_of.output]]
    assert [w in row for w, row in zip(frame_of.weight, shares, strict=True)] == [True] * len(frame_of)


@pytest.mark.parametrize("words", [("ham", "spam"), CLASSES])
def test_examples_in_memory(words: tuple[str, ...]) -> None:
    table = frame(words)
    X, y = table[["x0", "x1", "x2"]].to_numpy(), table.kind.to_numpy()
    numbers = np.array([words.index(word) for word in y]) * (2 if len(words) == 2 else 1)
    numbers += -1 if len(words) == 2 else 1
    loss = "logistic" if len(words) == 2 else "softmax"
    expected = thresher.train((X, numbers), loss=loss)
    for labels in (y, list(y), table.kind, table.kind.astype("category"), np.array(y, str)):
        model = thresher.train((X, labels))
        assert model.classes == words
        assert weights_of(model) == weights_of(expected)
    numbers_told = expected.predict(X, "label")
    told = model.predict(X, "label")
    assert {*zip(told, numbers_told, strict=True)} == {*zip(words, sorted({*numbers}), strict=True)}
    figures, wanted = thresher.evaluate(model, (X, y)), thresher.evaluate(expected, (X, numbers))
    assert thresher.evaluate(model, (X, numbers)) == figures
    assert [one.pop("class") for one in figures["by_class"]] == [*words]
    assert [int(one.pop("class")) for one in wanted["by_class"]] == sorted({*numbers.tolist()})
    assert figures == wanted
    turned = thresher.train((X, y), layout=Layout(classes=words[::-1]))
    assert turned.classes == words[::-1]
    warm = thresher.train((X, y), init=model)
    assert warm.classes == words
    going_on = thresher.train((X, y), passes=1)
    before = going_on.examples
    going_on = thresher.train((X[::-1], y[::-1]), continue_from=going_on)
    assert (going_on.classes, going_on.examples) == (words, 2 * before)
    with pytest.raises(DataError, match=r"example 3: expected one of the classes .* found 'eggs'"):
        thresher.evaluate(model, (X[:3], [*y[:2], "eggs"]))
    with pytest.raises(DataError, match="all labels are 'ham'"):
        thresher.train((X[:2], ["ham", "ham"]))


def test_a_thousand_words_most_of_which_occur_once_are_no_labels(tmp_path: Path) -> None:
    words = [f"w{k}" for k in range(1_001)]
    X, several = np.ones((len(words), 1)), "1,001 different labels in 1,001 rows, most of them in only one"
    table, path = pd.DataFrame({"kind": words, "x": 1.0}), tmp_path / "a.csv"
    table.to_csv(path, index=False)
    (tmp_path / "a.vw").write_text("".join(f"{word} | x\n" for word in words))
    told: list[tuple[Any, Any]] = [
        ((X, words), {}),
        (table, {"label": "kind"}),
        (str(path), {"label": "kind"}),
    ]
    for data, given in told:
        with pytest.raises(DataError, match=several):
            thresher.train(data, passes=1, **given)
    with pytest.raises(DataError, match=rf"a\.vw: {several}"):
        thresher.train(str(tmp_path / "a.vw"), passes=1)
    with pytest.raises(DataError, match=rf"y: {several}"):
        SparseOnlineClassifier().fit(X, words)
    assert len(classes_among(dict.fromkeys(map(str.encode, words), 2), "a.csv")) == 1_001
    assert len(classes_among(dict.fromkeys(map(str.encode, words[:-1]), 1), "a.csv")) == 1_000


def test_texts_that_write_numbers_are_numbers() -> None:
    X = np.eye(4)
    assert thresher.train((X, ["1", "-1", "1", "-1"])).classes == ()
    model = thresher.train((X, ["1.5", "-1", "2", "0"]), loss="squared")
    assert weights_of(model) == weights_of(thresher.train((X, [1.5, -1, 2, 0]), loss="squared"))


@pytest.mark.parametrize("learn", [thresher.path, thresher.cv, thresher.tune, thresher.boost])
def test_all_that_learn_know_words(learn: Any) -> None:
    table = frame(("ham", "spam"))
    table["code"] = np.where(table.kind == "spam", 1, -1)
    every: dict[str, dict[str, Any]] = {
        "path": {"l1": ".1:1:2"},
        "cv": {"l1": ".1:1:2", "folds": 3, "refit": True},
        "tune": {"budget": 4, "rules": ["ftrl"]},
        "boost": {"loss": "logistic"},
    }
    options = every[learn.__name__]
    found = []
    for data, label in ((table.drop(columns="code"), "kind"), (table.drop(columns="kind"), "code")):
        done = learn(Streamed(as_arrow(data)), layout=Layout(label=label), **options)
        done = done.choose() if learn.__name__ in ("path", "cv") else getattr(done, "model", done)
        found.append((done.readout() if hasattr(done, "readout") else done, label))
    (words, _), (numbers, _) = found
    assert (words.classes, numbers.classes) == (("ham", "spam"), ())
    assert words.weights.tobytes() == numbers.weights.tobytes()


def as_arrow(table: pd.DataFrame) -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(table, preserve_index=False)


def test_a_recipe_has_a_class_for_each_word() -> None:
    layout = SettledLayout(classes=CLASSES)
    assert Recipe(loss="softmax", outputs="classes:0-2", layout=layout).layout == layout
    for outputs, loss in (("one", "logistic"), ("classes:1-4", "softmax"), ("one", "squared")):
        with pytest.raises(ValueError, match="words"):
            Recipe(layout=layout, outputs=outputs, loss=loss)
    for words in (("a",), ("a", "a"), ("a", ""), ("a", "b "), ("a", "b\nc")):
        with pytest.raises(DataError):
            Layout(classes=words)
