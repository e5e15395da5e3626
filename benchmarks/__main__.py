"""``python -m benchmarks``: run all benchmarks, or some."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from benchmarks import (
    accuracy,
    ball,
    boosting,
    clickpass,
    clicks,
    comparison,
    days,
    defaults,
    drift,
    estimators,
    exports,
    few_rows,
    folds,
    formats,
    frontier,
    growing,
    hashing,
    lanes,
    learning,
    memory,
    narrow,
    offsets,
    parsing,
    passes,
    paths,
    processes,
    replays,
    report,
    rules,
    scaleout,
    serving,
    softmax,
    sparser,
    startup,
    tables,
    texts,
    tracks,
    tuning,
    vwtext,
    wide,
)
from benchmarks.record import Run, compare_with_kept
from benchmarks.report import Goal
from benchmarks.setting import Setting

BENCHMARKS: dict[str, Callable[[Setting], list[Goal]]] = {
    "learning": learning.run,
    "lanes": lanes.run,
    "parsing": parsing.run,
    "vw-text": vwtext.run,
    "hashing": hashing.run,
    "process": processes.run,
    "second-pass": passes.run,
    "startup": startup.run,
    "growing": growing.run,
    "rules": rules.run,
    "ball": ball.run,
    "boosting": boosting.run,
    "accuracy": accuracy.run,
    "softmax": softmax.run,
    "clicks": clicks.run,
    "click-pass": clickpass.run,
    "tables": tables.run,
    "wide": wide.run,
    "few-rows": few_rows.run,
    "texts": texts.run,
    "memory": memory.run,
    "formats": formats.run,
    "sklearn": estimators.run,
    "comparison": comparison.run,
    "days": days.run,
    "defaults": defaults.run,
    "drift": drift.run,
    "tracks": tracks.run,
    "narrow": narrow.run,
    "offsets": offsets.run,
    "replay": replays.run,
    "frontier": frontier.run,
    "sparser": sparser.run,
    "path": paths.run,
    "folds": folds.run,
    "tune": tuning.run,
    "scale-out": scaleout.run,
    "serving": serving.run,
    "export": exports.run,
}
WITH = {"defaults": ("narrow", "offsets", "replay"), "frontier": ("sparser", "path")}
"""``--only`` one of these runs the others too: together they measure the default rule"""
LOADS = Path(__file__).parent.parent / "build" / "loads"


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--loads", type=Path, default=LOADS, metavar="DIR", help="folder for generated data")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the real data sets")
    parser.add_argument(
        "--scale", type=float, default=0.1, metavar="F", help="share of the rows to use; 1 for all of them"
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="measurements per contender")
    parser.add_argument(
        "--patience",
        type=float,
        default=20,
        metavar="S",
        help="seconds a table may spend on repeating measurements that other work disturbed",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=BENCHMARKS,
        metavar="NAME",
        help="run only these; "
        + "; ".join(f"{one} runs {', '.join(more)} too" for one, more in WITH.items()),
    )
    parser.add_argument(
        "--rules",
        nargs="+",
        default=sparser.RULES,
        metavar="SPEC",
        help="rules that 'sparser' compares with the default's soft thresholds",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="where to write the figures; by default build/bench/TIME.json",
    )
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    return parser.parse_args()


def wanted(names: Iterable[str]) -> list[str]:
    """Return the benchmarks to run, each once: those named, and those that belong to them.

    >>> wanted(["defaults", "narrow"])
    ['defaults', 'narrow', 'offsets', 'replay']
    """
    return list(dict.fromkeys(one for name in names for one in (name, *WITH.get(name, ()))))


def main() -> None:
    """Run the benchmarks; print each table when it is done, and the goals at the end."""
    chosen = options()
    if chosen.list:
        for name, run in BENCHMARKS.items():
            print(f"{name:16} {(import_module(run.__module__).__doc__ or '').splitlines()[0]}")
        return
    setting = Setting(
        chosen.loads.resolve(),
        chosen.data,
        chosen.scale,
        chosen.repeat,
        chosen.patience,
        tuple(chosen.rules),
    )
    print(report.machine())
    print(
        f"scale {setting.scale:g}, medians of {setting.repeat} alternating runs; 'least' is the shortest run,"
        " 'others' the number of cores that other work kept busy"
    )
    found: list[Goal] = []
    record = Run(setting, chosen.json)
    for name in wanted(chosen.only or BENCHMARKS):
        goals = BENCHMARKS[name](setting)
        record.add(name, report.taken(), goals)
        found += goals
    report.goals(found)
    print(f"\nwritten to {record.path}; python -m benchmarks.record OLD NEW compares two runs")
    compare_with_kept(record.content)


if __name__ == "__main__":
    main()
