"""Loops of the proximal Newton method: derivatives of rows, moments of columns, descent on a quadratic model.

At the current weights, row i has the derivatives g_i and h_i > 0 of its loss, times its importance. With an
intercept, which is not penalised, the quadratic model is minimised over it in closed form: H = sum of h_i,

    min over d, e of  sum_i g_i u_i + h_i u_i^2 / 2,  u_i = sum_j x_ij d_j + e,
    e = -(sum_i g_i + sum_j m_j d_j) / H,  m_j = sum_i h_i x_ij,

so columns are centred by their means m_j / H without being written: means far from 0 slow nothing down.

References: Yuan, Ho and Lin, An improved GLMNET for L1-regularized logistic regression, JMLR 13 (2012),
sections 3 and 5; Friedman, Hastie and Tibshirani, Regularization paths for generalized linear models via
coordinate descent, Journal of Statistical Software 33 (2010), section 2.1.
"""

import numpy as np

from thresher.engine.compile.jit import kernel, scalar

FLAT = 1e-24
"""A column varies if its second moment about the mean is at least this share of that about 0."""


@scalar
def _dot(begin, end, rows, values, each):
    """The sum of x_i times `each_i`, in four parts: one addition would wait for the other."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    p, last = np.uint64(begin), np.uint64(end)
    while p + np.uint64(4) <= last:
        one += values[p] * each[rows[p]]
        two += values[p + np.uint64(1)] * each[rows[p + np.uint64(1)]]
        three += values[p + np.uint64(2)] * each[rows[p + np.uint64(2)]]
        four += values[p + np.uint64(3)] * each[rows[p + np.uint64(3)]]
        p += np.uint64(4)
    while p < last:
        one += values[p] * each[rows[p]]
        p += np.uint64(1)
    return (one + two) + (three + four)


@kernel
def first_moments(chosen, lo, hi, starts, rows, values, each, out):
    """Set out[k] to sum_i each_i x_ij for the columns j = chosen[k], k = lo..hi-1."""
    for k in range(lo, hi):
        out[k] = _dot(starts[chosen[k]], starts[chosen[k] + 1], rows, values, each)


@kernel
def second_moments(chosen, lo, hi, starts, rows, values, each, total, means, out):
    """Set out[k] to sum_i each_i (x_ij - means_k)^2 for the columns j = chosen[k]; `total` = sum_i each_i."""
    for k in range(lo, hi):
        mean, found, stored = means[k], 0.0, 0.0
        for p in range(np.uint64(starts[chosen[k]]), np.uint64(starts[chosen[k] + 1])):
            weight = each[rows[p]]
            found += weight * (values[p] - mean) ** 2
            stored += weight
        out[k] = found + mean * mean * max(total - stored, 0.0)


@kernel
def shift_rows(chosen, steps, starts, rows, values, z):
    """Move the weight of each chosen column by its step: add d x to its rows of `z`."""
    for k in range(chosen.size):
        if steps[k] != 0:
            for p in range(starts[chosen[k]], starts[chosen[k] + 1]):
                z[rows[p]] += steps[k] * values[p]


@scalar
def _violation(pull, w, l1):
    """Distance of 0 from the subgradients of ``pull w + l1 |w|``."""
    if w > 0:
        return abs(pull + l1)
    if w < 0:
        return abs(pull - l1)
    return max(0.0, abs(pull) - l1)


@scalar
def _best(pull, w, bend, l1):
    """The v that minimises ``pull (v - w) + bend (v - w)^2 / 2 + l1 |v|``."""
    goal = bend * w - pull
    if goal > l1:
        return (goal - l1) / bend
    if goal < -l1:
        return (goal + l1) / bend
    return 0.0


GRADIENT, MEAN, MOMENT, L1, L2, UNIT = range(6)
"""Columns of `model`: of each column of the data its gradient, m_j, second moment about the mean, penalties,
and what its violation is divided by"""


@kernel
def descend(chosen, starts, rows, values, curvatures, model, intercept, w, p, enough, most, seed):
    """Minimise the quadratic model over the chosen columns, in random order; returns the sweeps.

    `intercept` = (sum of g_i, 1 / H or 0 without one); `w` (k,) are the weights; `p` (n,), zeros at first,
    holds h_i times the change of the margin but for the intercept. Sweeps over all columns alternate with
    sweeps over those that have a weight, until the sum of violations in one over all is at most `enough`, or
    after `most` sweeps.
    """
    pull_of_all, inverse = intercept
    moved, found, sweeps, whole = 0.0, np.inf, 0, True
    order, state = np.arange(chosen.size), np.uint64(seed)
    while sweeps < most:
        found = 0.0
        for place in range(chosen.size):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)  # Knuth's MMIX
            other = place + np.int64((state >> np.uint64(33)) % np.uint64(chosen.size - place))
            k = order[other]
            order[other] = order[place]
            order[place] = k
            mean, l1, l2 = model[k, MEAN], model[k, L1], model[k, L2]
            bend = model[k, MOMENT] + l2
            if bend <= 0.0 or (not whole and w[k] == 0.0):
                continue
            begin, end = starts[chosen[k]], starts[chosen[k] + 1]
            pull = model[k, GRADIENT] + _dot(begin, end, rows, values, p) + l2 * w[k]
            pull -= (pull_of_all + moved) * inverse * mean
            found += _violation(pull, w[k], l1) / model[k, UNIT]
            step = _best(pull, w[k], bend, l1) - w[k]
            if step != 0.0:
                w[k] += step
                moved += step * mean
                for q in range(np.uint64(begin), np.uint64(end)):
                    p[rows[q]] += curvatures[rows[q]] * step * values[q]
        sweeps += 1
        if found <= enough and whole:
            break
        whole = found <= enough
    return sweeps
