"""The default in batches: examples are measured one by one, and their gradients are summed."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.plain import compiled_if, not_compiled
from thresher import Chunk, Model, evaluate, train
from thresher.learning.model.divergence import DivergedError

RCV1 = Path("examples/data/rcv1_train2000.dat.gz")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_that_all_but_cancels_out_is_no_scale(dtype: str) -> None:
    """Two examples pull a new feature in opposite directions, almost equally: the step size is as usual."""
    rows = [(1.0, {1: 1.0, 7: 1.0}), (-1.0, {7: 1.000001}), (1.0, {1: 1.0}), (-1.0, {2: 1.0})]
    with not_compiled():
        model = Model("ft-ftrl:l1=0", batch=2, intercept=False, dtype=dtype, centre=False)
        model.learn(Chunk.of_rows(rows))
        weights = dict(zip(*model.weights(), strict=True))
    assert 0 < abs(weights[7]) < abs(weights[1]) < 10


@pytest.mark.parametrize(
    ("dtype", "rows", "l1s", "batches"),
    [("float32", 400, [0.001, 1.0], [1, 2, 7, 50]), ("float64", 300, [0.001], [1, 7])],
)
def test_steps_on_many_examples_learn_next_to_as_well(
    dtype: str, rows: int, l1s: list[float], batches: list[int], tmp_path: Path
) -> None:
    """A low threshold keeps features with almost no gradient, with weights of the usual size."""
    lines = gzip.decompress(RCV1.read_bytes()).splitlines(keepends=True)
    learned, held = tmp_path / "learned.svm", tmp_path / "held.svm"
    learned.write_bytes(b"".join(lines[:rows]))
    held.write_bytes(b"".join(lines[rows : 2 * rows]))
    with compiled_if(dtype == "float32"):
        for l1 in l1s:
            losses = [
                evaluate(train(learned, l1=l1, batch=batch, dtype=dtype, passes=2), held)["loss"]
                for batch in batches
            ]
            assert max(losses[1:]) < 1.1 * losses[0] < 0.5


def test_a_batch_that_is_not_learned_is_not_measured() -> None:
    """The second example has no finite loss; the clocks are as they were before the first."""
    with not_compiled(), np.errstate(all="ignore"):
        options: dict[str, Any] = {"batch": 2, "intercept": False, "dtype": "float64", "centre": False}
        model = Model("ft-ftrl:l1=0", "squared", **options)
        model.learn(Chunk.of_rows([(1.0, {1: 1.0}), (0.0, {2: 1.0})]))
        state = model.state()
        state["S"][:, 0][state["S"][:, 4] > 0] = 1e200
        model.restore(state)
        before = {name: model.state()[name].copy() for name in ("clock", "bclock")}
        with pytest.raises(DivergedError, match="the loss of example 3 is not finite"):
            model.learn(Chunk.of_rows([(3.0, {1: 1.0}), (1.0, {2: 1.0})]))
    assert all((model.state()[name] == before[name]).all() for name in before)
    assert before["clock"][0, 0] == 1
