"""The same examples as a table, a file or rows give the same model."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_matrix

import thresher
from tests.plain import not_compiled
from thresher.data.errors import DataError
from thresher.sklearn import SparseOnlineClassifier

train = partial(thresher.train, passes=1)
chance = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "age": chance.normal(size=60).round(3),
        "hours": chance.integers(0, 9, 60),
        "city": chance.choice(["Rome", "Bonn", "Ulm"], 60),
    }
)
Y = np.where(FRAME.age + (FRAME.city == "Rome") > 0, 1, -1)
WHOLE = FRAME.assign(y=Y)
MATRIX = FRAME[["age", "hours"]].to_numpy()
TABLES: dict[str, Any] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "batches": lambda frame: pa.Table.from_pandas(frame).to_reader(),
    "rows": lambda frame: frame.to_dict("records"),
}
MATRICES = {
    "csr": csr_matrix,
    "csc": csc_matrix,
    "coo": coo_array,
    "dense": np.asarray,
    "frame": pd.DataFrame,
}
table = pytest.mark.parametrize("kind", TABLES)
matrix = pytest.mark.parametrize("kind", MATRICES)
pytestmark = pytest.mark.usefixtures("plainly")


def same(one: thresher.Model, other: thresher.Model) -> None:
    for ours, theirs in zip(one.weights(), other.weights(), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert one.intercept == other.intercept


@pytest.fixture(scope="module")
def model() -> thresher.Model:
    with not_compiled():
        return train(WHOLE, label="y")


@table
def test_a_table_with_its_labels_is_learned(kind: str, model: thresher.Model) -> None:
    assert 2 <= model.nonzero <= 4
    same(train(TABLES[kind](WHOLE), label="y"), model)


def test_the_index_of_a_frame_is_no_feature() -> None:
    sorted_out = WHOLE[WHOLE.hours > 2]
    model = train(sorted_out, label="y")
    assert model.layout.columns == ("age", "hours", "city", "y")
    same(model, train(sorted_out.set_index(sorted_out.hours * 2), label="y"))
    same(model, train(pl.from_pandas(sorted_out), label="y"))


@table
def test_a_table_beside_its_labels_is_learned(kind: str, model: thresher.Model) -> None:
    apart = train(TABLES[kind](FRAME), Y)
    same(train((TABLES[kind](FRAME), Y)), apart)
    if kind == "rows":  # without a layout: names, hashed in the same way, and no columns to centre
        assert apart.layout is None
        apart, model = (train(TABLES[of](FRAME), Y, centre=False) for of in ("rows", "pandas"))
    same(apart, model)


@table
def test_a_table_is_predicted_with_labels_or_without(kind: str, model: thresher.Model) -> None:
    expected = model.predict(FRAME)
    assert expected.shape == (60,)
    assert ((expected > 0) == (Y > 0)).mean() > 0.8
    for weights in (model, model.predictor()):
        for frame in (FRAME, WHOLE):
            assert weights.predict(TABLES[kind](frame)).tobytes() == expected.tobytes()


@table
def test_more_is_learned_from_a_table(kind: str, model: thresher.Model) -> None:
    whole = train(pd.concat([WHOLE, WHOLE]), label="y")
    more = train(WHOLE, label="y")
    more.learn(TABLES[kind](WHOLE))
    same(more, whole)
    beside = train(WHOLE, label="y")
    beside.learn(TABLES[kind](FRAME), Y)
    same(beside, whole)


def test_a_file_is_as_good_as_a_table(model: thresher.Model, tmp_path: Path) -> None:
    WHOLE.to_csv(tmp_path / "a.csv", index=False)
    WHOLE.to_parquet(tmp_path / "a.parquet")
    for path in (tmp_path / "a.csv", str(tmp_path / "a.parquet"), [tmp_path / "a.csv"]):
        assert model.predict(path).tobytes() == model.predict(FRAME).tobytes()
        assert thresher.evaluate(model, path) == thresher.evaluate(model, FRAME, Y)
        fresh = thresher.Model()
        fresh.learn(path, label="y")
        same(fresh, model)
        assert fresh.layout is not None


def test_new_and_empty_columns_can_be_ignored(model: thresher.Model, tmp_path: Path) -> None:
    more = FRAME.assign(id=range(60))
    with pytest.warns(thresher.TroubleWarning, match="column id .the table. is ignored"):
        assert model.predict(more).tobytes() == model.predict(FRAME).tobytes()
    assert model.predict(more, ignore="id").tobytes() == model.predict(FRAME).tobytes()
    (tmp_path / "a.csv").write_text("label,a,b\n" + "1,2,\n0,1,\n" * 9)
    (tmp_path / "b.csv").write_text("label,a,b\n1,2,3\n")
    trained = train(tmp_path / "a.csv")
    with pytest.warns(thresher.TroubleWarning, match="column b .* is ignored"):
        found = trained.predict(tmp_path / "b.csv")
    assert trained.predict(tmp_path / "b.csv", ignore="b").tobytes() == found.tobytes()


def test_importances_stand_beside_labels() -> None:
    weights = chance.integers(1, 4, 60)
    within = train(WHOLE.assign(w=weights), label="y", weight="w")
    beside = train(FRAME, Y, sample_weight=weights)
    same(beside, within)
    assert beside.tally.weight == weights.sum()
    same(train(MATRIX, Y, sample_weight=weights), train((MATRIX, Y, weights)))
    assert beside.predict(FRAME).shape == (60,)
    alone = train(FRAME, Y)
    heavier = thresher.evaluate(alone, FRAME, Y, sample_weight=weights)
    assert heavier["loss"] != thresher.evaluate(alone, FRAME, Y)["loss"]
    repeated = FRAME.loc[FRAME.index.repeat(weights)]
    assert heavier["loss"] == pytest.approx(thresher.evaluate(alone, repeated, Y.repeat(weights))["loss"])
    heavy = thresher.evaluate(beside, FRAME, Y, sample_weight=weights)
    assert heavy == thresher.evaluate(within, WHOLE.assign(w=weights))
    assert heavy["loss"] != thresher.evaluate(beside, FRAME, Y)["loss"]


@matrix
def test_matrices_are_learned_predicted_and_learned_again(kind: str) -> None:
    X = MATRICES[kind](MATRIX)
    expected = train((MATRIX, Y))
    model = train(X, Y) if kind != "frame" else train(MATRIX, Y)
    same(model, expected)
    assert model.predict(X).tobytes() == expected.predict(MATRIX).tobytes()
    assert thresher.evaluate(model, X, Y) == thresher.evaluate(expected, (MATRIX, Y))
    model.learn(X, Y)
    expected.learn(thresher.data.inputs.arrays.chunk_of(MATRIX, Y))
    same(model, expected)


def test_probabilities_of_each_class(model: thresher.Model) -> None:
    found = model.predict_proba(FRAME)
    assert found.shape == (60, 2)
    assert np.array_equal(found[:, 1], model.predict(FRAME, "probability"))
    assert np.allclose(found.sum(axis=1), 1)
    several = train(MATRIX, np.arange(60) % 3, outputs="classes")
    shares = several.predict_proba(MATRIX)
    assert shares.shape == (60, 3)
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(shares.argmax(axis=1), several.predict(MATRIX, "label"))
    with pytest.raises(ValueError, match="gives no probabilities; exponential, logistic, modified-huber"):
        train(MATRIX, Y, loss="hinge").predict_proba(MATRIX)


def test_the_mean_is_the_label() -> None:
    counts: Any = train(MATRIX, np.arange(60) % 3, loss="poisson")
    for output in ("mean", "probability"):
        with pytest.raises(ValueError, match=r"label \(the predicted mean or quantile\)"):
            counts.predict(MATRIX, output)


SETS = np.column_stack([Y > 0, FRAME.age > 40, FRAME.hours > 2]).astype(int)


def test_sets_of_classes_stand_beside_a_table() -> None:
    lists = [(2 + np.flatnonzero(row)).tolist() for row in SETS]
    within = train(FRAME.assign(label=lists), outputs="labels:2-4")
    for sets in (SETS, 2 * SETS - 1, SETS.astype(bool)):
        beside = train(FRAME, sets, outputs="labels:2-4")
        assert beside.weights()[1].tobytes() == within.weights()[1].tobytes()
        assert thresher.evaluate(beside, FRAME, sets) == thresher.evaluate(within, FRAME.assign(label=lists))
    with pytest.raises(DataError, match="expected 4 labels for each example, found 3"):
        train(FRAME, SETS, outputs="labels:2-5")
    with pytest.raises(DataError, match=r"example 1: expected a label -1, 0 or 1.*found 7"):
        train(FRAME, np.full((60, 3), 7), outputs="labels:2-4")


@pytest.mark.parametrize(
    ("targets", "options"),
    [(SETS, {"outputs": "labels:2-4"}), (SETS + 0.5, {"outputs": "values:3", "loss": "squared"})],
)
@matrix
def test_several_labels_are_predicted_for_a_matrix(kind: str, targets: Any, options: dict[str, Any]) -> None:
    model = train(MATRIX, targets, **options)
    expected = model.predict((MATRIX, targets))
    assert expected.shape == (60, 3)
    for weights in (model, model.predictor()):
        assert weights.predict(MATRICES[kind](MATRIX)).tobytes() == expected.tobytes()


def test_texts_for_a_model_of_a_text_column_are_rows() -> None:
    frame = pd.DataFrame({"text": ["a good book", "a bad film"] * 30, "y": [1, 0] * 30})
    model = train(frame, label="y", text="text")
    assert model.predict([{"text": "a good film"}]).shape == (1,)
    with pytest.raises(DataError, match=r"in column 'text': give rows, such as \[\{'text': \.\.\.\}\]"):
        model.predict(["a good film"])
    for path in ("film.csv", "films/*.csv", "my films/?.csv"):
        with pytest.raises(DataError, match="film"):
            model.predict([path])


@pytest.mark.parametrize("X", [MATRIX, FRAME])
def test_masks_are_refused(X: Any) -> None:
    hidden = np.ma.masked_array(Y, mask=Y > 0)
    with pytest.raises(DataError, match="labels y cannot be a masked array"):
        train(X, hidden)
    with pytest.raises(DataError, match="sample_weight cannot be a masked array"):
        train(X, Y, sample_weight=np.ma.masked_array(np.ones(60), mask=Y > 0))


def test_what_labels_are_called() -> None:
    def label(frame: pd.DataFrame, y: Any) -> list[str]:
        layout = train(frame, y).layout
        return [name for name, kind in zip(layout.columns, layout.kinds, strict=True) if kind == "label"]

    assert label(FRAME, Y) == ["label"]
    assert label(FRAME, pd.Series(Y, name="sold")) == ["sold"]
    assert label(FRAME.rename(columns={"age": "label"}), Y) == ["label_"]
    assert label(FRAME, Y > 0) == ["label"]


@pytest.mark.parametrize("result", ["path", "cv", "tune"])
def test_the_best_of_several_models_stands_for_all(result: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "path": {"l1": "0.1:9:3"},
        "cv": {"l1": "0.1:9:3", "folds": 3, "refit": True},
        "tune": {"rules": ["sgd"], "budget": 2},
    }
    found: Any = getattr(thresher, result)(WHOLE, label="y", **options[result])
    best: thresher.Model = found.model if result == "tune" else found.choose("best")
    assert best.nonzero > 0
    thresher.save(found, tmp_path / "m")
    expected = best.predict(WHOLE, "probability")
    for given in (found, tmp_path / "m", best):
        assert np.array_equal(thresher.predict(given, WHOLE, "probability"), expected)
    assert thresher.evaluate(found, WHOLE) == thresher.evaluate(best, WHOLE)


def test_the_package_shows_its_public_names_alone() -> None:
    assert dir(thresher) == sorted(thresher.__all__)
    assert all(hasattr(thresher, name) for name in thresher.__all__)


def test_a_list_of_columns_may_name_one_with_a_comma(tmp_path: Path) -> None:
    frame = pd.DataFrame({"price, net": [1.0, 2.0] * 5, "qty": [3.0, 4.0] * 5, "size": [1.0, 0.0] * 5})
    file = tmp_path / "prices.csv"
    frame.to_csv(file, index=False)
    both: dict[str, Any] = {"loss": "squared", "outputs": "values:2"}
    for data in (frame, str(file)):
        for label in (["price, net", "qty"], ["qty", "price, net"]):
            layout = train(data, label=label, **both).layout
            assert list(layout.labels) == label
    for keyword in ("ignore", "categorical", "numeric", "bins"):
        chosen: dict[str, Any] = {keyword: ["price, net", "qty"]}
        layout = train(frame, label="size", loss="squared", **chosen).layout
        kinds = dict(zip(layout.columns, layout.kinds, strict=True))
        assert kinds["price, net"] == kinds["qty"] == keyword


@pytest.mark.parametrize("missing", [float("nan"), None, pd.NA, pd.NaT])
def test_missing_cells_of_rows_are_missing(missing: Any) -> None:
    """`DataFrame.to_dict` writes them as NaN, in columns of text as well."""
    frame = WHOLE.assign(city=WHOLE.city.where(Y > 0, None), flag=pd.Series([True, None] * 30, dtype=object))
    frame["age"] = frame.age.mask(frame.index % 5 == 0)
    rows = [
        {name: missing if pd.isna(cell) else cell for name, cell in row.items()}
        for row in frame.to_dict("records")
    ]
    model = train(frame, label="y")
    same(train(rows, label="y"), model)
    assert model.predict(rows).tolist() == model.predict(frame).tolist()
    assert [model.predict([row])[0] for row in rows[:6]] == model.predict(frame)[:6].tolist()
    assert thresher.evaluate(model, rows) == thresher.evaluate(model, frame)


_chance = np.random.default_rng(0)
_CELLS = pd.DataFrame({"a": _chance.choice([*"uvwxyz"], 90), "b": _chance.choice([*"pqr"], 90)})
LABELS = np.where((_CELLS.a < "x") ^ (_CELLS.b == "p"), 1, -1)
FRAMES = pd.get_dummies(_CELLS, dtype=float)
OTHER_ORDER = FRAMES[FRAMES.columns[::-1]]
OPTIONS: Any = {"rule": "sgd", "rate": "constant:0.5"}


def _trained(**options: Any) -> thresher.Model:
    return thresher.train(FRAMES, LABELS, **OPTIONS, **options)


@pytest.mark.parametrize(
    "frame",
    [
        FRAMES,
        OTHER_ORDER,
        OTHER_ORDER.astype(np.float32),
    ],
    ids=["same", "order", "floats"],
)
def test_columns_are_matched_by_name(frame: pd.DataFrame) -> None:
    model = _trained()
    expected = model.predict(FRAMES)
    assert len({*np.round(expected, 6)}) > 5
    assert np.array_equal(model.predict(frame), expected)
    assert thresher.evaluate(model, frame, LABELS) == thresher.evaluate(model, FRAMES, LABELS)
    again, other = _trained(), _trained()
    again.learn(FRAMES, LABELS)
    other.learn(frame, LABELS)
    assert np.allclose(again.predict(FRAMES), other.predict(FRAMES))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAMES.iloc[:, 1:], "no column 'a_u'"),
        (FRAMES.assign(more=FRAMES.a_u), "column 'more' was not in the training data"),
        (pd.concat([FRAMES, FRAMES], axis=1), "two columns are called 'a_u'"),
    ],
    ids=["fewer", "more", "twice"],
)
def test_other_columns_are_refused(frame: pd.DataFrame, words: str) -> None:
    estimator = SparseOnlineClassifier(passes=1, **OPTIONS).fit(FRAMES, LABELS)
    with pytest.raises(DataError, match=words):
        thresher.predict(estimator, frame)
    with pytest.raises(ValueError, match=r"feature names|features, but|two columns are called"):
        estimator.predict(frame)


def test_sparse_columns_are_refused_with_what_to_give() -> None:
    sparse = FRAMES.astype(pd.SparseDtype("float32", 0.0))
    part, estimator = FRAMES.assign(more=sparse.a_u), SparseOnlineClassifier(passes=1, **OPTIONS)
    for frame, name in ((sparse, FRAMES.columns[0]), (part, "more")):
        message = f"column '{name}' is sparse: make it dense, or a matrix, X.sparse.to_coo()"
        uses: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (thresher.train, (frame, LABELS)),
            (thresher.train, ((frame, LABELS),)),
            (thresher.predict, (_trained(), frame)),
            (estimator.fit, (frame, LABELS)),
        ]
        for use, arguments in uses:
            with pytest.raises(DataError, match=re.escape(message)):
                use(*arguments)
    same(thresher.train(sparse.sparse.to_coo(), LABELS), thresher.train(FRAMES.to_numpy(), LABELS))


def test_a_column_of_labels_is_one_label_for_each_row() -> None:
    same(train(MATRIX, Y[:, np.newaxis]), train(MATRIX, Y))
    same(train(csr_matrix(MATRIX), pd.DataFrame({"y": Y})), train(MATRIX, Y))
