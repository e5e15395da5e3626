"""The solver and the step of one coordinate, compared with general minimisers and dense certificates."""

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

import thresher
from tests.streams import Stream, Vector, stream
from thresher import Chunk, TroubleWarning
from thresher.batch import shards, solving
from thresher.batch.kernels import LEAP, best_step, violation
from thresher.batch.rounds import ORDERS, BoostPlan, Round, loss_of
from thresher.batch.shards import Here, columns_of, stripes
from thresher.batch.solving import Parallel, Solver
from thresher.data import MemorySource

LOSSES = ["exponential", "logistic", "logistic:positive=3"]
PENALTIES = [(2.0, 0.0), (0.0, 1.5), (2.0, 0.5)]
orders = pytest.mark.parametrize("order", ORDERS)
losses = pytest.mark.parametrize("loss", LOSSES)
penalties = pytest.mark.parametrize(("l1", "l2"), PENALTIES, ids=["l1", "l2", "both"])
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


def solver_of(data: Stream, loss: str, intercept: bool = True, **options: Any) -> Solver:
    return Solver(columns_of(MemorySource(data.chunk), intercept), loss_of(loss), BoostPlan(**options))


@orders
@losses
@penalties
@intercepts
def test_it_agrees_with_a_minimiser(order: str, loss: str, l1: float, l2: float, intercept: bool) -> None:
    data, dense, best = minimum_of(loss, l1, l2, intercept)
    w, model = boosted(data, loss, order=order, l1=l1, l2=l2, intercept=intercept, tolerance=1e-10)
    assert model.solution.converged
    assert model.solution.objective == pytest.approx(dense.objective(w), rel=1e-12)
    assert dense.objective(w) <= dense.objective(best) * (1 + 1e-12)
    assert np.abs(w - best).max() <= 1e-6 * max(1.0, np.abs(best).max())
    assert len(model.keys) > 0
    assert len(model.keys) < data.X.shape[1] or not l1, "the penalty leaves nothing out: a weak test"


@losses
@intercepts
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
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


@losses
@penalties
@intercepts
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("ease", [None, 1e-3], ids=["its own widths", "much too narrow widths"])
def test_no_step_makes_it_worse(
    loss: str, l1: float, l2: float, intercept: bool, scale: float, ease: float | None
) -> None:
    solver = solver_of(data_of(4, scale=scale), loss, intercept, l1=l1 * scale, l2=l2 * scale**2)
    before = first = solver.objective()
    rng = np.random.default_rng(0)
    for _ in range(8):
        for j in rng.permutation(solver.all):
            solver.ease[j] = ease or solver.ease[j]
            solver.sweep(np.array([j]))
            after = solver.objective()
            assert after <= before + 1e-12 * first
            before = after
    assert before < first


def parallel_of(data: Stream, loss: str, intercept: bool = True, **options: Any) -> Parallel:
    holder = Here(1)
    for number, part in stripes(0, data.chunk):
        holder.add(number, part)
    return Parallel(holder, intercept, loss_of(loss), BoostPlan(order="parallel", **options))


@losses
@penalties
@pytest.mark.parametrize("advance", [1.0, 0.5], ids=["proved widths", "narrowed widths"])
def test_no_parallel_step_makes_it_worse(
    loss: str, l1: float, l2: float, advance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solving, "ADVANCE", advance)
    monkeypatch.setattr(shards, "STRIPE", 4)  # so that each shard has rows
    solver = parallel_of(data_of(5), loss, l1=l1, l2=l2)
    solver.measure_all()
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


def test_one_step_on_a_weak_hypothesis_is_adaboost() -> None:
    data = binary()
    solver = solver_of(data, "exponential", intercept=False, l1=0.0)
    solver.objective()
    solver.sweep(solver.all)
    assert solver.w[0] == pytest.approx(adaboost(data), rel=1e-12)
    expected = data.importance * np.exp(-data.y * data.X[:, 0] * adaboost(data))
    assert solver.q == pytest.approx(expected, rel=1e-12), "AdaBoost's weights of the examples"


def test_every_step_on_weak_hypotheses_is_adaboosts() -> None:
    """If the bound is exact, its width is never narrowed."""
    rng = np.random.default_rng(13)
    rows = [(rng.choice([-1.0, 1.0]), {j: rng.choice([-1.0, 1.0]) for j in range(4)}) for _ in range(80)]
    solver = Solver(
        columns_of(MemorySource(Chunk.of_rows(rows)), True), loss_of("exponential"), BoostPlan(l1=0.5)
    )
    assert solver.run().certificate <= 1e-4
    assert solver.ease.tolist() == [1.0] * 5


def test_widths_of_other_features_are_narrowed() -> None:
    solver = solver_of(data_of(14), "logistic")
    solver.run()
    assert solver.ease[solver.w != 0].max() < 1.0


@pytest.mark.parametrize("copies", [1, 3, 8])
def test_parallel_copies_share_one_step(copies: int) -> None:
    """Collins, Schapire and Singer: if rows have k coordinates, each moves by 1/k of its own step."""
    data = binary(copies=copies)
    solver = parallel_of(data, "exponential", intercept=False, l1=0.0)
    solver.choose(solver.all)
    solver.move()
    assert solver.w == pytest.approx(np.full(copies, adaboost(data) / copies), rel=1e-12)


@orders
@losses
def test_threads_change_nothing(order: str, loss: str) -> None:
    data = stream(7, rows=700, features=300)
    models = [thresher.boost(data.chunk, loss, order=order, threads=n, l1=0.5) for n in (1, 2, 5)]
    for model in models[1:]:
        assert model.weights.tobytes() == models[0].weights.tobytes()
        assert model.keys.tobytes() == models[0].keys.tobytes()
        assert model.intercept == models[0].intercept
        assert model.solution.sweeps == models[0].solution.sweeps
    assert len(models[0].keys) > 10


def test_the_random_order_is_the_seeds() -> None:
    data, options = data_of(8), {"order": "random", "l1": 0.5, "tolerance": 1e-3}
    found = [boosted(data, "exponential", seed=seed, **options)[0] for seed in (1, 1, 2)]
    assert found[0].tobytes() == found[1].tobytes() != found[2].tobytes()
    assert np.abs(found[0] - found[2]).max() < 0.02


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
        model = boosted(data_of(11), "logistic", order="parallel", rounds=1, tolerance=1e-12)[1]
    assert model.solution.rounds == 1
    assert not model.solution.converged
    assert [one.name for one in model.warnings] == ["no-certificate"]
    assert not boosted(data_of(11), "logistic", order="parallel", rounds=1000, tolerance=1e-6)[1].warnings


ENDLESS = pytest.mark.filterwarnings("ignore:the objective has no minimum")


def rows(*labels: float, feature: float = 1.0) -> Chunk:
    return Chunk.of_rows([(y, {3: feature * y}) for y in labels])


@ENDLESS
@orders
@losses
def test_one_class(order: str, loss: str) -> None:
    model = thresher.boost(Chunk.of_rows([(1.0, {0: 1.0}), (1.0, {1: 0.5})]), loss, order=order)
    assert model.solution.endless == "all examples are of one class"
    assert model.intercept > 5
    assert np.isfinite(model.intercept)
    assert len(model.keys) == 0
    bare = thresher.boost(rows(1, 1), loss, order=order, l1=0.5, intercept=False)
    assert bare.solution.endless is None
    assert bare.solution.converged
    assert thresher.boost(rows(1, 1), loss, l1=0.0, intercept=False).solution.endless is not None


@ENDLESS
@orders
@losses
def test_separable_data_without_penalties(order: str, loss: str) -> None:
    model = thresher.boost(rows(1, -1, 1), loss, order=order, l1=0.0)
    assert model.solution.endless == "the classes are separable and nothing is penalised"
    assert np.isfinite(model.weights).all()
    assert model.weights[0] > 3
    assert thresher.boost(rows(1, -1, 1), loss, order=order, l1=0.1).solution.endless is None


@ENDLESS
def test_a_feature_that_speaks_for_one_class_only() -> None:
    chunk = Chunk.of_rows([(1.0, {0: 1.0, 1: 1.0}), (1.0, {0: 1.0}), (-1.0, {0: 1.0})])
    assert thresher.boost(chunk, l1=0.0).solution.endless == (
        "1 features support one class only and nothing is penalised"
    )
    assert thresher.boost(chunk, l1=0.0, l2=0.1).solution.endless is None


def test_an_objective_without_a_minimum_is_warned_of() -> None:
    with pytest.warns(TroubleWarning, match="penalised; the weights .* above 0, l1 or l2"):
        thresher.boost(rows(1, -1, 1), l1=0.0)
    with pytest.warns(TroubleWarning, match="all examples are of one class; .*: check the labels"):
        thresher.boost(rows(1, 1))


@ENDLESS
@orders
@intercepts
@pytest.mark.parametrize(
    "chunk",
    [
        Chunk.of_rows([(1.0, {}), (-1.0, {}), (1.0, {})]),
        Chunk.of_rows([(1.0, {4: 0.0}), (-1.0, {5: 0.0}), (1.0, {})]),
        Chunk.of_rows([(1.0, {4: 1.0}), (-1.0, {4: 1.0})]),
        Chunk.of_rows([(1.0, {4: 1.0}), (-1.0, {4: 2.0})], [0.0, 0.0]),
    ],
    ids=["no features", "zeros", "no signal", "no importance"],
)
def test_nothing_to_learn(order: str, intercept: bool, chunk: Chunk) -> None:
    model = thresher.boost(chunk, order=order, intercept=intercept)
    assert model.solution.converged
    assert len(model.keys) == 0
    if intercept and len(chunk) == 3:
        assert model.intercept == pytest.approx(0.5 * np.log(2), abs=1e-6)


@orders
def test_extreme_values_stay_finite(order: str) -> None:
    chunk = Chunk.of_rows(
        [(1.0, {0: 3e38, 1: 1e-45}), (-1.0, {0: -1e-38, 2: 1e20}), (1.0, {1: 1e-30, 2: 1.0})]
    )
    model = thresher.boost(chunk, order=order, l1=1e-3, rounds=20)
    assert np.isfinite(model.weights).all()
    assert np.isfinite(model.solution.objective)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"l1": -1.0}, "l1 must be >= 0, not -1"),
        ({"l2": float("nan")}, "l2 must be >= 0, not nan"),
        ({"tolerance": float("inf")}, "tolerance must be >= 0, not inf"),
        ({"rounds": 0}, "rounds must be a whole number of at least 1, not 0"),
        ({"order": "zigzag"}, "no order is called 'zigzag'; known: cyclic, random, parallel"),
        ({"loss": "hinge"}, "boost does not support the loss hinge; choose exponential or logistic"),
        ({"loss": "expo"}, "did you mean exponential"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        thresher.boost(rows(1, -1), **options)


def test_columns_are_the_rows_turned_and_signed() -> None:
    keys = np.array([2**63 + 5, 7, 900, 2**40], np.uint64)
    for names in (keys, np.array([11, 0, 3, 8], np.uint64)):
        data = stream(12, rows=40, features=4, keys=names)
        columns = columns_of(MemorySource([data.chunk.rows(0, 13), data.chunk.rows(13, 40)]), True)
        assert columns.keys.tolist() == sorted(names.tolist())
        dense = np.zeros((40, 5))
        for j in range(5):
            span = slice(columns.starts[j], columns.starts[j + 1])
            assert (np.diff(columns.rows[span]) > 0).all()
            dense[columns.rows[span], j] = columns.values[span]
        signed = data.y[:, np.newaxis] * data.X[:, np.argsort(names)]
        assert dense[:, :4].tolist() == signed.tolist()
        assert dense[:, 4].tolist() == data.y.tolist()


@pytest.mark.parametrize("order", ["cyclic", "parallel"])
def test_rows_of_importance_0_are_not_there(order: Any) -> None:
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(300, 5)), chance.choice([-1, 1], 300)
    weights = np.ones(300)
    weights[np.arange(300) % 3 == 1] = 0
    there = weights > 0
    found = [
        thresher.boost((X, y, weights), l1=0.5, order=order),
        thresher.boost((X[there], y[there]), l1=0.5, order=order),
    ]
    one, other = ((model.keys, model.weights, model.bias) for model in found)
    assert all(map(np.array_equal, one, other))


MASS = st.one_of(st.just(0.0), st.floats(1e-6, 1e3))
WEIGHT = st.one_of(st.just(0.0), st.floats(-5, 5))
PENALTY = st.one_of(st.just(0.0), st.floats(1e-4, 1e3))


@numba.njit(error_model="numpy")
def compiled(up, down, w, a, reach, l1, l2):  # type: ignore[no-untyped-def]
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


@given(MASS, MASS, WEIGHT, st.floats(0.01, 30), PENALTY, PENALTY)
def test_nothing_is_violated_in_the_bound_behind_the_step(
    up: float, down: float, w: float, a: float, l1: float, l2: float
) -> None:
    d = step(up, down, w, a, l1, l2)
    if abs(d) < 0.999 * LEAP / a:
        e = math.exp(a * d)
        scale = up / e + down * e + l1 + l2 * (abs(w) + LEAP / a)
        assert violation(up / e - down * e, w + d, l1, l2) <= 1e-10 * scale


@pytest.mark.parametrize(("up", "down"), [(3.0, 1.0), (1.0, 3.0), (0.2, 0.7), (2.0, 2.0)])
def test_without_penalties_it_is_adaboost(up: float, down: float) -> None:
    for w in (0.0, 0.4, -2.0):
        assert step(up, down, w, 1.0, 0.0, 0.0) == pytest.approx(0.5 * math.log(up / down), abs=1e-15)


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
