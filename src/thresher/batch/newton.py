"""The proximal Newton method with working sets.

A round ends with the certificate over all columns. Between two, a working set of columns, those with a weight
and the greatest violations, takes Newton steps: coordinate descent minimises the quadratic model of the loss
plus the penalties over it, and a line search makes sure that the objective falls. A round costs a look at
every stored value, a step only those of the working set.

References: Yuan, Ho and Lin, An improved GLMNET for L1-regularized logistic regression, JMLR 13 (2012);
Massias, Gramfort and Salmon, Celer: a fast solver for the Lasso with dual extrapolation, ICML 2018, for
working sets.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.batch import descent
from thresher.batch.columns import FeatureColumns
from thresher.batch.rounds import F64, I64, NOISE, BoostPlan, Round, Rounds
from thresher.engine.kernels import derive

BLOCKS = 16
"""Work is split into this many pieces for any number of threads, so that sums do not depend on it."""
_WORTH = 1 << 22
"""Stored values from which a look at them takes longer than handing it to threads"""
_LEAST, _GROWTH = 1000, 2
"""Columns of the first working set; how many times the weights alive a later one has"""
STEPS, SHARE = 10, 0.3
"""Newton steps in a round, at most; it ends at this share of the largest violation of its working set"""
_SWEEPS, _TIGHTER = 100, 0.25
"""Sweeps in a step, at most; after one of a single sweep, the next end at this share of the violations"""
_SUFFICIENT, _HALVINGS = 0.01, 10
"""Least share of the expected fall of the objective; halvings of a step at most"""
_ROUNDING = 1e-14
"""Share of the objective, and of the sum of slopes' sizes, below which a change is rounding"""
_TURNS, _STANDS = 20, 0.01
"""Measurements of noise, at most; it stands if it changes by no more than this share"""
_TELLS = 1e-6
"""A column's deviation from its mean counts from this share of the mean"""
_POOR, _GOOD, _DAMPING = 0.25, 0.75, 1e-3
"""Shares of the fall that the model expected, below and above which damping changes; its least value"""


def solve_in_deviations(solver: Any, callback: Callable[[Round], None] = lambda _: None) -> tuple[Round, int]:
    """Solve with penalties in standard deviations of noise, measured until they stand; the last round, turns.

    The loading of column j is psi_j = noise sqrt(sum_i c_i^2 (x_ij - m_j)^2), with the mean m_j, importances
    c and noise^2 = n / (n - s - 1) sum_i (c_i slope_i)^2 / sum_i c_i^2 at the current s weights, n rows. It
    shrinks as the model explains more, so solving and measuring alternate until it changes by no more than
    1 %, or than two weights do, or 20 times. Without n / (n - s - 1), the share of the noise that weights do
    not explain, there may be no end: on 150 rows of 20,000 columns psi fell by a fifth in every turn, down to
    150 weights. With the slopes of the rows under the root (Belloni, Chen, Chernozhukov and Hansen, Sparse
    models and methods for optimal instruments, Econometrica 80, 2012), heavy-tailed columns that matter never
    enter: before they do, the slopes are large in the same rows.

    References: Sun and Zhang, Scaled sparse linear regression, Biometrika 99 (2012); Reid, Tibshirani and
    Friedman, A study of error variance estimation in Lasso regression, Statistica Sinica 26 (2016), for the
    degrees of freedom.
    """
    done, turns = Round(0, 0, 0.0, 0.0, 0, 0.0), 0

    def tell(row: Round) -> Round:
        number, sweeps = done.number + row.number, done.sweeps + row.sweeps
        return row._replace(number=number, sweeps=sweeps, seconds=done.seconds + row.seconds)

    while turns < _TURNS:
        loadings, freedom = solver.noise()
        enough = max(_STANDS, 1.0 / freedom)
        if turns and (np.abs(loadings - solver.loadings) <= enough * loadings).all():
            break
        solver.loadings[:], turns = loadings, turns + 1
        done = tell(solver.run(lambda row: callback(tell(row))))
    return done, turns


class Newton(Rounds):
    """Minimises the objective with penalties l1 psi_j |w_j| + l2 (psi_j w_j)^2 / 2.

    `loadings` (d, or d + 1 with an intercept) are the psi, ones unless changed; the last is only the unit in
    which the derivative of the intercept is measured. They can be changed between two runs; a run begins at
    `w`. `z`, `slopes` and `curvatures` (n,) are the margins and the derivatives of the rows.
    """

    def __init__(self, columns: FeatureColumns, loss: Any, plan: BoostPlan) -> None:
        super().__init__(columns, loss, plan)
        self.z, self.loadings = columns.base.copy(), np.ones(len(self.w))
        self.slopes, self.curvatures = np.zeros(self.examples), np.zeros(self.examples)
        self.gradient, self._damping = np.zeros(len(self.w)), 0.0
        self._spreads: F64 | None = None
        threads = plan.threads > 1 and len(columns.values) >= _WORTH
        self._pool = ThreadPoolExecutor(plan.threads) if threads else None  # which end with the solver
        self._enough, self._draws = 0.0, np.random.default_rng(0)
        self._derive()
        self.fit_intercept()
        features = self.all[: self.features]
        steepest = np.abs(self._moments(features, self.slopes))
        noise = np.sqrt(self._moments(features, self.slopes**2, np.zeros(len(features))))
        self._steepest = np.maximum(steepest, NOISE * noise)

    def fit_intercept(self) -> None:
        """Move the intercept alone to its best, if there is one."""
        if self.columns.intercept and not self.alike():
            for _ in range(_SWEEPS):
                if abs(self.slopes.sum()) <= NOISE * np.abs(self.slopes).sum():
                    break
                self._step(self.all[-1:], np.array([self.slopes.sum()]), 0.0)

    def set_base(self, base: F64) -> None:
        """Replace the base of the rows (n,), with the same weights."""
        self.z += base - self.columns.base
        self.columns = replace(self.columns, base=base)
        self._derive()

    def start(self) -> None:
        """See `Rounds`."""
        self._enough = 0.0
        self.unit = float((self._steepest / self.loadings[: self.features]).max(initial=0.0)) or 1.0

    def measure(self, chosen: I64) -> None:
        """Compute the gradients and violations of the chosen columns."""
        self.gradient[chosen] = self._moments(chosen, self.slopes)
        # distances of 0 from the subgradients, in units of the loadings
        l1, l2 = self._penalties(chosen)
        w = self.w[chosen]
        pull = self.gradient[chosen] + l2 * w
        found = np.where(w != 0, np.abs(pull + l1 * np.sign(w)), np.maximum(np.abs(pull) - l1, 0.0))
        if (
            self.columns.intercept and int(chosen[-1]) == self.features
        ):  # beside tiny columns its rounding is large
            found[-1] = max(found[-1] - _ROUNDING * float(np.abs(self.slopes).sum()), 0.0)
        self.gap[chosen] = found / self.loadings[chosen]

    def objective(self) -> float:
        """See `Rounds`."""
        return self._loss + self.penalty(self.all, self.w)

    def penalty(self, chosen: I64, w: F64) -> float:
        """The penalties of the chosen columns if they had the weights `w`."""
        l1, l2 = self._penalties(chosen)
        return float((l1 * np.abs(w) + 0.5 * l2 * np.square(w)).sum())

    def improve(self) -> int:
        """See `Rounds`."""
        chosen, sweeps = self.working_set(), 0
        goal = SHARE * float(self.gap[chosen].max())
        for _ in range(STEPS):
            sweeps += self.step(chosen)
            if self.gap[chosen].max() <= goal:
                break
        return sweeps

    def step(self, chosen: I64) -> int:
        """Take a Newton step with the chosen columns, whose gap is known, and measure it; the sweeps."""
        self._enough = self._enough or float(self.gap[chosen].sum())
        sweeps = self._step(chosen, self.gradient[chosen], self._enough)
        self._enough *= _TIGHTER if sweeps == 1 else 1.0
        self.measure(chosen)
        return sweeps

    def noise(self) -> tuple[F64, int]:
        """Standard deviations of the derivatives at `w`, see `solve_in_deviations`; 1 where there is none.

        And the degrees of freedom: rows less weights less 1, at least 1.
        """
        rows, squares = np.count_nonzero(self.columns.weights), float(np.square(self.slopes).sum())
        freedom = max(int(rows) - int(np.count_nonzero(self.w[: self.features])) - 1, 1)
        if self._spreads is None:
            # psi of the columns over the root of the sum of squared slopes
            squared, means = np.square(self.columns.weights), np.zeros(len(self.w))
            total = float(squared.sum()) or 1.0
            if self.columns.intercept:
                means[:-1] = self._moments(self.all[:-1], squared) / total
            about_mean = self._moments(self.all, squared, means) / total
            about_zero = np.square(means)  # a constant column is the intercept's
            spreads = np.where(about_mean > _TELLS**2 * about_zero, about_mean, about_zero)
            self._spreads = np.sqrt(spreads)
        found = self._spreads * np.sqrt(squares * rows / freedom)
        return np.where(found > 0, found, 1.0), freedom

    def _moments(self, chosen: I64, each: F64, means: F64 | None = None) -> F64:
        """The sums of x_ij times `each` (n,) over the rows, for the chosen columns (k,).

        With `means` (k,) those of (x_ij - means_k)^2 times `each`. Threads take pieces with about the same
        number of stored values.
        """
        c, out = self.columns, np.empty(len(chosen))
        data = c.starts, c.rows, c.values, each
        total = 0.0 if means is None else float(each.sum())

        def work(lo: int, hi: int) -> None:
            if means is None:
                descent.first_moments(chosen, lo, hi, *data, out)
            else:
                descent.second_moments(chosen, lo, hi, *data, total, means, out)

        if self._pool is None:
            work(0, len(chosen))
            return out
        stored = np.cumsum(c.starts[chosen + 1] - c.starts[chosen])
        cuts = np.searchsorted(stored, np.linspace(0, stored[-1] if len(stored) else 0, BLOCKS + 1)[1:-1])
        self._in_pieces(np.concatenate([[0], cuts, [len(chosen)]]).astype(np.int64), work)
        return out

    def _penalties(self, chosen: I64) -> tuple[F64, F64]:
        """l1 and l2 of the chosen columns; 0 for the intercept."""
        held = np.where(chosen < self.features, self.loadings[chosen], 0.0)
        return self.plan.l1 * held, self.plan.l2 * np.square(held)

    def working_set(self) -> I64:
        """The columns with a weight, and those with the greatest violations, ascending."""
        alive = self.w != 0
        alive[self.features :] = True
        (violated,) = np.nonzero(~alive & (self.gap > 0))
        most = max(_LEAST, (_GROWTH - 1) * int(alive.sum()))
        if len(violated) > most:
            violated = violated[np.argsort(-self.gap[violated], kind="stable")[:most]]
        alive[violated] = True
        return np.flatnonzero(alive)

    def _step(self, chosen: I64, gradient: F64, enough: float) -> int:
        """Take a Newton step with the chosen columns; descent ends if its violations are `enough` in all.

        Moves by the step, or by half of it, or half of that ... so that the objective falls.
        """
        c, h = self.columns, self.curvatures
        free = chosen[: len(chosen) - c.intercept]
        if self._damping:
            size = float(h.sum()) or float(np.abs(self.slopes).sum())
            h = h + c.weights * (self._damping * size / float(c.weights.sum()))
        total = float(h.sum()) if c.intercept else 0.0
        inverse = 1.0 / total if total > 0.0 else 0.0
        means = self._moments(free, h) if c.intercept else np.zeros(len(free))
        moments = self._moments(free, h, means * inverse)
        flat = moments <= descent.FLAT * means * means * inverse
        columns = gradient[: len(free)], means, np.where(flat, 0.0, moments), *self._penalties(free)
        model = np.column_stack([*columns, self.loadings[free]])
        pull = float(gradient[-1]) if c.intercept else 0.0
        v, p, seed = self.w[free], np.zeros(self.examples), int(self._draws.integers(1 << 62))
        data = free, c.starts, c.rows, c.values
        sweeps = int(descent.descend(*data, h, model, (pull, inverse), v, p, enough, _SWEEPS, seed))
        steps, shift = v - self.w[free], np.zeros(self.examples)
        descent.shift_rows(free, steps, c.starts, c.rows, c.values, shift)
        if c.intercept:
            rise = -(pull + float((means * steps).sum())) * inverse
            steps, shift = np.append(steps, rise), shift + rise
        (l1, l2), w, z, before = self._penalties(chosen), self.w[chosen], self.z, self._loss
        held = self.penalty(chosen, w)
        expected = float((gradient * steps + l1 * (np.abs(w + steps) - np.abs(w)) + l2 * w * steps).sum())
        bent = 0.5 * float((self.curvatures * shift * shift).sum() + (l2 * steps * steps).sum())
        for part in (0.5**halvings for halvings in range(_HALVINGS)):
            v = w + part * steps
            self.z = z + part * shift
            self._derive()
            change = self._loss - before + self.penalty(chosen, v) - held
            if change <= _SUFFICIENT * part * expected + _ROUNDING * abs(before):
                self.w[chosen] = v
                break
        else:
            self.z, part = z, 0.0
            self._derive()
        promised = expected + bent
        if promised < -_ROUNDING * abs(before):
            agreement = change / promised if part == 1.0 else part
            if agreement < _POOR:
                self._damping = max(10 * self._damping, _DAMPING)
            elif agreement > _GOOD:
                self._damping = 0.1 * self._damping if self._damping > _DAMPING else 0.0
        return sweeps

    def _derive(self) -> None:
        """Compute the loss, and the derivatives of all rows, at their margins."""
        c, compiled = self.columns, derive.for_parts(self.loss)
        rows = c.labels, c.weights, self.z, self.slopes, self.curvatures
        cuts = np.linspace(0, self.examples, BLOCKS + 1).astype(np.int64)
        self._loss = float(sum(self._in_pieces(cuts, lambda lo, hi: compiled(self.loss, lo, hi, *rows))))

    def _in_pieces(self, cuts: I64, work: Callable[[int, int], Any]) -> list[Any]:
        """Call ``work(lo, hi)`` for all pieces between cuts, in threads if any; results are in order."""
        each = map if self._pool is None else self._pool.map
        return [*each(work, cuts[:-1].tolist(), cuts[1:].tolist())]
