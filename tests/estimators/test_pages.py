"""The statements on the pages for users of scikit-learn and Vowpal Wabbit hold."""

import doctest
import re
from pathlib import Path

from thresher.cli.app import command_of
from thresher.parts import make

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_examples_on_the_page_hold() -> None:
    done = doctest.testfile(str(DOCS / "sklearn.md"), module_relative=False)
    assert done.attempted > 15
    assert done.failed == 0


def test_flags_and_specs_of_the_table_are_there() -> None:
    options = [option for name in ("train", "serve") for option in command_of(name).params]
    known = {flag for option in options for flag in (*option.opts, *option.secondary_opts)}
    text = (DOCS / "from-vw.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| ")][1:]
    flags = [flag for row in rows for flag in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row)]
    assert len(flags) > 25
    assert set(flags) - known <= {"--output"}, "of predict"
    specs = [found for row in rows for found in re.findall(r"--(rule|loss|rate) ([a-z][^` |]*)", row)]
    assert len(specs) >= 10
    for kind, spec in specs:
        make(kind, re.sub(r"=[A-Z]\b", "=0.25", spec))
    for kind, spec in (
        ("rule", "fobos:l1=0.1,l2=0.1"),
        ("rule", "adagrad-fobos:l2=1"),
        ("rate", "inverse-sqrt"),
    ):
        make(kind, spec)
