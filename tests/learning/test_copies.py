"""Copies and pickles of a model: they learn the same, independently."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.streams import RATE, RULES, fingerprint, has_rate, settings_of, stream
from thresher.data.features.names import Names
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe

ROWS = 150
FIRST, LAST = (stream(seed=k, rows=ROWS, features=3000, density=0.01).chunk for k in (21, 22))
COPIES = [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
copies = pytest.mark.parametrize("another", COPIES, ids=["copy", "deepcopy", "pickle"])


def model_of(name: str, **options: Any) -> Model:
    spec = settings_of(name)[0]
    return Model(Recipe(spec, rate=RATE if has_rate(spec) else None, dtype="float32", **options))


@copies
@pytest.mark.parametrize("name", RULES)
@pytest.mark.usefixtures("plainly")
def test_a_copy_learns_as_its_model_does_and_apart_from_it(
    name: str, another: Callable[[Model], Model]
) -> None:
    check_a_copy(name, another)


@copies
def test_what_is_compiled_for_a_model_serves_its_copy(
    another: Callable[[Model], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both tables grow."""
    monkeypatch.setattr("thresher.engine.index.FIRST_SIZE", 8)
    check_a_copy("fobos", another)


def check_a_copy(name: str, another: Callable[[Model], Model]) -> None:
    model = model_of(name)
    model.learn(FIRST)
    before, twin = fingerprint(model), another(model)
    twin.learn(LAST)
    assert fingerprint(model) == before
    model.learn(LAST)
    assert fingerprint(twin) == fingerprint(model)
    assert twin.recipe == model.recipe


@copies
@pytest.mark.usefixtures("plainly")
def test_batches_admission_and_names_are_copied(another: Callable[[Model], Model]) -> None:
    model = Model("sgd", batch=7, admit="2,bits=10", average=True, store="hashed:9,signed", seed=4)
    model.learn(FIRST)
    keys = model.weights()[0]
    model.names = Names(keys, np.arange(1, len(keys) + 1), np.full(len(keys), ord("a"), np.uint8))
    twin = another(model)
    assert twin.names is not None
    assert twin.names.get(int(keys[0])) == "a"
    for one in (model, twin):
        one.learn(LAST)
        one.finish()
    assert fingerprint(twin) == fingerprint(model)


@copies
@pytest.mark.usefixtures("plainly")
def test_a_lane_is_copied_to_a_model_alone(another: Callable[[Any], Any]) -> None:
    lanes = ModelSet([Recipe("ftrl", l1=0.1), Recipe("sgd")])
    lanes.learn(FIRST)
    alone = Model("ftrl", l1=0.1)
    alone.learn(FIRST)
    twin = another(lanes.models[0])
    for one in (alone, twin):
        one.learn(LAST)
    assert twin.weights()[1].tobytes() == alone.weights()[1].tobytes()
    assert lanes.examples == ROWS
    with pytest.raises(TypeError, match="side by side cannot be copied or pickled"):
        another(lanes)


@pytest.mark.usefixtures("plainly")
def test_weights_that_are_not_finite_are_not_pickled() -> None:
    model = Model("sgd")
    model.learn(FIRST)
    model.loop.S[1] = np.nan
    with pytest.raises(DivergedError, match="the weight of feature"):
        pickle.dumps(model)
