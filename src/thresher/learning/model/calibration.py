"""Calibration: the probability that a margin m means is 1 / (1 + exp(-(a m + b))).

a and b are learned while the model learns, from the margin of each example before it is learned, so that no
hold-out is lost (Platt, Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
Likelihood Methods (1999), who fits them to margins of held-out examples; Niculescu-Mizil and Caruana, ICML
2005). Of several classes, the probabilities are softmax(m / T), so that the likeliest class stays the
likeliest (Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, ICML 2017, section
4.2): a is 1 / T and b is 0. They are applied to losses that have probabilities only if they have made the
progressive log loss at least 1 % lower (of several classes 3 %): docs/calibration.md says what that prevents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import OneLineError
from thresher.engine import calibrating
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.learning.model.objective import Objective

F64 = NDArray[np.float64]
_WORTH, _WORTH_OF_SEVERAL = 0.99, 0.97
"""Calibrate if the log loss becomes lower than by this factor"""


class FittedLink(NamedTuple):
    """The two numbers: margins times `slope` plus `intercept` are log odds, or those of softmax."""

    slope: float = 1.0
    intercept: float = 0.0

    @classmethod
    def learned(cls, state: F64, head: Objective, offset: float = 0.0) -> FittedLink | None:
        """The numbers that `calibrate` has learned, for margins with `offset` added; None for the link."""
        raw, own = state[calibrating.RAW_LOSS], state[calibrating.OWN_LOSS]
        worth = _WORTH if head.count == 1 else _WORTH_OF_SEVERAL
        if head.joint.PROBABILITY and not own < worth * raw:
            return None
        slope = 1.0 + float(state[calibrating.SLOPE])
        return cls(slope, float(state[calibrating.INTERCEPT]) + offset * (1.0 - slope))

    def log_odds(self, margins: F64) -> F64:
        """The log odds of the positive class, or of all, for margins ``(n,)`` or ``(n, classes)``."""
        return self.slope * margins + self.intercept


def figures_of(head: Objective) -> dict[str, float] | None:
    """What a calibrated model has learned that margins mean; None if the link of its loss was kept."""
    found = head.calibrated()
    if found is None:
        return None
    return found._asdict() if head.count == 1 else {"temperature": 1 / found.slope}


def in_words(figures: dict[str, float] | None) -> str:
    """The same as text.

    >>> in_words({"slope": 2.0, "intercept": -1.0})
    '1 / (1 + exp(-(2 m - 1))) for a margin m'
    """
    if figures is None:
        return "that of the loss, as calibration hardly lowered the log loss"
    if "temperature" in figures:
        return f"softmax(m / {figures['temperature']:.6g}) for the margins m of the classes"
    sign, size = "-" if figures["intercept"] < 0 else "+", abs(figures["intercept"])
    return f"1 / (1 + exp(-({figures['slope']:.6g} m {sign} {size:.6g}))) for a margin m"


def check_calibrated(head: Objective, average: bool, corrected: bool) -> None:
    """ValueError for a model that cannot be calibrated; `corrected`: its intercepts are, for a sample."""
    if not head.classifies or head.outputs.kind not in ("one", "classes"):
        raise OneLineError(f"{mention(calibrate=True)} is for classes of which each row has one")
    if corrected and head.count > 1:
        raise OneLineError(
            f"one temperature cannot calibrate corrected intercepts: leave correct out of {mention('sample')}"
        )
    if average:
        raise OneLineError(
            f"a calibration is that of the last weights, not of their mean: leave {mention('average')} out"
        )
