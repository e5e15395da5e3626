"""A model that diverges: the error names what is to blame, and its remedies work on the data at hand."""

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from thresher import Chunk, DataError, DivergedError, Model, train
from thresher.learning.diagnostics.advice import scale_remedy, step_size
from thresher.learning.model.recipe import Recipe
from thresher.parts.registry import REGISTRY, part

pytestmark = [
    pytest.mark.usefixtures("plainly", "as_commands_say"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::thresher.TroubleWarning"),
]

N = 150
CHANCE = np.random.default_rng(0)
SITE, VALUE = CHANCE.integers(0, 2, N), CHANCE.random(N)
SMALL: dict[str, dict[str, Any]] = {
    "sgd": {"rate": "constant:1e-3"},
    "ftrl": {"alpha": 1e-3},
    "perceptron": {"rule": "perceptron:eta=1e-3"},
    "ft-ftrl": {},
    "pegasos": {},
}
"""A smaller step size of each rule, if it has one."""


def table(labels: float = 1.0, values: float = 1.0) -> pa.Table:
    sites = [f"s{site}" for site in SITE]
    return pa.table({"label": labels * (SITE + VALUE), "site": sites, "hour": values * (VALUE + 0.5)})


def error_of(data: Any, **options: Any) -> str:
    try:
        train(data, loss="squared", **options)
    except DivergedError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("rule", "rate", "scale", "labels", "values"),
    [
        *(("sgd", None, None, 1.0, 1e3), ("sgd", "constant:3", None, 1.0, 1e18)),
        *(("sgd", "constant:30", "max-abs", 1.0, 1e18), ("sgd", "constant:3", None, 1e20, 1e20)),
        *(("ftrl", None, None, 1.0, 1e30), ("ftrl", None, None, 1e18, 1.0)),
        *(("perceptron", None, None, 1.0, 1e18), ("pegasos", None, None, 1.0, 1e3)),
        *(("pegasos", None, "max-abs", 1.0, 1e3), ("ft-ftrl", None, None, 1e25, 1.0)),
        ("ft-ftrl", None, None, 1e20, 1e20),
    ],
)
def test_remedies_work(rule: str, rate: str | None, scale: str | None, labels: float, values: float) -> None:
    data = table(labels, values)
    given: dict[str, Any] = {"rule": rule, "rate": rate, "scale": scale}
    said = error_of(data, **given)
    assert "is not finite" in said
    tried = 0
    if "divide the labels" in said:
        data = table(1.0, values)
    if "take --rule ft-ftrl or normalized" in said:
        for other in ("ft-ftrl", "normalized"):
            assert error_of(data, rule=other, scale=scale) == ""
            tried += 1
    elif "divide the labels" in said:
        assert error_of(data, **given) == ""
        tried += 1
    if "--scale max-abs" in said or "a smaller step size" in said:
        options = {**given, "scale": "max-abs" if "--scale" in said else scale}
        smaller = SMALL[rule] if "a smaller step size" in said else {}
        assert error_of(data, **options | smaller) == ""
        tried += 1
    if "--dtype float64" in said:
        assert error_of(table(labels, values), **given, dtype="float64") == ""
        tried += 1
    assert tried


def test_what_is_to_blame_is_named() -> None:
    said = error_of(table(values=1e18), rule="sgd", rate="constant:3")
    assert "(large values: column hour is " in said
    assert "--scale max-abs) and use a smaller step size (rate, currently constant:eta0=3.0)" in said
    assert "take --rule ft-ftrl or normalized, which need neither scaling nor --rate" in said
    assert "float64" not in said
    assert "divide the labels, which reach 1" in error_of(table(1e25), rule="ftrl")
    rows = Chunk.of_rows([(1.0, {1: 1.0, 2: 5.0, 7: 3e15})] * 40)
    model = Model("sgd", "squared", rate="constant:9")
    with pytest.raises(DivergedError, match=r"feature 7 is 3e\+15, feature 2"):
        model.learn(rows)
    # `eta` of scw is a probability.
    assert step_size(Recipe("scw", "hinge")) == ""
    assert step_size(Recipe("pa", "hinge")) == " (eta, currently 1)"
    assert "smaller step size" not in scale_remedy(Recipe("sgd", "logistic"))
    chosen = scale_remedy(Recipe("sgd", "logistic", rate="constant:3"))
    assert "and use a smaller step size (rate, currently constant:eta0=3.0)" in chosen


class Amounts(NamedTuple):
    """The deviance of the gamma distribution, infinite for a label of 0."""

    scale: float = 1.0

    def value_slope(self, margin: Any, y: Any) -> Any:
        ratio = y * math.exp(-margin)
        return ratio - math.log(ratio) - 1.0 if ratio > 0.0 else math.inf, 1.0 - ratio


@pytest.mark.parametrize("domain", ["nonnegative", "positive"])
def test_a_label_whose_loss_is_infinite_is_at_fault(domain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "loss", dict(REGISTRY["loss"]))
    loss = part("loss")(type("Amounts", (Amounts,), {"DOMAIN": domain}))()
    X, y = np.ones((9, 1)), np.full(9, 2.0)
    assert np.isfinite(train(X, y, loss=loss, passes=1).predict(X)).all()
    y[4] = 0.0
    said = {
        "nonnegative": "the loss of example 5 is not finite: it is infinite for the label 0, whatever is",
        "positive": "5: expected a label above 0, found 0",
    }[domain]
    with pytest.raises((DivergedError, DataError), match=said):
        train(X, y, loss=loss, passes=1)
