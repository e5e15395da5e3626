"""Predicting clicks with a model exported as C, beside ``thresher predict``: nanoseconds per row."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import thresher
from benchmarks import measure, report
from benchmarks.clicks import COLUMNS, RULE
from benchmarks.measure import Sample
from benchmarks.processes import thresher as train
from benchmarks.report import Goal
from benchmarks.setting import Setting

CALLS, PROGRAM, PREDICT, LOADED = (
    *("C, a call of thresher_predict", "C, the program", "thresher predict"),
    "thresher.load(...).predict",
)
MOST = 3_000
"""nanoseconds of a call"""
_TIMED = Path(__file__).with_name("exported.c")


def built(model: Path, folder: Path, compiler: str) -> tuple[Path, Path]:
    """Return the program that times calls, and the one that is part of an exported model."""
    source, calls, program = folder / "model.c", folder / "calls", folder / "program"
    thresher.export(model, "c", source)
    flags = [compiler, "-std=c99", "-O2"]
    subprocess.run([*flags, f'-DMODEL="{source}"', _TIMED, "-o", calls, "-lm"], check=True)
    subprocess.run([*flags, "-DTHRESHER_MAIN", source, "-o", program, "-lm"], check=True)
    return calls, program


def _calls(program: Path, data: Path) -> Sample:
    with data.open("rb") as rows:
        done = subprocess.run([program], stdin=rows, check=True, capture_output=True, text=True)
    cpu = float(done.stdout.split("cpu_s=")[1].split()[0])
    return Sample(cpu, cpu)


def _whole(program: Path, data: Path, out: Path) -> Sample:
    start = time.perf_counter()
    with data.open("rb") as rows, out.open("wb") as file:
        subprocess.run([program, "margin"], stdin=rows, stdout=file, check=True)
    return Sample(time.perf_counter() - start)


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return []
    data = setting.clicks.test
    with data.open("rb") as file:
        rows = sum(1 for _ in file)
    with TemporaryDirectory(dir=setting.loads) as name:
        folder = Path(name)
        model, ours, theirs = folder / "model", folder / "ours", folder / "theirs"
        train(setting.clicks.train, model, *COLUMNS, *RULE)
        calls, program = built(model, folder, compiler)
        predictor = thresher.load(model)
        command = (sys.executable, "-m", "thresher", "predict", model, data, "-o", ours)
        found = setting.in_turn(
            {
                CALLS: lambda: _calls(calls, data),
                PROGRAM: lambda: _whole(program, data, theirs),
                PREDICT: lambda: measure.process(*command),
                LOADED: lambda: measure.timed(lambda: predictor.predict(data)),
            },
            warm=(PREDICT, LOADED),
        )
        same = ours.read_bytes() == theirs.read_bytes()
    report.times(f"{rows:,} clicks predicted", found, PREDICT, {"ns/row": rows})
    wall, printed = found[CALLS].least / rows * 1e9, "the same" if same else "other"
    nanoseconds = f"{wall:,.0f}"
    return [
        Goal("a prediction by exported C, ns", f"<= {MOST:,}", nanoseconds, setting.met(wall <= MOST)),
        Goal("it prints what thresher predict prints", "the same bytes", printed, same),
    ]
