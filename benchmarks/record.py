"""A run of the benchmarks as JSON, and the comparison of two: ``python -m benchmarks.record OLD NEW``.

A run is ``{"machine", "python", "versions", "commit", "began", "scale", "repeat", "benchmarks", "goals"}``;
`benchmarks` maps each name to its tables, ``{"title", "head", "rows"}`` as they were printed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.setting import Setting

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "build" / "bench"
KEPT = Path(__file__).parent / "runs"
"""The last whole runs, which docs/benchmarks.md shows, and with which new ones are compared"""
COMPARED = ("least", "wall s", "cpu s", "peak MB")
"""Columns that are compared: less is better. Of the first three, the first that both tables have."""
NOISE = 0.1
"""Changes up to this share are left out: machines differ as much from run to run."""


class Run:
    """Collects the tables of a run, and writes them after each benchmark, so that one stopped keeps them."""

    def __init__(self, setting: Setting, path: Path | None = None) -> None:
        now = datetime.datetime.now(datetime.UTC)
        self.path = path or RUNS / f"{now:%Y-%m-%d-%H%M%S}.json"
        self.content: dict[str, Any] = {
            "machine": f"{report.processor()}, {os.cpu_count()} cores; {platform.system()}",
            "python": platform.python_version(),
            "versions": {package: report.version(package) for package in report.PACKAGES},
            "commit": _commit(),
            "began": now.isoformat(timespec="seconds"),
            "scale": setting.scale,
            "repeat": setting.repeat,
            "benchmarks": {},
            "goals": [],
        }

    def add(self, name: str, tables: list[report.Table], goals: list[report.Goal]) -> None:
        """Add what a benchmark printed, and write the file."""
        self.content["benchmarks"][name] = [table._asdict() for table in tables]
        self.content["goals"] += [{"benchmark": name, **goal._asdict()} for goal in goals]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _commit() -> str | None:
    """The commit of the source, with a plus if files differ from it; None outside a checkout."""
    try:
        words = ("git", "describe", "--always", "--abbrev=12", "--dirty=+")
        return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def kept() -> list[dict[str, Any]]:
    """The runs that are kept, the newest first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in KEPT.glob("*.json")]
    return sorted(found, key=lambda run: str(run["began"]), reverse=True)


def compare_with_kept(run: dict[str, Any]) -> None:
    """Print where a run differs from the newest kept one of such a machine and scale that has its tables."""
    alike = [one for one in kept() if all(one[what] == run[what] for what in ("machine", "scale"))]
    for old in alike:
        if any(old["benchmarks"].get(name) for name in run["benchmarks"]):
            print(f"\nold: the run of {old['began'][:10]}, commit {old['commit']}")
            show(old, run)
            return


def compared(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, str, str, float, float]]:
    """``(benchmark, row, column, old figure, new figure)`` for all rows that both runs have."""
    for name, tables in new["benchmarks"].items():
        before = {table["title"]: table for table in old["benchmarks"].get(name, ())}
        for table in tables:
            if table["title"] in before:
                for row in _rows(before[table["title"]], table):
                    yield name, *row


def _rows(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    both = [column for column in COMPARED if column in old["head"] and column in new["head"]]
    times = [column for column in both if column != "peak MB"][:1]
    figures = {row[0]: row for row in old["rows"]}
    for row in new["rows"]:
        for column in (*times, *(column for column in both if column == "peak MB")):
            if row[0] in figures:
                cells = figures[row[0]][old["head"].index(column)], row[new["head"].index(column)]
                if all(cells):
                    yield row[0], column, *(float(cell.replace(",", "")) for cell in cells)


def show(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Print where the runs differ, the largest slowdown first, and what makes them hard to compare."""
    for what in ("machine", "python", "scale"):
        if old[what] != new[what]:
            print(f"the runs differ in {what}: {old[what]} and {new[what]}")
    rows = [(*row, row[-1] / row[-2]) for row in compared(old, new) if row[-2] > 0]
    differing = sorted((row for row in rows if abs(row[-1] - 1) > NOISE), key=lambda row: -row[-1])
    report.table(
        f"{len(differing)} of {len(rows)} figures differ by more than {NOISE:.0%}",
        ("", "benchmark", "column", "old", "new", "new : old"),
        [(row, name, column, f"{a:g}", f"{b:g}", f"{x:.2f}") for name, row, column, a, b, x in differing],
    )


def main() -> None:
    """Compare two runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description="Compare two runs.")
    for name in ("old", "new"):
        parser.add_argument(name, type=Path, help="a file that python -m benchmarks wrote")
    given = parser.parse_args()
    show(*(json.loads(path.read_text(encoding="utf-8")) for path in (given.old, given.new)))


if __name__ == "__main__":
    main()
