"""Sums that fade: `half_life` of ftrl and ft-ftrl. That they equal their recursions is in the laws."""

import numpy as np
import pytest

from tests.plain import not_compiled
from tests.streams import Stream, model_of, read_weights, stream_of
from thresher import parts
from thresher.engine.protocol import in_dtype
from thresher.learning.model.model import Model
from thresher.learning.model.warm_start import start_from

BOTH = pytest.mark.parametrize("name", ["ftrl", "ft-ftrl"])


def rows(chance: float, count: int, features: int = 1, seed: int = 0) -> Stream:
    """Ones in all features; a positive label with this chance."""
    y = np.where(np.random.default_rng(seed).random(count) < chance, 1.0, -1.0)
    X = np.ones((count, features))
    return stream_of(X, X > 0, y, np.ones(count))


@pytest.mark.parametrize("name", ["ft-ftrl"])
def test_many_examples_in_single_precision(name: str) -> None:
    """A half-life of so many examples that its power is 1 in float32: then roots would be 1.4 % too large."""
    data, found = rows(0.7, 1_000_000), []
    for dtype in ("float32", "float64"):
        model = model_of(f"{name}:half_life=2.5e7", intercept=False, dtype=dtype)
        model.learn(data.chunk)
        found.append(model.loop.state()["S"].astype(np.float64))
    z, root = (parts.lookup("rule", name).SLOTS.index(column) for column in ("z", "root"))
    assert found[1][:, root].max() > 400
    assert found[0][:, [z, root]] == pytest.approx(found[1][:, [z, root]], rel=2.5e-3)


@BOTH
def test_given_weights(name: str) -> None:
    """In ftrl they fade from the start, in ft-ftrl from their first gradient on."""
    with not_compiled():
        given = model_of(f"{name}:l1=0", intercept=False)
        given.learn(rows(0.8, 200, features=2).chunk)
        model = model_of(f"{name}:l1=0,half_life=10", intercept=False)
        start_from(model, given.predictor())
        before = read_weights(model, 2)
        assert before == pytest.approx(read_weights(given, 2))
        model.learn(rows(0.8, 40, features=1).chunk)
        after = read_weights(model, 2)
    assert after[0] != before[0]
    assert abs(after[1]) < 0.3 * abs(before[1]) if name == "ftrl" else after[1] == before[1]


@BOTH
def test_loops_are_compiled_without_sums_that_never_fade(name: str) -> None:
    lasting, fading = (parts.make("rule", f"{name}:half_life={life}") for life in ("inf", "9"))
    assert (lasting.half_life, fading.half_life) == (np.inf, 9.0)
    assert in_dtype(lasting, "float32").half_life is None
    assert in_dtype(fading, "float32").half_life == 9.0


def test_a_group_does_not_fade() -> None:
    with pytest.raises(parts.SpecError, match="half_life does not work with a group; leave out one of them"):
        Model("ft-ftrl:group=l2,half_life=9", "softmax", outputs="classes:3")


def test_times_from_a_file_are_checked() -> None:
    """Of rows that fade; otherwise the column holds weights."""
    S = np.array([[0.0, 0.0, 0.0], [5.0, -1.0, 1.0]])
    fading, lasting = (parts.make("rule", f"ftrl:half_life={life}") for life in ("9", "inf"))
    assert fading.sound(S, np.array([5.0]), 5) == ""
    assert "stepped in 0..10" in fading.sound(S, np.array([4.0]), 10)
    assert "stepped in 0..4" in fading.sound(S, np.array([5.0]), 4)
    assert lasting.sound(S, np.array([2.0]), 4) == ""
