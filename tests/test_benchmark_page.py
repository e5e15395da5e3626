"""docs/benchmarks.md is drawn from the runs that are kept, and a new run is compared with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import record
from benchmarks.__main__ import BENCHMARKS
from benchmarks.page import FIGURE, HEADLINES, MARK, PAGE, drawn, figure
from benchmarks.record import compare_with_kept, kept


def made(began: str, **seconds: str) -> dict[str, Any]:
    """A run with a table of one row for each benchmark."""
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


def test_the_page_is_what_the_kept_runs_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert drawn(text, kept()) == text, "run `make pages`"


def test_every_benchmark_is_shown() -> None:
    shown = {mark.group(2) for mark in MARK.finditer(PAGE.read_text(encoding="utf-8"))}
    assert {*BENCHMARKS} <= shown


def test_the_page_has_no_table_of_figures_without_a_run() -> None:
    rest = MARK.sub("", PAGE.read_text(encoding="utf-8"))
    assert len(re.findall(r"^\|---", rest, re.MULTILINE)) == 1, "that of the first run"


def test_headlines_name_figures_of_the_kept_runs() -> None:
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
