"""The progressive curve of a model: loss and number of weights during training, in a few points.

A point is kept at each power of two of examples, and at the ends of passes 1 to 32, 64, 128 and so on. The
curve does not depend on how the data were cut, on stops and resumes, or on how often a table was printed.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from thresher.learning.trained import Tally

MOST = 256
"""Maximum number of points: more than 64 powers of two, 32 passes and 58 powers of two of passes."""
_PASSES = 32
_ROWS, _FILLED = 1 << 16, 4


class Point(NamedTuple):
    """State of a model during training."""

    examples: int
    """examples learned so far"""
    loss: float
    """sum of importance times progressive loss"""
    weight: float
    """sum of importances"""
    nonzero: int | None
    """number of nonzero weights; None while most rows of a large table are empty: see `marked`"""
    features_seen: int
    """number of distinct features seen"""

    @property
    def average(self) -> float:
        """Progressive loss; NaN if the total importance is zero."""
        return Tally(self.loss, self.weight).average

    def as_dict(self) -> dict[str, Any]:
        """The content in JSON."""
        own = {"examples": self.examples, "progressive_loss": self.average}
        return own | {"nonzero": self.nonzero, "features_seen": self.features_seen}


Curve = tuple[Point, ...]


class _Counting(Protocol):
    @property
    def examples(self) -> int: ...
    @property
    def tally(self) -> Tally: ...
    @property
    def nonzero(self) -> int: ...
    @property
    def features_seen(self) -> int: ...


def until_due(done: int) -> int:
    """Number of examples from example `done` to the next point."""
    return (1 << done.bit_length()) - done if done else 1


def is_due(done: int) -> bool:
    """Whether there is a point after this many examples."""
    return done & (done - 1) == 0


def keeps_end(number: int) -> bool:
    """Whether there is a point at the end of pass `number`."""
    return number <= _PASSES or number & (number - 1) == 0


def marked(curve: Curve, model: _Counting, rows: int) -> Curve:
    """The curve with a point for the current state, unless there is one or the loss is not finite.

    Weights are counted unless the table of `rows` rows is large and less than a quarter full: scanning
    millions of empty rows after each of the first examples would take longer than learning.
    """
    if (curve and curve[-1].examples >= model.examples) or not math.isfinite(model.tally.loss):
        return curve
    seen = model.features_seen
    nonzero = model.nonzero if rows <= max(_ROWS, _FILLED * seen) else None
    return (*curve, Point(model.examples, *model.tally, nonzero, seen))


def up_to(curve: Curve, examples: int) -> Curve:
    """The points up to this number of examples."""
    return tuple(point for point in curve if point.examples <= examples)


def is_curve(given: Any) -> bool:
    """Whether `given` is a valid curve: few points, finite numbers, ascending numbers of examples."""
    if not isinstance(given, list) or len(given) > MOST or not all(map(_is_point, given)):
        return False
    return all(one[0] < other[0] for one, other in pairwise(given))


def _is_point(given: Any) -> bool:
    if not isinstance(given, list) or len(given) != len(Point._fields):
        return False
    examples, loss, weight, nonzero, seen = given
    counts = (examples, seen, *([] if nonzero is None else [nonzero]))
    return (
        all(type(one) is int and 0 <= one < 1 << 63 for one in counts)
        and all(type(one) is float and math.isfinite(one) for one in (loss, weight))
        and weight >= 0.0
    )


def curve_of(given: Any) -> Curve:
    """The curve in `given`, which `is_curve` has accepted."""
    return tuple(Point(*one) for one in given)
