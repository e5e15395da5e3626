"""Centred columns: their definition, the laws of models that have them, and weights for raw values."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import thresher
from tests import oracles
from tests.covering import covering
from tests.data.logs import NOON, LogEntry, write_log
from tests.streams import (
    Stream,
    Vector,
    model_of,
    stream_of,
)
from thresher import parts
from thresher.cluster.packing import Packer, unpack
from thresher.data.chunk import Chunk, concat
from thresher.data.errors import DataError
from thresher.data.inputs.arrays import chunk_of
from thresher.data.log.records import ROWS as OF_ROWS
from thresher.data.log.source import LogSource
from thresher.data.order import StoredRows
from thresher.data.sources.reader import Arenas, LineTally, Parsed
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.preprocessing import Preprocessor
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.warm_start import start_from
from thresher.serving.appending import KeptRow

pytestmark = pytest.mark.usefixtures("plainly")

ROWS = 150
SHARES = np.array([1.0, 1.0, 0.99, 0.95, 0.93, 0.88, 0.5, 0.1, 0.02])
"""how often each feature is not zero"""
MEANS = np.array([3.0, -200.0, 1.0, 2.0, 0.0, 5.0, 1.0, 1.0, 1.0])


def columns(seed: int, rows: int = ROWS, labels: Any = None) -> Stream:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(rows, len(SHARES)))
    stored = rng.random(noise.shape) < SHARES
    margin = noise @ np.linspace(-1, 1, len(SHARES))
    y = np.where(margin + rng.normal(size=rows) > 0, 1.0, -1.0) if labels is None else labels(margin)
    return stream_of(np.where(stored, noise + MEANS, 0.0), stored, y, rng.choice([0.5, 1.0, 2.0], rows))


def centred(X: Vector, missing: Any = None) -> tuple[Vector, Vector]:
    """The definition, in plain words: values of each row less the means so far; and the last means.

    The mean is NaN for a column that is not centred.
    """
    missing = np.zeros(X.shape, bool) if missing is None else missing
    out, means = np.where(missing, 0.0, X), np.full(X.shape[1], np.nan)
    for j in range(X.shape[1]):
        known: list[float] = []
        first = next((t for t in range(len(X)) if X[t, j] != 0 or missing[t, j]), len(X))
        for t in range(len(X)):
            known += [] if missing[t, j] else [float(X[t, j])]
            zeros = known.count(0.0)
            if first > 2 or (len(known) <= 100 and zeros > 2 and zeros > len(known) / 10):
                means[j] = np.nan
                break
            if t >= first:
                means[j] = np.mean(known) if known else 0.0
                out[t, j] = 0.0 if missing[t, j] else X[t, j] - means[j]
        else:
            continue
    return out, means


def dense(chunk: Chunk, features: int = len(SHARES)) -> Vector:
    X = np.zeros((len(chunk), features))
    X[np.repeat(np.arange(len(chunk)), np.diff(chunk.indptr)), chunk.keys.astype(int)] = chunk.values
    return X


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_of_the_values_so_far_is_subtracted(seed: int) -> None:
    data, intake = columns(seed), Preprocessor(centre=True)
    found = dense(intake.transform(data.chunk, again=False))
    expected, means = centred(data.X)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert 3 <= np.isfinite(means).sum() < len(SHARES)
    less = np.where(np.isfinite(means), means, 0.0)
    assert dense(intake.read(data.chunk)) == pytest.approx(data.X - less, rel=1e-6, abs=1e-6)
    assert dense(intake.transform(data.chunk, again=True)) == pytest.approx(data.X - less, rel=1e-6, abs=1e-6)


def test_features_of_texts_are_left_as_they_are() -> None:
    rng = np.random.default_rng(1)
    stored = rng.random((ROWS, 40)) < 0.1
    data = stream_of(np.ones(stored.shape), stored, np.ones(ROWS), np.ones(ROWS))
    intake = Preprocessor(centre=True)
    intake.transform(data.chunk, again=False)
    assert intake.read(data.chunk) is data.chunk


CASES: dict[str, dict[str, Any]] = {
    "default": {"spec": "ft-ftrl"},
    "ftrl": {"spec": "ftrl:alpha=0.2,l1=0.1"},
    "truncated-gradient": {"spec": "truncated-gradient:gravity=0.02,every=3"},
    "squared": {"spec": "ft-ftrl", "loss": "squared"},
    "averaged": {"spec": "fobos:l1=0.05", "average": True},
    "batch": {"spec": "ft-ftrl", "batch": 4},
    "classes": {"spec": "ft-ftrl", "loss": "softmax", "outputs": "classes:0-1"},
    "scaled": {"spec": "sgd", "scale": "standard"},
    "admitted": {"spec": "sgd", "scale": "max-abs", "admit": "2,bits=12"},
}
laws = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def made(case: dict[str, Any], **options: Any) -> Model:
    return model_of(**{"dtype": "float32", "seed": 3, "centre": True, **case, **options})


def data_for(case: dict[str, Any], seed: int = 5) -> Stream:
    return columns(seed, labels=(lambda m: (m > 0) * 1.0) if "outputs" in case else None)


@laws
def test_weights_are_for_values_as_they_are(case: dict[str, Any], tmp_path: Path, plainly: None) -> None:
    data, model = data_for(case), made(case, dtype="float64")
    model.learn(data.chunk)
    model.finish()
    model.save(tmp_path / "model")
    margins, predictor = model.predict(data.chunk), thresher.load(tmp_path / "model")
    np.testing.assert_array_equal(predictor.predict(data.chunk), margins)
    weights = predictor.weights.reshape(len(predictor.keys), -1).astype(float)
    if predictor.divisors is not None:
        weights = weights / predictor.divisors.at(predictor.keys)[:, np.newaxis]
    plain = data.X[:, predictor.keys.astype(int)] @ weights + predictor.bias
    assert plain.reshape(margins.shape) == pytest.approx(margins, rel=1e-4, abs=1e-4)
    assert np.asarray(model.intercept) == pytest.approx(np.asarray(predictor.intercept))
    assert not np.allclose(predictor.bias, predictor.centred_bias)


@pytest.mark.parametrize("spec", ["ft-ftrl", "ftrl:alpha=0.2,l1=0.1", "sgd", "adagrad-rda:eta=0.2,l1=0.01"])
def test_rules_see_the_centred_values(spec: str) -> None:
    """Law 1, with the dense oracle of centring before that of the rule."""
    data = columns(8)
    X = centred(data.X)[0].astype(np.float32).astype(float)
    model = model_of(spec, centre=True)
    model.learn(data.chunk)
    rule = model.rule
    trace = oracles.run(
        parts.part_name(type(rule)), rule, model.loss, X, data.y, data.importance, intercept=True
    )
    predictor = model.predictor()
    found = np.zeros(len(SHARES))
    found[predictor.keys.astype(int)] = predictor.weights
    assert found == pytest.approx(trace.weights, rel=1e-6, abs=1e-6)
    assert float(predictor.centred_bias[0]) == pytest.approx(trace.intercept, rel=1e-6, abs=1e-6)


FRAME = pd.DataFrame(
    {
        "y": [int(k % 5 > 2) if k % 7 != 3 else k % 2 for k in range(60)],
        "a": [None if k % 7 == 3 else 5.0 + k % 5 for k in range(60)],
        "b": [0.0 if k % 20 == 19 else 100.0 + k % 2 for k in range(60)],
        "c": ["x" if k % 3 else "z" for k in range(60)],
    }
)
LABELLED: Any = {"label": "y", "centre": True, "passes": 1}


FORMS = {"csv": "to_csv", "parquet": "to_parquet", "jsonl": "to_json"}


def lacking(form: str, frame: pd.DataFrame, path: Path) -> Any:
    path = path.with_suffix(f".{form}")
    if form == "jsonl":
        rows = (
            {k: v for k, v in row.items() if v == v and v is not None} for row in frame.to_dict("records")
        )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        getattr(frame, FORMS[form])(path, index=False)
    return path


def same_means(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found.means.keys, expected.means.keys)
    np.testing.assert_array_equal(found.means.means, expected.means.means)


@pytest.mark.parametrize("form", FORMS)
def test_every_format_tells_a_missing_number_from_zero(form: str, tmp_path: Path) -> None:
    model, other = (
        thresher.train(data, **LABELLED) for data in (FRAME, lacking(form, FRAME, tmp_path / "rows"))
    )
    found, expected = (one.predictor() for one in (other, model))
    same_means(found, expected)
    np.testing.assert_array_equal(found.weights, expected.weights)
    means = dict(zip(("a", "b"), (FRAME.a.mean(), FRAME.b.mean()), strict=True))
    assert sorted(found.means.means) == pytest.approx(sorted(means.values()))
    rows = pd.DataFrame({"a": [None, means["a"], 0.0], "b": [means["b"], None, 0.0], "c": ["x"] * 3})
    one, two, three = other.predict(rows)
    assert one == pytest.approx(two, abs=1e-5)
    assert three != pytest.approx(one, abs=1e-3)


@pytest.mark.filterwarnings("ignore:.*missing-columns")
@pytest.mark.parametrize(
    ("form", "options", "first"),
    [*covering(FORMS, [{}, {"bits": 3}, {"interact": "a,b"}], [True, False]), *covering(FORMS, [{}], [True])],
)
def test_a_column_that_a_file_lacks_is_missing(form: str, options: Any, first: bool, tmp_path: Path) -> None:
    with_a, without = FRAME[:30], FRAME[30:].drop(columns="a")
    order = [without, with_a] if first else [with_a, without]
    parts = [lacking(form, frame, tmp_path / f"part{k}") for k, frame in enumerate(order)]
    whole = lacking(form, pd.concat(order), tmp_path / "whole")
    reading = {**LABELLED, **options, "numeric": "a"}
    found, expected = (thresher.train(data, **reading) for data in (parts, whole))
    same_means(found.predictor(), expected.predictor())
    np.testing.assert_array_equal(found.predictor().weights, expected.predictor().weights)
    empty = lacking(form, FRAME.assign(a=None), tmp_path / "empty")
    asked = [empty, lacking(form, FRAME.drop(columns="a"), tmp_path / "asked"), FRAME.drop(columns="a")]
    answers, *others = (found.predict(data) for data in asked)
    for other in others:
        np.testing.assert_array_equal(other, answers)
    assert not np.allclose(found.predict(FRAME.assign(a=0.0)), answers, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*missing-columns")
def test_a_column_that_is_lacking_everywhere_else_is_missing_too() -> None:
    model, rows, holes = thresher.train(FRAME, **LABELLED), FRAME.drop(columns="a"), FRAME.assign(a=None)
    np.testing.assert_array_equal(model.predict(rows.to_dict("records")), model.predict(holes))
    judged = [thresher.evaluate(model, data, label="y") for data in (rows, holes)]
    assert judged[0] == judged[1]
    held = [thresher.train(FRAME, holdout=data, **LABELLED).holdout for data in (rows, holes)]
    assert held[0] == held[1] is not None
    begun = [thresher.train(data, init=model, **LABELLED) for data in (rows, holes)]
    np.testing.assert_array_equal(begun[0].predictor().weights, begun[1].predictor().weights)
    kept, grown = (one.predictor().means for one in (model, begun[0]))
    assert grown.means.min() == kept.means.min() == pytest.approx(FRAME.a.mean())
    for one, data in zip(begun, (rows, holes), strict=True):
        one.learn(data)
    np.testing.assert_array_equal(begun[0].predict(FRAME), begun[1].predict(FRAME))


def test_a_product_with_a_missing_number_adds_nothing() -> None:
    model = thresher.train(FRAME, interact="a,b", **LABELLED)
    a, b = model.predict(FRAME.assign(a=None)), model.predict(FRAME.assign(a=None, b=101.0))
    assert np.isfinite(a).all()
    assert np.isfinite(b).all()


def test_a_model_goes_on_with_the_means_of_the_weights_it_starts_from() -> None:
    first, rows = columns(11), columns(12)
    before = thresher.train(first.chunk, centre=True)
    started = Model(Recipe("ft-ftrl", centre=True))
    start_from(started, before.predictor())
    np.testing.assert_allclose(started.predict(rows.chunk), before.predict(rows.chunk), rtol=1e-5, atol=1e-5)
    started.learn(rows.chunk)
    means = started.predictor().means
    both = np.concatenate([first.X, rows.X]).mean(axis=0)[means.keys.astype(int)]
    assert means.means == pytest.approx(both)
    plain = thresher.train(rows.chunk, "ftrl:alpha=0.001", init=before)
    assert not plain.recipe.centre
    assert not thresher.train(rows.chunk, init=thresher.train(first.chunk, centre=False)).recipe.centre


def test_weights_for_other_values_are_refused() -> None:
    plain = model_of("ft-ftrl", centre=False)
    plain.learn(columns(11).chunk)
    with pytest.raises(ValueError, match="for values as they are: leave centre out"):
        start_from(Model(Recipe("ft-ftrl", centre=True)), plain.predictor())


@pytest.mark.parametrize("count", [-1.0, np.inf])
def test_counts_of_means_are_checked(count: float, tmp_path: Path) -> None:
    model = made(CASES["ftrl"])
    model.learn(columns(3).chunk)
    model_file.save(model, tmp_path / "model", state=False)
    header, tensors = model_file.read(tmp_path / "model")
    tensors = {**tensors, "centre.counts": np.full_like(tensors["centre.counts"], count)}
    model_file.write(tmp_path / "model", header, tensors)
    with pytest.raises(model_file.ModelFileError, match=r"centre\.counts"):
        thresher.load(tmp_path / "model")


def test_the_scale_standard_centres_and_a_name_of_a_rule_does_not() -> None:
    assert Recipe("sgd", scale="standard").centre
    assert not Recipe("sgd", scale="standard", centre=False).centre
    assert not Recipe("sgd").centre
    assert not Recipe("sgd", scale="max-abs").centre


def times(far: float) -> pd.DataFrame:
    """Rows whose labels depend on the digits of a large number."""
    k = np.random.default_rng(4).integers(0, 1000, 80)
    return pd.DataFrame({"y": (k > 500) * 1, "t": k / 4 + far, "z": k % 7, "c": np.where(k % 3, "u", "v")})


def written(form: str, frame: pd.DataFrame, folder: Path) -> Any:
    """The frame in a format; CSV with blanks, signs and exponents."""
    path = folder / f"rows.{form}"
    if form == "frame":
        return frame
    if form == "parquet":
        frame.to_parquet(path)
    elif form == "jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        cells = [f'"{t:+.2f}"' if k % 2 else f" {t * 100:.0f}e-2" for k, t in enumerate(frame.t)]
        frame.assign(t=cells).to_csv(path, index=False, quoting=csv.QUOTE_NONE)
    return path


@pytest.mark.parametrize(
    ("form", "options"),
    covering(["csv", "jsonl", "parquet", "frame"], [{}, {"bits": 20, "interact": "z,c"}]),
)
def test_digits_of_large_numbers_are_not_lost(form: str, options: Any, tmp_path: Path) -> None:
    near, far = times(0.0), times(1.6e9)
    expected, same = (thresher.train(data, **LABELLED, **options) for data in (near, far))
    model = thresher.train(written(form, far, tmp_path), **LABELLED, **options)
    model.save(tmp_path / "model")
    found, weights = model.predictor(), expected.predictor()
    np.testing.assert_array_equal(found.keys, weights.keys)
    np.testing.assert_array_equal(found.weights, same.predictor().weights)
    assert found.weights == pytest.approx(weights.weights, rel=1e-5)
    for one in (model, thresher.load(tmp_path / "model")):
        answers = one.predict(written(form, far, tmp_path))
        np.testing.assert_array_equal(answers, same.predict(far))
        assert answers == pytest.approx(expected.predict(near), abs=1e-5)


def test_a_model_that_is_taught_tells_what_is_missing_and_keeps_digits() -> None:
    frame = times(1.6e9)
    frame.loc[::9, "t"] = None
    model = Model(Recipe("ft-ftrl", centre=True))
    model.learn(frame.rename(columns={"y": "label"}))
    found, expected = model.predictor(), thresher.train(frame, **LABELLED).predictor()
    same_means(found, expected)
    assert found.means.means.max() == pytest.approx(frame.t.mean(), rel=1e-12)


def as_pairs(X: Vector, y: Vector) -> Any:
    return [(dict(zip("tz", row, strict=True)), label) for row, label in zip(X.tolist(), y, strict=True)]


def test_rests_go_where_values_go(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.integers(0, 2**40, (12, 3)).astype(float), columns=["0", "1", "2"])
    X.iloc[::4, 1] = np.nan
    chunk = chunk_of(X, np.ones(12), gaps=True)
    assert chunk.rests is not None
    assert np.isnan(chunk.rests).sum() == 3
    chunk.check()
    plain, stored = Chunk.of_rows([(1.0, {0: 1.0, 1: 2.0})]), StoredRows()
    for rows in (plain, chunk, plain):
        stored.add(rows)
    whole = concat([plain, chunk, plain])
    packed = unpack(Packer().pack(Parsed(chunk, LineTally(), [], b"")), Arenas(2)).chunk
    entries = [LogEntry(OF_ROWS, rows, {}, NOON) for rows in (plain, chunk, plain)]
    logged = concat([*LogSource(write_log(tmp_path / "log", entries, None, "real")).chunks()])
    stored.trim()
    found = [*(whole, stored.chunk(), stored.chunk().take(np.arange(14)), concat([*stored.chunks()]), logged)]
    kept = [KeptRow.of(chunk, k, 0, False)._replace(given=(1.0, 1.0)).labelled() for k in range(12)]
    for one in (*(some.rows(1, 13) for some in found), concat(kept), packed):
        one.check()
        for name, array in chunk.arrays().items():
            assert getattr(one, name).tobytes() == array.tobytes(), name
    with pytest.raises(DataError, match="must be finite, or NaN"):
        replace(chunk, rests=np.full(chunk.nnz, np.inf, np.float32)).check()


def test_rests_of_column_0_go_with_offsets() -> None:
    rng = np.random.default_rng(9)
    X = rng.integers(2**30, 2**30 + 100, (60, 2)) * np.array([1.0, 1e-9])
    y, offsets = (X[:, 0] % 2).astype(int), rng.normal(size=60)
    models = [
        thresher.train(one, y, offsets=offsets, centre=True, rule="ftrl", passes=2) for one in (X, X[:, ::-1])
    ]
    assert models[0].predict(X, offsets=offsets) == pytest.approx(
        models[1].predict(X[:, ::-1], offsets=offsets)
    )
    assert models[0].features_seen == 2


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, as_pairs])
def test_digits_of_matrices_and_dictionaries_are_not_lost(form: Any) -> None:
    near, far = times(0.0), times(1.6e9)
    rows = [frame[["t", "z"]].to_numpy() for frame in (near, far)]
    pairs = form is as_pairs
    data = [form(X, near.y) if pairs else (form(X), near.y.to_numpy()) for X in rows]
    expected, model = (thresher.train(one, centre=True, passes=1, dtype="float64") for one in data)
    assert model.predictor().weights == pytest.approx(expected.predictor().weights, rel=1e-5)
    asked = [[row for row, _ in one] if pairs else one[0] for one in data]
    assert model.predict(asked[1]) == pytest.approx(expected.predict(asked[0]), abs=1e-5)
    assert len(model.predictor().keys) == 2
    if not pairs:
        predictor = model.predictor()
        assert model.numbering == expected.numbering
        plain = rows[1] @ predictor.weights.astype(float) + model.intercept
        assert plain == pytest.approx(model.predict(asked[1]), abs=1e-6)
        assert predictor.intercept == model.intercept


def test_a_missing_value_of_a_frame_that_is_a_matrix_means_the_mean() -> None:
    X = pd.DataFrame({"a": FRAME.a, "b": FRAME.b})
    model = thresher.train((X.fillna(7.0).to_numpy(), FRAME.y.to_numpy()), centre=True)
    means = model.predictor().means
    asked = pd.DataFrame([[None, means.means[1]], [means.means[0], None], [0.0, 0.0]], dtype=float)
    one, two, three = model.predict(asked)
    assert one == pytest.approx(two, abs=1e-5)
    assert three != pytest.approx(one, abs=1e-3)
    stored = sparse.csr_array(([0.0, means.means[1]], [0, 1], [0, 2]), shape=(1, 2))
    assert model.predict(stored) == model.predict(stored.toarray())
    assert model.predict(stored)[0] != pytest.approx(one, abs=1e-3)
