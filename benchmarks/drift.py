"""Click streams whose world changes, and one whose does not: progressive loss at several half-lives."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks import peers, report
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data.chunk import Chunk
from thresher.learning.model.model import Model

HOURS, ROWS_AN_HOUR = 240, 1_250
SIZES = (8, 24, 60, 150, 400, 1_000, 2_500, 6_000, 15_000, 40_000)
"""values of each column, the first of which are frequent"""
HALF_LIVES = (np.inf, 300_000, 100_000, 30_000, 10_000)
VW = "--loss_function logistic -b 22 --quiet --ftrl"
COST, GAIN = 0.005, 0.01


class Made(NamedTuple):
    """A stream, and the mean loss of the probabilities that its labels were drawn with."""

    chunk: Chunk
    least: float


def made(hours: float, rows: int = HOURS * ROWS_AN_HOUR, seed: int = 0) -> Made:
    """Clicks of ten days whose effects forget half of what they were within some `hours`; inf for never.

    Ten categorical columns. Effects of values have the same size at any time, however fast they change.
    """
    rng = np.random.default_rng(seed)
    kept = 0.5 ** (1 / hours)
    effects = [rng.normal(size=size) * 0.45 for size in SIZES]
    values, margins = np.zeros((rows, len(SIZES)), np.uint64), np.full(rows, -1.6)
    for begin in range(0, rows, ROWS_AN_HOUR):
        end = min(begin + ROWS_AN_HOUR, rows)
        for c, size in enumerate(SIZES):
            chosen = np.minimum(rng.pareto(0.8, end - begin).astype(np.int64), size - 1)
            values[begin:end, c] = chosen
            margins[begin:end] += effects[c][chosen]
            moved = np.sqrt(1 - kept * kept) * 0.45 * rng.normal(size=size)
            effects[c] = kept * effects[c] + moved
    labels = np.where(rng.random(rows) < 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    keys = values + (np.arange(len(SIZES), dtype=np.uint64) << np.uint64(32))
    indptr = np.arange(rows + 1) * len(SIZES)
    chunk = Chunk.from_csr(indptr, keys.ravel(), np.ones(keys.size), labels, np.ones(rows))
    return Made(chunk, float(np.logaddexp(0, -labels * margins).mean()))


def loss_of(rule: str, chunk: Chunk) -> float:
    """Mean loss of each row before it is learned."""
    model = Model(rule)
    model.learn(chunk)
    return model.tally.average


def loss_of_vw(chunk: Chunk) -> float:
    """The same of Vowpal Wabbit's FTRL-Proximal, with its defaults."""
    from vowpalwabbit import Workspace

    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.vw"
        keys = chunk.keys.reshape(len(chunk), -1)
        lines = (
            f"{y:.0f} | {' '.join(f'f{key}' for key in row)}\n"
            for y, row in zip(chunk.labels, keys.tolist(), strict=True)
        )
        file.write_text("".join(lines), encoding="utf-8")
        learned: Any = Workspace(f"{VW} -d {file}")
        return float(learned.get_sum_loss() / len(chunk))


def run(setting: Setting) -> list[Goal]:
    """Learn each stream with each half-life, print and check the goals."""
    streams = {"12 hours": made(12), "2 days": made(48), "10 days": made(240), "never": made(np.inf)}
    found: dict[str, list[float]] = {"least possible": [stream.least for stream in streams.values()]}
    for name in ("ft-ftrl", "ftrl"):
        for life in HALF_LIVES:
            rule = f"{name}:half_life={life:g}"
            found[rule] = [loss_of(rule, stream.chunk) for stream in streams.values()]
    if peers.installed("vowpalwabbit"):
        found["Vowpal Wabbit, --ftrl"] = [loss_of_vw(stream.chunk) for stream in streams.values()]
    rows = [(name, *(f"{loss:.4f}" for loss in losses)) for name, losses in found.items()]
    report.table(f"{HOURS * ROWS_AN_HOUR:,} clicks; effects half forgotten in: progressive loss",
                 ("", *streams), rows)  # fmt: skip
    goals = list[Goal]()
    for name in ("ft-ftrl", "ftrl"):
        lasting, *fading = (found[f"{name}:half_life={life:g}"] for life in HALF_LIVES)
        cost, gain = fading[1][-1] / lasting[-1] - 1, 1 - min(losses[0] for losses in fading) / lasting[0]
        goals += [
            Goal(f"{name}: cost of a half-life of a third of a still stream", f"<= {COST:.1%}",
                 f"{cost:.2%}", cost <= COST),
            Goal(f"{name}: gain of a half-life where effects last 12 hours", f">= {GAIN:.1%}",
                 f"{gain:.2%}", gain >= GAIN),
        ]  # fmt: skip
    return goals
