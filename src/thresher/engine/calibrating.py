"""What probability margins mean, learned from those of each example before it is learned.

The loop of one output calls `calibrate`, loops of many outputs `calibrate_outputs`, if they are given what it
writes to: a model that is not calibrated has the same machine code as if there were no calibration.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.engine.compile.jit import helper, scalar
from thresher.engine.verbs import links

SLOPE, INTERCEPT, CURVE, CROSS, FLAT, SEEN, RAW_LOSS, OWN_LOSS = range(8)
"""Columns of a calibration: a - 1 and b; sums of weights times m m, m and 1; examples; sums of both losses.

Of several classes, a is 1 / T and CURVE the sum of weights times the variance of m."""
SIZE = 8
PRIOR = 10.0
"""Examples' worth of curvature that hold a = 1 and b = 0"""
_LEAST = float(np.finfo(np.float64).eps)


@scalar
def surprise(p, positive):
    """Negative logarithm of the probability of what happened."""
    return -math.log(min(max(p if positive else 1.0 - p, _LEAST), 1.0))


@scalar
def calibrate(state, given, margin, importance, positive):
    """One step of Newton's method on a and b of 1 / (1 + exp(-(a m + b))), with the sums fading.

    `given` is the probability by the link of the loss. Example s has the weight (s + 1) / (t + 1) at time t:
    half of it is on the last 30 %, whose margins resemble those of the final model. The curvature of an
    example is p (1 - p), or the square of its gradient, p - y, if that is larger: so no example moves its own
    margin by more than 2.
    """
    z = (1.0 + state[SLOPE]) * margin + state[INTERCEPT]
    e = math.exp(-abs(z))
    p = 1.0 / (1.0 + e) if z > 0 else e / (1.0 + e)
    gap = p - (1.0 if positive else 0.0)
    keep = 1.0 - 1.0 / (state[SEEN] + 2.0)
    state[SEEN] += 1.0
    state[RAW_LOSS] = keep * state[RAW_LOSS] + importance * surprise(given, positive)
    state[OWN_LOSS] = keep * state[OWN_LOSS] + importance * surprise(p, positive)
    curved = importance * max(p * (1.0 - p), gap * gap)
    state[CURVE] = keep * state[CURVE] + curved * margin * margin
    state[CROSS] = keep * state[CROSS] + curved * margin
    state[FLAT] = keep * state[FLAT] + curved
    steep, level, cross = state[CURVE] + PRIOR, state[FLAT] + PRIOR, state[CROSS]
    pull = importance * gap / (steep * level - cross * cross)
    if math.isfinite(pull):
        state[SLOPE] -= pull * (level * margin - cross)
        state[INTERCEPT] -= pull * (steep - cross * margin)


@helper
def calibrate_classes(state, given, margins, importance, target):
    """Like `calibrate`, for several classes: one step on a = 1 / T of softmax(a m).

    One number needs fewer examples than two: their weights are the fourth power of those there, so that half
    of the weight is on the last 13 %. The curvature of an example is the variance of its margins under
    softmax, or the square of its gradient if that is larger. A step at most halves a, which so stays
    positive: the likeliest class stays the likeliest.
    """
    a, top, total, mean, square = 1.0 + state[SLOPE], margins[0], 0.0, 0.0, 0.0
    for k in range(1, margins.size):
        top = max(top, margins[k])
    for k in range(margins.size):
        m = margins[k] - top
        e = math.exp(a * m)
        total += e
        mean += e * m
        square += e * m * m
    own, mean, square = margins[target] - top, mean / total, square / total
    gap, keep = mean - own, (1.0 - 1.0 / (state[SEEN] + 2.0)) ** 4
    state[SEEN] += 1.0
    state[RAW_LOSS] = keep * state[RAW_LOSS] + importance * surprise(given, True)
    state[OWN_LOSS] = keep * state[OWN_LOSS] + importance * surprise(math.exp(a * own) / total, True)
    state[CURVE] = keep * state[CURVE] + importance * max(square - mean * mean, gap * gap)
    pull = importance * gap / (state[CURVE] + PRIOR)
    if math.isfinite(pull):
        state[SLOPE] -= min(pull, 0.5 * a)


@helper
def calibrate_outputs(loss, calibration, margins, importance, target):
    """Learn from the margins of an example of the joint `loss`: of two classes, or of several.

    `calibration` is the state, (SIZE,), room for a copy, and for the links of all outputs; or None. The first
    of several classes, as long as it is the only one, teaches nothing.
    """
    if calibration is not None:
        state, _, given = calibration
        links(loss, margins, given[: margins.size])
        if given.size == 1:
            calibrate(state, given[0], margins[0], importance, target[0] > 0)
        elif margins.size > 1:
            total = 0.0
            for k in range(margins.size):
                total += given[k]
            y = int(target[0])
            calibrate_classes(state, given[y] / total if total > 0.0 else 0.0, margins, importance, y)


@helper
def copy_calibration(calibration, back):
    """Copy the state, to save it before a batch, or `back`."""
    if calibration is not None:
        state, before, _ = calibration
        for k in range(state.size):
            if back:
                state[k] = before[k]
            else:
                before[k] = state[k]
