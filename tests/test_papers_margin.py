"""What the papers on margins prove: passive-aggressive, perceptron, AROW and confidence-weighted rules."""

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.oracle_base import Vector
from tests.streams import Stream, model_of, read_weights, stream, stream_of
from thresher.learning.model.model import Model

pytestmark = pytest.mark.usefixtures("plainly")

FEATURES = 6


def hinge(margins: Vector) -> Vector:
    return np.maximum(0.0, 1.0 - margins)


def bare(spec: str, loss: str) -> Model:
    return model_of(spec, loss, intercept=False)


# Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (JMLR 2006)


STEPS: dict[str, Callable[[Vector, float], Any]] = {
    "pa": lambda moved, loss: 0.5 * moved @ moved + 1e7 * loss**2,  # a constraint, as good as
    "pa-i:C=0.3": lambda moved, loss: 0.5 * moved @ moved + 0.3 * loss,
    "pa-ii:C=0.3": lambda moved, loss: 0.5 * moved @ moved + 0.3 * loss**2,
}


@pytest.mark.parametrize("spec", STEPS)
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_each_pa_step_minimises_what_it_is_defined_by(spec: str, loss: str) -> None:
    """No small change of w' lowers |w' - w|^2 / 2 plus C times the loss, or its square."""
    data = stream(41, 60, 6, "binary" if loss == "hinge" else "real", weighted=False)
    model, before = bare(spec, loss), np.zeros(6)
    for i in range(len(data.y)):
        model.learn(data.chunk, i, i + 1)
        after, x = read_weights(model, 6), data.X[i]

        def cost(w: Vector, x: Vector = x, before: Vector = before, y: float = data.y[i]) -> Any:
            return STEPS[spec](w - before, model.loss.value_slope(float(w @ x), y)[0])

        for change in (x, -x, np.eye(6)[i % 6]):
            for size in (1e-3, -1e-3):
                assert cost(after) <= cost(after + size * change) + 1e-9
        before = after


# The perceptron


@pytest.mark.parametrize("store", ["growing", "direct"])
def test_the_averaged_perceptron_reads_as_the_mean_of_the_weights_that_predicted(store: str) -> None:
    data = stream(44, 200, 6, weighted=False)
    plain = model_of("perceptron", "perceptron")
    averaged = model_of("averaged-perceptron", "perceptron", store=store)
    total, bias = np.zeros(6), 0.0
    for i in range(200):
        total, bias = total + read_weights(plain, 6), bias + plain.intercept
        for model in (plain, averaged):
            model.learn(data.chunk, i, i + 1)
        assert averaged.loop.last_margins()[0] == pytest.approx(plain.loop.last_margins()[0])
        assert np.abs(read_weights(averaged, 6) - total / (i + 1)).max() <= 1e-12
        assert averaged.intercept == pytest.approx(bias / (i + 1), abs=1e-12)
    assert np.abs(read_weights(plain, 6) - total / 200).max() > 0.1


# AROW and confidence-weighted learning


def gaussian(model: Model) -> tuple[Vector, Vector]:
    """Means and variances, from a direct store."""
    S = np.zeros((FEATURES, 2))
    S[: len(model.state()["S"])] = model.state()["S"][:FEATURES]
    return S[:, 0], 1 / (1 + S[:, 1])


def learned(spec: str, loss: str, data: Stream) -> Model:
    model = model_of(spec, loss, intercept=False, store="direct")
    model.learn(data.chunk)
    return model


def examples(rows: list[Vector], y: list[float], importance: float = 1.0) -> Stream:
    X = np.array(rows).astype(np.float32).astype(np.float64)
    return stream_of(X, np.ones(X.shape, bool), np.array(y), np.full(len(y), importance))


FIRST = examples(
    [np.array([0.5, -1.0, 0.3, 0.8, -0.2, 0.7]), np.array([1.0, 0.4, -0.6, 0.1, 0.9, -0.5])], [1, 1]
)
NEXT = examples([np.array([0.7, 0.6, 0.5, -0.9, 0.4, 0.3])], [-1], 1.5)


def divergence(mean: Vector, variances: Vector, old: Vector, before: Vector) -> float:
    """KL of one Gaussian from another, but for a constant."""
    gone = (mean - old) ** 2 / before
    whole = 0.5 * np.sum(np.log(before / variances) + variances / before + gone)
    return float(whole)


def test_an_arow_step_is_the_minimum_over_means_and_diagonal_covariances() -> None:
    r, importance = 0.7, 1.5
    model = learned(f"arow:r={r}", "hinge", FIRST)
    old, before = gaussian(model)
    x, y = NEXT.X[0], -1.0

    def cost(z: Vector) -> float:
        mean, variances = z[:FEATURES], np.exp(z[FEATURES:])
        left = max(0.0, 1 - y * (mean @ x)) ** 2 + x @ (variances * x)
        return divergence(mean, variances, old, before) + float(importance * left) / (2 * r)

    best = minimize(cost, np.concatenate([old, np.log(before)]), method="BFGS", options={"gtol": 1e-9})
    model.learn(NEXT.chunk)
    mean, variances = gaussian(model)
    assert np.abs(mean - best.x[:FEATURES]).max() <= 1e-6
    assert np.abs(variances - np.exp(best.x[FEATURES:])).max() <= 1e-6
    assert np.abs(mean - old).max() > 0.1


PENALTIES: dict[str, Callable[[float], float]] = {
    "cw:eta=0.8": lambda short: 1e3 * short,  # steeper than the multiplier: as good as a constraint
    "scw:C=0.3,eta=0.8": lambda short: 0.3 * 1.5 * short,
    "scw:C=50,eta=0.8": lambda short: 50 * 1.5 * short,
    "scw-ii:C=0.3,eta=0.8": lambda short: 0.3 * 1.5 * short**2,
}


@pytest.mark.parametrize("spec", PENALTIES)
def test_a_confidence_weighted_step_is_the_minimum_over_full_covariances(spec: str) -> None:
    """The mean is the paper's; the inverse variances are the diagonal of the paper's inverse covariance."""
    model = learned(spec, "logistic", FIRST)
    old, before = gaussian(model)
    x, y, phi = NEXT.X[0], -1.0, NormalDist().inv_cdf(0.8)
    model.learn(NEXT.chunk)
    mean, variances = gaussian(model)

    def covariance(k: float) -> Vector:
        return np.asarray(np.linalg.inv(np.diag(1 / before) + k * np.outer(x, x)), np.float64)

    def cost(z: Vector) -> float:  # the optimum moves along V x and has this covariance: two numbers tell it
        new, V = old + z[0] * y * before * x, covariance(np.exp(z[1]))
        short = max(0.0, phi * np.sqrt(x @ V @ x) - y * (new @ x))
        gone = (new - old) / before @ (new - old) + (V.diagonal() / before).sum()
        return float(0.5 * (gone - np.linalg.slogdet(V)[1]) + PENALTIES[spec](short))

    best = minimize(
        cost, [0.1, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}
    )
    assert np.abs(mean - (old + best.x[0] * y * before * x)).max() <= 1e-5
    assert np.abs(1 / variances - 1 / before - np.exp(best.x[1]) * x * x).max() <= 1e-4
    assert np.abs(mean - old).max() > 0.05
