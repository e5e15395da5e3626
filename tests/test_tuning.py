"""Tuning: which settings are drawn, which lanes are dropped, what is reported."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.streams import stream
from thresher.data.chunk import Chunk
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.parts import make, rule_of
from thresher.plans import race
from thresher.plans.settings import Tuner, ranges_of, values_of, with_values

ROWS = 600
STREAM = stream(seed=5, rows=ROWS, features=60, density=0.2).chunk
RULES = ("ft-ftrl", "adagrad-fobos")
"""Octets of these are compiled for commands, too."""


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "FIRST", 128)


def tuned(chunk: Chunk = STREAM, budget: int = 24, seed: int = 0, until: int | None = 540) -> Tuner:
    tuner = Tuner(Recipe(seed=seed, centre=False), RULES, budget, until)
    for number in range(len(tuner.rounds)):
        lanes = tuner.draw(number)
        lanes.learn(chunk)
        lanes.finish()
        tuner.settle(lanes)
    return tuner


def test_losses_are_those_of_the_rows() -> None:
    tuner = tuned()
    trial, _ = tuner.winner()
    model = Model(trial.rule, rate=trial.rate, centre=False)
    lost = []
    for rows in (256, 540, ROWS):
        model.learn(STREAM, model.examples, rows)
        lost.append(model.tally)
    assert trial.progressive_loss == pytest.approx(lost[2].average)
    assert tuner.late[0] == pytest.approx(lost[2].loss - lost[1].loss)
    assert tuner.late[1] == pytest.approx(lost[2].weight - lost[1].weight)
    model = Model(trial.rule, rate=trial.rate, centre=False)
    model.learn(STREAM, 0, 272)  # the first end of a block in the last half of 540 rows
    lost_before = model.tally
    share = (lost[1].loss - lost_before.loss) / (lost[1].weight - lost_before.weight)
    assert trial.late_loss == pytest.approx(share)


def test_the_rows_of_the_report_choose_nothing() -> None:
    flipped = STREAM.labels.copy()
    flipped[540:] *= -1
    other = tuned(replace(STREAM, labels=flipped))
    mine = tuned()
    assert [one.rule for one in other.trials] == [one.rule for one in mine.trials]
    assert other.chosen == mine.chosen
    assert other.late != mine.late


def test_weak_ones_are_dropped_and_the_rest_learns_all_rows() -> None:
    tuner = tuned()
    assert len(tuner.trials) == 24
    assert [sum(one.round == k for one in tuner.trials) for k in (1, 2, 3)] == tuner.rounds == [12, 6, 6]
    dropped = [one for one in tuner.trials if one.dropped]
    assert dropped
    assert {one.rows for one in dropped} <= {128, 256, 512}
    assert all("more loss than the best at row" in str(one.dropped) for one in dropped)
    assert {one.rows for one in tuner.trials if not one.dropped} == {ROWS}
    assert all(one.late_loss is None for one in dropped)


def test_later_rounds_draw_near_the_best() -> None:
    tuner = tuned()
    trials = tuner.trials
    for number in (2, 3):
        able = [one for one in trials if one.round < number and one.late_loss is not None]
        parents = sorted(able, key=lambda one: float(one.late_loss or 0.0))[:4]
        for child in (one for one in trials if one.round == number):
            rule = rule_of(child.rule, child.rate)
            near = [rule_of(one.rule, one.rate) for one in parents]
            assert any(_close(rule, parent, 0.5 ** (number - 1)) for parent in near)


def _close(rule: object, parent: object, width: float) -> bool:
    if type(rule) is not type(parent):
        return False
    mine, theirs = values_of(rule), values_of(parent)
    steps = [
        abs(np.log(mine[name] / theirs[name])) / np.log(high / low)
        for name, (low, high) in ranges_of(rule).items()
    ]
    return float(max(steps)) <= width / 2 + 1e-3


def test_seeds() -> None:
    one, same, other = (
        [trial.rule + str(trial.rate) for trial in tuned(seed=seed).trials] for seed in (0, 0, 1)
    )
    assert one == same
    assert one[:2] == other[:2] == [trial.rule + str(trial.rate) for trial in tuned(budget=2).trials]
    assert set(one[2:12]).isdisjoint(other[2:12])
    assert len(set(one)) == 24


def test_rules_without_anything_to_tune_are_tried_once() -> None:
    tuner = Tuner(Recipe(), ("perceptron", "sgd", "fobos"), 30)
    assert tuner.rounds == [16, 7, 7]
    plain = Tuner(Recipe(), ("perceptron", "averaged-perceptron"), 30)
    assert plain.rounds == [2]
    assert [type(model.rule).__name__ for model in plain.draw(0).models] == [
        "Perceptron",
        "AveragedPerceptron",
    ]


def test_what_is_tuned_of_a_rule() -> None:
    assert set(ranges_of(make("rule", "ft-ftrl"))) == {"alpha", "l1"}
    fobos = make("rule", "fobos")
    assert set(ranges_of(fobos)) == {"l1", "rate.eta0"}
    moved = with_values(fobos, {"l1": 0.25, "rate.eta0": 2.0})
    assert (moved.l1, moved.rate.eta0, moved.l2) == (0.25, 2.0, fobos.l2)
    assert values_of(moved) == {"l1": 0.25, "rate.eta0": 2.0}


@pytest.mark.usefixtures("plainly")
def test_settings_that_diverge() -> None:
    """Diverging settings are reported, and it is an error only if all diverge."""
    wild = replace(STREAM, values=STREAM.values * np.float32(1e6))
    tuner = Tuner(Recipe(loss="squared", dtype="float64"), ("sgd", "ft-ftrl"), 4, 540)
    with np.errstate(all="ignore"):
        lanes = tuner.draw(0)
        lanes.learn(wild)
        tuner.settle(lanes)
    assert "ft-ftrl" in tuner.winner()[0].rule
    assert [bool(one.dropped) for one in tuner.trials] == [True, False, True, False]
    for count in (1, 4):
        alone = Tuner(Recipe(loss="squared"), ("sgd",), count, 540)
        lanes = alone.draw(0)
        lanes.learn(STREAM.rows(0, 64))
        with np.errstate(all="ignore"), pytest.raises(DivergedError) as caught:
            lanes.learn(wild)
        alone.settle(lanes, caught.value)
        with pytest.raises(DivergedError, match=re.escape(str(caught.value))):
            alone.winner()
        assert str(caught.value) in [one.dropped for one in alone.trials]
