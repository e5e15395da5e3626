"""Losses, rates and prox operators by their definitions, and the doctests that show how they are used."""

import doctest
import importlib
import math
import pkgutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import poisson
from sklearn.metrics import mean_tweedie_deviance

import thresher
from tests import laws
from tests.plain import compiled_if
from tests.streams import LOSSES, RATES, case
from thresher import parts
from thresher.data import labels
from thresher.parts.bursts import smallest
from thresher.parts.prox import soft, truncate

# Several settings of every loss; a new one is tested with its defaults.
OTHERS = {
    "logistic": ["positive=3"],
    "exponential": ["positive=0.3"],
    "hinge": ["threshold=0"],
    "perceptron": ["positive=3"],
    "squared-hinge": ["threshold=0.5"],
    "modified-huber": ["positive=3"],
    "squared": ["scale=0.5"],
    "absolute": ["scale=2"],
    "quantile": ["tau=0.9"],
    "huber": ["delta=0.3"],
    "poisson": ["offset=-1"],
    "gamma": ["offset=-1"],
    "tweedie": ["power=1.1", "power=1.9"],
}
SPECS = [f"{name}:{text}" for name in LOSSES for text in ["", *OTHERS.get(name, [])]]
MARGINS = st.floats(-8, 8)
LABELS = {
    "binary": st.sampled_from([-1.0, 0.0, 1.0]),
    "real": st.floats(-5, 5),
    "nonnegative": st.integers(0, 6).map(float),
    "positive": st.floats(0.1, 6),
}

losses = pytest.mark.parametrize("loss", [parts.make("loss", spec) for spec in SPECS], ids=SPECS)


def losses_with(attribute: str, value: object) -> pytest.MarkDecorator:
    specs = [spec for spec in SPECS if getattr(parts.make("loss", spec), attribute) == value]
    return pytest.mark.parametrize("loss", [parts.make("loss", spec) for spec in specs], ids=specs)


@losses
@given(st.data())
def test_the_slope_is_the_derivative(loss: Any, data: st.DataObject) -> None:
    laws.slope(loss, data.draw(MARGINS), data.draw(LABELS[loss.DOMAIN]))


@losses
@given(st.data())
def test_the_curvature_is_that_of_the_slope_or_of_a_parabola_above(loss: Any, data: st.DataObject) -> None:
    y, p, d = data.draw(LABELS[loss.DOMAIN]), data.draw(MARGINS), data.draw(MARGINS)
    bend = loss.curvature(p, y)
    if not math.isnan(bend) and parts.part_name(type(loss)) == "huber":
        value, slope = loss.value_slope(p, y)
        assert loss.value_slope(p + d, y)[0] <= value + slope * d + 0.5 * bend * d * d + 1e-9 * (1 + value)
    elif not math.isnan(bend):
        h = 1e-5
        slopes = [loss.value_slope(p + side * h, y)[1] for side in (-1, 1)]
        assert (slopes[1] - slopes[0]) / (2 * h) == pytest.approx(bend, rel=1e-4, abs=1e-6)


@losses
@given(st.data())
def test_losses_are_convex_above_their_tangents_and_not_negative(loss: Any, data: st.DataObject) -> None:
    y = data.draw(LABELS[loss.DOMAIN])
    p, q = data.draw(MARGINS), data.draw(MARGINS)
    value, slope = loss.value_slope(p, y)
    assert loss.value_slope(q, y)[0] >= value + slope * (q - p) - 1e-9 * (1 + abs(value))
    if loss != parts.make("loss", "wealth"):  # a gain is a negative loss, and there is no largest one
        assert value >= 0


@pytest.mark.parametrize("spec", ["softmax", "softmax:smoothing=0.3", "crammer-singer"])
@given(
    st.lists(MARGINS, min_size=2, max_size=5), st.integers(0, 1), st.lists(MARGINS, min_size=5, max_size=5)
)
def test_slopes_of_joint_losses_are_of_tangents_below(spec: str, at: Any, target: int, away: Any) -> None:
    loss, p = parts.make("joint loss", spec), np.array(at)
    step = 1e-3 * np.array(away[: p.size])
    slopes, y = np.empty(p.size), np.array([float(target)])
    value = loss.values_slopes(p, y, np.empty(p.size), slopes)
    beyond = loss.values_slopes(p + step, y, np.empty(p.size), np.empty(p.size))
    assert beyond >= value + slopes @ step - 1e-9 * (1 + abs(value))


@pytest.mark.parametrize("spec", ["softmax", "one-vs-rest"])
@given(st.lists(MARGINS, min_size=2, max_size=5), MARGINS, st.data())
def test_a_joint_loss_is_one_of_two_classes_in_each_margin(
    spec: str, at: Any, away: float, data: st.DataObject
) -> None:
    """Of the margin less its rival, but for what does not depend on it."""
    loss, p, q = parts.make("joint loss", spec), np.array(at), np.array(at)
    k, target = (data.draw(st.integers(0, p.size - 1)) for _ in range(2))
    q[k] = away
    joint, one = (
        [
            whole.values_slopes(z, np.array([float(target)]), np.empty(p.size), np.empty(p.size))
            if whole is loss
            else whole.value_slope(z[k] - loss.rival(z, k), 1.0 if k == target else -1.0)[0]
            for z in (p, q)
        ]
        for whole in (loss, loss.ONE)
    )
    assert np.ptp(joint) == pytest.approx(np.ptp(one), abs=1e-9 * (1 + max(joint)))


@pytest.mark.parametrize("spec", ["softmax", "softmax:smoothing=0.3", "crammer-singer"])
@given(st.lists(MARGINS, min_size=3, max_size=3), MARGINS)
def test_what_is_relative_depends_on_differences_of_margins(spec: str, at: Any, by: float) -> None:
    loss, room = parts.make("joint loss", spec), np.empty(3)
    assert loss.RELATIVE
    one, other = (loss.values_slopes(np.array(at) + z, np.ones(1), room, room.copy()) for z in (0.0, by))
    assert other == pytest.approx(one, rel=1e-9, abs=1e-9 * (1 + abs(by)))


@given(MARGINS, st.integers(0, 6))
def test_poissons_loss_is_likelihood_lost(margin: float, y: int) -> None:
    lost = poisson.logpmf(y, max(y, 1e-300)) - poisson.logpmf(y, math.exp(margin - 1))
    assert parts.make("loss", "poisson:offset=-1").value_slope(margin, float(y))[0] == pytest.approx(lost)


@pytest.mark.parametrize(("spec", "power"), [("gamma", 2.0), ("tweedie", 1.5), ("tweedie:power=1.9", 1.9)])
@given(MARGINS, st.floats(0.01, 1e4))
def test_losses_of_amounts_are_half_the_deviance(spec: str, power: float, margin: float, y: float) -> None:
    found = parts.make("loss", spec).value_slope(margin, y)[0]
    assert 2 * found == pytest.approx(mean_tweedie_deviance([y], [math.exp(margin)], power=power), rel=1e-6)


def test_every_loss_says_which_labels_it_takes() -> None:
    assert {parts.lookup("loss", name).DOMAIN for name in LOSSES} <= {*labels.DOMAINS}


@losses_with("DOMAIN", "binary")
@given(MARGINS)
def test_both_negative_labels_are_one_and_margins_are_pushed_to_their_side(loss: Any, margin: float) -> None:
    assert loss.value_slope(margin, 0.0) == loss.value_slope(margin, -1.0)
    assert loss.value_slope(margin, 1.0)[1] <= 0 <= loss.value_slope(margin, -1.0)[1]
    assert loss.value_slope(-2.0, 1.0)[1] < 0 < loss.value_slope(2.0, -1.0)[1]


def test_the_perceptrons_loss_leaves_weights_of_zero() -> None:
    loss = parts.make("loss", "perceptron")
    assert [loss.value_slope(0.0, y) for y in (1.0, -1.0)] == [(0.0, -1.0), (0.0, 1.0)]


@losses_with("BOOSTABLE", True)
@given(MARGINS, st.floats(-6, 6), st.sampled_from([-1.0, 1.0]))
def test_boosted_losses_lie_below_an_exponential(loss: Any, margin: float, move: float, y: float) -> None:
    value, slope = loss.value_slope(margin, y)
    bound = value - y * slope * math.expm1(-move)
    assert loss.value_slope(margin + y * move, y)[0] <= bound + 1e-12 * (1 + abs(value) + abs(bound))


ESTIMATED = {"logistic": 0.75, "exponential": 0.75, "modified-huber": 0.75}
ESTIMATED |= dict.fromkeys(("poisson", "gamma", "tweedie"), 2.0)
ESTIMATED |= {"squared": 3.0, "absolute": 2.0, "quantile": 2.0, "huber": 2.0}


@pytest.mark.parametrize("name", ESTIMATED)
def test_the_link_of_the_best_margin_is_what_the_loss_estimates(name: str) -> None:
    """Minimise the loss over labels in known proportions: the link must give back their share or mean."""
    loss = parts.make("loss", name)
    samples = {"binary": [1.0] * 3 + [-1.0], "real": [1.0, 2.0, 6.0], "nonnegative": [0.0, 1.0, 5.0]}
    sample = (samples | {"positive": [0.5, 1.0, 4.5]})[loss.DOMAIN]
    best = minimize_scalar(lambda p: sum(loss.value_slope(p, y)[0] for y in sample), (-1, 1), tol=1e-10).x
    assert loss.link(best) == pytest.approx(ESTIMATED[name], abs=1e-4)


@pytest.mark.parametrize("margin", [-1e4, -40.0, 0.0, 40.0, 1e4])
def test_logistic_overflows_nowhere(margin: float) -> None:
    loss = parts.make("loss", "logistic")
    value, slope = loss.value_slope(margin, 1.0)
    assert value == pytest.approx(np.logaddexp(0.0, -margin))
    assert -1.0 <= slope <= 0.0
    assert loss.link(margin) + loss.link(-margin) == pytest.approx(1.0)


@given(st.floats(-3, 3), st.floats(0, 2))
def test_soft_is_the_prox_of_the_absolute_value(v: float, a: float) -> None:
    best = minimize_scalar(
        lambda w: 0.5 * (w - v) ** 2 + a * abs(w), bounds=(-4, 4), method="bounded", options={"xatol": 1e-10}
    ).x
    assert soft(v, a) == pytest.approx(best, abs=1e-5)
    assert soft(v, a) == pytest.approx(math.copysign(max(abs(v) - a, 0.0), v), abs=1e-15)


@given(st.floats(-3, 3), st.floats(-2, -1e-30))
def test_a_threshold_that_is_rounded_below_zero_pushes_nothing(v: float, a: float) -> None:
    assert soft(v, a) == truncate(v, a, math.inf) == v
    for name in parts.REGISTRY["group"]:
        group, out = parts.make("group", name), np.array([0.0, 0.0])
        group.together(out, a)
        assert group.alone(v, a) == v
        assert not out.any()


@given(st.floats(-3, 3), st.floats(0, 2), st.floats(0, 3))
def test_truncate_as_the_paper_writes_it(v: float, a: float, theta: float) -> None:
    if 0 <= v <= theta:
        expected = max(0.0, v - a)
    elif -theta <= v < 0:
        expected = min(0.0, v + a)
    else:
        expected = v
    assert truncate(v, a, theta) == pytest.approx(expected, abs=1e-15)


def test_rates_as_they_are_defined() -> None:
    def at(spec: str, t: float) -> Any:
        return parts.make("rate", spec).at(t)

    assert at("constant:0.3", 7.0) == 0.3
    assert at("inverse:0.3", 7.0) == pytest.approx(0.3 / 7)
    assert at("inverse-sqrt:0.3", 7.0) == pytest.approx(0.3 / math.sqrt(7))
    assert at("power:0.3,10,0.7", 7.0) == pytest.approx(0.3 * (10 / 16) ** 0.7)


@pytest.mark.parametrize("name", sorted(RATES))
def test_rates_start_at_eta0_and_never_rise(name: str) -> None:
    rate = parts.make("rate", f"{name}:eta0=0.25")
    steps = [rate.at(float(t)) for t in range(1, 200)]
    assert steps[0] == 0.25
    assert all(later <= earlier for earlier, later in pairwise(steps))
    assert rate.steady() == (steps[0] == steps[-1])


def modules() -> list[str]:
    found = pkgutil.walk_packages(thresher.__path__, "thresher.")
    return ["thresher", *(module.name for module in found if not module.name.endswith("__main__"))]


def test_the_examples_in_docstrings_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)
    few = "thresher.parts.", "thresher.batch.", "thresher.sklearn.classifier", "thresher.sklearn.regressor"
    tried = []
    for name in modules():
        module = importlib.import_module(name)
        if ">>> " in Path(str(module.__file__)).read_text("utf-8"):
            with case(name), compiled_if(not name.startswith(few)):  # the others learn from many rows
                failed, _ = doctest.testmod(module)
                assert not failed
            tried.append(name)
    assert len(tried) > 50


@pytest.mark.parametrize("kind", sorted(parts.REGISTRY))
def test_every_part_shows_an_example_and_every_rule_its_reference(kind: str) -> None:
    for name, cls in parts.REGISTRY[kind].items():
        text = cls.__doc__ or ""
        assert ">>> " in text, f"{name} has no example"
        if kind == "rule":
            assert "Reference:" in text, name
            assert "Lazy update: " in text, name


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 7.0, np.inf]) | st.floats(0, 10), min_size=1), st.data())
def test_the_smallest_but_so_many(values: list[float], data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, len(values) - 1))
    assert smallest(np.array(values), rank) == sorted(values)[rank]


@pytest.mark.parametrize("cls", [*parts.REGISTRY["rule"].values(), *parts.REGISTRY["rate"].values()])
def test_what_is_tuned_can_be(cls: Any) -> None:
    """Numbers of the part, between two that it takes, round its default."""
    for name, (low, high) in (cls.TUNED or {}).items():
        default = cls._field_defaults[name]
        assert 0 < low < default < high
        for end in (low, high):
            assert getattr(cls(**{name: end}), name) == end
