"""What the papers promise of projections, exponentiated gradients and portfolios."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle_base import Vector
from tests.oracles_projection import threshold_of
from tests.projections import project_l1_ball
from thresher.data.chunk import Chunk
from thresher.learning.model.model import Model

VECTORS = st.lists(st.floats(-5, 5), min_size=1, max_size=12).map(np.array)


@given(VECTORS, st.floats(0.01, 10))
def test_a_projection_is_soft_and_on_the_sphere(v: Vector, radius: float) -> None:
    """The condition of optimality; vectors inside the ball stay."""
    w = project_l1_ball(v, radius)
    if np.abs(v).sum() <= radius:
        assert (w == v).all()
        return
    assert np.abs(w).sum() == pytest.approx(radius, abs=1e-9)
    moved = np.abs(v) - np.abs(w)
    assert (w * v >= 0).all()
    assert moved[w != 0] == pytest.approx(moved.max(), abs=1e-9)


@given(VECTORS, st.floats(0.01, 10))
def test_the_threshold_of_the_oracles_makes_the_sum(v: Vector, total: float) -> None:
    """By which soft(v, theta) is the projection: the condition of optimality."""
    assert np.maximum(v - threshold_of(v, total), 0).sum() == pytest.approx(total, abs=1e-9)


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
    [("simplex:features=5", "inverse-sqrt:0.5"), ("eg:norm=1,features=5,signed=false", "inverse-sqrt:1")],
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
