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

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from thresher.data.chunk import Chunk
from thresher.data.inputs import any_data, matrices
from thresher.learning.training import shares
from thresher.sklearn.estimator import F32, F64, EncodedLabels, SparseEstimator

Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]
U64 = NDArray[np.uint64]
Splitter = Callable[[F32, Rows], list[tuple[Flags, Flags]]]
"""Maps labels and row numbers of examples to one or more splits: masks of rows to learn and to hold out"""


class Drawn(NamedTuple):
    """What `fit` is to learn."""

    whole: matrices.Draw
    """a draw of all examples"""
    splits: list[tuple[matrices.Draw, matrices.Draw]]
    """draws of rows to learn, in the order of the first pass, and of rows to hold out"""
    seed: int
    """seed of the orders of all passes"""


def drawn(estimator: SparseEstimator, matrix: Chunk, weights: F64, splitter: Splitter | None) -> Drawn:
    """Draw examples by an estimator's `shuffle` and `random_state`; without `splitter`, none is held out."""
    shuffle = bool(estimator.shuffle)
    draw = matrices.as_copies(weights) if shuffle else matrices.in_order(weights)
    seed = int(check_random_state(estimator.random_state).randint(1 << 31))
    if not shuffle and splitter is None:
        return Drawn(draw, [], seed)
    mixed = matrices.by_content(matrix, draw, seed)
    splits = []
    rows = draw.rows[mixed]
    for learned, held in splitter(matrix.labels[rows], rows) if splitter else ():
        order = mixed[learned] if shuffle else np.sort(mixed[learned])
        splits.append((draw.take(order), draw.take(mixed[held])))
    return Drawn(draw.take(mixed) if shuffle else draw, splits, seed)


def weighted(draw: matrices.Draw, encoded: EncodedLabels) -> matrices.Draw:
    """The draw, with weights multiplied by the importances of the labels."""
    if encoded.factors is None:
        return draw
    return draw._replace(weights=(draw.weights * encoded.factors[draw.rows]).astype(np.float32))


def held_out(
    labels: F32, rows: Rows, fraction: float | str, groups: U64 | None = None
) -> list[tuple[Flags, Flags]]:
    """One split that holds out a share: evenly spaced when sorted by label, so stratified.

    With `groups` of the examples of the matrix: as many whole groups as it takes. ``last:0.1``: the last.
    """
    if isinstance(fraction, str):
        last, known = shares.part_of(fraction), np.unique(rows)
        assert isinstance(last, shares.LastRows), "parameters are checked before"
        if groups is not None:
            raise ValueError(f"validation_fraction={fraction!r} would cut groups: leave one of them out")
        learned = last.learned(len(known))
        if not learned:
            raise ValueError(f"validation_fraction leaves none of n_samples={len(known)} for training")
        held = rows >= known[learned]
        return [(~held, held)]
    count = len(labels)
    wanted = max(1, round(count * fraction))
    if wanted == count:
        raise ValueError(f"validation_fraction leaves none of n_samples={count} for training")
    if groups is not None:
        numbers, sizes = _numbered(groups[rows])
        taken = 1 + int(np.searchsorted(np.cumsum(sizes), wanted))
        if taken == len(sizes):
            raise ValueError(f"validation_fraction leaves none of {taken} groups for training")
        return [(numbers >= taken, numbers < taken)]
    places = ((np.arange(wanted) + 0.5) * count / wanted).astype(np.int64)
    held = np.zeros(count, bool)
    held[np.argsort(labels, kind="stable")[places]] = True
    return [(~held, held)]


def folds(labels: F32, rows: Rows, count: int, groups: U64 | None = None) -> list[tuple[Flags, Flags]]:
    """Folds, each held out once: stratified, or of whole `groups` of the examples of the matrix."""
    if groups is not None:
        numbers, sizes = _numbered(groups[rows])
        if count > len(sizes):
            raise ValueError(f"cv={count} folds are too many for {len(sizes)} groups")
        return [(numbers % count != k, numbers % count == k) for k in range(count)]
    if count > len(labels):
        raise ValueError(f"cv={count} folds are too many for n_samples={len(labels)}")
    fold = np.empty(len(labels), np.int64)
    fold[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % count
    return [(fold != k, fold == k) for k in range(count)]


def _numbered(groups: U64) -> tuple[Rows, Rows]:
    """The number of the group of each example, in the order of their first examples, and their sizes."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    places = np.argsort(np.argsort(first))
    numbers = np.asarray(places[inverse], np.int64)
    return numbers, np.bincount(numbers)


def groups_of_examples(groups: ArrayLike | None, size: int) -> U64 | None:
    """The groups given to `fit`, as numbers; None if there are none."""
    if groups is None:
        return None

    found = any_data.groups_of(groups)
    if len(found) != size:
        raise ValueError(f"groups has {len(found)} values for n_samples={size}: give one for each")
    return np.where(found == 0, np.arange(size, dtype=np.uint64), found)


def given_splits(
    labels: F32, rows: Rows, splits: Iterable[tuple[Any, Any]], size: int
) -> list[tuple[Flags, Flags]]:
    """Splits given as pairs of row numbers, as by scikit-learn's splitters; `size` rows in total."""
    found = []
    try:
        for given in splits:
            flags = np.zeros((2, size), bool)
            for flag, numbers in zip(flags, given, strict=True):
                flag[numbers] = True
            found.append((flags[0][rows], flags[1][rows]))
    except (IndexError, TypeError, ValueError) as error:
        wanted = "a number of folds, a splitter, or pairs of row numbers to train and to test on"
        raise ValueError(f"cv must be {wanted}: {error}") from error
    if not found or not all(learned.any() and held.any() for learned, held in found):
        raise ValueError("each split of cv needs examples to train and to test on")
    return found
