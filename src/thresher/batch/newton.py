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


def _penalty(w: F64, l1: F64, l2: F64) -> float:
    return float((l1 * np.abs(w) + 0.5 * l2 * np.square(w)).sum())


def settled(solver: Any, callback: Callable[[Round], None] = lambda _: None) -> tuple[Round, int]:
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
        return row._replace(
            number=done.number + row.number,
            sweeps=done.sweeps + row.sweeps,
            seconds=done.seconds + row.seconds,
        )

    while turns < _TURNS:
        loadings, enough = solver.noise(), max(_STANDS, 1.0 / solver.freedom)
        if turns and (np.abs(loadings - solver.loadings) <= enough * loadings).all():
            break
        solver.loadings, turns = loadings, turns + 1
        done = tell(solver.run(lambda row: callback(tell(row))))
    return done, turns


class Newton(Rounds):
    """Minimises the objective with penalties l1 psi_j |w_j| + l2 (psi_j w_j)^2 / 2.

    `loadings` (d, or d + 1 with an intercept) are the psi, ones unless changed; the last is only the unit in
    which the derivative of the intercept is measured. They can be changed between two runs; a run begins at
    `w`. `z`, `slopes` and `curvatures` (n,) are the margins and the derivatives of the rows.
    """

    def __init__(self, columns: FeatureColumns, loss: Any, plan: BoostPlan) -> None:
        super().__init__(columns.keys, columns.intercept, float(columns.labels.min(initial=0.0)), plan)
        self.columns, self.loss, self.examples = columns, loss, len(columns.labels)
        self.z, self.loadings = columns.base.copy(), np.ones(len(self.w))
        self.slopes, self.curvatures = np.zeros(self.examples), np.zeros(self.examples)
        self.gradient, self._damping = np.zeros(len(self.w)), 0.0
        self._spreads: F64 | None = None
        self._pool = (
            ThreadPoolExecutor(plan.threads) if plan.threads > 1 and len(columns.values) >= _WORTH else None
        )
        self._all = np.arange(len(self.w))
        self._enough, self._draws = 0.0, np.random.default_rng(0)
        self._derive()
        self.fit_intercept()
        features = self._all[: len(self.keys)]
        steepest = np.abs(self.moments(features, self.slopes))
        noise = np.sqrt(self.second_moments(features, self.slopes**2, np.zeros(len(features))))
        self._steepest = np.maximum(steepest, NOISE * noise)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def fit_intercept(self) -> None:
        """Move the intercept alone to its best, if there is one."""
        if self.intercept and not self.alike():
            for _ in range(_SWEEPS):
                if abs(self.slopes.sum()) <= NOISE * np.abs(self.slopes).sum():
                    break
                self._step(self._all[-1:], np.array([self.slopes.sum()]), 0.0)

    def set_base(self, base: F64) -> None:
        """Replace the base of the rows (n,), with the same weights."""
        self.z += base - self.columns.base
        self.columns = replace(self.columns, base=base)
        self._derive()

    def margins(self) -> F64:
        """Those of the rows (n,), with their base."""
        return self.z

    def start(self) -> None:
        """See `Rounds`."""
        self._enough = 0.0
        self.unit = float((self._steepest / self.loadings[: len(self.keys)]).max(initial=0.0)) or 1.0

    def measure_all(self) -> None:
        """See `Rounds`."""
        self.measure(self._all)

    def measure(self, chosen: I64) -> None:
        """Compute the gradients and violations of the chosen columns."""
        self.gradient[chosen] = self.moments(chosen, self.slopes)
        # distances of 0 from the subgradients, in units of the loadings
        l1, l2 = self._penalties(chosen)
        w = self.w[chosen]
        pull = self.gradient[chosen] + l2 * w
        found = np.where(w != 0, np.abs(pull + l1 * np.sign(w)), np.maximum(np.abs(pull) - l1, 0.0))
        if self.intercept and int(chosen[-1]) == len(self.keys):  # beside tiny columns its rounding is large
            found[-1] = max(found[-1] - _ROUNDING * float(np.abs(self.slopes).sum()), 0.0)
        self.gap[chosen] = found / self.loadings[chosen]

    def objective(self) -> float:
        """See `Rounds`."""
        return self._loss + self.penalty()

    def penalty(self) -> float:
        """The penalties of all weights."""
        return _penalty(self.w, *self._penalties(self._all))

    def endless(self) -> str | None:
        """See `Rounds`."""
        c, counts = self.columns, self.columns.weights > 0
        if self.loss.DOMAIN == "nonnegative" and self.alike() and self.intercept:
            return "all labels are 0"
        if self.loss.DOMAIN != "binary":
            return None
        sides = np.where(c.labels > 0, 1.0, -1.0)
        sided = 0
        if not (self.plan.l1 or self.plan.l2) and len(self.keys):
            signed = c.values * (sides * counts)[c.rows]
            one, other = (
                np.add.reduceat(part > 0, c.starts[:-1])[: len(self.keys)] for part in (signed, -signed)
            )
            sided = int(np.count_nonzero((one > 0) != (other > 0)))
        return self.why_endless(self.alike(), bool((self.z * sides > 0)[counts].all()), sided)

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

    @property
    def freedom(self) -> int:
        """Rows less weights less 1, at least 1."""
        rows = int(np.count_nonzero(self.columns.weights))
        return max(rows - int(np.count_nonzero(self.w[: len(self.keys)])) - 1, 1)

    def noise(self) -> F64:
        """The standard deviations of the derivatives at `w`, see `settled`; 1 where there is none."""
        rows, squares = np.count_nonzero(self.columns.weights), float(np.square(self.slopes).sum())
        if self._spreads is None:
            # psi of the columns over the root of the sum of squared slopes
            squared, means = np.square(self.columns.weights), np.zeros(len(self.w))
            total = float(squared.sum()) or 1.0
            if self.intercept:
                means[:-1] = self.moments(self._all[:-1], squared) / total
            about_mean = self.second_moments(self._all, squared, means) / total
            about_zero = np.square(means)  # a constant column is the intercept's
            spreads = np.where(about_mean > _TELLS**2 * about_zero, about_mean, about_zero)
            self._spreads = np.sqrt(spreads)
        found = self._spreads * np.sqrt(squares * rows / self.freedom)
        return np.where(found > 0, found, 1.0)

    def moments(self, chosen: I64, each: F64) -> F64:
        """The sums of x_ij times `each` (n,) over the rows, for the chosen columns (k,)."""
        c, out = self.columns, np.empty(len(chosen))
        self._spread(
            chosen,
            lambda lo, hi: descent.first_moments(chosen, lo, hi, c.starts, c.rows, c.values, each, out),
        )
        return out

    def second_moments(self, chosen: I64, each: F64, means: F64) -> F64:
        """The sums of (x_ij - means_k)^2 times `each` (n,), for the chosen columns (k,)."""
        c, out, total = self.columns, np.empty(len(chosen)), float(each.sum())
        self._spread(
            chosen,
            lambda lo, hi: descent.second_moments(
                chosen, lo, hi, c.starts, c.rows, c.values, each, total, means, out
            ),
        )
        return out

    def _penalties(self, chosen: I64) -> tuple[F64, F64]:
        """l1 and l2 of the chosen columns; 0 for the intercept."""
        held = np.where(chosen < len(self.keys), self.loadings[chosen], 0.0)
        return self.plan.l1 * held, self.plan.l2 * np.square(held)

    def working_set(self) -> I64:
        """The columns with a weight, and those with the greatest violations, ascending."""
        alive = self.w != 0
        alive[len(self.keys) :] = True
        (violated,) = np.nonzero(~alive & (self.gap > 0))
        most = max(_LEAST, (_GROWTH - 1) * int(alive.sum()))
        if len(violated) > most:
            violated = violated[np.argsort(-self.gap[violated], kind="stable")[:most]]
        alive[violated] = True
        return np.flatnonzero(alive)

    def _step(self, chosen: I64, gradient: F64, enough: float) -> int:
        """Take a Newton step with the chosen columns; descent ends if its violations are `enough` in all."""
        c, free, h = self.columns, chosen[: len(chosen) - self.intercept], self.curvatures
        if self._damping:
            size = float(h.sum()) or float(np.abs(self.slopes).sum())
            h = h + c.weights * (self._damping * size / float(c.weights.sum()))
        total = float(h.sum()) if self.intercept else 0.0
        inverse = 1.0 / total if total > 0.0 else 0.0
        means = self.moments(free, h) if self.intercept else np.zeros(len(free))
        moments = self.second_moments(free, h, means * inverse)
        flat = moments <= descent.FLAT * means * means * inverse
        columns = gradient[: len(free)], means, np.where(flat, 0.0, moments), *self._penalties(free)
        model = np.column_stack([*columns, self.loadings[free]])
        pull = float(gradient[-1]) if self.intercept else 0.0
        w, p, seed = self.w[free], np.zeros(self.examples), int(self._draws.integers(1 << 62))
        data = free, c.starts, c.rows, c.values
        sweeps = int(descent.descend(*data, h, model, (pull, inverse), w, p, enough, _SWEEPS, seed))
        steps, shift = w - self.w[free], np.zeros(self.examples)
        descent.shift_rows(free, steps, c.starts, c.rows, c.values, shift)
        if self.intercept:
            rise = -(pull + float((means * steps).sum())) * inverse
            steps, shift = np.append(steps, rise), shift + rise
        self._search(chosen, gradient, steps, shift)
        return sweeps

    def _search(self, chosen: I64, gradient: F64, steps: F64, shift: F64) -> None:
        """Move by the steps, or by half of them, or half of that ... so that the objective falls."""
        (l1, l2), w, z, before = self._penalties(chosen), self.w[chosen], self.z, self._loss

        held = _penalty(w, l1, l2)
        expected = float((gradient * steps + l1 * (np.abs(w + steps) - np.abs(w)) + l2 * w * steps).sum())
        bent = 0.5 * float((self.curvatures * shift * shift).sum() + (l2 * steps * steps).sum())
        for halvings in range(_HALVINGS):
            part = 0.5**halvings
            v = w + part * steps
            self.z = z + part * shift
            self._derive()
            change = self._loss - before + _penalty(v, l1, l2) - held
            if change <= _SUFFICIENT * part * expected + _ROUNDING * abs(before):
                self.w[chosen] = v
                break
        else:
            self.z, part = z, 0.0
            self._derive()
        promised = expected + bent
        if promised >= -_ROUNDING * abs(before):
            return
        agreement = change / promised if part == 1.0 else part
        if agreement < _POOR:
            self._damping = max(10 * self._damping, _DAMPING)
        elif agreement > _GOOD:
            self._damping = 0.1 * self._damping if self._damping > _DAMPING else 0.0

    def _derive(self) -> None:
        c, compiled = self.columns, derive.for_parts(self.loss)
        cuts = np.linspace(0, self.examples, BLOCKS + 1).astype(np.int64)
        self._loss = float(
            sum(
                self._in_threads(
                    cuts,
                    lambda lo, hi: compiled(
                        self.loss, lo, hi, c.labels, c.weights, self.z, self.slopes, self.curvatures
                    ),
                )
            )
        )

    def _spread(self, chosen: I64, work: Callable[[int, int], object]) -> None:
        """Call `work` for pieces of the chosen columns with about the same number of stored values."""
        if self._pool is None:
            work(0, len(chosen))
            return
        ends = np.cumsum(self.columns.starts[chosen + 1] - self.columns.starts[chosen])
        cuts = np.searchsorted(ends, np.linspace(0, ends[-1] if len(ends) else 0, BLOCKS + 1)[1:-1])
        self._in_threads(np.concatenate([[0], cuts, [len(chosen)]]).astype(np.int64), work)

    def _in_threads(self, cuts: I64, work: Callable[[int, int], object]) -> list[Any]:
        """Call ``work(lo, hi)`` for all pieces between cuts, in threads; results are in order."""
        spans = [(lo, hi) for lo, hi in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True) if lo < hi]
        if self._pool is None:
            return [work(*span) for span in spans]
        return list(self._pool.map(lambda span: work(*span), spans))

    def alike(self) -> bool:
        """Whether the labels of the rows that count let the intercept grow without end."""
        labels = self.columns.labels[self.columns.weights > 0]
        if self.loss.DOMAIN == "binary":
            return len(np.unique(labels > 0)) < 2
        return self.loss.DOMAIN == "nonnegative" and not labels.any()
