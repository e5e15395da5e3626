"""Which penalties a frontier is made of."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.lanes.lanes import Lanes
from thresher.learning.recipe import Recipe

_MOST = 256
_PILOT_ROWS = 4096
_PILOT: list[float] = [float(10.0 ** (k / 2)) for k in range(-16, 13)]
"""From 1e-8 to 1e6 by half a power of ten."""
_SPAN = 1e4
"""The weakest penalty of a range found by itself is at least the strongest by this."""


def penalty_name(rule: Any) -> str:
    """The parameter that makes a rule sparse. ValueError for a rule without one."""
    made = parts.make("rule", rule)
    if not made.PENALTIES:
        raise ValueError(f"{parts.part_name(type(made))} has no penalty, so there is no frontier")
    return "l1" if "l1" in made.PENALTIES else str(made.PENALTIES[0])


def penalty_in(rule: Any) -> float:
    """Its value in a rule."""
    return float(getattr(rule, penalty_name(rule)))


def with_penalty(recipe: Recipe, value: float) -> Recipe:
    """The recipe with another penalty."""
    rule = recipe.make_rule()
    return replace(recipe, rule=rule._replace(**{penalty_name(rule): value}), rate=None)


class Range:
    """``LO:HI:N`` or ``auto:N``: N penalties at even ratios. ValueError for any other text.

    >>> [round(value, 6) for value in Range("0.01:1:3").values]
    [0.01, 0.1, 1.0]
    """

    def __init__(self, text: str) -> None:
        found = re.fullmatch(r"(?:(auto)|([^:]+):([^:]+))(?::(\d+))?", text)
        if not found:
            raise ValueError(f"a range of penalties is LO:HI:N or auto:N, such as 0.1:10:16, not {text!r}")
        self.count = int(found[4] or 16)
        if not 2 <= self.count <= _MOST:
            raise ValueError(f"a range has 2 to {_MOST} penalties, not {self.count}")
        self.values: list[float] = []
        """none as long as they are to be found in the data"""
        if not found[1]:
            self.values = self._between(*(_positive(end, text) for end in (found[2], found[3])))

    def _between(self, low: float, high: float) -> list[float]:
        if not low < high:
            raise ValueError(f"a range of penalties goes up: {low:g} is not below {high:g}")
        return [float(value) for value in np.geomspace(low, high, self.count)]

    def found_in(self, chunks: Any, recipe: Recipe) -> list[float]:
        """The penalties of ``auto``, from the first rows of the data.

        Lanes of very different penalties learn these rows. The strongest penalty is twice the strongest that
        leaves a weight; the weakest, the strongest that leaves nearly as many as none at all.
        """
        lanes = Lanes([with_penalty(recipe, value) for value in _PILOT])
        left = _PILOT_ROWS
        for chunk in islice(chunks, _PILOT_ROWS):
            if len(chunk):
                lanes.learn(_first(chunk, left))
                left -= min(left, len(chunk))
            if not left:
                break
        lanes.finish()
        alive = [(_PILOT[k], lanes.models[k].nonzero) for k in lanes.alive]
        full = max((count for _, count in alive), default=0)
        if not full:
            raise ValueError("no penalty leaves a weight after the first rows: say the range, LO:HI:N")
        high = 2.0 * max(value for value, count in alive if count)
        low = max(value for value, count in alive if count >= 0.9 * full)
        return self._between(max(min(low, high / 100), high / _SPAN), high)


def _first(chunk: Chunk, rows: int) -> Chunk:
    return chunk.rows(0, min(rows, len(chunk)))


def _positive(text: str, whole: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ValueError(f"a range of penalties is LO:HI:N with numbers above 0, not {whole!r}")
    return value
