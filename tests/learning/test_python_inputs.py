"""Forms of data in Python: each is learned like the plain one, or gets an error that says what to do."""

import warnings
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import thresher
from thresher.data.errors import DataError
from thresher.sklearn import SparseOnlineClassifier

N = 40
Y = [k % 2 for k in range(N)]
FRAME = pd.DataFrame({"a": np.arange(N) % 7 - Y, "c": ["x", "y"] * (N // 2)})
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)
WITH_LABELS = TABLE.append_column("label", pa.array(Y))


pytestmark = pytest.mark.usefixtures("plainly")


def weights(data: Any, y: Any = None, **options: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", thresher.TroubleWarning)
        return [one.tolist() for one in thresher.train(data, y, l1=0.0, passes=1, **options).weights()]


def fitted(X: Any, y: Any = Y) -> SparseOnlineClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", thresher.TroubleWarning)
        return SparseOnlineClassifier(l1=0.0, passes=1, shuffle=False).fit(X, y)


def names_of(X: Any) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", thresher.TroubleWarning)
        model = SparseOnlineClassifier(l1=0.0, passes=1, shuffle=False, names=True).fit(X, Y)
    return sorted(model.get_feature_names_out().tolist())


TABLES: dict[str, Callable[[pa.Table], Any]] = {
    "dataset": pa.dataset.dataset,
    "reader": lambda table: table.to_reader(),
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "polars": pl.from_arrow,
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_any_kind_are_the_same(name: str) -> None:
    make, expected = TABLES[name], weights(TABLE, Y)
    assert weights(make(WITH_LABELS)) == weights(make(TABLE), Y) == weights(WITH_LABELS) == expected
    model = thresher.train(WITH_LABELS)
    predicted = thresher.predict(model, TABLE).tolist()
    assert thresher.predict(model, make(TABLE)).tolist() == predicted
    assert thresher.evaluate(model, make(WITH_LABELS)) == thresher.evaluate(model, WITH_LABELS)
    plain = fitted(TABLE)
    assert fitted(make(TABLE)).coef_.tolist() == plain.coef_.tolist()
    assert plain.predict(make(TABLE)).tolist() == plain.predict(TABLE).tolist()


def test_a_dataset_is_read_once_per_pass() -> None:
    dataset = pa.dataset.dataset(WITH_LABELS)
    assert thresher.train(dataset, passes=3).examples == 3 * N
    assert len(thresher.cv(dataset, folds=2, l1=[0.1, 1.0]).points) == 2


class Distributed:
    """Rows on other machines, as datasets of Ray hold them."""

    def iter_batches(self) -> Iterator[Any]:
        yield TABLE

    def to_pandas(self) -> Any:
        return TABLE.to_pandas()


@pytest.mark.parametrize("call", [lambda X: thresher.train(X, Y), thresher.train, fitted])
def test_what_holds_no_rows_yet_is_to_be_made_a_table(call: Callable[[Any], Any]) -> None:
    frame = pl.from_arrow(TABLE).lazy()
    with pytest.raises(DataError, match=r"LazyFrame holds no rows yet: collect\(\) it"):
        call(frame)
    with pytest.raises(DataError, match=r"Scanner holds no rows yet: to_reader\(\) it"):
        call(pa.dataset.dataset(TABLE).scanner())
    with pytest.raises(DataError, match=r"Distributed holds no rows yet: to_pandas\(\) it"):
        call(Distributed())


def rows() -> Iterator[dict[str, Any]]:
    yield from ({"a": float(k), "c": "x"} for k in range(N))


def pairs() -> Iterator[tuple[dict[str, Any], int]]:
    yield from zip(rows(), Y, strict=True)


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (rows, lambda X: thresher.train(X, Y)),
        *((rows, fitted), (pairs, thresher.train), (WITH_LABELS.to_reader, thresher.train)),
        (TABLE.to_reader, lambda X: thresher.train(X, Y)),
        (TABLE.to_reader, fitted),
    ],
)
def test_what_has_been_read_before_is_told_of(make: Callable[[], Any], call: Callable[[Any], Any]) -> None:
    data = make()
    call(data)
    with pytest.raises(ValueError, match=r"can be read only once, so make a (list or a )?table of it first"):
        call(data)
    with pytest.raises(DataError, match="can be read only once: make a list or a table of it first"):
        thresher.train(pairs(), passes=2)


def test_intervals_are_the_categories_of_csv(tmp_path: Path) -> None:
    cut = FRAME.assign(c=pd.cut(FRAME.a.where(FRAME.index > 3), 3), label=Y)
    cut.to_csv(tmp_path / "d.csv", index=False)
    assert weights(cut) == weights(cut.astype({"c": pd.IntervalDtype()})) == weights(str(tmp_path / "d.csv"))
    assert len([name for name in names_of(cut.drop(columns="label")) if name.startswith("c=(")]) == 3
    months = FRAME.assign(c=pd.PeriodIndex(["2024-01", "2024-02"] * (N // 2), freq="M"), label=Y)
    months.to_csv(tmp_path / "m.csv", index=False)
    assert weights(months) == weights(str(tmp_path / "m.csv"))


def test_lists_in_dictionaries_are_lists_in_tables() -> None:
    same = partial(weights, centre=False)  # dictionaries have no columns
    given: list[dict[str, Any]] = [{"a": 1.0 + k, "tags": ["p", "q", "p"][: k % 4]} for k in range(N)]
    expected = same(pd.DataFrame(given), Y)
    assert same(given, Y) == expected
    assert same([{**row, "tags": tuple(row["tags"])} for row in given], Y) == expected
    assert names_of(given) == ["a", "tags=p", "tags=q"]
    sets = [{**row, "tags": {*row["tags"]}} for row in given]
    assert same(sets, Y) == same([{**row, "tags": sorted(row["tags"])} for row in sets], Y)
    numbers = [{"tags": [k % 3, 7]} for k in range(N)]
    assert same(numbers, Y) == same(pd.DataFrame(numbers), Y)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"age": 3}, r"found {'age': 3} \(dict\): give its values names of their own, such as 'f.age'"),
        (date(2020, 1, 1), r"\(date\): give a text, or a number such as days since the first"),
        ([1.5], "a list must hold texts or whole numbers, found 1.5"),
        (float("nan"), "found NaN; for a missing value, give None or leave it out"),
        (object, "expected a number, a text or a list of texts, found <class 'object'>"),
    ],
    ids=["dictionary", "date", "numbers", "NaN", "anything"],
)
def test_values_that_are_no_features(value: Any, error: str) -> None:
    given = [{"f": value}] * N
    for call in (thresher.train, fitted):
        with pytest.raises(DataError, match=rf"row 1, feature 'f': .*{error}"):
            call(given, Y)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
@pytest.mark.parametrize("made", [list, pd.Series, lambda given: np.array(given, object)])
def test_a_missing_text_is_an_example_without_features(missing: Any, made: Callable[[Any], Any]) -> None:
    texts = [*["some words", "no"] * (N // 2)]
    given, plain = made([missing, *texts[:-1]]), ["", *texts[:-1]]
    assert weights(given, Y) == weights(plain, Y)
    assert fitted(given).coef_.tolist() == fitted(plain).coef_.tolist()
    assert names_of(given) == names_of(plain)
    assert thresher.predict(thresher.train(plain, Y), given).shape == (N,)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_missing_text_in_rows_with_columns(missing: Any) -> None:
    given = [{"t": missing if k == 0 else "some words", "label": k % 2} for k in range(N)]
    plain = [{"t": None if k == 0 else "some words", "label": k % 2} for k in range(N)]
    models = [thresher.train(one, label="label", text="t", l1=0.0) for one in (given, plain)]
    assert models[0].weights()[1].tolist() == models[1].weights()[1].tolist()


def test_batches_are_to_be_put_together() -> None:
    with pytest.raises(DataError, match="item 1 of data is RecordBatch: put the tables together into one"):
        thresher.train(WITH_LABELS.to_batches())


@pytest.mark.parametrize(
    ("X", "error"),
    [
        (FRAME[[]], "has no columns"),
        (FRAME.assign(t=pd.date_range("2020", periods=N, tz="UTC")), r"use (layout=\{\")?categorical"),
    ],
    ids=["none", "times"],
)
def test_tables_that_cannot_be_learned(X: Any, error: str) -> None:
    for call in (thresher.train, fitted):
        with pytest.raises(ValueError, match=error):
            call(X, Y)
