"""Compiled code gives the numbers of plain Python, is compiled once, and is never stale."""

import enum
from collections import namedtuple
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from tests.plain import not_compiled
from tests.processes import run
from tests.rule_text import READ, RULE
from tests.streams import LONG, LOSSES, RULES, Stream, case, domain_of, model_of, settings_of, stream
from thresher.data.formats.lines import line_rows
from thresher.data.formats.lines.svmlight import Svmlight
from thresher.data.text import numbers
from thresher.engine import kernels
from thresher.engine.compile import jit
from thresher.engine.compile.codecache import stamp
from thresher.engine.compile.jit import kernel
from thresher.engine.verbs import value_slope
from thresher.learning.model.model import Model


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


WORK = """
import json
from thresher.data.chunk import Chunk
from thresher.engine import kernels
from thresher.engine.compile import jit
from thresher.engine.compile import jit
from thresher.learning.model.model import Model

model = Model("sgd", "logistic", store="direct")
chunk = Chunk.of_rows([(1.0, {1: 1.0, 2: 0.5}), (-1.0, {2: 1.0})] * 20)
model.learn(chunk)
margins = model.predict(chunk)
model.predictor().predict(chunk, "probability")
model.head.losses(margins, chunk)
stats = {}
for name in ("learn", "read", "add_up", "score", "respond"):
    kernel = getattr(kernels, name)
    stats[name] = [kernel.loaded, kernel.compiled, len(kernel.entries)]
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


BESIDE = """
import json
import numpy as np
from thresher.engine.compile.jit import kernel

@kernel
def total(n):
    return np.ones(n).sum()

found = total(9)
import numba

@numba.njit
def zeros(n):
    return np.zeros(n)

used = [np.full(20, 7.7) for _ in range(2000)]
del used  # memory that is not zero is used again
print(json.dumps([found, sum(zeros(20 + k).sum() for k in range(200))]))
"""


def test_code_of_others_has_the_memory_of_numba(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(BESIDE)  # Numba needs the source of a function
    assert run("import beside", tmp_path / "cache", tmp_path) == [9.0, 0.0]


@kernel
def halve(number):  # type: ignore[no-untyped-def]
    if number < 0:
        raise ValueError("negative")
    return 0.5 * number


def test_an_error_of_compiled_code_is_raised_with_its_place() -> None:
    assert halve(3.0) == 1.5
    with pytest.raises(ValueError, match="negative") as found:
        halve(-1.0)
    assert found.value.__notes__ == [f"in halve, {__file__}:{halve.function.__code__.co_firstlineno + 3}"]


def test_kernels_are_plain_where_numba_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "PLAIN", True)
    kept = kernel(lambda number: str(number))  # not to be compiled
    assert (kept(3), kept.compiled) == ("3", 0)


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
    for name, text in FILES.items():
        (folder / name).write_text(text.replace("3.0", "5.0") if name in edited else text)


def factor(edits: int) -> float:
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


def answered(folder: Path, code: str, **files: str) -> Any:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return run(READ + code, folder / "cache", folder)


def test_a_constant_that_no_text_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = RULE.format(before="import os\nFACTOR = float(os.environ['FACTOR'])", factor="FACTOR")
    for factor in (2.0, 6.0):
        monkeypatch.setenv("FACTOR", str(factor))
        assert answered(tmp_path, "import own\nprint(json.dumps(read('own')))", own=rule) == factor


def test_an_attribute_of_a_module(tmp_path: Path) -> None:
    rule = RULE.format(before="import constants", factor="constants.FACTOR")
    code = "import own\nprint(json.dumps(read('own')))"
    for factor in (2.0, 6.0):
        assert answered(tmp_path, code, own=rule, constants=f"FACTOR = {factor}") == factor


def test_what_a_function_of_a_factory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is the same text in both processes, and so is the code of the function that it calls."""
    before = """
import os
import numba

def make(factor):
    @numba.njit
    def times(x):
        return x * factor
    return times

times = make(float(os.environ["FACTOR"]))
"""
    rule = RULE.format(before=before, factor="times(1.0)")
    for factor in (2.0, 6.0):
        monkeypatch.setenv("FACTOR", str(factor))
        assert answered(tmp_path, "import own\nprint(json.dumps(read('own')))", own=rule) == factor


def test_an_edit_of_what_is_imported_already(tmp_path: Path) -> None:
    """The running process has the old rule, the next one the new rule."""
    rule = RULE.format(before="", factor="2.0")
    edit = "path = own.__file__\ntext = open(path).read().replace('2.0', '6.0')\nopen(path, 'w').write(text)"
    code = "import own\n{}\nprint(json.dumps(read('own')))"
    assert answered(tmp_path, code.format(edit), own=rule) == 2.0
    assert answered(tmp_path, code.format("")) == 6.0


def test_what_is_the_same_is_compiled_once(tmp_path: Path) -> None:
    rule = RULE.format(before="import time\nSTARTED = time.time()\nFACTOR = 2.0", factor="FACTOR")
    code = "import own\nread('own')\nprint(json.dumps(compiled()))"
    assert answered(tmp_path, code, own=rule) == [0, 1]
    assert answered(tmp_path, code, own="# another line\n" + rule) == [1, 0]


LIMITS = np.array([1.0, 2.0])


def test_arrays_tuples_and_defaults_count() -> None:
    def made(limits: Any, limit: Any = 3.0) -> Any:
        def function(x: float, most: Any = limit) -> Any:
            return x * limits[0] + most

        return function

    one = stamp(made(LIMITS))
    assert stamp(made(LIMITS.copy())) == one
    others = [
        made(LIMITS * 2),
        made((1.0, 2.0)),
        made([1.0, 2.0]),
        made(LIMITS, 4.0),
        made(LIMITS.astype("f4")),
    ]
    assert len({one, *(stamp(other) for other in others)}) == 6


def test_members_of_enumerations_and_types_count() -> None:
    def made(value: Any) -> Any:
        return lambda x: x * value

    def kinds(**values: int) -> Any:
        return enum.Enum("Kind", values)

    values = kinds(A=1, B=2), kinds(A=2, B=1), kinds(A=1, B=2, C=1), kinds(A=1).A, kinds(A=2).A
    others = numba.float32, numba.float64, numba.float32[:], numba.float32[::1]
    found = [stamp(made(value)) for value in (*values, *others)]
    assert len({*found}) == len(found)
    assert stamp(made(kinds(A=1, B=2))) == found[0]


def test_classes_count_with_their_bases_and_the_order_of_fields() -> None:
    def made(fields: str, factor: float, way: str = "scalar") -> Any:
        def method(self: Any) -> Any:
            return self.a * factor

        method.way = way  # type: ignore[attr-defined]
        return type("Part", (type("Base", (namedtuple("Base", fields),), {"method": method}),), {})

    found = [made("a b", 2.0), made("b a", 2.0), made("a b", 3.0), made("a b", 2.0, "apart")]
    assert len({stamp(one) for one in found}) == 4
    assert stamp(made("a b", 2.0)) == stamp(found[0])


def test_an_edit_of_a_reader_leaves_the_code_of_learning_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    def stamps() -> list[str]:
        return [stamp(kernels.learn.function), stamp(line_rows.parse_lines.function, Svmlight)]

    before = stamps()
    assert stamps() == before
    monkeypatch.setattr(numbers.read_number, "__code__", (lambda *given: given).__code__)
    (learning, reading), now = before, stamps()
    assert now[0] == learning
    assert now[1] != reading, "it reads numbers"
