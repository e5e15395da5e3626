"""Arguments of the package's functions: options as keywords, positional labels; weights by name."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import thresher
from tests.layouts import layout_of
from thresher.cli.app import command_of
from thresher.data.errors import DataError
from thresher.data.features.names import Names
from thresher.data.layout import Layout
from thresher.learning.model.recipe import Recipe
from thresher.options.data import LayoutOptions, ReadOptions
from thresher.options.model import RecipeOptions
from thresher.options.option import options_of
from thresher.sklearn import SparseOnlineClassifier

pytestmark = pytest.mark.usefixtures("plainly")
CHANCE = np.random.default_rng(0)
X = CHANCE.normal(size=(120, 4))
Y = np.where(X[:, 0] + 0.3 * CHANCE.normal(size=120) > 0, 1, -1)
LEARNERS: list[Callable[..., Any]] = [
    thresher.train,
    lambda *given, **named: thresher.path(*given, l1="0.5:4:3", holdout="every-4th", **named),
    lambda *given, **named: thresher.cv(*given, l1="0.5:4:3", folds=3, refit=True, **named),
    lambda *given, **named: thresher.tune(*given, rules=["ftrl"], budget=3, **named),
    thresher.boost,
]


def weights(found: Any) -> list[bytes]:
    model = found if hasattr(found, "weights") else found.model_
    return [part.tobytes() for part in (model.weights() if callable(model.weights) else [model.weights])]


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
@pytest.mark.parametrize("learn", LEARNERS)
def test_labels_may_be_the_second_argument(learn: Callable[..., Any]) -> None:
    assert weights(learn(X, Y)) == weights(learn(X, y=Y)) == weights(learn((X, Y)))


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
@pytest.mark.parametrize(
    ("learn", "name", "part"),
    [*((one, "rule", "rda") for one in LEARNERS[:3]), (LEARNERS[4], "loss", "logistic")],
)
def test_a_part_may_stand_in_place_of_labels(learn: Callable[..., Any], name: str, part: str) -> None:
    assert weights(learn((X, Y), part)) == weights(learn((X, Y), **{name: part}))
    with pytest.raises(TypeError, match=f"two (rules|losses) are given, '{part}' and '.*'"):
        learn((X, Y), part, **{name: {"rda": "ftrl", "logistic": "hinge"}[part]})


@pytest.mark.parametrize("learn", LEARNERS)
def test_a_column_in_place_of_labels_is_a_label(learn: Callable[..., Any]) -> None:
    table = pa.table({"a": X[:, 0], "class": Y})
    with pytest.raises(TypeError, match=r"'class' is a column of the data: did you mean label='class'\?"):
        learn(table, "class")
    with pytest.raises(ValueError, match=r"colour|label="):
        learn(table, "colour")


@pytest.mark.parametrize(("function", "more"), [(thresher.path, {}), (thresher.cv, {"folds": 3})])
def test_the_end_of_the_range_is_noted(function: Callable[..., Any], more: dict[str, Any]) -> None:
    note = "the weakest penalty of the range was chosen: a wider range may contain a better one"
    assert repr(function(X, Y, l1="2:16:3", passes=1, **more)).splitlines()[-1] == note
    assert note not in repr(function(X, Y, l1="1e-3:4:9", passes=1, **more))


@pytest.mark.parametrize(
    "name",
    [
        *("train", "path", "cv", "ensemble", "select", "tune", "boost"),
        *("predict", "evaluate", "report", "info", "load", "save"),
    ],
)
def test_docstrings_describe_every_argument(name: str) -> None:
    function = getattr(thresher, name)
    text = inspect.getdoc(function) or ""
    parameters = [one for one in inspect.signature(function).parameters if one not in ("args", "callback")]
    shared = (inspect.getdoc(thresher.train) or "") if "options:" in text or "options: as" in text else ""
    every = text.partition("Args:")[2] + shared.partition("Args:")[2]
    described = re.findall(r"^    ([\w, *]+?):", every, re.MULTILINE)
    names = {one.strip(" *") for entry in described for one in entry.split(",")}
    for one in parameters:
        assert one in names or any(f"{quotes}{one}{quotes}" in text + shared for quotes in ("`", "``")), one


WRONG_MATRICES: dict[str, tuple[Any, str]] = {
    "complex": (X + 1j, "its dtype is complex128: take real and imaginary parts"),
    "times": (np.arange(120).astype("M8[D]").reshape(-1, 1), r"its dtype is datetime64\[D\]: make numbers"),
    "durations": (np.arange(120).astype("m8[D]").reshape(-1, 1), r"its dtype is timedelta64\[D\]"),
    "masked": (np.ma.masked_array(X, X > 1), "masked arrays are not supported"),
}


@pytest.mark.parametrize("name", WRONG_MATRICES)
def test_matrices_that_numpy_would_convert_to_other_numbers(name: str) -> None:
    matrix, message = WRONG_MATRICES[name]
    with pytest.raises(DataError, match=message):
        thresher.train(matrix, Y)
    model = thresher.train(X, Y)
    with pytest.raises(DataError, match=message):
        model.predict(matrix)


NO_KEYWORDS = {
    "model": "the model is returned: Model.save writes it",
    "weights_only": "an argument of Model.save: state=False",
    "curve": "the table of progress is written by the command",
    "quiet": "nothing is printed",
    "json": "the figures are attributes of the model",
    "ensemble": "an argument of thresher.ensemble, which returns all the models: models=N",
    "by": "an argument of thresher.ensemble: models='by:COLUMN'",
    "strict": "warnings are TroubleWarnings, which the module warnings makes errors",
}


def keywords() -> set[str]:
    return {*signature(thresher.train).parameters}


def options() -> set[str]:
    return {"data", *command_of("train").known}


def test_every_option_of_train_is_a_keyword() -> None:
    assert options() - keywords() == NO_KEYWORDS.keys()
    assert not NO_KEYWORDS.keys() & keywords()


def test_the_table_names_every_field() -> None:
    of_layout = {one.name for one in fields(Layout)} - {"seed", "gaps"}  # which follow from the recipe
    assert options_of(LayoutOptions).keys() == of_layout
    of_recipe = {one.name for one in fields(Recipe)} - {"layout", "offset"}
    assert options_of(RecipeOptions).keys() == of_recipe | {"alpha", "l1", "l2", "eta0"}
    opening, elsewhere = {"layout", "on_error", "threads", "where"}, {"workers", "ray", "offsets"}
    assert options_of(ReadOptions).keys() == of_layout | opening | elsewhere
    assert opening < signature(thresher.open_source).parameters.keys()


def test_every_keyword_is_in_the_docstring_of_train() -> None:
    told = thresher.train.__doc__ or ""
    for name in keywords() - {"quoting", "label_weights"}:
        assert f"{name}:" in told or f"``{name}``" in told or f"`{name}`" in told, name


SAID: list[dict[str, Any]] = [
    {"format": "tsv", "header": False, "label": "1", "bins": "2-14"},
    {"format": "csv", "delimiter": r"\t", "missing": "NA,?"},
    {"label": "y", "weight": "w", "numeric": "a,b", "categorical": "c*", "text": "t", "ignore": "id,7"},
    {"format": "csv", "quoting": False},
    {"ngrams": "words=1-2", "bits": 18, "hash": "vw", "label_weights": True},
]


@pytest.mark.parametrize("said", SAID)
def test_a_keyword_says_what_the_option_does(said: dict[str, Any]) -> None:
    known = options_of(LayoutOptions)
    typed = {name: str(value) for name, value in said.items() if not isinstance(value, bool)}
    flags: dict[str, Any] = {name: value for name, value in said.items() if isinstance(value, bool)}
    assert layout_of(said) == Layout(**flags, **{name: known[name].read(one) for name, one in typed.items()})


def test_columns_are_texts_numbers_or_lists() -> None:
    assert layout_of({"label": 1, "weight": 2, "bins": 3}) == Layout(label="1", weight="2", bins=("3",))
    assert layout_of({"bins": ["a,b", 4]}) == Layout(bins=("a,b", "4"))
    assert layout_of({"interact": "a,b"}) == Layout(interact=("a,b",))
    assert layout_of({"interact": ["a,b", "b,c"], "label": ("y", 3)}) == Layout(
        interact=("a,b", "b,c"), label="y,3"
    )
    assert layout_of({"label": None, "bits": None}) is None


def test_flat_parameters_change_the_rule() -> None:
    data: Any = ([[1.0], [0.5]], [1, -1])
    model = thresher.train(*data, rule="ftrl", l1=0.25, l2=0.5, alpha=2.0)
    assert model.recipe.rule == "ftrl:alpha=2.0,beta=1.0,l1=0.25,l2=0.5,half_life=inf"
    model = thresher.train(*data, rule="sgd", eta0=0.25)
    assert model.recipe.rate is not None
    assert "0.25" in model.recipe.rate
    assert model.recipe == Recipe("sgd", eta0=0.25)
    with pytest.raises(ValueError, match="ft-ftrl has no parameter l2"):
        thresher.train(*data, l2=1.0)
    with pytest.raises(ValueError, match="has no parameter eta0"):
        thresher.train(*data, eta0=1.0)


FRAME = pd.DataFrame({"age": np.arange(30) - 14.5, "city": ["Rome", "Bonn", "Ulm"] * 10})
LABELS = np.where((FRAME.age > 3) ^ (FRAME.city == "Ulm"), 1, -1)


@pytest.fixture
def model() -> thresher.Model:
    return thresher.train(FRAME, LABELS, rule="sgd", names=True)


def test_names_are_a_mapping(model: thresher.Model) -> None:
    names = model.names
    assert isinstance(names, Mapping)
    assert set(names.values()) == {"age", "city=Rome", "city=Bonn", "city=Ulm"}
    assert [*names] == model.weights()[0].tolist()
    assert dict(names.items()) == names
    assert all(key in names and names[key] == name == names.get(key) for key, name in names.items())
    for missing in (0, -1, 1 << 70):
        assert missing not in names
        assert names.get(missing) is None
        with pytest.raises(KeyError):
            names[missing]
    assert repr(names).startswith("<Names of 4 features: {")
    assert "and 2 more" in repr(Names.of(dict.fromkeys(range(6), b"a")))


def test_a_frame_has_every_weight_heaviest_first(model: thresher.Model) -> None:
    frame = model.weights_frame()
    keys, weights = model.weights()
    assert frame.columns.tolist() == ["feature", "key", "weight"]
    assert dict(zip(frame.key, frame.weight, strict=True)) == dict(zip(keys, weights, strict=True))
    assert frame.weight.dtype == weights.dtype
    assert (np.diff(frame.weight.abs()) <= 0).all()
    assert model.names is not None
    assert [model.names[key] for key in frame.key] == frame.feature.tolist()
    pd.testing.assert_frame_equal(model.weights_frame(2), frame[:2])
    pd.testing.assert_frame_equal(model.predictor().weights_frame(), frame)


def test_numeric_columns_have_names_without_asking() -> None:
    frame = thresher.train(FRAME, LABELS, rule="sgd").weights_frame()
    assert sorted(frame.feature) == sorted(["age", *frame.key[frame.feature != "age"].astype(str)])
    hashed = thresher.train(FRAME, LABELS, rule="sgd", store="hashed:8").weights_frame()
    assert "age" not in set(hashed.feature)


def test_a_frame_of_classes_says_which() -> None:
    labels = np.arange(30) % 3 + 5
    model = thresher.train(FRAME, labels, rule="sgd", outputs="classes", names=True)
    frame = model.weights_frame()
    assert set(frame.output) <= {5, 6, 7}
    keys, weights = model.weights()
    for one in frame.itertuples():
        assert (
            weights[np.searchsorted(keys, np.uint64(one.key)), model.classes.index(str(one.output))]
            == one.weight
        )
    assert len(frame) == np.count_nonzero(weights)


def test_a_fitted_classifier_is_measured_on_a_pair(tmp_path: Path) -> None:
    words = np.where(LABELS > 0, "yes", "no")
    fitted = SparseOnlineClassifier().fit(FRAME, words)
    expected = thresher.evaluate(fitted, FRAME, words)
    assert thresher.evaluate(fitted, (FRAME, words)) == expected
    weights = np.arange(len(LABELS)) % 3 + 1
    heavy = thresher.evaluate(fitted, FRAME, words, sample_weight=weights)
    assert thresher.evaluate(fitted, (FRAME, words, weights)) == heavy != expected
    thresher.report(fitted, (FRAME, words), tmp_path / "r.html")
    with pytest.raises(DataError, match="label 'maybe' is not among the classes"):
        thresher.evaluate(fitted, (FRAME, ["maybe"] * len(LABELS)))


def test_names_that_cannot_be_had_are_refused_before_learning() -> None:
    with pytest.raises(DataError, match="hashed store"):
        thresher.train(FRAME, LABELS, names=True, store="hashed:8")
    with pytest.raises(DataError, match="a matrix or a log has no feature names"):
        thresher.train(np.eye(3), [1, -1, 1], names=True)
    with pytest.raises(ValueError, match="names must be True or False"):
        thresher.train(FRAME, LABELS, names="yes")  # type: ignore[arg-type]


def test_labels_that_are_times() -> None:
    with pytest.raises(DataError, match=r"labels y are times \(datetime64\[D\]\)"):
        thresher.train(X, np.arange(120).astype("M8[D]"), "squared")
