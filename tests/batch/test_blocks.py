"""Several classes in memory, compared with scikit-learn, dense certificates and a general minimiser."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

import thresher
from tests.streams import Vector
from thresher import Chunk, DataError, TroubleWarning
from thresher.batch.blocks import level


def data_of(nasty: bool) -> tuple[Vector, Vector, Vector]:
    """Rows, classes 3 to 6 and importances; or with columns far from 0, of all scales, constant and twice."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(120, 9))
    true = rng.normal(size=(9, 4)) * (rng.random((9, 4)) < 0.5)
    y = (X @ true + rng.gumbel(size=(120, 4))).argmax(axis=1) + 3.0
    c = np.ones(120)
    if nasty:
        X = X * [1, 1, 1e-3, 1e3, 1, 1, 1, 1, 1] + [0, 1e3, 0, 0, 0, 0, 0, 0, 0]
        X[:, 4], X[:, 6] = 7.0, X[:, 5]
        X[rng.random(120) < 0.8, 7] = 0.0
        c = rng.choice([0.0, 0.5, 1.0, 3.0], 120)
    return X.astype(np.float32).astype(np.float64), y, c


def weights_of(model: Any, features: int) -> tuple[Vector, Vector]:
    """All weights ``(features, classes)`` and the intercepts."""
    W = np.zeros((features, len(model.bias)))
    W[model.keys.astype(int)] = model.weights
    return W, model.bias


def violation(W: Vector, G: Vector, l1: Any, l2: float) -> Vector:
    """By definition, for weights and the gradient of the loss."""
    pull = G + l2 * W
    found: Vector = np.where(W != 0, np.abs(pull + l1 * np.sign(W)), np.maximum(np.abs(pull) - l1, 0))
    return found


@pytest.mark.parametrize(
    ("nasty", "l1", "l2"),
    [(False, 2.0, 0.0), (True, 2.0, 0.0), (False, 1.0, 0.5), (True, 1.0, 0.5), (False, 0.0, 0.01)],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_softmax_satisfies_its_conditions(nasty: bool, l1: float, l2: float, intercept: bool) -> None:
    X, y, c = data_of(nasty)
    model = thresher.boost((X, y, c), "softmax", l1=l1, l2=l2, intercept=intercept, tolerance=1e-8)
    W, b = weights_of(model, 9)
    Z, hot = X @ W + b, y[:, np.newaxis] == np.arange(3, 7)
    slopes = c[:, np.newaxis] * (softmax(Z, axis=1) - hot)
    shares = c @ hot / c.sum() if intercept else np.full(4, 0.25)
    unit = np.abs(X.T @ (c[:, np.newaxis] * (shares - hot))).max()
    assert model.solution.converged
    assert model.solution.rounds < 60
    assert violation(W, X.T @ slopes, l1, l2).max() <= 2e-8 * unit
    assert np.abs(slopes.sum(axis=0)).max() <= 2e-8 * unit * intercept or not intercept
    value = -(c * log_softmax(Z, axis=1)[hot]).sum() + l1 * np.abs(W).sum() + l2 / 2 * np.square(W).sum()
    assert model.solution.objective == pytest.approx(value, rel=1e-10)
    assert 0 < np.count_nonzero(W) < W.size or not l1
    assert not (nasty and intercept and l1 and W[4].any()), "a constant column is the intercept's"


def test_classes_each_against_the_rest_are_problems_of_two() -> None:
    X, y, c = data_of(True)
    model = thresher.boost((X, y, c), "logistic", outputs="classes", l1=1.5, tolerance=1e-8)
    W, b = weights_of(model, 9)
    alone = [
        thresher.boost((X, np.where(y == k, 1, -1), c), "logistic", l1=1.5, tolerance=1e-8)
        for k in range(3, 7)
    ]
    for k, one in enumerate(alone):
        w = np.zeros(9)
        w[one.keys.astype(int)] = one.weights
        assert X @ W[:, k] + b[k] == pytest.approx(X @ w + one.intercept, abs=1e-4)
    assert model.solution.objective == pytest.approx(sum(one.solution.objective for one in alone), rel=1e-10)


def test_penalties_in_standard_deviations_are_those_of_each_class() -> None:
    X, y, _ = data_of(False)
    model = thresher.boost((X, y), "softmax", l1="1sd", tolerance=1e-6)
    W, b = weights_of(model, 9)
    slopes = softmax(X @ W + b, axis=1) - (y[:, np.newaxis] == np.arange(3, 7))
    noise = np.square(slopes).sum(axis=0) / (120 - np.count_nonzero(W, axis=0) - 1)
    psi = np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=0)[:, np.newaxis] * noise)
    assert (violation(W, X.T @ slopes, psi, 0.0) <= 0.02 * psi).all()
    assert np.ptp(psi, axis=1).max() > 0.5, "alike in all classes: a weak test"


def test_a_model_of_classes_is_saved_and_repeats_its_labels(tmp_path: Any) -> None:
    X, y, _ = data_of(False)
    words = np.array(["ant", "bee", "cat", "dog"])[y.astype(int) - 3]
    model = thresher.boost((X, words), "softmax", l1=2.0)
    assert model.solution.objective == thresher.boost((X, y), "softmax", l1=2.0).solution.objective
    model.save(tmp_path / "m")
    again = thresher.load(tmp_path / "m")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert set(again.predict(X, output="label")) <= {*words}


def test_what_has_no_minimum_is_said() -> None:
    X, y, _ = data_of(False)
    with pytest.warns(TroubleWarning, match="no minimum, because a class has no examples"):
        thresher.boost((X, y), "softmax", outputs="classes:2-6")
    apart = np.repeat(np.eye(3), 2, axis=0)
    with pytest.warns(TroubleWarning, match="separable and nothing is penalised"):
        thresher.boost((apart, np.repeat([1, 2, 3], 2)), "softmax", l1=0.0, rounds=30)
    with pytest.raises(DataError, match="expected a class"):
        thresher.boost(Chunk.of_rows([(1.5, {0: 1.0})]), "softmax", outputs="classes:1-2")


@given(
    arrays(np.float64, st.tuples(st.just(1), st.integers(2, 6)), elements=st.floats(-5, 5)),
    st.floats(0, 3),
    st.sampled_from([0.0, 0.3, 2.0]),
)
def test_no_shift_of_level_weights_makes_penalties_less(w: Vector, l1: float, l2: float) -> None:
    def penalty(shift: float) -> float:
        moved = level(w, l1, l2) - shift
        return float(l1 * np.abs(moved).sum() + l2 / 2 * np.square(moved).sum())

    if l1 or l2:
        best = minimize_scalar(penalty, bounds=(-10, 10), method="bounded", options={"xatol": 1e-10}).fun
        assert penalty(0.0) <= best + 1e-8 * (1 + best)
        assert np.ptp(w - level(w, l1, l2)) <= 1e-12
