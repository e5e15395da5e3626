"""The examples run and find the known solutions."""

import re
from typing import Any

import numpy as np

from examples import sklearn_clicks, sklearn_genes, sklearn_text


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
    stable = sklearn_genes.select_genes(levels, groups, 8).get_support(indices=True)
    assert np.isin(stable, differing).sum() >= 8
    assert np.isin(stable, differing, invert=True).sum() <= 1
