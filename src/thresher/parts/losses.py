"""Losses: value and slope (derivative with respect to the margin) of one example, and the link.

`DOMAIN` names the labels a loss takes: ``binary`` (+1 against -1 or 0), ``real``, ``nonnegative``,
``positive``.
`SHIFTS`: the loss does not change when margin and label are shifted by the same amount.
`SCALES`: nor when the margin is shifted by c and the label multiplied by exp(c).
`LOG_ODDS`: margins are estimates of log odds.
`LEVEL`: the share of labels below the margin that is best; None if it is no quantile.
`RELATIVE`: of many outputs, the loss does not change when all margins are shifted by the same amount.
`ONE`: of many outputs, see the verb `rival`; None for losses that have none.
`BOOSTABLE`: with z = y p and q = -d loss / dz, loss(z + d) <= loss(z) + q (exp(-d) - 1) for every d;
the parallel steps of the batch solver rely on it, its Newton steps on `curvature`.

Losses of examples with many outputs give the value, its shares and the slope for each output.

`DOMAIN` names the targets: ``classes`` (the index of one output) or ``each`` (a number for each output).
The value of an example is split among the outputs in proportion to their squared slopes. A rule that
divides a loss by a squared gradient (`pa`) then takes the step of the whole weight matrix.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from thresher.engine.compile.jit import helper, scalar
from thresher.engine.verbs import link, value_slope
from thresher.parts.registry import part


class TwoClasses(NamedTuple):
    """What losses share in which positive examples count `positive` times."""

    positive: float = 1.0
    DOMAIN = "binary"
    LIMITS = {"positive": "> 0"}


@part("loss")
class Logistic(TwoClasses):
    """log(1 + exp(-y p)), y = +1 or -1, times `positive` for positive examples; link 1 / (1 + exp(-p)).

    >>> round(Logistic().value_slope(0.0, 1.0)[0], 4)
    0.6931
    """

    PROBABILITY = LOG_ODDS = BOOSTABLE = True

    def value_slope(self, margin, y):
        sign, cost = (1.0, self.positive) if y > 0 else (-1.0, 1.0)
        z = margin * sign
        e = math.exp(-abs(z))
        if z > 0:
            return cost * math.log1p(e), -cost * sign * e / (1.0 + e)
        return cost * (math.log1p(e) - z), -cost * sign / (1.0 + e)

    def curvature(self, margin, y):
        e = math.exp(-abs(margin))
        return (self.positive if y > 0 else 1.0) * e / ((1.0 + e) * (1.0 + e))

    def link(self, margin):
        """Probability of the positive class."""
        e = math.exp(-abs(margin))
        return 1.0 / (1.0 + e) if margin > 0 else e / (1.0 + e)


@part("loss")
class Exponential(TwoClasses):
    """exp(-y p), y = +1 or -1, times `positive` for positive examples; link 1 / (1 + exp(-2p)).

    AdaBoost's loss. One badly misclassified example outweighs all others: keep step sizes small and features
    bounded.

    >>> Exponential().value_slope(0.0, 1.0)
    (1.0, -1.0)
    """

    PROBABILITY = BOOSTABLE = True

    def value_slope(self, margin, y):
        sign, cost = (1.0, self.positive) if y > 0 else (-1.0, 1.0)
        value = cost * math.exp(-sign * margin)
        return value, -sign * value

    def curvature(self, margin, y):
        return value_slope(self, margin, y)[0]

    def link(self, margin):
        """Probability of the positive class (Collins, Schapire and Singer 2002)."""
        e = math.exp(-2.0 * abs(margin))
        return 1.0 / (1.0 + e) if margin > 0 else e / (1.0 + e)


@part("loss")
class Hinge(NamedTuple):
    """max(0, threshold - y p), y = +1 or -1.

    >>> Hinge().value_slope(0.25, -1.0)
    (1.25, 1.0)
    """

    threshold: float = 1.0
    DOMAIN = "binary"

    def value_slope(self, margin, y):
        sign = 1.0 if y > 0 else -1.0
        gap = self.threshold - sign * margin
        if gap > 0:
            return gap, -sign
        return 0.0, 0.0


@part("loss")
class Perceptron(TwoClasses):
    """max(0, -y p), y = +1 or -1, times `positive` for positive examples.

    The slope at the kink p = 0 is -y: a prediction of zero is a mistake; otherwise zero weights would
    never change.

    >>> Perceptron().value_slope(0.0, 1.0)
    (0.0, -1.0)
    """

    def value_slope(self, margin, y):
        sign, cost = (1.0, self.positive) if y > 0 else (-1.0, 1.0)
        if sign * margin > 0:
            return 0.0, 0.0
        return cost * abs(margin), -cost * sign


@part("loss")
class SquaredHinge(Hinge):
    """max(0, threshold - y p)^2, y = +1 or -1.

    >>> SquaredHinge().value_slope(0.5, 1.0)
    (0.25, -1.0)
    """

    def value_slope(self, margin, y):
        sign = 1.0 if y > 0 else -1.0
        gap = self.threshold - sign * margin
        if gap > 0:
            return gap * gap, -2.0 * sign * gap
        return 0.0, 0.0


@part("loss")
class ModifiedHuber(TwoClasses):
    """max(0, 1 - y p)^2 if y p >= -1, else -4 y p, times `positive` for positive examples.

    y = +1 or -1; link (1 + min(max(p, -1), 1)) / 2. Like the squared hinge near the boundary, but linear in
    the margin for badly misclassified examples, so outliers count for less.

    Reference: Zhang, Statistical behavior and consistency of classification methods based on convex risk
    minimization, Annals of Statistics 32 (2004), section 3.

    >>> ModifiedHuber().value_slope(-2.0, 1.0)
    (8.0, -4.0)
    >>> ModifiedHuber().link(0.5)
    0.75
    """

    PROBABILITY = True

    def value_slope(self, margin, y):
        sign, cost = (1.0, self.positive) if y > 0 else (-1.0, 1.0)
        z = sign * margin
        if z >= 1:
            return 0.0, 0.0
        if z >= -1:
            return cost * (1.0 - z) * (1.0 - z), -2.0 * cost * sign * (1.0 - z)
        return -4.0 * cost * z, -4.0 * cost * sign

    def link(self, margin):
        """Probability of the positive class."""
        return 0.5 * (1.0 + min(max(margin, -1.0), 1.0))


class Scaled(NamedTuple):
    """What losses of the error p - y share that are multiplied by `scale`."""

    scale: float = 1.0
    LIMITS = {"scale": "> 0"}
    SHIFTS = True


@part("loss")
class Squared(Scaled):
    """scale (p - y)^2; some texts use scale = 0.5.

    >>> Squared().value_slope(3.0, 1.0)
    (4.0, 4.0)
    """

    def value_slope(self, margin, y):
        error = margin - y
        return self.scale * error * error, 2.0 * self.scale * error

    def curvature(self, margin, y):
        return 2.0 * self.scale


@scalar
def tilted(error, below, above):
    """Loss and slope of an error that costs `below` a unit if it is negative, else `above`; slope 0 at 0."""
    if error < 0:
        return -below * error, -below
    return above * error, above if error > 0 else 0.0


@part("loss")
class Absolute(Scaled):
    """scale |p - y|, minimised by the median.

    >>> Absolute().value_slope(3.0, 1.0)
    (2.0, 1.0)
    """

    LEVEL = 0.5

    def value_slope(self, margin, y):
        return tilted(margin - y, self.scale, self.scale)


@part("loss")
class Quantile(NamedTuple):
    """tau (y - p) if p < y, else (1 - tau)(p - y): minimised by the tau-quantile.

    >>> Quantile(0.9).value_slope(1.0, 3.0)
    (1.8, -0.9)
    """

    tau: float = 0.5
    LIMITS = {"tau": "in (0, 1)"}
    SHIFTS = True

    @property
    def LEVEL(self) -> float:  # noqa: N802
        """Of this quantile."""
        return self.tau

    def value_slope(self, margin, y):
        return tilted(margin - y, self.tau, 1.0 - self.tau)


@part("loss")
class Huber(NamedTuple):
    """(p - y)^2 / 2 if |p - y| <= delta, else delta (|p - y| - delta / 2) (Huber 1964).

    >>> Huber(1.0).value_slope(3.0, 1.0)
    (1.5, 1.0)
    """

    delta: float = 1.0
    LIMITS = {"delta": "> 0"}
    SHIFTS = True

    def value_slope(self, margin, y):
        error = margin - y
        if abs(error) <= self.delta:
            return 0.5 * error * error, error
        return self.delta * (abs(error) - 0.5 * self.delta), math.copysign(self.delta, error)

    def curvature(self, margin, y):
        """That of the parabola of the same slope above the loss (Huber 1981, section 7.8): never 0."""
        return self.delta / max(abs(margin - y), self.delta)


@part("loss")
class Wealth(NamedTuple):
    """-log p, p the growth of a mixture of assets in one period; for p < floor, its tangent at floor.

    Features are price relatives, weights the mixture; labels are ignored.

    >>> Wealth().value_slope(1.0, 0.0)
    (-0.0, -1.0)
    """

    floor: float = 0.1
    LIMITS = {"floor": "> 0"}

    def value_slope(self, margin, y):
        if margin >= self.floor:
            return -math.log(margin), -1.0 / margin
        return (self.floor - margin) / self.floor - math.log(self.floor), -1.0 / self.floor


@part("loss")
class Poisson(NamedTuple):
    """Half the deviance: y log(y / mean) - y + mean, mean = exp(p + offset), for counts y >= 0.

    The negative log-likelihood minus its minimum, so it is never negative; rules whose step depends on the
    loss need that. `offset` is the logarithm of an exposure shared by all examples.

    >>> Poisson().value_slope(0.0, 2.0)  # 2 log(2) - 1
    (0.3862943611198906, -1.0)
    """

    offset: float = 0.0
    DOMAIN = "nonnegative"
    LIMITS = {"offset": "any number"}

    def value_slope(self, margin, y):
        if y == 0:
            mean = math.exp(margin + self.offset)
            return mean, mean
        excess = margin + self.offset - math.log(1.0 * y)  # in float64 even where y is a float32
        surplus = math.expm1(excess)  # mean / y - 1, without cancellation near the optimum
        return y * (surplus - excess), y * surplus

    def curvature(self, margin, y):
        return math.exp(margin + self.offset)

    def link(self, margin):
        """The expected count."""
        return math.exp(margin + self.offset)


@part("loss")
class Gamma(Poisson):
    """Half the deviance: y / mean - 1 - log(y / mean), mean = exp(p + offset), for amounts y > 0.

    The deviation of a gamma distribution is in proportion to its mean, so that an amount that is twice as
    large as expected costs the same in any unit (McCullagh and Nelder, Generalized Linear Models, 1989).

    >>> Gamma().value_slope(0.0, 2.0)  # 1 - log(2)
    (0.3068528194400547, -1.0)
    """

    DOMAIN = "positive"
    SCALES = True

    def value_slope(self, margin, y):
        excess = margin + self.offset - math.log(1.0 * y)  # in float64 even where y is a float32
        surplus = math.expm1(-excess)  # y / mean - 1, without cancellation near the optimum
        return surplus + excess, -surplus

    def curvature(self, margin, y):
        return y * math.exp(-margin - self.offset)


@part("loss")
class Tweedie(NamedTuple):
    """Half the deviance of a compound Poisson sum of gammas, for amounts y >= 0 with many zeros.

    With r = power: y^(2 - r) / ((1 - r)(2 - r)) - y m^(1 - r) / (1 - r) + m^(2 - r) / (2 - r), where m =
    exp(p) is the mean and the variance grows as m^r. Towards r = 1 it becomes the Poisson loss, towards 2
    gamma's (Jørgensen, Exponential dispersion models, J. R. Statist. Soc. B 49 (1987)).

    >>> Tweedie().value_slope(0.0, 0.0)
    (2.0, 1.0)
    >>> Tweedie().value_slope(0.0, 4.0)  # 2 (sqrt(4) - 1)^2
    (2.0, -3.0)
    """

    power: float = 1.5
    DOMAIN = "nonnegative"
    LIMITS = {"power": "in (1, 2)"}

    def value_slope(self, margin, y):
        most, less = 2.0 - self.power, self.power - 1.0
        if y == 0:
            size = math.exp(most * margin)
            return size / most, size
        excess = margin - math.log(1.0 * y)  # in float64 even where y is a float32
        scale = math.pow(1.0 * y, most)
        surplus = math.expm1(most * excess), math.expm1(-less * excess)
        value = abs(surplus[0] / most + surplus[1] / less)  # near the optimum all of it is rounding
        return scale * value, scale * (surplus[0] - surplus[1])

    def curvature(self, margin, y):
        most, less = 2.0 - self.power, self.power - 1.0
        return most * math.exp(most * margin) + less * y * math.exp(-less * margin)

    def link(self, margin):
        """The expected amount."""
        return math.exp(margin)


@helper
def _largest(margins):
    top = margins[0]
    for k in range(1, margins.size):
        top = max(top, margins[k])
    return top


_FAR = 20.0
"""A loss this large comes from a prediction that leaves the class next to no chance: exp(-20) is 2e-9."""


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
    PROBABILITY = LOG_ODDS = RELATIVE = True
    LIMITS = {"smoothing": "in [0, 1]"}

    @property
    def ONE(self) -> Any:  # noqa: N802
        """log(1 + exp(-+ (p_k - log sum_l exp(p_l)))), l not k; with smoothing no loss of two classes."""
        return None if self.smoothing else Logistic()

    def rival(self, margins, k):
        top, total = -math.inf, 0.0
        for other in range(margins.size):
            if other != k:
                top = max(top, margins[other])
        for other in range(margins.size):
            if other != k:
                total += math.exp(margins[other] - top)
        return top + math.log(total)

    def values_slopes(self, margins, y, values, slopes):
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

    def ceiling(self):
        return _FAR

    def links(self, margins, out):
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
    RELATIVE = True

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

    def ceiling(self):
        return _FAR + self.threshold


class OneByOne(NamedTuple):
    """What joint losses share that are sums of a loss over the outputs."""

    loss: Any = Logistic()

    @property
    def PROBABILITY(self) -> bool:  # noqa: N802
        """Whether the loss of one output has probabilities."""
        return bool(self.loss.PROBABILITY)

    def links(self, margins, out):
        for k in range(margins.size):
            out[k] = link(self.loss, margins[k])


@part("joint loss")
class OneVsRest(OneByOne):
    """The sum over the classes of a binary loss, with class y positive and all others negative.

    `Model` makes it from a binary loss and ``outputs="classes"``. The links are the binary ones, so the
    probabilities of the classes do not sum to one.

    >>> import numpy as np
    >>> OneVsRest().values_slopes(np.zeros(3), np.zeros(1), np.zeros(3), np.zeros(3)) / math.log(2.0)
    3.0
    """

    @property
    def ONE(self) -> Any:  # noqa: N802
        """The loss of each output."""
        return self.loss

    def rival(self, margins, k):
        return 0.0

    def values_slopes(self, margins, y, values, slopes):
        total, target = 0.0, int(y[0])
        for k in range(margins.size):
            values[k], slopes[k] = value_slope(self.loss, margins[k], 1.0 if k == target else -1.0)
            total += values[k]
        return float(total)


@part("joint loss")
class Quantiles(NamedTuple):
    """The sum of the losses of `Quantile` with these `levels`, one for each output.

    `Model` makes it from ``loss="quantile"`` and ``outputs="quantiles:0.1,0.5,0.9"``; all outputs have the
    same label.

    >>> import numpy as np
    >>> Quantiles((0.1, 0.9)).values_slopes(np.zeros(2), np.ones(2), np.zeros(2), np.zeros(2))
    1.0
    """

    levels: tuple[float, ...] = (0.1, 0.5, 0.9)
    DOMAIN = "each"

    def values_slopes(self, margins, y, values, slopes):
        total = 0.0
        for k in range(margins.size):
            error = margins[k] - float(y[k])
            slopes[k] = 0.0 if error == 0 else (error > 0) - self.levels[k]
            values[k] = slopes[k] * error
            total += values[k]
        return float(total)


@part("joint loss")
class Each(OneByOne):
    """The sum over the outputs of a loss, each with its own label: multi-label and multi-task learning.

    >>> import numpy as np
    >>> from thresher.parts.losses import Squared
    >>> Each(Squared()).values_slopes(np.zeros(2), np.array([1.0, 2.0]), np.zeros(2), np.zeros(2))
    5.0
    """

    DOMAIN = "each"

    def values_slopes(self, margins, y, values, slopes):
        total = 0.0
        for k in range(margins.size):
            values[k], slopes[k] = value_slope(self.loss, margins[k], float(y[k]))
            total += values[k]
        return float(total)
