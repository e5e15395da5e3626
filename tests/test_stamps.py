"""Compiled code of a user's own rule is cached by the code of the rule in memory, not by its file."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.processes import run
from tests.rule_text import READ, RULE
from thresher.engine.compile import codecache
from thresher.engine.compile.codecache import stamp


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


def test_a_source_that_was_edited_since_it_was_read_shares_no_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the edit has been taken back: what was imported may be either text."""
    name, copy = "thresher.data.features.crossing", tmp_path / "copy.py"
    source = codecache.SOURCES[name]
    copy.write_text(source.text)
    same = source._replace(path=copy, state=codecache._state_of(copy))
    monkeypatch.setitem(codecache.SOURCES, name, same)
    hashed = codecache._digest.__wrapped__
    before = hashed(name)
    assert before == hashed(name)
    os.utime(copy, ns=(1, 1))
    found = {before, hashed(name)}
    copy.unlink()
    found.add(hashed(name))
    monkeypatch.setattr(codecache, "THIS_PROCESS", b"another")
    assert len({*found, hashed(name)}) == 3, "one for the text, one for each process"
