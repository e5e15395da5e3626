"""Which examples `fit` learns, in which order, and which it holds out.

`fit` depends on the set of examples, not on their order. scikit-learn's checks require that a weight of 2 is
the same as repeating the example, in any order, to seven digits; its own SGDClassifier is exempt. An online
learner can do so only if order and repeats come from the content: `fit` repeats an example as often as its
weight says (at most 16 times), and a hash of row, label, importance and number of the copy, mixed with the
seed, gives each its place. So the model is the same bit for bit, however rows are permuted or repeats
written. Hashing and sorting cost 0.9 ns per non-zero, once. Later passes permute blocks of 2^17 numbers of
the first pass (and rows, if there is only one block), so nothing is gathered again. With `shuffle=False` and
in `partial_fit` nothing is repeated or moved: a weight is an importance, and law 2 holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, check_random_state

from thresher.data.chunk import Chunk
from thresher.data.inputs import any_data, matrices
from thresher.data.order import Order
from thresher.data.source import MemorySource, Source
from thresher.learning.training import shares

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]
U64 = NDArray[np.uint64]


PIECE = 1 << 17
"""Non-zeros per chunk, few enough to fit in the processor's cache while they are learned"""


class EncodedLabels(NamedTuple):
    """Labels as the model needs them, and the factor of each importance."""

    labels: F32
    targets: F32 | None = None
    factors: F64 | None = None


class Drawn(NamedTuple):
    """What `fit` is to learn."""

    whole: matrices.Draw
    """a draw of all examples"""
    learned: matrices.Draw
    """a draw of those to learn, in the order of the first pass"""
    held: matrices.Draw | None
    """a draw of those to hold out; None without `early_stopping`"""
    seed: int | None
    """seed of the orders of later passes; None if they are that of the first"""


def draw_order(estimator: Any, matrix: Chunk, weights: F64, groups: ArrayLike | None) -> Drawn:
    """Draw examples by an estimator's parameters; groups of ``(n,)`` examples are held out whole."""
    shuffle = bool(estimator.shuffle)
    draw = matrices.as_copies(weights) if shuffle else matrices.in_order(weights)
    seed = int(check_random_state(estimator.random_state).randint(1 << 31))
    if not shuffle and not estimator.early_stopping:
        return Drawn(draw, draw, None, None)
    mixed = matrices.by_content(matrix, draw, seed)
    whole, later = (draw.take(mixed), seed) if shuffle else (draw, None)
    if not estimator.early_stopping:
        return Drawn(whole, whole, None, later)
    rows, numbers, size = draw.rows[mixed], None, len(matrix)
    if groups is not None:
        numbers = any_data.groups_of(groups)
        check_consistent_length(weights, numbers)
        numbers = np.where(numbers == 0, np.arange(size, dtype=np.uint64), numbers)
    held = held_out(matrix.labels[rows], rows, estimator.validation_fraction, numbers)
    learned = mixed[~held] if shuffle else np.sort(mixed[~held])
    return Drawn(whole, draw.take(learned), draw.take(mixed[held]), later)


def rows_of(matrix: Chunk, draw: matrices.Draw, factors: F64 | None) -> Chunk:
    """The examples of a draw, with its weights times the `factors` of the labels ``(n,)``."""
    as_they_are = np.array_equal(draw.rows, np.arange(len(matrix)))
    weights = draw.weights if factors is None else (draw.weights * factors[draw.rows]).astype(np.float32)
    return replace(matrix if as_they_are else matrix.take(draw.rows), weights=weights)


class MatrixSource(MemorySource, Order):
    """The examples of a draw, pass after pass, as a source, and the order of each pass."""

    def __init__(
        self,
        matrix: Chunk,
        draw: matrices.Draw,
        factors: F64 | None = None,
        seed: int | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """`seed` of the order of later passes; None keeps that of `draw`; `names` of the classes."""
        super().__init__([*rows_of(matrix, draw, factors).pieces(PIECE)], "open", sound=True)
        self.class_names, self._seed, self._first = names, seed, self._chunks
        if seed is not None:
            self.spec, self.steady = "every", False

    def over(self, source: Source, number: int) -> Source:
        """This source, in the order of pass `number`: pieces permuted, or the rows if there is one piece."""
        self._chunks = self._first
        if number > 1 and self._seed is not None:
            chance = np.random.default_rng([self._seed, number])
            self._chunks = [self._first[k] for k in chance.permutation(len(self._first))]
            if len(self._first) == 1:
                self._chunks = [self._first[0].take(chance.permutation(len(self._first[0])))]
        return self


def held_out(labels: F32, rows: Rows, fraction: float | str, groups: U64 | None = None) -> Flags:
    """Which examples are held out, a share: evenly spaced when sorted by label, so stratified.

    With `groups` of the examples of the matrix: as many whole groups as it takes. ``last:0.1``: the last.
    """
    count = len(labels)
    of = f"n_samples={count}"
    if isinstance(fraction, str):
        last, known = shares.part_of(fraction), np.unique(rows)
        assert isinstance(last, shares.LastRows), "parameters are checked before"
        if groups is not None:
            raise ValueError(f"validation_fraction={fraction!r} would cut groups: leave one of them out")
        held = rows >= known[last.learned(len(known))]
    elif groups is not None:
        _, first, inverse = np.unique(groups[rows], return_index=True, return_inverse=True)
        numbers = np.argsort(np.argsort(first))[inverse]  # of groups, in the order of their first examples
        sizes = np.bincount(numbers)
        of = f"{len(sizes)} groups"
        held = numbers < 1 + np.searchsorted(np.cumsum(sizes), max(1, round(count * fraction)))
    else:
        wanted = max(1, round(count * fraction))
        places = ((np.arange(wanted) + 0.5) * count / wanted).astype(np.int64)
        held = np.zeros(count, bool)
        held[np.argsort(labels, kind="stable")[places]] = True
    if held.all():
        raise ValueError(f"validation_fraction leaves none of {of} for training")
    return np.asarray(held)
