"""Where the intercepts begin: at zero, or at the first label.

Squared loss, absolute loss and their kin do not change when labels and margins move by the same amount.
For them a rule may ask (``begun`` and ``origin`` in the CLOCK of its intercept) to learn the labels less the
first one, which is added to the intercept wherever it is read: years and prices are then no further from zero
than they are from each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Origin:
    """Of the intercepts learned by the rule `bias_rule`, for `loss`."""

    def __init__(self, bias_rule: Any, loss: Any) -> None:
        wanted = loss.SHIFTS and "origin" in bias_rule.CLOCK
        self._begun, self._place = (bias_rule.CLOCK.index(n) if wanted else -1 for n in ("begun", "origin"))

    def added(self, bias: Array, bclock: Array) -> Array:
        """The intercepts as they are read."""
        if self._place < 0:
            return bias
        moved: Array = (bias + bclock.reshape(-1, bclock.shape[-1])[:, self._place]).astype(bias.dtype)
        return moved

    def relative(self, targets: Array, bclock: Array, weights: Array) -> Array:
        """Labels less the origin: of the first example with an importance, which may be among these."""
        if self._place < 0:
            return targets
        clocks = bclock.reshape(-1, bclock.shape[-1])
        if not clocks[0, self._begun]:
            counting = np.flatnonzero(weights)
            if not len(counting):
                return targets
            clocks[:, self._place], clocks[:, self._begun] = targets[counting[0]], 1.0
        return (targets - clocks[:, self._place]).astype(targets.dtype)

    def stay(self, bclock: Array) -> None:
        """The intercepts begin where they are."""
        if self._place >= 0:
            bclock.reshape(-1, bclock.shape[-1])[:, self._begun] = 1.0
