"""How the rows that are held out, or in a fold, differ from those that are learned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from thresher.data.chunk import Chunk
from thresher.learning.figures import shown
from thresher.learning.head import Head

_FEW, _ERRORS, _ROWS = 100, 5.0, 10
"""A difference counts with more rows than these, above so many standard errors, if so many rows differ"""
_POINTS, _TIMES = 0.1, 2.0
"""and if shares differ by more than this, or by such a factor"""

Counts = Mapping[float, int]
"""Rows by class"""


def counts_of(head: Head, chunk: Chunk) -> Counter[float]:
    """The rows of each class, without those of importance 0; empty if rows have no single class."""
    if not head.classifies or head.outputs.kind not in ("one", "classes"):
        return Counter()
    labels = chunk.labels[chunk.weights > 0]
    if head.outputs.kind == "one":
        positive = int(np.count_nonzero(labels > 0))
        return Counter({1.0: positive, -1.0: len(labels) - positive})
    found, counts = np.unique(labels, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


def difference(held: Counts, learned: Counts, which: str = "held-out rows", words: Sequence[str] = ()) -> str:
    """How the classes of rows that are held out differ from those of rows that are learned; empty if little.

    `words` are the names of the classes, if labels are words. Chance alone makes a difference that is told
    with a probability below one in ten thousand.

    >>> difference({1.0: 30, -1.0: 0}, {1.0: 40, -1.0: 60})
    'all 30 held-out rows have the label 1, of the rows learned 40 %'
    >>> difference({1.0: 10, -1.0: 90}, {1.0: 500, -1.0: 500})
    '10 % of the held-out rows have the label 1, of the rows learned 50 %'
    """
    n, m = sum(held.values()), sum(learned.values())
    if not n or not m:
        return ""
    there = [label for label, count in held.items() if count]
    alone = len(there) == 1 and n * (1 - learned.get(there[0], 0) / m) >= _ROWS
    labels = [1.0] if {*held, *learned} <= {1.0, -1.0} else [*{*held, *learned}]
    worst = (
        there[0] if alone and len(labels) > 1 else max(labels, key=lambda k: (_errors(held, learned, k), k))
    )
    a, b = held.get(worst, 0) / n, learned.get(worst, 0) / m
    together = (held.get(worst, 0) + learned.get(worst, 0)) / (n + m)
    few = n + m <= _FEW or n * abs(a - together) < _ROWS or _errors(held, learned, worst) <= _ERRORS
    if not alone and (few or (abs(a - b) <= _POINTS and max(a, b) < _TIMES * min(a, b))):
        return ""
    share = (
        f"all {n:,} {which}"
        if a == 1
        else f"none of {n:,} {which}"
        if a == 0
        else f"{_percent(a)} of the {which}"
    )
    place = int(worst)
    name = words[place] if 0 <= place < len(words) else f"{worst:g}"
    return f"{share} have the label {name}, of the rows learned {_percent(b)}"


def _errors(held: Counts, learned: Counts, label: float) -> float:
    """How many standard errors the shares of a class are apart."""
    n, m = sum(held.values()), sum(learned.values())
    a, b = held.get(label, 0) / n, learned.get(label, 0) / m
    p = (held.get(label, 0) + learned.get(label, 0)) / (n + m)
    error = math.sqrt(p * (1 - p) * (1 / n + 1 / m))
    return abs(a - b) / error if error else 0.0


def off(got: float, wanted: float, rows: int) -> bool:
    """Whether a share of the rows is less than half of what was wanted, or more than twice of it."""
    return rows > _FEW and not wanted / _TIMES <= got <= wanted * _TIMES


def _percent(share: float) -> str:
    return f"{shown(100 * share) if 0 < share < 0.01 else round(100 * share)} %"
