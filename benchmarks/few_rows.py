"""Few rows of many columns: the default, and cross-validated L1 regression on standardised columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers, report
from benchmarks.corpora import Corpus, Parts
from benchmarks.defaults import ONE, OURS, Ratios, Rows, learners, losses
from benchmarks.narrow import anchor
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import Chunk

ANCHOR = "L1, cross-validated"
Draw = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
TEST = 1000
MEAN, WORST, WEIGHTS, SHARE = 1.02, 1.08, 1.2, 1 / 3
LARGEST = "150 x 20,000, 1"
F64 = NDArray[np.float64]


def independent(g: np.random.Generator, rows: int, columns: int) -> F64:
    """Normal columns."""
    return g.standard_normal((rows, columns))


def table(
    rows: int, columns: int, seed: int, two: bool, draw: Draw = independent, strong: float = 1.0
) -> Parts:
    """Rows to learn and to test, whose label follows the first ten columns."""
    g = np.random.default_rng(seed)
    X = draw(g, rows + TEST, columns)
    told = X[:, :10] - X[:, :10].mean(0)
    z = (told / told.std(0)) @ (strong * g.choice([-1.0, 1.0], 10))
    y = z + g.standard_normal(len(X))
    if two:
        y = np.where(g.random(len(X)) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    order = g.permutation(columns)
    return rows_of(X[:rows, order], y[:rows]), rows_of(X[rows:, order], y[rows:])


def rows_of(X: F64, y: F64) -> Chunk:
    """Return the rows of a matrix, without zeros."""
    there = X != 0
    ends = np.concatenate([[0], np.cumsum(there.sum(1))])
    return Chunk.from_csr(ends, np.nonzero(there)[1], X[there], y)


def neighbours(share: float) -> Draw:
    """Columns of which neighbours are correlated."""

    def draw(g: np.random.Generator, rows: int, columns: int) -> F64:
        X = g.standard_normal((rows, columns))
        for k in range(1, columns):
            X[:, k] = share * X[:, k - 1] + np.sqrt(1 - share**2) * X[:, k]
        return X

    return draw


def blocks(g: np.random.Generator, rows: int, columns: int) -> F64:
    """Columns in blocks of twenty, two of which have a correlation of 0.64 in a block."""
    shared = np.repeat(g.standard_normal((rows, columns // 20)), 20, axis=1)
    return np.asarray(0.8 * shared + 0.6 * g.standard_normal((rows, columns)))


def heavy(g: np.random.Generator, rows: int, columns: int) -> F64:
    """Heavy-tailed columns."""
    return g.standard_t(3, (rows, columns))


def mixed(g: np.random.Generator, rows: int, columns: int) -> F64:
    """Half of the columns are one in a twentieth of the rows, else zero."""
    X = g.standard_normal((rows, columns))
    X[:, ::2] = g.random((rows, len(X[0, ::2]))) < 0.05
    return X


KINDS: dict[str, dict[str, Any]] = {
    "neighbours 0.5": {"draw": neighbours(0.5)},
    "neighbours 0.9": {"draw": neighbours(0.9)},
    "blocks of 20": {"draw": blocks},
    "heavy tails": {"draw": heavy},
    "half of them rare": {"draw": mixed},
    "strong": {"strong": 3.0},
}
SIZES = (150, 20_000), (200, 5_000), (300, 300), (1_000, 2_000)


def tables() -> Iterator[tuple[Corpus, Parts]]:
    """Make eight tables of independent columns, and twelve of other kinds, one after the other."""
    for rows, columns in SIZES:
        for seed in (1, 2):
            yield of(f"{rows:,} x {columns:,}, {seed}", False), table(rows, columns, seed, False)
    for name, more in KINDS.items():
        for two in (False, True):
            kind = "two classes" if two else "numbers"
            yield of(f"{name}, {kind}", two), table(250, 2_000, 3, two, **more)


def of(name: str, two: bool) -> Corpus:
    """Name a table that is made."""
    return Corpus(name, "one" if two else "value", (), lambda folder: table(2, 2, 0, two))


def run(setting: Setting) -> list[Goal]:
    """Train, test, print and check the goals."""
    if not peers.installed("sklearn"):
        return []
    contenders = {name: learn for name, learn in learners().items() if name in (OURS, ONE)} | {
        ANCHOR: partial(anchor, folds=5)
    }
    rows, seconds = Rows(), dict[str, list[float]]()
    for corpus, parts in tables():
        rows[corpus], seconds[corpus.name] = {}, []
        for name, learn in contenders.items():
            started = time.perf_counter()
            rows[corpus][name] = learn(corpus, parts)
            seconds[corpus.name].append(time.perf_counter() - started)
    losses("few rows of many columns: test loss @ weights", rows, contenders)
    report.table(
        "the same: seconds",
        ("", *contenders),
        [(name, *(report.figure(one) for one in taken)) for name, taken in seconds.items()],
    )
    found, took = Ratios.of(rows.values(), OURS, ANCHOR), seconds[LARGEST]
    met = found.mean <= MEAN and found.worst <= WORST and found.weights <= WEIGHTS
    goal = f"<= {MEAN}, worst <= {WORST}, <= {WEIGHTS} x"
    share = took[0] / took[-1]
    return [
        Goal(f"{len(rows)} tables of few rows: test loss over that of {ANCHOR}", goal, str(found), met),
        Goal(f"{LARGEST}: time over that of {ANCHOR}", "<= 1/3", f"{share:.2f}", share <= SHARE),
    ]
