"""The penalties of a frontier.

No formula gives the strongest useful penalty for every rule: it depends on rates and clocks, and on the
length of the stream. So 29 lanes at half powers of ten learn 4,096 rows. On 781,265 rows `ftrl` keeps 1,988
weights at the penalty that leaves none on 4,096 rows, `adagrad-rda` 11. So the penalties that leave ten
weights after 512 and after 4,096 rows are compared, and their growth is extrapolated as a power law to the
length of the data: `ftrl` then ends with 122 weights, `ft-ftrl` with one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.data.source import Source
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe, penalty_field
from thresher.options.kinds import Number

_MOST = 256
PILOT_ROWS = 4096
"""Rows that the pilot learns."""
_PILOT: list[float] = [float(10.0 ** (k / 2)) for k in range(-16, 13)]
"""From 1e-8 to 1e6 in steps of half a power of ten."""
_TEN = 10
"""number of weights"""
_SPAN, _SPAN_IN_MEMORY = 1e4, 1e3
"""Ratios of the strongest to the weakest penalty in a range found: at most; that of solvers in memory"""


def penalty_name(rule: object) -> str:
    """The name of the parameter that makes a rule sparse. ValueError for a rule without one."""
    made = parts.make("rule", rule)
    name = penalty_field(made)
    if name is None:
        raise ValueError(f"{parts.part_name(type(made))} has no penalty, so there is no frontier")
    return name


def leaves_penalty_open(rule: object) -> bool:
    """Whether a rule has a penalty that its SPEC leaves open; a part or a recipe leaves nothing open."""
    if isinstance(rule, Recipe):
        return False
    text = rule if isinstance(rule, str) else parts.spec_of(parts.make("rule", rule))
    if not parts.make("rule", rule).PENALTIES:
        return False
    named = (field.partition("=")[0].strip() for field in text.partition(":")[2].split(","))
    return penalty_name(rule) not in named


def penalty_in(rule: object) -> float:
    """The value of a rule's penalty."""
    return float(getattr(rule, penalty_name(rule)))


def with_penalty(recipe: Recipe, value: float) -> Recipe:
    """The recipe with another penalty."""
    rule = recipe.rule_part
    return replace(recipe, rule=rule._replace(**{penalty_name(rule): value}), rate=None)


class PenaltyRange:
    """``LO:HI:N`` or ``auto:N``: N penalties in geometric progression; or a list of penalties. ValueError.

    >>> [round(value, 6) for value in PenaltyRange("0.01:1:3").values]
    [0.01, 0.1, 1.0]
    """

    def __init__(self, text: Any) -> None:
        self.values: list[float] = []
        """empty if the range is to be found in the data"""
        listed = isinstance(text, Sequence | np.ndarray) and not isinstance(text, str) and np.ndim(text)
        found = (
            re.fullmatch(r"(?:auto|([^:]+):([^:]+)(?=:))(?::(\d+))?", text) if isinstance(text, str) else None
        )
        if not listed and not found:
            what = "penalties must be a range LO:HI:N, such as 0.1:10:16, auto:N or a list"
            raise ValueError(f"{what}, not {text!r}")
        self.count = int(found[3] or 16) if found else len(text)
        if not 2 <= self.count <= _MOST:
            raise ValueError(f"a range must have 2 to {_MOST} penalties, not {self.count}")
        if found and found[1] is None:
            return
        number = Number()
        try:
            ends = map(number.read, found.group(1, 2)) if found else map(number.take, text)
            values = [float(value) for value in ends]
        except ValueError:
            values = [0.0]
        if not all(low < high for low, high in pairwise([0.0, *values, math.inf])):
            raise ValueError(f"penalties must be ascending numbers above 0, not {text!r}")
        self.values = self._between(*values) if found else values

    def _between(self, low: float, high: float) -> list[float]:
        with np.errstate(over="ignore"):  # rules refuse penalties that are too large
            return [float(value) for value in np.geomspace(low, high, self.count)]

    def down_from(self, top: float) -> list[float]:
        """The penalties; those of ``auto`` from a thousandth of `top`, which leaves no weight, up to it."""
        return self.values or self._between(top / _SPAN_IN_MEMORY, top)

    def find_range(self, source: Source, recipe: Recipe) -> list[float]:
        """The penalties of ``auto``, from the first rows of a source that can be read again.

        ValueError if no penalty leaves a weight; `DataError` if no row counts.

        Lanes with very different penalties learn these rows. The weakest penalty of the range is the
        strongest that leaves nearly as many weights as no penalty; the strongest is twice the strongest that
        leaves any weight. The penalty that leaves ten weights grows as a power of the number of rows, which
        differs by rule: the power is measured between an eighth of the rows and all of them, and the range
        is extended for the length of the data.
        """
        with closing(source.chunks()) as chunks:
            early, _ = _learn_first(recipe, chunks, PILOT_ROWS // 8)
        with closing(source.chunks()) as chunks:
            late, read = _learn_first(recipe, chunks, PILOT_ROWS)
            share = source.position_bytes / source.total_bytes if source.total_bytes else 1.0
            expected = read / share if share else 0.0
        full = max(count for _, count in late)
        if not full and not read:
            raise DataError("all importance weights are zero")
        if not full:
            raise ValueError("no penalty leaves a weight after the first rows: give the range, LO:HI:N")
        high = 2.0 * max(value for value, count in late if count)
        low = max(value for value, count in late if count >= 0.9 * full)
        power = math.log(max(_penalty_for_ten(late) / _penalty_for_ten(early), 1.0)) / math.log(8.0)
        high *= max(expected / PILOT_ROWS, 1.0) ** min(power, 1.0)
        return self._between(max(min(low, high / 100), high / _SPAN), high)


def _learn_first(recipe: Recipe, chunks: Iterable[Chunk], rows: int) -> tuple[list[tuple[float, int]], int]:
    """Penalties, and how many weights lanes with them have after so many rows; and the rows with a weight.

    Lanes that diverge are left out.
    """
    few = replace(recipe, store="growing")  # 29 tables with millions of rows would take gigabytes
    lanes, left, read = ModelSet([with_penalty(few, value) for value in _PILOT]), rows, 0
    for chunk in chunks:
        lanes.learn(chunk.rows(0, chunk.end_of(0, left)))
        left = rows - lanes.examples
        read += int(np.count_nonzero(chunk.weights))
        if not left:
            break
    lanes.finish()
    return [(_PILOT[k], lanes.models[k].nonzero) for k in lanes.alive], read


def _penalty_for_ten(found: list[tuple[float, int]]) -> float:
    """The penalty that leaves ten weights, interpolated between logarithms."""
    kept = [(value, count) for value, count in found if count >= _TEN]
    if not kept:
        return 1.0
    value, count = kept[-1]
    above = next((one for one in found if one[0] > value), (value, count))
    fall = math.log(count / max(above[1], 0.5))
    share = math.log(count / _TEN) / fall if fall > 0 else 0.0
    return float(value * (above[0] / value) ** share)
