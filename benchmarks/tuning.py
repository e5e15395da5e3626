"""`thresher tune` on clicks: 64 settings, one run, and Vowpal Wabbit's defaults. Needs --data."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import peers, report
from benchmarks.corpora import read
from benchmarks.defaults import VW
from benchmarks.measure import Sample, Summary, python
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.plans.tune import judged_rows

FILES = [f"criteo/criteo_hashed20_{k}-{k + 19999}.svm.gz" for k in (0, 20000, 40000)]
TUNE, ONE = "thresher tune, 64 settings", "thresher train"
_BITS = 20


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    if setting.data is None or not all((setting.data / name).exists() for name in FILES):
        return []
    files = [setting.data / name for name in FILES]
    losses: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model"
        contenders: dict[str, Callable[[], Sample]] = {
            TUNE: lambda: python("-m", "thresher", "tune", *files, "-m", target, "-q", "--no-cache"),
            ONE: lambda: python("-m", "thresher", "train", *files, "-m", target, "-q", "--no-cache"),
        }
        times = setting.in_turn(contenders, warm=tuple(contenders))
        losses[TUNE] = _reported(files, target)
        if peers.installed("vowpalwabbit"):
            losses |= _peers(files, Path(folder))
    report.times("60,000 clicks: whole process", times, ONE, {})
    rows = [(name, f"{loss:.4f}") for name, loss in losses.items()]
    report.table(
        "log loss on the last tenth, each row predicted before it is learned from", ("", "log loss"), rows
    )
    return [*_quick(times), *_good(losses)]


def _reported(files: list[Path], target: Path) -> float:
    """Return tune's log loss on the last tenth."""
    command = [sys.executable, "-m", "thresher", "tune", *map(str, files), "-m", str(target), "-q", "--json"]
    told = subprocess.run(command, check=True, capture_output=True).stdout
    return float(json.loads(told)["report_loss"])


def _peers(files: list[Path], folder: Path) -> dict[str, float]:
    """Return the same for Vowpal Wabbit's defaults."""
    chunk = read(files, "binary")
    first, text, predictions = judged_rows(len(chunk)), folder / "rows.vw", folder / "predictions"
    text.write_bytes(peers.vw_text(chunk))
    found = {}
    for name, options in VW.items():
        peers.vw_here(f"-d {text} --loss_function logistic -b {_BITS} {options} -p {predictions}")
        margins = np.loadtxt(predictions)[first:]
        found[name] = float(np.mean(np.logaddexp(0.0, -chunk.labels[first:] * margins)))
    return found


def _quick(times: dict[str, Summary]) -> list[Goal]:
    value, text = report.ratio(times, TUNE, ONE)
    return [Goal(f"{TUNE} : {ONE}, whole process", "<= 8", text, value <= 8)]


def _good(losses: dict[str, float]) -> list[Goal]:
    """Check that tune is no worse than the best of Vowpal Wabbit's defaults."""
    others = [losses[name] for name in VW if name in losses]
    if not others:
        return []
    said = f"{losses[TUNE]:.4f} : {min(others):.4f}"
    met = losses[TUNE] <= min(others)
    return [Goal("log loss of tune : best default of Vowpal Wabbit", "<= 1", said, met)]
