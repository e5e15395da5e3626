"""Few cases of many axes, instead of their product.

A law of every rule in every setting, with every loss and in every store, has thousands of cases, nearly all
of which fail together or not at all. A covering list has as many cases as the longest axis has values.
"""

from collections.abc import Collection
from random import Random
from typing import Any

from tests.streams import RULES


def covering(*axes: Collection[Any], seed: int = 0) -> list[tuple[Any, ...]]:
    """Cases in which each value of each axis occurs; `seed` decides which of them meet."""
    draw, longest = Random(seed), max(map(len, axes))
    columns = [
        [value for _ in range(0, longest, len(axis)) for value in draw.sample([*axis], len(axis))]
        for axis in axes
    ]
    return [*zip(*(column[:longest] for column in columns), strict=True)]


def covering_for(name: str, *axes: Collection[Any]) -> list[tuple[Any, ...]]:
    """The same for a rule: values that do not meet with one rule meet with another."""
    return covering(*axes, seed=RULES.index(name))
