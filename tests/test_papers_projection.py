"""What the papers promise of projections, exponentiated gradients and portfolios."""

import doctest
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from tests import projections
from tests.oracle_base import Vector
from thresher.data.chunk import Chunk
from thresher.learning.model.model import Model

VECTORS = st.lists(st.floats(-5, 5), min_size=1, max_size=12).map(np.array)
FORMS = [projections.threshold_by_sorting, projections.threshold_by_pivots]


@pytest.mark.parametrize("form", FORMS, ids=["sorting", "pivots"])
@given(VECTORS, st.floats(0.01, 10))
def test_the_threshold_makes_the_sum(form: object, v: Vector, total: float) -> None:
    theta = form(v, total)  # type: ignore[operator]
    assert np.maximum(v - theta, 0).sum() == pytest.approx(total, abs=1e-9)


@given(VECTORS, st.integers(0, 2**32 - 1))
def test_ties_and_order_do_not_matter(v: Vector, seed: int) -> None:
    tied = np.round(v)
    shuffled = np.random.default_rng(seed).permutation(tied)
    one, two = (projections.threshold_by_pivots(x, 1.0) for x in (tied, shuffled))
    assert one == pytest.approx(two, abs=1e-12)
    assert one == pytest.approx(projections.threshold_by_sorting(tied, 1.0), abs=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_projections_solve_their_quadratic_programs(seed: int) -> None:
    """Argmin ½‖w − v‖² by a general solver: w = p − q with p, q ≥ 0 and Σ(p + q) ≤ radius for the ball."""
    rng = np.random.default_rng(seed)
    v, n = rng.normal(size=6) * 2, 6
    simplex = minimize(
        lambda w: 0.5 * ((w - v) ** 2).sum(),
        np.full(n, 1 / n),
        jac=lambda w: w - v,
        bounds=[(0, None)] * n,
        constraints=LinearConstraint(np.ones((1, n)), 1.0, 1.0),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    assert np.allclose(projections.project_simplex(v), simplex, atol=1e-5)
    both = np.hstack([np.eye(n), -np.eye(n)])
    ball = minimize(
        lambda z: 0.5 * ((both @ z - v) ** 2).sum(),
        np.zeros(2 * n),
        jac=lambda z: both.T @ (both @ z - v),
        bounds=[(0, None)] * (2 * n),
        constraints=LinearConstraint(np.ones((1, 2 * n)), 0.0, 1.5),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    assert np.allclose(projections.project_l1_ball(v, 1.5), both @ ball, atol=1e-5)


def test_inside_the_ball_nothing_moves() -> None:
    v = np.array([0.25, -0.5])
    assert (projections.project_l1_ball(v, 1.0) == v).all()


# Rules


def dense(X: Vector, y: Vector) -> Chunk:
    n, d = X.shape
    return Chunk.from_csr(np.arange(n + 1) * d, np.tile(np.arange(d), n), X.ravel(), y)


@pytest.mark.usefixtures("plainly")
def test_the_l1_ball_holds_the_weights_and_finds_the_truth() -> None:
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(800, 32)), np.zeros(32)
    truth[[3, 17, 31]] = 1.0, -1.0, 0.5
    model = Model("l1-ball:radius=2.5", "squared", rate="inverse-sqrt:0.1", intercept=False)
    model.learn(dense(X, X @ truth + 0.1 * rng.normal(size=800)))
    keys, weights = model.weights()
    assert np.abs(weights).sum() <= 2.5 + 1e-9
    assert set(keys[np.argsort(-np.abs(weights))[:3]].tolist()) == {3, 17, 31}
    found = np.zeros(32)
    found[keys.astype(int)] = weights
    assert np.abs(found - truth).max() < 0.1


DAYS = [250, 1000, 4000]


def prices(days: int, seed: int) -> Vector:
    """Relatives of five assets: Cover's pair (one stands still, one doubles and halves), three that drift."""
    rng = np.random.default_rng(seed)
    volatile = np.where(np.arange(days) % 2 == 0, 2.0, 0.5)
    drifting = np.exp(rng.normal([0.0, 0.0005, -0.001], 0.02, (days, 3)))
    return np.column_stack([np.ones(days), volatile, drifting])


@cache
def market(days: int) -> tuple[Chunk, float]:
    """Prices, and the log wealth of the best constant rebalanced portfolio at the stored prices."""
    X = prices(days, seed=1)
    return dense(X, np.ones(days)), best_constant_mixture(X.astype(np.float32).astype(np.float64))


def best_constant_mixture(X: Vector) -> float:
    """Log wealth of the best constant rebalanced portfolio."""
    w = np.full(X.shape[1], 1 / X.shape[1])
    while True:
        slope = (X / (X @ w)[:, np.newaxis]).mean(axis=0)
        if slope.max() < 1 + 1e-7:  # none is better by more than the logarithm of that a day
            return float(np.log(X @ w).sum())
        w *= slope**9  # the step of Cover (1984) is slope itself
        w /= w.sum()


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(
    ("rule", "rate"),
    [
        ("simplex:features=5", "inverse-sqrt:0.5"),
        ("eg:norm=1,features=5,signed=false", "inverse-sqrt:1"),
    ],
)
def test_portfolios_keep_up_with_the_best_constant_mixture(rule: str, rate: str) -> None:
    """Regret against the best constant rebalanced portfolio grows no faster than √T, and wealth does grow."""
    regrets = []
    for days in DAYS:
        chunk, best = market(days)
        model = Model(rule, "wealth", rate=rate, intercept=False)
        model.learn(chunk)
        regrets.append(model.tally.loss + best)
        assert model.tally.loss < 0, "wealth has not grown"
    assert all(regret >= -1e-6 for regret in regrets)
    growth = np.polyfit(np.log(DAYS), np.log(np.maximum(regrets, 1e-9)), 1)[0]
    assert growth <= 0.6
    assert regrets[-1] / DAYS[-1] < 0.01


@pytest.mark.usefixtures("plainly")
def test_the_whole_gradient_makes_exponentiated_gradient_a_batch_method() -> None:
    """With all rows in one step, EG± comes ever closer to the best weights in its ball."""
    rng = np.random.default_rng(2)
    X, truth = rng.choice([-1.0, 1.0], (30, 12)), np.zeros(12)
    truth[[5, 9]] = 0.6, -0.4
    chunk = dense(X, X @ truth)
    losses = []
    for steps in (1, 15, 100):
        model = Model("eg:norm=1.2,features=12", "squared", rate="constant:0.02", batch=30, intercept=False)
        for _ in range(steps):
            model.learn(chunk)
        losses.append(float(((model.predict(chunk) - chunk.labels) ** 2).mean()))
    assert losses[0] > losses[1] > losses[2]
    assert losses[2] < 1e-3


@pytest.mark.usefixtures("plainly")
def test_exponentiated_gradient_needs_few_examples_where_few_of_many_features_matter() -> None:
    """Loss grows with the logarithm of the features, gradient descent's with their number."""
    lost = {}
    for d in (10, 300):
        rng = np.random.default_rng(3)
        X, truth = rng.choice([-1.0, 1.0], (100, d)), np.zeros(d)
        truth[:2] = 0.5, -0.5
        chunk = dense(X, X @ truth)
        for rule, rate in ((f"eg:norm=1,features={d}", "constant:0.05"), ("sgd", f"constant:{0.2 / d}")):
            model = Model(rule, "squared", rate=rate, intercept=False)
            model.learn(chunk)
            lost[rule.partition(":")[0], d] = model.tally.loss
    assert lost["eg", 300] < 4 * lost["eg", 10]
    assert lost["sgd", 300] > 4 * lost["sgd", 10]


def test_the_examples_in_docstrings_hold() -> None:
    done = doctest.testmod(projections)
    assert done.attempted > 1
    assert done.failed == 0
