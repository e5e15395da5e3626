"""One pass over rows in memory: thresher's stores, plain C, scikit-learn and river."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import measure, peers, report
from benchmarks.measure import Sample, Summary, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import Chunk, concat, open_source
from thresher.data.layout import Layout
from thresher.learning.model.model import Model

RULE, RATE, ETA0, L1 = "truncated-gradient:gravity=1e-6", "power:eta0=4,t0=1e5,p=0.5", 4, 1e-6
C_LOOP, DIRECT, GROWING = "C loop", "thresher, direct store", "thresher, growing store"
SLICE = 16_384
SKLEARN = "scikit-learn, L1, float32"


def in_memory(path: Path, layout: Layout | None = None) -> Chunk:
    """Read all rows of a file into one set of arrays."""
    return concat([concat([chunk]) for chunk in open_source(path, layout=layout).chunks()])


def slices(whole: Chunk) -> list[Chunk]:
    """Return the same rows in views of `SLICE` rows."""
    return [whole.rows(lo, lo + SLICE) for lo in range(0, len(whole), SLICE)]


def one_pass(
    chunks: Sequence[Chunk], rule: str, loss: str = "logistic", rate: str | None = None, store: str = "direct"
) -> Callable[[], Sample]:
    """Return a contender that trains a fresh model on all chunks.

    The arrays are read once before the clock starts, because those of the C loop have just been written.
    """

    def learn() -> None:
        model = Model(rule, loss, rate=rate, store=store)
        for chunk in chunks:
            model.learn(chunk)

    def sample() -> Sample:
        for chunk in chunks:
            chunk.keys.max(initial=0), chunk.values.sum()
        return timed(learn)

    return sample


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    whole = in_memory(setting.rcv1like.train)
    chunks = slices(whole)
    contenders: dict[str, Callable[[], Sample]] = {}
    if setting.compiler:
        files = setting.rcv1like
        contenders[C_LOOP] = lambda: measure.reference("sgd", *files, ETA0, L1, 1)
    contenders[DIRECT] = one_pass(chunks, RULE, rate=RATE)
    contenders[GROWING] = one_pass(chunks, RULE, rate=RATE, store="growing")
    contenders["thresher, hashed:18"] = one_pass(chunks, RULE, rate=RATE, store="hashed:18")
    if peers.installed("sklearn"):
        for name, dtype, shuffle in (
            (SKLEARN, np.float32, True),
            (f"{SKLEARN}, rows in order", np.float32, False),
            ("scikit-learn, L1, float64", np.float64, True),
        ):
            contenders[name] = partial(timed, peers.sklearn_pass(whole, dtype, shuffle))
    found = setting.in_turn(contenders, warm=(DIRECT, GROWING, "thresher, hashed:18"))
    if peers.installed("river"):
        found[f"river, L1, from {peers.RIVER_ROWS:,} rows"] = _river(whole)
    report.times(
        f"one pass in memory: truncated gradient, logistic, float32; {len(whole):,} rows, {whole.nnz:,} nnz",
        found,
        C_LOOP,
        {"ns/nnz": whole.nnz, "rows/s": len(whole)},
    )
    return _judge(found)


def _river(whole: Chunk) -> Summary:
    """Extrapolate from the first rows: all of them would take a minute."""
    sample, factor = timed(peers.river_pass(whole)), max(1.0, len(whole) / peers.RIVER_ROWS)
    return measure.summary([Sample(sample.wall * factor, sample.cpu * factor)])


def _judge(found: dict[str, Summary]) -> list[Goal]:
    goals = [
        (f"{DIRECT} : {C_LOOP}", "<= 1.25", DIRECT, C_LOOP, 1.25, True),
        (f"{SKLEARN} : {DIRECT}", ">= 6", SKLEARN, DIRECT, 6.0, False),
        ("growing : direct store, including the key lookup", "<= 2", GROWING, DIRECT, 2.0, True),
    ]
    judged = []
    for what, goal, above, below, bound, at_most in goals:
        value, text = report.ratio(found, above, below)
        known = None if value != value else (value <= bound) == at_most
        judged.append(Goal(what, goal, text, known))
    return judged
