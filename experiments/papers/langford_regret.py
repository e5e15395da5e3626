"""Regret and its bound, and weights that approach the batch optimum (Langford, Li and Zhang, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import csr
from experiments.papers.generated import few_numbers
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from thresher import Model, boost
from thresher.data import Chunk
from thresher.drawing import Axis, Panel, Series, chart, panels

Vector = NDArray[np.float64]
GRAVITY, BATCH_GRAVITY, TIMES = 0.01, 0.003, 40
PLAIN = "truncated-gradient:gravity={}"
SETTINGS = (
    (PLAIN, 0.1, False),
    (PLAIN, 0.5, False),
    (PLAIN, 0.5, True),
    ("truncated-gradient:gravity={},theta=0.2,every=10", 0.5, False),
)
"""rule, constant step size, and whether each row is the one with the largest regret"""
STEPS = (3.0, 1.0, 0.3, 0.1, 0.03)


def unit(rows: Chunk) -> Chunk:
    """Divide each row by its length: the squared gradient is then at most 1."""
    lengths = np.sqrt(np.bincount(_row_of(rows), rows.values.astype(np.float64) ** 2, len(rows)))
    values = rows.values / np.maximum(lengths, 1e-12)[_row_of(rows)]
    return replace(rows, values=values.astype(np.float32))


def _row_of(rows: Chunk) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(rows)), np.diff(rows.indptr))


def model_of(rule: str, gravity: float, eta: float, average: bool = False) -> Model:
    """Logistic loss, a constant step size and no intercept, as in the theorems."""
    return Model(
        rule.format(gravity),
        "logistic",
        rate=f"constant:{eta}",
        intercept=False,
        dtype="float64",
        average=average,
    )


def dense(model: Any, columns: int) -> Vector:
    """The weights (columns,)."""
    keys, values = model.weights()
    found = np.zeros(columns)
    found[keys.astype(int)] = values
    return found


def optimum(rows: Chunk, gravity: float, columns: int) -> Vector:
    """The minimiser of the mean logistic loss + gravity |w|_1, by the batch solver."""
    found = boost(rows, loss="logistic", l1=gravity * len(rows), intercept=False, tolerance=1e-6)
    weights = np.zeros(columns)
    weights[found.keys.astype(int)] = found.weights.ravel()
    return weights


class Course(NamedTuple):
    """Mean regret after each row, and its bound."""

    name: str
    regret: Vector
    bound: Vector


def course(rule: str, eta: float, worst: bool, rows: Chunk, against: Vector) -> Course:
    """Learn row by row; both sides of theorem 3.1, with A = 0 and B = 1."""
    model, count = model_of(rule, GRAVITY, eta), np.arange(1, len(rows) + 1)
    part: Any = model.rule
    matrix = csr(rows, np.float64, len(against)).toarray() * rows.labels[:, np.newaxis]
    others = np.logaddexp(0, -(matrix @ against))
    weights, regret = np.zeros(len(against)), np.zeros(len(rows))
    for i in range(len(rows)):
        k = int(np.argmax(np.logaddexp(0, -(matrix @ weights)) - others)) if worst else i
        met = np.logaddexp(0, -(matrix[k] @ weights))
        model.learn(rows, k, k + 1)
        weights = dense(model, len(against))
        regret[i] = met - others[k]
        if (i + 1) % part.every == 0:
            inside = np.abs(weights) <= part.theta
            regret[i] += part.every * GRAVITY * ((np.abs(weights) - np.abs(against)) * inside).sum()
    name = f"eta = {eta:g}" + (", always the row with the largest regret" if worst else "")
    limit = "infinity" if np.isinf(part.theta) else f"{part.theta:g}"
    name += f", theta = {limit}, K = {part.every:g}"
    return Course(name, np.cumsum(regret) / count, eta / 2 + against @ against / (2 * eta * count))


class Approach(NamedTuple):
    """How far the objective is above its minimum, for a step size."""

    eta: float
    rows: int
    random: float
    """mean over random times"""
    average: float
    """of the averaged weights"""
    bound: float


def approach(eta: float, rows: Chunk, best: Vector, gravity: float) -> Approach:
    """Learn |w|^2 / eta^2 rows drawn at random, for which the bound is eta."""
    draw, count = np.random.default_rng(0), int(best @ best / eta**2) + 1
    plain, averaged = (model_of(PLAIN, gravity, eta, average) for average in (False, True))
    matrix = csr(rows, np.float64, len(best))

    def above(weights: Vector) -> float:
        values = [
            np.logaddexp(0, -rows.labels * (matrix @ w)).mean() + gravity * np.abs(w).sum()
            for w in (weights, best)
        ]
        return float(values[0] - values[1])

    found, done = [], 0
    for stop in [*np.sort(draw.integers(1, count + 1, TIMES)).tolist(), count]:
        drawn = _drawn(matrix, rows, draw.integers(0, len(rows), stop - done))
        for model in (plain, averaged):
            model.learn(drawn)
        found.append(above(dense(plain, len(best))))
        done = stop
    bound = eta / 2 + float(best @ best) / (2 * eta * count)
    return Approach(eta, count, float(np.mean(found[:-1])), above(dense(averaged, len(best))), bound)


def _drawn(matrix: Any, rows: Chunk, places: NDArray[np.int64]) -> Chunk:
    part = matrix[places]
    return Chunk.from_csr(part.indptr, part.indices, part.data, rows.labels[places], rows.weights[places])


def page(sets: Sets) -> Page:
    """Both theorems."""
    rows = unit(few_numbers(150) if sets.quick else sets.uci("krvskp"))
    columns = int(rows.keys.max()) + 1
    settings, steps = (SETTINGS[1:3], STEPS[1:3]) if sets.quick else (SETTINGS, STEPS)
    against, best = (optimum(rows, gravity, columns) for gravity in (GRAVITY, BATCH_GRAVITY))
    courses = [course(*setting, rows, against) for setting in settings]
    approaches = [approach(eta, rows, best, BATCH_GRAVITY) for eta in steps]
    return Page(
        title="Truncated gradient: regret and its bound",
        source="Langford, Li and Zhang (NIPS 2008), Theorems 3.1 and 3.2",
        claim="On any stream, the regret per row, with gravity counted, is at most "
        "eta B / 2 + |w|^2 / (2 eta T) against any weights w (3.1). On rows drawn at random, the weights at "
        "a random time, and their average, come as close to the optimum with L1 (3.2): the gap closes as "
        "eta falls and T grows.",
        method=f"{METHOD} The settings of 3.1: {'; '.join(one.name for one in courses)}.",
        verdicts=_verdicts(courses, approaches),
        pictures=[
            Picture(_stream(courses), "Regret per row and its bound along the stream, for each setting"),
            Picture(_gaps(approaches), "Distance to the minimum against eta, and the bound"),
        ],
        tables=[_table(approaches)],
    )


METHOD = (
    "`krvskp`, each row divided by its length. With logistic loss the constants of the theorems are then "
    "A = 0 and B = 1. `truncated-gradient` with a constant step size and no intercept. 3.1: gravity 0.01; "
    "the rows in mixed order, and once chosen by an adversary: at each step, the row with the largest "
    "regret. Here w is the minimiser of the mean loss + gravity |w|, found by "
    "[`boost`](../boost.md), the batch solver. Regret below zero is not drawn. 3.2: gravity 0.003, rows "
    "drawn with replacement; for each step size eta as many rows as make the bound equal to eta, |w|^2 / "
    "eta^2. The gap is the objective on all rows minus its minimum: the mean over 40 random times, and "
    "that of the averaged weights (`--average`)."
)


def _verdicts(courses: Sequence[Course], approaches: Sequence[Approach]) -> list[Verdict]:
    below = [bool(np.all(one.regret <= one.bound + 1e-12)) for one in courses]
    nearest = min(float(np.min(one.bound - one.regret)) for one in courses)
    under = [one.average <= one.bound and one.random <= one.bound for one in approaches]
    first, last = approaches[0], approaches[-1]
    closing = all(a.average > b.average and a.random > b.random for a, b in pairwise(approaches))
    return [
        Verdict(
            "3.1: the regret is under the bound after every row",
            "on any stream",
            f"in {sum(below)} of {len(below)} settings; bound - regret is at least {nearest:.3f}",
            all(below),
        ),
        Verdict(
            "3.2: weights at random times and averaged weights are within the bound of the optimum",
            "in expectation",
            f"for {sum(under)} of {len(under)} step sizes",
            all(under),
        ),
        Verdict(
            "the gap closes as eta falls",
            "as eta goes to 0",
            f"random times: {first.random:.3f} at eta = {first.eta:g}, {last.random:.5f} at {last.eta:g}; "
            f"averaged: {first.average:.3f} and {last.average:.5f}",
            closing,
        ),
    ]


def _stream(courses: Sequence[Course]) -> str:
    shown = []
    for one in courses:
        count = np.arange(1, len(one.regret) + 1).tolist()
        series = [Series("bound", count, one.bound.tolist()), Series("regret", count, one.regret.tolist())]
        shown.append(
            Panel(
                Axis("rows learned", log=True, whole=True), Axis("per row", log=True), series, title=one.name
            )
        )
    return panels(
        "Regret per row and its bound",
        "Regret per row against the batch optimum, and the bound of theorem 3.1, along the stream.",
        shown,
        height=230,
    )


def _gaps(approaches: Sequence[Approach]) -> str:
    eta = [one.eta for one in approaches]
    series = [
        Series("bound", eta, [one.bound for one in approaches]),
        Series("at random times", eta, [one.random for one in approaches], "both"),
        Series("averaged", eta, [one.average for one in approaches], "both"),
    ]
    return chart(
        "Distance to the minimum of loss + gravity |w|",
        "Distance to the minimum of the batch objective against the step size.",
        Axis("eta", log=True),
        Axis("objective - minimum", log=True),
        series,
    )


def _table(approaches: Sequence[Approach]) -> str:
    rows = [
        (f"{one.eta:g}", f"{one.rows:,}", f"{one.bound:.3f}", f"{one.random:.5f}", f"{one.average:.5f}")
        for one in approaches
    ]
    return table(("eta", "rows", "bound", "gap at random times", "gap of the average"), rows)
