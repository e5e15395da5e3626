"""Ctrl-C ends the recipes even where KeyboardInterrupt is swallowed, as callbacks of a compiler do."""

import sys
from typing import Any

import pytest

from experiments.papers import __main__ as recipes
from thresher.cli import signals


def test_signals_end_the_recipes_in_any_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    met: list[str] = []

    def made(*given: Any) -> int:
        met.append("made")
        raise KeyboardInterrupt

    monkeypatch.setattr(signals, "install_handlers", lambda: met.append("handlers"))
    monkeypatch.setattr(recipes, "made", made)
    monkeypatch.setattr(sys, "argv", ["papers", "--quick", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        recipes.main()
    assert (met, end.value.code) == (["handlers", "made"], 130)
