"""Races of lanes: which lane is dropped when, however the stream is cut."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.streams import cut, stream
from thresher.data.chunk import Chunk
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.plans import race as racing
from thresher.plans.race import Race

ROWS = 700
STREAM = stream(seed=3, rows=ROWS, features=40, density=0.2).chunk
RECIPES = [Recipe("ftrl", l1=l1) for l1 in (0.1, 3.0, 0.01)]


class Marks(Race):
    """Drops no lane, and records when it was asked to."""

    def __init__(self, until: int) -> None:
        super().__init__(3, until)
        self.seen: list[int] = []
        self.found: list[list[float]] = []

    def judge(self, lanes: ModelSet) -> None:
        self.seen.append(lanes.examples)
        self.found.append(self.losses().tolist())


def raced(race: Race | None, places: Sequence[int] = (), chunk: Chunk = STREAM) -> ModelSet:
    lanes = ModelSet(RECIPES, race=race)
    for piece in cut(chunk, list(places)):
        lanes.learn(piece)
    return lanes


pytestmark = pytest.mark.usefixtures("plainly")


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "FIRST", 64)


@pytest.mark.parametrize("places", [[], [1, 64, 65, 130, 130, 511], list(range(0, ROWS, 3))])
def test_marks_are_rows_of_the_stream(places: list[int]) -> None:
    raced(marks := Marks(600), places)
    assert marks.seen == [64, 128, 256, 512]
    assert marks.found == [losses_between(done // 2, done) for done in marks.seen]
    assert (marks.ended, marks.ends[-1]) == (True, 600)


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
    raced(race := Marks(512), chunk=weighted)
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
    assert race.excess(0, 1) == pytest.approx(difference.sum() / error)


def test_blocks_grow_with_the_rows() -> None:
    done, ends, race = 0, [0], Marks(1 << 20)
    while done < 5000:
        done += race.due(done)
        ends.append(done)
    for rows in (512, 1024, 2048, 4096, 5000):
        late = [end for end in ends if rows / 2 < end <= rows]
        assert 32 <= len(late) <= 64
        assert rows // 2 in ends or rows == 5000
    assert set(np.diff(ends[:65])) == {8}
