"""Losses with kinks in memory, compared with linear programs and with bounds by duality."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import thresher
from tests.streams import Vector
from thresher.batch.columns import columns_of
from thresher.batch.rounds import BoostPlan, loss_of
from thresher.batch.solving import Smoothed
from thresher.data import MemorySource


def data_of(nasty: bool) -> tuple[Vector, Vector, Vector]:
    """Rows, labels with a heavy tail, importances; or columns and labels of all scales, constant, twice."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 8))
    y, c = X[:, 0] - 0.7 * X[:, 5] + rng.standard_t(2, 90), np.ones(90)
    if nasty:
        X = X * [1, 1, 1e-3, 1e3, 1, 1, 1, 1] + [0, 1e3, 0, 0, 0, 0, 0, 0]
        X[:, 4], X[:, 6] = 7.0, X[:, 5]
        X[rng.random(90) < 0.8, 7] = 0.0
        c, y = rng.choice([0.0, 0.5, 1.0, 3.0], 90), 100 * y + 1e4
        y[:30] = y[0]
    return X.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64), c


def program(X: Vector, y: Vector, c: Vector, below: float, above: float, l1: float, bare: bool) -> float:
    """The least objective by HiGHS: weights, intercept and errors are differences of two numbers >= 0."""
    (n, d), one = X.shape, np.ones((len(X), 1)) * (not bare)
    costs = np.concatenate([np.full(2 * d, l1), [0.0, 0.0], c * below, c * above])
    rows = np.hstack([X, -X, one, -one, np.eye(n), -np.eye(n)])
    return float(linprog(costs, A_eq=rows, b_eq=y, method="highs").fun)


@pytest.mark.parametrize(("nasty", "l1"), [(False, 0.0), (False, 4.0), (True, 4.0)])
@pytest.mark.parametrize(
    ("loss", "below", "above"),
    [("quantile:tau=0.5", 0.5, 0.5), ("quantile:tau=0.9", 0.9, 0.1), ("absolute:scale=2", 2, 2)],
)
def test_the_minimum_is_that_of_a_linear_program(
    nasty: bool, loss: str, below: float, above: float, l1: float
) -> None:
    X, y, c = data_of(nasty)
    bare = loss.startswith("absolute")
    model = thresher.boost((X, y, c), loss, l1=l1, intercept=not bare, tolerance=1e-7)
    w = np.zeros(8)
    w[model.keys.astype(int)] = model.weights
    error = X @ w + model.intercept - y
    value = float(c @ np.maximum(-below * error, above * error) + l1 * np.abs(w).sum())
    best = program(X, y, c, below, above, l1, bare)
    assert model.solution.converged
    assert model.solution.rounds < 100
    assert model.solution.objective == pytest.approx(value, rel=1e-9)
    assert value <= best * (1 + 2e-6)
    assert 0 < len(model.keys) < 8 or not l1


@pytest.mark.parametrize("nasty", [False, True])
def test_with_l2_the_dual_says_how_good_it_is(nasty: bool) -> None:
    """For slopes u of sum 0, -u.y - sum_j (|x_j.u| - l1)_+^2 / (2 l2) is below the minimum."""
    X, y, c = data_of(nasty)
    columns = columns_of(MemorySource(thresher.Chunk.from_csr(*csr(X), y, c)), True)
    solver = Smoothed(columns, loss_of("quantile:tau=0.7"), BoostPlan(l1=1.0, l2=0.5, tolerance=1e-8))
    last = solver.run()
    c, y, X, u = columns.weights, columns.labels, X[c > 0], solver.slopes
    assert last.certificate <= 1e-8
    assert (u >= -0.7 * c - 1e-12).all()
    assert (u <= 0.3 * c + 1e-12).all()
    level = u.sum()
    assert abs(level) <= 1e-6 * c.sum()
    pulls = np.maximum(np.abs(X.T @ u) - 1.0, 0.0)
    dual = -u @ y + level * solver.w[-1] - float(np.square(pulls).sum()) / (2 * 0.5)
    assert dual == pytest.approx(last.objective, rel=1e-5)
    assert dual <= last.objective * (1 + 1e-7)


def csr(X: Vector) -> tuple[Any, Any, Any]:
    n, d = X.shape
    return np.arange(n + 1) * d, np.tile(np.arange(d), n), X.ravel()


def test_a_quantile_of_nothing_but_labels() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    for tau, found in ((0.5, 3.0), (0.7, 4.0)):
        model = thresher.boost((np.ones((5, 1)), y), f"quantile:tau={tau}", tolerance=1e-8)
        assert model.intercept == pytest.approx(found, abs=1e-6)
    model = thresher.boost((np.ones((3, 1)), np.full(3, 7.0)), "absolute", tolerance=1e-8)
    assert model.intercept == pytest.approx(7.0, abs=1e-6)
    assert model.solution.converged


def test_penalties_in_standard_deviations_hold_for_quantiles() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 300))
    y = X[:, :3] @ [2.0, -2.0, 2.0] + rng.standard_t(2, 200)
    model = thresher.boost((X, y), "quantile:tau=0.5", l1="2.5sd")
    assert model.solution.converged
    assert {0, 1, 2} <= set(model.keys.tolist())
    assert len(model.keys) < 12
