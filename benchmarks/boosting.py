"""The batch solver, run to its certificate: methods and threads, compared with LIBLINEAR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import peers, report
from benchmarks.learning import in_memory
from benchmarks.measure import Sample, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import boost
from thresher.data import Chunk
from thresher.parts import make

ROWS, L1, TOLERANCE = 20_000, 1.0, 1e-3
OURS = (("newton", 1), ("newton", 2), ("parallel", 1))
LIBLINEAR = (1e-2, 1e-3, 1e-4)

Results = dict[str, tuple[float, int, str]]
"""Name -> objective, non-zeros, and how the solver ended"""


def run(setting: Setting) -> list[Goal]:
    """Measure and print; there are no goals."""
    rows = in_memory(setting.rcv1like.train).rows(0, ROWS)
    for loss in ("logistic", "exponential"):
        results: Results = {}
        contenders = {f"{method}, threads {n}": _ours(rows, loss, method, n, results) for method, n in OURS}
        if loss == "logistic" and peers.installed("sklearn"):
            contenders |= {f"LIBLINEAR, tol={tol:g}": _liblinear(rows, tol, results) for tol in LIBLINEAR}
        found = setting.in_turn(contenders, warm=list(contenders))
        best = min(objective for objective, _, _ in results.values())
        lines = []
        for name, s in found.items():
            objective, nonzero, end = results[name]
            times = [f"{value:.2f}" for value in (s.wall, s.least, s.cpu)]
            others = report.figure(s.others, ".1f")
            lines.append([name, *times, others, f"{objective / best - 1:.1e}", f"{nonzero:,}", end])
        report.table(
            f"{loss}, l1 = {L1:g}, no intercept, {len(rows):,} rows, {rows.nnz:,} non-zeros in memory;"
            f" thresher to certificate {TOLERANCE:g}",
            ("", "wall s", "least", "cpu s", "others", "above best", "non-zeros", "sweeps"),
            lines,
        )
    return []


def _ours(rows: Chunk, loss: str, method: str, threads: int, results: Results) -> Callable[[], Sample]:
    def solve() -> None:
        options: Any = {"method": method, "threads": threads, "tolerance": TOLERANCE}
        model = boost(rows, loss, l1=L1, intercept=False, **options)
        solution = model.solution
        results[f"{method}, threads {threads}"] = solution.objective, len(model.keys), f"{solution.sweeps:,}"

    return lambda: timed(solve)


def _liblinear(rows: Chunk, tol: float, results: Results) -> Callable[[], Sample]:
    from sklearn.linear_model import LogisticRegression

    matrix, labels = peers.csr(rows, np.float64), rows.labels.astype(np.float64)
    logistic = make("loss", "logistic")

    def solve() -> Any:
        model = LogisticRegression(
            l1_ratio=1.0, C=1 / L1, solver="liblinear", tol=tol, fit_intercept=False, max_iter=1000
        )
        return model.fit(matrix, labels)

    def sample() -> Sample:
        fitted: list[Any] = []
        taken = timed(lambda: fitted.append(solve()))
        w = fitted[0].coef_[0]
        losses = [logistic.value_slope(m, y)[0] for m, y in zip(matrix @ w, labels, strict=True)]
        objective = sum(losses) + L1 * float(np.abs(w).sum())
        results[f"LIBLINEAR, tol={tol:g}"] = objective, int(np.count_nonzero(w)), f"{fitted[0].n_iter_[0]}"
        return taken

    return sample
