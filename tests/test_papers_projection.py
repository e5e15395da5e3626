"""What the papers promise of projections, portfolios, sparse penalties, and learning without tuning."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle_base import Vector
from tests.oracles_projection import threshold_of
from tests.projections import project_l1_ball
from tests.streams import Stream, model_of, read_weights, stream, stream_of
from thresher.data.chunk import Chunk
from thresher.engine.kernels import LAST_MARGIN
from thresher.learning.model.model import Model
from thresher.parts.bursts import annealed

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


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("p", ["2", "inf"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_frequency_aware_with_h_constant_is_fobos(loss: str, p: str) -> None:
    """Under a cap that every first gradient exceeds, h is the cap: a penalty of l1 cap, `fobos`'s."""
    data = stream(41, 300, 8, domain="real" if loss == "squared" else "binary")
    cap = 2.0**-40
    ours = model_of(f"ft-fobos:l1={0.1 / cap!r},p={p},cap={cap!r}", loss)
    theirs = model_of("fobos:l1=0.1", loss)
    for model in (ours, theirs):
        model.learn(data.chunk)
    assert np.abs(read_weights(ours, 8) - read_weights(theirs, 8)).max() <= 1e-12
    assert 0 < ours.nonzero < 8


@pytest.mark.usefixtures("plainly")
def test_what_a_cumulative_penalty_takes() -> None:
    """Section 3.2 of Tsuruoka, Tsujii and Ananiadou (2009), one step of slope -1 or 1 at a time.

    A weight that keeps its sign has received u in full. One with gradients of alternating sign oscillates
    less and less, and is zero once u exceeds a step, while a per-step penalty lets it oscillate for ever.
    """
    steady = [Chunk.of_rows([(100.0, {0: 1.0})])] * 101
    wavering = [Chunk.of_rows([(sign * 100.0, {0: 1.0})]) for sign in (1, -1) * 50] + steady[:1]

    def end(spec: str, chunks: list[Chunk]) -> float:
        model = model_of(spec, "absolute", rate="constant:0.1", intercept=False)
        for chunk in chunks:
            model.learn(chunk)
        return float(read_weights(model, 1)[0])

    assert end("cumulative:l1=0.2", steady) == pytest.approx(0.1 * 101 * (1 - 0.2))
    assert end("cumulative:l1=0.2", wavering) == 0.0
    assert end("fobos:l1=0.2", wavering) == pytest.approx(0.08)
    assert end("cumulative:l1=0", wavering) == pytest.approx(0.1)


@pytest.mark.usefixtures("plainly")
def test_informative_truncation_is_truncated_gradient_where_every_row_has_every_feature() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 1.0, (203, 5)) * rng.choice([-1.0, 1.0], (203, 5))
    data = stream_of(X, X != 0, np.where(X @ [1, -1, 0.2, 0, 0] > 0, 1.0, -1.0), np.ones(203))
    ours, theirs = (
        model_of("informative-truncation:gravity=0.2,every=7"),
        model_of("truncated-gradient:gravity=0.2,every=7"),
    )
    for model in (ours, theirs):
        model.learn(data.chunk)
    assert np.abs(read_weights(ours, 5) - read_weights(theirs, 5)).max() <= 1e-13
    assert 0 < ours.nonzero < 5


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(
    ("flag", "gravity", "other"),
    [("true", 0.2, "informative-truncation"), ("false", 0.03, "truncated-gradient")],
)
def test_stabilised_without_rejection_or_purging_is_truncation(flag: str, gravity: float, other: str) -> None:
    data = stream(44, 7 * 60, 12)
    ours = model_of(f"stabilised:rejection=0,purging=0,gravity={gravity},every=7,informative={flag}")
    theirs = model_of(f"{other}:gravity={gravity},every=7")
    for model in (ours, theirs):
        model.learn(data.chunk)
    assert np.abs(read_weights(ours, 12) - read_weights(theirs, 12)).max() <= 1e-13
    assert 0 < ours.nonzero < 12


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
    shares = [annealed(u, annealing) for u in np.linspace(0, 1, 11)]
    assert (shares[0], shares[-1]) == pytest.approx((0, 1), abs=1e-15)
    assert shares == sorted(shares)
    assert (shares[5] > 0.5, shares[5] == 0.5, shares[5] < 0.5) == (
        annealing < 0,
        annealing == 0,
        annealing > 0,
    )


FAR, TIMES, READS = 1000.0, [1_000, 10_000, 100_000], 100
L1 = 1e-4
FALLING = "power:0.5,1,0.5"


def tosses(signs: Vector) -> Chunk:
    n = len(signs)
    return Chunk.from_csr(np.arange(n + 1), np.zeros(n, np.uint64), np.ones(n), FAR * signs, np.ones(n))


def regrets(spec: str, rate: str, signs: Vector, strength: Vector) -> Vector:
    """Regret of loss + l1 strength_t |w| at TIMES; |w_t| is read at READS places between two of them."""
    model, chunk = model_of(spec, "absolute", rate=rate, intercept=False), tosses(signs)
    out, penalty = [], 0.0
    for before, time in pairwise([0, *TIMES]):
        for lo, hi in pairwise(np.linspace(before, time, READS + 1).astype(int)):
            model.learn(chunk, lo, hi)
            weights = model.weights()[1]
            penalty += L1 * strength[lo:hi].sum() * float(np.abs(weights).sum())
        pull = abs(signs[:time].sum()) - L1 * strength[:time].sum()
        out.append(model.tally.loss - FAR * time + penalty + max(pull, 0.0))
    return np.array(out)


def exponent(values: Vector) -> float:
    """Slope of log regret in log T."""
    return float(np.polyfit(np.log(TIMES), np.log(values), 1)[0])


@pytest.mark.parametrize("spec", [f"ft-fobos:l1={L1}", f"adagrad-fobos:eta=0.5,l1={L1}"])
def test_regret_grows_as_the_root_of_time(spec: str) -> None:
    t = np.arange(1, TIMES[-1] + 1)
    aware = 0.5 * np.sqrt(np.cumsum(1 / t))  # h of eta_s = 1 / (2 sqrt(s)) and |g| = 1
    strength = aware if spec.startswith("ft-") else np.ones(len(t))
    rng = np.random.default_rng(1)
    runs = [regrets(spec, FALLING, rng.choice([-1.0, 1.0], len(t)), strength) for _ in range(12)]
    mean = np.mean(runs, axis=0)
    assert (mean > 0.2 * np.sqrt(TIMES)).all()
    assert (mean < 4 * np.sqrt(TIMES)).all()
    assert 0.4 < exponent(mean) < 0.6


def test_regret_by_turns_tells_a_falling_rate_from_a_constant_one() -> None:
    """Slopes 1, -1, 1, -1, ...: each pair costs one step, so the regret is half the sum of the step sizes."""
    signs = np.where(np.arange(TIMES[-1]) % 2, 1.0, -1.0)
    falling, constant = (
        regrets("fobos:l1=0", rate, signs, np.zeros(len(signs))) for rate in (FALLING, "power:0.5,1,0")
    )
    assert exponent(falling) == pytest.approx(0.5, abs=0.01)
    assert exponent(constant) == pytest.approx(1.0, abs=0.01)


def unscaled(seed: int) -> Stream:
    """A noisy linear model over 8 features of standard deviations 1e-3 to 1e4."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(6000, 8))
    y = np.where(Z @ rng.normal(size=8) + 0.3 * rng.normal(size=6000) > 0, 1.0, -1.0)
    return stream_of(Z * 10.0 ** np.linspace(-3, 4, 8), np.ones(Z.shape, bool), y, np.ones(6000))


@pytest.mark.parametrize("seed", [0])
def test_no_scale_and_no_step_size_to_choose(seed: int) -> None:
    data = unscaled(seed)
    held_out = data.chunk.rows(4000, 6000)

    def error(spec: str) -> float:
        model = Model(spec, "logistic")
        model.learn(data.chunk, 0, 4000)
        return float(np.mean((model.predict(held_out) > 0) != (held_out.labels > 0)))

    assert error("sgd") > 0.3
    for spec in ("normalized", "normalized:adaptive=false", "coin"):
        assert error(spec) < 0.08


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
