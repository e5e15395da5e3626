"""Invalid labels and columns: one line that names them, before anything is learned."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import thresher
from thresher.data import DataError
from thresher.data.layout import Layout
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
            "number",
            "iterator",
            "number and word",
            "late word",
            "None",
            "None of words",
            "NA",
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


def test_columns_of_text_stand_one_by_one() -> None:
    assert thresher.train(NUMBERS, np.array(WORDS)[:, np.newaxis]).classes == ("no", "yes")


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


def test_a_column_of_texts_is_one_of_examples() -> None:
    texts = ["good film", "bad film", "bad book", "good book"]
    model = thresher.train(pd.Series(texts), WORDS)
    assert model.weights()[1].tobytes() == thresher.train(texts, WORDS).weights()[1].tobytes()
    assert len(model.predict(pd.Series(texts))) == 4


def test_columns_with_one_name() -> None:
    model, twice = thresher.train(X, WORDS), pd.concat([X, X[["age"]]], axis=1)
    for call in (model.predict, lambda data: thresher.train(data, WORDS)):
        with pytest.raises(DataError, match="two columns are called 'age'"):
            call(twice)
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
    for given, label in [
        (pairs(), ""),
        (pa.RecordBatchReader.from_batches(table.schema, batches()), "y"),
    ]:
        taken.clear()
        with pytest.raises(DataError, match="names=True reads the data again"):
            thresher.train(given, names=True, layout=Layout(label=label) if label else None)
        assert len(taken) <= 1


def test_a_share_may_be_of_numpy() -> None:
    share: Any
    for share in (np.array(0.25), np.float32(0.25)):
        assert thresher.train(X, WORDS, holdout=share, passes=1).examples == 3


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


def test_classes_beyond_those_of_float32(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="example 2: expected a whole number from -16777216 to 16777216"):
        thresher.train(np.eye(2), [16777216, 16777217], outputs="classes")
    (tmp_path / "a.vw").write_text("16777216 | a\n16777217 | b\n")
    with pytest.raises(DataError, match="expected a whole number from -16777216 to 16777216"):
        thresher.train(tmp_path / "a.vw", outputs="classes")


def test_labels_of_128_bits() -> None:
    with pytest.raises(DataError, match="labels y have type Int128, which numpy lacks: cast them"):
        thresher.train(np.eye(4), pl.Series([0, 1, 0, 1]).cast(pl.Int128))
    with pytest.raises(DataError, match="labels y have type Int128, which numpy lacks: cast them"):
        SparseOnlineClassifier().fit(np.eye(4), pl.Series([0, 1, 0, 1]).cast(pl.Int128))
