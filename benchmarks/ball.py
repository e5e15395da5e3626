"""Projection onto the L1 ball with a growing number of features: lazy, and of the whole vector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import report
from benchmarks.learning import one_pass, slices
from benchmarks.measure import Sample, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from tests.projections import project_l1_ball
from thresher.data import Chunk

FEATURES = (10_000, 100_000, 1_000_000)
ROWS, FREQUENT, COMMON, RARE = 50_000, 1_000, 40, 10
RULE, DENSE_ROWS = "l1-ball:radius=30", 20


def stream(features: int) -> Chunk:
    """Rows with 40 of a thousand frequent features and 10 of all; labels depend on some frequent ones."""
    rng = np.random.default_rng(11)
    common = np.argpartition(rng.random((ROWS, FREQUENT)), COMMON, axis=1)[:, :COMMON]
    rare = FREQUENT + np.sort(rng.integers(0, features - FREQUENT, (ROWS, RARE)), axis=1)
    keys = np.hstack([common, rare])
    values = rng.normal(size=keys.shape) / np.sqrt(keys.shape[1])
    score = (values * (keys < FREQUENT // 10)).sum(axis=1)
    starts = np.arange(ROWS + 1) * keys.shape[1]
    return Chunk.from_csr(starts, keys.ravel(), values.ravel(), np.where(score > 0, 1.0, -1.0))


def whole_vector(features: int) -> Callable[[], Sample]:
    """One projection of all coordinates per row, extrapolated from a few."""
    v = np.random.default_rng(12).normal(size=features)

    def sample() -> Sample:
        taken = timed(lambda: [project_l1_ball(v, 30.0) for _ in range(DENSE_ROWS)])
        return Sample(taken.wall * ROWS / DENSE_ROWS, taken.cpu * ROWS / DENSE_ROWS)

    return sample


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    contenders: dict[str, Callable[[], Sample]] = {}
    nnz = 0
    for features in FEATURES:
        whole = stream(features)
        nnz = whole.nnz
        chunks = slices(whole)
        contenders[f"sgd, {features:,} features"] = one_pass(chunks, "sgd")
        contenders[f"l1-ball, {features:,} features"] = one_pass(chunks, RULE)
        contenders[f"whole vector by pivots, {features:,}"] = whole_vector(features)
    found = setting.in_turn(contenders, warm=tuple(contenders)[:3])
    base = f"sgd, {FEATURES[0]:,} features"
    report.times("L1 ball: one pass over rows of 50 features", found, base, {"ns/nnz": nnz})
    most, least = (f"l1-ball, {FEATURES[k]:,} features" for k in (-1, 0))
    value, text = report.ratio(found, most, least)
    goal = "does not grow with the features"
    return [Goal(f"l1-ball: {FEATURES[-1]:,} : {FEATURES[0]:,} features", goal, text, value < 4.0)]
