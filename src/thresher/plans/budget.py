"""``nnz:N``: how much of a budget of weights the chosen model uses, and which penalties would use more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from thresher.options.messages import as_shown, mention

_FULL = 0.95
"""A model with this share of the budget fills it."""


def budget_of(which: str) -> int | None:
    """N of ``nnz:N``; None for other choices."""
    kind, _, given = which.partition(":")
    return int(given) if kind == "nnz" else None


def use_of(points: Sequence[Any], number: int, which: str) -> dict[str, Any] | None:
    """What the chosen model uses of the budget; None for other choices than ``nnz:N``.

    `points` are ordered by penalty. Also the number of weights of the fullest model within the budget, and of
    the next heavier one; and the range of penalties between these two, if the budget lies between them and no
    sparser model is better. None for what there is not.
    """
    most = budget_of(which)
    if most is None:
        return None
    able = sorted((one.size, -(one.penalty or 0.0)) for one in points if one.criterion < math.inf)
    within, beyond = ([one for one in able if (one[0] <= most) == side] for side in (True, False))
    fullest, heavier, used = within[-1:], beyond[:1], points[number].size
    found = {"weights": most, "used": used, "fullest": None, "next": None, "between": None}
    found |= {"fullest": fullest[0][0]} if fullest else {}
    found |= {"next": heavier[0][0]} if heavier else {}
    if fullest and heavier and used == fullest[0][0] < _FULL * most and heavier[0][1] > fullest[0][1]:
        found["between"] = f"{-heavier[0][1]:.6g}:{-fullest[0][1]:.6g}:16"
    return found


def sentence(use: dict[str, Any]) -> str:
    """The use of the budget in words.

    >>> sentence({"weights": 500, "used": 444, "fullest": 444, "next": 512, "between": "0.7:0.88:16"})
    '444 of 500 weights; the next heavier model has 512; l1="0.7:0.88:16" learns models between them'
    """
    if use["fullest"] is None:
        return f"{use['used']:,.9g} weights: no model has {use['weights']:,} or fewer"
    used = f"{use['used']:,.9g} of {use['weights']:,} weights"
    if use["fullest"] > use["used"]:
        return f"{used}; models with up to {use['fullest']:,.9g} do not have a lower loss"
    if use["next"] is None:
        return f"{used}; none has more"
    finer = f"; {mention(l1=use['between'])} learns models between them" if use["between"] else ""
    return as_shown(f"{used}; the next heavier model has {use['next']:,.9g}{finer}")
