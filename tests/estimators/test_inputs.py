"""Every type of X gives the same model; unsupported types are errors."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix

import thresher
import thresher.data
from thresher.data.formats.tables import arrow_files
from thresher.data.layout import Layout
from thresher.sklearn import SparseOnlineClassifier

Y = np.array([1, -1, 1, 1, -1, -1] * 10)


@pytest.fixture
def table() -> NDArray[Any]:
    rng = np.random.default_rng(0)
    return np.round(np.where(rng.random((60, 5)) < 0.5, 0, rng.normal(size=(60, 5))), 3).astype(np.float32)


def fitted(X: Any, **options: Any) -> SparseOnlineClassifier:
    return SparseOnlineClassifier(l1=0.01, random_state=0, **options).fit(X, Y)


def mixed_columns() -> dict[str, Any]:
    return {
        "city": ["Rom", "Bern", None, "Rom", "Bern", "Ulm"] * 10,
        "visits": [1.5, 0.0, None, 2.0, 0.5, 1.0] * 10,
        "words": ["good day", "bad", "good", "very good", "bad day", ""] * 10,
    }


def test_matrices_of_any_kind(table: NDArray[Any]) -> None:
    expected = fitted(table)
    wide = csr_array(table)
    wide = csr_array((wide.data, wide.indices.astype(np.int64), wide.indptr.astype(np.int64)), wide.shape)
    unsorted = csr_matrix(table)
    for row in range(60):
        span = slice(unsorted.indptr[row], unsorted.indptr[row + 1])
        unsorted.indices[span], unsorted.data[span] = unsorted.indices[span][::-1], unsorted.data[span][::-1]
    unsorted.has_sorted_indices = False
    assert wide.indices.dtype == np.int64
    for X in (
        table.tolist(),
        table.astype(np.float64),
        csr_matrix(table),
        wide,
        csc_matrix(table),
        coo_array(table),
        unsorted,
    ):
        model = fitted(X)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(table))


def test_a_column_out_of_range_is_no_feature() -> None:
    X = csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    X.indices[1] = 7
    with pytest.raises(ValueError, match=r"X\[1, 7\] is beyond the last column, 1"):
        SparseOnlineClassifier().fit(X, [0, 1])


def test_tables_of_numbers_are_matrices(table: NDArray[Any]) -> None:
    names = list("abcde")
    expected = fitted(table)
    for X in (
        pd.DataFrame(table, columns=names),
        pl.DataFrame(table, schema=names),
        pa.table(dict(zip(names, table.T, strict=True))),
    ):
        model = fitted(X)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.predict(X), expected.predict(table))
    with pytest.raises(ValueError, match="feature names"):
        fitted(pd.DataFrame(table, columns=names)).predict(pd.DataFrame(table, columns=names[::-1]))


def test_nulls_are_missing_values_with_categories_beside_them_or_without() -> None:
    """Without centring, where a missing number is 0."""
    same = partial(fitted, centre=False)
    rng = np.random.default_rng(3)
    full = np.round(rng.normal(size=(60, 3)), 2)
    holes = rng.random((60, 3)) < 0.2
    columns = {
        name: [None if hole else x for x, hole in zip(full[:, k].tolist(), holes[:, k].tolist(), strict=True)]
        for k, name in enumerate("abc")
    }
    zeros = pd.DataFrame(np.where(holes, 0, full), columns=list("abc"))
    expected, beside = same(zeros), same(zeros.assign(same="x"))
    makers: list[Any] = [pd.DataFrame, pl.DataFrame, pa.table]
    for make in makers:
        X, mixed = make(columns), make({**columns, "same": ["x"] * 60})
        np.testing.assert_array_equal(same(X).coef_, expected.coef_)
        np.testing.assert_array_equal(same(X).predict(X), expected.predict(zeros))
        np.testing.assert_array_equal(same(mixed).coef_, beside.coef_)


def test_nan_is_missing_to_pandas_and_wrong_to_others() -> None:
    numbers = [1.0, float("nan")] * 30
    for more in ({}, {"c": ["x"] * 60}):
        columns: dict[str, Any] = {"a": numbers, "b": [2.0, 3.0] * 30, **more}
        fitted(pd.DataFrame(columns))
        for X in (pl.DataFrame(columns), pa.table(columns)):
            with pytest.raises(ValueError, match="NaN"):
                fitted(X)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.nan, "NaN is not allowed; fill in missing values"),
        (np.inf, "inf is not allowed"),
        (-np.inf, "-inf is not allowed"),
        (1e39, r"1e\+39, too large for float32 is not allowed"),
    ],
)
def test_the_value_that_is_wrong_is_named(value: float, said: str) -> None:
    X = np.ones((60, 4))
    X[17, 2] = value
    for wrong in (X, csr_array(X)):
        with pytest.raises(ValueError, match=rf"row 18, column 2: {said}"):
            fitted(wrong)


def test_tables_with_categories_and_texts_are_read_as_files_are() -> None:
    layout = Layout(text=("words",))
    columns = mixed_columns()
    arrow = pa.table({**columns, "label": Y})
    expected = thresher.train(arrow, rule="ft-ftrl:l1=0.01", layout=layout, passes=1)
    category = pd.DataFrame({**columns, "city": pd.Categorical(columns["city"])})
    for X in (arrow.drop(["label"]), pl.DataFrame(columns), pd.DataFrame(columns), category):
        model = SparseOnlineClassifier(l1=0.01, passes=1, shuffle=False, layout=layout).fit(X, Y)
        keys, weights = expected.weights()
        np.testing.assert_array_equal(model.feature_keys_, keys)
        np.testing.assert_array_equal(model.coef_[0], weights.astype(float))
        assert list(model.feature_names_in_) == ["city", "visits", "words"]
        assert model.n_features_in_ == 3
        order = np.arange(60)[::-1]
        there = X.take(order) if isinstance(X, pa.Table) else X[::-1]
        np.testing.assert_array_equal(model.predict_proba(there)[::-1], model.predict_proba(X))


def test_n_jobs_is_how_many_threads_read_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = thresher.data.table_source, []

    def noted(table: Any, **options: Any) -> Any:
        seen.append(options["threads"])
        return real(table, **options)

    monkeypatch.setattr("thresher.data.inputs.any_data.table_source", noted)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    X = pl.DataFrame(mixed_columns())
    models = [fitted(X, n_jobs=jobs) for jobs in (None, 1, 2, -1, -2, -9)]
    assert seen[::2] == seen[1::2] == [1, 1, 2, 4, 3, 1]  # once for the warnings
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_a_column_called_label_is_a_feature() -> None:
    X = pl.DataFrame({"label": ["x", "y"] * 30})
    model = SparseOnlineClassifier(l1=0.0, random_state=0).fit(X, [1, 0] * 30)
    assert model.score(X, [1, 0] * 30) == 1.0


def test_numeric_columns_of_tables_can_be_scaled() -> None:
    X = pl.DataFrame(mixed_columns()).with_columns(pl.col("visits") * 1000)
    model = fitted(X, scale="max-abs")
    assert model._model.predictor().divisors.by.tolist() == [2000.0]
    numbers = fitted(2000 * np.eye(60), scale="max-abs", centre=False)
    assert set(numbers._model.predictor().divisors.by) == {2000.0}


def test_dictionaries_and_texts() -> None:
    rows = [
        {"city": c, "visits": v}
        for c, v in zip(mixed_columns()["city"], mixed_columns()["visits"], strict=True)
    ]
    model = fitted(rows)
    expected = thresher.train(
        [(row, label) for row, label in zip(rows, Y.tolist(), strict=True)], rule="ft-ftrl:l1=0.01"
    )
    np.testing.assert_array_equal(np.isin(expected.weights()[0], model.feature_keys_), True)
    np.testing.assert_array_equal(fitted(np.array(rows, object)).coef_, model.coef_)
    texts = fitted(mixed_columns()["words"], layout=Layout(ngrams="words=1-2"))
    assert texts.predict(["good", "bad"]).tolist() == [1, -1]
    assert len(texts.feature_keys_) > len(fitted(mixed_columns()["words"]).feature_keys_)
    np.testing.assert_array_equal(
        texts.coef_, fitted(pd.Series(mixed_columns()["words"]), layout=Layout(ngrams="words=1-2")).coef_
    )


def test_what_was_fitted_is_what_can_be_predicted(table: NDArray[Any]) -> None:
    rows, texts, frame = [{"a": 1.0}] * 60, ["a b"] * 60, pl.DataFrame(mixed_columns())
    for X, other in (
        *((table, rows), (table, texts), (rows, texts), (rows, table), (frame, rows), (frame, table)),
    ):
        with pytest.raises(ValueError, match="was fitted on"):
            fitted(X).predict(other)
    wider = frame.with_columns(more=pl.lit("x"))
    with pytest.raises(ValueError, match=r"column 'more' was not in the training data; drop it$"):
        fitted(frame).predict(wider)
    with pytest.raises(ValueError, match=r"column 'more' was not in the training data; drop it$"):
        fitted(frame).partial_fit(wider, Y)
    exposed = frame.with_columns(base=pl.lit(0.5))
    for layout in ({}, {"offset": "base"}):
        with pytest.raises(ValueError, match=r"X: no column 'base'; did you mean 'Base'\?$"):
            fitted(exposed, layout=layout).predict(exposed.rename({"base": "Base"}))
    with pytest.raises(ValueError, match="was fitted on"):
        fitted(table).partial_fit(rows, Y)
    with pytest.raises(ValueError, match="layout"):
        fitted(table, layout=Layout())
    with pytest.raises(ValueError, match=r"city.*visits"):
        fitted(pl.DataFrame(mixed_columns()), layout=Layout(numeric=("nothing",)))


def test_entries_that_are_zero_or_repeated_change_nothing() -> None:
    chance = np.random.default_rng(0)
    dense = chance.normal(size=(60, 4))
    labels = dense[:, 0] + dense[:, 1] > 0
    dense[::2, 1] = 0.0
    halves = [np.repeat(dense.ravel() / 2, 2), np.repeat(np.tile(range(4), 60), 2), np.arange(0, 481, 8)]
    repeated = csr_matrix(tuple(halves), shape=dense.shape)
    before = repeated.copy()
    expected = SparseOnlineClassifier(random_state=0).fit(dense, labels).decision_function(dense)
    for other in (repeated, repeated.tocoo()):
        found = SparseOnlineClassifier(random_state=0).fit(other, labels)
        assert np.array_equal(found.decision_function(dense), expected)
        assert np.array_equal(found.decision_function(other), expected)
    assert np.array_equal(repeated.data, before.data), "X is not changed"


def test_probabilities_of_an_estimator_are_its_own() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = SparseOnlineClassifier().fit(X, np.arange(60) % 3 + 4)
    assert np.array_equal(thresher.predict(model, X, output="probability"), model.predict_proba(X))


@pytest.mark.parametrize(("share", "count"), [("last:0.2", 40), ("last:25%", 50), ("last:30", 30)])
def test_the_last_rows_can_be_held_out(share: str, count: int) -> None:
    """Whatever their labels are, these rows change no weight."""
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(200, 4)), chance.integers(0, 2, 200)
    other = np.concatenate([y[:-count], 1 - y[-count:]])
    more: dict[str, Any] = {"early_stopping": True, "patience": 99, "shuffle": False, "passes": 1}
    found = [
        SparseOnlineClassifier("sgd", validation_fraction=share, random_state=0, **more).fit(X, labels)
        for labels in (y, other)
    ]
    assert np.array_equal(found[0].coef_, found[1].coef_)
    alone = SparseOnlineClassifier("sgd", shuffle=False, passes=1, random_state=0).fit(X[:-count], y[:-count])
    assert np.array_equal(found[0].coef_, alone.coef_)
    with pytest.raises(ValueError, match="would cut groups"):
        SparseOnlineClassifier(validation_fraction=share, early_stopping=True).fit(X, y, groups=y)
    with pytest.raises(ValueError, match="last:0: give a share of the rows"):
        SparseOnlineClassifier(validation_fraction="last:0", early_stopping=True).fit(X, y)


def test_a_table_of_pandas_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, real = list[int](), arrow_files.reader_of

    def counted(table: Any) -> pa.RecordBatchReader:
        made.extend([len(table)] * hasattr(table, "iloc"))
        return real(table)

    monkeypatch.setattr(arrow_files, "reader_of", counted)
    y, frame = [0, 1] * 20, pd.DataFrame({"size": np.arange(40.0), "kind": ["a", "b"] * 20})
    model = SparseOnlineClassifier(names=True).fit(frame, y)
    model.predict(frame.head(3))
    thresher.train(frame.assign(label=np.array(["no", "yes"])[y]), label="label")
    assert made == [40, 3, 40]
