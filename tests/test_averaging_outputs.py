"""Averaged weights of many outputs, and of batches: the mean of the dense path, and the laws of state.

With batches the mean is over steps: each step counts its initial weights once.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.covering import covering_for
from tests.plain import not_compiled
from tests.streams import averages, case, settings_of
from tests.test_averaging import ABLE
from tests.test_laws_of_outputs import (
    FEATURES,
    Stream,
    check,
    check_cuts,
    check_stores,
    grouped,
    model_of,
    states_of,
    stream_for,
    tried,
)
from tests.test_laws_of_state import make_small
from thresher.data.chunk import Chunk
from thresher.learning.model import rule_state as tables
from thresher.learning.model.model import Model


@pytest.fixture(autouse=True)
def short_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catch up all rows every 9 steps."""
    monkeypatch.setattr(tables, "RING", 9)


def averaged(spec: str, loss: str, outputs: str, **options: Any) -> Model:
    return model_of(spec, loss, outputs, average=True, **options)


@pytest.mark.parametrize("name", ABLE)
def test_the_mean_of_the_dense_path(name: str) -> None:
    data = stream_for("softmax", "classes", seed=1, rows=32)
    for spec in [*filter(averages, settings_of(name)), *grouped(name)]:
        with case(spec), not_compiled():
            check(averaged(spec, "softmax", "classes:3"), data)


@pytest.mark.parametrize("name", ABLE)
def test_the_mean_of_batches_and_where_some_outputs_step(name: str) -> None:
    ways = (("softmax", 3, 60), ("crammer-singer", 1, 32))
    for spec, (loss, batch, rows) in covering_for(name, tried(name), ways):
        with case(spec, loss, batch), not_compiled():
            data = stream_for(loss, "classes", seed=1, rows=rows)
            check(averaged(spec, loss, "classes:3", batch=batch), data)


@pytest.mark.parametrize("name", ABLE)
def test_the_mean_of_other_outputs(name: str) -> None:
    spec = settings_of(name)[0]
    for outputs, batch in (("labels:1-3", 1), ("values:3", 2), ("one", 3)):
        data = stream_for("hinge", "labels", seed=2, rows=20 + 10 * batch)
        chunk = data.chunk
        if outputs == "one":
            data.targets = data.targets[:, :1]
            data.chunk = Chunk.from_csr(
                chunk.indptr, chunk.keys, chunk.values, data.targets[:, 0], chunk.weights
            )
        with case(spec, outputs, batch), not_compiled():
            check(averaged(spec, "hinge", outputs, batch=batch, intercept=outputs != "values:3"), data)


class Sparse(Stream):
    """The first feature is in every row, the others in one row each: they stay constant or decay to zero."""

    def __init__(self, rows: int) -> None:
        super().__init__("classes", seed=4, rows=rows)
        rng = np.random.default_rng(5)
        self.X = np.zeros((rows, FEATURES))
        self.X[:, 0] = rng.uniform(-1, 1, rows).astype(np.float32)
        for j in range(1, FEATURES):
            self.X[rows // 20 * j, j] = np.float32(rng.uniform(0.5, 1))
        row, column = np.nonzero(self.X)
        indptr = np.concatenate([[0], np.cumsum((self.X != 0).sum(axis=1))])
        labels = self.targets[:, 0] + 1
        self.importance = np.ones(rows)
        self.chunk = Chunk.from_csr(indptr, column, self.X[row, column], labels, self.importance)


@pytest.mark.parametrize("ring", [1 << 14, 60])
@pytest.mark.parametrize("rule", ["fobos:l1=3e-3", "adagrad-fobos:eta=0.2,l1=3e-3"])
def test_features_met_once(rule: str, ring: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two occurrences the largest outputs of a group shrink together and are joined by the next."""
    monkeypatch.setattr(tables, "RING", ring)
    for group in ("single", "l2", "linf"):
        for spec in (f"{rule},group={group}", f"{rule},l2=1e-2,group={group}"):
            with case(spec), not_compiled():
                check(averaged(spec, "softmax", "classes:3"), Sparse(rows=240))


@pytest.mark.usefixtures("plainly")
def test_each_step_counts_once_whatever_its_batch() -> None:
    """Batches of 2, 2 and 1: w_1 = 0, w_2 after two examples, w_3 after four."""
    chunk = Chunk.of_rows([(1.0, {3: 1.0})] * 5)
    options: dict[str, Any] = {"rate": "constant:0.1", "intercept": False, "dtype": "float64"}
    mean, last = (
        Model("sgd", "squared", batch=2, average=True, **options),
        Model("sgd", "squared", batch=2, **options),
    )
    began = []
    for lo, hi in pairwise([0, 2, 4, 5]):
        began.append(last.predict(chunk)[0])
        for model in (mean, last):
            model.learn(chunk, lo, hi)
    assert mean.predict(chunk)[0] == pytest.approx(np.mean(began[:2])), "one waits for another"
    mean.finish()
    assert mean.predict(chunk)[0] == pytest.approx(np.mean(began), abs=1e-15)
    assert began[0] == 0.0 < began[1] < began[2]


@pytest.mark.parametrize("name", ABLE)
def test_neither_cutting_nor_stopping_nor_looking_changes_anything(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces of which some end between two rings."""
    make_small(monkeypatch)
    data = stream_for("softmax", "classes", seed=8, rows=30)
    for spec, store, batch in states_of(name):
        with case(spec, store, batch), not_compiled():
            whole, cut = (averaged(spec, "softmax", "classes:3", store=store, batch=batch) for _ in range(2))
            check_cuts(whole, cut, data.chunk, tmp_path / "model")


@pytest.mark.parametrize("name", ABLE)
def test_the_store_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = stream_for("softmax", "classes", seed=9)
    make_small(monkeypatch)
    for spec in tried(name):
        with case(spec), not_compiled():
            growing, direct = (
                averaged(spec, "softmax", "classes:3", store=store) for store in ("growing", "direct")
            )
            check_stores(growing, direct, data.chunk)


def test_what_rings_of_many_clocks_hold_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules with a clock for each output have a ring for each, shorter where those are many."""
    monkeypatch.setattr(tables, "RINGS", 12)
    data = stream_for("logistic", "values", seed=3, rows=80)
    with not_compiled():
        model = averaged("pegasos:l2=1", "logistic", "values:3")
        check(model, data)
    assert model.state()["ring"].shape[:2] <= (3, 12 // 3 + 1)
