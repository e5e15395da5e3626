"""Random examples for tests of rules and losses, and what is compared of models that learned them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.learning.model.model import Model

Vector = NDArray[np.float64]


class Examples(NamedTuple):
    """Examples as a chunk, and as float64 arrays of the same numbers."""

    chunk: Chunk
    X: Vector
    """``(n, features)``; zero where nothing is stored"""
    y: Vector
    importance: Vector


def stream_of(
    X: Vector, stored: NDArray[np.bool_], y: Vector, importance: Vector, keys: Any = None
) -> Examples:
    """The examples as a chunk and as float64 arrays of the same numbers; zero where nothing is `stored`."""
    row, column = np.nonzero(stored)
    names = np.arange(X.shape[1], dtype=np.uint64) if keys is None else keys
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    chunk = Chunk.from_csr(indptr, names[column], X[row, column], y, importance)
    exact = np.zeros(X.shape)
    exact[row, column] = X.astype(np.float32)[row, column]
    return Examples(chunk, exact, chunk.labels.astype(np.float64), chunk.weights.astype(np.float64))


def stream(
    seed: int = 0,
    rows: int = 120,
    features: int = 12,
    domain: str = "binary",
    *,
    density: float = 0.3,
    scale: float = 1.0,
    weighted: bool = True,
    keys: Any = None,
) -> Examples:
    """Random examples of a noisy linear model. Some rows are empty, and some stored values zero.

    Features have very different frequencies, so that some miss many steps. No two numbers tie: at
    a tie a rule may turn either way, and an oracle that adds in another order may turn the other.
    """
    rng = np.random.default_rng(seed)
    chances = np.minimum(1.0, density * 3.0 / np.arange(1, features + 1) ** 0.7)
    stored = rng.random((rows, features)) < chances
    stored[rng.random(rows) < 0.05] = False
    X = np.where(stored & (rng.random(stored.shape) < 0.95), scale * rng.uniform(-1, 1, stored.shape), 0.0)
    score = X @ rng.normal(size=features) / scale + 0.3 * rng.normal(size=rows)
    importance = rng.choice([0.5, 0.25, 1.0, 1.0, 1.7], rows) if weighted else np.ones(rows)
    return stream_of(X, stored, labels_of(domain, score, rng), importance, keys)


ORDINARY = "normals", "prices", "counts"


def ordinary(what: str, rows: int, domain: str = "binary", seed: int = 0) -> Examples:
    """Columns as tables have them, unlike those of `stream`: `ORDINARY` says which there are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    if what == "prices":
        X = np.exp(X + 3.0).round(2)
    if what == "counts":
        X = rng.poisson([0.3, 3.0, 30.0], size=X.shape).astype(np.float64)
    units = (X - X.mean(axis=0)) / X.std(axis=0)
    score = units[:, 0] - units[:, 1] + 0.5 * rng.normal(size=rows)
    return stream_of(X, X != 0.0, labels_of(domain, score, rng), np.ones(rows))


def labels_of(domain: str, score: Vector, rng: np.random.Generator) -> Vector:
    """Labels for a loss with this `DOMAIN`."""
    if domain == "binary":
        return np.where(score > 0, 1.0, -1.0)
    if domain == "positive":
        return np.exp(np.minimum(0.5 * score, 1.0))
    if domain == "nonnegative":
        return rng.poisson(np.exp(np.minimum(0.5 * score, 1.0))).astype(np.float64)
    return score


def cut(chunk: Chunk, places: Sequence[int]) -> Iterator[Chunk]:
    """The chunk in pieces that end at these rows."""
    for lo, hi in pairwise([0, *sorted(places), len(chunk)]):
        yield chunk.rows(lo, hi)


def read_weights(model: Model, features: int) -> Vector:
    """All weights of a model whose keys are 0..features-1, zeros included."""
    readout = model.readout()
    out = np.full(features, float(readout.unmet[0]))
    out[readout.keys.astype(np.int64)] = readout.weights
    return out


def fingerprint(model: Model) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Every bit of the state from which learning continues."""
    return {
        name: (str(array.dtype), array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in model.state().items()
    }
