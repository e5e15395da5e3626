"""Memory of a growing model when most new features are never seen again."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import psutil

from benchmarks import report
from benchmarks.loads import Flood
from benchmarks.measure import python
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.learning.model.model import Model

RULES = {
    "truncated-gradient": ("truncated-gradient:gravity=3e-5", "constant:0.1"),
    "fobos": ("fobos:l1=3e-5", "constant:0.1"),
    "ft-ftrl": ("ft-ftrl:forget=5000", ""),
}


def most_resident() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1e6 if sys.platform == "darwin" else 1e3 / 1.024
    )


def follow(rule: str, rate: str, distinct: int) -> dict[str, float]:
    """Learn the stream; return the peaks of bytes and live weights, checked after every piece."""
    warm = Model(rule, rate=rate or None)
    for chunk in Flood(distinct=200_000).chunks():
        warm.learn(chunk)
    del warm
    before, model = psutil.Process().memory_info().rss / 1e6, Model(rule, rate=rate or None)
    peak = (0, 1)
    worst = 0.0
    for chunk in Flood(distinct=distinct).chunks():
        model.learn(chunk)
        here = model.nbytes, model.nonzero
        peak = max(peak, here)
        if model.features_seen > distinct // 10:
            worst = max(worst, here[0] / here[1])
    return {
        "examples": model.examples,
        "seen": model.features_seen,
        "alive": model.nonzero,
        "bytes": model.nbytes,
        "peak_bytes": peak[0],
        "peak_alive": peak[1],
        "worst": worst,
        "resident": most_resident() - before,
        "loss": model.tally.average,
    }


def run(setting: Setting) -> list[Goal]:
    """Measure each rule in its own process, print and check the goals."""
    distinct = round(Flood().distinct * setting.scale)
    found: dict[str, dict[str, Any]] = {}
    for name, (rule, rate) in RULES.items():
        output = python("-m", "benchmarks.growing", rule, rate, str(distinct)).output
        found[name] = json.loads(output)
    head = (
        "",
        "rows",
        "features seen",
        "alive",
        "share",
        "MB",
        "peak MB",
        "bytes/live at peak",
        "worst",
        "RSS +MB",
        "loss",
    )
    rows = []
    for name, f in found.items():
        counts = [f"{f[key]:,.0f}" for key in ("examples", "seen", "alive")]
        share = f"{f['alive'] / f['seen']:.2%}"
        sizes = [f"{f['bytes'] / 1e6:.1f}", f"{f['peak_bytes'] / 1e6:.1f}"]
        ratios = [f"{f['peak_bytes'] / f['peak_alive']:.1f}", f"{f['worst']:.1f}", f"{f['resident']:.0f}"]
        ratios.append(f"{f['loss']:.4f}")
        rows.append([name, *counts, share, *sizes, *ratios])
    report.table(f"a growing model on {distinct:,} distinct features", head, rows)
    return [_judge(name, f) for name, f in found.items()]


def _judge(name: str, f: dict[str, Any]) -> Goal:
    at_peak, share = f["peak_bytes"] / f["peak_alive"], f["alive"] / f["seen"]
    measured = f"{at_peak:.1f}, {share:.2%} alive"
    return Goal(f"bytes per live weight at the peak, {name}", "<= 64", measured, at_peak <= 64)


if __name__ == "__main__":
    print(json.dumps(follow(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
