"""Intervals of ensembles: what they are, what they refuse, and that they cover the truth."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import thresher
from experiments import uncertainty
from tests.test_ensemble import ensemble_of
from tests.test_lanes import DENSE, recipe_of
from tests.test_laws_of_state import ROWS
from thresher.learning.model.bags import Bags
from thresher.learning.model.ensemble import FEWEST, Ensemble, reach


def test_the_reach_is_a_quantile_of_student() -> None:
    for models in (FEWEST, 16, 1000):
        for level in (0.01, 0.5, 0.9, 0.9999, 1 - 1e-9):
            exact = stats.t.isf((1 - level) / 2, models - 1) * np.sqrt(1 + 1 / models)
            assert reach(level, models) == pytest.approx(exact, rel=1e-9)


def of_margins(each: Any, level: float) -> Any:
    half = reach(level, len(each)) * each.std(axis=0, ddof=1)
    return [each.mean(axis=0), each.mean(axis=0) - half, each.mean(axis=0) + half]


@pytest.mark.usefixtures("plainly")
def test_an_interval_is_that_of_margins_through_the_link() -> None:
    ensemble = ensemble_of(recipe_of("ftrl:l1=0.05"), Bags.of(8), DENSE)
    each = np.array([model.predict(DENSE) for model in ensemble.models])
    found = ensemble.interval(DENSE, 0.8)
    expected = [1 / (1 + np.exp(-one)) for one in of_margins(each, 0.8)]
    assert found == pytest.approx(np.stack(expected, axis=-1), rel=1e-9)
    assert found[:, 0] == pytest.approx(ensemble.predict(DENSE, "probability"), rel=1e-12)
    rows = [ensemble.interval(DENSE.rows(k, k + 1), 0.8)[0] for k in range(ROWS)]
    assert np.array(rows).tobytes() == found.tobytes()
    hinge = ensemble_of(recipe_of("fobos:l1=0.01", loss="hinge"), Bags.of(8), DENSE)
    each = np.array([model.predict(DENSE) for model in hinge.models])
    assert hinge.interval(DENSE) == pytest.approx(np.stack(of_margins(each, 0.9), axis=-1), rel=1e-9)


@pytest.mark.usefixtures("plainly")
def test_means_and_classes() -> None:
    counts = replace(DENSE, labels=np.abs(np.round(3 * DENSE.labels)))
    poisson = ensemble_of(recipe_of("fobos:l1=0.01", loss="poisson"), Bags.of(8), counts)
    each = np.array([model.predict(counts) for model in poisson.models])
    expected = np.exp(np.stack(of_margins(each, 0.9), axis=-1))
    assert poisson.interval(counts) == pytest.approx(expected, rel=1e-9)
    chunk = replace(DENSE, labels=(np.arange(ROWS) % 3).astype(np.float32))
    recipe = recipe_of("fobos:l1=0.01", loss="softmax", outputs="classes:0-2")
    classes = ensemble_of(recipe, Bags.of(8), chunk)
    found = classes.interval(chunk)
    assert found.shape == (ROWS, 3, 3)
    assert found[..., 0] == pytest.approx(classes.predict(chunk, "probability"), rel=1e-9)
    every = np.array([model.predict(chunk, "probability") for model in classes.models])
    odds = np.log(every / (1 - every))
    width = np.log(found / (1 - found))[..., 1:] @ [-1, 1]
    assert width == pytest.approx(2 * reach(0.9, 8) * odds.std(axis=0, ddof=1), rel=1e-6)


@pytest.mark.parametrize("more", [{}, {"scale": "standard"}, {"loss": "softmax", "outputs": "classes:0-1"}])
def test_weights(more: dict[str, Any], tmp_path: Path, plainly: None) -> None:
    """They are for values as they are: with these, each model gives its margins."""
    X: Any = np.random.default_rng(1).normal(size=(300, 12)) * np.linspace(0.2, 2.0, 12)
    y = (X[:, 0] + 0.1 * X[:, 11] > 0).astype(int)
    found: Any = thresher.ensemble(X, y, models=8, rule="ftrl:l1=2,alpha=0.2", centre=False, **more)
    told = found.weights(0.8)
    inner = 2 if more.get("loss") == "softmax" else 1
    each: Any = np.zeros((8, 12, inner))
    for k, model in enumerate(found.models):
        zero = model.predict(np.zeros((1, 12))).reshape(1, inner)
        each[k] = model.predict(np.eye(12)).reshape(12, inner) - zero
    lives = (each != 0).any(axis=(0, 2))
    assert told.keys.tolist() == np.flatnonzero(lives).tolist()
    wanted = [*of_margins(each, 0.8), (each != 0).mean(axis=0)]
    of_features = (told.weights, told.lower, told.upper, told.alive)
    for one, other in zip(of_features, wanted, strict=True):
        assert one.reshape(-1, inner) == pytest.approx(other[lives], rel=1e-4, abs=1e-6)
    assert 0 < told.alive.min() < told.alive.max() == 1
    bias = np.array([model.intercept for model in found.models]).reshape(8, inner)
    assert told.intercepts.reshape(3, inner) == pytest.approx(np.stack(of_margins(bias, 0.8)), rel=1e-6)
    found.save(tmp_path / "e")
    for one, other in zip(Ensemble.load(tmp_path / "e").weights(0.8), told, strict=True):
        assert one.tobytes() == other.tobytes()


def test_what_gives_no_intervals() -> None:
    rows, y = np.eye(4).repeat(10, axis=0), [0, 1] * 20
    few = thresher.ensemble(rows, y, models=7, rule="ftrl")
    with pytest.raises(ValueError, match=r"at least 8 bagged models, .* 7, .*: use"):
        few.interval(rows)
    with pytest.raises(ValueError, match="at least 8 bagged models"):
        few.weights()
    for how in ("disjoint", "halves"):
        with pytest.raises(ValueError, match=f"their rows are {how}"):
            thresher.ensemble(rows, y, models=f"{how}:8", rule="ftrl").interval(rows)
    found = thresher.ensemble(rows, y, models=8, rule="ftrl")
    for level in (0, 1, -0.5, 90, float("nan"), True, 1 - 1e-16, "a", None):
        with pytest.raises(ValueError, match="interval must be a number"):
            found.interval(rows, level)  # type: ignore[arg-type]
    assert np.isfinite(found.interval(rows, np.float32(0.99999994))).all()  # type: ignore[arg-type]
    wrong: Any = {"levels": 0.8}
    with pytest.raises(TypeError, match="interval has no option levels"):
        found.interval(rows, **wrong)


def test_intervals_cover_the_true_probability() -> None:
    """A small version of the experiment, whose page has the figures of 500 simulations."""
    world = uncertainty.worlds()[0]._replace(rows=200)
    inside = []
    for seed in range(25):
        chance = np.random.default_rng((7, seed))
        X, margins = world.draw(chance, world.rows)
        y = (chance.random(len(X)) < 1 / (1 + np.exp(-margins))).astype(int)
        asked, true = world.draw(chance, 20)
        found = thresher.ensemble(X, y, models=8, seed=seed, rule="adagrad-fobos:l1=0", passes=5)
        _, lower, upper = found.interval(asked, 0.9).T
        truth = 1 / (1 + np.exp(-true))
        inside.append((lower <= truth) & (truth <= upper))
    assert 0.8 < np.mean(inside) < 0.97
