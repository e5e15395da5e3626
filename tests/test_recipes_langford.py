"""Langford, Li and Zhang: parts of the figures that small data cannot tell apart, on numbers made by hand."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from experiments.papers import langford_auc, langford_curves, langford_features, langford_regret, truncation
from experiments.papers.sets import Parts, Sets
from tests.recipes import rows_of, some_rows, tried
from thresher.parts import make

pytestmark = pytest.mark.usefixtures("plainly")


# langford-features and langford-auc


def choice(left: float = 0.1, ratio: float = 1.0, rise: float = 0.0, name: str = "wbc") -> truncation.Choice:
    base, sparse = tried(test_auc=0.8), tried(0.1, round(1000 * left), 0.1 + rise, test_auc=0.8 * ratio)
    return truncation.Choice(name, 1000, 30, 100, base, sparse, sparse)


def test_the_sparsest_model_within_the_limit_is_chosen_by_cross_validation() -> None:
    plain = [tried(error, 90, rule="truncated-gradient:gravity=0") for error in (0.12, 0.1)]
    sparse = [tried(0.1099, 30, 0.9), tried(0.108, 40, 0.0), tried(0.1129, 20), tried(0.12, 5, 0.0)]
    train, test = rows_of([[1.0, 0], [1.0, 2.0], [0.5, 3.0]], [1, 1, -1]), rows_of([[1.0], [2.0]], [-1, 1])
    found = truncation.least([*plain, *sparse], "wbc", Parts(train, test))
    assert found.base is plain[1]
    assert found.sparse is sparse[0]
    assert found.sparser is sparse[2]
    assert (found.features, found.rare, found.tests) == (2, 1, 2)
    dearer = truncation.least([*plain, tried(0.1009, 30), tried(0.1011, 5)], "housing", Parts(train, test))
    assert dearer.sparse.nonzero == 30, "of a squared error of 0.1, one per cent"


def test_features_count_if_they_occur_in_training_rows() -> None:
    train, test = rows_of([[1.0], [2.0]], [1, -1]), rows_of([[1.0, 1.0, 1.0]], [1])
    found = truncation.least([tried(rule="truncated-gradient:gravity=0")], "wbc", Parts(train, test))
    assert found.features == 1


def test_what_is_given_up_on_test_rows_is_said() -> None:
    said = langford_features._risen([choice(name="a", rise=0.02)], [choice(name="a", rise=0.2)])
    assert "2 of 2: a by 2.00, a + random by 20.00." in said
    assert said.endswith("class: a + random (30 of 100 rows, 30.00%).")


def test_the_ratio_is_that_with_gravity_to_that_without_in_sparse_models() -> None:
    assert choice(ratio=0.9).ratio == pytest.approx(0.9)
    many = {"a": choice(0.9, 0.5), "b": choice(0.9, 0.5), "c": choice(0.6, 0.5)}
    good = langford_auc._verdict(many | {"d": choice(0.2, 0.99), "e": choice(0.2, 1.1)})
    assert good.holds
    assert good.ours == "for 2 of 2; for 0 of the 3 that keep more of them"
    assert not langford_auc._verdict({"d": choice(0.2, 0.97)}).holds


# langford-curves


def curve(*areas: float) -> list[langford_curves.Point]:
    return [langford_curves.Point(2**k, 2**k, area) for k, area in enumerate(areas)]


def curves(far: Sequence[float], like: Sequence[float], rounded: Sequence[float]) -> dict[str, Any]:
    return {
        langford_curves.FAR: curve(*far),
        langford_curves.LIKE: curve(*like),
        langford_curves.ROUNDED: curve(*rounded),
        langford_curves.NEVER: [],
        langford_curves.LASSO: curve(0.9, 0.95, 0.9),
    }


def test_each_method_of_the_curves_is_the_one_named() -> None:
    limits = {}
    for rule in (langford_curves.FAR, langford_curves.LIKE):
        parsed = [make("rule", one.rule) for one in langford_curves.recipes("wbc", rule, 100, True)]
        limits[rule] = [(one.theta, one.gravity) for one in parsed]
    assert all(theta == np.inf for theta, _ in limits[langford_curves.FAR])
    assert all(theta == gravity for theta, gravity in limits[langford_curves.LIKE])
    for rule, name in ((langford_curves.ROUNDED, "rounding"), (langford_curves.NEVER, "subgradient")):
        found = langford_curves.recipes("wbc", rule, 100, True)
        assert {str(one.rule).partition(":")[0] for one in found} == {name}


def test_a_point_is_the_best_in_cross_validation_that_fits_its_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = [
        tried(nonzero=2, auc=0.7, test_auc=0.6),
        tried(nonzero=3, auc=0.6, test_auc=0.9),
        tried(nonzero=100, auc=0.9, test_auc=0.8),
    ]
    monkeypatch.setattr(langford_curves, "cross_validated", lambda *given: models)
    rows = some_rows(10)
    found = langford_curves.curve("wbc", langford_curves.FAR, Parts(rows, rows), True)
    assert {(one.nonzero, one.auc) for one in found if one.budget < 100} == {(2, 0.6)}
    assert {(one.nonzero, one.auc) for one in found if one.budget >= 100} == {(100, 0.8)}
    assert min(one.budget for one in found) == 2


def test_theta_gravity_is_compared_with_rounding() -> None:
    apart = curves([0.5] * 3, [0.9] * 3, [0.8] * 3)
    level = curves([0.5] * 3, [0.9] * 3, [0.89] * 3)
    assert langford_curves._like({"a": level, "rcv1": apart}).holds
    found = langford_curves._like({"a": level, "b": apart, "rcv1": level})
    assert not found.holds
    assert found.ours == "on 1 of 2; not counted, the same by construction: rcv1"


def test_theta_infinity_is_judged_by_how_far_it_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, behind = curves([0.9] * 3, [0.8] * 3, [0.7] * 3), curves([0.7, 0.7, 0.9], [0.9] * 3, [0.6] * 3)
    monkeypatch.setattr(langford_curves, "curves", lambda *given, random: ahead)
    assert langford_curves._behind(ahead) == pytest.approx(-0.1)
    assert langford_curves._behind(behind) == pytest.approx(0.4 / 3)
    sets = Sets(None, quick=True)
    good = langford_curves._competitive({"a": ahead}, sets)
    assert good.holds
    assert good.ours == "on 1 of 1; ahead on a"
    bad = langford_curves._competitive({"a": ahead, "b": behind}, sets)
    assert not bad.holds
    assert bad.why.startswith(
        "mean shortfall: b 0.133. Still more than 0.02 behind at up to so many features: 2 (b)"
    )


def test_the_lasso_falls_off_if_its_largest_model_is_worse() -> None:
    falling = curves([0.9], [0.9], [0.9])
    rising = falling | {langford_curves.LASSO: curve(0.8, 0.9, 0.95)}
    assert langford_curves._falls({"a": falling}).holds
    assert not langford_curves._falls({"a": rising}).holds


# langford-regret


def loss_of(w: Any, x: Any, y: float) -> float:
    return float(np.logaddexp(0, -y * (w @ x)))


def truncated(w: Any, x: Any, y: float, eta: float, gravity: float) -> Any:
    """A step of truncated gradient with K = 1 and theta = infinity."""
    w = w + eta * y * x / (1 + np.exp(y * (w @ x)))
    return np.sign(w) * np.maximum(np.abs(w) - eta * gravity, 0)


@pytest.mark.parametrize("worst", [False, True])
def test_regret_and_bound_are_those_of_the_theorem(worst: bool) -> None:
    X, y = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [0.8, -0.6]]), np.array([1.0, 1.0, -1.0, 1.0])
    v, w, g, eta = np.array([0.5, -0.3]), np.zeros(2), langford_regret.GRAVITY, 0.5
    found = langford_regret.course(langford_regret.PLAIN, eta, worst, rows_of(X, y), v)
    total = 0.0
    for i in range(4):
        gaps = [loss_of(w, X[k], y[k]) - loss_of(v, X[k], y[k]) for k in range(4)]
        k = int(np.argmax(gaps)) if worst else i
        w = truncated(w, X[k], y[k], eta, g)
        total += gaps[k] + g * (np.abs(w).sum() - np.abs(v).sum())
        assert found.regret[i] == pytest.approx(total / (i + 1), abs=1e-7)
        assert found.bound[i] == pytest.approx(eta / 2 + v @ v / (2 * eta * (i + 1)))


def test_gaps_are_those_of_one_model_and_of_its_mean() -> None:
    X = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [0.8, -0.6]])
    y, best, g, eta = np.array([1.0, 1.0, -1.0, 1.0]), np.array([2.0, -1.5]), 0.01, 0.5
    found = langford_regret.approach(eta, rows_of(X, y), best, g)
    draw, count = np.random.default_rng(0), int(best @ best / eta**2) + 1
    stops = np.sort(draw.integers(1, count + 1, langford_regret.TIMES))
    path = [np.zeros(2)]
    for begin, end in pairwise([0, *stops.tolist(), count]):
        for k in draw.integers(0, 4, end - begin):
            path.append(truncated(path[-1], X[k], y[k], eta, g))

    def above(w: Any) -> float:
        ours, least = (np.logaddexp(0, -y * (X @ v)).mean() + g * np.abs(v).sum() for v in (w, best))
        return float(ours - least)

    assert found.rows == count
    assert found.random == pytest.approx(np.mean([above(path[stop]) for stop in stops]), abs=1e-7)
    assert found.average == pytest.approx(above(np.mean(path[:-1], axis=0)), abs=1e-7)
    assert found.bound == pytest.approx(eta / 2 + best @ best / (2 * eta * count))
