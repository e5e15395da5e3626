"""Law 9: a row of importance 0 is counted, and otherwise not there. Every rule and option, plain Python."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pytest

import thresher
from tests.covering import covering_for
from tests.plain import not_compiled
from tests.streams import KINDS, RATE, RULES, averages, case, fingerprint, has_rate, kinds_of, labels_of
from thresher import parts
from thresher.data.chunk import Chunk
from thresher.learning.model.bags import Bagged, Bags, make_bags
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.shares import folds_of
from thresher.plans import race as racing
from thresher.plans.folds import Folds
from thresher.sklearn import SparseOnlineClassifier

ROWS, FEATURES = 36, 9
OPTIONS: list[dict[str, Any]] = [
    *({}, {"store": "hashed:6", "intercept": False}, {"store": "direct", "admit": 2}),
    *({"admit": "poisson:0.4", "scale": "standard"}, {"scale": "max-abs", "batch": 4}),
    *({"outputs": "classes:3"}, {"outputs": "classes:3", "batch": 4, "scale": "standard"}),
    *({"loss": "squared"}, {"loss": "squared", "outputs": "values:2", "batch": 4}, {"average": True}),
]
LEARNS_NO_ROW = [(0,), (ROWS - 1,), (5, 6, 7, 8, 9, 20), (*range(0, ROWS, 2),)]


def rows_of(options: dict[str, Any], seed: int = 0) -> Chunk:
    rng = np.random.default_rng(seed)
    stored = rng.random((ROWS, FEATURES)) < 0.3
    column = np.nonzero(stored)[1]
    outputs, loss = options.get("outputs", "one"), options.get("loss", "logistic")
    score = rng.normal(size=ROWS)
    labels: Any = labels_of("binary" if loss == "logistic" else "real", score, rng)
    if outputs.startswith("classes"):
        labels = rng.integers(1, 4, ROWS)
    elif outputs.startswith("values"):
        labels = rng.normal(size=(ROWS, 2))
    importance = rng.choice([0.5, 1.0, 2.0], ROWS)
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    return Chunk.from_csr(indptr, column, rng.normal(size=len(column)), labels, importance)


def with_zeros(chunk: Chunk, places: Any) -> Chunk:
    chunk.weights[list(places)] = 0.0
    return chunk


def recipe_of(spec: str, options: dict[str, Any]) -> Recipe | None:
    """None if the rule does not have these options."""
    rule = parts.lookup("rule", spec.partition(":")[0])
    if options.get("average") and not averages(spec):
        return None
    if "admit" in options and rule.__name__ == "Simplex":  # no feature waits if weights do not start at zero
        return None
    return Recipe(spec, rate=RATE if has_rate(spec) else None, **options)


def learned(recipe: Recipe, *chunks: Chunk, passes: int = 1) -> Model:
    model = Model(recipe)
    for number in range(1, passes + 1):
        model.begin_pass(number, passes)
        for chunk in chunks:
            model.learn(chunk, again=number > 1)
    model.finish()
    return model


@pytest.mark.parametrize("name", RULES)
def test_a_row_of_importance_0_is_not_there(name: str) -> None:
    specs, options = kinds_of(name), OPTIONS[1:] if name in KINDS else OPTIONS[1 + RULES.index(name) % 3 :: 3]
    cases: list[tuple[Any, ...]] = [
        (spec, {}, places) for spec, places in covering_for(name, specs, LEARNS_NO_ROW)
    ]
    for spec, more, zeros in cases + covering_for(name, specs, options, LEARNS_NO_ROW[2:3]):
        recipe = recipe_of(spec, more)
        if recipe is None:
            continue
        with case(spec, more, zeros), not_compiled():
            chunk = with_zeros(rows_of(more), zeros)
            kept = chunk.take(chunk.weights > 0)
            whole, without = (learned(recipe, one, passes=2) for one in (chunk, kept))
            assert fingerprint(whole) == fingerprint(without)
            if not more:
                ones = learned(recipe, *(chunk.rows(i, i + 1) for i in range(ROWS)), passes=2)
                assert fingerprint(whole) == fingerprint(ones)
            assert whole.examples == 2 * len(kept)
            assert whole.features_seen == without.features_seen
            assert whole.lowest_label == without.lowest_label


def test_the_data_reach_what_the_law_says() -> None:
    """The rows that are left out would change each of these models."""
    for options in OPTIONS:
        with case(options), not_compiled():
            recipe = recipe_of("ftrl", options)
            assert recipe is not None
            chunk = rows_of(options)
            others = learned(recipe, chunk), learned(recipe, with_zeros(rows_of(options), LEARNS_NO_ROW[2]))
            assert fingerprint(others[0]) != fingerprint(others[1])


def states(models: list[Model]) -> list[Any]:
    return [fingerprint(model) for model in models]


def lanes_of(chunk: Chunk) -> list[Model]:
    lanes = ModelSet([Recipe("ftrl", l1=0.01 * k) for k in range(1, 7)])
    lanes.learn(chunk)
    return [copy(lanes.models[k]) for k in range(6)]


class Halving(racing.Race):
    """Drops half of the lanes each time."""

    def judge(self, lanes: ModelSet) -> None:
        for k in lanes.alive[len(lanes.alive) // 2 or 1 :]:
            lanes.parts[0].drop(k, f"dropped after {lanes.examples}")


def race_of(chunk: Chunk) -> list[Model]:
    lanes = ModelSet([Recipe("ftrl", l1=0.01 * k) for k in range(1, 7)], race=Halving(6, 25))
    for i in range(0, len(chunk), 5):
        lanes.learn(chunk.rows(i, min(i + 5, len(chunk))))
    return [copy(lanes.models[k]) for k in lanes.alive]


@pytest.mark.parametrize("build", [lanes_of, race_of])
def test_lanes_and_races(build: Callable[[Chunk], list[Model]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "FIRST", 8)
    with not_compiled():
        chunk = with_zeros(rows_of({}), (*range(8, 14), 20, 30))
        assert states(build(chunk)) == states(build(chunk.take(chunk.weights > 0)))


def test_folds_and_bags_number_the_rows_of_the_data() -> None:
    """A row of importance 0 keeps its number, so the others stay in their folds and bags."""
    zeros = [5, 6, 7, 8, 20]
    chunk = with_zeros(rows_of({}), zeros)
    there = chunk.weights > 0
    with not_compiled():
        recipe, bags = Recipe("adagrad-fobos"), Bags.of(3)
        folds, ensemble = ModelSet([recipe], Folds(3, whole=True)), make_bags(recipe, Bagged(bags))
        for begin in range(0, ROWS, 7):
            for one in (folds, ensemble):
                one.learn(chunk.rows(begin, min(begin + 7, ROWS)))
        for k in range(3):
            own = learned(recipe, chunk.take(there & (folds_of(0, ROWS, 3, 0) != k)))
            assert fingerprint(copy(folds.models[k])) == fingerprint(own)
        for k, times in enumerate(bags.draw(0, ROWS)):
            repeated = chunk.take(there & (times > 0))
            repeated.weights[:] *= times[there & (times > 0)]
            assert fingerprint(ensemble.models[k]) == fingerprint(learned(recipe, repeated))
        assert folds.examples == ensemble.examples == there.sum()


def test_a_bad_row_of_importance_0_is_a_bad_row() -> None:
    with not_compiled(), pytest.raises(ValueError, match="label"):
        thresher.train(([[1.0], [1.0]], [1, 7], [1, 0]), "ftrl", "logistic")


def test_estimators() -> None:
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(30, 4)), rng.integers(0, 3, 30), rng.choice([0.0, 1.0], 30)
    y[:3] = range(3)
    weights[:3] = 1
    found = []
    with not_compiled():
        for there in (weights >= 0, weights > 0):
            model = SparseOnlineClassifier("adagrad-fobos", shuffle=False)
            model.partial_fit(X[there], y[there], classes=[0, 1, 2], sample_weight=weights[there])
            model.partial_fit(X[there], y[there], sample_weight=weights[there])
            found.append(model)
    assert np.array_equal(found[0].coef_, found[1].coef_)
    assert found[0].t_ == found[1].t_


def test_a_class_of_weight_0() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 3
    with not_compiled():
        one, rest = (SparseOnlineClassifier("adagrad-fobos", shuffle=False, passes=1) for _ in range(2))
        one.set_params(class_weight={2: 0.0}).fit(X, y)
        rest.partial_fit(X, y, classes=[0, 1, 2], sample_weight=(y != 2).astype(float))
    assert one.t_ == rest.t_ == 21
    assert np.array_equal(one.coef_, rest.coef_)
