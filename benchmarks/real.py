"""Real data, where a folder of them is given: one pass over the text, then the test rows."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks import loads, peers, report
from benchmarks.accuracy import BEST
from benchmarks.learning import in_memory
from benchmarks.report import Reach
from benchmarks.setting import Setting
from thresher.learning import api

RULES = (BEST, "ftrl", "ftrl:alpha=0.1,l1=1")
VW_OPTIONS = ("--ftrl --ftrl_alpha 2 --l1 3", "--ftrl --ftrl_alpha 0.1 --l1 1", "--coin")


class Task(NamedTuple):
    """Files of a set, relative to the folder given."""

    name: str
    train: str
    test: str


TASKS = (
    Task("RCV1-v2, topic CCAT", "rcv1/rcv1_ccat_train.svm.gz", "rcv1/rcv1_ccat_test.svm.gz"),
    Task(
        "Criteo, first days, hashed to 2^20",
        "criteo/criteo_hashed20_0-19999.svm.gz",
        "criteo/criteo_hashed20_20000-39999.svm.gz",
    ),
)


def run(setting: Setting) -> list[Reach]:
    """Learn, test and print every set that is there."""
    if setting.data is None:
        return []
    for task in TASKS:
        train, test = setting.data / task.train, setting.data / task.test
        if train.exists() and test.exists():
            title = f"{task.name}: one pass, then the test set (no rule is tuned to it)"
            head = ("", "test error", "non-zeros", "wall s")
            report.table(title, head, [*_thresher(train, test), *_peers(setting, train, test)])
    return []


def _thresher(train: Path, test: Path) -> list[tuple[str, str, str, str]]:
    rows = []
    for rule in RULES:
        begun = time.perf_counter()
        model = api.train(train, rule)
        wall = time.perf_counter() - begun
        error = api.evaluate(model, test)["error"]
        rows.append((f"thresher --rule {rule}", f"{error:.2%}", f"{model.nonzero:,}", f"{wall:.2f}"))
    return rows


def _peers(setting: Setting, train: Path, test: Path) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, peers.Scored]] = []
    with TemporaryDirectory(dir=setting.loads) as name:
        folder = Path(name)
        if peers.installed("vowpalwabbit"):
            twins = loads.vw_text(train, folder), loads.vw_text(test, folder)
            rows += [(f"Vowpal Wabbit {o}", peers.vw_scored(*twins, o, folder)) for o in VW_OPTIONS]
        if peers.installed("sklearn"):
            chunks = in_memory(train), in_memory(test)
            rows.append(("scikit-learn SGD L1, alpha=1e-05", peers.sklearn_scored(*chunks, 1e-5)))
    return [(name, f"{f.error:.2%}", f"{f.nonzero:,}", f"{f.sample.wall:.2f}") for name, f in rows]
