"""Estimates of kept features, with robust standard errors, from rows that took no part in choosing them.

The sum over rows i of c_i loss(o_i + b + w.x_i, y_i), with importances c_i and offsets o_i, is minimised over
w and b without penalty, by Newton's method. With its gradients s_i and its Hessian H at the minimum, the
covariance of the estimates is ::

    H^-1 (sum_i s_i s_i') H^-1 n / (n - k),    n rows, k estimates

which holds even if the model is wrong (Huber, The behavior of maximum likelihood estimates under nonstandard
conditions, Fifth Berkeley Symposium (1967); White, A heteroskedasticity-consistent covariance matrix
estimator, Econometrica 48 (1980); with the factor it is HC1 of MacKinnon and White, Journal of Econometrics
29 (1985)). The rows of a group share one s_i, and the factor is G / (G - 1) (n - 1) / (n - k) for G groups
(Liang and Zeger, Biometrika 73 (1986)). Intervals and p are those of the normal distribution.

The minimum may lie at infinity, in a direction d in which no loss rises: each d.x_i has the sign that the
label asks for, or is 0 (Albert and Anderson, On the existence of maximum likelihood estimates in logistic
regression models, Biometrika 71 (1984)). Newton's steps then move margins for ever, although the likelihood
hardly rises. The features in such a step are infinite; the others are estimated from the rows with d.x_i = 0,
since only these still say anything about them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.errors import printable
from thresher.engine.sound import Tensors, given, require
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.model.objective import Objective
from thresher.options.messages import mention

U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]
MOST = 500
"""features, each of which is a row of the Hessian"""
INTERCEPT = "intercept"
_TENSORS = ("estimate", "error", "support")
_NINETY = NormalDist().inv_cdf(0.95)
BLOCK, _STEPS = 1 << 12, 200
_DEPENDENT = 1e-10
"""A column of whose squares the columns before it leave at most this share is a combination of them."""
_FLAT, _MOVED, _STILL, _TOWARDS = 1e-10, 0.1, 0.01, 1e-4
"""A step goes to infinity if the likelihood hardly rises, but a margin moves: which rows stay where they are,
and the least share of the largest weight."""
_CONVERGED = 1e-9
"""change of the margins, as a share of the largest, that ends Newton's method"""
_FEW, _NAMED = 20.0, 3
"""rows on which an error must rest; features that a warning names"""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates for features, the most stable first, and for the intercept, which comes last."""

    keys: U64
    """(m,)"""
    estimate: F64
    """(m + 1,) in units of the data; infinite if the likelihood has no maximum, NaN if it has many"""
    error: F64
    """(m + 1,) robust standard errors; NaN without a finite estimate"""
    support: F64
    """(m + 1,) the number of equally weighty rows on which each error rests: (sum u^2)^2 / sum u^4"""
    rows: int
    """how many rows were used: not those of importance 0"""

    @property
    def z(self) -> F64:
        """(m + 1,) estimate / error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.isnan(self.error), np.nan, self.estimate / self.error)

    @property
    def p(self) -> F64:
        """(m + 1,) the chance of a z of this size or more, on either side, if the true value is 0."""
        return np.array([math.erfc(abs(one) / math.sqrt(2.0)) for one in self.z.tolist()])

    @property
    def low(self) -> F64:
        """(m + 1,) with `high`: the 90 % interval."""
        return self.estimate - _NINETY * self.error

    @property
    def high(self) -> F64:
        """(m + 1,)."""
        return self.estimate + _NINETY * self.error

    def tensors(self) -> Tensors:
        """The arrays of a file."""
        own = {name: getattr(self, name) for name in ("keys", *_TENSORS)}
        return own | {"rows": np.array([self.rows])}

    @classmethod
    def of(cls, tensors: Tensors) -> Estimates:
        """The inverse of `tensors`. StateError."""
        keys, (rows,) = given(tensors, "keys", (None,), np.uint64), given(tensors, "rows", (1,), np.int64)
        size = len(given(tensors, _TENSORS[0], (None,), np.float64, finite=False))
        require(size - len(keys) in (0, 1), _TENSORS[0], "one for each feature, and the intercept")
        arrays = {name: given(tensors, name, (size,), np.float64, finite=False) for name in _TENSORS}
        return cls(keys, **arrays, rows=int(rows))

    def table(self, called: dict[int, str]) -> list[dict[str, Any]]:
        """A dictionary per feature, and the last for the intercept; `called` are names."""
        heads = "estimate", "standard_error", "interval_low", "interval_high", "z", "p"
        arrays = self.estimate, self.error, self.low, self.high, self.z, self.p
        keys: list[Any] = [*self.keys.tolist(), INTERCEPT]
        return [
            {"feature": key, "name": called.get(key), **dict(zip(heads, numbers, strict=True))}
            for key, *numbers in zip(keys, *(one.tolist() for one in arrays), strict=False)
        ]

    def troubles(self, called: dict[int, str]) -> list[Finding]:
        """What was not estimated, or cannot be relied on, and why."""
        names = [printable(called.get(key, str(key))) for key in self.keys.tolist()] + ["the intercept"]

        def which(those: NDArray[np.bool_]) -> str:
            found = [names[k] for k in np.flatnonzero(those)]
            return ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED:,} more" * (len(found) > _NAMED))

        smaller = f"keep fewer features, with a smaller {mention('false')}, or give more rows"
        found = list[Finding]()
        if self.rows <= len(self.estimate) or np.isnan(self.estimate).all():
            reason = f"{self.rows:,} rows do not determine {len(self.estimate):,} estimates"
            return [Finding("no-estimates", f"{reason}: {smaller}")]
        if (endless := np.isinf(self.estimate)).any():
            reason = f"no finite estimate of {which(endless)}, which tells labels of some rows without error"
            found.append(Finding("separated", f"{reason}: look for a leak of the label, or give more rows"))
        if (many := np.isnan(self.estimate)).any():
            reason = (
                f"no estimate of {which(many)}, which is constant or a combination of other kept features"
            )
            remedy = "in the rows that estimate: leave out one that says the same"
            found.append(Finding("collinear", f"{reason} {remedy}"))
        if (few := np.isfinite(self.error) & (self.support < _FEW)).any():
            reason = f"the standard error of {which(few)} rests on few rows, and may be too small"
            found.append(Finding("few-rows", f"{reason}: {smaller}"))
        return found


class _Rows:
    """Rows as blocks of a dense matrix: columns less their means, in standard deviations, then ones.

    Without an intercept, columns keep their means, and the last is 0. A missing number is the mean.
    """

    def __init__(self, rows: Chunk, keys: U64, gaps: bool, intercept: bool) -> None:
        order, count = np.argsort(keys), len(keys)
        self.ends, self.columns = rows.indptr, order[np.searchsorted(keys[order], rows.keys)]
        values = rows.values.astype(np.float64) + (0.0 if rows.rests is None else rows.rests)
        missing = np.isnan(values) | (gaps & (values == 0.0))

        def sums(numbers: F64) -> F64:
            return np.bincount(self.columns, numbers, count).astype(np.float64)

        present = np.maximum(len(rows) - sums(missing.astype(np.float64)), 1.0)
        means = sums(np.where(missing, 0.0, values)) / present
        values = np.where(missing, means[self.columns], values)
        origin = means if intercept else np.zeros(count)
        zeros = len(rows) - np.bincount(self.columns, minlength=count)
        size = np.sqrt(sums((values - origin[self.columns]) ** 2) + zeros * origin**2)
        size = np.where(size > 0.0, size / math.sqrt(max(len(rows), 1)), np.inf)
        self.values = (values - origin[self.columns]) / size[self.columns]
        self.raw: F64 = np.diag(np.append(1.0 / size, 1.0 * intercept))
        """(m + 1, m + 1) makes estimates in units of the data of those for these columns"""
        self.raw[-1, :-1] = -origin / size
        self.weights, self.labels = rows.weights.astype(np.float64), rows.labels.astype(np.float64)
        self.base = rows.base()
        self.starts = np.arange(len(rows))
        """the first row of each group, or of each row"""
        if rows.groups is not None:
            self.starts = np.flatnonzero(np.append(True, rows.groups[1:] != rows.groups[:-1])[: len(rows)])

    def blocks(self) -> Iterator[tuple[slice, F64]]:
        """Ranges of rows, each of whole groups, with their matrices ``(rows, m + 1)``."""
        near = np.searchsorted(self.starts, np.arange(0, len(self.labels), BLOCK))
        bounds = np.unique(np.append(self.starts, len(self.labels))[near])
        for lo, hi in pairwise([*bounds.tolist(), len(self.labels)]):
            first, last = self.ends[lo], self.ends[hi]
            matrix = np.tile(self.raw[-1], (hi - lo, 1))  # where all features are 0
            inside = np.repeat(np.arange(hi - lo), np.diff(self.ends[lo : hi + 1]))
            matrix[inside, self.columns[first:last]] = self.values[first:last]
            yield slice(lo, hi), matrix

    def along(self, step: F64) -> F64:
        """How the margins (n,) change with a step (m + 1,)."""
        return np.concatenate([np.zeros(0), *(matrix @ step for _, matrix in self.blocks())])

    def sums(self, first: F64, second: F64) -> tuple[F64, F64]:
        """Sums of the rows times `first` (n,), (m + 1,), and of their products times `second` (n,)."""
        of_rows, products = np.zeros(len(self.raw)), np.zeros(self.raw.shape)
        for those, matrix in self.blocks():
            of_rows += first[those] @ matrix
            products += matrix.T @ (matrix * second[those, np.newaxis])
        return of_rows, products


def _independent(products: F64) -> NDArray[np.int64]:
    """The columns that are no combination of the intercept and of those before them, given their products."""
    found, left = list[int](), products.copy()
    for k in (len(left) - 1, *range(len(left) - 1)):
        if left[k, k] > _DEPENDENT * products[k, k]:
            found.append(k)
            left -= np.outer(left[:, k], left[k] / left[k, k])
    return np.array(sorted(found), np.int64)


def _minimised(
    table: _Rows, weights: F64, live: NDArray[np.int64], head: Objective
) -> tuple[F64, F64, tuple[F64, F64] | None]:
    """The minimum for the `live` columns, its margins, and None; or a step to infinity, with its changes.

    A step is halved while the slope along it ends nearly as high as it began low. NaN if there is no end.
    """
    own, margins, sharpest = np.zeros(len(table.raw)), table.base, 0.0
    for _ in range(_STEPS):
        slopes, curvatures = head.derivatives(margins, table.labels, weights)
        gradient, hessian = table.sums(slopes, curvatures)
        sharpest = max(sharpest, float(curvatures.max(initial=0.0)))
        step = np.zeros(len(own))
        try:
            step[live] = -np.linalg.solve(hessian[np.ix_(live, live)], gradient[live])
        except np.linalg.LinAlgError:
            break
        change = table.along(step) * (weights > 0)
        largest, fall = float(np.abs(change).max(initial=0.0)), float(gradient @ step)
        if largest <= _CONVERGED * float(np.abs(margins - table.base).max(initial=0.0)):
            return own + step, margins + change, None
        if largest > _MOVED and -fall < _FLAT * sharpest:
            return own, margins, (step, change)
        for shorter in 0.5 ** np.arange(60):
            slopes, _ = head.derivatives(margins + shorter * change, table.labels, weights)
            if slopes @ change <= -0.9 * fall:
                break
        own, margins = own + shorter * step, margins + shorter * change
    return own + np.nan, margins, None


def estimate(rows: Chunk, keys: U64, head: Objective, *, gaps: bool, intercept: bool) -> Estimates:
    """Estimates for the features `keys` (m,), from `rows` of importance above 0 that have no others.

    Rows of a group follow each other. With `gaps`, a stored 0 is a missing number.
    """
    table, count = _Rows(rows, keys, gaps, intercept), len(keys) + intercept
    weights, endless = table.weights.copy(), np.zeros(len(keys) + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        while True:  # until no direction leads to infinity
            live = _independent(table.sums(weights, weights)[1])
            found, margins, away = _minimised(table, weights, live, head)
            if away is None:
                break
            step, change = away
            weights[np.abs(change) > _STILL] = 0.0
            far = np.abs(step) > _TOWARDS * np.abs(step).max()
            far[-1] = abs(table.raw[-1] @ step) > _TOWARDS * (np.abs(table.raw[-1]) @ np.abs(step))
            endless[far] = np.copysign(np.inf, table.raw @ found)[far]
        slopes, curvatures = head.derivatives(margins, table.labels, weights)
    estimate, error, support = (np.full(len(keys) + 1, np.nan) for _ in range(3))
    used = np.add.reduceat(weights > 0, table.starts, dtype=np.int64) if len(rows) else np.zeros(1, np.int64)
    n, groups, k = int(used.sum()), int(np.count_nonzero(used)), len(live)
    if n > k > 0 and groups > 1 and not np.isnan(found).any():
        inverse = np.linalg.inv(table.sums(slopes, curvatures)[1][np.ix_(live, live)])
        outer, total, squares = np.zeros((k, k)), np.zeros(k), np.zeros(k)
        for those, matrix in table.blocks():
            within = np.searchsorted(table.starts, [those.start, those.stop])
            firsts, pulls = table.starts[slice(*within)] - those.start, matrix[:, live] @ inverse
            influences = np.add.reduceat(pulls * slopes[those, np.newaxis], firsts)
            information = np.add.reduceat(pulls**2 * curvatures[those, np.newaxis], firsts)
            outer += influences.T @ influences
            total, squares = total + information.sum(axis=0), squares + (information**2).sum(axis=0)
        raw = table.raw[:, live]
        variance = ((raw @ outer) * raw).sum(axis=1) * (groups / (groups - 1) * (n - 1) / (n - k))
        estimate[live], error[live] = (raw @ found[live])[live], np.sqrt(variance)[live]
        support[live] = total**2 / squares
    far = endless != 0.0
    estimate[far], error[far] = endless[far], np.nan
    return Estimates(keys, estimate[:count], error[:count], support[:count], len(rows))
