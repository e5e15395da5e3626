"""Scaled columns and admitted features: definitions, and the laws of models that use them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.intakes import FEATURES, KEYS, LAYOUT, NUMERIC, ROWS, sightings, table
from tests.plain import not_compiled
from tests.streams import Stream, Vector, cut, fingerprint, model_of
from tests.test_laws_of_state import STORES, make_small
from thresher.data import DataError, MemorySource
from thresher.data.chunk import Chunk, concat
from thresher.data.features.murmur import hash_bytes
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.preprocessing import Preprocessor
from thresher.learning.model.scaling import SCALES


@pytest.fixture(scope="module")
def data() -> Stream:
    return table()


def intake_of(
    scale: str | None = None, admit: Any = None, seed: int = 0, layout: Any = LAYOUT
) -> Preprocessor:
    made = Preprocessor(scale, admit, seed)
    made.bind(layout)
    return made


EVERY = np.ones(FEATURES, np.bool_)
SCALED = {"numeric columns": (LAYOUT, NUMERIC), "every feature": (None, EVERY)}
"""layouts, and which features are then scaled"""
scaled = pytest.mark.parametrize("what", SCALED)


# Definition of scales


def largest(seen: Vector) -> Vector:
    found: Vector = np.abs(seen).max(axis=0)
    return np.where(found > 0, found, 1.0)


def deviation(seen: Vector) -> Vector:
    found: Vector = seen.std(axis=0)
    constant = np.where(seen[0] != 0, np.abs(seen[0]), 1.0)
    return np.where((seen == seen[0]).all(axis=0), constant, found)


MEANINGS: dict[str, Callable[[Vector], Vector]] = {"max-abs": largest, "standard": deviation}


def dense(chunk: Chunk) -> Vector:
    X = np.zeros((len(chunk), FEATURES))
    rows = np.repeat(np.arange(len(chunk)), np.diff(chunk.indptr))
    X[rows, np.searchsorted(KEYS, chunk.keys)] = chunk.values
    return X


def test_every_scale_has_its_meaning_written_here() -> None:
    assert set(MEANINGS) == set(SCALES)


@scaled
@pytest.mark.parametrize("name", MEANINGS)
def test_a_value_is_divided_by_what_all_rows_so_far_say(name: str, what: str, data: Stream) -> None:
    layout, columns = SCALED[what]
    intake = intake_of(name, layout=layout)
    found = dense(intake.transform(data.chunk, again=False))
    for t in (*range(30), *range(30, ROWS, 4)):
        by = np.where(columns, MEANINGS[name](data.X[: t + 1]), 1.0)
        assert found[t] == pytest.approx(data.X[t] / by, rel=1e-6, abs=0)
    assert np.count_nonzero(found) == np.count_nonzero(data.X)
    read = dense(intake.read(data.chunk))
    assert read == pytest.approx(data.X / np.where(columns, MEANINGS[name](data.X), 1.0), rel=1e-6, abs=0)
    assert np.abs(read - found).max() > 0.1


@scaled
@pytest.mark.parametrize("name", MEANINGS)
def test_rows_that_come_again_are_not_counted(name: str, what: str, data: Stream) -> None:
    intake = intake_of(name, 2, layout=SCALED[what][0])
    intake.transform(data.chunk, again=False)
    before = {name: array.tobytes() for name, array in intake.state().items()}
    again = intake.transform(table(32).chunk, again=True)
    assert {name: array.tobytes() for name, array in intake.state().items()} == before
    assert set(again.keys) < set(table(32).chunk.keys)
    read = dense(intake.read(table(32).chunk))
    assert dense(again) == pytest.approx(np.where(np.isin(KEYS, again.keys), read, 0.0))


def column(values: list[float], keys: Any = None) -> Chunk:
    key = int(KEYS[NUMERIC][0]) if keys is None else keys
    return Chunk.of_rows([(1.0, {key: value} if value else {}) for value in values])


def test_a_column_far_from_zero_keeps_its_deviation() -> None:
    """The difference of the mean square and the squared mean would have no correct digit."""
    values = np.float32(1e7) + np.arange(500) % 3
    intake = intake_of("standard")
    scaled = intake.transform(column(values.tolist()), again=False)
    assert scaled.values[-1] == pytest.approx(values[-1] / values.astype(float).std(), rel=1e-6)


@pytest.mark.parametrize("name", MEANINGS)
def test_a_constant_column_becomes_ones(name: str) -> None:
    scaled = intake_of(name).transform(column([-0.3, -0.3, -0.3]), again=False)
    assert scaled.values.tolist() == [-1.0, -1.0, -1.0]


@pytest.mark.parametrize("name", MEANINGS)
def test_extreme_numbers_stay_finite(name: str) -> None:
    intake = intake_of(name)
    for values in ([3.4e38, -3.4e38, 1e-45], [1e-45, 1e-44], [0.0, 0.0, 3.4e38]):
        scaled = intake.transform(column(values), again=False)
        assert np.isfinite(scaled.values).all()
        assert np.isfinite(intake.read(column(values)).values).all()
    stored = Chunk.from_csr([0, 1], [int(KEYS[NUMERIC][1])], [0.0], [1.0])
    assert intake.transform(stored, again=False).values.tolist() == [0.0]


# The laws of models that use both

CASES: dict[str, dict[str, Any]] = {
    "ftrl": {"spec": "ftrl:alpha=0.2,l1=0.1"},
    "truncated-gradient": {"spec": "truncated-gradient:gravity=0.02,every=3"},
    "pa, squared": {"spec": "pa:eta=0.5", "loss": "squared"},
    "averaged": {"spec": "fobos:l1=0.05", "average": True},
    "batch": {"spec": "sgd", "batch": 4},
    "classes": {"spec": "adagrad-rda:eta=0.2,l1=0.01", "loss": "softmax", "outputs": "classes:0-1"},
    "every feature": {"spec": "ftrl:alpha=0.2,l1=0.1", "layout": None},
    "every feature, batch": {"spec": "fobos:l1=0.05", "batch": 4, "dtype": "float64", "layout": None},
}
WAYS = [("max-abs", "2,bits=12"), ("standard", "poisson:0.4,bits=12"), ("standard", None), (None, 3)]
laws = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
ways = pytest.mark.parametrize(("scale", "admit"), WAYS)


def half(of: int) -> Any:
    """Every second pair of a case and a way; the other pairs are for the other law."""
    pairs = [(name, k) for c, name in enumerate(CASES) for k in range(len(WAYS)) if (c + k) % 2 == of]
    values = [(CASES[name], *WAYS[k]) for name, k in pairs]
    return pytest.mark.parametrize(
        ("case", "scale", "admit"), values, ids=[f"{name}-{WAYS[k]}" for name, k in pairs]
    )


def made(case: dict[str, Any], **options: Any) -> Model:
    model = model_of(**{"dtype": "float32", "seed": 3, **case, **options})
    model.layout = case.get("layout", LAYOUT)
    return model


def labelled(case: dict[str, Any], chunk: Chunk) -> Chunk:
    labels = (chunk.labels > 0).astype(np.float32) if "outputs" in case else chunk.labels
    return Chunk(chunk.indptr, chunk.keys, chunk.values, labels, chunk.weights)


@half(0)
def test_cutting_and_looking_change_nothing(
    case: dict[str, Any], scale: Any, admit: Any, data: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch)
    chunk, turn = labelled(case, data.chunk), [*CASES.values()].index(case) // 2 + WAYS.index((scale, admit))
    store = STORES[turn % len(STORES)]  # every way meets every store, and every case two of them
    with not_compiled():
        whole, ranges, ones = (made(case, scale=scale, admit=admit, store=store) for _ in range(3))
        whole.learn(chunk)
        for lo, hi in ((0, 1), (1, 1), (1, 50), (50, 51), (51, ROWS)):
            ranges.learn(chunk, lo, hi)
            before = fingerprint(ranges)
            ranges.predict(chunk)
            ranges.readout().predict(chunk)
            assert fingerprint(ranges) == before
        for piece in cut(chunk, list(range(1, ROWS))):
            ones.learn(piece)
    assert fingerprint(ranges) == fingerprint(whole)
    assert fingerprint(ones) == fingerprint(whole)


@half(1)
def test_stopping_changes_nothing(case: Any, scale: Any, admit: Any, data: Stream, tmp_path: Path) -> None:
    chunk, place = labelled(case, data.chunk), tmp_path / "model"
    with not_compiled():
        through, stopped = (made(case, scale=scale, admit=admit) for _ in range(2))
        for lo, hi in ((0, 61), (61, ROWS)):
            through.learn(chunk, lo, hi)
            stopped.learn(chunk, lo, hi)
            model_file.save(stopped, place)
            stopped, _ = model_file.load(place)
        model_file.save(through, tmp_path / "through")
        model_file.save(stopped, place)
    assert place.read_bytes() == (tmp_path / "through").read_bytes()


@pytest.mark.parametrize("name", ["ftrl", "classes", "every feature"])
@ways
@pytest.mark.parametrize("store", ["growing", "hashed:9,signed"])
def test_what_is_saved_is_what_predicts(
    name: str, scale: Any, admit: Any, store: str, data: Stream, tmp_path: Path
) -> None:
    case = CASES[name]
    with not_compiled():
        model = made(case, scale=scale, admit=admit, store=store)
        model.learn(labelled(case, data.chunk))
        model_file.save(model, tmp_path / "model", state=False)
        readout, header = model_file.load_readout(tmp_path / "model")
    new = table(33).chunk
    assert np.abs(model.predict(new) - model.intercept).max() > 0
    assert readout.predict(new).tobytes() == model.predict(new).tobytes()
    assert model.readout().predict(new).tobytes() == model.predict(new).tobytes()
    assert (header["recipe"]["scale"], header["recipe"]["store"]) == (scale, model.store)
    assert not any(name.startswith(("state", "admit")) for name in model_file.read(tmp_path / "model")[1])


@laws
@pytest.mark.parametrize("store", STORES)
def test_features_that_wait_leave_no_trace(case: dict[str, Any], store: str, data: Stream) -> None:
    """The model is that of the same rows without these features."""
    chunk = labelled(case, data.chunk)
    seen = np.array(sightings(chunk)) >= 3
    ends = np.concatenate([[0], np.cumsum(seen)])[chunk.indptr]
    rest = Chunk(ends, chunk.keys[seen], chunk.values[seen], chunk.labels, chunk.weights)
    with not_compiled():
        admitting, plain = made(case, admit="3,bits=20", store=store), made(case, store=store)
        admitting.learn(chunk)
        plain.learn(rest)
    state = fingerprint(admitting)
    assert {name: state[name] for name in fingerprint(plain)} == fingerprint(plain)
    assert admitting.features_seen == plain.features_seen < len(np.unique(chunk.keys))
    assert admitting.features_waiting == len(np.unique(chunk.keys)) - len(np.unique(rest.keys))


def test_a_feature_that_waits_predicts_nothing() -> None:
    with not_compiled():
        model = made(CASES["ftrl"], admit=3)
        model.learn(Chunk.of_rows([(1.0, {1: 1.0}), (1.0, {1: 1.0, 2: 1.0})]))
        assert model.predict(Chunk.of_rows([(0.0, {1: 5.0, 2: 5.0})])) == model.intercept
        assert model.features_seen == 0
        model.learn(Chunk.of_rows([(1.0, {1: 1.0})]))
        assert model.weights()[0].tolist() == [1]
        assert model.features_waiting == 1


@laws
def test_without_them_nothing_is_kept(case: dict[str, Any], data: Stream) -> None:
    with not_compiled():
        plain, first = made(case), made(case, admit=1)
        for model in (plain, first):
            model.learn(labelled(case, data.chunk))
    assert not any(name.startswith(("admit", "scale", "intake")) for name in plain.state())
    assert plain.features_waiting is None
    state = fingerprint(first)
    assert {name: state[name] for name in fingerprint(plain)} == fingerprint(plain)


# Passes, data and errors


def test_later_passes_count_nothing(data: Stream) -> None:
    """Features seen once stay out for good, and scales are those of the data."""
    source = MemorySource(data.chunk)
    source.layout = LAYOUT
    options: dict[str, Any] = {"rule": "sgd", "scale": "standard", "centre": False, "admit": "2,bits=20"}
    model = thresher.train(source, passes=3, **options)
    often = Counter(data.chunk.keys.tolist())
    assert min(often.values()) == 1
    assert model.features_seen == sum(count > 1 for count in often.values())
    divisors = model.readout().divisors
    assert divisors.keys.tolist() == KEYS[NUMERIC].tolist()
    assert divisors.by == pytest.approx(deviation(data.X)[NUMERIC], rel=1e-9)
    by_hand = Model(**options)
    by_hand.layout = LAYOUT
    for number in range(3):
        by_hand.learn(data.chunk, again=number > 0)
    assert fingerprint(by_hand) == fingerprint(model)


def test_what_cannot_be_scaled_is_told_before_anything_is_learned(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,kind\n1,a\n0,b\n")
    with pytest.raises(DataError, match="nothing to scale by standard: the table has no numeric columns"):
        thresher.train(tmp_path / "a.csv", scale="standard")
    with pytest.raises(ValueError, match="no scale is called 'unit'; known: max-abs, standard"):
        Model(scale="unit")


@pytest.mark.parametrize("spec", ["simplex:features=9", "eg:features=9,signed=false"])
def test_where_every_feature_has_a_weight_none_can_wait(spec: str) -> None:
    with pytest.raises(ValueError, match=r"its weights do not start at zero.* wait to be admitted"):
        model_of(spec, admit=2)


def test_the_scale_of_a_table_is_that_of_its_columns(tmp_path: Path) -> None:
    """Raw columns give the same model as columns divided in advance."""
    rng = np.random.default_rng(7)
    rows = np.round(rng.normal(size=(60, 2)) * [1000.0, 0.01], 6)
    (tmp_path / "a.csv").write_text(
        "label,x,y,z\n" + "".join(f"{int(x > 0)},{x},{y},{'ab'[k % 2]}\n" for k, (x, y) in enumerate(rows))
    )
    model = thresher.train(tmp_path / "a.csv", "sgd", scale="max-abs")
    layout = model.layout
    assert layout is not None
    keys = [hash_bytes(name.encode()) for name in "xy"]
    source = thresher.open_source(tmp_path / "a.csv", layout=layout)
    divided, seen = [], dict.fromkeys(keys, 0.0)
    for chunk in source.chunks():
        values = chunk.values.copy()
        for p, key in enumerate(chunk.keys.tolist()):
            if key in seen:
                seen[key] = max(seen[key], abs(float(values[p])))
                values[p] /= seen[key]
        divided.append(Chunk(chunk.indptr, chunk.keys, values, chunk.labels, chunk.weights))
    plain = Model("sgd")
    plain.learn(concat(divided))
    assert plain.weights()[0].tolist() == model.weights()[0].tolist()
    assert plain.weights()[1] == pytest.approx(model.weights()[1], rel=1e-6)
