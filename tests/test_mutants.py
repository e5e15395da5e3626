"""Mutants fit the sources, and the tests that must catch them are there; `make mutants` runs them."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.faults import Mutant, all_mutants, applied, replaced

ROOT = Path(__file__).parent.parent
MUTANTS = all_mutants()


def code_of(text: str) -> str:
    """Without comments and blanks."""
    return re.sub(r"#.*|\s+", "", text)


def test_each_mutant_replaces_one_text_of_one_function() -> None:
    wrong = list[str]()
    for mutant in MUTANTS:
        try:
            change = replaced(mutant, ROOT / "src")
        except LookupError as error:
            wrong.append(str(error))
        else:
            ast.parse(change.after)
            if code_of(mutant.old) == code_of(mutant.new):
                wrong.append(f"{mutant.name}: changes nothing")
    assert not wrong, "\n".join(wrong)


def test_the_tests_that_must_fail_exist() -> None:
    for mutant in MUTANTS:
        for test in mutant.fails:
            file, _, name = test.partition("::")
            assert not name or name.partition("[")[0] in functions_of(file), f"{mutant.name}: {test}"


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


CODE = """
class Rule:
    def step(self):
        if self.ready:
            self.w = 1
            self.x = 2

    def tick(self):
        self.w = 1
        self.w = 1


def step():
    pass
"""


def mutant(function: str, old: str, new: str) -> Mutant:
    return Mutant("m", "", function, old, new, [])


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("w = 1", "w = 3", "            self.w = 3\n            self.x = 2\n"),
        ("self.w = 1\nself.x = 2", "pass", "            pass\n\n"),
        (
            "if self.ready:\n    self.w = 1",
            "if True:\n    self.w = 1",
            "        if True:\n            self.w = 1\n",
        ),
    ],
)
def test_text_is_replaced_whatever_its_indentation(old: str, new: str, line: str, tmp_path: Path) -> None:
    (file := tmp_path / "rules.py").write_text(CODE)
    with applied(mutant("Rule.step", old, new), tmp_path):
        after = file.read_text()
        assert line in after
        assert after.endswith(CODE[CODE.index("    def tick") :])
    assert file.read_text() == CODE


@pytest.mark.parametrize(
    ("function", "old"),
    [("step", "pass"), ("Rule.tick", "self.w = 1"), ("Rule.step", "pass"), ("Rule.tock", "pass")],
)
def test_what_is_not_found_once_is_refused(function: str, old: str, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(CODE)
    with pytest.raises(LookupError, match=r"^m: "):
        replaced(mutant(function, old, "return"), tmp_path)
    assert replaced(mutant("rules.step", "pass", "return"), tmp_path).after.endswith("    return\n")
