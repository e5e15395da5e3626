"""Malicious headers with correct checksums, and truncated or damaged files: one line each."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fuzz.models import Case
from tests.learning.test_crafted import BALL, learned, lines_of, written
from tests.plain import not_compiled
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.model_file import EDITION, MODEL, RECIPE, Contents, ModelFileError
from thresher.learning.model.bags import Bagged, Bags
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Fail if compiled code is reached."""
    with not_compiled():
        yield


HEADERS: list[tuple[dict[str, Any], str]] = [
    ({"outputs": "classes:0-2"}, "outputs classes:0-2|weights.values has the shape"),
    ({"outputs": "trees"}, "no outputs are called 'trees'"),
    ({"outputs": "labels:0-2"}, "weights.values has the shape"),
    ({"outputs": "values:99999999"}, "at most 65536"),
    ({"outputs": 3}, "recipe: outputs must be text, not 3"),
    ({"outputs": None}, "recipe: outputs must be text, not None"),
    ({"store": "hashed:32"}, "bits must lie in 1..31"),
    ({"store": "attic\nroof"}, r"no store is called 'attic\\nroof'"),
    ({"store": "direct"}, "feature id 9223372036854775808 is too large for the direct store"),
    ({"store": "hashed:6"}, "9223372036854775808 is not a row of the store hashed:6"),
    ({"loss": "softmax"}, "needs outputs classes"),
    ({"loss": "logistic:positive=-1"}, "positive must be > 0"),
    ({"sample": ""}, "must be LABEL=SHARE"),
    ({"sample": "0=2"}, "the share of 0 must lie between 0 and 1"),
    ({"sample": "0=nan"}, "the share of 0 must lie between 0 and 1"),
    ({"sample": "x=0.3", "layout": {"format": "svmlight"}}, "the label x is a word, those of the data are"),
    ({"sample": "0=0.3", "loss": "squared"}, "is for classes, not for the loss squared"),
    ({"calibration": [1.0, 0.0], "loss": "squared"}, "is for classes of which each row has one"),
    ({"calibration": [1.0, 0.0], "average": True}, "is that of the last weights"),
    (
        {"calibration": [0.0, 0.0], "loss": "softmax", "outputs": "classes:0-1"},
        "the inverse of a temperature must be > 0",
    ),
    ({"calibrate": True, "average": True}, "is that of the last weights"),
    ({"lowest_label": float("nan")}, "lowest_label must be a finite number"),
    ({"nonzero": -1}, "nonzero must be a number >= 0"),
    ({"intercept": 1}, "intercept must be true or false"),
    ({"layout": []}, "layout must be an object or null"),
    ({"layout": {"format": 3}}, "the layout's format must be text"),
    ({"layout": {"format": "nonsense"}}, "no format is called 'nonsense'; known: svmlight, "),
    ({"layout": {"format": "csv", "columns": [[]]}}, "the layout's columns must be a list of texts"),
    ({"layout": {"format": "csv", "columns": ["a"]}}, "the layout has 1 columns but 0 kinds"),
    ({"layout": {"format": "csv", "columns": ["a"], "kinds": ["b"]}}, "unknown kind of column 'b'"),
    (
        {"layout": {"format": "csv", "columns": ["a"], "kinds": ["offset"], "spelling": [""]}},
        "the layout says where offsets are, but the recipe that there are none",
    ),
    (
        {"layout": {"format": "csv", "columns": ["a", "b"], "kinds": ["offset"] * 2}, "offset": True},
        "the layout has several columns of the kind 'offset'",
    ),
    ({"layout": {"format": "vw", "offset": "zzz"}, "offset": True}, "the layout's offset must be base"),
    ({"layout": {"format": "csv", "colour": "red"}}, "colour, which this version does not know"),
    ({"format": "1"}, "format must be a number >= 0"),
    ({"version": ["a\nb"]}, r"version must be text"),
    ({"format": 3, "version": "9\n9"}, r"written by thresher 9\\n9"),
]


@pytest.mark.parametrize(("changes", "said"), HEADERS, ids=range(len(HEADERS)))
def test_a_header_that_cannot_be_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    model = Model("ftrl:l1=0.01")
    model.learn(Chunk.of_rows([(1.0, {3: 1.0, 2**63: 0.5}), (-1.0, {3: 0.25, 9: 2.0})] * 4))
    path = written(tmp_path / "model", model, lambda tensors: None, **changes)
    with pytest.raises(ModelFileError, match=said) as found:
        model_file.load_readout(path)
    assert "\n" not in str(found.value)


HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**70,
    10**400,
    1e400,
    float("nan"),
    "",
    "x",
    "a\nb",
    "\ud800",
    [],
    {},
    [[]],
    {"a": {}},
)


@pytest.mark.parametrize("name", sorted({*EDITION, *MODEL, *RECIPE}))
def test_any_field_may_hold_anything(name: str, tmp_path: Path) -> None:
    """The file is refused in one line, or harmless."""
    model = learned("ftrl:l1=0.01")
    for value in HOSTILE:
        path = written(tmp_path / "model", model, lambda tensors: None, **{name: value})
        for load in (model_file.load_readout, model_file.load):
            assert len(lines_of(load, path)) <= 1
    whole, tensors = model_file.header_of(model), model_file.tensors_of(model)
    if name in ("centre", "sample", "calibrate", "nonnegative", "nonpositive", "offset"):
        return  # models of older versions do not have it
    where = "recipe" if name in RECIPE else "header" if name in EDITION else "model"
    del (whole["recipe"] if where == "recipe" else whole)[name]
    model_file.write(path, whole, tensors)
    with pytest.raises(ModelFileError, match=f"{where}: {name} is missing"):
        model_file.load(path)


def nested(path: Path, depth: int) -> Path:
    """A model file whose header is deeply nested brackets, written by hand because `json` would refuse."""
    text = '{"format": 2, "deep": ' + "[" * depth + "]" * depth + "}"
    raw = json.dumps({"__metadata__": {"thresher": text}}).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)
    return path


def test_a_header_nested_deeply_is_refused(tmp_path: Path) -> None:
    for read in (model_file.read, lambda path: model_file.from_bytes(path.read_bytes(), str(path))):
        with pytest.raises(ModelFileError, match="the header is nested too deeply"):
            read(nested(tmp_path / "model", 10**5))
        with pytest.raises(ModelFileError, match="does not match its checksum"):
            read(nested(tmp_path / "model", 10))


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "F16", "I16", "C64"])
def test_kinds_of_numbers_that_no_model_has(kind: str, tmp_path: Path) -> None:
    model_file.save(learned("ftrl"), tmp_path / "model")
    raw = (tmp_path / "model").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8 : 8 + length])
    size = head["0.weights.intercept"]["data_offsets"][1] - head["0.weights.intercept"]["data_offsets"][0]
    head["0.weights.intercept"] |= {"dtype": kind, "shape": [size // {"F8_E4M3": 1, "C64": 8}.get(kind, 2)]}
    text = json.dumps(head).encode()
    (tmp_path / "model").write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    with pytest.raises(ModelFileError):
        model_file.load_readout(tmp_path / "model")


TRAININGS: list[tuple[str, Any, str]] = [
    ("data", None, "data must be a list of names, size, where"),
    ("holdout", [0], "holdout must be what is held out"),
    ("position", {}, "position: number is missing"),
    ("position.number", 0, "number must be a number >= 1"),
    ("position.place", [0, 1], "place must be a list of file, offset, line or null"),
    ("reported", [10**400, 1], "reported must be a list of loss, weight"),
    ("bests.0.number", 10**400, "a number >= 1"),
    ("position.place", [0, 2**70, 1], "place must be a list of file, offset, line or null"),
    ("position.place", [9, 0, 0], "the position is in file 10, which does not exist"),
    ("position.learned", -1, "learned must be a number >= 0"),
    ("position.number", 9, "position: stopped in pass 9 of 3"),
    ("passes", 1, "position: stopped in pass 3 of 1"),
    ("bests.0.number", 4, "bests: pass 4 is not finished in pass 3"),
    ("position.report", {"lines": 1}, "report: examples is missing"),
    ("position.report.first_bad", [{}], "first_bad: file is missing"),
    ("position.more", 1, "position: unknown field more"),
    ("label", "x", "label must be a number"),
    ("table", [[1]], "table must be a list, each a list of examples, "),
    ("reported", [1.0], "reported must be a list of loss, weight"),
    ("bests.0", {"number": 1}, "figures is missing"),
    ("bests.0.figures", {"loss": "low"}, "loss must be a number"),
    ("data", ["a.svm", 1], "data must be a list of names, size, where"),
    ("read", [[1]], "read must be hashes and sizes"),
    ("bests", {"1": {"number": 1, "figures": {"loss": 1.0}}}, "waited: not of the same models"),
    ("bests", {"٠": {"number": 1, "figures": {"loss": 1.0}}}, "is not the number of a model"),
    ("waited", None, "waited must be"),
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
    [(None, 25, 19), ([0, 0, 0], 10**12, 19), ([0, 5, 9], 1, 0), ([0, 2**60, 0], 40, 0)],
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


def test_the_best_pass_of_a_checkpoint_is_checked_before_training_goes_on(
    stopped: Path, tmp_path: Path
) -> None:
    head, tensors = model_file.read(stopped)
    model_file.write(
        tmp_path / "checkpoint", head, {**tensors, "best.0.clock": tensors["best.0.clock"] + 1e30}
    )
    with pytest.raises(ModelFileError, match="checkpoint: clock: the heap"):
        Case(BALL).trainer(tmp_path / "checkpoint", checkpoint.load(tmp_path / "checkpoint"))


SETS: list[tuple[str, Any, str]] = [
    ("recipes", [], "it has another number of models"),
    ("recipes", [3, 3], "recipes: damaged"),
    ("recipes", None, "recipes must be a list"),
    ("share", "folds:3", "an ensemble is N"),
    ("share", "poisson:3", "it has another number of models"),
    ("racing", True, "its models race"),
    ("dropped", {"2": "why"}, "there are fewer models"),
    ("dropped", {"-1": "why"}, "'-1' is not the number of a model"),
    ("resting", [2], "there are fewer models"),
    ("curves", [[]], "it has another number of models"),
    ("curves", [3, 3], "curve must be"),
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
    checkpoint.save(path, models, replace(training, bests={}, waited={}))
    found = checkpoint.load(path)[0]
    assert [as_bytes(one) for one in found.models] == [as_bytes(one) for one in models.models]
    head, tensors = Contents.of(path).model(0)
    head["lanes"][name] = value
    model_file.write(path, head, tensors)
    with pytest.raises(ModelFileError, match=said):
        checkpoint.load(path)


@pytest.mark.parametrize("load", [model_file.load_readout, model_file.load, checkpoint.load])
def test_a_file_cut_at_any_kilobyte_is_refused(
    load: Callable[[Path], Any], stopped: Path, tmp_path: Path
) -> None:
    raw, path = stopped.read_bytes(), tmp_path / "cut"
    assert len(raw) > 20 << 10
    for length in [*range(1 << 10, len(raw), 1 << 10), len(raw) - 1]:
        path.write_bytes(raw[:length])
        (line,) = lines_of(load, path)
        assert line.startswith(f"thresher: {path}: a damaged or truncated model")


def test_a_flipped_bit_is_refused_or_means_the_same(stopped: Path, tmp_path: Path) -> None:
    raw, path = stopped.read_bytes(), tmp_path / "flipped"
    before, refused = model_file.read(stopped), 0
    for bit in range(0, 8 * len(raw), 8 * len(raw) // 700 | 1):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        said = lines_of(checkpoint.load, path)
        assert len(said) <= 1
        refused += len(said)
        if not said:
            found = model_file.read(path)
            assert json.dumps(found[0]) == json.dumps(before[0])
            assert all(np.array_equal(found[1][name], before[1][name]) for name in before[1])
    assert refused > 600
