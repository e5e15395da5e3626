"""The step of one coordinate compared with a numeric minimiser of its bound, and published special cases."""

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from thresher.batch.kernels import LEAP, best_step, violation

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
