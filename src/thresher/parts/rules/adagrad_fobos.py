"""AdaGrad with composite mirror descent, with L1, L2 or both."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from thresher.engine.verbs import grouped
from thresher.parts.groups import Single, adapt
from thresher.parts.registry import part
from thresher.parts.rules.fobos import Fobos
from thresher.parts.rules.sgd import Sgd
from thresher.parts.series import decays

W, ROOT, SCALE, PAID = range(4)  # columns of S
STEPS = 0  # the place in the clock


@part("rule")
class AdagradFobos(NamedTuple):
    """w_{t+1} = soft(w_t - eta g / a, eta l1 / a) / (1 + eta l2 / a), a = delta + sqrt(sum of g^2).

    With many outputs, `group` = ``l2`` or ``linf`` makes l1 the strength of the mixed norm l1/l2 or l1/linf,
    and the outputs of a feature share one a, from all their gradients. Each step is then taken on reading.

    A coordinate with few or small gradients keeps a large step size: rare features are learned as fast as
    frequent ones.

    Known weakness: features of the last rows have hardly been penalised. For an error near its lowest, this
    rule needs several times as many weights as adagrad-rda: docs/papers/singer-sparsity.md.

    Lazy update: a is constant between gradients, so the penalty is the same in each of n missed steps.
    With l2 = 0 their sum is n eta l1 / a. Otherwise, with c = 1 / (1 + eta l2 / a), n steps take |w| to
    c^n (|w| + l1 / l2) - l1 / l2, stopping at zero. Steps are counted, so the state is float64.

    Reference: Duchi, Hazan and Singer (JMLR 2011), composite mirror descent with a diagonal
    matrix, section 5.1, which also has the lazy form.

    >>> AdagradFobos().clock0()  # steps so far
    array([0.])
    """

    eta: float = 0.5
    l1: float = 1e-5
    l2: float = 0.0
    delta: float = 1e-3
    group: Any = Single()
    SLOTS = ("w", "root", "scale", "paid")
    CLOCK = DRIFTS = ("steps",)
    CLAMPS = ()
    PENALTIES = ("l1", "l2")
    LIMITS, TUNED = {"eta": "> 0"}, {"eta": (0.01, 3.0), "l1": (1e-7, 1e-3)}
    DTYPE = "float64"
    grouped = Fobos.grouped
    place = Sgd.place  # no penalty before the first gradient

    def weight(self, S, j, now):
        """Settled weight of row j; `scale` is eta / a, zero in a new row."""
        if grouped(self.group):
            return S[j, W]
        w, n, scale = S[j, W], now[STEPS] - S[j, PAID], S[j, SCALE]
        if self.l2 == 0.0:
            left = abs(w) - n * self.l1 * scale
        else:
            left = abs(w) + math.expm1(-n * math.log1p(self.l2 * scale)) * (abs(w) + self.l1 / self.l2)
        return math.copysign(max(left, 0.0), w)

    def couple(self, T, out, now):
        """Apply the step and the penalties to a group; `scale` holds the last gradient there."""
        if grouped(self.group):
            adapt(self.group, T, out, now[STEPS] - T[0, PAID], self.eta, self.delta, self.l1, self.l2)

    def step(self, S, j, w, x, slope, now):
        """Add the gradient to the root of squares, then step; this example's penalty is applied lazily."""
        g = slope * x
        S[j, ROOT], S[j, PAID] = math.sqrt(S[j, ROOT] * S[j, ROOT] + g * g), now[STEPS]
        if grouped(self.group):
            S[j, W], S[j, SCALE] = w, g
            return
        a = self.delta + S[j, ROOT]
        S[j, SCALE] = self.eta / a if a > 0.0 else 0.0
        S[j, W] = w - S[j, SCALE] * g

    def tick(self, clock):
        clock[STEPS] += 1.0

    def area(self, S, j, n, sums, now):
        """Affine in the number of steps, or with l2 a geometric series."""
        w, middle, scale = S[j, W], sums[0] / n - S[j, PAID], S[j, SCALE]
        if self.l2 == 0.0:
            left = n * (abs(w) - middle * self.l1 * scale)
        else:
            decay = decays(middle, n, math.log1p(self.l2 * scale))
            left = n * abs(w) + decay * (abs(w) + self.l1 / self.l2)
        return math.copysign(max(left, 0.0), w)

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet: the sum of squares must be kept."""
        return w == 0.0 and S[j, ROOT] == 0.0
