"""Losses of examples with many outputs: the value, its shares, and the slope for each output.

`DOMAIN` names the targets: ``classes`` (the index of one output) or ``each`` (a number for each output).
The value of an example is split among the outputs in proportion to their squared slopes. A rule that
divides a loss by a squared gradient (`pa`) then takes the step of the whole weight matrix.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from thresher.engine.compile.jit import helper
from thresher.engine.verbs import link, value_slope
from thresher.parts.losses import Logistic
from thresher.parts.registry import part


@helper
def _largest(margins):
    top = margins[0]
    for k in range(1, margins.size):
        top = max(top, margins[k])
    return top


@helper
def _share(value, slopes, values):
    total = 0.0
    for k in range(values.size):
        total += float(slopes[k]) * float(slopes[k])
    for k in range(values.size):
        values[k] = value * float(slopes[k]) * float(slopes[k]) / total if total > 0.0 else 0.0
    return float(value)


@part("joint loss")
class Softmax(NamedTuple):
    """log sum_k exp(p_k) - p_y, the negative log-probability of class y; the link gives probabilities.

    With `smoothing` = a, the target is 1 - a on y plus a / K on each of the K classes.

    >>> import numpy as np
    >>> margins, slopes = np.zeros(2), np.zeros(2)
    >>> round(Softmax().values_slopes(margins, np.ones(1), np.zeros(2), slopes), 4), slopes
    (0.6931, array([ 0.5, -0.5]))
    """

    smoothing: float = 0.0
    PROBABILITY = LOG_ODDS = True
    LIMITS = {"smoothing": "in [0, 1]"}

    def values_slopes(self, margins, y, values, slopes):
        """Loss, shares and slopes, without overflow."""
        top, total, target = _largest(margins), 0.0, int(y[0])
        for k in range(margins.size):
            values[k] = math.exp(margins[k] - top)
            total += values[k]
        spread = self.smoothing / margins.size
        value = math.log(total) + top - (1.0 - self.smoothing) * margins[target]
        for k in range(margins.size):
            slopes[k] = values[k] / total - spread
            value -= spread * margins[k]
        slopes[target] -= 1.0 - self.smoothing
        return _share(value, slopes, values)

    def links(self, margins, out):
        """Probability of each class."""
        top, total = _largest(margins), 0.0
        for k in range(margins.size):
            out[k] = math.exp(margins[k] - top)
            total += out[k]
        for k in range(margins.size):
            out[k] /= total


@part("joint loss")
class CrammerSinger(NamedTuple):
    """max(0, threshold - p_y + max_{k != y} p_k): the multi-class hinge.

    Reference: Crammer and Singer (JMLR 2001).

    >>> import numpy as np
    >>> margins, slopes = np.array([1.0, 0.5]), np.zeros(2)
    >>> CrammerSinger().values_slopes(margins, np.zeros(1), np.zeros(2), slopes), slopes
    (0.5, array([-1.,  1.]))
    """

    threshold: float = 1.0

    def values_slopes(self, margins, y, values, slopes):
        """Loss, shares and slopes, nonzero for the true class and its strongest rival, the first if tied."""
        target, rival = int(y[0]), -1
        for k in range(margins.size):
            slopes[k] = 0.0
            if k != target and (rival < 0 or margins[k] > margins[rival]):
                rival = k
        value = 0.0
        if rival >= 0:
            value = max(0.0, self.threshold - margins[target] + margins[rival])
        if value > 0.0:
            slopes[target], slopes[rival] = -1.0, 1.0
        return _share(value, slopes, values)


@part("joint loss")
class OneVsRest(NamedTuple):
    """The sum over the classes of a binary loss, with class y positive and all others negative.

    `Model` makes it from a binary loss and ``outputs="classes"``. The links are the binary ones, so the
    probabilities of the classes do not sum to one.

    >>> import numpy as np
    >>> OneVsRest().values_slopes(np.zeros(3), np.zeros(1), np.zeros(3), np.zeros(3)) / math.log(2.0)
    3.0
    """

    loss: Any = Logistic()

    @property
    def PROBABILITY(self) -> bool:  # noqa: N802
        """Whether the binary loss has probabilities."""
        return bool(self.loss.PROBABILITY)

    def values_slopes(self, margins, y, values, slopes):
        """Loss, and value and slope of each class."""
        total, target = 0.0, int(y[0])
        for k in range(margins.size):
            values[k], slopes[k] = value_slope(self.loss, margins[k], 1.0 if k == target else -1.0)
            total += values[k]
        return float(total)

    def links(self, margins, out):
        """The link of each class."""
        for k in range(margins.size):
            out[k] = link(self.loss, margins[k])


@part("joint loss")
class Each(NamedTuple):
    """The sum over the outputs of a loss, each with its own label: multi-label and multi-task learning.

    >>> import numpy as np
    >>> from thresher.parts.losses import Squared
    >>> Each(Squared()).values_slopes(np.zeros(2), np.array([1.0, 2.0]), np.zeros(2), np.zeros(2))
    5.0
    """

    loss: Any = Logistic()
    DOMAIN = "each"

    @property
    def PROBABILITY(self) -> bool:  # noqa: N802
        """Whether the loss of one output has probabilities."""
        return bool(self.loss.PROBABILITY)

    def values_slopes(self, margins, y, values, slopes):
        """Loss, and value and slope of each output."""
        total = 0.0
        for k in range(margins.size):
            values[k], slopes[k] = value_slope(self.loss, margins[k], float(y[k]))
            total += values[k]
        return float(total)

    def links(self, margins, out):
        """The link of each output."""
        for k in range(margins.size):
            out[k] = link(self.loss, margins[k])
