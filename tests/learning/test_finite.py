"""Weights and state stay finite: an error names the example and the feature before anything is written."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.plain import not_compiled
from thresher import Chunk, Model, parts
from thresher.data.source import MemorySource
from thresher.learning.files import model_file
from thresher.learning.model.divergence import DivergedError
from thresher.learning.training.trainer import Trainer, TrainingPlan

X = 3e38
Rows = list[tuple[float, dict[int, float]]]
CALM: Rows = [(1.0, {3: 1.0}), (0.0, {4: 1.0}), (1.0, {3: 1.0, 4: 2.0})]
EXTREME: Rows = [(1.0, {7: X, 2: 1.0})]
EXPLODING: dict[str, Any] = {"rule": "sgd", "loss": "hinge", "rate": "constant:1e38", "intercept": False}
LOOPS: dict[str, dict[str, Any]] = {
    "one output": {},
    "batches": {"batch": 2},
    "many outputs": {"outputs": "classes:0-2"},
    "many outputs, batches": {"outputs": "classes:0-2", "batch": 2},
}
# the state of averages is float64, so larger numbers are needed
AVERAGED: dict[str, Any] = {"rule": "sgd", "loss": "hinge", "rate": "constant:1e300", "average": True}


@pytest.fixture(autouse=True)
def _plain() -> Any:
    with not_compiled(), np.errstate(all="ignore"):
        yield


def learned(rows: Rows, **options: Any) -> Model:
    model = Model(**{**EXPLODING, **options})
    model.learn(Chunk.of_rows(rows))
    model.finish()
    return model


@pytest.mark.parametrize("options", LOOPS.values(), ids=LOOPS)
def test_an_extreme_value_that_breaks_a_weight_is_named(options: dict[str, Any]) -> None:
    examples = "one of the examples 3 to 4" if "batch" in options else "example 4"
    with pytest.raises(DivergedError, match=f"the weight of feature 7 is not finite after {examples}:"):
        learned([*CALM, *EXTREME, *CALM], **options)


def test_an_average_that_breaks_is_named() -> None:
    with pytest.raises(DivergedError, match="the weight of feature 7 is not finite after example 1"):
        learned(EXTREME, **AVERAGED)


@pytest.mark.parametrize("store", ["growing", "direct", "hashed:9", "hashed:9,signed"])
def test_every_store_tells_the_feature(store: str, tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match=r"the weight of feature \d+ is not finite") as caught:
        learned([*CALM, *EXTREME], store=store)
    assert store.startswith("hashed") or " 7 " in str(caught.value)


def test_a_weight_that_a_rate_breaks_is_found_before_anything_is_written(tmp_path: Path) -> None:
    rows: Rows = [*CALM, (1.0, {7: 9.0})]
    model = learned(rows)
    (tmp_path / "m").write_bytes(b"before")
    with pytest.raises(DivergedError, match="the weight of feature 7 is not finite after one of the"):
        model_file.save(model, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_what_breaks_is_named() -> None:
    model = learned(CALM)
    model.check_finite()
    model.learn(Chunk.of_rows([(1.0, {9: 1.0}), (1.0, {7: 9.0})]))
    with pytest.raises(DivergedError, match="feature 7 is not finite after one of the examples 4 to 5"):
        model.check_finite()
    model = learned(CALM, rate=None, intercept=True)
    model.loop.B[0, 0] = math.nan
    with pytest.raises(DivergedError, match="the intercept is not finite"):
        model.check_finite()
    rows: Rows = [(1.0, {1: X, 2: 1.0})]
    with pytest.raises(DivergedError, match="the state of the rule is not finite after example 1"):
        learned(rows, rule="fobos-l2norm", rate=None)


@pytest.mark.parametrize(
    "plan",
    [TrainingPlan(passes=2), TrainingPlan(passes=2, patience=1, holdout_every=4), TrainingPlan(2, None)],
)
def test_training_ends_with_the_pass_that_breaks_a_weight(plan: TrainingPlan) -> None:
    model = Model(**EXPLODING)
    trainer = Trainer(model, MemorySource(Chunk.of_rows([*CALM, *CALM, (1.0, {7: 9.0})]), "binary"), plan)
    with pytest.raises(DivergedError, match="feature 7 is not finite"):
        trainer.run()
    assert trainer.state.position.number == 1
    assert not trainer.policy.scored


def test_no_checkpoint_is_written_of_broken_weights(tmp_path: Path) -> None:
    plan = TrainingPlan(1, None, checkpoint=tmp_path / "c", checkpoint_every=4)
    rows: Rows = [(1.0, {7: 9.0}), *CALM, *CALM]
    trainer = Trainer(Model(**EXPLODING), MemorySource(Chunk.of_rows(rows), "binary"), plan)
    with pytest.raises(DivergedError, match="feature 7 is not finite after one of the examples 1 to 4"):
        trainer.run()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rule", parts.REGISTRY["rule"])
def test_extreme_values_never_break_a_model_in_silence(rule: str) -> None:
    rows: Rows = [*CALM, (1.0, {1: X, 2: 1.0}), (0.0, {1: -X, 2: 1.0}), *CALM]
    model = Model(rule, "hinge")
    try:
        model.learn(Chunk.of_rows(rows))
    except DivergedError:
        return
    assert all(np.isfinite(array).all() for array in model.state().values())
    assert np.isfinite(model.weights()[1]).all()


@pytest.mark.parametrize("rule", parts.REGISTRY["rule"])
def test_nothing_that_a_rule_keeps_is_infinite_by_design(rule: str) -> None:
    model = Model(rule)
    model.check_finite()
    model.learn(Chunk.of_rows([*CALM, *CALM]))
    model.check_finite()


def test_extreme_values_are_cut_no_differently() -> None:
    rows: Rows = [*CALM, (1.0, {7: 1e19}), *CALM, (0.0, {7: -1e19, 3: 1.0}), (1.0, {8: 4e18}), *CALM]
    for batch in (1, 2, 3):
        whole, cut = (Model("ftrl", "hinge", batch=batch, dtype="float64") for _ in range(2))
        whole.learn(Chunk.of_rows(rows))
        for row in rows:
            cut.learn(Chunk.of_rows([row]))
        for model in (whole, cut):
            model.finish()
        for name, array in whole.state().items():
            assert np.array_equal(array, cut.state()[name]), name
