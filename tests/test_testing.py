"""`thresher.testing`: rules and losses that obey the laws pass, and of others it says what is broken."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests import laws as own_laws
from tests.commands import HERE
from tests.own_packages import TEMPLATE, install_template
from tests.streams import KINDS, kinds_of, stream
from thresher.learning.model.model import Model
from thresher.parts.registry import REGISTRY, part
from thresher.testing import LawError, check_loss, check_rule, laws

gc.freeze()
CALLS = np.zeros(1)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in REGISTRY:
        monkeypatch.setitem(REGISTRY, kind, dict(REGISTRY[kind]))


def decaying(name: str, **changes: Any) -> Any:
    """A rule whose weights shrink in each step, with other methods or attributes."""

    class Rule(NamedTuple):
        eta: float = 0.3
        decay: float = 0.02

        def weight(self, S: Any, j: Any, now: Any) -> Any:
            return S[j, 0] * (1.0 - self.decay) ** (now[0] - S[j, 1])

        def step(self, S: Any, j: Any, w: Any, x: Any, slope: Any, now: Any) -> None:
            S[j, 0] = w - self.eta * slope * x
            S[j, 1] = now[0]

        def tick(self, clock: Any) -> None:
            clock[0] += 1.0

    own = {"SLOTS": ("w", "paid"), "CLOCK": ("steps",), "PENALTIES": ("decay",), "DTYPE": "float64"}
    for attribute, value in {**own, "__qualname__": name, "__name__": name, **changes}.items():
        setattr(Rule, attribute, value)
    return part("rule")(Rule)()


def dense(rule: Any, loss: Any, X: Any, y: Any, importance: Any) -> Any:
    w = np.zeros(X.shape[1])
    for x, label, times in zip(X, y, importance, strict=True):
        slope = times * loss.value_slope(float(w @ x), float(label))[1]
        w = (1 - rule.decay) * (w - rule.eta * slope * x)
    return w


def never_paid(self: Any, S: Any, j: Any, w: Any, x: Any, slope: Any, now: Any) -> None:
    S[j, 0] = w - self.eta * slope * x
    S[j, 1] = 0.0


def of_its_row(self: Any, S: Any, j: Any, w: Any, x: Any, slope: Any, now: Any) -> None:
    S[j, 0] = w - self.eta * slope * x * (1.0 + j % 3)
    S[j, 1] = now[0]


def counting(self: Any, S: Any, j: Any, now: Any) -> Any:
    CALLS[0] += 1e-3
    return S[j, 0] * (1.0 - self.decay) ** (now[0] - S[j, 1]) + CALLS[0]


def wrong_place(self: Any, S: Any, j: Any, w: Any, x: Any, slope: Any, now: Any) -> None:
    S[j, 0] = w - self.eta * slope * x
    S[j, 2 if now[0] > 3.0 else 1] = now[0]


BROKEN: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "NeverPaid": (
        *({"step": never_paid}, LawError, "law 1, lazy is eager: after all rows, the weight of feature"),
    ),
    "OfItsRow": ({"step": of_its_row}, LawError, "law 1, lazy is eager"),
    "Counting": ({"weight": counting}, LawError, "law 1, lazy is eager"),
    "Standing": (
        *({"DRIFTS": ()}, LawError, "averaging is the mean of the path: with average=True, the weight"),
    ),
    "Freed": (
        {"idle": lambda self, S, j, w, now: abs(w) < 0.1},
        LawError,
        r"rows that idle\(\) frees are as good as new: the weight of row \d+ is",
    ),
    "WrongPlace": ({"step": wrong_place}, IndexError, "index 2 is out of bounds"),
    "Still": ({"step": lambda self, S, j, w, x, slope, now: None}, LawError, "law 1, lazy is eager"),
}


def test_a_rule_that_obeys_the_laws() -> None:
    check_rule(decaying("Decaying"), oracle=dense)
    check_rule("decaying:decay=0.1,eta=0.05", losses=["logistic", "poisson"], oracle=dense)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_named(name: str) -> None:
    changes, error, said = BROKEN[name]
    with pytest.raises(error, match=said) as caught:
        check_rule(decaying(name, **changes), oracle=dense)
    assert error is not LawError or ":eta=0.3,decay=0.02: " in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"step": of_its_row}, "law 4, the store changes nothing: in the .* store, the weight of feature"),
        ({"weight": counting}, "law 4, the store changes nothing|law 2, cutting changes nothing"),
        ({"step": lambda self, S, j, w, x, slope, now: None}, "nothing is learned from 60 rows"),
    ],
    ids=["row", "calls", "nothing"],
)
def test_without_an_oracle(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(LawError, match=said):
        check_rule(decaying("Broken", **changes))


@pytest.mark.parametrize("name", [*KINDS[::3], "averaged-perceptron"])
def test_built_in_rules_pass(name: str, plainly: None) -> None:
    """All but those that learn nothing from so few rows."""
    for spec in kinds_of(name)[:1]:
        try:
            check_rule(spec, losses=["logistic"])
        except LawError as error:
            assert "nothing is learned" in str(error)  # noqa: PT017


def test_what_differs_is_named(plainly: None) -> None:
    made, chunk = decaying("Called"), stream(11, 60, 40).chunk
    calls = iter(range(100))

    def make(**options: Any) -> Model:
        return Model(made._replace(eta=0.3 + next(calls)), centre=False, **options)

    for law in (laws.cutting, laws.looking, own_laws.stopping):
        with pytest.raises(LawError, match=r", S 'w' of row \d+ is .*, not "):
            law(make, chunk)
    with pytest.raises(LawError, match=r"in the growing store, the weight of feature \d+ is .*, not "):
        laws.stores(make, chunk, 40)


def squared(**changes: Any) -> Any:
    class Mine(NamedTuple):
        scale: float = 1.0

        def value_slope(self, margin: Any, y: Any) -> Any:
            return self.scale * (margin - y) ** 2 / 2, self.scale * (margin - y)

    for name, value in changes.items():
        setattr(Mine, name, value)
    return part("loss")(Mine)()


def absolute(self: Any, margin: Any, y: Any) -> Any:
    return abs(margin - y), 1.0 if margin > y else -1.0


def too_steep(self: Any, margin: Any, y: Any) -> Any:
    return (margin - y) ** 2 / 2, 1.1 * (margin - y)


def wrong_at_the_kink(self: Any, margin: Any, y: Any) -> Any:
    slope = 1.0 if margin > y else -1.0
    return abs(margin - y), slope if abs(margin - y) > 1e-7 else 3.0


def three_classes(self: Any, margin: Any, y: Any) -> Any:
    return (margin - y) ** 2 / 2, margin - y


def a_jump(self: Any, margin: Any, y: Any) -> Any:
    return (margin - y) ** 2 / 2 + (5.0 if margin > 0 else 0.0), margin - y


def not_of_the_difference(self: Any, margin: Any, y: Any) -> Any:
    return (margin - 2 * y) ** 2 / 2, margin - 2 * y


def test_losses_that_obey_the_laws() -> None:
    check_loss(squared())
    check_loss(squared(value_slope=absolute))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value_slope": too_steep}, "the slope is the derivative of the loss: at margin .* it is .*, not -"),
        ({"value_slope": a_jump}, "the loss does not jump: from margin -0.0.* to 0.0"),
        ({"SHIFTS": True, "value_slope": not_of_the_difference}, "SHIFTS: with margin"),
        ({"SCALES": True}, "SCALES: with margin"),
        ({"DOMAIN": "binary", "value_slope": three_classes}, "labels of 0 and -1 are one: at margin"),
    ],
    ids=["steep", "jump", "shift", "scale", "labels"],
)
def test_what_is_broken_in_a_loss_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(LawError, match=f"mine:scale=1.0: {said}"):
        check_loss(squared(**changes))


def test_a_loss_of_several_outputs_is_refused() -> None:
    with pytest.raises(TypeError, match="check_loss tries losses of one output; softmax:"):
        check_loss("softmax")


def test_a_rule_is_tried_with_one_loss_or_several() -> None:
    check_rule("sgd", losses="logistic")
    with pytest.raises(ValueError, match="losses is empty"):
        check_rule("sgd", losses=())


def test_a_slope_at_a_kink_lies_between_both_sides() -> None:
    with pytest.raises(LawError, match=r"at margin 1\.5 and label 1\.5 it is 3, not from -1 to 1"):
        laws.slope(squared(value_slope=wrong_at_the_kink), 1.5, 1.5)


def test_the_template_passes_its_own_test(tmp_path: Path) -> None:
    """It needs pytest only to be collected: the function itself runs without it."""
    install_template(tmp_path)
    test, heavy = str(TEMPLATE / "tests" / "test_rules.py"), ("pandas", "sklearn", "hypothesis")
    program = f"""
import runpy, sys
sys.modules["pytest"] = None
runpy.run_path({test!r})["test_forgetful_sgd"]()
print([name for name in {heavy} if sys.modules.get(name)])
"""
    own = {"PYTHONPATH": os.pathsep.join([str(HERE), str(tmp_path)])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | own, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
