"""Parts that users write: the example obeys the laws; what is wrong with one is said in one line."""

import importlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.forks import forked
from tests.streams import Vector
from thresher import parts
from thresher.engine.compile.jit import kernel
from thresher.engine.protocol import PartError
from thresher.engine.verbs import at, step, value_slope, weight
from thresher.parts.registry import REGISTRY, SpecError, part
from thresher.testing import check_rule


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("rule", "loss", "rate"):
        monkeypatch.setitem(REGISTRY, kind, dict(REGISTRY[kind]))


def loss_with(default: Any = 0.1, **changes: Any) -> Any:
    class Mine(NamedTuple):
        e: Any = default

        def value_slope(self, margin: Any, y: Any) -> Any:
            return (margin - y) ** 2, margin - y

    return changed(Mine, changes)


def changed(cls: Any, changes: dict[str, Any]) -> Any:
    for name, value in changes.items():
        setattr(cls, name, value)
    return cls


def rising(self: Any, margin: float) -> float:
    return 1 / (1 + float(np.exp(-margin)))


def plain_rule() -> Any:
    class Mine(NamedTuple):
        e: float = 0.1

        def weight(self, S: Any, j: Any, now: Any) -> Any:
            return S[j, 0]

        def step(self, S: Any, j: Any, w: Any, x: Any, slope: Any, now: Any) -> None:
            S[j, 0] = w - self.e * slope * x

    return Mine


def rule_of(**changes: Any) -> Any:
    return changed(plain_rule(), {"SLOTS": ("w",), **changes})


BINARY = {"DOMAIN": "binary", "PROBABILITY": True}


@pytest.mark.parametrize(
    ("kind", "cls", "said"),
    [
        (
            "loss",
            loss_with(LIMITS={"e": "positive"}),
            r"loss Mine: LIMITS\['e'\] must be one of .'>= 0', .*; not 'positive'",
        ),
        ("loss", loss_with(LIMITS={"f": "> 0"}), r"loss Mine: LIMITS names 'f'; its fields are e"),
        ("rule", rule_of(PENALTIES=("l1",)), r"rule Mine: PENALTIES names 'l1'; its fields are e"),
        ("loss", loss_with(**BINARY), r"loss Mine: PROBABILITY = True needs link\(self, margin\)"),
        ("loss", loss_with(PROBABILITY=True, link=rising), r'PROBABILITY = True needs DOMAIN = "binary"'),
        ("rule", rule_of(SLOTS="w"), r"rule Mine: SLOTS must be a tuple of names, such as \('w',\), not 'w'"),
        ("rule", rule_of(DTYPE="float16"), r"rule Mine: DTYPE must be float32 or float64, not 'float16'"),
        ("rule", rule_of(tick=lambda self, clock: None), r"rule Mine has tick, but no CLOCK ="),
        (
            "rule",
            rule_of(CLOCK=("t",), tick=lambda self, clock: clock[1]),
            r"rule Mine: tick uses .* there is not: SLOTS = \('w',\), CLOCK = \('t',\)",
        ),
        ("rule", rule_of(weight=lambda self, S, j, now: S[j, 1]), r"rule Mine: weight uses a column of S"),
    ],
)
def test_a_wrong_declaration_is_refused(kind: str, cls: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said) as caught:
        part(kind)(cls)
    assert "\n" not in str(caught.value)
    assert "mine" not in REGISTRY[kind]


def test_the_decorator_takes_what_a_class_declares() -> None:
    Mine = plain_rule()
    with pytest.raises(TypeError, match=r"a rule cannot declare SLOT; it can declare AUTOMATIC, .*, SLOTS"):
        part("rule", SLOT=("w",))
    made: Any = part("rule", SLOTS=("w",), LIMITS={"e": "> 0"}, DTYPE="float64")(Mine)
    assert (made.SLOTS, made.DTYPE, made.CLOCK) == (("w",), "float64", ("unused",))
    with pytest.raises(SpecError, match="e must be > 0"):
        Mine(e=0.0)


def test_what_a_first_step_cannot_know_is_left_to_the_compiler() -> None:
    """A name that the module defines below the class, and a number that Python cannot compute."""
    part("rule")(rule_of(weight=lambda self, S, j, now: defined_later(S[j, 0])))  # type: ignore[name-defined]  # noqa: F821
    part("rule")(rule_of(weight=lambda self, S, j, now: 1 / 0))


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (
            lambda self, margin: 5.0,
            r"link of a PROBABILITY must rise within \[0, 1\]; .* it is 5, 5, 5",
        ),
        (lambda self, margin: None, r"mine: link must return a number; at margin -30 it is None"),
        (
            lambda self, margin: 1 - rising(self, margin),
            r"of a PROBABILITY must rise .* and 30 it is 1, 0.5, ",
        ),
        (lambda self, margin: self.f, r"mine: link fails at margin -30: AttributeError: .* no attribute 'f'"),
    ],
)
def test_a_link_gives_probabilities(link: Callable[..., Any], said: str) -> None:
    part("loss")(loss_with(**BINARY, link=link))
    with pytest.raises(SpecError, match=said):
        parts.make("loss", "mine:e=0.5")


def test_a_spec_needs_defaults() -> None:
    class Bare(NamedTuple):
        e: float

        def value_slope(self, margin: Any, y: Any) -> Any:
            return margin, 1.0

    made = part("loss")(Bare)(0.5)
    assert parts.make("loss", made) is made
    for spec in ("bare", "bare:e=1"):
        with pytest.raises(SpecError, match=r"bare has no default for e, .* such as e:"):
            parts.make("loss", spec)


@kernel
def look_up(loss, margin, y):  # type: ignore[no-untyped-def]
    value, slope = value_slope(loss, margin, y)
    return value + slope


@kernel
def move(rule, S, now):  # type: ignore[no-untyped-def]
    step(rule, S, 0, weight(rule, S, 0, now), 1.0, 0.5, now)


def forgetful(self: Any, margin: Any, y: Any) -> Any:
    if margin > y:
        return 1.0, 1.0
    return None


def mixed(self: Any, margin: Any, y: Any) -> Any:
    if margin > y:
        return 1.0, 1.0
    return 1.0, "a"


def lost(self: Any, margin: Any, y: Any) -> Any:
    return nowhere(margin), 1.0  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("method", "line", "said"),
    [
        (forgetful, 0, r"must return two numbers, .* from every branch, not \(float64, float64\) or None"),
        (lambda self, margin, y: 1.0, 0, r"must return two numbers, .*, not float64"),
        (mixed, 0, r"cannot be compiled: Can't unify return type from .*(Literal|unicode_type)"),
        (lambda self, margin, y: (self.f, 1.0), 0, r"compiled: Unknown attribute 'f' of type Mine"),
    ],
)
def test_a_loss_that_cannot_be_compiled_is_named(method: Any, line: int, said: str) -> None:
    method.__name__ = "value_slope"
    loss = part("loss")(loss_with(value_slope=method))()
    for _ in range(2):  # Numba does not try again what has failed
        with pytest.raises(PartError) as caught:
            look_up(loss, 0.5, 1.0)
    place = f"({__file__}, line {method.__code__.co_firstlineno + line})"
    assert str(caught.value).startswith(f"loss Mine: value_slope {place} ")
    assert re.search(said, str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (lambda self, S, j, now: None, "must return a number, from every branch, not None"),
        (lambda self, S, j, now: [S[j, 0]], "cannot be compiled: .* makes or returns list.*: compute with"),
    ],
)
def test_a_rule_that_cannot_be_compiled_is_named(method: Any, said: str) -> None:
    method.__name__ = "weight"
    rule = part("rule")(rule_of(weight=method))()
    with pytest.raises(PartError, match=rf"rule Mine: weight \(.*, line {method.__code__.co_firstlineno}\)"):
        move(rule, np.zeros((1, 1)), (0.0,))


def plain_helper(t: float) -> float:
    return 1 / t


def rate_with(method: Callable[..., Any]) -> Any:
    class Mine(NamedTuple):
        e: float = 0.1

    method.__name__ = "at"
    return part("rate")(changed(Mine, {"at": method}))


def test_a_rate_is_named_and_gives_a_number() -> None:
    rate = rate_with(lambda self, t: plain_helper(t))
    rule = part("rule")(rule_of(weight=lambda self, S, j, now: S[j, 0] * at(self.e, 1.0)))
    said = r"rate Mine: at \(.*\) cannot be compiled: .*'plain_helper'.*: decorate it with numba.njit"
    for _ in range(2):
        with pytest.raises(PartError, match=said):
            move(tuple.__new__(rule, [rate()]), np.zeros((1, 1)), (0.0,))
    for method, said in ((lambda self, t: None, "it is None"), (lambda self, t: self.f, "no attribute 'f'")):
        with pytest.raises(SpecError, match=rf"mine: at .* at step 1.*{said}"):
            rate_with(method)()


ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def own_rule() -> Iterator[ModuleType]:
    """The imported example; its rule is registered while these tests run."""
    yield importlib.import_module("examples.own_rule")
    REGISTRY["rule"].pop("adagrad-l1", None)


def dense(rule: Any, loss: Any, X: Vector, y: Vector, importance: Vector) -> Vector:
    w, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for x, label, times in zip(X, y, importance, strict=True):
        g = times * loss.value_slope(float(w @ x), float(label))[1] * x
        squares += g * g
        a = rule.delta + np.sqrt(squares)
        moved = w - rule.eta * g / a
        w = np.sign(moved) * np.maximum(np.abs(moved) - rule.eta * rule.l1 / a, 0.0)
    return w


@pytest.mark.parametrize("spec", ["adagrad-l1:l1=0.02", "adagrad-l1:l1=0"])
@pytest.mark.usefixtures("own_rule")
def test_it_obeys_the_laws(spec: str) -> None:
    check_rule(spec, oracle=dense)


def test_its_script_runs() -> None:
    begin = f"import runpy\nrunpy.run_path({str(ROOT / 'examples' / 'own_rule.py')!r}, run_name='__main__')"
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with forked([], begin, cwd=ROOT, env=dict(os.environ), text=True, **pipes) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    words = out.split()
    assert words[:2] == ["progressive", "loss"]
    assert 0.1 < float(words[2]) < 0.4
    assert 0 < int(words[4]) < int(words[6]) == 13_104
    assert all("compiling" in line for line in err.splitlines())
