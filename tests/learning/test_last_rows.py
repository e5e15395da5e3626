"""Hold-outs and folds for rows in the order of time: the last rows, and blocks that follow those learned."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit

import thresher
from thresher.data import Chunk, DataError, MemorySource
from thresher.learning.training.holdout import Holdout
from thresher.learning.training.shares import LastRows, as_text, part_of
from thresher.plans.folds import Split, blocks_of

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


@pytest.mark.parametrize("count", [2, 3, 7])
def test_blocks_are_those_of_scikit_learn(count: int) -> None:
    for total in (count + 1, 50, 157):
        blocks = blocks_of(0, total, count, total)
        for k, (learned, tested) in enumerate(TimeSeriesSplit(count).split(np.empty((total, 1)))):
            assert np.flatnonzero(blocks < k).tolist() == learned.tolist()
            assert np.flatnonzero(blocks == k).tolist() == tested.tolist()
        for first in (0, 3, total - 1):
            assert np.array_equal(blocks_of(first, total - first, count, total), blocks[first:])


@pytest.mark.parametrize("passes", [1, 2])
def test_each_block_is_predicted_by_models_of_the_rows_before_it(passes: int) -> None:
    """From a file, which is counted first, with bad lines, and from memory."""
    Path("rows.svm").write_text(
        "".join(
            f"{int(y)} {k % 7 + 1}:1 {11 + k % 5}:1\n" + "oops\n" * (k % 40 == 7)
            for k, y in enumerate(CHUNK.labels)
        )
    )
    shared: dict[str, Any] = {"rule": "ftrl:l1=0.05", "folds": "forward:4", "passes": passes}
    found = thresher.cv("rows.svm", refit=True, on_error="skip", **shared)
    chunk = thresher.cv(CHUNK, refit=True, **shared)
    assert found.points == chunk.points
    assert found.sets.examples == passes * ROWS
    start = ROWS - 4 * (ROWS // 5)
    losses = []
    for k, model in enumerate(chunk.sets.models[:4]):
        begin = start + k * (ROWS // 5)
        own = thresher.train(CHUNK.rows(0, begin), passes=passes, **OPTIONS)
        assert same(model, own)
        losses.append(thresher.evaluate(own, CHUNK.rows(begin, begin + ROWS // 5))["loss"])
    assert chunk.points[0].loss == pytest.approx(np.mean(losses))
    assert same(chunk.choose(), thresher.train(CHUNK, passes=passes, **OPTIONS))
    assert same(found.choose(), thresher.train("rows.svm", passes=passes, on_error="skip", **OPTIONS))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"folds": "forward"}, "folds must be a number, or forward:K such as forward:5, not 'forward'"),
        ({"folds": "forward:1"}, "folds must be a whole number, 2 or more, not 1"),
        ({"folds": "forward:2.5"}, "folds must be a number, or forward:K"),
        ({"folds": 2.5}, "folds must be a whole number"),
        ({"folds": "forward:156"}, None),
        ({"folds": "forward:157"}, 'folds="forward:157" needs at least 158 rows; rows read: 157'),
        (
            {"folds": "forward:3", "order": "once"},
            'folds="forward:3" follows the order of the data, which order="once" changes: leave order out, or'
            " draw folds, folds=3",
        ),
        (
            {"folds": "forward:3", "groups": np.arange(ROWS)},
            "are consecutive rows, and a group may be in several: leave group out, or draw folds, folds=3",
        ),
    ],
)
def test_what_goes_forward(more: dict[str, Any], words: str | None) -> None:
    if words is None:
        assert thresher.cv(CHUNK, **OPTIONS, **more).folds.count == 156
        return
    with pytest.raises(ValueError) as caught:  # noqa: PT011 the words are compared
        thresher.cv(CHUNK, **OPTIONS, **more)
    assert words in str(caught.value)


def test_splits_as_they_are_shown() -> None:
    assert [Split.of(one).shown for one in (5, "5", "forward:5", np.int64(7))] == [5, 5, "forward:5", 7]
