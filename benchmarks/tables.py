"""The same rows as TSV, CSV, JSON lines, Parquet and Arrow: reading only, also in C, and to a model file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import clicklog, limits, measure, report
from benchmarks.clicks import COLUMNS, LAYOUT, RULE
from benchmarks.measure import Sample, Summary, timed
from benchmarks.parsing import source_pass
from benchmarks.processes import thresher
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import open_source
from thresher.data.layout import Layout

NAMED = tuple(word for word in COLUMNS if word != "--no-header")


def columns_of(kind: str) -> tuple[str, ...]:
    """Return the column options for a file extension; TSV and CSV have no header here."""
    return COLUMNS if kind in ("tsv", "csv") else NAMED


def check_keys(kind: str, path: Path, layout: Layout) -> None:
    """Check that plain C reads the same keys from a file, or raise a RuntimeError."""
    chunks = [(len(c), c.nnz, limits.sum_of(c.keys)) for c in open_source(path, layout=layout).chunks()]
    rows, nnz, total = map(sum, zip(*chunks, strict=True))
    limits.check(kind, limits.run(kind, path, 1), rows=rows, nnz=nnz, sum=total)


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    files = clicklog.table_twins(setting.clicks.train)
    rows = round(clicklog.TRAIN * setting.scale)
    found = dict[str, dict[str, Summary]]()
    readings: dict[str, Callable[[], Sample]] = {}
    for kind, path in files.items():
        layout = replace(LAYOUT, header=kind not in ("tsv", "csv"))
        for threads in (1, 2):
            reading = partial(source_pass, path, threads, layout)
            readings[f"{kind}, {threads} thread{'s' * (threads > 1)}"] = partial(timed, reading)
        if setting.compiler and kind in limits.PROGRAMS:
            check_keys(kind, path, layout)
            readings[f"{kind}, plain C"] = partial(measure.reference, kind, path, 1)
    found["reading only"] = setting.in_turn(readings, warm=tuple(readings))
    with TemporaryDirectory(dir=setting.loads) as folder:
        model = Path(folder) / "model"
        trainings: dict[str, Callable[[], Sample]] = {
            kind: partial(thresher, path, model, *columns_of(kind), *RULE) for kind, path in files.items()
        }
        found["to a model file"] = setting.in_turn(trainings, warm=tuple(trainings))
    for what, summaries in found.items():
        report.table(
            f"{rows:,} clicks, {what}",
            ("", "MB", "wall s", "least", "cpu s", "MB/s", "rows/s", "peak MB"),
            [_line(name, files[name.partition(",")[0]], s, rows) for name, s in summaries.items()],
        )
    return [_judge(what, found["reading only"], what) for what in ("1 thread", "2 threads")]


def _line(name: str, path: Path, s: Summary, rows: int) -> tuple[str, ...]:
    size = path.stat().st_size / 1e6
    times = (report.figure(value) for value in (s.wall, s.least, s.cpu))
    rates = f"{size / s.wall:,.0f}", f"{rows / s.wall:,.0f}"
    return name, f"{size:,.0f}", *times, *rates, report.figure(s.peak, ".0f")


def _judge(what: str, found: dict[str, Summary], threads: str) -> Goal:
    times, words = report.ratio(found, f"tsv, {threads}", f"parquet, {threads}")
    return Goal(f"rows/s of Parquet : of TSV, {what}", ">= 1.5", words, times >= 1.5)
