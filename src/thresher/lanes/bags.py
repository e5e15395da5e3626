"""Bags: which rows each model of an ensemble learns, and how often."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.engine.lookup import mix, scatter
from thresher.learning.draws import BAGS, STEP, bits_of, unit
from thresher.learning.modelfolder import MOST

POISSON, DISJOINT = "poisson", "disjoint"
_SPEC = re.compile(rf"(?:({POISSON}|{DISJOINT}):)?([0-9]{{1,18}})")
_BELOW = np.cumsum([math.exp(-1.0) / math.factorial(count) for count in range(18)])
"""P(X <= count) for X ~ Poisson(1); the last is 1 in float64"""


@dataclass(frozen=True)
class Bags:
    """How rows are given to the models of an ensemble.

    ``poisson``: model k learns row i with importance X times its own, where X ~ Poisson(1); rows with X = 0
    are left out. This is the bootstrap of a stream (Oza and Russell, Online Bagging and Boosting (AISTATS
    2001)). ``disjoint``: each row is learned by one model, drawn at random (Daume, A Course in Machine
    Learning (2012), section 13).

    Every draw is a hash of the seed, the number of the row and the model. So it does not depend on where the
    stream is cut, and is the same in every pass.

    >>> Bags.of("disjoint:2").draw(0, 6).tolist()
    [[1, 0, 1, 0, 0, 1], [0, 1, 0, 1, 1, 0]]
    """

    count: int
    """number of models"""
    rows: str = POISSON
    seed: int = 0

    @classmethod
    def of(cls, spec: str | int, seed: int = 0) -> Bags:
        """From ``N``, ``poisson:N`` or ``disjoint:N``; ValueError for anything else."""
        found = None if isinstance(spec, bool) else _SPEC.fullmatch(str(spec))
        if found is None:
            raise ValueError(f"an ensemble is N, poisson:N or disjoint:N, not {spec!r}")
        if not 2 <= int(found[2]) <= MOST:
            raise ValueError(f"an ensemble has 2 to {MOST} models, not {int(found[2])}")
        return cls(int(found[2]), found[1] or POISSON, seed)

    @property
    def spec(self) -> str:
        """The text that `of` accepts."""
        return f"{self.rows}:{self.count}"

    def draw(self, first: int, rows: int) -> NDArray[np.uint8]:
        """How often each model learns each of `rows` rows of the stream, from number `first` on.

        ``(models, rows)``
        """
        of_row = bits_of(np.arange(first, first + rows, dtype=np.uint64), self.seed, BAGS)
        models = np.arange(self.count, dtype=np.uint64)[:, np.newaxis]
        if self.rows == DISJOINT:
            chosen: NDArray[np.bool_] = np.floor(unit(of_row) * self.count) == models
            return chosen.astype(np.uint8)
        draws = unit(scatter(mix(of_row + (models + np.uint64(1)) * STEP)))
        times: NDArray[np.uint8] = np.searchsorted(_BELOW, draws, side="right").astype(np.uint8)
        return times


def drawn(chunk: Chunk, times: NDArray[np.uint8]) -> Chunk:
    """The rows that a model learns, with their importances multiplied."""
    learned = times > 0
    rows = chunk.take(learned)
    return replace(rows, weights=rows.weights * times[learned].astype(np.float32))
