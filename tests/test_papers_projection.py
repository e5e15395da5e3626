"""What the papers promise of projections, portfolios, sparse penalties, and learning without tuning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle_base import Vector
from tests.projections import project_l1_ball
from tests.streams import Stream, model_of, read_weights, stream, stream_of
from thresher.data.chunk import Chunk
from thresher.engine.kernels import LAST_MARGIN
from thresher.learning.model.model import Model
from thresher.parts.bursts import anneal

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


@pytest.mark.parametrize("informative", ["true", "false"])
@pytest.mark.parametrize("rejection", [0.07, 0.9])
def test_a_burst_rejects_the_proportion_asked(rejection: float, informative: str) -> None:
    """Every feature is in every row, so all can be truncated."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0.1, 1.0, (400, 40)) * rng.choice([-1.0, 1.0], (400, 40))
    data = stream_of(X, X != 0, np.where(X @ rng.normal(size=40) > 0, 1.0, -1.0), np.ones(400))
    model = model_of(
        f"stabilised:rejection={rejection},purging=0,every=20,informative={informative}", dtype="float32"
    )
    for lo in range(0, 400, 20):
        model.learn(data.chunk, lo, lo + 19)
        assert model.nonzero == 40
        model.learn(data.chunk, lo + 19, lo + 20)
        assert 40 - model.nonzero == round(rejection * 40)


SIGNALS, NOISE = 10, 190


def noisy(seed: int) -> Stream:
    """A linear model over 10 of 200 sparse features."""
    rng, shape = np.random.default_rng(seed), (4000, SIGNALS + NOISE)
    X = np.where(rng.random(shape) < 0.2, rng.uniform(0.5, 1, shape) * rng.choice([-1, 1], shape), 0.0)
    truth = np.repeat([2.0, 0.0], [SIGNALS, NOISE]) * np.where(np.arange(shape[1]) % 2, 1, -1)
    y = np.where(X @ truth + rng.normal(size=shape[0]) > 0, 1.0, -1.0)
    return stream_of(X, X != 0, y, np.ones(shape[0]))


def selected(spec: str, data: Stream) -> tuple[int, int]:
    """Signals and noise features that have a weight at the end."""
    model = model_of(spec, rate="power:0.5,1,0.5", dtype="float32")
    model.learn(data.chunk)
    w = read_weights(model, SIGNALS + NOISE)
    return int(np.count_nonzero(w[:SIGNALS])), int(np.count_nonzero(w[SIGNALS:]))


@pytest.mark.parametrize("seed", [0])
def test_stability_selection_purges_noise(seed: int) -> None:
    """At the same rejection rate, noise that survives one burst does not survive the next: it is purged."""
    data = noisy(seed)
    signals, noise = selected("stabilised:rejection=0.5,purging=0,every=100", data)
    assert (signals, noise) == (SIGNALS, 90)
    signals, noise = selected("stabilised:rejection=0.5,purging=0.6,every=100", data)
    assert signals == SIGNALS
    assert noise <= 10


@pytest.mark.parametrize("annealing", [-9.0, 0.0, 5.0])
def test_annealing_rejects_less_as_less_is_left(annealing: float) -> None:
    """The rejection rate after each stage follows from the share that stayed, from most to none."""
    data = noisy(3)
    model = model_of(f"stabilised:rejection=0.8,purging=0.6,every=50,annealing={annealing}", dtype="float32")
    rates, left = [0.8], [SIGNALS + NOISE]
    for lo in range(0, 4000, 250):
        model.learn(data.chunk, lo, lo + 250)
        rates.append(float(model.state()["clock"][model.rule.CLOCK.index("rejection")]))
        left.append(int(np.count_nonzero(model.state()["S"][:, model.rule.SLOTS.index("kept")])))
    assert rates == sorted(rates, reverse=True)
    assert left == sorted(left, reverse=True)
    assert left[-1] < 40
    assert 0 < rates[-1] < 0.4
    shares = [anneal(u, annealing) for u in np.linspace(0, 1, 11)]
    assert (shares[0], shares[-1]) == pytest.approx((0, 1), abs=1e-15)
    assert shares == sorted(shares)
    assert (shares[5] > 0.5, shares[5] == 0.5, shares[5] < 0.5) == (
        annealing < 0,
        annealing == 0,
        annealing > 0,
    )


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("spec", ["normalized", "normalized:adaptive=false", "coin"])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_multiplying_a_feature_changes_no_prediction(spec: str, loss: str) -> None:
    """Ross, Mineiro and Langford, section 3: the predictions are those of the same features at any scale."""
    data = stream(43, 300, 8)
    powers = 2.0 ** np.array([0, 30, -30, 5, -7, 12, 1, -60])
    other = stream_of(data.X * powers, data.X != 0, data.y, data.importance)
    ours, theirs = (model_of(spec, loss) for _ in range(2))
    for i in range(300):
        ours.learn(data.chunk, i, i + 1)
        theirs.learn(other.chunk, i, i + 1)
        margins = [model.state()["tally"][LAST_MARGIN] for model in (ours, theirs)]
        assert margins[1] == pytest.approx(margins[0], rel=1e-9, abs=1e-12)
    assert np.allclose(read_weights(theirs, 8) * powers, read_weights(ours, 8), rtol=1e-9, atol=0)
    assert np.abs(read_weights(ours, 8)).max() > 0.1
