"""The example of a user's own rule: it equals its dense recursion, and its script runs."""

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
from tests.streams import fingerprint, model_of, read_weights, stream
from thresher import parts
from thresher.parts.registry import REGISTRY

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def own_rule() -> Iterator[ModuleType]:
    """The imported example; its rule is registered while these tests run."""
    yield importlib.import_module("examples.own_rule")
    REGISTRY["rule"].pop("adagrad-l1", None)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("spec", ["adagrad-l1:l1=0.02", "adagrad-l1:0.3,0.02,1", "adagrad-l1:l1=0"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_it_equals_its_dense_recursion(spec: str, loss: str, own_rule: ModuleType) -> None:
    data = stream(41, 300, domain="real" if loss == "squared" else "binary")
    model = model_of(spec, loss, intercept=False)
    model.learn(data.chunk)
    rule = parts.make("rule", spec)
    w, squares = np.zeros(12), np.zeros(12)
    for x, y, importance in zip(data.X, data.y, data.importance, strict=True):
        g = importance * model.loss.value_slope(float(w @ x), float(y))[1] * x
        squares += g * g
        a = rule.delta + np.sqrt(squares)
        moved = w - rule.eta * g / a
        w = np.sign(moved) * np.maximum(np.abs(moved) - rule.eta * rule.l1 / a, 0.0)
    assert np.abs(read_weights(model, 12) - w).max() <= 1e-12
    assert np.abs(w).max() > 0.1


@pytest.mark.usefixtures("plainly")
def test_it_obeys_the_laws_of_cutting(own_rule: ModuleType) -> None:
    data = stream(42, 100)
    whole, pieces = model_of("adagrad-l1"), model_of("adagrad-l1")
    whole.learn(data.chunk)
    for i in range(100):
        pieces.learn(data.chunk.rows(i, i + 1))
    assert fingerprint(whole) == fingerprint(pieces)


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
