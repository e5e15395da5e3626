"""``nnz:N``: penalties between two models, one too heavy and one too light, to use the budget of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from thresher.learning.files.choice import Rated
from thresher.options.messages import mention

_FULL = 0.99
"""A model with this share of the budget fills it."""
_BELOW, _ABOVE = (0.3, 0.13, 0.05), (0.0, 0.06, 0.13, 0.22, 0.4)
"""Where penalties are placed on both sides of the one that should fill the budget, as shares of the distance
to the two models: eight, which learn together."""
_WIDE = math.log(10.0)
"""If one of the two models has more than ten times the weights of the other, twice as many are placed."""


def budget_of(which: str) -> int | None:
    """N of ``nnz:N``; None for other choices."""
    kind, _, given = which.partition(":")
    return int(given) if kind == "nnz" else None


def between(points: Sequence[Any], which: str) -> list[float]:
    """The penalties to try next for ``nnz:N``, ascending; none if no better use of the budget is expected.

    `points` are ordered by penalty. The number of weights is taken as a power of the penalty between the two
    models next to the budget. None are needed if a model has 99 % of the budget, or if the best of all
    models has fewer weights than another one within it.

    >>> from thresher.learning.files.choice import Point
    >>> points = [Point(l1, "", size, l1, None, None) for l1, size in ((0.5, 900), (1.0, 385), (2.0, 90))]
    >>> [round(l1, 3) for l1 in between(points, "nnz:500")]
    [0.7, 0.759, 0.789, 0.808, 0.818, 0.831, 0.847, 0.88]
    >>> between(points, "nnz:1000"), between(points, "best")
    ([], [])
    """
    most = budget_of(which)
    able = [k for k, one in enumerate(points) if one.criterion < math.inf]
    within = [k for k in able if most is not None and _size(points[k]) <= most]
    if most is None or not within:
        return []
    fullest = max(within, key=lambda k: (_size(points[k]), -points[k].criterion))
    limit = points[fullest].penalty or 0.0
    heavier = [k for k in able if _size(points[k]) > most and (points[k].penalty or 0.0) < limit][-1:]
    if not heavier:
        return []
    best = min(able, key=lambda k: points[k].criterion)
    unbound = _size(points[best]) <= most and best != fullest
    if unbound or _size(points[fullest]) >= _FULL * most:
        return []
    low, high = (float(points[k].penalty or 0.0) for k in (*heavier, fullest))
    low = low or high / 1000
    many, few = (math.log(max(_size(points[k]), 0.5)) for k in (*heavier, fullest))
    place = (many - math.log(most)) / (many - few)
    shares = [place * (1 - share) for share in _BELOW] + [place + (1 - place) * share for share in _ABOVE]
    if many - few > _WIDE:
        shares += [(one + other) / 2 for one, other in pairwise([0.0, *sorted(shares)])]
    ratio = math.log(high / low)
    penalties = sorted({low * math.exp(ratio * share) for share in shares})
    return [penalty for penalty in penalties if low < penalty < high]


def reading_again(penalties: Sequence[float]) -> str:
    """The message before the data are read again for these penalties."""
    span = f"{len(penalties)} penalties from {penalties[0]:.6g} to {penalties[-1]:.6g}"
    return f"reading the data again, for {span}"


def unread(penalties: Sequence[float]) -> str:
    """The message if `between` names these penalties, but the data cannot be read again."""
    span = mention(l1=f"{penalties[0]:.6g}:{penalties[-1]:.6g}:{len(penalties)}")
    return f"the data can be read only once: to use more of the budget of weights, run again with {span}"


LONELY = (
    "models with penalties between would use more of the budget of weights, but they would lack the data"
    " learned before: to have them, train on all data again"
)
"""The message if further models would lack the data that those of `between` have learned before"""


def use_of(points: Sequence[Any], number: int, which: str) -> dict[str, Any] | None:
    """What the chosen model uses of the budget; None for other choices than ``nnz:N``.

    Also the number of weights of the fullest model within the budget, and of the next heavier one, or None if
    there is none.
    """
    most = budget_of(which)
    if most is None:
        return None
    sizes = sorted(_size(one) for one in points if one.criterion < math.inf)
    fullest = max((size for size in sizes if size <= most), default=None)
    heavier = next((size for size in sizes if size > most), None)
    return {"weights": most, "used": _size(points[number]), "fullest": fullest, "next": heavier}


def sentence(use: dict[str, Any]) -> str:
    """The use of the budget in words.

    >>> sentence({"weights": 500, "used": 444, "fullest": 444, "next": 512})
    '444 of 500 weights; the next heavier model has 512'
    """
    if use["fullest"] is None:
        return f"{use['used']:,.9g} weights: no model has {use['weights']:,} or fewer"
    used = f"{use['used']:,.9g} of {use['weights']:,} weights"
    if use["fullest"] > use["used"]:
        return f"{used}; models with up to {use['fullest']:,.9g} do not have a lower loss"
    return f"{used}; " + (
        f"the next heavier model has {use['next']:,.9g}" if use["next"] else "none has more"
    )


def _size(one: Rated) -> float:
    return one.size or 0
