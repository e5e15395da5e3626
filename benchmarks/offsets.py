"""Columns far from zero: a year, and columns with a mean of up to 1,000 deviations. Made data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers, report
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import train

ROWS = 2_000
"""to learn, and as many to test"""
MEANS = (30, 100, 1_000)
WEIGHTS = (1.0, -0.8, 0.6, -0.4, 0.9)
YEAR, OURS, ONE = "a year and an area", "thresher", "thresher, one pass"
ABOVE_LEAST_SQUARES, ABOVE_ATTAINABLE = 1.01, 1.03
CHOSEN: dict[str, dict[str, Any]] = {OURS: {}, ONE: {"passes": 1}}
F64 = NDArray[np.float64]


class Made(NamedTuple):
    """Rows to learn and rows to test, and the loss: ``squared`` or ``logistic``."""

    X: F64
    y: F64
    test: F64
    wanted: F64
    loss: str

    def figure(self, margins: F64) -> float:
        """Return the root mean squared error, or the log loss of margins, on the test rows."""
        if self.loss == "squared":
            return float(np.sqrt(np.mean((margins - self.wanted) ** 2)))
        return float(np.mean(np.logaddexp(0, np.where(self.wanted > 0, -margins, margins))))

    def ours(self, **chosen: Any) -> float:
        """Run `thresher.train` with nothing but the loss, and what is `chosen`."""
        model = train((self.X, self.y), loss=self.loss, **chosen)
        return self.figure(np.asarray(model.predict(self.test), np.float64))

    def attainable(self) -> float:
        """Return the figure of a regression without penalty on standardised columns, converged."""
        from sklearn.linear_model import LinearRegression, LogisticRegression
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(self.X)
        model: Any = LinearRegression()
        if self.loss == "logistic":
            model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=10_000)
        model.fit(scaler.transform(self.X), self.y)
        predict = model.predict if self.loss == "squared" else model.decision_function
        return self.figure(predict(scaler.transform(self.test)))


def year(rows: int = ROWS) -> Made:
    """Make prices of houses, which depend on the year of building (1900 to 2020) and the area."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1900, 2021, 2 * rows), rng.lognormal(4.6, 0.4, 2 * rows)])
    y = 1_500 * (X[:, 0] - 1960) + 600 * X[:, 1] + rng.normal(0, 50_000, 2 * rows)
    return Made(X[:rows], y[:rows], X[rows:], y[rows:], "squared")


def shifted(mean: float, rows: int = ROWS) -> Made:
    """Make columns with this mean and a deviation of 1, and labels that depend on all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * rows, len(WEIGHTS)))
    y = np.where(rng.random(2 * rows) < 1 / (1 + np.exp(-X @ WEIGHTS)), 1.0, -1.0)
    X += mean
    return Made(X[:rows], y[:rows], X[rows:], y[rows:], "logistic")


def run(setting: Setting) -> list[Goal]:
    """Train, test, print and check the goals."""
    del setting
    if not peers.installed("sklearn"):
        return []
    made = {YEAR: year(), **{f"a mean of {mean:,} deviations": shifted(mean) for mean in MEANS}}
    rows = {
        name: {**{ours: one.ours(**chosen) for ours, chosen in CHOSEN.items()}, "": one.attainable()}
        for name, one in made.items()
    }
    report.table(
        "columns far from zero: RMSE, or log loss, on test rows",
        ("", *CHOSEN, "attainable"),
        [(name, *(f"{figure:.4g}" for figure in found.values())) for name, found in rows.items()],
    )
    goals = []
    for name, found in rows.items():
        ratio, most = found[OURS] / found[""], ABOVE_LEAST_SQUARES if name == YEAR else ABOVE_ATTAINABLE
        what = (
            f"{name}: {'RMSE over that of least squares' if name == YEAR else 'log loss over the attainable'}"
        )
        goals.append(Goal(what, f"<= {most}", f"{ratio:.3f}", ratio <= most))
    return goals
