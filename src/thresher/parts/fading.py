"""What is left of a rule's sums as examples go by: the parameter `half_life` of `ftrl` and `ft-ftrl`.

In a world that drifts, old gradients mislead. With a half-life of N examples, every sum over the examples is
multiplied by 2^(-1/N) after each of them: it is then an exponentially weighted sum (with batches, examples
are batches). A row that was missed by k examples owes one power, 2^(-k/N), and pays when it is read or
stepped.

The times of which k is the difference are stored in the dtype of the state: float32 counts to 16.7 million,
then in twos, fours ... But differences telescope, so a row is never off by more than one rounded time. The
power is a float64, and so is what is added to a product before both are rounded to the dtype: for a row that
is in every example, 2^(-1/N) would otherwise be rounded to 1 from a half-life of 2e7 on.

A SPEC writes the number. Its class selects the code, so rules whose sums last run the code that they would
have without this parameter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from thresher.parts.registry import part

_LN2 = math.log(2.0)


@part("half_life")
class Lasting(NamedTuple):
    """Sums last: every example counts the same, however old.

    >>> Lasting().left(3.0, 5.0)
    3.0
    """

    examples: float = math.inf
    LIMITS = {"examples": "inf"}


@part("half_life")
class Fading(NamedTuple):
    """Sums are halved in so many examples: left(v, k) = v 2^(-k / examples).

    >>> Fading(5.0).left(3.0, 5.0)
    1.5
    """

    examples: float = 1e6
    LIMITS = {"examples": ">= 1"}

    def fades(self):
        """True."""
        return True

    def left(self, amount, missed):
        """The sum times a power."""
        return amount * math.exp(-missed * (_LN2 / self.examples))
