"""Scaled columns and admitted features: definitions, and the laws of models that use them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import thresher
from tests.covering import covering
from tests.intakes import FEATURES, KEYS, LAYOUT, NUMERIC, ROWS, sightings, table
from tests.plain import not_compiled
from tests.streams import Stream, Vector, fingerprint, model_of
from tests.test_laws_of_state import STORES
from thresher.data import DataError, MemorySource
from thresher.data.chunk import Chunk
from thresher.data.layout import SettledLayout
from thresher.learning.files import model_file
from thresher.learning.model import scaling
from thresher.learning.model.model import Model
from thresher.learning.model.preprocessing import Admission, Preprocessor, admission_spec
from thresher.learning.model.scaling import SCALES

pytestmark = pytest.mark.usefixtures("plainly")


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


def made(case: dict[str, Any], **options: Any) -> Model:
    model = model_of(**{"dtype": "float32", "seed": 3, **case, **options})
    model.layout = case.get("layout", LAYOUT)
    return model


def labelled(case: dict[str, Any], chunk: Chunk) -> Chunk:
    labels = (chunk.labels > 0).astype(np.float32) if "outputs" in case else chunk.labels
    return Chunk(chunk.indptr, chunk.keys, chunk.values, labels, chunk.weights)


@pytest.mark.parametrize(("case", "store"), covering(CASES.values(), STORES))
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


def test_without_them_nothing_is_kept(data: Stream) -> None:
    case = CASES["ftrl"]
    with not_compiled():
        plain, first = made(case), made(case, admit=1)
        for model in (plain, first):
            model.learn(labelled(case, data.chunk))
    assert not any(name.startswith(("admit", "scale", "intake")) for name in plain.state())
    assert plain.features_waiting is None
    state = fingerprint(first)
    assert {name: state[name] for name in fingerprint(plain)} == fingerprint(plain)


def test_later_passes_count_nothing(data: Stream) -> None:
    """Features seen once stay out for good, and scales are those of the data."""
    source = MemorySource(data.chunk)
    source.layout = LAYOUT
    options: dict[str, Any] = {"rule": "sgd", "scale": "standard", "centre": False, "admit": "2,bits=20"}
    model = thresher.train(source, passes=3, **options)
    often = Counter(data.chunk.keys.tolist())
    assert min(often.values()) == 1
    assert model.features_seen == sum(count > 1 for count in often.values())
    divisors = model.predictor().divisors
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
    with pytest.raises(ValueError, match="scale must be max-abs or standard, not 'unit'"):
        Model(scale="unit")


@pytest.mark.parametrize("spec", ["simplex:features=9", "eg:features=9,signed=false"])
def test_where_every_feature_has_a_weight_none_can_wait(spec: str) -> None:
    with pytest.raises(ValueError, match=r"its weights do not start at zero.* wait to be admitted"):
        model_of(spec, admit=2)


ALL = SettledLayout("csv", bits=LAYOUT.bits, columns=LAYOUT.columns, kinds=("numeric",) * FEATURES)
scales = pytest.mark.parametrize("scale", scaling.SCALES)
chance = np.random.default_rng(5)
X = (chance.normal(size=(80, 5)) * 10.0 ** np.arange(-4, 6, 2)).round(6) * (chance.random((80, 5)) < 0.7)
Y = np.where((X / X.std(axis=0)).sum(axis=1) + chance.normal(size=80) / 4 > 0, 1, -1)


def weights(model: Any) -> list[bytes]:
    return [array.tobytes() for array in model.weights()]


@scales
@pytest.mark.parametrize("store", ["growing", "direct", "hashed:9"])
def test_a_feature_is_scaled_as_a_numeric_column_is(scale: str, store: str) -> None:
    data = table().chunk
    by_column, by_feature = (Model("sgd", scale=scale, store=store) for _ in range(2))
    by_column.layout = ALL
    for model in (by_column, by_feature):
        model.learn(data)
    assert weights(by_feature) == weights(by_column)
    assert by_feature.predict(data).tobytes() == by_column.predict(data).tobytes()
    assert by_feature.predictor().predict(data).tobytes() == by_column.predict(data).tobytes()


@scales
def test_room_for_features_leaves_no_trace(scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for room in (1, 7, 1 << 12):
        monkeypatch.setattr(scaling, "FIRST_ROOM", room)
        model = Model("ftrl", scale=scale)
        for piece in range(0, 150, 10):
            model.learn(table().chunk, piece, piece + 10)
        found.append(fingerprint(model))
    assert found[0] == found[1] == found[2]


@scales
def test_what_waits_is_measured_too(scale: str) -> None:
    """Statistics cover all examples, including those before the feature was admitted."""
    rows = [{1: 4.0, 2: 1.0}, {1: -2.0}, {1: 1.0}]
    model = Model("sgd", scale=scale, centre=False, admit=3)
    model.learn(Chunk.of_rows([(1.0, row) for row in rows]))
    divisors = model.predictor().divisors
    assert model.weights()[0].tolist() == [1]
    expected = {"max-abs": 4.0, "standard": np.std([4.0, -2.0, 1.0])}[scale]
    assert divisors.by.tolist() == pytest.approx([expected])


@scales
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_file_has_the_divisors_of_the_weights_there_are(scale: str, dtype: str, tmp_path: Path) -> None:
    model = Model("ftrl:alpha=1,l1=2", scale=scale, dtype=dtype)
    model.learn(table().chunk)
    model.save(tmp_path / "m")
    tensors = model_file.read(tmp_path / "m")[1]
    assert 0 < model.nonzero < len(tensors["state.scale.keys"]) == len(np.unique(table().chunk.keys))
    assert tensors["scale.keys"].tolist() == model.weights()[0].tolist()
    new = table(33).chunk
    assert thresher.load(tmp_path / "m").predict(new).tobytes() == model.predict(new).tobytes()
    again = Model.load(tmp_path / "m")
    model.learn(new)
    again.learn(new)
    assert fingerprint(again) == fingerprint(model)


def test_features_that_weigh_elsewhere_keep_all_divisors() -> None:
    model = Model(f"simplex:features={FEATURES}", "squared", scale="max-abs", intercept=False)
    model.learn(table().chunk)
    new = table(33).chunk
    assert model.predictor().predict(new).tobytes() == model.predict(new).tobytes()


@scales
def test_files_matrices_and_tables_of_numbers_agree(scale: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rule": "sgd", "scale": scale, "passes": 3}
    lines = [
        f"{y} " + " ".join(f"{k}:{np.float32(x)!s}" for k, x in enumerate(row) if x)
        for y, row in zip(Y, X, strict=True)
    ]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    of_matrix = thresher.train(X, Y, **options)
    for data in ((csr_matrix(X), Y), (tmp_path / "a.svm",)):
        assert weights(thresher.train(*data, **options)) == weights(of_matrix)
    vw = [line.replace(" ", " | ", 1) for line in lines]
    (tmp_path / "a.vw").write_text("\n".join(vw) + "\n")
    assert weights(thresher.train(tmp_path / "a.vw", **options)) == weights(of_matrix)
    frame = pd.DataFrame(X, columns=[*"abcde"])
    of_frame = thresher.train(frame, Y, **options)
    assert sorted(of_frame.weights()[1]) == sorted(of_matrix.weights()[1])
    assert (
        thresher.evaluate(of_frame, frame, Y)["error"]
        < thresher.evaluate(thresher.train(X, Y, rule="sgd", passes=3), X, Y)["error"]
    )


def visits(seed: int, rows: int, names: int) -> Chunk:
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, names, np.uint64)
    found = [np.unique(keys[np.minimum(rng.zipf(1.3, 8), names) - 1]) for _ in range(rows)]
    indptr = np.cumsum([0, *(len(row) for row in found)])
    return Chunk.from_csr(indptr, np.concatenate(found), np.ones(indptr[-1]), np.ones(rows))


def is_in(chunk: Chunk, kept: Chunk) -> list[bool]:
    pairs = {
        (i, key) for i in range(len(kept)) for key in kept.keys[kept.indptr[i] : kept.indptr[i + 1]].tolist()
    }
    rows = np.repeat(np.arange(len(chunk)), np.diff(chunk.indptr)).tolist()
    return [(i, key) in pairs for i, key in zip(rows, chunk.keys.tolist(), strict=True)]


@pytest.mark.parametrize("needed", [1, 2, 7, 255])
def test_a_feature_enters_at_its_nth_sighting(needed: int) -> None:
    chunk = visits(1, 2000, 3000)
    admission = Admission(f"{needed},bits=22", 3)
    kept = admission.transform(chunk, 0, False)
    counts = sightings(chunk)
    assert max(counts) > 300
    assert is_in(chunk, kept) == [count >= needed for count in counts]
    often = Counter(chunk.keys.tolist())
    assert admission.waiting == sum(count < needed for count in often.values())
    assert kept.labels is chunk.labels


def test_false_positives_enter_too_early_and_none_too_late() -> None:
    chunk = visits(2, 3000, 3000)
    kept = is_in(chunk, Admission("4,bits=10", 3).transform(chunk, 0, False))
    late = [count >= 4 and not found for count, found in zip(sightings(chunk), kept, strict=True)]
    early = [count < 4 and found for count, found in zip(sightings(chunk), kept, strict=True)]
    assert not any(late)
    assert 0.02 < np.mean(early) < 0.5
    roomy = is_in(chunk, Admission("4,bits=14", 3).transform(chunk, 0, False))
    assert sum(roomy) < sum(kept)


@pytest.mark.parametrize(
    ("spec", "again"),
    [
        *((5, "5,bits=24"), ("5", "5,bits=24"), ("5,bits=12", "5,bits=12")),
        ("poisson:0.1", "poisson:0.1,bits=24"),
    ],
)
def test_the_spec_of_an_admission_makes_it_again(spec: Any, again: str) -> None:
    assert admission_spec(spec) == again == admission_spec(again)
