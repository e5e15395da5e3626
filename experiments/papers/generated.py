"""Generated data, the same for the same seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.papers.sets import Parts, extended
from thresher.data import Chunk

FREQUENT, RARE, IN_A_ROW = 20, 400, 4


def rare_words(rows: int, tests: int, seed: int = 0, *, rare: int = RARE, uneven: bool = False) -> Parts:
    """Rows with frequent garbage and rare, informative features.

    Each of the `FREQUENT` first features stands in half of the rows and tells nothing. Each row also has
    `IN_A_ROW` of `rare` features; each of these speaks for one class and is wrong in one of ten rows. They
    are equally frequent or, if `uneven`, the k-th of a class in proportion to 1/k.
    """
    draw = np.random.default_rng(seed)
    speaks = directions(rare, seed)
    by_class = {sign: np.flatnonzero(speaks == sign) for sign in (-1.0, 1.0)}
    shares = {sign: 1 / np.arange(1.0, len(words) + 1) for sign, words in by_class.items()}
    found = []
    for _ in range(rows + tests):
        y = float(draw.choice([-1.0, 1.0]))
        row = {int(k): float(draw.choice([-1.0, 1.0])) for k in np.flatnonzero(draw.random(FREQUENT) < 0.5)}
        for _ in range(IN_A_ROW):
            sign = y if draw.random() < 0.9 else -y
            p = shares[sign] / shares[sign].sum() if uneven else None
            row[FREQUENT + int(draw.choice(by_class[sign], p=p))] = 1.0
        found.append((y, row))
    chunk = Chunk.of_rows(found)
    return Parts(chunk.rows(0, rows), chunk.rows(rows, rows + tests))


def directions(rare: int, seed: int = 0) -> NDArray[np.float64]:
    """The class, 1 or -1, that each informative feature of `rare_words` speaks for."""
    return np.random.default_rng([seed, 1]).choice([-1.0, 1.0], rare)


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


def with_random_features(chunk: Chunk, count: int, seed: int = 0) -> Chunk:
    """The rows with `count` further features, each 1 with probability 0.05, and otherwise 0."""
    random = np.random.default_rng(seed).random((len(chunk), count)) < 0.05
    return extended(chunk, int(chunk.keys.max()) + 1, random)


def few_numbers(rows: int, seed: int = 0) -> Chunk:
    """Two classes that five numbers of very different size tell apart, and a sixth does not."""
    draw = np.random.default_rng(seed)
    y = draw.choice([-1.0, 1.0], rows)
    sizes = np.array([3.0, 10.0, 30.0, 3.0, 10.0, 1.0])
    X = sizes * (draw.normal(size=(rows, 6)) + y[:, np.newaxis] * np.array([1, 1, 1, 1, 1, 0]))
    return Chunk.of_rows([(label, dict(enumerate(row))) for label, row in zip(y, X, strict=True)])
