"""Every option of `thresher train` is a keyword of `thresher.train` with the same meaning."""

from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

import thresher
from tests.layouts import layout_of
from thresher.cli.app import command_of
from thresher.cli.parser import Command
from thresher.data.layout import Layout
from thresher.learning.model.recipe import Recipe
from thresher.options.data import LayoutOptions, ReadOptions, TableOptions
from thresher.options.kinds import Whole
from thresher.options.messages import on_the_command_line
from thresher.options.model import RecipeOptions
from thresher.options.option import PYTHON, Option, Options, declared, settle, words_of
from thresher.options.training import TrainCommand
from thresher.plans import repeat

NO_KEYWORDS = {
    "model": "the model is returned: Model.save writes it",
    "weights_only": "an argument of Model.save: state=False",
    "curve": "the table of progress is written by the command",
    "quiet": "nothing is printed",
    "json": "the figures are attributes of the model",
    "ensemble": "an argument of thresher.ensemble, which returns all the models: models=N",
    "strict": "warnings are TroubleWarnings, which the module warnings makes errors",
}


pytestmark = pytest.mark.usefixtures("plainly")


def keywords() -> set[str]:
    return {*signature(thresher.train).parameters}


def options() -> set[str]:
    return {"data", *command_of("train").known}


def test_every_option_of_train_is_a_keyword() -> None:
    assert options() - keywords() == NO_KEYWORDS.keys()
    assert not NO_KEYWORDS.keys() & keywords()


def test_the_command_that_repeats_a_training_says_every_option_that_changes_it() -> None:
    known = declared(RecipeOptions).keys() | declared(TableOptions).keys() | {*repeat.SAID, *repeat.UNSAID}
    own = declared(TrainCommand).items()
    unknown = {name for name, one in own if one.option.face != PYTHON} - known
    assert not unknown, f"name them in SAID or UNSAID of runs/repeat.py: {', '.join(sorted(unknown))}"
    assert not {*repeat.SAID} & {*repeat.UNSAID}


def test_the_table_names_every_field() -> None:
    of_layout = {one.name for one in fields(Layout)} - {"seed", "gaps"}  # which follow from the recipe
    assert declared(LayoutOptions).keys() == of_layout
    of_recipe = {one.name for one in fields(Recipe)} - {"layout", "offset"}
    assert declared(RecipeOptions).keys() == of_recipe | {"alpha", "l1", "l2", "eta0"}
    opening, elsewhere = {"layout", "on_error", "threads", "where"}, {"workers", "ray"}
    assert declared(ReadOptions).keys() == of_layout | opening | elsewhere
    assert opening < signature(thresher.open_source).parameters.keys()


def test_every_keyword_is_in_the_docstring_of_train() -> None:
    told = thresher.train.__doc__ or ""
    for name in keywords() - {"quoting", "quoted_newlines", "label_weights"}:
        assert f"{name}:" in told or f"``{name}``" in told or f"`{name}`" in told, name


SAID: list[dict[str, Any]] = [
    {"format": "tsv", "header": False, "label": "1", "bins": "2-14"},
    {"format": "csv", "delimiter": r"\t", "missing": "NA,?", "quoted_newlines": True},
    {"label": "y", "weight": "w", "numeric": "a,b", "categorical": "c*", "text": "t", "ignore": "id,7"},
    {"format": "csv", "quoting": False},
    {"ngrams": "words=1-2", "bits": 18, "hash": "vw", "label_weights": True},
]


@pytest.mark.parametrize("said", SAID)
def test_a_keyword_says_what_the_option_does(said: dict[str, Any]) -> None:
    known = declared(LayoutOptions)
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


def test_the_call_that_failed(tmp_path: Path) -> None:
    file = tmp_path / "clicks"
    row = "\t".join(str(k) for k in range(2, 15))
    file.write_text("".join(f"{k % 2}\t{row}\t{'xyz'[k % 3]}\n" for k in range(20)))
    model = thresher.train(file, format="tsv", header=False, label=1, bins="2-14")
    assert model.layout.kinds == ("label", *["bins"] * 13, "categorical")
    assert model.predict(file).shape == (20,)
    others: dict[str, Any] = {"ngrams": "words=2", "bits": 4, "categorical": "2-3", "label": 2}
    for name, value in others.items():
        with pytest.raises(ValueError, match="the model was trained with"):
            model.predict(file, **{name: value})


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


def test_early_stop_is_patience() -> None:
    data: Any = ([[1.0], [-1.0]] * 40, [1, -1] * 20 + [-1, 1] * 20)
    one = thresher.train(*data, passes=9, holdout_every=3, patience=1)
    other = thresher.train(*data, passes=9, holdout_every=3, early_stop=1)
    assert one.examples == other.examples < 9 * 54


class Renamed(TypedDict, total=False):
    rounds: Annotated[int | None, Option(Whole(1), "How many.", "N")]
    tries: Annotated[int | None, Option(Whole(1), "Older name of --rounds, until 0.3.", "N", now="rounds")]


def test_an_older_name_of_an_option_is_taken_with_a_warning_by_both_faces() -> None:
    with pytest.warns(FutureWarning, match=r"^tries is now called rounds$"):
        found: Any = settle(Renamed, {"tries": 3})
    assert (found["rounds"], found["tries"], found.given) == (3, None, {"rounds": 3})
    assert words_of(Renamed, found.given) == ["--rounds", "3"], "what a printed command says"
    with pytest.raises(ValueError, match="tries must be a whole number"):
        settle(Renamed, {"tries": 0})
    taken = dict[str, Any]()
    command = Command("make", Renamed, (), lambda **given: taken.update(given))
    command.main(["--tries", "4"], standalone_mode=False)
    with on_the_command_line(), pytest.warns(FutureWarning, match=r"^--tries is now called --rounds$"):
        found = Options(Renamed, {name: one for name, one in taken.items() if one is not None})
    assert found["rounds"] == 4
