"""Many penalties in memory, and folds that share the rows: the models and the figures of fits one by one."""

from typing import Any

import numpy as np
import pytest

import thresher
from tests.streams import Vector
from thresher import DataError
from thresher.learning.training.shares import folds_of


def data_of(loss: str, rows: int = 90) -> tuple[Vector, Vector, Vector]:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(rows, 12)).astype(np.float32).astype(np.float64)
    p = X[:, :3] @ [2.0, -1.0, 1.0]
    y = {"logistic": np.sign(p + rng.normal(size=rows)), "softmax": np.digitize(p, [-1, 1]) + 1.0}
    return X, y.get(loss, p + rng.standard_t(3, rows)), rng.choice([0.0, 0.5, 1.0, 2.0], rows)


def margins_of(model: Any, X: Vector) -> Vector:
    """Of several classes, only differences are unique."""
    found: Vector = model.predict(X)
    return found if found.ndim == 1 else found - found.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared", "huber"])
def test_penalties_and_folds_are_those_of_single_fits(loss: str) -> None:
    X, y, c = data_of(loss)
    values, tight = [1.0, 4.0, 8.0], dict[str, Any](tolerance=1e-8)
    model = thresher.boost((X, y, c), loss, l1=values, folds=5, **tight)
    folds, losses = folds_of(0, 90, 5, 0), np.zeros((3, 90))
    for k, l1 in enumerate(values):
        alone = thresher.boost((X, y, c), loss, l1=l1, **tight)
        same = model.frontier.models[k]
        assert same.solution.objective == pytest.approx(alone.solution.objective, rel=1e-6)
        assert margins_of(same, X) == pytest.approx(margins_of(alone, X), abs=2e-3)
        assert model.frontier.points[k].nonzero == same.nonzero
        for fold in range(5):
            held = folds == fold
            rest = thresher.boost((X[~held], y[~held], c[~held]), loss, l1=l1, **tight)
            rows = thresher.Chunk.from_csr(np.zeros(held.sum() + 1, int), [], [], y[held], c[held])
            losses[k, held] = rest.head.losses(margins_of(rest, X[held]), rows)
    means = losses.sum(axis=1) / c.sum()
    assert [point.holdout["loss"] for point in model.frontier.points] == pytest.approx(means, rel=1e-3)
    best, last = int(means.argmin()), model.frontier.points[2]
    assert model is model.frontier.models[best]
    gaps = losses[2] - losses[best] - c * (means[2] - means[best])
    learned = np.count_nonzero(c)
    assert last.holdout["examples"] == learned < 90
    error = np.sqrt(np.square(gaps).sum() * learned / (learned - 1)) / c.sum()
    assert last.paired_error == pytest.approx(error, rel=2e-2)


def test_the_range_begins_where_no_feature_is_left() -> None:
    X, y, _ = data_of("squared")
    model = thresher.boost((X, y), "squared", l1="auto:8", folds=3)
    sizes = [point.nonzero for point in model.frontier.points]
    penalties = [point.penalty for point in model.frontier.points]
    assert sizes[-1] == 0
    assert thresher.boost((X, y), "squared", l1=0.99 * penalties[-1]).nonzero == 1
    assert sizes[0] == 12
    assert penalties[-1] == pytest.approx(1000 * penalties[0])
    assert "held-out loss" in repr(model.frontier)
    assert len(model.frontier.points) == 8


def test_no_row_has_an_importance() -> None:
    X, y, c = data_of("logistic", 12)
    with pytest.raises(DataError, match=r"all 12 rows have importance 0, .*: check the importances"):
        thresher.boost((X, y, 0 * c), "logistic", l1="auto:8")


def test_fewer_rows_than_folds() -> None:
    X, y, _ = data_of("logistic", 6)
    with pytest.raises(DataError, match="folds=10 needs at least as many rows; rows read: 6"):
        thresher.boost((X, y), "logistic", l1="auto:8")
