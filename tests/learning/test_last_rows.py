"""Hold-outs for rows in the order of time: the last rows."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import thresher
from thresher.data import Chunk, DataError, MemorySource
from thresher.learning.training.holdout import Holdout
from thresher.learning.training.shares import LastRows, as_text, part_of

ROWS = 157
CHANCE = np.random.default_rng(6)
CHUNK = Chunk.from_csr(
    np.arange(ROWS + 1) * 2,
    np.stack([np.arange(ROWS) % 7, 10 + np.arange(ROWS) % 5], 1).ravel(),
    np.ones(2 * ROWS),
    np.where(CHANCE.random(ROWS) < 0.3 + np.arange(ROWS) % 7 / 15, 1.0, -1.0),
)
OPTIONS: dict[str, Any] = {"rule": "ftrl:l1=0.05"}

pytestmark = pytest.mark.usefixtures("plainly", "own_folder")


class Counter:
    def __init__(self, chunks: list[Chunk]) -> None:
        self._chunks, self.read = chunks, 0

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self._chunks:
            self.read += len(chunk)
            yield chunk


def same(one: thresher.Model, other: thresher.Model) -> bool:
    pairs = zip(one.weights(), other.weights(), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs) and one.tally == other.tally


@pytest.mark.parametrize(
    ("given", "held"),
    [
        *(("last:0.1", 16), ("last:10%", 16), ("last:0.999", 157), ("last:1", 1), ("last:156", 156)),
        ("last:0.004", 1),
    ],
)
def test_which_rows_are_the_last(given: str, held: int) -> None:
    """The last tenth is at least a tenth. No more rows wait than are held out, but for one chunk."""
    part = part_of(given)
    assert isinstance(part, LastRows)
    assert part_of(as_text(part)) == part
    assert part.learned(ROWS) == ROWS - held
    if held == ROWS:
        return
    numbered = Chunk.from_csr(np.arange(ROWS + 1), np.arange(ROWS), np.ones(ROWS), np.ones(ROWS))
    for cut in (1, 10, ROWS):
        holdout, pieces = Holdout(part), [numbered.rows(lo, lo + cut) for lo in range(0, ROWS, cut)]
        for _ in range(2):
            counter = Counter(pieces)
            rest = list[int]()
            for chunk in holdout.remaining(counter):
                rest += chunk.keys.tolist()
                assert counter.read - len(rest) <= held + cut
            assert rest == list(range(ROWS - held))
        source = holdout.source()
        assert [int(key) for chunk in source.chunks() for key in chunk.keys] == list(range(ROWS - held, ROWS))


def test_shares_are_monotonous() -> None:
    """A row that may be learned at some length of the stream may be learned at every greater length."""
    for size in (Fraction(1, 10), Fraction(1, 3), Fraction(999, 1000), 1, 50):
        learned = [LastRows(size).learned(rows) for rows in range(300)]
        assert learned == sorted(learned)
        assert all(b - a <= 1 for a, b in pairwise(learned))


@pytest.mark.parametrize(
    "given", ["last:0", "last:1.5", "last:100%", "last:", "last:-3", "last:nan", "last:x"]
)
def test_what_is_no_last_part(given: str) -> None:
    with pytest.raises(ValueError, match=r"give a share of the rows between 0 and 1, such as last:0\.1, or"):
        thresher.train(CHUNK, holdout=given, **OPTIONS)


@pytest.mark.parametrize("order", ["as-is", "once"])
def test_every_function_learns_the_first_rows_and_is_judged_on_the_last(order: str) -> None:
    first, last = CHUNK.rows(0, ROWS - 16), MemorySource(CHUNK.rows(ROWS - 16, ROWS))
    more: dict[str, Any] = {"order": order, **OPTIONS}
    one = thresher.train(CHUNK, holdout="last:0.1", passes=4, early_stop=1, **more)
    assert same(one, thresher.train(first, holdout=last, passes=4, early_stop=1, **more))
    assert one.record.holdout == "last:0.1"
    paths = [
        thresher.path(data, "ftrl", l1=[0.1, 1.0], holdout=held, order=order)
        for data, held in ((CHUNK, "last:16"), (first, last))
    ]
    assert paths[0].points == paths[1].points
    tuned = [
        thresher.tune(data, rules=["ftrl"], budget=3, holdout=held, order=order)
        for data, held in ((CHUNK, "last:0.1"), (first, last))
    ]
    assert tuned[0].report == tuned[1].report
    bags = [
        thresher.ensemble(data, models=2, holdout=held, order=order, rule="ftrl:l1=0.05")
        for data, held in ((CHUNK, "last:0.1"), (first, last))
    ]
    assert all(same(a, b) for a, b in zip(bags[0].models, bags[1].models, strict=True))


def test_none_is_left() -> None:
    with pytest.raises(DataError, match="the hold-out, last:157, leaves none of 157 rows to learn from"):
        thresher.train(CHUNK, holdout="last:157", **OPTIONS)


def test_the_last_rows_are_held_out_whatever_their_group() -> None:
    groups = np.arange(ROWS)
    rows = np.ones((ROWS, 2))
    for function in (thresher.train, thresher.path, thresher.tune, thresher.ensemble):
        with pytest.raises(DataError, match=r"whatever their group: leave group out, or draw rows,"):
            function(rows, CHUNK.labels, groups=groups, holdout="last:0.1")
    with pytest.raises(DataError, match="whatever their group"):
        thresher.train("missing.csv", group="user", holdout="last:5")
