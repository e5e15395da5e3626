"""The recipes of the figures: what they solve, and the theorems that they try, on numbers made by hand."""

from typing import Any

import numpy as np
import pytest

from experiments.papers import (
    daume_sparse,
    langford_regret,
    singer_ball,
)
from experiments.papers.sets import Parts
from experiments.papers.softmax_ball import Problem
from thresher.data import Chunk

pytestmark = pytest.mark.usefixtures("plainly")


def rows_of(X: Any, y: Any) -> Chunk:
    return Chunk.of_rows([(label, dict(enumerate(row))) for label, row in zip(y, np.array(X), strict=True)])


def some_rows(count: int, seed: int = 0, noise: float = 0.0) -> Chunk:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, 3))
    return rows_of(X, np.where(X[:, 0] + noise * draw.normal(size=count) > 0, 1.0, -1.0))


def dense(rows: Chunk) -> Any:
    return rows.values.reshape(len(rows), -1).astype(np.float64)


def _ball_problem(seed: int) -> Problem:
    draw = np.random.default_rng(seed)
    digits = np.arange(60, dtype=np.uint8) % 3
    images = np.zeros((60, singer_ball.PIXELS), np.uint8)
    for image, digit in zip(images, digits, strict=True):
        image[draw.choice(12, 3, replace=False)] = image[12 + digit * 4 + draw.integers(0, 4)] = 255
    return Problem(singer_ball.pixels(images, digits), 24, 3)


def test_the_optimum_in_the_ball_is_certified() -> None:
    problem = _ball_problem(0)
    optimum = problem.minimised(2.0, 500, 1e-4)
    assert 0 <= optimum.gap <= 1e-4
    assert np.abs(optimum.weights).sum(axis=0).max() <= 2.0 + 1e-9
    assert optimum.value == problem.value(optimum.weights) < np.log(3) - 0.3
    worse = problem.minimised(2.0, 2)
    assert worse.value - worse.gap <= optimum.value <= worse.value
    draw = np.random.default_rng(0)
    for _ in range(20):
        inside = draw.normal(size=(24, 3))
        inside *= 2.0 / np.abs(inside).sum(axis=0)
        assert problem.value(inside) >= optimum.value - optimum.gap


# daume-sparse


def test_the_first_line_is_equation_12_8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daume_sparse, "SGD", "--rule sgd --rate inverse-sqrt:1")
    monkeypatch.setattr(daume_sparse, "ALPHA", "--rule ftrl:alpha=1,beta=1,l1=1")
    draw = np.random.default_rng(0)
    X = draw.normal(size=(30, 8)) * (draw.random((30, 8)) < 0.4)
    X[0] = 1.0  # each feature occurs
    parts = Parts(rows_of(X, np.where(X[:, 0] > 0, 1.0, -1.0)), some_rows(20))
    penalties = (0.03, 0.2)
    found = daume_sparse.measured(parts, penalties, (1,))
    for k, l1 in enumerate(penalties):
        w, b = np.zeros(8), 0.0
        for t, (x, y) in enumerate(zip(X, parts.train.labels, strict=True), 1):
            slope, eta = -y / (1 + np.exp(y * (w @ x + b))), 1 / np.sqrt(t)
            moved = w - eta * (slope * x + l1 * np.sign(w))
            w, b = np.where(np.sign(w) * np.sign(moved) < 0, 0.0, moved), b - eta * slope
        wrong = [(w[:3] @ row + b > 0) != (row[0] > 0) for row in dense(parts.test)]
        assert found.lines["eq. 12.8, 1 pass"][k] == daume_sparse.Point(
            float(np.mean(wrong)), int(np.count_nonzero(w))
        )
    assert 0 < found.lines["eq. 12.8, 1 pass"][1].nonzero < 8


# bottou-svmsgd


# daume-hashing


# langford-regret


def loss_of(w: Any, x: Any, y: float) -> float:
    return float(np.logaddexp(0, -y * (w @ x)))


def truncated(w: Any, x: Any, y: float, eta: float, gravity: float) -> Any:
    """A step of truncated gradient with K = 1 and theta = infinity."""
    w = w + eta * y * x / (1 + np.exp(y * (w @ x)))
    return np.sign(w) * np.maximum(np.abs(w) - eta * gravity, 0)


@pytest.mark.parametrize("worst", [False, True])
def test_regret_and_bound_are_those_of_the_theorem(worst: bool) -> None:
    X, y = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [0.8, -0.6]]), np.array([1.0, 1.0, -1.0, 1.0])
    v, w, g, eta = np.array([0.5, -0.3]), np.zeros(2), langford_regret.GRAVITY, 0.5
    found = langford_regret.course(langford_regret.PLAIN, eta, worst, rows_of(X, y), v)
    total = 0.0
    for i in range(4):
        gaps = [loss_of(w, X[k], y[k]) - loss_of(v, X[k], y[k]) for k in range(4)]
        k = int(np.argmax(gaps)) if worst else i
        w = truncated(w, X[k], y[k], eta, g)
        total += gaps[k] + g * (np.abs(w).sum() - np.abs(v).sum())
        assert found.regret[i] == pytest.approx(total / (i + 1), abs=1e-7)
        assert found.bound[i] == pytest.approx(eta / 2 + v @ v / (2 * eta * (i + 1)))
