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
from scipy.sparse import csr_matrix, dok_array, dok_matrix

import thresher
from thresher.data import DataError
from thresher.data.feature_specs import in_list
from thresher.sklearn import SparseOnlineClassifier

pytestmark = pytest.mark.usefixtures("plainly")

Y = [0, 1, 1, 0]


def keyword(name: str, value: str) -> Any:
    return {name: value}


X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (
            pd.date_range("2020-01-01", periods=4),
            'has type timestamp.*: use categorical="c" or ignore="c", or make numbers of the times, such as',
        ),
        ([date(2020, 1, 1)] * 4, 'has type date32.*: use categorical="c" .* make numbers of the times'),
        (pd.to_timedelta([1, 2, 3, 4], "h"), "has type duration.*, or make numbers of the durations"),
        ([{"k": 1}] * 4, 'has type struct<k: int64>: use ignore="c"$'),
        (["a", 1, "b", 2], "column 'c' is not all text or all numbers"),
        (
            pd.Series(["a", "\ud800", "b", "c"], dtype=object),
            r"column 'c', row 2: .*ud800' is not valid Unicode",
        ),
        ([2**70, "a", 1, 2], "column 'c' is not all text or all numbers"),
        (X.a + 1j, "column 'c' has type complex128, which pyarrow cannot read: cast it"),
        (X.a.astype(np.longdouble), "column 'c' has type .*, which pyarrow cannot read: cast it"),
        ([1.0, np.inf, 0.0, 1.0], "the table:2:2: expected a finite number in column 'c'"),
    ],
    ids=range(10),
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
        ([{"a": 1.0}, {"": 1.0}], "row 2, feature '': a feature needs a name"),
    ],
    ids=range(6),
)
def test_matrices_and_rows_that_are_none(matrix: Any, error: str) -> None:
    with pytest.raises(DataError, match=error):
        thresher.train(matrix, [0, 1])


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


@pytest.mark.parametrize("kind", ["int64", "float64", "bool_", "decimal"])
@pytest.mark.parametrize("option", ["numeric", "bins", "weight"])
def test_a_dictionary_of_numbers_may_be_read_as_numbers(kind: str, option: Any) -> None:
    ones = [1, 0, 1, None if option != "weight" else 1, 0]
    plain = pa.array(ones).cast(pa.decimal128(19, 0) if kind == "decimal" else getattr(pa, kind)())
    tables = [
        pa.table({"c": column, "d": [1.0, 2.0, 3.0, 4.0, 5.0], "y": [*Y, 1]})
        for column in (plain, plain.dictionary_encode())
    ]
    one, other = (thresher.train(table, label="y", **keyword(option, "c")) for table in tables)
    assert one.weights()[1].tolist() == other.weights()[1].tolist()
    assert one.examples == other.examples


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.binary()])
def test_views_are_what_they_show(kind: Any) -> None:
    words = pa.array(["a", "b", "b", None]).cast(kind)
    for given in (words, pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 3]), words)):
        for option in ("categorical", "text"):
            table = pa.table({"c": given, "y": Y})
            found = thresher.train(table, label="y", **keyword(option, "c"))
            plain = thresher.train(
                pa.table({"c": ["a", "b", "b", None], "y": Y}), label="y", **keyword(option, "c")
            )
            assert found.weights()[1].tolist() == plain.weights()[1].tolist()


@pytest.mark.parametrize("kind", ["numeric", "weight", "offset"])
def test_what_is_not_numbers_is_told_how_to_be(kind: str) -> None:
    for column, how in (
        (pa.array(["1", "2", "3", "4"]), "convert it to numbers"),
        (pa.array([1, 2, 3, 4], pa.timestamp("s")), "make numbers of the times"),
    ):
        with pytest.raises(DataError, match=f"'c' is {kind}, but has type .* here: {how}"):
            thresher.train(
                pa.table({"c": column, "d": [1.0, 2.0, 3.0, 4.0], "y": Y}), label="y", **keyword(kind, "c")
            )


def test_a_table_in_memory_looks_like_no_file(tmp_path: Path) -> None:
    model, bad = thresher.train(X, Y), X.assign(a=np.inf)
    pyarrow.parquet.write_table(pa.Table.from_pandas(bad.assign(label=Y)), tmp_path / "d.parquet")
    for data in (bad, str(tmp_path / "d.parquet")):
        with pytest.raises(DataError, match=r"in column 'a', found inf$"):
            model.predict(data)
    with pytest.raises(DataError, match=r"in column 'a', found inf$"):
        thresher.evaluate(model, bad, Y, on_error="skip")


@pytest.mark.parametrize("kind", [dok_matrix, dok_array])
def test_a_sparse_matrix_that_is_a_dictionary(kind: Any) -> None:
    plain = csr_matrix([[0.0, 2.0], [1.0, 0.0], [3.0, 0.5], [0.0, 1.0]])
    given, model = kind(plain), thresher.train(plain, Y)
    for trained in (
        thresher.train(given, Y),
        thresher.train((given, Y)),
        thresher.train(given, Y, sample_weight=[1.0] * 4),
    ):
        assert trained.predict(given).tolist() == model.predict(plain).tolist()
    assert thresher.evaluate(model, given, Y) == thresher.evaluate(model, plain, Y)
    with pytest.raises(DataError, match="must be two-dimensional, not 1-dimensional"):
        thresher.train(dok_array(plain)[0], Y)


@pytest.mark.parametrize("name", ["b", ""])
@pytest.mark.parametrize("form", ["table", "frame", "parquet", "csv"])
def test_columns_of_one_name_may_be_ignored(form: str, name: str, tmp_path: Path) -> None:
    path, rows = (
        str(tmp_path / f"d.{form}"),
        pa.table([[1.0, 2.0, 2.0, 1.0], Y, Y, Y], ["a", "label", name, name]),
    )
    if form == "parquet":
        pyarrow.parquet.write_table(rows, path)
    elif form == "csv":
        Path(path).write_text(f"a,label,{name},{name}\n1,0,0,0\n2,1,1,1\n2,1,1,1\n1,0,0,0\n")
    data = {"table": rows, "frame": rows.to_pandas()}.get(form, path)
    expected = thresher.train(rows.select([0, 1]))
    for ignore in ([name], "3-4", "3,4", in_list(name)):
        model = thresher.train(data, ignore=ignore)
        assert model.weights()[1].tolist() == expected.weights()[1].tolist()
        assert "no-such-column" not in [one.name for one in model.warnings]
        assert thresher.evaluate(model, data)["examples"] == 4
    for one_of_them in ("3", "4"):
        with pytest.raises(DataError, match=f"two columns are called '{name}': rename one, or use ignore="):
            thresher.train(data, ignore=one_of_them)


def test_objects_of_polars_are_not_hashed_by_their_addresses() -> None:
    frame = pl.DataFrame({"c": pl.Series([object() for _ in Y], dtype=pl.Object), "d": [1, 2, 3, 4]})
    for call in (thresher.train, SparseOnlineClassifier().fit):
        with pytest.raises(DataError, match=r"'c' has type Object: make it text with .*, or drop it"):
            call(frame, Y)
