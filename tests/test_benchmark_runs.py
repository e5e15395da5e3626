"""Runs of the benchmarks as JSON: written after each benchmark, and compared."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import record, report
from benchmarks.report import Goal
from benchmarks.setting import Setting

SETTING = Setting(Path("loads"), None, 0.1, 3, 20, ())


def run_with(path: Path, **walls: str) -> dict[str, Any]:
    """A run of one benchmark, written and read again."""
    report.taken()
    run = record.Run(SETTING, path)
    report.table("a pass", ("", "wall s", "least", "peak MB"), [(k, "1.0", v, "") for k, v in walls.items()])
    run.add("learning", report.taken(), [Goal("fast", "<= 1", "0.5", True)])
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_run_holds_what_was_printed_and_where(tmp_path: Path) -> None:
    found = run_with(tmp_path / "new" / "run.json", sgd="0.5", rda="1,200.25")
    (table,) = found["benchmarks"]["learning"]
    assert table["title"] == "a pass"
    assert table["rows"] == [["sgd", "1.0", "0.5", ""], ["rda", "1.0", "1,200.25", ""]]
    assert found["goals"] == [
        {"benchmark": "learning", "what": "fast", "goal": "<= 1", "measured": "0.5", "met": True}
    ]
    assert found["versions"].keys() == {*report.PACKAGES}
    assert found["scale"] == 0.1


def test_a_slowdown_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = run_with(tmp_path / "a", sgd="0.5", rda="1,000", pa="1", cw="1")
    new = run_with(tmp_path / "b", sgd="0.6", rda="1,020", pa="0.5", scw="1")
    assert [*record.compared(old, new)] == [
        ("learning", "sgd", "least", 0.5, 0.6),
        ("learning", "rda", "least", 1000.0, 1020.0),
        ("learning", "pa", "least", 1.0, 0.5),
    ]
    capsys.readouterr()
    record.show({**old, "scale": 1}, new)
    out = capsys.readouterr().out
    assert "differ in scale: 1 and 0.1" in out
    assert "2 of 3 figures differ by more than 10%" in out
    assert [line.split()[0] for line in out.splitlines()[-2:]] == ["sgd", "pa"]
