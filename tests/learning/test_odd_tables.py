"""Unusual tables from notebooks: they are learned and predicted, or one line says what to do."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.sparse import csr_matrix

import thresher
from thresher.data import DataError

pytestmark = pytest.mark.usefixtures("plainly")

Y = [0, 1, 1, 0]
X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (pd.date_range("2020-01-01", periods=4), 'has type timestamp.*: use categorical="c" or ignore="c"'),
        ([date(2020, 1, 1)] * 4, 'has type date32.*: use categorical="c"'),
        ([{"k": 1}] * 4, 'has type struct<k: int64>: use ignore="c"$'),
        (["a", 1, "b", 2], "a column is not all text or all numbers"),
        (pd.Series(["a", "\ud800", "b", "c"], dtype=object), r"ud800' is not valid Unicode"),
        ([2**70, "a", 1, 2], "a column is not all text or all numbers"),
        (X.a + 1j, "a column is not all text"),
        ([1.0, np.inf, 0.0, 1.0], "the table:2:2: expected a finite number in column 'c'"),
    ],
    ids=range(8),
)
def test_columns_that_are_no_features(column: Any, error: str) -> None:
    with pytest.raises(DataError, match=error):
        thresher.train(X.assign(c=column), Y)


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(pd.date_range("2020-01-01", periods=4)),
        pd.Categorical([3, 4, None, 3]),
        pl.Series(["x", "y", None, "x"], dtype=pl.Categorical),
        pl.Series(["x", "y", "x", "x"], dtype=pl.Enum(["x", "y"])),
    ],
    ids=range(4),
)
def test_categories_of_any_kind(column: Any) -> None:
    frame = pl.DataFrame({"c": column}) if isinstance(column, pl.Series) else pd.DataFrame({"c": column})
    model = thresher.train(frame, Y)
    assert model.layout is not None
    assert model.layout.kinds == ("categorical", "label")
    told = column.to_list() if isinstance(column, pl.Series) else list(column.astype(object))
    texts = pd.DataFrame({"c": [None if pd.isna(one) else str(one) for one in told]})
    if "2020" not in str(told):  # Arrow decides how a date is written
        assert model.predict(texts).tolist() == model.predict(frame).tolist()


def test_labels_may_be_codes_of_numbers() -> None:
    coded = thresher.train(X.assign(y=pd.Categorical(Y)), label="y")
    assert coded.weights()[1].tobytes() == thresher.train(X.assign(y=Y), label="y").weights()[1].tobytes()


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        ([1.0], r"sample_weight of shape \(1,\)"),
        (2.0, r"of shape \(\)"),
        (list("abcd"), "sample_weight: .*'a'"),
    ],
    ids=str,
)
def test_importances_that_are_none(weights: Any, error: str) -> None:
    with pytest.raises(DataError, match=error):
        thresher.train(X, Y, sample_weight=weights)


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "row 2, column 1: NaN is not allowed; fill in"),
        (csr_matrix([[0.0, 2.0], [0.0, 1e300]]), "row 2, column 1: 1e\\+300, too large for float32"),
        (csr_matrix([[0.0, 2j], [0.0, 1.0]]), "each value must be a number: it is complex"),
        ([{"a": 1.0}, "b"], "row 2: expected a mapping of names to values, found 'b'"),
        ([{"a": 2**2000}, {}], "row 1, feature 'a': int too large"),
    ],
    ids=range(5),
)
def test_matrices_and_rows_that_are_none(matrix: Any, error: str) -> None:
    with pytest.raises(DataError, match=error):
        thresher.train(matrix, [0, 1])


def test_rows_of_a_table() -> None:
    rows: list[dict[Any, Any]] = [{"a": 1, 7: 2, "y": 1}, {"a": 2, 7: 3, "y": 0}]
    model = thresher.train(rows, label="y")
    assert model.layout is not None
    assert model.layout.columns == ("a", "7", "y")
    with pytest.raises(DataError, match="column 'a' of the rows is not all text or all numbers"):
        thresher.train([*rows, {"a": "x", "y": 1}], label="y")


def test_no_rows_are_predicted_and_lists_of_numbers_too() -> None:
    table, matrix = thresher.train(X, Y), thresher.train(X.to_numpy(), Y)
    assert table.predict(X[:0]).shape == matrix.predict(X[:0].to_numpy()).shape == (0,)
    assert table.predict_proba(X[:0]).shape == (0, 2)
    assert matrix.predict(X.to_numpy().tolist()).tolist() == matrix.predict(X.to_numpy()).tolist()
    given: Any
    for given, error in [
        ({"a": 1.0}, "put one row into a list"),
        (pl.from_pandas(X).lazy(), r"collect\(\) it"),
    ]:
        with pytest.raises(DataError, match=error):
            table.predict(given)


def test_columns_may_be_named_by_whatever_lists_them() -> None:
    frame = X.assign(y=Y, z=1.0, q=2.0)
    names: Any
    for names in (
        pd.Index(["q", "z"]),
        {"q", "z"},
        np.array(["q", "z"]),
        pa.array(["q", "z"]).to_pylist(),
        "q,z",
    ):
        model = thresher.train(frame, label="y", ignore=names)
        assert model.layout is not None
        assert model.layout.kinds == ("numeric", "label", "ignore", "ignore")


def test_a_lazy_frame_is_to_be_collected() -> None:
    frame: Any = pl.DataFrame({"x": [1.0, 2.0, 3.0]}).lazy()
    with pytest.raises(DataError, match=r"LazyFrame holds no rows yet: collect\(\) it"):
        thresher.train(frame, [1, 0, 1])


@pytest.mark.parametrize("kind", ["table", "frame", "parquet", "csv"])
def test_two_columns_of_one_name(kind: str, tmp_path: Path) -> None:
    rows = pa.Table.from_arrays([pa.array([0.0, 1.0] * 9)] * 3, ["label", "a", "a"])
    path = str(tmp_path / f"d.{kind}")
    if kind == "parquet":
        pyarrow.parquet.write_table(rows, path)
    elif kind == "csv":
        Path(path).write_text("label,a,a\n" + "0,1,2\n1,2,3\n" * 9)
    data = {"table": rows, "frame": rows.to_pandas()}.get(kind, path)
    with pytest.raises(DataError, match="two columns are called 'a'"):
        thresher.train(data)
