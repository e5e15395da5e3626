"""Generated data, the same for the same seed."""

from __future__ import annotations

import numpy as np

from experiments.papers.sets import Parts
from thresher.data import Chunk

FREQUENT, RARE, IN_A_ROW = 20, 400, 4


def rare_words(rows: int, tests: int, seed: int = 0) -> Parts:
    """Rows with frequent garbage and rare, informative features.

    Each of the `FREQUENT` first features stands in half of the rows and tells nothing. Each row also has
    `IN_A_ROW` of `RARE` features; each of these speaks for one class and is wrong in one of ten rows.
    """
    draw = np.random.default_rng(seed)
    speaks = draw.choice([-1.0, 1.0], RARE)
    by_class = {sign: np.flatnonzero(speaks == sign) for sign in (-1.0, 1.0)}
    found = []
    for _ in range(rows + tests):
        y = float(draw.choice([-1.0, 1.0]))
        row = {int(k): float(draw.choice([-1.0, 1.0])) for k in np.flatnonzero(draw.random(FREQUENT) < 0.5)}
        for _ in range(IN_A_ROW):
            sign = y if draw.random() < 0.9 else -y
            row[FREQUENT + int(draw.choice(by_class[sign]))] = 1.0
        found.append((y, row))
    chunk = Chunk.of_rows(found)
    return Parts(chunk.rows(0, rows), chunk.rows(rows, rows + tests))


def few_words(rows: int, tests: int, seed: int = 0) -> Parts:
    """Rows with `IN_A_ROW` of 12 informative words, each right in four of five rows, and of 300 others."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(rows + tests):
        y = float(draw.choice([-1.0, 1.0]))
        sides = np.where(draw.random(IN_A_ROW) < 0.8, y, -y)
        row = {int(draw.integers(6)) + (6 if side > 0 else 0): 1.0 for side in sides}
        row |= {12 + int(k): 1.0 for k in draw.choice(300, IN_A_ROW, replace=False)}
        found.append((y, row))
    chunk = Chunk.of_rows(found)
    return Parts(chunk.rows(0, rows), chunk.rows(rows, rows + tests))
