"""A recipe defines a model completely: it makes the same model from a file, options or a call."""

import json
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from tests.intakes import LAYOUT
from thresher import parts
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.options.model import RecipeOptions
from thresher.options.option import UsageError, options_of
from thresher.plans.run import check_same, of_recipe

OTHERS: dict[str, tuple[Any, Any]] = {
    "rule": ("sgd", "fobos:l1=0.5"),
    "loss": ("hinge", "squared"),
    "rate": ("constant:0.5", "inverse"),
    "outputs": ("one", "values:3"),
    "batch": (1, 7),
    "average": (False, True),
    "scale": (None, "max-abs"),
    "centre": (False, True),
    "admit": (None, "3"),
    "store": ("growing", "hashed:9,5,signed"),
    "intercept": (True, False),
    "dtype": ("float32", "float64"),
    "seed": (0, 5),
    "sample": (None, "1=0.25"),
    "calibrate": (False, True),
    "nonnegative": (None, "*"),
    "nonpositive": (None, "3,price"),
}
"""Two values of each field of which either makes a model beside the first values of the others"""
FIRST = {name: values[0] for name, values in OTHERS.items()}
pytestmark = pytest.mark.usefixtures("as_commands_say")
RULES = sorted(parts.names("rule"))


@pytest.fixture
def recipe() -> Recipe:
    return Recipe(**FIRST)


def test_every_field_is_an_option_and_stands_in_a_header() -> None:
    names = [field.name for field in fields(Recipe)]
    assert set(names) == {*OTHERS, "layout", "offset"} == set(model_file.RECIPE)
    assert options_of(RecipeOptions).keys() == {*OTHERS, "l1", "alpha", "l2", "eta0"}
    assert list(Recipe().as_dict()) == names


@pytest.mark.parametrize("name", OTHERS)
def test_a_changed_field_makes_another_recipe_and_cannot_be_resumed(name: str, recipe: Recipe) -> None:
    first, second = OTHERS[name]
    changed = replace(recipe, **{name: second})
    assert changed != recipe
    same = {field: value for field, value in recipe.as_dict().items() if field != name}
    assert same.items() <= changed.as_dict().items(), "nothing else changes"
    assert replace(changed, **{name: first}) == recipe
    check_same(of_recipe({name: first}, recipe), "the checkpoint")
    check_same(of_recipe({name: second}, changed), "the checkpoint")
    with pytest.raises(UsageError, match=f"the checkpoint was made .*{name}.*; leave --{name} out"):
        check_same(of_recipe({name: second}, recipe), "the checkpoint")


def test_what_changes_a_rule_is_compared_as_part_of_it(recipe: Recipe) -> None:
    sparse = replace(recipe, rule="ftrl", rate=None, l1=0.25)
    check_same(of_recipe({"l1": 0.25}, sparse), "the checkpoint")
    check_same(of_recipe({"rule": "ftrl", "l1": 0.25}, sparse), "the checkpoint")
    for asked, options in (({"l1": 0.5}, "--l1"), ({"rule": "ftrl"}, "--rule"), ({"alpha": 9.0}, "--alpha")):
        with pytest.raises(UsageError, match=f"leave {options} out"):
            check_same(of_recipe(asked, sparse), "the checkpoint")
    with pytest.raises(UsageError, match="leave --rule and --l1 out"):
        check_same(of_recipe({"rule": "ftrl", "l1": 0.5}, sparse), "the checkpoint")


@pytest.mark.parametrize("name", RULES)
def test_a_header_makes_the_same_recipe(name: str) -> None:
    recipe = Recipe(name, seed=3, store="hashed:9", layout=LAYOUT)
    kept = json.loads(json.dumps(recipe.as_dict()))
    assert Recipe.from_dict(kept) == recipe
    assert parts.spec_of(recipe.rule_part) == recipe.rule
    assert replace(recipe) == recipe


def test_a_model_and_its_file_have_the_recipe(tmp_path: Any) -> None:
    recipe = Recipe("fobos:l1=0.1", rate="inverse:2", average=True, admit="poisson:0.5", store="hashed:9")
    model = Model(recipe)
    assert model.recipe == recipe
    assert (str(model.dtype), recipe.dtype) == ("float64", "float32"), "for the average"
    assert (model.store, recipe.store, recipe.as_dict()["store"]) == ("hashed:9,0", "hashed:9", "hashed:9,0")
    model_file.save(model, tmp_path / "model")
    loaded, head = model_file.load(tmp_path / "model")
    assert loaded.recipe == recipe
    assert head["recipe"] == recipe.as_dict()
    assert Model(recipe, seed=4).recipe == replace(recipe, seed=4) != recipe


def test_recipes_are_values(recipe: Recipe) -> None:
    rule = parts.rule_of("sgd", "constant:0.5")
    assert Recipe(rule) == Recipe("sgd", rate="constant:0.5") == Recipe("sgd", rate="constant:eta0=0.5")
    assert Recipe("ft-ftrl:l1=2") == Recipe(l1=2) == Recipe(parts.make("rule", "ft-ftrl"), l1=2.0)
    with pytest.raises(FrozenInstanceError):
        recipe.seed = 1  # type: ignore[misc]
    assert {recipe: 1}[Recipe(**FIRST)]


def test_models_say_what_they_are(tmp_path: Any) -> None:
    model = Model("sgd", rate="constant:0.5", batch=3)
    recipe = "Recipe(rule='sgd:', loss='logistic:positive=1.0', rate='constant:eta0=0.5', batch=3)"
    assert repr(model.recipe) == recipe
    assert model.recipe == Recipe(
        rule="sgd:", loss="logistic:positive=1.0", rate="constant:eta0=0.5", batch=3
    )
    assert repr(model) == f"<Model of {recipe}: 0 examples, 0 features seen>"
    model_file.save(model, tmp_path / "model")
    predictor = model_file.load_predictor(tmp_path / "model")[0]
    assert repr(predictor) == "<LinearPredictor: logistic loss, outputs one, 0 features>"


def test_what_follows_from_other_fields_follows_them_when_they_change() -> None:
    hashed = Recipe("sgd", store="hashed:10")
    for seed in (0, 2):
        changed = replace(hashed, seed=seed)
        assert changed == Recipe("sgd", store="hashed:10", seed=seed) == Recipe.from_dict(changed.as_dict())
        assert Model(changed).store == f"hashed:10,{seed}"
        assert Model(changed).feed.index.seed == seed
    assert Model(Recipe("sgd", store="hashed:10,7", seed=2)).store == "hashed:10,7"
    averaged = Recipe("sgd", average=True)
    assert [str(one.numbers) for one in (averaged, replace(averaged, average=False))] == [
        "float64",
        "float32",
    ]
