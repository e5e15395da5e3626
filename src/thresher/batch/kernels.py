"""The step of one coordinate, and the loops over columns.

For example i, c is its importance, z = y (w.x + b), and q = -c d loss / dz. For column j, summing over its
examples, up = sum of q |x| where y x > 0 and down = sum of q |x| where y x < 0, so the loss falls at the rate
up - down as w_j grows. Moving w_j by d changes the loss by at most

    B(d) = up (exp(-a d) - 1) / a + down (exp(a d) - 1) / a

with ``a = max_i |x_ij|`` if only j moves, since exp(-t x) is convex in x and so lies below its chord
over [-a, a]; equality holds for the exponential loss and x in {-a, 0, a}. If all j in a set A move at once,
the sum of their bounds holds with ``a_j = max over the examples of j of sum_{k in A} |x_ik|``: the change
of a row is then a mean of its coordinates' moves (Jensen), and (exp(a t) - 1) / a grows with a.

References: Collins, Schapire and Singer, Logistic regression, AdaBoost and Bregman distances, Machine
Learning 48 (2002), the sequential and the parallel update; Duchi and Singer, Boosting with structural
sparsity, ICML 2009, for the penalties; Singer, Efficient algorithms for learning sparse models from
high dimensional data, MLSS 2012.
"""

import math

import numpy as np

from thresher.engine.compile.jit import kernel, scalar
from thresher.engine.verbs import value_slope

LEAP = 10.0
"""Maximum change of an exponent by a step: without a penalty, the minimum may be at infinity."""
_NEWTON = 100
_SAFE, _LEAST_EASE = 1.1, 1e-3
_ROUNDING, _TINY = 1e-13, 1e-16
"""Below this share of the loss, the change by a step is too inaccurate to measure curvature."""


@scalar
def violation(fall, w, l1, l2):
    """Distance of 0 from the subgradients of the objective in one weight; `fall` = up - down."""
    if w > 0:
        return abs(fall - l1 - l2 * w)
    if w < 0:
        return abs(fall + l1 - l2 * w)
    return max(0.0, abs(fall) - l1)


@scalar
def best_step(up, down, w, a, reach, l1, l2):
    """The d that minimises B(d) + l1 |w + d| + l2 (w + d)^2 / 2 among |d| <= reach.

    Let v = w + d, and let ``pull = down exp(-a w) - up exp(a w)`` be the derivative at v = 0 without the l1
    term. Whatever the sign of w, |pull| <= l1 sets v to exactly 0, pull < -l1 means v > 0, and pull > l1
    means v < 0. On side s of zero and without l2, e = exp(a d) solves ``down e^2 + s l1 e - up = 0``; with
    l2 there is no closed form.
    """
    if a == 0.0 or (up + down == 0.0 and l1 + l2 == 0.0):
        return 0.0
    zero = min(max(-w, -reach), reach)
    side = 1.0 if w > 0 else -1.0
    if zero == -w:
        e = math.exp(a * zero)
        pull = down * e - up / e
        if abs(pull) <= l1:
            return zero
        side = 1.0 if pull < 0 else -1.0
    if l2 > 0:
        lo = zero if zero == -w and side > 0 else -reach
        hi = zero if zero == -w and side < 0 else reach
        return _newton(up, down, w, a, side * l1, l2, lo, hi)
    if l1 == 0:
        d = 0.5 * math.log(up / down) / a
    else:
        spread = l1 + math.sqrt(l1 * l1 + 4.0 * up * down)
        d = math.log(2.0 * up / spread if side > 0 else spread / (2.0 * down)) / a
    return min(max(d, -reach), reach)


@scalar
def _newton(up, down, w, a, force, l2, lo, hi):
    """The root d of ``down exp(a d) - up exp(-a d) + force + l2 (w + d)`` in [lo, hi], or the end nearest it.

    Uses Newton's method from 0; a step that leaves the interval around the root is replaced by bisection.
    """
    least = 1e-16 * (hi - lo)
    d = min(max(0.0, lo), hi)
    for _ in range(_NEWTON):
        e = math.exp(a * d)
        slope = down * e - up / e + force + l2 * (w + d)
        if slope < 0:
            lo = d
        else:
            hi = d
        after = d - slope / (a * (down * e + up / e) + l2)
        if not lo < after < hi:
            after = 0.5 * (lo + hi)
        if abs(after - d) <= least:
            return after
        d = after
    return d


@scalar
def masses(begin, end, rows, values, q):
    """``(up, down)`` of the column in begin..end-1."""
    up, down = 0.0, 0.0
    for p in range(np.uint64(begin), np.uint64(end)):
        x, mass = float(values[p]), q[rows[p]]
        up += mass * max(x, 0.0)
        down += mass * max(-x, 0.0)
    return up, down


@scalar
def bound(up, down, d, a):
    """B(d), the upper bound on the change of the loss."""
    return (up * math.expm1(-a * d) + down * math.expm1(a * d)) / a


@scalar
def shift(loss, begin, end, d, rows, values, labels, importance, z, q, value):
    """Move the weight of the column in begin..end-1 by d: ``(change of its examples' loss, the loss)``."""
    change, size = 0.0, 0.0
    for p in range(np.uint64(begin), np.uint64(end)):
        i = rows[p]
        z[i] += d * values[p]
        after, slope = value_slope(loss, z[i] * labels[i], labels[i])
        after *= importance[i]
        change += after - value[i]
        size += after
        q[i] = -importance[i] * labels[i] * slope
        value[i] = after
    return change, size


@scalar
def violation_of(j, penalties, penalised, w, up, down):
    """The violation of column j; only j < `penalised` are penalised."""
    held = 1.0 if j < penalised else 0.0
    return violation(up[j] - down[j], w[j], held * penalties[0], held * penalties[1])


@kernel
def measure(chosen, lo, hi, starts, rows, values, penalties, penalised, w, q, up, down, gap):
    """Set `up`, `down` and violation `gap` of columns chosen[lo:hi]."""
    for k in range(lo, hi):
        j = chosen[k]
        up[j], down[j] = masses(starts[j], starts[j + 1], rows, values, q)
        gap[j] = violation_of(j, penalties, penalised, w, up, down)


@kernel
def sweep(
    loss, chosen, starts, rows, values, widths, ease, penalties, penalised, labels, importance, w, z, q, value
):
    """Move each column in turn to the minimum of its bound; returns the largest violation found.

    The bound of column j uses `ease[j]` times the proved width. The change of the loss shows how wide it had
    to be: the next visit uses the ratio of its curvature to that of the bound, both over the whole step. A
    step that violated the bound is repeated at once; with `ease[j]` = 1 the bound always holds.
    """
    l1, l2 = penalties
    worst = 0.0
    for k in range(chosen.size):
        j = chosen[k]
        up, down = masses(starts[j], starts[j + 1], rows, values, q)
        held = 1.0 if j < penalised else 0.0
        worst = max(worst, violation(up - down, w[j], held * l1, held * l2))
        d, change, within = 0.0, 0.0, False
        while not within:
            a = ease[j] * widths[j]
            goal = best_step(up, down, w[j], a, LEAP / widths[j], held * l1, held * l2)
            if goal == d:
                break
            more, size = shift(
                loss, starts[j], starts[j + 1], goal - d, rows, values, labels, importance, z, q, value
            )
            d, change = goal, change + more
            bend, bent = bound(up, down, d, a) + (up - down) * d, change + (up - down) * d
            if max(bend, abs(bent)) <= _ROUNDING * size:
                break
            ratio = bent / max(bend, _TINY * size)
            within = ratio <= 1.0 or ease[j] == 1.0
            ease[j] = min(1.0, max(_LEAST_EASE, _SAFE * ratio * ease[j]))
        w[j] += d
    return worst


@kernel
def widest(chosen, starts, rows, values, sums, widths):
    """Add |x| of the chosen columns to `sums` of their rows; store the largest over the nonzeros of each."""
    for j in chosen:
        for p in range(starts[j], starts[j + 1]):
            sums[rows[p]] += abs(values[p])
    for k in range(chosen.size):
        widths[k] = 0.0
        for p in range(starts[chosen[k]], starts[chosen[k] + 1]):
            if values[p] != 0:
                widths[k] = max(widths[k], sums[rows[p]])


@kernel
def add_up(chosen, starts, rows, values, q, up, down):
    """Set `up` and `down` (k,) to the masses of the chosen columns."""
    for k in range(chosen.size):
        up[k], down[k] = masses(starts[chosen[k]], starts[chosen[k] + 1], rows, values, q)


@kernel
def shift_rows(chosen, steps, starts, rows, values, z):
    """Move the weight of each chosen column by its step: add d y x to the rows of `z`."""
    for k in range(chosen.size):
        if steps[k] != 0:
            for p in range(starts[chosen[k]], starts[chosen[k] + 1]):
                z[rows[p]] += steps[k] * values[p]


@kernel
def violations(chosen, penalties, penalised, w, up, down, gap):
    """Set the violation `gap` of the chosen columns."""
    for j in chosen:
        gap[j] = violation_of(j, penalties, penalised, w, up, down)


@kernel
def steps_at_once(chosen, widths, ease, penalties, penalised, w, up, down, steps):
    """Set `steps` to the moves of all chosen columns with `ease` times their widths; returns the bound."""
    l1, l2 = penalties
    total = 0.0
    for k in range(chosen.size):
        j = chosen[k]
        held, a = 1.0 if j < penalised else 0.0, ease * widths[k]
        d = best_step(up[j], down[j], w[j], a, LEAP / widths[k], held * l1, held * l2) if a > 0.0 else 0.0
        steps[k] = d
        if d != 0.0:
            total += bound(up[j], down[j], d, a)
    return total


@kernel
def weigh(loss, lo, hi, labels, importance, z, q, value):
    """Compute `q` and `value` (loss times importance) of examples lo..hi-1; returns the sum of `value`."""
    total = 0.0
    for i in range(lo, hi):
        each, slope = value_slope(loss, z[i] * labels[i], labels[i])
        q[i] = -importance[i] * labels[i] * slope
        value[i] = importance[i] * each
        total += value[i]
    return total
