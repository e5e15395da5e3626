"""Labels that are words, and invalid labels and columns: one line before anything is learned."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import thresher
from tests.data.tables import write_csv
from thresher.data import DataError
from thresher.data.inputs.any_data import as_source
from thresher.data.layout import Layout, SettledLayout
from thresher.data.opening import classes_among
from thresher.learning.model.recipe import Recipe
from thresher.sklearn import SparseOnlineClassifier

pytestmark = pytest.mark.usefixtures("plainly")
X = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "city": list("abab")})
WORDS = ["no", "yes", "yes", "no"]
NUMBERS = X[["age"]].to_numpy()


@pytest.mark.parametrize("examples", [X, NUMBERS, [{"a": 1.0}] * 4], ids=["table", "matrix", "rows"])
@pytest.mark.parametrize(
    ("y", "error"),
    [
        (3, "one label per example, not 3$"),
        (iter(WORDS), "one label per example, not <list_iterator"),
        (["a", 1, "b", 2], "example 1 has 'a', example 2 has 1"),
        ([1, 1, "a", 2], "example 1 has 1, example 3 has 'a'"),
        ([1, None, 1, 0], r"example 2 has no label \(None\)"),
        (["a", "b", None, "a"], r"example 3 has no label \(None\)"),
        (pd.Series(["a", "b", pd.NA, "a"], dtype="string"), "example 3 has no label"),
        (pd.Series(["a", np.nan, "b", "a"]), "example 2 has no label"),
        (["a", " ", "b", "a"], "the label of example 2 is empty"),
        (["a", "", "", ""], "the label of example 2 is empty"),
        ([[1], [2, 3], [4], [5]], "labels y cannot be converted"),
        (["1", "1", "n/a", "-1"], "'n/a'"),
        ([[0, 1], [1, 0], [0, 1], [1, 0]], "expected one label( column| for each example), found 2"),
    ],
    ids=[
        *(
            *("number", "iterator", "number and word", "late word", "None", "None of words", "NA"),
            "NaN of words",
        ),
        *("blank", "empty", "lists", "n/a", "two columns"),
    ],
)
def test_labels_that_are_none(examples: Any, y: Any, error: str) -> None:
    with pytest.raises(DataError, match=error):
        thresher.train(examples, y)


def test_the_name_of_a_column_is_said_otherwise() -> None:
    with pytest.raises(TypeError, match=r"'city' is a column of the data: did you mean label='city'\?"):
        thresher.path(X, y="city")
    with pytest.raises(DataError, match="if that is a column of the data, use label='city'"):
        thresher.evaluate(thresher.train(NUMBERS, WORDS), NUMBERS, "city")


@pytest.mark.parametrize("learned", [[("-", "+")], [("-1st", "+1st")], [("a-", "a+")]], ids=str)
def test_plus_is_the_positive_one_of_two_signs(learned: Any) -> None:
    for minus, plus in learned:
        for labels in ([plus, minus, minus, plus], [minus, plus, plus, minus]):
            assert thresher.train(NUMBERS, labels).classes == (minus, plus)


def test_pairs_have_words_for_labels() -> None:
    pairs = [({"a": age}, word) for age, word in zip(X.age, WORDS, strict=True)]
    model = thresher.train(pairs, passes=3)
    assert model.classes == ("no", "yes")
    assert {*model.predict([row for row, _ in pairs], "label")} <= {*WORDS}
    named = thresher.train(iter(pairs), classes="no,yes")
    assert named.weights()[1].tobytes() == thresher.train(pairs).weights()[1].tobytes()
    with pytest.raises(DataError, match="rows 1 to 4: the label of example 1 is a word, 'no'; to use words"):
        thresher.train(iter(pairs))
    with pytest.raises(DataError, match="example 2: expected one of the classes no, maybe"):
        thresher.train(iter(pairs), classes="no,maybe")


def test_a_label_is_not_learned_from() -> None:
    whole = X.assign(bought=[0, 1, 1, 0])
    with pytest.raises(DataError, match="the table has a column 'bought', which y would replace"):
        thresher.train(whole, whole.bought)
    model = thresher.train(X, whole.bought)
    for call in (model.learn, lambda *given: thresher.evaluate(model, *given)):
        with pytest.raises(DataError, match="a column 'bought'"):
            call(whole, whole.bought)


@pytest.mark.parametrize(
    "column",
    [X.age, pl.Series("age", [1.0, 2.0]), pa.chunked_array([[1.0, 2.0]])],
    ids=["pandas", "polars", "pyarrow"],
)
def test_a_column_is_no_table(column: Any) -> None:
    model = thresher.train(X, WORDS)
    for call in (model.predict, lambda data: thresher.train(data, WORDS), lambda data: thresher.train(data)):
        with pytest.raises(DataError, match="is a single column: give a table"):
            call(column)


@pytest.mark.parametrize("columns", [["a", "c"], ["c", "a"]])
def test_a_row_is_no_table(columns: list[str]) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"]})[columns]
    model = thresher.train(frame, [0, 1])
    estimator = SparseOnlineClassifier().fit(frame, [0, 1])
    for one in (model, estimator):
        with pytest.raises(DataError, match=r"one row of a frame: frame\.iloc\[\[0\]\]"):
            one.predict(frame.iloc[0])
        assert len(one.predict(frame.iloc[[0]])) == 1


def test_a_column_of_texts_and_numbers_is_refused() -> None:
    with pytest.raises(DataError, match="column 'city' is not all text or all numbers"):
        thresher.train(X.assign(city=["a", 1, "b", 2]), WORDS)


def test_what_is_read_once_is_not_read_where_names_would_need_it_again() -> None:
    def pairs() -> Iterator[Any]:
        for number in range(4):
            taken.append(number)
            yield {"a": 1.0}, number % 2

    def batches() -> Iterator[Any]:
        for batch in table.to_batches(1):
            taken.append(batch)
            yield batch

    taken: list[Any] = []
    table = pa.table(X.assign(y=[0, 1, 1, 0]))
    for given, label in [(pairs(), ""), (pa.RecordBatchReader.from_batches(table.schema, batches()), "y")]:
        taken.clear()
        with pytest.raises(DataError, match="names=True reads the data again"):
            thresher.train(given, names=True, layout=Layout(label=label) if label else None)
        assert len(taken) <= 1


@pytest.mark.parametrize("label", [0.99999999, 1.00000001, 1e-46, -1e-46])
def test_a_label_that_float32_would_make_a_class(label: float, tmp_path: Path) -> None:
    lines = {
        "a.csv": ["label,a", "1,1", "0,2", f"{label!r},3"],
        "a.vw": ["1 | a:1", "0 | a:2", f"{label!r} | a:3"],
        "a.svm": ["1 1:1", "0 1:2", f"{label!r} 1:3"],
        "a.jsonl": [f'{{"label":{one},"a":{one}}}' for one in ("1", "0", repr(label))],
    }
    for name, text in lines.items():
        (tmp_path / name).write_text("\n".join([*text, ""]))
        with pytest.raises(DataError, match=f"expected a label -1, 0 or 1.*, found '?{label!r}'?$"):
            thresher.train(tmp_path / name)
    for X in (np.eye(3), pl.DataFrame({"a": [1.0, 2.0, 3.0]})):
        with pytest.raises(DataError, match=f"expected a label -1, 0 or 1.*, found '?{label!r}"):
            thresher.train(X, [1, 0, label])


def test_large_classes_and_labels(tmp_path: Path) -> None:
    large = 16777216, 16777217  # which are one number in float32, but two words
    (tmp_path / "a.vw").write_text("{} | a\n{} | b\n".format(*large))
    for data in (([[1.0, 0.0], [0.0, 1.0]], [*large]), tmp_path / "a.vw"):
        model = thresher.train(data, outputs="classes", passes=1)
        assert model.classes == (*map(str, large),)
    with pytest.raises(DataError, match="labels y have type Int128, which numpy lacks: cast them"):
        thresher.train(np.eye(4), pl.Series([0, 1, 0, 1]).cast(pl.Int128))
    with pytest.raises(DataError, match="labels y have type Int128, which numpy lacks: cast them"):
        SparseOnlineClassifier().fit(np.eye(4), pl.Series([0, 1, 0, 1]).cast(pl.Int128))


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
    assert weights_of(
        thresher.train(codes, loss="softmax", outputs="classes:1-3", layout=LAYOUT, passes=2)
    ) == weights_of(model)
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
    outputs = "one" if len(words) == 2 else "classes:1-3"
    expected = thresher.train((X, numbers), loss=loss, outputs=outputs)
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


def test_a_recipe_has_a_class_for_each_word() -> None:
    layout = SettledLayout(classes=CLASSES)
    assert Recipe(loss="softmax", outputs="classes:0-2", layout=layout).layout == layout
    for outputs, loss in (("one", "logistic"), ("classes:1-4", "softmax"), ("one", "squared")):
        with pytest.raises(ValueError, match="words"):
            Recipe(layout=layout, outputs=outputs, loss=loss)
    for words in (("a", "a"), ("a", ""), ("a", "b "), ("a", "b\nc")):
        with pytest.raises(DataError):
            Layout(classes=words)
