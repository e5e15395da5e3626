"""Small data and results made by hand, for tests of the figures of the papers."""

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.learners import Figures
from experiments.papers.sweeps import Tried
from thresher.data import Chunk
from thresher.learning.model.recipe import Recipe


def rows_of(X: Any, y: Any) -> Chunk:
    """Rows of a matrix, with labels; zeros are stored."""
    return Chunk.of_rows([(label, dict(enumerate(row))) for label, row in zip(y, np.array(X), strict=True)])


def some_rows(count: int, seed: int = 0, noise: float = 0.0) -> Chunk:
    """Two classes that the first of three numbers tells apart, up to the noise."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, 3))
    return rows_of(X, np.where(X[:, 0] + noise * draw.normal(size=count) > 0, 1.0, -1.0))


def flipped(rows: Chunk) -> Chunk:
    """The rows with the other label."""
    return replace(rows, labels=-rows.labels)


def tried(error: float = 0.1, nonzero: int = 1, test_error: float = 0.1, **given: Any) -> Tried:
    """A recipe with these figures; `auc`, `test_auc` and `rule` can be given, too."""
    recipe = Recipe(given.pop("rule", "truncated-gradient:gravity=0.1"), "logistic")
    auc, test_auc = given.pop("auc", 0.9), given.pop("test_auc", 0.9)
    return Tried(recipe, 1, error, nonzero, auc, Figures(test_error, nonzero, test_auc))


def dense(rows: Chunk) -> Any:
    """The matrix of `rows_of`."""
    return rows.values.reshape(len(rows), -1).astype(np.float64)
