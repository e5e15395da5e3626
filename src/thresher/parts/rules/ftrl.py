"""FTRL-Proximal."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thresher.engine.compile.jit import scalar
from thresher.parts.prox import soft
from thresher.parts.registry import part
from thresher.parts.series import fades, left

W, Z, ROOT = range(3)  # columns of S
INVERSE = 0  # the place in the clock
SINCE, TIME = (
    W,
    INVERSE,
)  # what is there instead if sums fade: the times of a row's last step and of the clock


@scalar
def per_alpha(self, S, now):
    """1 / alpha, in the dtype of S."""
    return S.dtype.type(1.0 / self.alpha) if fades(self.half_life) else now[INVERSE]


@scalar
def sums_left(half_life, S, j, now):
    """What is left of z and of the root of n; written so that the compiler takes one power."""
    half = 0.5 * (now[TIME] - S[j, SINCE])
    return left(half_life, left(half_life, S[j, Z], half), half), left(half_life, S[j, ROOT], half)


@part("rule")
class Ftrl(NamedTuple):
    """w = -soft(z, l1) / ((beta + sqrt(n)) / alpha + l2), with sums z and n per coordinate.

    n += g^2, z += g - (sqrt(n) - sqrt(n_old)) w / alpha.

    With a finite `half_life` = N, z and n are multiplied by 2^(-1/N) after each example, so that old examples
    count less and less and w follows a world that drifts; with --batch, after each batch.

    Lazy update: none needed, since w depends only on its own z and n. The row holds w itself and the
    root of n, so a read is one load and a step one square root. With a finite `half_life` the row holds the
    time of its last step instead of w: z and n are multiplied by a power for all examples since.

    Reference: McMahan et al., Ad Click Prediction (KDD 2013), Algorithm 1.

    >>> Ftrl(alpha=0.5).SLOTS
    ('w or time', 'z', 'root')
    """

    alpha: float = 0.5
    beta: float = 1.0
    l1: float = 1.0
    l2: float = 0.0
    half_life: float = math.inf
    SLOTS = ("w or time", "z", "root")
    CLOCK = ("inverse or time",)
    DRIFTS = CLAMPS = ()
    PENALTIES = ("l1", "l2")
    LIMITS = {"alpha": "> 0", "half_life": ">= 1, or inf"}
    TUNED = {"alpha": (0.01, 3.0), "l1": (0.01, 10.0)}

    def clock0(self):
        """1 / alpha: multiplying is cheaper than dividing, and every step needs it twice. Or the time, 0."""
        return np.array([0.0 if fades(self.half_life) else 1.0 / self.alpha])

    def weight(self, S, j, now):
        if fades(self.half_life):
            z, root = sums_left(self.half_life, S, j, now)
            pull = soft(z, self.l1)
            below = (self.beta + root) * per_alpha(self, S, now) + self.l2
            return S.dtype.type(-pull / below if pull != 0.0 else pull)
        return S[j, W]

    def tick(self, clock):
        """Count the example if sums fade."""
        if fades(self.half_life):
            clock[TIME] += 1.0

    def place(self, S, rows, w, now):
        """Set the z that gives weight w without any gradient."""
        S[rows, W] = now[TIME] if fades(self.half_life) else w
        S[rows, Z] = -w * (self.beta * per_alpha(self, S, now) + self.l2) - np.sign(w) * self.l1

    def step(self, S, j, w, x, slope, now):
        """Add the gradient, then recompute w."""
        g = slope * x
        if g * g == 0:
            return  # nothing changes; with beta = l2 = 0 the code below would divide by zero
        before, old = sums_left(self.half_life, S, j, now)
        root, inverse = math.sqrt(old * old + g * g), per_alpha(self, S, now)
        z = before + g - (root - old) * inverse * w
        if fades(self.half_life):
            S[j, SINCE] = now[TIME]
        else:
            S[j, W] = -soft(z, self.l1) / ((self.beta + root) * inverse + self.l2)
        S[j, Z] = z
        S[j, ROOT] = root

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet."""
        return S[j, Z] == 0.0 and S[j, ROOT] == 0.0

    def sound(self, S, clock, steps):
        """Whether times are those of steps, if sums fade."""
        time = S.dtype.type(clock[TIME])
        sound = 0.0 <= clock[TIME] <= steps and (S[:, SINCE] >= 0.0).all() and (S[:, SINCE] <= time).all()
        return "" if sound or not fades(self.half_life) else f"rows must have been stepped in 0..{steps}"
