"""What replay costs: a small file from start to end, and a stream that is longer than the budget."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import report
from benchmarks.measure import Sample, Summary
from benchmarks.processes import thresher
from benchmarks.report import Goal
from benchmarks.setting import Setting
from benchmarks.startup import ROWS

OURS, ONE = "thresher train", "thresher train --passes 1"
CHOSEN: dict[str, tuple[str, ...]] = {OURS: (), ONE: ("--passes", "1")}
REPEAT = 5
BUDGET = 64.0
"""MB of rows that are kept for replay unless you say otherwise"""
SHORT, LONG = 0.05, 1.02


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    long = setting.rcv1like
    with TemporaryDirectory(dir=setting.loads) as folder:
        short = _measured(setting, ROWS, Path(folder))
        found = _measured(setting, long.train, Path(folder))
    report.times("2,000 rows, whole process, warm", short, ONE, {})
    report.times(f"a stream beyond the budget, {long.megabytes:.0f} MB of text", found, ONE, {})
    report.table(
        "peak memory, MB",
        ("", *CHOSEN),
        [
            (name, *(report.figure(of[one].peak, ".0f") for one in CHOSEN))
            for name, of in (("2,000 rows", short), ("the stream", found))
        ],
    )
    return _judged(short, found)


def _measured(setting: Setting, rows: Path, folder: Path) -> dict[str, Summary]:
    chosen: dict[str, Callable[[], Sample]] = {
        name: partial(thresher, rows, folder / "model", *options) for name, options in CHOSEN.items()
    }
    return setting.in_turn(chosen, tuple(chosen), max(REPEAT, setting.repeat))


def _judged(short: dict[str, Summary], long: dict[str, Summary]) -> list[Goal]:
    longer = short[OURS].wall - short[ONE].wall
    said = f"{longer:+.3f} (leasts {short[OURS].least - short[ONE].least:+.3f})"
    ratio, text = report.ratio(long, OURS, ONE)
    more = long[OURS].peak - long[ONE].peak
    return [
        Goal(f"{OURS}, 2,000 rows: seconds above --passes 1", f"<= {SHORT:+.2f}", said, longer <= SHORT),
        Goal("a stream beyond the budget: seconds over --passes 1", f"<= {LONG}", text, ratio <= LONG),
        Goal("its peak memory above --passes 1, MB", f"<= {BUDGET:+.0f}", f"{more:+.0f}", more <= BUDGET),
    ]
