"""Races of lanes: which lane is dropped when, however the stream is cut."""

import weakref
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import thresher as package
from tests.streams import cut, stream
from thresher.data.chunk import Chunk
from thresher.data.source import MemorySource
from thresher.engine.sound import StateError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.plans import race as auto
from thresher.plans import train as plans_train
from thresher.plans.race import Race

ROWS = 700
STREAM = stream(seed=3, rows=ROWS, features=40, density=0.2).chunk
RECIPES = [Recipe("ftrl", l1=l1) for l1 in (0.1, 3.0, 0.01)]


class Marks:
    """Drops no lane, and records when it was asked to."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, bool]] = []
        self.losses: list[list[float]] = []

    def __call__(self, race: Race, lanes: ModelSet, last: bool) -> None:
        self.seen.append((lanes.examples, last))
        self.losses.append(race.losses().tolist())


def raced(race: Race | None, places: Sequence[int] = (), chunk: Chunk = STREAM) -> ModelSet:
    lanes = ModelSet(RECIPES, race=race)
    for piece in cut(chunk, list(places)):
        lanes.learn(piece)
    return lanes


pytestmark = pytest.mark.usefixtures("plainly")


@pytest.mark.parametrize("places", [[], [1, 64, 65, 130, 130, 511], list(range(0, ROWS, 3))])
def test_marks_are_rows_of_the_stream(places: list[int]) -> None:
    marks = Marks()
    raced(Race(marks, 3, 64, 600), places)
    assert marks.seen == [(64, False), (128, False), (256, False), (512, False), (600, True)]
    expected = [losses_between(done // 2, done) for done in (64, 128, 256, 512)]
    assert marks.losses[:4] == expected


def losses_between(first: int, last: int) -> list[float]:
    """The progressive loss of each lane on these rows."""
    found = []
    for recipe in RECIPES:
        model = Model(recipe)
        model.learn(STREAM, 0, first)
        before = model.tally.loss
        model.learn(STREAM, first, last)
        found.append(model.tally.loss - before)
    return found


def test_the_excess_is_that_of_the_rows() -> None:
    """Compared with the value computed from the losses of all blocks."""
    weights = np.random.default_rng(0).choice([0.5, 1.0, 3.0], ROWS).astype(np.float32)
    weighted = Chunk(STREAM.indptr, STREAM.keys, STREAM.values, STREAM.labels, weights)
    raced(race := Race(Marks(), 3, 64, 512), chunk=weighted)
    losses, importance = [], []
    model, other = Model(RECIPES[0]), Model(RECIPES[1])
    for row in range(0, 512, 8):
        model.learn(weighted, row, row + 8)
        other.learn(weighted, row, row + 8)
        losses.append((model.tally.loss, other.tally.loss))
        importance.append(model.tally.weight)
    late = np.diff(np.array(losses)[31:], axis=0)
    own = np.diff(np.array(importance)[31:])
    difference = late[:, 0] - late[:, 1]
    apart = difference - difference.sum() / own.sum() * own
    error = np.sqrt((apart**2).sum() * 32 / 31)
    found = race.excess(0, 1)
    assert found.share == pytest.approx(difference.sum() / late[:, 0].sum())
    assert found.errors == pytest.approx(difference.sum() / error)


def test_blocks_grow_with_the_rows() -> None:
    done, ends, race = 0, [0], Race(Marks(), 3, 1, 1 << 20)
    while done < 5000:
        done += race.due(done)
        ends.append(done)
    for rows in (512, 1024, 2048, 4096, 5000):
        late = [end for end in ends if rows / 2 < end <= rows]
        assert 32 <= len(late) <= 64
        assert rows // 2 in ends or rows == 5000
    assert set(np.diff(ends[:65])) == {8}


class InfoDict:
    """Lanes with given losses."""

    def __init__(self, each: Sequence[Sequence[float]]) -> None:
        self.race, self.examples = Race(Marks(), len(each[0]), 1, 1 << 20), 0
        self.alive, self.dropped = list(range(len(each[0]))), list[int]()
        self.lost = [0.0] * len(each[0])
        lanes: Any = self
        self.parts = [lanes]
        for losses in each:
            self.examples += 1
            self.lost = [a + b for a, b in zip(self.lost, losses, strict=True)]
            if self.examples % 8 == 0:
                self.race.note(lanes)

    @property
    def models(self) -> list[Any]:
        return [SimpleNamespace(tally=(lost, float(self.examples))) for lost in self.lost]

    def drop(self, number: int, reason: str) -> None:
        self.alive = [k for k in self.alive if k != number]


CHANCE: list[float] = np.random.default_rng(2).choice([0.0, 5.0], 512, p=[0.82, 0.18]).tolist()
"""0.9 on average, and the standard error of 256 of them is 0.12."""


@pytest.mark.parametrize(
    ("losses", "rows", "last", "left"),
    [
        ([[1.0, 0.9, 0.8]], 512, True, [2]),  # the best
        ([[1.0, 0.995, 1.2]], 512, True, [0]),  # not enough better
        ([[1.0, 0.5, 0.6]], 248, True, [0]),  # too few rows
        ([[1.0, 0.5, 0.6]], 256, True, [1]),
        ([[1.0, one, 1.0] for one in CHANCE], 512, True, [0]),  # by chance
        ([[1.0, 0.9, 0.8]], 512, False, [2]),
        ([[1.0, 1.0, 1.2]], 512, False, [0, 1]),
        ([[1.0, one, 1.9] for one in CHANCE], 512, False, [0, 1]),
    ],
)
def test_who_is_left(losses: list[list[float]], rows: int, last: bool, left: list[int]) -> None:
    each = np.resize(losses, (rows, len(losses[0])))
    jitter = 1.0 + 1e-2 * np.random.default_rng(1).standard_normal(each.shape)
    told: Any = InfoDict((each * jitter).tolist())
    auto.judge(told.race, told, last)
    assert told.alive == left


def test_a_favourite_that_diverged_leaves_its_place() -> None:
    told: Any = InfoDict([[1.0, 0.999, 0.99]] * 512)
    told.drop(0, "diverged")
    auto.judge(told.race, told, True)
    assert told.alive == [1]


def test_the_field_begins_with_the_recipe() -> None:
    recipe = Recipe(l1=2.0, batch=5)
    field = auto.field(recipe)
    assert field[0] == recipe
    assert len({one.rule for one in field}) == len(field) == 8
    assert {one.rule_part.l1 for one in field} == {1.0, 2.0}
    assert {one.batch for one in field} == {5}


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("ends"),
        lambda s: s.update(ends=s["ends"][::-1].copy()),
        lambda s: s.update(ends=s["ends"] + 1),
        lambda s: s.update(sums=s["sums"][:, 1:].copy()),
        lambda s: s.update(sums=s["sums"][1:].copy()),
        lambda s: s.update(ends=s["ends"][:0], sums=s["sums"][:0]),
    ],
)
def test_damaged_records(change) -> None:  # type: ignore[no-untyped-def]
    race = Race(Marks(), 3, 64, 600)
    raced(race)
    state = race.state()
    change(state)
    with pytest.raises(StateError):
        Race(Marks(), 3, 64, 600).restore(state)


def test_lanes_go_when_one_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their tables are eight times as large."""
    monkeypatch.setattr(auto, "UNTIL", 64)
    started, alive = list[weakref.ref[ModelSet]](), list[bool]()
    racing = plans_train.Auto.lanes

    def starting(plan: plans_train.Auto, recipe: Recipe) -> ModelSet:
        lanes = racing(plan, recipe)
        started.append(weakref.ref(lanes))
        return lanes

    def chunks() -> Iterator[Chunk]:
        for lo in range(0, ROWS, 100):
            alive.append(any(one() is not None for one in started))
            yield STREAM.rows(lo, lo + 100)

    source = MemorySource(STREAM)
    monkeypatch.setattr(plans_train.Auto, "lanes", starting)
    monkeypatch.setattr(source, "chunks", lambda start=None: chunks())
    model = package.train(source, "auto", passes=1)
    assert model.examples == ROWS
    assert alive[0]
    assert not any(alive[2:])
