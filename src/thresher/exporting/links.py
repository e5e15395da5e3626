"""What links compute: which of a few formulas turns the margins of a loss into its predictions.

The formula is found by comparing values, so there is no table of losses that could be wrong, and the link of
a loss of your own is found too, if it is one of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thresher import parts
from thresher.data.errors import DataError
from thresher.learning.model.objective import F64, Head

_PROBES = np.array([-40.0, -3.0, -0.7, 0.0, 0.4, 1.0, 2.5, 30.0])
IDENTITY, SIGMOID, RAMP, EXP, SOFTMAX = "identity", "sigmoid", "ramp", "exp", "softmax"
CALIBRATED = "calibrated"
LINKS = (IDENTITY, SIGMOID, RAMP, EXP, SOFTMAX, CALIBRATED)


class Link(NamedTuple):
    """A formula of margins m.

    ``identity``; ``sigmoid`` 1 / (1 + exp(-by m)); ``ramp`` (1 + m) / 2 between 0 and 1; ``exp`` exp(m + by);
    ``softmax`` exp(by m_k) / sum_j exp(by m_j); ``calibrated`` 1 / (1 + exp(-(by m + plus))), whose label is
    positive where by m + plus is.
    """

    name: str
    by: float = 0.0
    plus: float = 0.0

    def of(self, margins: F64) -> F64:
        """The predictions for margins ``(n, outputs)``."""
        with np.errstate(over="ignore"):
            if self.name == SIGMOID:
                return np.asarray(1 / (1 + np.exp(-self.by * margins)))
            if self.name == RAMP:
                return np.clip((1 + margins) / 2, 0, 1)
            if self.name == EXP:
                return np.exp(margins + self.by)
            if self.name == SOFTMAX:
                raised = np.exp(self.by * margins - self.by * margins.max(axis=1, keepdims=True))
                return np.asarray(raised / raised.sum(axis=1, keepdims=True))
        return margins


def link_of(head: Head) -> Link:
    """The link of a loss; `DataError` for one that is none of these."""
    if (found := head.calibrated()) is not None:
        return Link(SOFTMAX, found.slope) if head.count > 1 else Link(CALIBRATED, *found)
    margins = np.column_stack([np.roll(_PROBES, k) for k in range(head.count)])
    given: Any = margins if head.count > 1 else margins[:, 0]
    output: Any = "probability" if head.has_probabilities else "label"
    if head.classifies and not head.has_probabilities:
        return Link(IDENTITY)
    expected = head.respond(given, output, 0.0).reshape(margins.shape)
    slope = float(np.log(expected[0, 0]) / margins[0, 0]) if 0 < expected[0, 0] < 1 else 1.0
    offset = float(np.log(expected[3, 0])) if expected[3, 0] > 0 else 0.0
    tried = (
        Link(IDENTITY),
        Link(SIGMOID, float(np.round(slope, 6))),
        Link(RAMP),
        Link(EXP, getattr(head.loss, "offset", offset)),
        Link(SOFTMAX, 1.0),
    )
    for link in tried:
        if np.allclose(expected, link.of(margins), rtol=1e-12, atol=1e-300):
            return link
    name = parts.part_name(type(head.loss))
    raise DataError(f"the link of the loss {name} is none of {', '.join(LINKS[:5])}: it cannot be exported")
