"""The solvers and the parallel step, compared with general minimisers and dense certificates."""

import math
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

import thresher
from tests.covering import covering
from tests.streams import Stream, Vector, stream
from thresher import Chunk, DataError, TroubleWarning
from thresher.batch import parallel
from thresher.batch.columns import in_columns
from thresher.batch.kernels import LEAP, best_step, violation
from thresher.batch.newton import Newton
from thresher.batch.parallel import Parallel
from thresher.batch.rounds import BoostPlan, Round, loss_of
from thresher.engine.compile.jit import kernel
from thresher.options.training import METHODS

LOSSES = ["exponential", "logistic", "logistic:positive=3"]
PENALTIES = [(2.0, 0.0), (0.0, 1.5), (2.0, 0.5)]
methods = pytest.mark.parametrize("method", METHODS)
losses = pytest.mark.parametrize("loss", LOSSES)
intercepts = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "bare"])


class Dense(NamedTuple):
    """The objective and its gradient by definition; the last entry of `w` is the intercept."""

    data: Stream
    loss: Any
    l1: float
    l2: float

    def loss_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        margins = self.data.X @ w[:-1] + w[-1]
        both = [self.loss.value_slope(m, y) for m, y in zip(margins, self.data.y, strict=True)]
        values, slopes = np.array(both).T * self.data.importance
        gradient = np.append(self.data.X.T @ slopes, slopes.sum())
        value = float(values.sum() + 0.5 * self.l2 * w[:-1] @ w[:-1])
        return value, gradient + self.l2 * np.append(w[:-1], 0)

    def objective(self, w: Vector) -> float:
        return self.loss_and_gradient(w)[0] + self.l1 * float(np.abs(w[:-1]).sum())

    def violation(self, w: Vector, intercept: bool) -> float:
        gradient = self.loss_and_gradient(w)[1]
        features, free = gradient[:-1], abs(gradient[-1]) if intercept else 0.0
        used = np.abs(features + self.l1 * np.sign(w[:-1]))
        unused = np.maximum(0, np.abs(features) - self.l1)
        return float(max(free, np.where(w[:-1] != 0, used, unused).max()))

    def minimiser(self, intercept: bool) -> Vector:
        """The minimiser by L-BFGS-B over w = u - v with u, v >= 0."""
        d = self.data.X.shape[1]

        def split(x: Vector) -> tuple[float, Vector]:
            w = np.append(x[:d] - x[d:-1], x[-1])
            value, gradient = self.loss_and_gradient(w)
            pull = gradient[:d]
            return value + self.l1 * x[:-1].sum(), np.concatenate(
                [pull + self.l1, self.l1 - pull, gradient[-1:]]
            )

        limits = [(0, None)] * (2 * d) + [(None, None) if intercept else (0, 0)]
        options = {"maxiter": 100_000, "maxfun": 1_000_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 50}
        x = minimize(
            split, np.zeros(2 * d + 1), jac=True, method="L-BFGS-B", bounds=limits, options=options
        ).x
        return np.append(x[:d] - x[d:-1], x[-1])


def data_of(seed: int = 1, **options: Any) -> Stream:
    return stream(seed, rows=150, features=10, **options)


@cache
def minimum_of(loss: str, l1: float, l2: float, intercept: bool) -> tuple[Stream, Dense, Vector]:
    """The data, the objective on them, and its minimiser."""
    data = data_of()
    dense = Dense(data, loss_of(loss), l1, l2)
    return data, dense, dense.minimiser(intercept)


def boosted(data: Stream, loss: str, **options: Any) -> tuple[Vector, Any]:
    """All weights, the intercept last, and the model."""
    model = thresher.boost(data.chunk, loss, **options)
    w = np.zeros(data.X.shape[1] + 1)
    w[model.keys.astype(int)] = model.weights
    w[-1] = model.intercept
    return w, model


def solver_of(data: Stream, loss: str, intercept: bool = True, **options: Any) -> Newton:
    return Newton(in_columns(data.chunk.counting(), intercept), loss_of(loss), BoostPlan(**options))


@pytest.mark.parametrize(
    ("method", "loss", "l1", "l2", "intercept"),
    [
        (*given[:2], *given[2], given[3])
        for seed in range(4)
        for given in covering(METHODS, LOSSES, PENALTIES, [True, False], seed=seed)
    ],
)
def test_it_agrees_with_a_minimiser(method: str, loss: str, l1: float, l2: float, intercept: bool) -> None:
    data, dense, best = minimum_of(loss, l1, l2, intercept)
    w, model = boosted(data, loss, method=method, l1=l1, l2=l2, intercept=intercept, tolerance=1e-10)
    assert model.solution.converged
    assert model.solution.objective == pytest.approx(dense.objective(w), rel=1e-12)
    assert dense.objective(w) <= dense.objective(best) * (1 + 1e-12)
    assert np.abs(w - best).max() <= 1e-6 * max(1.0, np.abs(best).max())
    assert len(model.keys) > 0
    assert len(model.keys) < data.X.shape[1] or not l1, "the penalty leaves nothing out: a weak test"


@pytest.mark.parametrize(
    ("loss", "intercept", "scale"),
    [*covering(LOSSES, [True, False], [0.01, 1.0, 30.0]), *covering(LOSSES, [True], [30.0])],
)
def test_the_certificate_is_honest_at_every_round(loss: str, intercept: bool, scale: float) -> None:
    data = data_of(2, scale=scale)
    dense = Dense(data, loss_of(loss), 2.0 * scale, 0.3)
    seen: list[float] = []

    def tell(row: Round) -> None:
        w = np.append(solver.w, np.zeros(1 - intercept))
        assert row.certificate * solver.unit == pytest.approx(
            dense.violation(w, intercept), rel=1e-6, abs=1e-9
        )
        assert row.objective == pytest.approx(dense.objective(w), rel=1e-12)
        assert row.nonzero == np.count_nonzero(w[:-1])
        seen.append(row.certificate)

    solver = solver_of(data, loss, intercept, l1=2.0 * scale, l2=0.3, tolerance=1e-6)
    last = solver.run(tell)
    assert seen[-1] == last.certificate <= 1e-6 < seen[0]


@losses
@intercepts
@pytest.mark.filterwarnings("ignore:no feature has a weight")
def test_the_unit_is_the_l1_that_leaves_no_feature(loss: str, intercept: bool) -> None:
    data = data_of(3)
    solver = solver_of(data, loss, intercept)
    solver.run()
    for share, used in ((1.001, False), (0.95, True)):
        model = boosted(data, loss, l1=share * solver.unit, intercept=intercept, tolerance=1e-8)[1]
        assert model.solution.converged
        assert (len(model.keys) > 0) == used


def parallel_of(data: Stream, loss: str, intercept: bool = True, **options: Any) -> Parallel:
    columns = in_columns(data.chunk.counting(), intercept)
    return Parallel(columns, loss_of(loss), BoostPlan(method="parallel", **options))


@losses
@pytest.mark.parametrize(("l1", "l2"), PENALTIES[::2])
@pytest.mark.parametrize("advance", [1.0, 0.5], ids=["proved widths", "narrowed widths"])
def test_no_parallel_step_makes_it_worse(
    loss: str, l1: float, l2: float, advance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "ADVANCE", advance)
    solver = parallel_of(data_of(5), loss, l1=l1, l2=l2)
    solver.measure(solver.all)
    before = solver.objective()
    solver.choose(solver.all)
    for _ in range(40):
        solver.move()
        after = solver.objective()
        assert after <= before * (1 + 1e-13)
        before = after
    assert (solver.ease == 1.0) == (advance == 1.0)


def binary(seed: int = 6, copies: int = 1) -> Stream:
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.choice([-1.0, 0.0, 1.0], (60, 1)), copies, axis=1)
    y = np.where(rng.random(60) < 0.4 + 0.2 * X[:, 0], 1.0, -1.0)
    c = rng.choice([0.5, 1.0, 2.0], 60)
    keys = range(copies)
    chunk = Chunk.of_rows([(t, dict(zip(keys, row, strict=True))) for t, row in zip(y, X, strict=True)], c)
    return Stream(chunk, X, y, c)


def adaboost(data: Stream) -> float:
    agreement = data.y * data.X[:, 0]
    return 0.5 * float(np.log(data.importance[agreement > 0].sum() / data.importance[agreement < 0].sum()))


@pytest.mark.parametrize("copies", [1, 3, 8])
def test_parallel_copies_share_one_step(copies: int) -> None:
    """Collins, Schapire and Singer: if rows have k coordinates, each moves by 1/k of its own step."""
    data = binary(copies=copies)
    solver = parallel_of(data, "exponential", intercept=False, l1=0.0)
    solver.choose(solver.all)
    solver.move()
    assert solver.w == pytest.approx(np.full(copies, adaboost(data) / copies), rel=1e-12)


SMOOTH = ["logistic", "exponential", "squared", "huber:delta=0.3", "poisson", "gamma", "tweedie"]


def nasty(loss: str) -> Stream:
    """Columns far from 0, of tiny and huge scales, constant, twice and sparse; importances, one of them 0."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 9)) * [1, 1, 1e-3, 1e3, 1, 1, 1, 1, 1] + [0, 1e3, 0, 0, 0, 0, 0, 0, 0]
    X[:, 4], X[:, 6] = 7.0, X[:, 5]
    X[rng.random(80) < 0.8, 7] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    p = X[:, 0] - 0.7 * X[:, 5] + 5e-4 * X[:, 3] + 300 * X[:, 2] + 0.5 * (X[:, 1] - 1e3)
    means = np.exp(np.minimum(p, 3))
    numbers = {"real": p + rng.standard_t(2, 80), "nonnegative": rng.poisson(means)}
    numbers |= {"positive": rng.gamma(2.0, means)}
    y = numbers.get(loss_of(loss).DOMAIN, np.sign(p + rng.normal(size=80)))
    c = rng.choice([0.0, 0.5, 1.0, 3.0], 80)
    chunk = Chunk.from_csr(np.arange(81) * 9, np.tile(np.arange(9), 80), X.ravel(), y, c)
    return Stream(chunk, X, chunk.labels.astype(np.float64), c)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(("l1", "l2"), [(3.0, 0.0), (1.0, 2.0)])
@intercepts
def test_newton_satisfies_the_conditions_on_nasty_columns(
    loss: str, l1: float, l2: float, intercept: bool
) -> None:
    data = nasty(loss)
    solver = solver_of(data, loss, intercept, l1=l1, l2=l2, tolerance=1e-8)
    last = solver.run()
    w = np.append(solver.w, np.zeros(1 - intercept))
    dense = Dense(data, loss_of(loss), l1, l2)
    assert last.number < 100
    assert dense.violation(w, intercept) <= 1.1e-8 * solver.unit
    assert last.objective == pytest.approx(dense.objective(w), rel=1e-10)
    assert np.count_nonzero(w[:-1]) > 1
    if intercept:
        assert w[4] == 0, "a constant column is the intercept's"


@pytest.mark.parametrize("loss", SMOOTH)
def test_newton_goes_on_with_loadings_and_offsets(loss: str) -> None:
    """Loadings psi are columns divided by psi; an offset is a column of known weight."""
    data, psi = nasty(loss), np.array([1.0, 2.0, 1e-3, 1e3, 1.0, 0.5, 1.0, 1.0, 3.0])
    columns = in_columns(data.chunk.counting(), True)
    moved, there = 0.3 * data.X[:, 0], data.importance > 0
    loaded = Newton(
        replace(columns, base=moved[there]), loss_of(loss), BoostPlan(l1=1.5, l2=0.2, tolerance=1e-9)
    )
    loaded.run()
    loaded.loadings = np.append(psi, 1.0)
    loaded.run()
    X = np.column_stack([data.X / psi, moved])

    class Shifted(Dense):
        def loss_and_gradient(self, w: Vector) -> tuple[float, Vector]:
            value, gradient = super().loss_and_gradient(np.concatenate([w[:-1], [1.0], w[-1:]]))
            return value, np.delete(gradient, -2)

    w = np.append(psi * loaded.w[:-1], loaded.w[-1])
    dense = Shifted(Stream(data.chunk, X, data.y, data.importance), loss_of(loss), 1.5, 0.0)
    _, gradient = dense.loss_and_gradient(w)
    gradient[:-1] += 0.2 * w[:-1]
    pulls = np.where(w != 0, np.abs(gradient + 1.5 * np.sign(w)), np.maximum(np.abs(gradient) - 1.5, 0))
    assert max(pulls[:-1].max(), abs(gradient[-1])) <= 1e-8 * loaded.unit


@pytest.mark.parametrize("loss", SMOOTH)
def test_penalties_in_standard_deviations_are_those_of_the_model_they_leave(loss: str) -> None:
    """And the model is the best with them: KKT, by definition."""
    data = nasty(loss)
    w, model = boosted(data, loss, l1="1.5sd", tolerance=1e-7)
    assert model.solution.converged
    margins = data.X @ w[:-1] + w[-1]
    slopes = [
        c * loss_of(loss).value_slope(m, y)[1]
        for m, y, c in zip(margins, data.y, data.importance, strict=True)
    ]
    c2 = np.square(data.importance)
    centred = data.X - np.average(data.X, axis=0, weights=c2)
    rows = np.count_nonzero(data.importance)
    noise = np.square(slopes).sum() / c2.sum() * rows / (rows - np.count_nonzero(w[:-1]) - 1)
    psi = np.sqrt(noise * (c2 @ np.square(centred)))
    gradient, varies = slopes @ centred, np.arange(9) != 4
    used, unused = varies & (w[:-1] != 0), varies & (w[:-1] == 0)
    assert gradient[used] == pytest.approx(-1.5 * (psi * np.sign(w[:-1]))[used], rel=0.02)
    assert (np.abs(gradient[unused]) <= 1.5 * psi[unused] * 1.02).all()
    assert used.any()
    assert unused.any()
    assert w[4] == 0
    assert abs(np.sum(slopes)) <= 1e-3 * np.abs(slopes).sum()


def test_penalties_in_standard_deviations_know_no_units() -> None:
    """Few rows, many columns: ten true ones; other scales of columns and labels give the same model."""
    rng = np.random.default_rng(5)
    X, true = rng.normal(size=(150, 1000)), np.zeros(1000)
    true[:10] = rng.choice([-1.0, 1.0], 10)
    y = X @ true + rng.normal(size=150)
    scales = np.exp(rng.normal(size=1000)) * 2.0 ** rng.integers(-3, 4, 1000)
    one, other = (
        thresher.boost((X * by + shift, (y * times).astype(np.float32)), "squared", l1="2sd", tolerance=1e-6)
        for by, times, shift in ((1.0, 1.0, 0.0), (scales, 1000.0, 3.0))
    )
    assert one.keys.tolist() == other.keys.tolist()
    assert other.weights * scales[other.keys.astype(int)] / 1000 == pytest.approx(
        one.weights, rel=2e-2, abs=1e-3
    )
    assert set(range(10)) <= set(one.keys.tolist())
    assert len(one.keys) < 100
    X = rng.normal(size=(1000, 1000))
    assert one.solution.rounds < 60, "the noise measured does not stand"
    left = X @ true - one.predict(X)
    assert left @ left < 0.35 * (X @ true) @ (X @ true)


@pytest.mark.parametrize("seed", [2, 3])
def test_columns_of_any_scale_give_the_same_model(seed: int) -> None:
    """Beside columns of 1e-30, the derivative of the intercept is mostly rounding."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 6)).astype(np.float32)
    y = np.sign(X[:, 0] - X[:, 1] + rng.normal(size=2000))
    one, other = (thresher.boost((X * np.float32(by), y), "logistic", l1=50 * by) for by in (1.0, 1e-30))
    assert other.solution.rounds < 20
    assert other.weights * 1e-30 == pytest.approx(one.weights, abs=1e-3)
    assert other.solution.objective == pytest.approx(one.solution.objective, rel=1e-7)


def test_what_labels_a_loss_takes() -> None:
    model = thresher.boost(
        Chunk.of_rows([(y, {0: x}) for x, y in ((0, 1), (1, 4), (2, 9))]), "poisson", l1=0.1
    )
    assert model.predict([{0: 1.0}], output="label")[0] == pytest.approx(4.0, rel=0.3)
    with pytest.raises(DataError, match="example 2: expected a label that is not negative, found -4"):
        thresher.boost(Chunk.of_rows([(1.0, {0: 1.0}), (-4.0, {0: 1.0})]), "poisson")
    with pytest.warns(TroubleWarning, match="all labels are 0"):
        thresher.boost(Chunk.of_rows([(0.0, {0: 1.0}), (0.0, {0: 2.0})]), "poisson")


def test_threads_change_nothing() -> None:
    data, loss = stream(7, rows=700, features=300), "logistic"
    models = [thresher.boost(data.chunk, loss, threads=n, l1=0.5) for n in (1, 2, 5)]
    for model in models[1:]:
        assert model.weights.tobytes() == models[0].weights.tobytes()
        assert model.keys.tobytes() == models[0].keys.tobytes()
        assert model.intercept == models[0].intercept
        assert model.solution.sweeps == models[0].solution.sweeps
    assert len(models[0].keys) > 10


def test_cutting_the_data_changes_nothing() -> None:
    data = data_of(9)
    whole = boosted(data, "exponential")[1]
    cut = thresher.boost([data.chunk.rows(0, 1), data.chunk.rows(1, 77), data.chunk.rows(77, 150)])
    assert cut.weights.tobytes() == whole.weights.tobytes()


def test_an_importance_is_so_many_copies() -> None:
    data = data_of(10, weighted=False)
    twice = thresher.boost([data.chunk, data.chunk], l1=1.0, tolerance=1e-9)
    weighted = thresher.boost(
        Chunk.from_csr(
            data.chunk.indptr, data.chunk.keys, data.chunk.values, data.y, np.full(len(data.y), 2.0)
        ),
        l1=1.0,
        tolerance=1e-9,
    )
    assert weighted.keys.tolist() == twice.keys.tolist()
    assert weighted.weights == pytest.approx(twice.weights, abs=1e-7)


def test_rounds_end_it() -> None:
    with pytest.warns(TroubleWarning, match=r"stopped after 1 round; .* more rounds \(currently 1\)"):
        model = boosted(data_of(11), "logistic", method="parallel", rounds=1, tolerance=1e-12)[1]
    assert model.solution.rounds == 1
    assert not model.solution.converged
    assert [one.name for one in model.warnings] == ["no-certificate"]
    assert not boosted(data_of(11), "logistic", method="parallel", rounds=1000, tolerance=1e-6)[1].warnings


ENDLESS = pytest.mark.filterwarnings("ignore:the objective has no minimum")


def rows(*labels: float, feature: float = 1.0) -> Chunk:
    return Chunk.of_rows([(y, {3: feature * y}) for y in labels])


@ENDLESS
@methods
@losses
def test_one_class(method: str, loss: str) -> None:
    model = thresher.boost(Chunk.of_rows([(1.0, {0: 1.0}), (1.0, {1: 0.5})]), loss, method=method)
    assert model.solution.endless == "all examples are of one class"
    assert model.intercept > 5
    assert np.isfinite(model.intercept)
    assert len(model.keys) == 0
    bare = thresher.boost(rows(1, 1), loss, method=method, l1=0.5, intercept=False)
    assert bare.solution.endless is None
    assert bare.solution.converged
    assert thresher.boost(rows(1, 1), loss, l1=0.0, intercept=False).solution.endless is not None


@ENDLESS
@methods
@losses
def test_separable_data_without_penalties(method: str, loss: str) -> None:
    model = thresher.boost(rows(1, -1, 1), loss, method=method, l1=0.0)
    assert model.solution.endless == "the classes are separable and nothing is penalised"
    assert np.isfinite(model.weights).all()
    assert model.weights[0] > 3
    assert thresher.boost(rows(1, -1, 1), loss, method=method, l1=0.1).solution.endless is None


@ENDLESS
def test_a_feature_that_speaks_for_one_class_only() -> None:
    chunk = Chunk.of_rows([(1.0, {0: 1.0, 1: 1.0}), (1.0, {0: 1.0}), (-1.0, {0: 1.0})])
    assert thresher.boost(chunk, l1=0.0).solution.endless == (
        "1 features support one class only and nothing is penalised"
    )
    assert thresher.boost(chunk, l1=0.0, l2=0.1).solution.endless is None


@ENDLESS
@methods
@intercepts
@pytest.mark.parametrize(
    "chunk",
    [
        Chunk.of_rows([(1.0, {}), (-1.0, {}), (1.0, {})]),
        Chunk.of_rows([(1.0, {4: 0.0}), (-1.0, {5: 0.0}), (1.0, {})]),
        Chunk.of_rows([(1.0, {4: 1.0}), (-1.0, {4: 1.0})]),
    ],
    ids=["no features", "zeros", "no signal"],
)
def test_nothing_to_learn(method: str, intercept: bool, chunk: Chunk) -> None:
    model = thresher.boost(chunk, method=method, intercept=intercept)
    assert model.solution.converged
    assert len(model.keys) == 0
    if intercept and len(chunk) == 3:
        assert model.intercept == pytest.approx(0.5 * np.log(2), abs=1e-6)


@pytest.mark.parametrize(
    ("method", "loss"), [*((one, "exponential") for one in METHODS), ("newton", "squared")]
)
def test_no_row_has_an_importance(method: str, loss: str) -> None:
    chunk = Chunk.of_rows([(1.0, {4: 1.0}), (-1.0, {4: 2.0})], [0.0, 0.0])
    with pytest.warns(TroubleWarning) as told:
        model = thresher.boost(chunk, loss, method=method)
    said = "all 2 rows have importance 0, so nothing was learned: check the importances [no-importance]"
    assert [str(one.message) for one in told] == [said]
    assert (len(model.keys), model.intercept) == (0, 0.0)
    assert (model.solution.examples, model.solution.endless) == (0, None)


@methods
def test_extreme_values_stay_finite(method: str) -> None:
    chunk = Chunk.of_rows(
        [(1.0, {0: 3e38, 1: 1e-45}), (-1.0, {0: -1e-38, 2: 1e20}), (1.0, {1: 1e-30, 2: 1.0})]
    )
    model = thresher.boost(chunk, method=method, l1=1e-3, rounds=20)
    assert np.isfinite(model.weights).all()
    assert np.isfinite(model.solution.objective)


@methods
def test_rows_of_importance_0_are_not_there(method: Any) -> None:
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(300, 5)), chance.choice([-1, 1], 300)
    weights = np.ones(300)
    weights[np.arange(300) % 3 == 1] = 0
    there = weights > 0
    found = [
        thresher.boost((X, y, weights), l1=0.5, method=method),
        thresher.boost((X[there], y[there]), l1=0.5, method=method),
    ]
    one, other = ((model.keys, model.weights, model.bias) for model in found)
    assert all(map(np.array_equal, one, other))


MASS = st.one_of(st.just(0.0), st.floats(1e-6, 1e3))
WEIGHT = st.one_of(st.just(0.0), st.floats(-5, 5))
PENALTY = st.one_of(st.just(0.0), st.floats(1e-4, 1e3))


@kernel
def compiled(up: Any, down: Any, w: Any, a: Any, reach: Any, l1: Any, l2: Any) -> Any:
    return best_step(up, down, w, a, reach, l1, l2)


def step(up: float, down: float, w: float, a: float, l1: float, l2: float) -> float:
    return float(compiled(up, down, w, a, LEAP / a if a else math.inf, l1, l2))


def bound(d: float, up: float, down: float, w: float, a: float, l1: float, l2: float) -> float:
    loss = (up * math.expm1(-a * d) + down * math.expm1(a * d)) / a
    return loss + l1 * abs(w + d) + 0.5 * l2 * (w + d) ** 2


@given(MASS, MASS, WEIGHT, st.floats(0.01, 30), PENALTY, PENALTY)
def test_no_near_move_is_better(up: float, down: float, w: float, a: float, l1: float, l2: float) -> None:
    case = up, down, w, a, l1, l2
    d, reach = step(*case), LEAP / a
    assert abs(d) <= reach
    numeric = minimize_scalar(
        bound, bounds=(-reach, reach), args=case, method="bounded", options={"xatol": 1e-12}
    ).x
    near = [d + s * h * reach for s in (-1, 1) for h in (1e-3, 1e-6) if abs(d + s * h * reach) <= reach]
    crossing = [-w] if abs(w) <= reach else []
    least = bound(d, *case)
    for other in (0.0, numeric, *near, *crossing):
        value = bound(other, *case)
        assert least <= value + 1e-11 * (abs(value) + up / a + down / a + l1 * abs(w) + l2 * w * w)


# (up, down, w, l1) and the weight afterwards for a = 1, computed by hand
CASES: dict[str, tuple[Any, float]] = {
    "stays at zero": ((2.0, 1.0, 0.0, 1.0), 0.0),
    "leaves zero upwards: e^2 + e - 6 = 0": ((6.0, 1.0, 0.0, 1.0), math.log(2.0)),
    "leaves zero downwards: 6 e^2 - e - 1 = 0": ((1.0, 6.0, 0.0, 1.0), -math.log(2.0)),
    "is set to zero from above": ((1.0, math.exp(2.0), 1.0, 3.0), 0.0),
    "is set to zero from below": ((math.exp(2.0), 1.0, -1.0, 3.0), 0.0),
    "crosses zero downwards: 24 e^2 - e - 0.125 = 0": (
        (0.25, 12.0, math.log(2.0), 1.0),
        math.log(2.0) + math.log((1 + math.sqrt(13)) / 24),
    ),
    "no mass at all: the penalty alone decides": ((0.0, 0.0, 1.5, 0.1), 0.0),
    "all mass on one side: e = up / l1": ((6.0, 0.0, 0.0, 2.0), math.log(3.0)),
}


@pytest.mark.parametrize(("case", "after"), CASES.values(), ids=CASES)
def test_the_cases_of_the_closed_form(case: tuple[float, ...], after: float) -> None:
    up, down, w, l1 = case
    found = w + step(up, down, w, 1.0, l1, 0.0)
    assert found == pytest.approx(after, abs=1e-14)
    assert (found == 0.0) == (after == 0.0), "a weight of zero is exactly zero"


def test_where_the_best_lies_at_infinity_the_step_is_the_longest() -> None:
    assert step(1.0, 0.0, 0.0, 2.0, 0.0, 0.0) == LEAP / 2
    assert step(0.0, 1.0, 0.0, 2.0, 0.0, 0.0) == -LEAP / 2
    assert step(0.0, 0.0, 3.0, 2.0, 0.0, 0.0) == 0.0
    assert step(1.0, 2.0, 3.0, 0.0, 0.0, 0.0) == 0.0  # a column of zeros


@given(st.floats(-10, 10), WEIGHT, PENALTY, PENALTY)
def test_violation_is_the_distance_from_the_subgradients(fall: float, w: float, l1: float, l2: float) -> None:
    slopes = [np.sign(w)] if w else np.linspace(-1, 1, 20_001)
    distance = min(abs(-fall + l1 * s + l2 * w) for s in slopes)
    assert violation(fall, w, l1, l2) == pytest.approx(distance, abs=1e-4 * l1 + 1e-12)
