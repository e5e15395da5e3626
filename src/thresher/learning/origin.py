"""The origin of the intercepts: zero, or the first label.

Squared loss, absolute loss and similar losses do not change when labels and margins are shifted by the same
amount. For these a rule may request, with ``begun`` and ``origin`` in the CLOCK of its intercept, to learn
labels relative to the first one, which is added back wherever the intercept is read. Years and prices are
then no further from zero than from each other.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


class Origin:
    """The origin of the intercepts learned by `bias_rule` for `loss`."""

    def __init__(self, bias_rule: Any, loss: Any) -> None:
        wanted = loss.SHIFTS and "origin" in bias_rule.CLOCK
        self._started, self._place = (bias_rule.CLOCK.index(n) if wanted else -1 for n in ("begun", "origin"))

    def added(self, bias: Array, bclock: Array) -> Array:
        """Intercepts with the origin added."""
        if self._place < 0:
            return bias
        moved: Array = (bias + bclock.reshape(-1, bclock.shape[-1])[:, self._place]).astype(bias.dtype)
        return moved

    def relative(self, targets: Array, bclock: Array) -> Array:
        """Labels minus the origin: that of the first example, maybe among these."""
        if self._place < 0:
            return targets
        clocks = bclock.reshape(-1, bclock.shape[-1])
        if not clocks[0, self._started]:
            clocks[:, self._place], clocks[:, self._started] = targets[0], 1.0
        return (targets - clocks[:, self._place]).astype(targets.dtype)

    def stay(self, bclock: Array) -> None:
        """Keep the origin at zero."""
        if self._place >= 0:
            bclock.reshape(-1, bclock.shape[-1])[:, self._started] = 1.0
