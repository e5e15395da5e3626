"""Models of a share of the rows are those trained alone on these rows, bit for bit (law 7)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests import test_lanes
from tests.laws import bits
from tests.streams import KINDS, RULES, cut, settings_of
from tests.test_averaging import ABLE
from tests.test_lanes import PLACES, UNBORN, recipe_of
from thresher.data.chunk import Chunk
from thresher.engine.sound import StateError
from thresher.learning.model import eight_lanes as octet
from thresher.learning.model.bags import Bagged, Bags, draw_rows
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet, Share
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes
from thresher.learning.training.shares import folds_of
from thresher.plans.folds import Folds

K, ROWS = 3, 59  # not a multiple of K: if a pass continued counting, it would have other folds
WEIGHTS = np.linspace(0.1, 3, ROWS, dtype=np.float32)
DENSE = replace(test_lanes.DENSE.rows(0, ROWS), weights=WEIGHTS)
WIDE = replace(test_lanes.WIDE.rows(0, ROWS), weights=WEIGHTS)
SHARES: dict[str, Callable[[], Share]] = {
    "all": Share,
    "folds": lambda: Folds(K, whole=True),
    **{spec: partial(Bagged, Bags.of(spec, 5)) for spec in ("poisson:3", "disjoint:3", "halves:3:0.3")},
}
split = pytest.mark.parametrize("kind", [name for name in SHARES if name != "all"])
"""What lanes of all rows do is in `test_lanes`."""


def taught(
    recipes: Sequence[Recipe], share: Share, chunk: Chunk, passes: int = 1, **options: Any
) -> ModelSet:
    models = ModelSet(recipes, share, **options)
    for number in range(1, passes + 1):
        models.begin_pass(number, passes)
        for piece in cut(chunk, PLACES):
            models.learn(piece, again=number > 1)
    models.finish()
    models.check_finite()
    return models


def times_of(share: Share) -> Any:
    """How often each part learns each row, drawn one row at a time."""
    if isinstance(share, Bagged):
        return np.column_stack([share.bags.draw(row, 1) for row in range(ROWS)])
    if not isinstance(share, Folds):
        return np.ones((1, ROWS), np.uint8)
    return np.array([*(folds_of(0, ROWS, K, 0) != k for k in range(K)), np.ones(ROWS)], np.uint8)


def alone(recipe: Recipe, chunk: Chunk, passes: int) -> Model:
    model = Model(recipe)
    for number in range(1, passes + 1):
        model.begin_pass(number, passes)
        model.learn(chunk, again=number > 1)
    model.finish()
    return model


def check(kind: str, recipes: Sequence[Recipe], chunk: Chunk, passes: int = 1) -> None:
    models = taught(recipes, SHARES[kind](), chunk, passes)
    learned = times_of(models.share)
    assert not models.dropped
    assert kind == "all" or (learned == 0).any()
    for part, times in zip(models.parts, learned, strict=True):
        for recipe, model in zip(recipes, part.models, strict=True):
            own = alone(recipe, draw_rows(chunk, times), passes)
            assert bits(model) == bits(own), recipe
            assert model.examples == own.examples == passes * np.count_nonzero(times)
            assert len(recipes) > 1 or as_bytes(model) == as_bytes(own)
    assert models.examples == passes * ROWS


@split
@pytest.mark.usefixtures("small_tables", "plainly")
def test_all_rules(kind: str) -> None:
    names = RULES if kind == "folds" else KINDS
    check(kind, [recipe_of(settings_of(name)[0]) for name in names], DENSE)


@split
@pytest.mark.usefixtures("small_tables", "plainly")
def test_averages_and_stores(kind: str) -> None:
    options: dict[str, Any] = {"average": True, "dtype": "float64", "store": "hashed:6"}
    names = ABLE if kind == "folds" else ABLE[::4]
    check(kind, [recipe_of(settings_of(name)[0], **options) for name in names], WIDE)


@split
def test_compiled(kind: str) -> None:
    """Penalties of one rule, in octets; and a model by itself, whose file is that of a model alone."""
    check(kind, [recipe_of("ft-ftrl:alpha=0.2", l1=0.03 * k) for k in range(5)], WIDE)
    check(kind, [recipe_of("ft-ftrl:alpha=0.2", l1=0.03)], WIDE)


@pytest.mark.parametrize(
    ("batch", "kind"),
    [(7, "all"), (1, "folds"), (7, "folds"), (7, "poisson:3"), (1, "halves:3:0.3")],
)
@pytest.mark.usefixtures("small_tables", "plainly")
def test_batches_many_outputs_and_passes(kind: str, batch: int) -> None:
    rng = np.random.default_rng(5)
    chunk = replace(WIDE, targets=rng.choice([-1.0, 1.0], (ROWS, 3)).astype(np.float32))
    options: dict[str, Any] = {"outputs": "labels:3", "batch": batch}
    specs = [settings_of(name)[0] for name in (KINDS if kind == "all" else KINDS[::3])]
    recipes = [recipe_of(spec, **options) for spec in [*specs, "ft-ftrl:alpha=0.2,l1=0.3,relax=1"]]
    check(kind, recipes, chunk, passes=2)


@split
@pytest.mark.usefixtures("small_tables", "plainly")
def test_scales_and_admission_count_the_rows_that_are_learned(kind: str) -> None:
    specs = [settings_of(name)[0] for name in KINDS if name not in UNBORN]
    check(kind, [recipe_of(spec, admit="3,bits=10", scale="max-abs") for spec in specs], WIDE, passes=2)


@pytest.mark.parametrize(
    ("batch", "kind"),
    [(4, "all"), (1, "folds"), (1, "poisson:3"), (4, "disjoint:3"), (1, "halves:3:0.3")],
)
@pytest.mark.usefixtures("small_tables", "plainly")
def test_they_go_on_from_their_state(kind: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of the second pass, in octets or with incomplete batches."""
    monkeypatch.setattr(octet, "FEW", 1)
    names = KINDS if kind == "all" else KINDS[::4]
    recipes = [recipe_of(settings_of(name)[0], batch=batch) for name in names]
    first, second = (ModelSet(recipes, SHARES[kind]()) for _ in range(2))
    first.begin_pass(1, 2)
    first.learn(DENSE)
    first.begin_pass(2, 2)
    first.learn(DENSE.rows(0, 40), again=True)
    state = {name: array.copy() for name, array in first.state().items()}
    second.restore(state)
    second.begin_pass(2, 2)
    for one in (first, second):
        one.learn(DENSE.rows(40, len(DENSE)), again=True)
        one.finish()
    whole = taught(recipes, SHARES[kind](), DENSE, passes=2)
    assert [bits(model) for model in second.models] == [bits(model) for model in whole.models]
    assert {n: a.tobytes() for n, a in second.state().items()} == {
        n: a.tobytes() for n, a in first.state().items()
    }
    assert (second.examples, second.lead.tally) == (2 * ROWS, first.lead.tally)
    assert second.lead.last_prediction == first.lead.last_prediction
    for damage in ([1, 1, 1, 0, len(first.parts)], [-1, 1, 1, 0, 0], [1, 1, 1, 0]):
        with pytest.raises(StateError, match="counters"):
            second.restore(state | {"counters": np.array(damage)})
    with pytest.raises(StateError):
        second.restore({name: array for name, array in state.items() if name != "0.lane.0.S"})
