"""Clicks, from raw text to a model: thresher, and Vowpal Wabbit from its text format and from its cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import clicklog, measure, peers, report
from benchmarks.clicklog import Clicks
from benchmarks.measure import Sample
from benchmarks.processes import thresher
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import api
from thresher.data.layout import Layout
from thresher.learning.evaluation.curves import Ranking

TSV, VW_TEXT, HASHED = "thresher, TSV", "thresher, VW's text", "thresher, TSV, hashed:22"
DEFAULT = "thresher, TSV, defaults"
VW, VW_CACHE = "Vowpal Wabbit, its text", "Vowpal Wabbit, its cache"
RULE = ("--rule", "ftrl:alpha=0.1,l1=1")
COLUMNS = ("--no-header", "--label", "1", "--bins", "2-14", "--categorical", "15-40")
LAYOUT = Layout("", label="1", bins=("2-14",), categorical=("15-40",), header=False)
"""The same in Python."""
VW_OPTIONS = "-b 24 --ftrl --ftrl_alpha 0.1 --l1 1"


def contenders(files: Clicks, folder: Path) -> dict[str, Callable[[], Sample]]:
    """Return all contenders that can run here; each leaves its model in `folder` under its own name."""
    twin = clicklog.vw_twin(files.train)
    found: dict[str, Callable[[], Sample]] = {
        TSV: partial(thresher, files.train, folder / TSV, *COLUMNS, *RULE),
        DEFAULT: partial(thresher, files.train, folder / DEFAULT, *COLUMNS),
        HASHED: partial(thresher, files.train, folder / HASHED, *COLUMNS, *RULE, "--store", "hashed:22"),
        VW_TEXT: partial(thresher, twin, folder / VW_TEXT, *RULE),
    }
    if peers.installed("vowpalwabbit"):
        learning = f"--loss_function logistic {VW_OPTIONS} -f {folder / 'vw.model'}"
        found[VW] = partial(peers.vw, f"-d {twin} {learning}")
        cache = folder / "vw.cache"
        found[VW_CACHE] = partial(peers.vw, f"-d {twin} --cache_file {cache} {learning}")
    return found


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    files = setting.clicks
    rows = _rows(files.train)
    with TemporaryDirectory(dir=setting.loads) as folder:
        chosen = contenders(files, Path(folder))
        # Vowpal Wabbit writes its cache in the first run
        found = setting.in_turn(chosen, warm=tuple(chosen))
        scores = _scores(files, Path(folder), found)
    units = {"MB/s": files.megabytes, "rows/s": float(rows)}
    report.times(f"{rows:,} clicks, {files.megabytes:.0f} MB as TSV, to a model file", found, VW, units)
    report.table(
        "quality of the models",
        ("", "AUC", "non-zeros", "peak MB"),
        [
            (name, f"{area:.4f}", f"{count:,}", report.figure(found[name].peak, ".0f"))
            for name, (area, count) in scores.items()
        ],
    )
    wall, (area, count) = found[TSV].wall, scores[TSV]
    least = f"{wall:.2f} (least {found[TSV].least:.2f}, cpu {found[TSV].cpu:.2f})"
    good = area >= 0.801 and count <= 320_000
    untuned, kept = scores[DEFAULT]
    return [
        Goal("clicks, from TSV to a model, seconds", "<= 2.5", least, setting.met(wall <= 2.5)),
        Goal(
            "its AUC and non-zeros",
            ">= 0.801 with <= 320,000",
            f"{area:.4f} with {count:,}",
            setting.met(good),
        ),
        Goal(
            "AUC and non-zeros, defaults",
            ">= 0.802 with <= 138,019",
            f"{untuned:.4f} with {kept:,}",
            setting.met(untuned >= 0.802 and kept <= 138_019),
        ),
    ]


def _rows(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 24), b""))


def _scores(files: Clicks, folder: Path, found: dict[str, measure.Summary]) -> dict[str, tuple[float, int]]:
    """Return the AUC on the test rows and the non-zeros of each model."""
    twin = clicklog.vw_twin(files.test)
    scores = dict[str, tuple[float, int]]()
    for name, test in (*((name, files.test) for name in (TSV, DEFAULT, HASHED)), (VW_TEXT, twin)):
        model = api.load(folder / name)
        scores[name] = api.evaluate(model, test)["auc"], len(model.keys)
    if VW in found:
        margins, nonzero, _ = peers.vw_margins(clicklog.vw_twin(files.train), twin, VW_OPTIONS, folder)
        with open(twin, "rb") as file:
            positive = np.array([line.startswith(b"1") for line in file])
        area = Ranking(margins, positive, np.ones(len(margins))).auc
        scores[VW] = area if area is not None else float("nan"), nonzero
    return scores
