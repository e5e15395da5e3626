"""Averaged weights: the mean of the dense path for every rule, and the laws of state for averaged models."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import laws, oracles, streams
from tests.covering import covering_for
from tests.plain import compiled_if, not_compiled
from tests.test_laws_of_state import FEATURES, KEYS, ROWS, make_small
from thresher import parts
from thresher.learning.model import rule_state as tables
from thresher.learning.model.model import Model
from thresher.parts import series

ABLE = [name for name in streams.RULES if parts.lookup("rule", name).DRIFTS is not None]
DENSE = streams.stream(seed=11, rows=ROWS, features=FEATURES, density=0.1)
WIDE = streams.stream(seed=12, rows=ROWS, features=FEATURES, density=0.1, keys=KEYS)


def averaged(spec: str, loss: str = "logistic", **options: Any) -> Model:
    return streams.model_of(spec, loss, average=True, **options)


@pytest.fixture
def short_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catch up all rows every 17 examples."""
    monkeypatch.setattr(tables, "RING", 17)


def check(model: Model, data: streams.Stream) -> None:
    """Weights and intercept are the mean of w_1, ..., w_T, to 1e-10."""
    name = parts.part_name(type(model.rule))
    options = {"intercept": model.recipe.intercept, "keep_path": True}
    trace = oracles.run(name, model.rule, model.loss, data.X, data.y, data.importance, **options)
    assert trace.path is not None
    expected = trace.path[:-1].mean(axis=0)
    model.learn(data.chunk)
    found = np.append(
        streams.read_weights(model, data.X.shape[1]), [model.intercept] * model.recipe.intercept
    )
    assert np.abs(found - expected).max() <= 1e-10 * max(1.0, np.abs(expected).max())
    if model.recipe.intercept:
        assert np.abs(expected).max() > 1e-3 or not trace.losses.any(), "nothing learned"
        assert np.abs(expected - trace.path[-1]).max() > 1e-6, "the mean is the last: nothing tested"


@pytest.mark.parametrize("name", ABLE)
def test_the_mean_of_the_dense_path(name: str, short_rings: None) -> None:
    for spec, loss in covering_for(
        name, [*filter(streams.averages, streams.settings_of(name))], ("hinge", "poisson")
    ):
        with streams.case(spec, loss), not_compiled():
            check(averaged(spec, loss), streams.stream(seed=1, rows=64, domain=streams.domain_of(loss)))


# what untouched weights owe adds up in a clock, or is found in a heap
COMPILED, STORED = "fobos", ["fobos", "l1-ball"]


def test_the_mean_of_the_dense_path_compiled(short_rings: None) -> None:
    for spec in streams.settings_of(COMPILED):
        with streams.case(spec):
            check(averaged(spec), streams.stream(seed=2, rows=200))
            check(averaged(spec, intercept=False), streams.stream(seed=3, rows=30))


@pytest.mark.parametrize("name", [name for name in ABLE if streams.has_rate(name)])
def test_the_mean_at_every_rate_within_one_ring(name: str) -> None:
    data = streams.stream(seed=2, rows=80)
    for rate in streams.RATES.values():
        with streams.case(rate), not_compiled():
            check(averaged(streams.settings_of(name)[0], rate=rate), data)


@pytest.mark.parametrize(
    ("spec", "rate", "scale"),
    [
        *(("fobos:l1=1e-4,l2=1", streams.FLAT, 1.0), ("pegasos:l2=1e-3", streams.RATE, 300.0)),
        *(("l2-ball:radius=0.1", streams.RATE, 30.0), ("fobos-l2norm:l2norm=0.3", streams.FLAT, 1.0)),
    ],
)
def test_common_scales_are_folded_in_between(spec: str, rate: str, scale: float) -> None:
    """The ring has room for the whole stream, so it is only emptied because rows are rewritten."""
    with not_compiled():
        model = averaged(spec, rate=rate)
        check(model, streams.stream(seed=6, rows=1500, features=8, scale=scale))
        assert model.state()["place"][0] > 0


@pytest.mark.parametrize("ring", [1 << 14, 300])
@pytest.mark.parametrize(
    "spec",
    [
        *("truncated-gradient:gravity=4e-4", "fobos:l1=4e-4,l2=4e-3", "adagrad-fobos:l1=4e-4,l2=4e-3"),
        "rounding:theta=0.2,every=750",
    ],
)
def test_a_feature_met_once(spec: str, ring: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weight stays constant, or becomes zero during the 2,200 examples that do not contain it."""
    monkeypatch.setattr(tables, "RING", ring)
    rows = 2_200
    X = np.zeros((rows, 3))
    X[:, 0], X[5, 1], X[1_000, 2] = np.random.default_rng(0).uniform(-1, 1, rows), 1.0, -1.0
    data = streams.stream_of(X, X != 0, np.where(X[:, 0] > 0.2, 1.0, -1.0), np.ones(rows))
    with compiled_if(spec.startswith("fobos:")):
        check(averaged(spec, rate=streams.FLAT), data)


def test_a_rule_that_cannot_be_averaged_names_those_that_can() -> None:
    assert set(streams.RULES) - set(ABLE) == {"subgradient", "eg", "simplex", "fobos-linf", "adagrad-rda"}
    with pytest.raises(ValueError, match=r"^subgradient cannot be averaged: .*; these rules can:") as told:
        Model("subgradient", average=True)
    with pytest.raises(ValueError, match="ftrl cannot be averaged with a half_life"):
        Model("ftrl:half_life=9", average=True)
    for options in ({"outputs": "classes:3"}, {"batch": 2}):
        with pytest.raises(ValueError, match=r"that of one output, learned row by row: leave average out$"):
            Model("ftrl", average=True, **options)
    assert all(name in str(told.value) for name in ABLE)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ABLE)
def test_neither_cutting_nor_stopping_nor_looking_changes_anything(
    name: str, short_rings: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch)
    for store in ("growing", "direct", "hashed:6") if name in STORED else ("growing",):
        with streams.case(store), compiled_if(store == "growing" and name == COMPILED):
            chunk = (DENSE if store == "direct" else WIDE).chunk
            make = partial(averaged, streams.settings_of(name)[0], store=store, seed=3)
            laws.cutting(make, chunk, [1, 2, 17, 18, 43])
            laws.stopping(make, chunk, [1, 2, 17, 18, 43])
            laws.looking(make, chunk)
            laws.saving(make, chunk, chunk)


@pytest.mark.parametrize("name", ABLE)
def test_the_store_changes_nothing(name: str, short_rings: None) -> None:
    with not_compiled():
        laws.stores(partial(averaged, streams.settings_of(name)[0]), DENSE.chunk, FEATURES)


@pytest.mark.usefixtures("plainly")
def test_a_growing_store_frees_rows_that_never_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    model = averaged("truncated-gradient:gravity=0.5", rate="constant:0.2")
    model.learn(DENSE.chunk)
    _, freed, _ = model.state()["counts"]
    assert freed > 0
    plain = averaged("truncated-gradient:gravity=0.5", rate="constant:0.2", store="direct")
    plain.learn(DENSE.chunk)
    assert streams.read_weights(model, FEATURES).tobytes() == streams.read_weights(plain, FEATURES).tobytes()


# Series


@given(st.floats(0, 50), st.integers(1, 300), st.floats(0, 1) | st.floats(0, 1e-3))
def test_sums_of_decays(first: float, n: int, rate: float) -> None:
    middle = first + 0.5 * (n - 1)
    exact = float(np.sum(np.expm1(-rate * (first + np.arange(n)))))
    assert series.decays(middle, float(n), rate) == pytest.approx(exact, rel=1e-11, abs=1e-14)
