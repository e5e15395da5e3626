"""Compiled code gives the same numbers as plain Python, is compiled once, and is never stale."""

from pathlib import Path

import numpy as np
import pytest

from tests.plain import not_compiled
from tests.processes import run
from tests.rule_text import READ, RULE
from tests.streams import LONG, LOSSES, RULES, Stream, case, domain_of, model_of, settings_of, stream
from thresher.engine import kernels
from thresher.engine.compile.jit import Kernel, kernel
from thresher.engine.verbs import value_slope
from thresher.learning.model.model import Model

# Pure Python


def both(compiled: Model, data: Stream) -> tuple[Model, Model]:
    with not_compiled():
        plain = Model(compiled.rule, compiled.loss, dtype=str(compiled.dtype), centre=False)
        plain.learn(data.chunk)
    compiled.learn(data.chunk)
    return compiled, plain


def near(compiled: Model, plain: Model, tolerance: float) -> None:
    ours, theirs = compiled.state(), plain.state()
    for name in ("S", "B", "clock", "bclock", "tally"):
        scale = max(1.0, float(np.abs(ours[name]).max(initial=0.0)))
        assert np.abs(ours[name] - theirs[name]).max(initial=0.0) <= tolerance * scale, name
    assert compiled.weights()[0].tolist() == plain.weights()[0].tolist()


@pytest.mark.parametrize("name", RULES)
def test_compiled_rules_are_plain_rules(name: str) -> None:
    data = stream(61, 40, 8)
    for spec in settings_of(name):
        with case(spec):
            near(*both(model_of(spec, dtype="float32"), data), 1e-5)
            if name in LONG:
                near(*both(model_of(spec), data), 1e-13)


@kernel
def look_up(loss, margins, labels, out):  # type: ignore[no-untyped-def]
    for i in range(margins.size):
        out[i, 0], out[i, 1] = value_slope(loss, margins[i], labels[i])


@pytest.mark.parametrize("loss", LOSSES)
def test_compiled_losses_are_plain_losses(loss: str) -> None:
    labels = stream(62, 60, 8, domain_of(loss)).y
    margins = np.linspace(-4, 4, len(labels))
    part, out, both = model_of("sgd", loss).loss, np.empty(len(labels)), np.empty((len(labels), 2))
    kernels.respond(part, margins, out)
    assert out == pytest.approx([part.link(float(margin)) for margin in margins], rel=1e-14)
    look_up(part, margins, labels, both)
    expected = [part.value_slope(float(m), float(y)) for m, y in zip(margins, labels, strict=True)]
    assert both == pytest.approx(np.array(expected), rel=1e-13, abs=1e-15)


# The cache, in separate processes

WORK = """
import json
import numba
from thresher.data.chunk import Chunk
from thresher.engine import kernels
from thresher.engine.compile import jit
from thresher.learning.model.model import Model

model = Model("sgd", "logistic", store="direct")
chunk = Chunk.of_rows([(1.0, {1: 1.0, 2: 0.5}), (-1.0, {2: 1.0})] * 20)
model.learn(chunk)
margins = model.predict(chunk)
model.readout().predict(chunk, "probability")
model.head.losses(margins, chunk)
stats = {}
for name in ("learn", "read", "add_up", "score", "respond"):
    compiled = getattr(kernels, name).compiled
    hits, misses = (sum(counts.values()) for counts in compiled.stats[1:])
    stats[name] = [hits, misses, len(compiled.signatures)]
print(json.dumps([stats, model.weights()[1].tolist(), model.tally.loss]))
"""


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    first, *learned = run(WORK, tmp_path)
    assert first["learn"][0] == 0
    assert first["learn"][1] == 1
    second, *again = run(WORK, tmp_path)
    assert learned == again
    for name, (hits, misses, signatures) in second.items():
        assert misses == 0, f"{name} is compiled again"
        assert hits == signatures > 0, name


# A user's own rule in four files: its own, and three that it imports directly or indirectly.

OWN = RULE.format(
    before="""
from thresher.engine.compile.jit import scalar
from second import scaled
import third

@scalar
def tripled(eta):
    return 3.0 * eta
""",
    factor="third.fourth.scaled(scaled(tripled(self.eta)))",
)
HELPER = """
from thresher.engine.compile.jit import scalar

@scalar
def scaled(eta):
    return 3.0 * eta
"""
ANSWER = """
print(json.dumps([read("own:eta=0.5"), *compiled()]))
"""
FILES = {"own.py": OWN, "second.py": HELPER, "third.py": "import fourth", "fourth.py": HELPER}


def write_own(folder: Path, edited: tuple[str, ...] = ()) -> None:
    """The files, with the constant 3 changed to 5 in the edited ones."""
    for name, text in FILES.items():
        (folder / name).write_text(text.replace("3.0", "5.0") if name in edited else text)


def factor(edits: int) -> float:
    """0.5 times the constants."""
    return 0.5 * 3.0 ** (3 - edits) * 5.0**edits


def test_an_edited_rule_is_never_served_stale(tmp_path: Path) -> None:
    def looked_up(*edited: str) -> tuple[int, int]:
        write_own(tmp_path, edited)
        found, hits, misses = run(f"import own{READ}{ANSWER}", tmp_path / "cache", tmp_path)
        assert found == pytest.approx(factor(len(edited)))
        return hits, misses

    compiled, found = (0, 1), (1, 0)
    assert looked_up() == compiled
    assert looked_up() == found, "compiled again though nothing changed"
    assert looked_up("own.py") == compiled
    assert looked_up("own.py", "second.py") == compiled
    assert looked_up("own.py", "second.py", "fourth.py") == compiled
    assert looked_up() == found, "what was compiled before the edits is still good"


def test_every_kernel_has_its_function_in_plain_python() -> None:
    found = [value for value in vars(kernels).values() if isinstance(value, Kernel)]
    assert {kernel.__name__ for kernel in found} >= {
        "learn",
        "read",
        "add_up",
        "score",
        "respond",
        "idle_rows",
    }
    for one in found:
        assert one.function.__code__ is one.compiled.py_func.__code__
