"""Test error and non-zeros after one pass over the text."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import loads, peers, report
from benchmarks.learning import in_memory
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import api, train

BEST, DEFAULT = "ftrl:alpha=2,beta=0,l1=3", "ft-ftrl"
COMMANDS: tuple[tuple[str, str | None], ...] = (
    (BEST, None),
    ("ftrl:alpha=2,beta=0,l1=2", None),
    ("ftrl:alpha=2,beta=0,l1=8", None),
    ("ftrl", None),
    (DEFAULT, None),
)


def run(setting: Setting) -> list[Goal]:
    """Train, test, print and check the goals."""
    files = setting.rcv1like
    rows, found = [], dict[str, tuple[float, int]]()
    for rule, rate in COMMANDS:
        started = time.perf_counter()
        model = train(files.train, rule, rate=rate)
        wall = time.perf_counter() - started
        error, nonzero = api.evaluate(model, files.test)["error"], model.nonzero
        found[rule] = error, nonzero
        command = f"thresher train --rule {rule}" + (f" --rate {rate}" if rate else "")
        rows.append((command, f"{error:.2%}", f"{nonzero:,}", f"{wall:.2f}"))
    report.table(
        "one pass over the text, then the test set (scikit-learn's seconds exclude reading)",
        ("", "test error", "non-zeros", "wall s"),
        [*rows, *_peers(setting)],
    )
    return [_judge(setting, *found[BEST], 0.046, 2400, BEST), _judge(setting, *found[DEFAULT], 0.048, 4000)]


def _judge(setting: Setting, error: float, nonzero: int, most: float, room: int, rule: str = "") -> Goal:
    what = f"--rule {rule}" if rule else "defaults"
    measured = f"{error:.2%} with {nonzero:,}: {what}"
    good = setting.met(error <= most and nonzero <= room)
    return Goal("test error with non-zeros", f"<= {most:.1%} with <= {room:,}", measured, good)


def _peers(setting: Setting) -> list[tuple[str, str, str, str]]:
    files, rows = setting.rcv1like, list[tuple[str, peers.Scored]]()
    if peers.installed("vowpalwabbit"):
        twins = loads.vw_text(files.train), loads.vw_text(files.test)
        for options in ("--ftrl --ftrl_alpha 2 --l1 3", "-l 1 --l1 3e-6", "--coin"):
            with TemporaryDirectory(dir=setting.loads) as folder:
                found = peers.vw_scored(*twins, options, Path(folder))
            rows.append((f"Vowpal Wabbit {options}", found))
    if peers.installed("sklearn"):
        train, test = (in_memory(path) for path in files)
        for alpha in (3e-6, 1e-5):
            rows.append((f"scikit-learn SGD L1, alpha={alpha:g}", peers.sklearn_scored(train, test, alpha)))
    return [(name, f"{f.error:.2%}", f"{f.nonzero:,}", f"{f.sample.wall:.2f}") for name, f in rows]
