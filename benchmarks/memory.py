"""Memory used on top of the model while learning clicks, one file or three copies, from each format."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks import clicklog, report
from benchmarks.clicks import LAYOUT, RULE
from benchmarks.growing import most_resident
from benchmarks.measure import python
from benchmarks.report import Goal
from benchmarks.setting import Setting

KINDS = ("tsv", "jsonl", "parquet", "arrow", "arrows")
GOAL, TIMES, PAUSE = 500, (1, 3), 0.01


class Resident(NamedTuple):
    """Resident memory of this process, in MB."""

    own: float
    files: float
    """file-backed pages: programs and mapped data"""


def resident() -> Resident:
    """Return the current memory; all counts as anonymous if the system does not report file-backed pages."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return Resident(psutil.Process().memory_info().rss / 1e6, 0.0)
    found = {name: value for name, _, value in (line.partition(":") for line in lines)}
    anonymous, shared, files = (
        int(found[name].split()[0]) * 1.024e-3 for name in ("RssAnon", "RssShmem", "RssFile")
    )
    return Resident(anonymous + shared, files)


class Watch(threading.Thread):
    """Samples the memory every `PAUSE` seconds and keeps the peak."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        """Sample until `stop`."""
        while not self._done.wait(PAUSE):
            self.most = max(self.most, resident().own)

    def stop(self) -> float:
        """Return the peak."""
        self._done.set()
        self.join()
        return max(self.most, resident().own)


def follow(path: Path, times: int) -> dict[str, float]:
    """Learn `times` copies of a file in one pass and save the model; return the peaks in MB."""
    from thresher.data import open_source
    from thresher.data.layout import Layout
    from thresher.learning.files.model_file import save
    from thresher.learning.model.model import Model

    layout = Layout()
    if path.suffix != ".vw":
        layout = replace(LAYOUT, header=path.suffix not in (".tsv", ".csv"))
    source = open_source([path] * times, layout=layout, threads=2)
    ready, watch = resident(), Watch()
    watch.start()
    model = Model(RULE[1])
    for chunk in source.chunks():
        model.learn(chunk)
    save(model, path.with_suffix(".model"))
    most = watch.stop()
    path.with_suffix(".model").unlink()
    return {
        "rows": model.examples,
        "ready": ready.own + ready.files,
        "model": model.nbytes / 1e6,
        "beside": ready.files + most - model.nbytes / 1e6,
        "all": most_resident(),
    }


def run(setting: Setting) -> list[Goal]:
    """Measure each format in its own process, print and check the goals."""
    train = setting.clicks.train
    files = {**clicklog.table_twins(train), "vw": clicklog.vw_twin(train)}
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for kind in (*KINDS, "vw"):
        for times in TIMES:
            output = python("-m", "benchmarks.memory", files[kind], str(times)).output
            found[kind, times] = json.loads(output)
    report.table(
        "memory in MB: before the first row, of the model, and on top of both at the peak (with mapped data)",
        ("", "rows", "ready", "model", "beside", "all"),
        [
            (kind, *(f"{f[name]:,.0f}" for name in ("rows", "ready", "model", "beside", "all")))
            for (kind, _), f in found.items()
        ],
    )
    most = max(found, key=lambda key: float(found[key]["beside"]))
    measured = f"{found[most]['beside']:.0f} ({most[0]}, {found[most]['rows']:,} rows)"
    good = all(f["beside"] <= GOAL for f in found.values())
    return [Goal("memory on top of the model, MB, any format", f"<= {GOAL}", measured, setting.met(good))]


if __name__ == "__main__":
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # as in the command
    print(json.dumps(follow(Path(sys.argv[1]), int(sys.argv[2]))))
