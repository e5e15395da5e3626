"""Calibration: the probability that a margin m means is 1 / (1 + exp(-(a m + b))).

a and b are learned while the model learns, from the margin of each example before it is learned, so that no
hold-out is lost (Platt, Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
Likelihood Methods (1999), who fits them to margins of held-out examples; Niculescu-Mizil and Caruana, ICML
2005). They are applied to losses that have probabilities only if they have made the progressive log loss at
least 1 % lower: of 13 sets and 8 rules, docs/calibration.md says what that prevents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import OneLineError
from thresher.engine import calibrating
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.learning.model.objective import Head

F64 = NDArray[np.float64]
_WORTH = 0.99
"""Calibrate if the log loss becomes lower than by this factor"""


class FittedSigmoid(NamedTuple):
    """The two numbers."""

    slope: float = 1.0
    intercept: float = 0.0

    @classmethod
    def learned(cls, state: F64, has_link: bool, offset: float = 0.0) -> FittedSigmoid | None:
        """The numbers that `calibrate` has learned, for margins with `offset` added; None for the link."""
        raw, own = state[calibrating.RAW_LOSS], state[calibrating.OWN_LOSS]
        if has_link and not own < _WORTH * raw:
            return None
        slope = 1.0 + float(state[calibrating.SLOPE])
        return cls(slope, float(state[calibrating.INTERCEPT]) + offset * (1.0 - slope))

    def log_odds(self, margins: F64) -> F64:
        """The log odds of the positive class, for margins ``(n,)``."""
        return self.slope * margins + self.intercept


def check_calibrated(head: Head, batch: int, average: bool) -> None:
    """ValueError for a model that cannot be calibrated."""
    if not head.classifies or head.outputs.kind != "one":
        calibrate = mention(calibrate=True)
        raise OneLineError(f"{calibrate} is for models of two classes, whose labels are one number or word")
    if batch > 1:
        raise OneLineError(f"a calibration needs the margin of each example: leave {mention('batch')} out")
    if average:
        raise OneLineError(
            f"a calibration is that of the last weights, not of their mean: leave {mention('average')} out"
        )
