"""What is made up to compile ahead can be learned by any model."""

import time
from typing import Any

import numpy as np
import pytest

from tests.plain import not_compiled
from tests.streams import RULES, has_rate, settings_of
from thresher.engine.compile.notices import compiling, seconds_compiling
from thresher.learning.model.model import Model
from thresher.learning.training import ahead

HEADS = [
    *(("logistic", "one"), ("squared", "one"), ("poisson", "one"), ("wealth", "one")),
    ("softmax", "classes:3-5"),
]
HEADS += [("hinge", "labels:1-3"), ("absolute", "values:2"), ("logistic", "classes:2")]


@pytest.fixture
def few_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of few features, which plain Python learns at once."""
    monkeypatch.setattr(ahead, "FEATURES", 64)


@pytest.mark.usefixtures("few_features")
@pytest.mark.parametrize(("loss", "outputs"), HEADS)
def test_any_model_learns_what_is_made_up(loss: str, outputs: str) -> None:
    more: list[dict[str, Any]] = [{}, {"batch": 3}, {"admit": 2}, {"store": "hashed:8"}]
    for options in [*more, {"average": True}] if outputs == "one" else more:
        with not_compiled():
            model = Model("sgd", loss, outputs=outputs, **options)
            ahead.learn_anything(model)
        assert model.examples == 2
        assert np.isfinite(model.tally.loss)


@pytest.mark.usefixtures("few_features")
@pytest.mark.parametrize("name", RULES)
def test_any_rule_learns_what_is_made_up(name: str) -> None:
    spec = settings_of(name)[0]
    with not_compiled():
        model = Model(spec, rate="constant:0.1" if has_rate(spec) else None)
        ahead.learn_anything(model)
    assert model.examples == 2


def test_time_spent_compiling_is_counted_once_however_many_compile() -> None:
    before = seconds_compiling()
    with compiling(), compiling():
        time.sleep(0.05)
    found = seconds_compiling() - before
    assert 0.05 <= found < 0.09
    time.sleep(0.02)
    assert seconds_compiling() - before == pytest.approx(found)
