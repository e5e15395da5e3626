"""The arguments of the package's functions: positional labels, parts in their place, docstrings."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import thresher
from thresher.data.errors import DataError

pytestmark = pytest.mark.usefixtures("plainly")
CHANCE = np.random.default_rng(0)
X = CHANCE.normal(size=(120, 4))
Y = np.where(X[:, 0] + 0.3 * CHANCE.normal(size=120) > 0, 1, -1)
LEARNERS: list[Callable[..., Any]] = [
    thresher.train,
    lambda *given, **named: thresher.path(*given, l1="0.5:4:3", holdout_every=4, **named),
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
        *("predict", "evaluate", "report", "info", "diff", "load", "save"),
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


def test_labels_that_are_times() -> None:
    with pytest.raises(DataError, match=r"labels y are times \(datetime64\[D\]\)"):
        thresher.train(X, np.arange(120).astype("M8[D]"), "squared")


def test_wrong_arguments_of_a_report(tmp_path: Path) -> None:
    model, page = thresher.train(X, Y), tmp_path / "page.html"
    for wrong in (5, None, Y):
        with pytest.raises(TypeError, match=r"path must be the name of a file, not .*; labels are .* y="):
            thresher.report(model, X, wrong)  # type: ignore[arg-type]
    for columns in (b"a", [None], X):
        with pytest.raises(ValueError, match=r"slices must be the name or position of a column.{,120}$"):
            thresher.report(model, X, page, y=Y, slices=columns)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="labels, weights or offsets are given without data"):
        thresher.report(model, path=page, y=Y)
    assert not page.exists()
    with pytest.raises(DataError, match=r"data must be a path, .* not NoneType"):
        thresher.evaluate(model, None, Y)  # type: ignore[arg-type]
