"""Runs of the benchmarks: written, compared, and drawn in docs/benchmarks.md."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import record, report
from benchmarks.__main__ import BENCHMARKS
from benchmarks.page import FIGURE, HEADLINES, MARK, PAGE, drawn, figure
from benchmarks.record import compare_with_kept, kept
from benchmarks.report import Goal
from benchmarks.setting import Setting


def made(began: str, **seconds: str) -> dict[str, Any]:
    tables = {
        name: [{"title": f"pass of {name}", "head": ["", "wall s"], "rows": [["sgd --l1 2", wall]]}]
        for name, wall in seconds.items()
    }
    goals = [
        {"benchmark": name, "what": f"fast {name}", "goal": "<= 1", "measured": wall, "met": float(wall) <= 1}
        for name, wall in seconds.items()
    ]
    return {
        "machine": "a machine",
        "python": "3.11",
        "versions": {"thresher": "1.0", "river": None},
        "commit": "c0ffee",
        "began": began,
        "scale": 1.0,
        "repeat": 3,
        "benchmarks": tables,
        "goals": goals,
    }


def test_the_page_shows_the_kept_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert drawn(text, kept()) == text, "run `make pages`"
    shown = {mark.group(2) for mark in MARK.finditer(PAGE.read_text(encoding="utf-8"))}
    assert {*BENCHMARKS} <= shown
    rest = MARK.sub("", PAGE.read_text(encoding="utf-8"))
    assert len(re.findall(r"^\|---", rest, re.MULTILINE)) == 1, "that of the first run"
    runs = kept()
    named = [mark.groups() for mark in FIGURE.finditer(HEADLINES.read_text(encoding="utf-8"))]
    assert len(named) > 15
    assert all(figure(runs, *name) for name in named)


def test_a_table_is_of_the_newest_run_that_has_it() -> None:
    runs = [made("2026-02-02T10:00", days="2"), made("2026-01-01T10:00", days="3", tune="0.5")]
    page = "".join(
        f"<!-- run: {what} -->\nold\n<!-- end -->\n" for what in ("days", "tune", "goals", "machine")
    )
    text = drawn(page, runs)
    assert "old" not in text
    assert re.findall(r"`sgd --l1 2` \| (\S+)", text) == ["2", "0.5"]
    assert re.findall(r"fast (\w+) \| <= 1 \| (\S+) \| (\w+)", text) == [
        ("tune", "0.5", "yes"),
        ("days", "2", "no"),
    ]
    assert re.findall(r"^\* (.+?): .+(2026-\S+),", text, re.MULTILINE) == [
        ("`tune`", "2026-01-01"),
        ("`days`", "2026-02-02"),
    ]
    assert drawn(text, runs) == text


def test_a_new_run_is_compared_with_the_last_of_such_a_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import json

    elsewhere = {**made("2026-03-03T10:00", days="1"), "machine": "another"}
    for k, run in enumerate(
        [made("2026-01-01T10:00", days="3"), made("2026-02-02T10:00", days="2"), elsewhere]
    ):
        (tmp_path / f"{k}.json").write_text(json.dumps(run))
    monkeypatch.setattr(record, "KEPT", tmp_path)
    compare_with_kept(made("2026-04-04T10:00", days="4"))
    said = capsys.readouterr().out
    assert "the run of 2026-02-02, commit c0ffee" in said
    assert re.search(r"sgd --l1 2 +days +wall s +2 +4 +2.00", said)
    compare_with_kept(made("2026-04-04T10:00", tune="4"))
    assert not capsys.readouterr().out


SETTING = Setting(Path("loads"), None, 0.1, 3, 20, ())


def run_with(path: Path, **walls: str) -> dict[str, Any]:
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
