"""Malicious and damaged files with correct checksums: refused in one line before compiled code sees them."""

import json
import mmap
import pickle
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import thresher
from tests.fuzz.models import Case
from tests.intakes import LAYOUT, table
from tests.plain import not_compiled
from tests.streams import RULES, settings_of, stream
from thresher.cli.errors import FAILED, status_and_line
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError, OneLineError
from thresher.engine.sound import StateError
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.model_file import RECIPE, Contents, Edition, ModelFileError
from thresher.learning.model.bags import Bagged, Bags
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes
from thresher.parts import ft_ftrl_state
from thresher.plans.models import Frontier
from thresher.runs import files
from thresher.sklearn import SparseOnlineClassifier

Tensors = dict[str, NDArray[Any]]
EDITION = Edition.__annotations__
LEARNED: dict[str, Model] = {}
pytestmark = pytest.mark.usefixtures("plainly")


def learned(spec: str, **options: Any) -> Model:
    """A model that has learned, made once: nothing may change it."""
    known = repr((spec, options))
    if known not in LEARNED:
        LEARNED[known] = _learned(spec, **options)
    return LEARNED[known]


def _learned(spec: str, **options: Any) -> Model:
    model = Model(spec, **options)
    if "scale" in options:
        model.layout = LAYOUT
    rows = table(1, 40).chunk if "scale" in options else stream(1, 40).chunk
    if options.get("outputs", "one").startswith("values"):
        rows = replace(rows, targets=np.repeat(rows.labels[:, np.newaxis], 2, axis=1))
    model.learn(rows)
    return model


def written(path: Path, model: Model, change: Callable[[Tensors], None], **changes: Any) -> Path:
    """The model in a file, with changed tensors and changed fields of its recipe or header."""
    tensors = {name: array.copy() for name, array in model_file.tensors_of(model).items()}
    change(tensors)
    header = model_file.header_of(model)
    for name, value in changes.items():
        (header["recipe"] if name in RECIPE else header)[name] = value
    model_file.write(path, header, tensors)
    return path


def put(name: str, place: Any, value: Any) -> Callable[[Tensors], None]:
    """Change a number, column or row of a state tensor."""

    def change(tensors: Tensors) -> None:
        tensors[f"state.{name}"][place] = value

    return change


def added(name: str, array: NDArray[Any]) -> Callable[[Tensors], None]:

    def change(tensors: Tensors) -> None:
        tensors[name] = array

    return change


def made(name: str, make: Callable[[NDArray[Any]], Any]) -> Callable[[Tensors], None]:

    def change(tensors: Tensors) -> None:
        tensors[name] = make(tensors[name])

    return change


def lines_of(load: Callable[[Path], Any], path: Path) -> list[str]:
    """The error message of a command; empty if the file loads."""
    try:
        load(path)
    except ModelFileError as error:
        status, line = status_and_line(error)
        assert (status, line[: len(str(path)) + 12]) == (FAILED, f"thresher: {path}: ")
        return line.splitlines()
    return []


BALL, CAPS, MIXTURE = "l1-ball:radius=0.5", "fobos-linf:linf=0.1", "simplex:features=45"
SEVERAL: dict[str, Any] = {"outputs": "values:2"}
WAITING: dict[str, Any] = {"batch": 7}
STATES: list[tuple[str, dict[str, Any], Callable[[Tensors], None], str]] = [
    (BALL, {}, put("clock", 4, 1e30), r"clock: the heap should hold 1e\+30 rows"),
    (BALL, {}, made("state.clock", lambda a: a[:0]), r"clock has the shape \[0\], expected \[5\]"),
    (BALL, {}, made("state.S", lambda a: a[:, :4].copy()), r"S has the shape \[13, 4\], expected \[13, 5\]"),
    (BALL, {}, made("state.S", lambda a: a.astype(np.int64)), "S is an array of int64, expected float64"),
    (BALL, {}, put("S", (slice(None), 2), 1e9), "disagree about the position"),
    (BALL, {}, put("S", (2, 1), 0.5), "the positions of rows in the heap|should hold"),
    (BALL, {}, put("S", (2, 1), -3), "a place that there is not|should hold"),
    (BALL, {}, put("S", (1, 0), np.nan), "S contains a number that is not finite"),
    (BALL, {"batch": 2}, put("clock", (0, 4), 1e30), "the heap should hold"),
    (BALL, SEVERAL, put("clock", (1, 4), 2.0**40), "the heap should hold"),
    (BALL, {"store": "direct"}, put("S", (slice(None), 2), 5000), "disagree about the position"),
    (MIXTURE, {}, put("clock", 4, 99), "the heap should hold 99 rows"),
    (MIXTURE, {}, put("clock", 6, 1), "1 coordinates should have been seen"),
    (CAPS, {}, put("clock", 4, 1e30), r"a stack of 1e\+30 caps does not fit"),
    (CAPS, {}, put("clock", 3, 99), "99 rows should lie at a cap"),
    (CAPS, {}, put("S", (slice(None), 8), 2), "more or fewer members"),
    (CAPS, {}, put("S", (0, 6), 1e9), "not in order of time|more or fewer members"),
    ("subgradient:l1=0.1", {}, put("clock", 0, 1e30), "more steps are counted than the 40 taken"),
    (
        "ft-ftrl",
        {},
        put("clock", slice(None), 0.0),
        "clock: passes are counted from 1, and examples up to 40",
    ),
    ("ft-ftrl", {}, made("state.clock", lambda a: -a), "clock: measured sizes must not be negative"),
    (
        "ft-ftrl",
        {},
        put("clock", ft_ftrl_state.COUNT, 41.0),
        "clock: passes are counted from 1, and examples up to 40",
    ),
    ("ft-ftrl", {}, put("bclock", ft_ftrl_state.TIME, 1e9), "bclock: passes are counted from 1"),
    ("ft-ftrl", {}, put("S", (2, 3), -1.0), "clock: sums of squares must not be negative"),
    ("ftrl", {}, put("counts", 2, 2**40), "room for 1099511627776 rows is not what 13 rows take"),
    ("ftrl", {}, put("counts", 0, 2**62), "features seen must be those in use"),
    ("ftrl", {}, made("state.keys", lambda a: np.append(a, a[-1:])), "features seen must be those in use"),
    ("ftrl", {}, put("keys", 2, 3), "every key needs one row"),
    ("ftrl", {}, made("state.B", lambda a: a[:0]), r"B has the shape \[0, 3\], expected \[1, 3\]"),
    ("ftrl", {}, made("state.tally", lambda a: a[:2]), "tally has the shape"),
    ("ftrl", {}, added("state.again", np.zeros(2)), "again has the shape"),
    ("ftrl", {}, added("state.again", np.array([0, 0, 0.5])), "again: whether examples come again is 0 or 1"),
    ("ftrl", {}, put("counters", 0, -1), "counters: numbers of examples"),
    (
        "ftrl",
        {"store": "direct"},
        made("state.seen", lambda a: a[:0]),
        "seen: there must be at least one row",
    ),
    ("ftrl", {"store": "direct"}, made("state.S", lambda a: a[:9]), "S has the shape"),
    (
        "ftrl",
        {"store": "hashed:6"},
        made("state.seen", lambda a: a[:9]),
        r"seen has the shape \[9\], expected \[64\]",
    ),
    ("sgd", {"average": True}, put("place", 1, 2**40), "place: expected 0 <= steps before the ring"),
    ("fobos:l1=0.1", {"average": True}, put("place", 0, -1), "place: expected 0 <= steps before the ring"),
    ("fobos:l1=0.1", {"average": True}, put("place", 0, 5), "ring has the shape"),
    ("fobos:l1=0.1", {"average": True}, made("state.ring", lambda a: a[:9]), "ring has the shape"),
    ("fobos:l1=0.1", {"average": True}, put("S", (1, 3), 1e30), "S: rows must have been visited in 0..40"),
    ("ftrl", WAITING, put("pending.indptr", 1, 2**40), "pending: the arrays of a Chunk must be"),
    ("ftrl", WAITING, put("pending.labels", 0, 3), "expected a label -1, 0 or 1"),
    (
        "ftrl",
        WAITING,
        put("pending.labels", 0, np.nan),
        "pending: label 1 is not finite",
    ),
    ("ftrl", WAITING, put("pending.weights", 0, -1), "pending: example 1: the importance weight is negative"),
    (
        "ftrl",
        WAITING,
        put("pending.keys", slice(None), 7),
        "pending: the keys of a row must be unique and ascending",
    ),
    (
        "ftrl",
        WAITING,
        made("state.pending.values", lambda a: a[:1]),
        "pending: the arrays of a Chunk must be",
    ),
    (
        "sgd",
        {**SEVERAL, **WAITING},
        made("state.pending.targets", lambda a: a[:, :1].copy()),
        "expected 2 labels for each example, found 1",
    ),
    (
        "ftrl",
        {"admit": "2,bits=10"},
        made("state.admit.counters", lambda a: a[:64]),
        "counters has the shape",
    ),
    ("ftrl", {"admit": "2,bits=10"}, put("intake.rows", 0, -1), "intake.rows: the number of examples"),
    ("ftrl", {"scale": "standard"}, made("state.scale.kept", lambda a: a[:2]), "scale.kept has the shape"),
    ("ftrl", {"scale": "max-abs"}, put("scale.keys", 0, 2**64 - 1), "scale.keys: keys ascend"),
]
"""Rule, options, change to the state, what is said."""


@pytest.mark.parametrize(("spec", "options", "change", "said"), STATES, ids=range(len(STATES)))
def test_a_state_that_cannot_be_is_refused(
    spec: str, options: dict[str, Any], change: Callable[[Tensors], None], said: str, tmp_path: Path
) -> None:
    loss = "squared" if "outputs" in options else "logistic"
    path = written(tmp_path / "model", learned(spec, loss=loss, **options), change)
    with pytest.raises(ModelFileError, match=said) as found:
        model_file.load(path)
    assert str(found.value).startswith(f"{path}: ")
    assert "\n" not in str(found.value)


SHARED = {f"state.{name}" for name in ("keys", "counts", "tally", "counters")}


SHARED |= {"weights.keys", "weights.values", "weights.intercept"}


"""Tensors that every rule has in the same shape."""


@pytest.mark.parametrize("name", RULES)
def test_a_state_with_a_tensor_missing_cut_or_of_another_kind(name: str, tmp_path: Path) -> None:
    model = learned(settings_of(name)[0])
    header, tensors = model_file.header_of(model), model_file.tensors_of(model)
    assert set(tensors) > SHARED
    thorough = name in ("ftrl", "sgd")
    for k, tensor in enumerate([*tensors] if thorough else sorted(set(tensors) - SHARED)):
        array = tensors[tensor]
        load: Any = model_file.load if tensor.startswith("state.") else model_file.load_predictor
        with np.errstate(over="ignore"):
            others = (array[:-1], array[np.newaxis], array.astype(np.float16))
        for other in others if thorough else others[k % 3 : k % 3 + 1]:
            if len(array) == 0 and other is others[0]:
                continue  # nothing can be cut
            model_file.write(tmp_path / "model", header, {**tensors, tensor: other})
            with pytest.raises(ModelFileError, match=r"shape|array of|counts|seen"):
                load(tmp_path / "model")
        model_file.write(tmp_path / "model", header, {k: v for k, v in tensors.items() if k != tensor})
        with pytest.raises(ModelFileError, match=f"{tensor.removeprefix('state.')} is missing"):
            load(tmp_path / "model")


def test_what_is_refused_changes_nothing() -> None:
    model = learned(BALL)
    before = {name: array.copy() for name, array in model.state().items()}
    with pytest.raises(StateError):
        model.restore({**before, "clock": before["clock"] + 1e30})
    assert all(np.array_equal(array, before[name]) for name, array in model.state().items())


READOUTS: list[tuple[Callable[[Tensors], None], str]] = [
    (lambda tensors: tensors.clear(), "weights.keys is missing"),
    (made("weights.keys", lambda a: a[::-1].copy()), "weights.keys: keys ascend"),
    (made("weights.values", lambda a: a[:, np.newaxis]), "weights.values has the shape"),
    (made("weights.values", lambda a: a.astype(np.int64)), "expected float32 or float64"),
    (made("weights.intercept", lambda a: a[:0]), "weights.intercept has the shape"),
    (made("weights.unmet", lambda a: np.zeros(2, a.dtype)), "weights.unmet has the shape"),
    (lambda tensors: tensors.update({"scale.by": np.ones(3)}), "scale.keys is missing"),
    (lambda tensors: tensors.update({"names.keys": tensors["weights.keys"]}), "names.ends is missing"),
    (
        lambda tensors: tensors.update(
            {
                "names.keys": np.arange(2, dtype=np.uint64),
                "names.ends": np.array([9, 2]),
                "names.letters": np.zeros(2, np.uint8),
            }
        ),
        "names.ends: names must be consecutive",
    ),
]


@pytest.mark.parametrize(("change", "said"), READOUTS, ids=range(len(READOUTS)))
def test_weights_that_cannot_be_are_refused(change: Any, said: str, tmp_path: Path) -> None:
    path = written(tmp_path / "model", learned("ftrl:l1=0.01"), change)
    with pytest.raises(ModelFileError, match=said):
        model_file.load_predictor(path)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["values", "intercept", "unmet"])
def test_weights_are_finite(name: str, number: float, tmp_path: Path) -> None:
    wrong = made(
        f"weights.{name}", lambda a: np.where(np.arange(len(a)) == len(a) - 1, number, a).astype(a.dtype)
    )
    for options in ({}, {"dtype": "float32"}):
        path = written(tmp_path / "model", learned("ftrl:l1=0.01", **options), wrong)
        said = f"weights.{name} contains a number that is not finite"
        assert [line.endswith(said) for line in lines_of(model_file.load_predictor, path)] == [True]


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_large_stores_of_small_files_cost_little(tmp_path: Path) -> None:
    """Two weights in 2^31 rows: pages of zeros take no memory."""
    head = model_file.header_of(Model("ftrl"))
    keys = np.array([5, 2**31 - 2], np.uint64)
    tensors: Tensors = {
        "weights.keys": keys,
        "weights.values": np.ones(2, np.float32),
        "weights.intercept": np.zeros(1, np.float32),
        "weights.unmet": np.zeros(1, np.float32),
    }
    before = resident()
    for store in ("hashed:31", "direct"):
        head["recipe"]["store"] = store
        model_file.write(tmp_path / "model", head, tensors)
        if said := lines_of(model_file.load_predictor, tmp_path / "model"):
            assert "not enough memory" in said[0]
            continue
        predictor = model_file.load_predictor(tmp_path / "model")[0]
        assert resident() - before < 1 << 30
        assert predictor.predict(Chunk.of_rows([(1.0, {5: 1.0, 2**31 - 2: 1.0})]))[0] in (2.0, 1.0, 0.0)


HEADERS: list[tuple[dict[str, Any], str]] = [
    ({"outputs": "classes:0-2"}, "outputs classes:0-2|weights.values has the shape"),
    ({"outputs": "trees"}, "no outputs are called 'trees'"),
    ({"outputs": "values:99999999"}, "at most 65536"),
    ({"outputs": 3}, "recipe.outputs: expected str, got int"),
    ({"store": "hashed:32"}, "BITS must lie in 1..31"),
    ({"store": "attic\nroof"}, r"no store is called 'attic\\nroof'"),
    ({"store": "direct"}, "feature id 9223372036854775808 is too large for the direct store"),
    ({"store": "hashed:6"}, "9223372036854775808 is not a row of the store hashed:6"),
    ({"loss": "softmax"}, "needs outputs classes"),
    ({"loss": "logistic:positive=-1"}, "positive must be > 0"),
    ({"sample": ""}, "must be LABEL=SHARE"),
    ({"sample": "0=2"}, "give each label once, with a share in"),
    ({"sample": "x=0.3", "layout": {"format": "svmlight"}}, "the label x is a word, those of the data are"),
    ({"sample": "0=0.3", "loss": "squared"}, "is for classes, not for the loss squared"),
    ({"calibrate": True, "average": True}, "does not work with average"),
    ({"nonzero": -1}, "the header does not match its checksum"),
    ({"intercept": 1}, "recipe.intercept: expected bool, got int"),
    ({"layout": []}, "recipe.layout: expected object | null, got array"),
    ({"layout": {"format": "nonsense"}}, "no format is called 'nonsense'; known: svmlight, "),
    ({"layout": {"format": "csv", "columns": [[]]}}, r"layout.columns\[0\]: expected str, got array"),
    ({"layout": {"format": "csv", "columns": ["a"]}}, "layout.kinds: expected one for each"),
    ({"layout": {"format": "csv", "columns": ["a"], "kinds": ["b"]}}, "layout.kinds: expected one for each"),
    (
        {"layout": {"format": "csv", "columns": ["a"], "kinds": ["offset"], "spelling": [""]}},
        "the layout says where offsets are, but the recipe that there are none",
    ),
    (
        {"layout": {"format": "csv", "columns": ["a", "b"], "kinds": ["offset"] * 2}, "offset": True},
        "the layout has several columns of the kind 'offset'",
    ),
    ({"layout": {"format": "vw", "offset": "zzz"}, "offset": True}, "the layout's offset must be base"),
    ({"layout": {"format": "csv", "colour": "red"}}, "layout: unknown field colour"),
    ({"format": "1"}, "header.format: expected int, got str"),
    ({"version": ["a\nb"]}, "header.version: expected str, got array"),
    ({"format": 3, "version": "9\n9"}, r"written by thresher 9\\n9"),
]


@pytest.mark.parametrize(("changes", "said"), HEADERS, ids=range(len(HEADERS)))
def test_a_header_that_cannot_be_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    model = Model("ftrl:l1=0.01")
    model.learn(Chunk.of_rows([(1.0, {3: 1.0, 2**63: 0.5}), (-1.0, {3: 0.25, 9: 2.0})] * 4))
    path = written(tmp_path / "model", model, lambda tensors: None, **changes)

    def read() -> None:
        model_file.load_predictor(path)
        model_file.load(path)  # which reads what only learning uses

    with pytest.raises(ModelFileError, match=said) as found:
        read()
    assert "\n" not in str(found.value)


HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0),
    2**70,
    10**400,
    1e400,
    float("nan"),
    *("", "x", "a\nb", "\ud800", [], {}, [[]], {"a": {}}),
)


@pytest.mark.parametrize("name", sorted({*EDITION, *RECIPE, "recipe", "lowest_label", "nonzero"}))
def test_any_field_may_hold_anything(name: str, tmp_path: Path) -> None:
    """The file is refused in one line, or harmless."""
    model = learned("ftrl:l1=0.01")
    for value in HOSTILE:
        path = written(tmp_path / "model", model, lambda tensors: None, **{name: value})
        for load in (model_file.load_predictor, model_file.load):
            assert len(lines_of(load, path)) <= 1
    whole, tensors = model_file.header_of(model), model_file.tensors_of(model)
    if name in ("centre", "sample", "calibrate", "nonnegative", "nonpositive", "offset"):
        return  # models of older versions do not have it
    where = "recipe" if name in (*RECIPE, "recipe") else "header" if name in EDITION else "model"
    del (whole["recipe"] if name in RECIPE else whole)[name]
    model_file.write(path, whole, tensors)
    with pytest.raises(ModelFileError, match=f"{where}: {'rule' if name == 'recipe' else name} is missing"):
        model_file.load(path)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in JSON; of lists, the first."""
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    for name, own in inner:
        yield (*place, name)
        yield from places(own, (*place, name))


MANY: dict[str, Callable[[Any], Any]] = {
    "frontier": lambda rows: thresher.path(rows, l1=[0.1, 1.0], holdout=0.25, passes=1),
    "ensemble": lambda rows: thresher.ensemble(rows, models=2, passes=1),
    "by": lambda rows: thresher.ensemble(rows, models="by:g", passes=1),
    "selection": lambda rows: thresher.select(rows, bags=4, passes=1),
}


@pytest.mark.parametrize("kind", MANY)
def test_any_field_of_a_file_of_many_models_may_hold_anything(kind: str, tmp_path: Path) -> None:
    """The file is refused in one line, or harmless."""
    path = tmp_path / "many"
    with not_compiled():
        lines = [f"{k % 3 // 2},{k % 5},{'ab'[k % 2]}\n" for k in range(24)]
        (tmp_path / "t.csv").write_text("".join(["label,x,g\n", *lines]))
        MANY[kind](tmp_path / "t.csv").save(path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    head = json.loads(whole[8 : 8 + length])
    header = json.loads(head["__metadata__"]["thresher"])
    readers: list[Callable[[Path], Any]] = [
        *(lambda path, which=which: Contents.of(path).chosen(which) for which in (None, "0", "best")),
        lambda path: repr(files.describe(path)),
        lambda path: files.draw(path, tmp_path / "x.svg", tmp_path / "x.tsv"),
        lambda path: Frontier.read(Contents.of(path), model_file.revive),
    ]
    said = set[str]()
    for place in [one for one in places(header) if one[0] != "crc32"]:
        for value in (None, 2.5, [1]):
            changed = json.loads(json.dumps(header))
            *outer, last = place
            reduce(lambda inside, name: inside[name], outer, changed)[last] = value
            changed["crc32"]["header"] = model_file._header_sum(changed)
            raw = json.dumps({**head, "__metadata__": {"thresher": json.dumps(changed)}}).encode()
            path.write_bytes(len(raw).to_bytes(8, "little") + raw + whole[8 + length :])
            for read in readers:
                try:
                    read(path)
                except OneLineError as error:
                    said.add(status_and_line(error)[1])
    assert not [line for line in said if "\n" in line]
    assert any(f"{path}: header.run" in line for line in said)


def nested(path: Path, depth: int) -> Path:
    """A model file whose header is deeply nested brackets, written by hand because `json` would refuse."""
    text = '{"format": 2, "deep": ' + "[" * depth + "]" * depth + "}"
    raw = json.dumps({"__metadata__": {"thresher": text}}).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)
    return path


def test_a_header_nested_deeply_is_refused(tmp_path: Path) -> None:
    for read in (model_file.read, lambda path: model_file.from_bytes(path.read_bytes(), str(path))):
        for depth in (10**5, 10):
            with pytest.raises(ModelFileError, match="does not match its checksum"):
                read(nested(tmp_path / "model", depth))


TRAININGS: list[tuple[str, Any, str]] = [
    ("data", None, "training.data: expected array, got null"),
    ("holdout", [0, "tenth"], r"training.holdout\[0\]: expected str, got int"),
    ("position.place", [0, 1], "training.position.place: expected array of length 3, got 2"),
    ("reported", [10**400, 1], "the header does not match its checksum"),
    ("scored", [[0, [[10**400, {"loss": 1.0}]]]], "the header does not match its checksum"),
    ("position.place", [0, 2**70, 1], "the header does not match its checksum"),
    ("position.learned", -1, "the header does not match its checksum"),
    ("position.report", {"lines": "1"}, "position.report.lines: expected int, got str"),
    ("position.report.first_bad", [{}], r"position.report.first_bad\[0\]: expected array, got object"),
    ("position.more", 1, "position: unknown field more"),
    ("label", "x", "training.label: expected float, got str"),
    ("table", [[1]], r"training.table\[0\]: expected array of length 9, got 1"),
    ("scored", [[0, [[1, {"loss": "low"}]]]], r"training.scored\[0\].*expected int | float | null, got str"),
    ("data", ["a.svm", "1"], r"training.data\[1\]: expected int | null, got str"),
    ("read", [[1]], r"training.read\[0\]: expected array of length 2, got 1"),
    ("scored", [[1, [[1, {"loss": 1.0}]]]], "the header contradicts itself"),
    ("plan", "evil\nplan", "a checkpoint of another command, which can resume it$"),
]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with a best pass."""
    path = tmp_path_factory.mktemp("stopped") / "checkpoint"
    with not_compiled():
        Case(BALL).write(path)
    return path


@pytest.mark.parametrize(("place", "value", "said"), TRAININGS, ids=range(len(TRAININGS)))
def test_a_training_that_cannot_be_is_refused(
    place: str, value: Any, said: str, stopped: Path, tmp_path: Path
) -> None:
    head, tensors = model_file.read(stopped)
    *outer, last = place.split(".")
    at = head["training"]
    for name in outer:
        at = at[name]
    at[last] = value
    model_file.write(tmp_path / "checkpoint", head, tensors)
    with pytest.raises(ModelFileError, match=said):
        Case(BALL).trainer(tmp_path / "checkpoint", checkpoint.load(tmp_path / "checkpoint"))


@pytest.mark.parametrize(
    ("place", "learned", "rows"),
    [(None, 25, 19), ([0, 0, 0], 10**12, 19), ([0, 5, 9], 1, 0), ([0, 2**60, 0], 40, 0), ([9, 0, 0], 1, 0)],
)
def test_a_training_that_stands_where_the_data_do_not_reach_is_refused(
    place: Any, learned: int, rows: int, stopped: Path, tmp_path: Path
) -> None:
    """Otherwise it would silently continue with the next pass."""
    head, tensors = model_file.read(stopped)
    head["training"]["position"] |= {"place": place, "learned": learned}
    model_file.write(tmp_path / "checkpoint", head, tensors)
    trainer = Case(BALL).trainer(tmp_path / "checkpoint", checkpoint.load(tmp_path / "checkpoint"))
    with pytest.raises(
        DataError,
        match=f"not a checkpoint for these data: it is after {learned:,} rows of a chunk of {rows}$",
    ):
        trainer.run()


def test_the_best_pass_is_checked_before_training_goes_on(stopped: Path, tmp_path: Path) -> None:
    head, tensors = model_file.read(stopped)
    model_file.write(
        tmp_path / "checkpoint", head, {**tensors, "best.0.clock": tensors["best.0.clock"] + 1e30}
    )
    with pytest.raises(ModelFileError, match="checkpoint: clock: the heap"):
        Case(BALL).trainer(tmp_path / "checkpoint", checkpoint.load(tmp_path / "checkpoint"))


SETS: list[tuple[str, Any, str]] = [
    ("recipes", [], "give at least one recipe|the header contradicts itself"),
    ("recipes", None, "lanes.recipes: expected array, got null"),
    ("share", "folds:3", "an ensemble is N"),
    ("share", "poisson:3", "argument 2 is shorter|counters is missing"),
    ("dropped", [[2, "why"]], "the header contradicts itself"),
    ("dropped", [[-1, "why"]], "the header does not match its checksum"),
    ("curves", [[]], "argument 2 is shorter"),
    ("more", 1, "unknown field more"),
]


@pytest.mark.parametrize(("name", "value", "said"), SETS, ids=range(len(SETS)))
@pytest.mark.parametrize("share", ["", "poisson:2"])
def test_a_set_of_models_that_cannot_be_is_refused(
    share: str, name: str, value: Any, said: str, stopped: Path, tmp_path: Path
) -> None:
    recipes = [Recipe("ftrl", l1=l1) for l1 in ((0.1,) if share else (0.1, 1.0))]
    models = ModelSet(recipes, Bagged(Bags.of(share)) if share else None)
    models.learn(Chunk.of_rows([(1.0, {7: 2.0})] * 3))
    path, training = tmp_path / "checkpoint", checkpoint.load(stopped)[1]
    checkpoint.save(path, models, replace(training, scored=[]))
    found = checkpoint.load(path)[0]
    assert [as_bytes(one) for one in found.models] == [as_bytes(one) for one in models.models]
    head, tensors = Contents.of(path).model(0)
    head["lanes"][name] = value
    model_file.write(path, head, tensors)
    with pytest.raises(ModelFileError, match=said):
        checkpoint.load(path)


def test_estimators_refuse_crafted_models_as_files_do() -> None:
    estimator = SparseOnlineClassifier(rule=BALL).fit(np.eye(3), [0, 1, 0])
    state = estimator.__getstate__()
    head, tensors = model_file.from_bytes(state["_model"])
    assert pickle.loads(pickle.dumps(estimator)).predict(np.eye(3)).shape == (3,)
    for changes, said in (
        ({"state.clock": tensors["state.clock"][:0]}, "clock has the shape"),
        ({}, "recipe.outputs: expected str"),
    ):
        header = head if changes else {**head, "recipe": {**head["recipe"], "outputs": 1}}
        crafted = model_file.as_bytes(header, {**tensors, **changes})
        with pytest.raises(ModelFileError, match=said):
            SparseOnlineClassifier().__setstate__({**state, "_model": crafted})
    assert zlib.crc32(state["_model"]) == zlib.crc32(estimator.__getstate__()["_model"])
