"""Data of odd shapes, types and values: the same model, or one clear error without side effects."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array, csr_matrix

import thresher
from tests.plain import not_compiled
from thresher.parts import make
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

X = np.round(np.random.default_rng(0).normal(size=(20, 4)), 1).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
NAMES = np.array(["no", "yes"])[Y]
# compiled code does not warn
OVERFLOWING = pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")


def classifier(**options: Any) -> SparseOnlineClassifier:
    return SparseOnlineClassifier(random_state=0, **options)


def test_layouts_and_types_of_numbers_change_nothing(tmp_path: Path) -> None:
    expected = classifier().fit(X, Y).coef_
    read_only, sparse = X.copy(), csr_matrix(X)
    read_only.flags.writeable = sparse.data.flags.writeable = sparse.indices.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    swapped, long = X.astype(">f4"), X.astype(np.longdouble)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for given in (
        *(read_only, sparse, mapped, wide),
        np.asfortranarray(X),
        swapped,
        long,
        X.astype(object),
        X.astype(str),
    ):
        np.testing.assert_array_equal(classifier().fit(given, Y).coef_, expected)
    for given in (
        frame.astype("Float32"),
        frame.convert_dtypes(dtype_backend="pyarrow"),
        pl.from_pandas(frame),
    ):
        np.testing.assert_array_equal(classifier().fit(given, Y).coef_, expected)
    whole = np.round(X * 10)
    few = classifier().fit(whole, Y).coef_
    for kind in ("int8", "int64", "float16", "<i2"):
        np.testing.assert_array_equal(classifier().fit(whole.astype(kind), Y).coef_, few)
    np.testing.assert_array_equal(classifier().fit(csr_array(whole.astype("int8")), Y).coef_, few)


def test_labels_of_any_kind_are_the_classes() -> None:
    expected = classifier().fit(X, Y).coef_
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    for y in (
        (Y > 0),
        Y.astype(float),
        Y.tolist(),
        NAMES,
        NAMES.astype(object),
        pd.Series(NAMES, dtype="category"),
        pd.Series(NAMES, dtype="string"),
        pd.Series(Y, dtype="Int64"),
        pl.Series(NAMES),
        np.array([2**62, 2**62 + 1])[Y],
        days[Y],
    ):
        model = classifier().fit(X, y)
        np.testing.assert_array_equal(model.coef_, expected)
        assert np.array_equal(model.classes_, np.unique(np.asarray(y)))


@pytest.mark.parametrize(
    ("y", "error"),
    [
        (np.ones(20), "only 1 class has a weight above zero"),
        (np.where(Y, np.nan, 1.0), "NaN"),
        (X[:, 1], "Unknown label type: continuous"),
        (np.array([1, "yes"], object)[Y], "y mixes labels of types that cannot be compared: int, str"),
        (pd.Series([None, *Y[1:]], dtype="Int64"), "NaN"),
        (np.column_stack([Y * 2, Y]), "zeros and ones"),
    ],
    ids=["one", "nan", "continuous", "mixed", "NA", "several classes"],
)
def test_labels_that_are_none(y: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        classifier().fit(X, y)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"class_weight": {0: -1}}, "class_weight must be a dictionary with finite numbers >= 0"),
        ({"class_weight": [1, 2]}, "class_weight must be a dictionary"),
        ({"average": 10}, "average must be True or False, not 10"),
        ({"n_jobs": 1.5}, "n_jobs must be a whole number or None, not 1.5"),
        ({"early_stopping": True, "validation_fraction": "a"}, "validation_fraction must be a share"),
        ({"l1": "much"}, "ft-ftrl: l1 must be a number, not 'much'"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        classifier(**options).fit(X, Y)


@pytest.mark.parametrize(
    "weights",
    [
        *(-np.ones(20), np.full(20, np.nan), np.zeros(20), np.ones((20, 1)), np.ones(9), np.ones(20) + 1j),
        *("a", np.nan, np.inf, 1 + 1j),
    ],
)
def test_sample_weights_that_cannot_be(weights: Any) -> None:
    for model in (classifier(), SparseOnlineRegressor()):
        with pytest.raises(ValueError, match=r"(?i)weight|convert|complex"):
            model.fit(X, Y, sample_weight=weights)


def test_what_can_be_read_once_is_held() -> None:
    rows = [{"a": float(number % 2), "b": 1.0} for number in range(20)]
    texts = [f"word{number % 3}" for number in range(20)]
    for given in (rows, texts):
        model = classifier().fit(iter(given), Y)
        np.testing.assert_array_equal(model.coef_, classifier().fit(given, Y).coef_)
        np.testing.assert_array_equal(model.predict(part for part in given), model.predict(given))
    table = pa.table({"v": X[:, 0], "w": X[:, 1]})
    model = classifier().fit(table.to_reader(), Y)
    np.testing.assert_array_equal(model.coef_, classifier().fit(table, Y).coef_)
    np.testing.assert_array_equal(model.predict(table.to_reader()), model.predict(table))


def test_one_text_one_row_and_none_are_no_examples() -> None:
    texts, rows = classifier().fit(["a", "b"] * 10, Y), classifier().fit([{"a": 1.0}, {}] * 10, Y)
    for model, one in ((texts, "a"), (rows, {"a": 1.0})):
        with pytest.raises(ValueError, match="give a list of them, not a single one"):
            model.predict(one)
        with pytest.raises(ValueError, match="X contains no examples"):
            model.predict([])
    with pytest.raises(TypeError, match="set"):
        classifier().fit({"a", "b"}, [0, 1])


def test_a_call_that_fails_leaves_the_model_as_it_was() -> None:
    model = classifier(warm_start=False).fit(X, NAMES)
    before, state = pickle.dumps(model), model.predict(X)
    bad = X.copy()
    bad[3, 1] = np.inf
    for given, y in (
        (X[:, :2], np.full(20, "x")),
        ([{"a": 1}] * 20, ["z"] * 20),
        (bad[:, :3], np.arange(20)),
    ):
        with pytest.raises(ValueError, match=r"1 class|row 4, column 1: inf"):
            model.fit(given, y)
        assert pickle.dumps(model) == before
    np.testing.assert_array_equal(model.predict(X), state)
    fresh = classifier()
    with pytest.raises(ValueError, match="row 4, column 1: inf"):
        fresh.partial_fit(bad, Y, classes=[0, 1, 2])
    assert fresh.fit(X, Y).classes_.tolist() == [0, 1], "classes of a call that failed are forgotten"


def test_a_model_keeps_the_parameters_it_learned_with() -> None:
    for options, changed in (
        *(({}, {"l1": 2.0}), ({}, {"loss": "hinge"}), ({"rule": "sgd"}, {"eta0": 0.25})),
        ({"rule": make("rule", "ftrl:l1=0.5")}, {"rule__l1": 1.0}),
        ({}, {"average": True}),
    ):
        with not_compiled():
            model = classifier(warm_start=True, passes=1, **options).partial_fit(X, Y, classes=[0, 1])
            model = pickle.loads(pickle.dumps(model)).set_params(**changed)
            for learn in (model.fit, model.partial_fit):
                with pytest.raises(ValueError, match=r"is .*, but was .* when the model was trained"):
                    learn(X, Y)
            with pytest.raises(ValueError, match="when the model was trained"):
                model.partial_fit(X[:1], Y[:1])
            assert model.set_params(warm_start=False).fit(X, Y).t_ == 21
            model.set_params(passes=2, shuffle=False, class_weight={0: 2.0}, verbose=0).partial_fit(X, Y)


@pytest.mark.usefixtures("plainly")
def test_probabilities_are_those_of_the_loss_that_was_learned_with() -> None:
    model = classifier(loss="hinge").fit(X, Y).set_params(loss="logistic")
    assert not hasattr(model, "predict_proba")
    model = classifier().fit(X, Y)
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.set_params(loss="hinge").predict_proba(X), proba)


@OVERFLOWING
@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("rule", ["ft-ftrl", "ftrl"])
def test_labels_that_break_weights_leave_the_model_as_it_was(rule: str, rows: int) -> None:
    """One row takes the shortcut, two the general path."""
    X = np.random.default_rng(0).normal(size=(50, 6))
    y = X @ np.array([2.0, 1, -1, 0.5, 0, 0])
    model = SparseOnlineRegressor(rule).partial_fit(X, y)
    before = model.predict(X)
    with pytest.raises(ArithmeticError, match="not finite"):
        model.partial_fit(X[:rows], np.array([1.0, 1e30])[-rows:])
    assert (model.predict(X) == before).all()
    assert (model.partial_fit(X, y).predict(X) != before).any()


@pytest.mark.parametrize("dtype", ["f2", ">f4", ">f8", "longdouble", "i1", "?"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_row_of_any_dtype_is_learned(dtype: str, sparse: bool, plainly: None) -> None:
    """A single row takes a shortcut past the conversions of scikit-learn."""
    rows = np.array([[0.5, 0.0, -2.0], [0.0, 1.0, 0.25]]).astype(dtype)
    plain = rows.astype(np.float64)
    X: Any = rows
    if sparse:
        X = csr_array(plain)
        X.data = X.data.astype(dtype)
    given, same = (SparseOnlineRegressor(random_state=0).fit(plain, [1.0, 0.0]) for _ in range(2))
    given.partial_fit(X[:1] if not sparse else _first(X), np.array([2.0], dtype))
    same.partial_fit(plain[:1], [float(np.array(2.0, dtype))])
    assert np.array_equal(given.coef_, same.coef_)


def _first(X: Any) -> Any:
    end = X.indptr[1]
    return csr_array((X.data[:end].astype(np.float64), X.indices[:end], X.indptr[:2]), (1, X.shape[1])).copy()


@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"], [5, 6], [0, 1]])
def test_labels_of_thresher_are_those_of_the_estimator(classes: Any, tmp_path: Path, plainly: None) -> None:
    y = np.array(classes)[np.digitize(X[:, 0], [-0.5, 0.5][: len(classes) - 1])]
    model = classifier().fit(X, y)
    assert thresher.predict(model, X, "label").tolist() == model.predict(X).tolist()
    if isinstance(classes[0], str):
        thresher.save(model, tmp_path / "model")
        assert thresher.predict(tmp_path / "model", X, "label").tolist() == model.predict(X).tolist()
