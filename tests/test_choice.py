"""How the comparison on real data chooses parameters, and on which rows."""

from itertools import product

import numpy as np
import pytest

from benchmarks.choice import climb, filled, ladders, middle, place_of
from benchmarks.tasks import Split, Task, split_rows
from thresher.data import Chunk

TEMPLATE = "--rule fobos:l1=1e-6|1e-5|1e-4,l2=0 --rate inverse-sqrt:1|10 --loss hinge|logistic"


def chunk(rows: int) -> Chunk:
    return Chunk.of_rows([((-1.0) ** i, {i: 1.0}) for i in range(rows)])


def test_every_alternative_is_a_command_and_is_found_again() -> None:
    lengths = [len(rungs) for rungs in ladders(TEMPLATE)]
    assert lengths == [3, 2, 2]
    commands = {filled(TEMPLATE, place): place for place in product(*map(range, lengths))}
    assert len(commands) == 12
    assert all(place_of(TEMPLATE, command) == place for command, place in commands.items())
    assert filled(TEMPLATE, (2, 1, 0)) == "--rule fobos:l1=1e-4,l2=0 --rate inverse-sqrt:10 --loss hinge"


@pytest.mark.parametrize("target", list(product(range(5), range(4))))
def test_climbing_finds_the_bottom_of_a_bowl_and_tries_nothing_twice(target: tuple[int, int]) -> None:
    tried = []

    def value(place: tuple[int, ...]) -> tuple[float]:
        tried.append(place)
        a, b = (x - y for x, y in zip(place, target, strict=True))
        return (a * a + b * b + 0.5 * a * b,)

    assert climb((5, 4), middle((5, 4)), value) == target
    assert len(tried) == len(set(tried))


def test_parameters_are_chosen_without_the_test_rows() -> None:
    whole = chunk(53)
    train, test = split_rows(whole)
    split = Split(Task("", "", folds=5), train, test)
    assert set(train.keys.tolist()) | set(test.keys.tolist()) == set(range(53))
    held = []
    for inner in split.inner:
        used, judged = set(inner.train.keys.tolist()), set(inner.test.keys.tolist())
        assert not used & judged
        assert used | judged == set(train.keys.tolist())
        held.append(judged)
    assert len(held) == 5
    assert set.union(*held) == set(train.keys.tolist())
    assert sum(map(len, held)) == len(train)
    assert np.all(np.diff(test.keys.astype(np.int64)) == 5)
