"""Law 7: models trained side by side equal models trained alone, bit for bit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.laws import bits, lanes_are_runs, side_by_side
from tests.plain import compiled_if, not_compiled
from tests.streams import FLAT, KINDS, LOSSES, RATE, RULES, cut, domain_of, has_rate, settings_of, stream
from tests.telling import notices_to
from tests.test_averaging import ABLE
from tests.test_laws_of_state import FEATURES, KEYS, ROWS
from thresher.data.chunk import Chunk
from thresher.engine import lanes as engine_lanes
from thresher.engine.protocol import writes
from thresher.learning.model import eight_lanes as octet
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.parts import REGISTRY

WIDE = stream(seed=12, rows=ROWS, features=FEATURES, density=0.1, keys=KEYS).chunk
FEW = octet.FEW
DENSE = stream(seed=11, rows=ROWS, features=FEATURES, density=0.1).chunk
PLACES = [0, 7, 7, 30, 31, ROWS - 1]
FIRST = [settings_of(name)[0] for name in RULES]
EACH_KIND = [settings_of(name)[0] for name in KINDS]
COMPILED = {"fobos": 8}
"""A penalty owed and a common scale: an octet of so many is compiled. The docs compile rows that measure"""


def recipe_of(spec: str, rate: str = RATE, **options: Any) -> Recipe:
    return Recipe(
        spec, rate=rate if has_rate(spec) else None, **{"dtype": "float32", "centre": False, **options}
    )


def alone(recipe: Recipe, chunk: Chunk) -> Model:
    model = Model(recipe)
    model.learn(chunk)
    model.finish()
    return model


def check(recipes: Sequence[Recipe], chunk: Chunk) -> ModelSet:
    lanes = lanes_are_runs(recipes, chunk)
    assert [model.recipe for model in lanes.models] == [*recipes]
    assert all(model.examples == len(chunk) for model in lanes.models)
    assert any(model.nonzero for model in lanes.models)
    return lanes


@pytest.fixture(autouse=True, params=["octets", "loops"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All models that can be are lanes of an octet, even a single one; or each has its own loop."""
    monkeypatch.setattr(octet, "FEW", 1 if request.param == "octets" else 99)
    return str(request.param)


@pytest.mark.parametrize(
    ("way", "store", "dtype", "settings"),
    [
        *(("octets", "growing", "float32", 2), ("octets", "direct", "float64", 1)),
        *(("octets", "hashed:6", "float32", 1), ("loops", "growing", "float32", 1)),
    ],
    indirect=["way"],
)
@pytest.mark.usefixtures("small_tables", "plainly")
def test_all_rules_side_by_side(store: str, dtype: str, settings: int) -> None:
    names = RULES if settings > 1 else KINDS
    specs = [spec for name in names for spec in settings_of(name)[:settings]]
    check([recipe_of(spec, store=store, dtype=dtype) for spec in specs], DENSE)


@pytest.mark.usefixtures("small_tables", "plainly")
def test_keys_of_64_bits() -> None:
    check([recipe_of(spec) for spec in EACH_KIND], WIDE)


@pytest.fixture
def untold() -> Iterator[None]:
    """Nothing is told of what is compiled."""
    with notices_to(None):
        yield


@pytest.mark.parametrize("name", KINDS)
def test_penalties(name: str, small_tables: None, untold: None, capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM reports no loop that it could not vectorise."""
    specs = settings_of(name)
    flagged = [spec for spec in specs if "true" in spec.lower() or "false" in spec.lower()]
    rates = [RATE, FLAT] if name == "fobos" else [RATE]
    alike = [recipe_of(spec, rate) for spec in specs if spec not in flagged for rate in rates]
    some = COMPILED.get(name, len(alike))
    with compiled_if(name in COMPILED):
        check(alike[:some], WIDE)
    if others := [*alike[some:], *map(recipe_of, flagged)]:
        with not_compiled():  # each would be an octet with code of its own
            check([alike[0], *others], WIDE)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("way", ["octets"], indirect=True)
@pytest.mark.parametrize("name", ["ftrl", "ft-ftrl"])
def test_half_lives_of_one_rule(name: str, untold: None, capfd: pytest.CaptureFixture[str]) -> None:
    """Sums that fade and sums that last are not in one octet."""
    lives = [5, 20, 33.3, 1e6]
    lasting = recipe_of(f"{name}:alpha=0.2,l1=0.3")
    fading = [recipe_of(f"{name}:alpha=0.2,l1=0.3,half_life={n}") for n in lives]
    assert lanes_of_octets([*fading, lasting]) == [0, 1, 2, 3, 4]
    assert len({id(model.loop.holder or model.loop) for model in ModelSet([*fading, lasting]).models}) == 2
    with not_compiled():
        check(fading, WIDE)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("way", ["octets"], indirect=True)
def test_compiled_lanes_of_float64_diverge_alone(untold: None, capfd: pytest.CaptureFixture[str]) -> None:
    """In the middle of a piece; each model stops where it would alone. The docs compile this octet, too."""
    etas = ["0.1", "1e308", "0.02", "2e307", "1e307", "0.01", "0.03", "0.2"]
    recipes = [
        recipe_of(f"adagrad-fobos:eta={eta},l1={0.001 * k}", dtype="float64") for k, eta in enumerate(etas)
    ]
    lanes = side_by_side(recipes, WIDE, [])
    assert lanes.alive == [0, 2, 5, 6, 7]
    for k, recipe in enumerate(recipes):
        if k in lanes.alive:
            assert bits(lanes.models[k]) == bits(alone(recipe, WIDE))
            continue
        with pytest.raises(DivergedError) as caught:
            alone(recipe, WIDE)
        assert lanes.dropped[k] == str(caught.value)
    assert len(set(lanes.dropped.values())) > 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("small_tables", "plainly")
def test_averages_and_what_is_not() -> None:
    mixed = [recipe_of(settings_of(name)[0], average=True, dtype="float64") for name in ABLE]
    check([*mixed, *(recipe_of(spec) for spec in EACH_KIND)], WIDE)


@pytest.mark.parametrize("way", ["loops"], indirect=True)  # batches are never learned in octets
@pytest.mark.usefixtures("small_tables", "plainly")
def test_batches() -> None:
    check([recipe_of(spec, batch=7) for spec in FIRST], WIDE)


@pytest.mark.usefixtures("plainly")
def test_losses_side_by_side() -> None:
    binary = [loss for loss in LOSSES if domain_of(loss) in ("binary", "real")]
    check([recipe_of("fobos:l1=0.05", loss=loss) for loss in binary], WIDE)


@pytest.mark.usefixtures("plainly")
def test_an_example_that_teaches_one_lane_writes_no_row_of_another() -> None:
    check([recipe_of(f"fobos:l1={l1}", loss="perceptron") for l1 in (0.001, 0.003, 0.01, 0.03)], DENSE)


@pytest.mark.usefixtures("small_tables", "plainly")
def test_admission_is_shared() -> None:
    check(
        [recipe_of(spec, admit="3,bits=10") for spec in EACH_KIND if spec.split(":")[0] not in UNBORN], WIDE
    )


UNBORN = ("eg", "simplex")
"""Their weights begin elsewhere than at zero, so that none may wait."""


def lanes_of_octets(recipes: Sequence[Recipe]) -> list[int]:
    return [k for k, model in enumerate(ModelSet(recipes).models) if isinstance(model.loop, octet.LaneState)]


def test_only_rules_that_couple_no_rows_learn_in_octets(way: str) -> None:
    coupling = {
        name for name in RULES for verb in ("constrain", "relocate") if writes(REGISTRY["rule"][name], verb)
    }
    assert coupling
    found = [RULES[k] for k in lanes_of_octets([recipe_of(spec) for spec in FIRST])]
    assert found == [name for name in RULES if name not in coupling and way == "octets"]


def test_four_or_more_of_a_kind_learn_in_octets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(octet, "FEW", FEW)
    of_one = [recipe_of(f"fobos:l1={k}") for k in range(11)]
    assert lanes_of_octets(of_one[:3]) == []
    assert lanes_of_octets(of_one[:4]) == [0, 1, 2, 3]
    assert lanes_of_octets(of_one) == list(range(8))  # three are left
    others: dict[str, dict[str, Any]] = {
        "class of rate": {"rate": "constant:0.1"},
        "flag": {"rule": "fobos:next_rate=true"},
        "loss": {"loss": "hinge"},
        "intercept": {"intercept": False},
        "dtype": {"dtype": "float64"},
        "average": {"average": True, "dtype": "float64"},
    }
    for what, changes in others.items():
        assert lanes_of_octets([*of_one[:3], replace(of_one[3], **changes)]) == [], what


def test_a_number_that_all_lanes_share_is_one_number() -> None:
    made = [recipe_of(f"fobos:l1={l1},l2=0.1").rule_part for l1 in ("0.0", "-0.0")]
    template, columns = engine_lanes.side_by_side(made)
    assert template == made[0]
    (own,) = (column for column in columns if column is not None)
    assert np.signbit(own).tolist() == [False, True]


@pytest.mark.usefixtures("small_tables", "plainly")
def test_a_lane_that_rests_stays_as_it_is() -> None:
    recipes = [recipe_of(spec) for spec in ("fobos:l1=0.05", "fobos:l1=0.01", "fobos:l1=3")]
    lanes = side_by_side(recipes, DENSE)
    lanes.parts[0].rest(1)
    lanes.learn(WIDE)
    own = [alone(recipe, DENSE) for recipe in recipes]
    own[0].learn(WIDE)
    own[2].learn(WIDE)
    assert [bits(model) for model in lanes.models] == [bits(model) for model in own]


@pytest.mark.usefixtures("small_tables", "plainly")
def test_a_row_lives_as_long_as_one_lane_needs_it() -> None:
    """A lane without idle rows keeps them for all; a lane whose rows are all idle loses nothing."""
    shrinking, keeping = recipe_of("fobos:l1=3"), recipe_of("sgd")
    lanes = check([shrinking, keeping, shrinking], WIDE)
    assert [model.nonzero > 0 for model in lanes.models] == [False, True, False]
    freed = [
        int(found.state()["counts"][1])
        for found in (lanes.models[0], alone(keeping, WIDE), alone(shrinking, WIDE))
    ]
    assert freed[0] == freed[1] < freed[2]


WILD = recipe_of("sgd", "constant:1e9", loss="squared", dtype="float64")


@pytest.fixture
def overflowing() -> Iterator[None]:
    """Plain Python behaves as compiled code does."""
    with np.errstate(all="ignore"):
        yield


def wild(chunk: Chunk) -> tuple[list[Recipe], ModelSet, list[str]]:
    one, other = (recipe_of(spec, loss="squared") for spec in ("fobos:l1=0.05", "ftrl:l1=0.02"))
    recipes = [one, WILD, other]
    said: list[str] = []
    lanes = ModelSet(recipes, say=said.append)
    for piece in cut(chunk, PLACES):
        lanes.learn(piece)
    return recipes, lanes, said


@pytest.mark.usefixtures("small_tables", "plainly", "overflowing")
def test_a_lane_that_diverges_is_dropped_and_the_others_go_on() -> None:
    recipes, lanes, said = wild(DENSE)
    assert lanes.alive == [0, 2]
    with pytest.raises(DivergedError) as caught:
        alone(recipes[1], DENSE)
    assert lanes.dropped == {1: str(caught.value)}
    assert said == [f"{recipes[1].rule}: {caught.value}; the other models continue"]
    for k in lanes.alive:
        assert bits(lanes.models[k]) == bits(alone(recipes[k], DENSE))
    lanes.check_finite()
    assert len(said) == 1
    assert len(lanes.models[1].loop.S) == len(lanes.models[0].loop.S), "it can still be read"


@pytest.mark.usefixtures("plainly")
def test_an_extreme_value_drops_those_that_it_breaks() -> None:
    rows: list[tuple[float, dict[int, float]]] = [(1.0, {1: 1.0}), (-1.0, {1: 0.5, 2: 3e38}), (1.0, {1: 1.0})]
    chunk = Chunk.of_rows(rows)
    recipes = [recipe_of("sgd", "constant:2e38"), recipe_of("normalized")]
    with np.errstate(all="ignore"):
        lanes = side_by_side(recipes, chunk, [])
        assert lanes.alive == [1]
        assert "the weight of feature" in lanes.dropped[0]
        assert bits(lanes.models[1]) == bits(alone(recipes[1], chunk))


@pytest.mark.usefixtures("plainly", "overflowing")
def test_the_last_one_to_diverge_raises() -> None:
    lanes = ModelSet([WILD, replace(WILD, rate="constant:1e12")])
    with pytest.raises(DivergedError, match="the loss of example"):
        lanes.learn(DENSE)
    assert lanes.alive == []


@pytest.mark.usefixtures("small_tables", "plainly", "overflowing")
def test_what_was_dropped_stays_dropped() -> None:
    recipes, lanes, _ = wild(DENSE)
    after = ModelSet(recipes)
    after.parts[0].drop(1, lanes.dropped[1])
    after.restore(lanes.state())
    assert after.alive == lanes.alive
    after.learn(DENSE)
    lanes.learn(DENSE)
    assert [bits(after.models[k]) for k in after.alive] == [bits(lanes.models[k]) for k in lanes.alive]


@pytest.mark.usefixtures("small_tables", "plainly")
def test_a_lane_is_a_model_that_goes_on_alone() -> None:
    recipes = [recipe_of(spec) for spec in ("fobos:l1=0.05", "fobos:l1=0.01")]
    lanes = side_by_side(recipes, DENSE)
    for recipe, model in zip(recipes, lanes.models, strict=True):
        taken = Model(recipe)
        taken.restore(model.state())
        taken.learn(DENSE)
        twice = alone(recipe, DENSE)
        twice.learn(DENSE)
        assert bits(taken) == bits(twice)
        with pytest.raises(RuntimeError, match="this model is a lane"):
            model.learn(DENSE)


@pytest.mark.parametrize(
    ("other", "field"),
    [({"batch": 2}, "batch"), ({"store": "hashed:4"}, "store"), ({"outputs": "values:2"}, "outputs")],
)
def test_what_lanes_share_must_be_the_same(other: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=f"lanes: {field} must be the same for all"):
        ModelSet([Recipe("sgd", "squared"), Recipe("sgd", "squared", **other)])
    with pytest.raises(ValueError, match="give at least one recipe"):
        ModelSet([])
