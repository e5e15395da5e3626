"""Warm starts: placed weights are read back, and training continues from them."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.plain import not_compiled
from tests.streams import KINDS, RULES, model_of, stream, stream_of
from tests.test_laws_of_state import make_small
from thresher import parts
from thresher.data import open_source
from thresher.data.chunk import Chunk, concat
from thresher.data.features.names import Names
from thresher.engine.protocol import snapshot, writes
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.prediction import LinearPredictor
from thresher.learning.model.warm_start import start_from
from thresher.parts import ft_ftrl_state

ABLE = [name for name in RULES if writes(parts.lookup("rule", name), "place")]
ROWS = Chunk.of_rows([(1.0, {1: 1.0, 2: 0.5}), (-1.0, {2: 1.0, 9: 0.25}), (1.0, {4: 0.5, 9: 1.0})] * 20)


def trained(**options: Any) -> Model:
    model = Model("sgd", **{"loss": "logistic", **options})
    model.learn(ROWS)
    return model


@pytest.mark.parametrize("name", ABLE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_weights_of_placed_rows_are_those(name: str, dtype: Any) -> None:
    """Bit for bit in a new model; later, when scales and lazy penalties are not trivial, up to rounding."""
    rule = parts.make("rule", name)
    clock, rows = rule.clock0(), np.arange(1, 100)
    w = np.random.default_rng(0).normal(size=99).astype(dtype)
    w[[5, 50]] = 0.0
    for examples in range(8):
        S = np.zeros((100, len(rule.SLOTS)), dtype)
        now = snapshot(rule, clock, S)
        rule.place(S, rows, w, now)
        found = np.array([rule.weight(S, j, now) for j in rows])
        assert found == pytest.approx(w, rel=float(np.finfo(dtype).eps) * (examples > 0), abs=0)
        read = np.array([rule.shown(S, j, found[j - 1], now) for j in rows])
        assert (read[abs(w) > 0.1] == found[abs(w) > 0.1]).all()
        assert (S[[0, 6]] == 0.0).all() or examples  # a feature without a weight counts as never seen
        assert rule.weight(S, 6, now) == 0.0
        rule.tick(clock)


@pytest.mark.parametrize(
    ("name", "store", "dtype"),
    [
        *((name, "growing", "float32") for name in KINDS if name in ABLE),
        *((name, "direct", "float64") for name in ABLE),
    ],
)
def test_a_model_begins_with_the_weights_of_another(name: str, store: str, dtype: str) -> None:
    with not_compiled():
        before, model = (model_of(rule, dtype=dtype, store=store) for rule in ("sgd", name))
        before.learn(ROWS)
        check_start(model, before, 1e-6 if dtype == "float32" else 0.0)


@pytest.mark.parametrize("name", ["ftrl", "fobos", "adagrad-fobos"])
def test_a_compiled_model_begins_with_the_weights_of_another(name: str) -> None:
    """Compiled, float32 margins are the same to the last bit; in plain Python, some are float64."""
    check_start(Model(name), trained(), 0.0)


def check_start(model: Model, before: Model, rel: float) -> None:
    start_from(model, before.predictor())
    assert model.nonzero == before.nonzero == 4
    assert [a.tolist() for a in model.weights()] == [a.tolist() for a in before.weights()]
    assert model.intercept == before.intercept
    assert model.predict(ROWS) == pytest.approx(before.predict(ROWS), rel=rel, abs=0)
    model.learn(ROWS.rows(0, 1))
    assert model.loop.last_margins()[0] == pytest.approx(before.predict(ROWS)[0], rel=1e-6)
    model.learn(ROWS)
    assert model.weights()[1].tolist() != before.weights()[1].tolist()


@pytest.mark.usefixtures("plainly")
def test_many_outputs() -> None:
    labels = Chunk.from_csr(ROWS.indptr, ROWS.keys, ROWS.values, np.arange(60) % 3, ROWS.weights)
    before = Model("sgd", "softmax", outputs="classes:0-2")
    before.learn(labels)
    model = Model("fobos:l1=0", "softmax", outputs="classes:0-2", dtype="float64")
    start_from(model, before.predictor())
    model.learn(labels)
    again = Model("sgd", "softmax", outputs="classes:0-2", dtype="float64")
    again.learn(labels)
    assert model.tally.average < again.tally.average
    fresh = Model("fobos:l1=0", "softmax", outputs="classes:0-2")
    start_from(fresh, before.predictor())
    assert (fresh.weights()[1] == before.weights()[1]).all()
    assert (fresh.intercept == before.intercept).all()


def test_an_intercept_that_begins_at_the_first_label_stays_where_it_was_placed() -> None:
    data = Chunk.from_csr(ROWS.indptr, ROWS.keys, ROWS.values, np.full(60, 1000.0), ROWS.weights)
    before = Model("ft-ftrl", "squared")
    before.learn(data)
    model = Model("ft-ftrl", "squared")
    start_from(model, before.predictor())
    model.learn(data.rows(0, 1))
    assert abs(model.loop.last_margins()[0] - before.predict(data.rows(0, 1))[0]) < 1e-3
    assert model.intercept == pytest.approx(1000.0, abs=5.0)


def test_given_weights_are_measured_by_the_first_values_they_meet() -> None:
    """Powers of two moved from values to initial weights change no bit of a margin."""
    data, powers = stream(47, 60, 8), 2.0 ** np.array([0, 20, -20, 5, -7, 12, 1, -30])
    other = stream_of(data.X * powers, data.X != 0, data.y, data.importance)
    keys, w = np.arange(8, dtype=np.uint64), np.linspace(-1, 2, 8).astype(np.float32)
    bias = np.array([0.25], np.float32)
    with not_compiled():
        margins = []
        for chunk, scale in ((data.chunk, np.ones(8)), (other.chunk, powers)):
            model = Model(l1=0.5, centre=False)
            start_from(
                model, LinearPredictor(model.head, "growing", keys, (w / scale).astype(np.float32), bias)
            )
            for row in range(60):
                model.learn(chunk, row, row + 1)
                margins.append(model.loop.last_margins()[0])
    assert margins[:60] == margins[60:]
    assert len(set(margins)) == 60


@pytest.mark.parametrize("l1", [0.0, 1.0, 3.0])
def test_a_given_weight_has_the_fewest_gradients_behind_it_that_can_leave_it(l1: float) -> None:
    now, usual, row = np.zeros(len(ft_ftrl_state.PLACES)), 0.3, np.zeros((1, 6))
    now[[ft_ftrl_state.COUNT, ft_ftrl_state.SLOPES]] = 10.0, 10.0 * usual**2
    now[[ft_ftrl_state.PER_LENGTH, ft_ftrl_state.FACTOR, ft_ftrl_state.INVERSE]] = 2.0, 0.4, 5.0
    now[[ft_ftrl_state.THRESHOLD, ft_ftrl_state.FLOOR]] = l1, l1 * usual
    for v in (-0.7, 0.01, 5.0):
        ft_ftrl_state.give_evidence(row, 0, v, tuple(now))
        _, z, root, a = row[0, :4]
        assert abs(z) == pytest.approx(root**2 / usual)  # equal gradients: sum and root of the sum of squares
        assert a == root * now[ft_ftrl_state.PER_LENGTH]
        left = -np.sign(z) * max(abs(z) - l1 * (root + usual), 0.0)
        assert left * now[ft_ftrl_state.FACTOR] / a == pytest.approx(v)


def test_the_default_begun_with_weights_is_better_than_begun_without() -> None:
    rows = concat(list(open_source("examples/data/rcv1_train2000.dat.gz").chunks()))
    rows = replace(rows, values=(rows.values * 2.0**12).astype(np.float32))
    first, last = rows.rows(0, 1000), rows.rows(1000, 2000)
    before, cold = thresher.train(first), thresher.train(last)
    warm = thresher.train(last, init=before)
    assert warm.tally.average < 0.9 * cold.tally.average
    assert thresher.evaluate(warm, first)["loss"] < thresher.evaluate(cold, first)["loss"]


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("name", ["rda", "coin", "simplex"])
def test_a_rule_that_has_no_state_for_a_weight_says_which_have(name: str) -> None:
    with pytest.raises(parts.SpecError, match=f"^{name} cannot start .* these rules can: .*fobos.*ftrl"):
        start_from(Model(name), trained().predictor())


@pytest.mark.parametrize(
    ("model", "before", "hint"),
    [
        ({}, {"intercept": True, "outputs": "values:2", "loss": "squared"}, "outputs"),
        ({"store": "hashed:6"}, {}, "weights are from the store growing, not hashed:6"),
        ({}, {"store": "hashed:6"}, "weights are from the store hashed:6,0, not growing"),
        ({"admit": "2"}, {}, "with scale or admit"),
        ({"intercept": False}, {}, "have an intercept"),
        ({"rule": "ft-ftrl:group=l2", "centre": False}, {}, "group"),
    ],
)
def test_weights_that_would_mean_something_else_are_refused(model: Any, before: Any, hint: str) -> None:
    if "outputs" in before:
        weights = Model("sgd", before["loss"], outputs=before["outputs"]).predictor()
    else:
        weights = trained(**before).predictor()
    outputs = {"outputs": "classes:0-1", "loss": "softmax"} if "rule" in model else {}
    if outputs:
        weights = Model("sgd", **outputs).predictor()
    with pytest.raises(ValueError, match=hint):
        start_from(Model(**{"rule": "ftrl", **outputs, **model}), weights)


def test_train_begins_with_a_model_or_its_file(tmp_path: Path) -> None:
    before = trained()
    model_file.save(before, tmp_path / "m")
    found = [thresher.train(ROWS, "ftrl", init=init) for init in (before, before.predictor(), tmp_path / "m")]
    assert len({one.weights()[1].tobytes() for one in found}) == 1
    assert found[0].tally.average < thresher.train(ROWS, "ftrl").tally.average
    with pytest.raises(TypeError, match="init: expected a model, not int"):
        thresher.train(ROWS, "ftrl", init=3)  # type: ignore[arg-type]


@pytest.mark.usefixtures("plainly")
def test_an_average_of_no_steps_is_what_was_placed() -> None:
    before = Model("sgd", dtype="float64")
    before.learn(ROWS)
    model = Model("sgd", average=True)
    start_from(model, before.predictor())
    for _ in range(2):
        assert model.predict(ROWS).tolist() == before.predict(ROWS).tolist()
        assert model.weights()[1].tolist() == before.weights()[1].tolist()
        assert model.intercept == before.intercept
        model.learn(ROWS, 0, 1)  # which starts from them


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_weights_that_the_model_cannot_hold_are_refused(value: float) -> None:
    model, keys = Model("sgd"), np.array([3, 7], np.uint64)
    for weights, bias, what in (
        ([1.0, value], 0.0, "feature 7 (seven)"),
        ([1.0, 1.0], value, "the intercept"),
    ):
        given = LinearPredictor(model.head, "growing", keys, np.array(weights), np.array([bias]))
        given.names = Names.of({7: b"seven"})
        with pytest.raises(ValueError, match=f"not finite in float32: {re.escape(what)}$"):
            start_from(model, given)
    start_from(model, LinearPredictor(model.head, "growing", keys, np.ones(2), np.zeros(1)))


@pytest.mark.usefixtures("plainly")
def test_placed_features_are_counted_until_rows_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    keys = np.arange(1, 2001, dtype=np.uint64) * np.uint64(1 << 40)
    model = Model("fobos:l1=100")
    start_from(model, LinearPredictor(model.head, "growing", keys, np.full(2000, 0.1), np.zeros(1)))
    assert model.features_seen == 2000
    for more in range(2):  # there is no room for the second before rows are freed
        model.learn(Chunk.from_csr(np.arange(2001), keys + np.uint64(more), np.ones(2000), np.ones(2000)))
    assert model.loop.index.used < 4000
    assert 2000 < model.features_seen < 4000
    assert model.features_freed
