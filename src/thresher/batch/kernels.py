"""The parallel step: a bound on the loss for each column, its minimum, and the loops over columns.

For example i, c is its importance, p = w.x + b its margin, and q = -c d loss / dp. For column j, summing over
its examples, up = sum of |q x| where q x > 0 and down = sum of |q x| where q x < 0, so the loss falls at the
rate up - down as w_j grows. Moving w_j by d changes the loss by at most

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

LEAP = 10.0
"""Maximum change of an exponent by a step: without a penalty, the minimum may be at infinity."""
_NEWTON = 100


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
def measure(chosen, starts, rows, values, slopes, penalties, penalised, w, up, down, gap):
    """Set the masses `up` and `down` of the chosen columns, and their violations `gap`.

    Only columns below `penalised` are penalised.
    """
    for j in chosen:
        rise, fall, held = 0.0, 0.0, 1.0 if j < penalised else 0.0
        for p in range(np.uint64(starts[j]), np.uint64(starts[j + 1])):
            share = -float(values[p]) * slopes[rows[p]]
            rise += max(share, 0.0)
            fall += max(-share, 0.0)
        up[j], down[j] = rise, fall
        gap[j] = violation(rise - fall, w[j], held * penalties[0], held * penalties[1])


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
            total += (up[j] * math.expm1(-a * d) + down[j] * math.expm1(a * d)) / a  # B(d)
    return total
