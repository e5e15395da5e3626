"""The examples run, and the statements on the pages for users of scikit-learn and Vowpal Wabbit hold."""

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np

from examples import sklearn_clicks, sklearn_genes, sklearn_text
from thresher.cli.app import command_of
from thresher.parts import make


def test_texts(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.argv", ["sklearn_text.py"])
    sklearn_text.main()
    output = capsys.readouterr().out
    plain, rare = (float(found) for found in re.findall(r"accuracy (0\.\d+) with", output))
    assert plain > 0.75
    assert rare > 0.8
    heavy, known = (int(n.replace(",", "")) for n in re.findall(r"([\d,]+) of ([\d,]+) words", output)[0])
    assert 0 < heavy < known / 4
    words = dict(re.findall(r"^([a-z.]+) {2,}(.+)$", output, re.MULTILINE))
    assert len(words) == 8
    assert {"space", "moon", "orbit"} <= set(words["sci.space"].split())


def test_clicks(capsys: Any) -> None:
    sklearn_clicks.main()
    output = capsys.readouterr().out
    assert "predicts the same, bit for bit: True" in output
    learned, share = (float(found) for found in re.findall(r": (0\.\d+)$", output, re.MULTILINE))
    assert learned < share


def test_genes(monkeypatch: Any) -> None:
    monkeypatch.setattr(sklearn_genes, "GENES", 4000)
    levels, groups, differing = sklearn_genes.simulate()
    search = sklearn_genes.search_penalty(levels, groups)
    assert search.best_score_ > 0.9
    found = sklearn_genes.select_genes(levels, groups, 8)
    stable = found.keys[found.kept]
    assert np.isin(stable, differing).sum() >= 8
    assert np.isin(stable, differing, invert=True).sum() <= 1


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
        *(("rule", "fobos:l1=0.1,l2=0.1"), ("rule", "adagrad-fobos:l2=1"), ("rate", "inverse-sqrt")),
    ):
        make(kind, spec)
