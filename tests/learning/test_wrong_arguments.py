"""Invalid arguments of the Python API: one clear error of the documented type, before any work."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import thresher
from thresher.data.errors import DataError
from thresher.learning.model.recipe import Recipe
from thresher.options.judging import EvaluateRun
from thresher.options.lanes import CvCommand, PathCommand, SelectCommand, TuneOptions
from thresher.options.option import SHELL, Option, options_of
from thresher.options.training import BoostOptions, TrainCommand

X, Y = np.eye(4), np.array([1, -1, 1, -1])
CHUNK = thresher.Chunk.of_rows([(1.0, {1: 1.0})])


pytestmark = pytest.mark.usefixtures("plainly")


def endless() -> Iterator[dict[str, float]]:
    while True:
        yield {"a": 1.0}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        *((None, "data must be a path, .* not NoneType"), (3, "not int"), (b"train.svm", "not bytes")),
        ({"a": 1.0}, "not dict"),
        (io.StringIO("1 1:1\n"), "not StringIO"),
        (X, "a matrix \\(ndarray\\) without labels: give X and y, or \\(X, y\\)"),
        (csr_matrix(X), "a matrix \\(csr_matrix\\) without labels"),
        ([None], "item 1 of data is NoneType"),
        ([{"a": 1.0}], "rows of features without labels"),
        (endless(), "rows of features without labels"),
        ([CHUNK, "a.svm"], "item 2 of data is str: expected a Chunk"),
        (["a.svm", CHUNK], "item 2 of data is Chunk: expected a path"),
        ((X,), "is \\(X, y\\) or \\(X, y, weights\\)"),
        ((X, None), "with labels y"),
        ((X, Y, Y, Y), "is \\(X, y\\)"),
        ((X, ["yes", 1, "no", 2]), "must be all text or all numbers"),
        ([], "no data given"),
        (iter(()), "data holds no rows: an iterator can be read only once"),
        ("nope.svm", "nope.svm: No such file"),
        (Path("nope.svm"), "nope.svm: No such file"),
        (["nope.svm"], "nope.svm: No such file"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_data_that_are_none(data: Any, error: str) -> None:
    with pytest.raises(DataError, match=error):
        thresher.train(data)
    if not isinstance(data, Iterator):
        with pytest.raises(DataError, match=error):
            thresher.evaluate(thresher.Model(), data)


def test_an_error_of_the_data_itself_is_not_hidden() -> None:
    def failing() -> Iterator[Any]:
        yield {"a": 1.0}, 1
        raise RuntimeError("the sensor is gone")

    with pytest.raises(RuntimeError, match="the sensor is gone"):
        thresher.train(failing())


ODD: list[Any] = [[], {}, (), b"x", int, object(), np.array(1), np.array([1, 2]), np.array(["a"]), {"a"}]


def answer_to(one: Option, value: Any) -> str:
    try:
        one.take(value)
    except ValueError as error:
        return str(error)
    return one.name


@pytest.mark.parametrize(
    "options", [TrainCommand, PathCommand, CvCommand, SelectCommand, TuneOptions, BoostOptions, EvaluateRun]
)
def test_an_option_refuses_values_of_other_types_by_its_name(options: Any) -> None:
    called = {"choose": "a choice", "l1": "(l1|penalties|a range)"}
    for name, one in options_of(options).items():
        for value in ODD if one.face != SHELL else ():
            assert re.match(called.get(name, name), answer_to(one, value))


def test_a_column_is_a_number_of_any_type() -> None:
    for one in (1, np.int64(1), np.array(1), np.array([1])):
        assert options_of(TrainCommand)["bins"].take(one) == ("1",)
    with pytest.raises(ValueError, match="bins must be names or positions of columns, not <class 'int'>"):
        thresher.train((X, Y), bins=cast(Any, int))


def test_a_parameter_is_not_given_twice() -> None:
    with pytest.raises(ValueError, match='l1 is 1 in rule="ftrl:l1=1" and 2 in l1=2: give it once'):
        thresher.train(X, Y, rule="ftrl:l1=1", l1=2)
    with pytest.raises(ValueError, match=r"eta0 is 0\.1 in"):
        thresher.train(X, Y, rule="sgd", rate="constant:0.1", eta0=0.2)
    assert thresher.train(X, Y, rule="ftrl:l1=1", l1=1, passes=1).recipe == Recipe("ftrl", l1=1.0)


def test_a_recipe_defines_all_but_the_penalties() -> None:
    recipe, data = Recipe("ftrl", l1=3.0, alpha=0.25), (np.tile(X, (10, 1)), np.tile(Y, 10))
    found = thresher.path(data, rule=recipe, l1=[0.1, 1.0], passes=1)
    assert [model.recipe for model in found.models] == [replace(recipe, l1=0.1), replace(recipe, l1=1.0)]
    assert [point.penalty for point in thresher.cv(data, rule=recipe, l1=[0.1, 1.0], passes=1).points] == [
        0.1,
        1,
    ]
    (alone,) = thresher.cv(data, rule=recipe, passes=1).points
    assert alone.spec == recipe.rule


def test_names_that_a_model_or_boost_does_not_have() -> None:
    with pytest.raises(TypeError, match=r"Model has no option lable; it has rule, loss, rate, "):
        thresher.Model(lable=1)
    with pytest.raises(TypeError, match=r"Model has no option averge; did you mean average\?"):
        thresher.Model(averge=True)
    with pytest.raises(DataError, match=r'labels are 3 words .*: use loss="softmax", or name two, classes='):
        thresher.boost(X, ["a", "b", "c", "a"])
    with pytest.raises(DataError, match=r'for many: outputs="classes"; .*, found 2'):
        thresher.boost(X, [0, 1, 2, 1])
    assert thresher.boost(X, [0, 1, 2, 1], outputs="classes").head.count == 3
    assert thresher.boost(X, ["a", "b", "a", "b"]).classes == ("a", "b")


def test_an_option_is_checked_wherever_it_is_given() -> None:
    model = thresher.train((X, Y))
    learning: list[Any] = [thresher.path, thresher.cv, thresher.tune, thresher.ensemble, thresher.boost]
    for call in (
        *learning,
        partial(thresher.predict, model),
        partial(thresher.evaluate, model),
        model.predict,
    ):
        for wrong in (3, "x"):
            with pytest.raises(DataError, match="on_error must be fail, skip or quarantine=FILE"):
                call((X, Y), on_error=wrong)
    for call in (*learning[:-1], lambda data, seed: thresher.Model(seed=seed)):  # boost draws nothing
        with pytest.raises(ValueError, match="seed must be"):
            call((X, Y), seed=2**64)
    for call in (thresher.path, thresher.ensemble):
        with pytest.raises(ValueError, match="early_stop must be a whole number of at least 1"):
            call((X, Y), early_stop=0)


@pytest.mark.parametrize("name", ["bins", "categorical", "label", "missing", "interact"])
def test_a_dictionary_is_not_a_list_of_columns(name: str) -> None:
    given: dict[str, Any] = {name: {"c": 4}}
    with pytest.raises(ValueError, match=f"{name} must be .*, not "):
        thresher.train([{"c": 1.0}, {"c": 2.0}], [1, -1], **given)


@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_bad_lines_of_a_holdout_are_skipped_like_those_of_the_data(tmp_path: Path, on_error: str) -> None:
    good, bad = tmp_path / "good.svm", tmp_path / "bad.svm"
    good.write_text("1 1:1\n-1 2:1\n" * 20)
    bad.write_text("1 1:1\n-1 2:1\n1 1:x\n" * 5)
    spec = f"quarantine={tmp_path / 'rejected'}" if on_error == "quarantine" else on_error
    trained = thresher.train(good, holdout=bad, on_error=spec, passes=1)
    assert trained.examples == 40
    thresher.path(good, holdout=bad, on_error=spec)
    with pytest.raises(DataError, match=r"bad.svm.*3"):
        thresher.train(good, holdout=bad)


def test_models_learn_from_chunks_and_answer_what_they_can() -> None:
    model = thresher.train((X, Y))
    wrong: Any
    for wrong in (None, 3, b"x"):
        for call in (model.learn, model.predict, model.predictor().predict, model.predict_proba):
            with pytest.raises(DataError, match=f"data must be a path, .*, not {type(wrong).__name__}"):
                call(wrong)
    with pytest.raises(ValueError, match="output must be margin, probability, label, not 'class'"):
        model.predict(CHUNK, "class")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strict": True}, "train has no option strict; warnings.simplefilter"),
        ({"pases": 2}, r"train has no option pases; did you mean passes\?"),
        ({"epochs": 3}, r"train has no option epochs; did you mean passes\?"),
        ({"learning_rate": 0.1}, r"did you mean alpha\?"),
        ({"learning_rate": 0.1, "rule": "sgd"}, r"did you mean rate\?"),
        ({"random_state": 0}, r"did you mean seed\?"),
        ({"validation": 0.2}, r"did you mean holdout\?"),
        ({"holdot": 2}, r"did you mean holdout\?"),
        ({"alhpa": 2}, r"did you mean alpha\?"),
        ({"choose": "1se"}, r"use thresher.load\(path\).choose\('1se'\)"),
        ({"by": "shop"}, r"use thresher.ensemble\(..., models='by:shop'\)"),
        ({"detail": 1}, "train has no option detail; here the result has the figures"),
        ({"model": 1}, "train has no option model; the result has the model"),
        ({"ensemble": 1}, r"use thresher\.ensemble"),
        ({"models": 3}, r"use thresher\.ensemble\(\.\.\., models=3\)"),
        ({"lamda": 1}, r"did you mean l1\?"),
        ({"PASSES": 1}, r"did you mean passes\?"),
        ({"zzz": 2}, "train has no option zzz; it has data, y, loss, .*, l1, .*, seed,"),
    ],
)
def test_options_that_train_does_not_have(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        thresher.train((np.eye(2), [1, -1]), **options)


def test_a_recipe_trains_as_the_model_that_has_it_did() -> None:
    data = (np.eye(3), [1, -1, 1])
    first = thresher.train(data, "ftrl", l1=0.01, batch=2)
    again = thresher.train(data, first.recipe)
    other = thresher.train(data, first.recipe, batch=1)
    beside: tuple[dict[str, Any], ...] = ({"loss": "hinge"}, {"outputs": "values:2"})
    for said in beside:
        with pytest.raises(ValueError, match="a recipe contains its loss and outputs"):
            thresher.train(data, first.recipe, **said)
    with pytest.raises(TypeError, match="did you mean batch"):
        thresher.train(data, first.recipe, bach=1)  # type: ignore[call-arg]
    assert again.recipe == first.recipe
    assert again.weights()[1].tobytes() == first.weights()[1].tobytes()
    assert (other.recipe.batch, other.recipe.rule) == (1, first.recipe.rule)


def test_the_error_of_what_diverges_is_a_name_of_the_package() -> None:
    assert "DivergedError" in thresher.__all__
    with np.errstate(all="ignore"), pytest.raises(thresher.DivergedError, match="not finite"):
        thresher.train((np.full((9, 1), 1e20), np.full(9, 1e20)), "sgd", "squared", dtype="float32")
