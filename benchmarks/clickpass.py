"""One pass of FTRL over clicks in memory: thresher's growing store, and plain C, whole and in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import limits, measure, report
from benchmarks.clicks import LAYOUT
from benchmarks.learning import in_memory, one_pass, slices
from benchmarks.measure import Sample
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import Chunk
from thresher.learning.model.model import Model

ALPHA, L1 = 0.1, 1
RULE = f"ftrl:alpha={ALPHA},l1={L1}"
OURS, C_BOTH = "thresher, growing store", "C, both"
PARTS = {"C, look-up": "look-up", "C, learning": "learn", C_BOTH: "both"}


def check_model(path: Path, chunks: Sequence[Chunk]) -> None:
    """Check that plain C learns the same from a file as thresher from its rows, or raise a RuntimeError."""
    model = Model(RULE, "logistic", store="growing")
    for chunk in chunks:
        model.learn(chunk)
    limits.check(
        "ftrl",
        limits.run("ftrl", path, ALPHA, L1, "both", 1),
        rows=sum(map(len, chunks)),
        nnz=sum(chunk.nnz for chunk in chunks),
        distinct=len(np.unique(np.concatenate([chunk.keys for chunk in chunks]))),
        progressive_loss=model.tally.average,
    )


def run(setting: Setting) -> list[Goal]:
    """Measure and print."""
    path = setting.clicks.train
    whole = in_memory(path, LAYOUT)
    chunks = slices(whole)
    contenders: dict[str, Callable[[], Sample]] = {OURS: one_pass(chunks, RULE, store="growing")}
    if setting.compiler:
        check_model(path, chunks)
        for name, part in PARTS.items():
            contenders[name] = partial(measure.reference, "ftrl", path, ALPHA, L1, part, 1)
    found = setting.in_turn(contenders, warm=(OURS,))
    title = f"one pass of FTRL in memory: {len(whole):,} clicks, {whole.nnz:,} nnz"
    report.times(title, found, C_BOTH, {"ns/nnz": whole.nnz, "rows/s": len(whole)})
    return []
