"""The example of a user's own rule: it obeys the laws, and its script runs."""

import importlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.forks import forked
from tests.streams import Vector
from thresher.parts.registry import REGISTRY
from thresher.testing import check_rule

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


@pytest.mark.parametrize("spec", ["adagrad-l1:l1=0.02", "adagrad-l1:0.3,0.02,1", "adagrad-l1:l1=0"])
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
