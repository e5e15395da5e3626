"""Model files: loading is the inverse of saving, damage is detected, margins stay; copies and pickles."""

import copy
import json
import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

from tests.covering import covering
from tests.plain import not_compiled
from tests.streams import RATE, RULES, fingerprint, has_rate, settings_of, stream
from thresher import Chunk
from thresher.data.errors import DataError
from thresher.data.features.names import Names
from thresher.data.stored import read
from thresher.learning.files import model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model import margins
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe


def small_model() -> Model:
    model = Model("ftrl:l1=0.01", "logistic")
    model.learn(Chunk.of_rows([(1.0, {3: 1.0, 2**63: 0.5}), (-1.0, {3: 0.25, 9: 2.0})] * 4))
    return model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    model_file.save(small_model(), tmp_path / "model")
    return tmp_path / "model"


def test_saving_twice_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    for _ in range(5):
        model_file.save(small_model(), tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_the_file_is_plain_safetensors_with_a_json_header(path: Path) -> None:
    raw = path.read_bytes()
    tensors = parse(raw)
    assert {"0.weights.keys", "0.weights.values", "0.weights.intercept"} <= set(tensors)
    assert np.all(tensors["0.weights.values"] != 0)
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(json.loads(raw[8 : 8 + length])["__metadata__"]["thresher"])
    (own,) = header["models"]
    assert own["recipe"]["rule"] == "ftrl:alpha=0.5,beta=1.0,l1=0.01,l2=0.0,half_life=inf"
    assert own["nonzero"] == len(tensors["0.weights.keys"])


def test_any_array_is_written_as_it_is_and_none_copied(tmp_path: Path) -> None:
    kinds = (np.bool_, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64)
    tensors: dict[str, Any] = {str(k): np.arange(5 + k).astype(kind) for k, kind in enumerate(kinds)}
    tensors |= {"empty": np.zeros((0, 3)), "two": np.arange(6.0).reshape(2, 3), "turned": np.ones((3, 2)).T}
    model_file.write(tmp_path / "file", {}, tensors)
    found = parse((tmp_path / "file").read_bytes())
    assert found.keys() == {f"0.{name}" for name in tensors}
    for name, array in tensors.items():
        assert found[f"0.{name}"].dtype == array.dtype
        assert np.array_equal(found[f"0.{name}"], array)
    large: dict[str, Any] = {"a": np.ones(1_000_000), "b": np.ones(1_000_000, np.float32)}
    tracemalloc.start()
    try:
        model_file.write(tmp_path / "file", {}, large)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20  # copies would take 24 MB
    finally:
        tracemalloc.stop()


def test_a_changed_byte_is_found(path: Path) -> None:
    """A changed byte may mean the same (a blank in the header), but never other numbers."""
    raw = path.read_bytes()
    header, tensors = model_file.read(path)
    for at in range(0, len(raw), 11):
        damaged = bytearray(raw)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        try:
            other, found = model_file.read(path)
        except ModelFileError:
            continue
        assert other == header
        assert all(np.array_equal(found[name], tensors[name]) for name in tensors)


def test_every_truncation_is_found(path: Path) -> None:
    raw = path.read_bytes()
    for length in range(0, len(raw), 11):
        path.write_bytes(raw[:length])
        with pytest.raises(ModelFileError, match=r"a damaged or truncated model|not a thresher model"):
            model_file.read(path)
    path.write_bytes(raw + b"\0")
    with pytest.raises(ModelFileError):
        model_file.read(path)


def rewritten(path: Path, **changes: Any) -> None:
    header, tensors = model_file.read(path)
    model_file.write(path, {**header, **changes}, tensors)


def test_other_files_and_parts_are_told(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    for version, remedy in (("7.0", r"pip install 'thresher>=7\.0'"), ("0.0.1", "train the model again")):
        rewritten(path, format=99, version=version)
        with pytest.raises(ModelFileError, match=rf"format 99, .* thresher {version}; .* format 1: {remedy}"):
            model_file.load_predictor(path)
        path.write_bytes(whole)
    recipe = model_file.read(path)[0]["recipe"]
    rewritten(path, recipe={**recipe, "rule": "homemade:a=1.0"})
    with pytest.raises(ModelFileError, match=r"'homemade'.*import the module that defines it"):
        model_file.load(path)
    (tmp_path / "other").write_bytes(serialise({"a": np.zeros(2)}))
    with pytest.raises(ModelFileError, match="not a thresher model"):
        model_file.read(tmp_path / "other")
    with pytest.raises(ModelFileError, match="a directory, pipe or device, not a model"):
        model_file.read(tmp_path)
    with pytest.raises(ModelFileError, match="No such file"):
        model_file.read(tmp_path / "none")


def test_weights_only_cannot_go_on(tmp_path: Path) -> None:
    model = small_model()
    model_file.save(model, tmp_path / "model", state=False)
    predictor, _ = model_file.load_predictor(tmp_path / "model")
    keys, weights = model.weights()
    assert predictor.keys.tolist() == keys.tolist()
    assert predictor.weights.tolist() == weights.tolist()
    with pytest.raises(ModelFileError, match="only weights"):
        model_file.load(tmp_path / "model")


class Pair(NamedTuple):
    name: str
    size: int | None


@dataclass(frozen=True)
class Inner:
    number: int


@dataclass(frozen=True)
class Outer:
    pairs: tuple[Pair, ...]
    inner: Inner
    mark: tuple[float, bool] | None
    words: list[str]
    share: float = 0.5


WHOLE = Outer((Pair("a", 1), Pair("b", None)), Inner(3), (0.5, True), ["x"], 2.0)


def test_what_was_written_is_read() -> None:
    assert read(Outer, json.loads(json.dumps(asdict(WHOLE))), "outer") == WHOLE
    given: dict[str, Any] = {"pairs": [], "inner": {"number": 0}, "mark": None, "words": [], "share": 0.5}
    assert read(Outer, given, "outer") == Outer((), Inner(0), None, [])
    for name in ("share", "mark"):  # a default is no value of a file
        with pytest.raises(DataError, match=f"outer: {name} is missing"):
            read(Outer, {n: one for n, one in given.items() if n != name}, "outer")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pairs": [["a", True]]}, r"outer.pairs\[0\]\[1\]: expected int | null, got bool"),
        ({"pairs": [["a"]]}, r"outer.pairs\[0\]: expected array of length 2, got 1"),
        ({"inner": []}, "outer.inner: expected object, got array"),
        ({"inner": {"number": -1.0}}, "outer.inner.number: expected int, got float"),
        ({"inner": {}}, "outer.inner: number is missing"),
        ({"inner": {"number": 1, "more": 1}}, "outer.inner: unknown field more"),
        ({"mark": [1.0]}, "outer.mark: expected array of length 2, got 1"),
        ({"mark": [1.0, 1]}, r"outer.mark\[1\]: expected bool, got int"),
        ({"words": [1]}, r"outer.words\[0\]: expected str, got int"),
        ({"share": None}, "outer.share: expected float, got null"),
        ({"share": 10**400}, "outer.share: Number out of range"),
        ({"other": 1}, "outer: unknown field other"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], said: str) -> None:
    given = json.loads(json.dumps(asdict(WHOLE)))
    with pytest.raises(DataError, match=said):
        read(Outer, {**given, **change}, "outer")
    others: tuple[Any, ...] = (None, 1, [], "x")
    for other in others:
        with pytest.raises(DataError, match="outer: expected object"):
            read(Outer, other, "outer")


KINDS: list[dict[str, Any]] = [
    *({}, {"average": True}, {"outputs": "classes:0-2", "loss": "softmax"}),
]
STORES = ["growing", "direct", "hashed:6", "hashed:4"]  # the last merges features of a row


def rows(count: int, seed: int) -> Chunk:
    rng = np.random.default_rng(seed)
    features = [np.sort(rng.choice(60, rng.integers(0, 13), replace=False)) for _ in range(count)]
    examples = [(float(k % 3), {int(j): float(rng.normal()) for j in row}) for k, row in enumerate(features)]
    return Chunk.of_rows(examples)


@pytest.mark.parametrize(("kind", "store"), [*covering(KINDS, STORES), *covering(KINDS, STORES, seed=1)])
def test_every_reading_gives_the_margins(kind: Any, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with not_compiled():
        model = Model("fobos:l1=0.01", **{"loss": "squared", **kind}, store=store)
        model.learn(rows(60, 1))
        data = rows(40, 2)  # some of its features never occurred
        expected = np.concatenate([model.predict(data.rows(i, i + 1)) for i in range(len(data))])
        assert len(np.unique(expected)) > 20
        for block in (1 << 16, 1, 7, 30):
            monkeypatch.setattr(margins, "BLOCK", block)
            assert model.predict(data).tobytes() == expected.tobytes()
            assert model.predictor().predict(data).tobytes() == expected.tobytes()


ROWS = 150
FIRST, LAST = (stream(seed=k, rows=ROWS, features=3000, density=0.01).chunk for k in (21, 22))
COPIES = [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
copies = pytest.mark.parametrize("another", COPIES, ids=["copy", "deepcopy", "pickle"])


def model_of(name: str, **options: Any) -> Model:
    spec = settings_of(name)[0]
    return Model(Recipe(spec, rate=RATE if has_rate(spec) else None, dtype="float32", **options))


@pytest.mark.parametrize(("name", "another"), covering(RULES, COPIES))
@pytest.mark.usefixtures("plainly")
def test_a_copy_learns_as_its_model_does_and_apart_from_it(name: str, another: Any) -> None:
    check_a_copy(name, another)


@copies
def test_what_is_compiled_for_a_model_serves_its_copy(another: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both tables grow."""
    monkeypatch.setattr("thresher.engine.index.FIRST_SIZE", 8)
    check_a_copy("fobos", another)


def check_a_copy(name: str, another: Callable[[Model], Model]) -> None:
    model = model_of(name)
    model.learn(FIRST)
    before, twin = fingerprint(model), another(model)
    twin.learn(LAST)
    assert fingerprint(model) == before
    model.learn(LAST)
    assert fingerprint(twin) == fingerprint(model)
    assert twin.recipe == model.recipe


@copies
@pytest.mark.usefixtures("plainly")
def test_batches_admission_and_names_are_copied(another: Callable[[Model], Model]) -> None:
    model = Model("sgd", batch=7, admit="2,bits=10", store="hashed:9,signed", seed=4)
    model.learn(FIRST)
    keys = model.weights()[0]
    model.names = Names(keys, np.arange(1, len(keys) + 1), np.full(len(keys), ord("a"), np.uint8))
    twin = another(model)
    assert twin.names.get(int(keys[0])) == "a"
    for one in (model, twin):
        one.learn(LAST)
        one.finish()
    assert fingerprint(twin) == fingerprint(model)


@copies
@pytest.mark.usefixtures("plainly")
def test_a_lane_is_copied_to_a_model_alone(another: Callable[[Any], Any]) -> None:
    lanes = ModelSet([Recipe("ftrl", l1=0.1), Recipe("sgd")])
    lanes.learn(FIRST)
    alone = Model("ftrl", l1=0.1)
    alone.learn(FIRST)
    twin = another(lanes.models[0])
    for one in (alone, twin):
        one.learn(LAST)
    assert twin.weights()[1].tobytes() == alone.weights()[1].tobytes()
    assert lanes.examples == ROWS
    with pytest.raises(TypeError, match="side by side cannot be copied or pickled"):
        another(lanes)


@pytest.mark.usefixtures("plainly")
def test_weights_that_are_not_finite_are_not_pickled() -> None:
    model = Model("sgd")
    model.learn(FIRST)
    model.loop.S[1] = np.nan
    with pytest.raises(DivergedError, match="the weight of feature"):
        pickle.dumps(model)
