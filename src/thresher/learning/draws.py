"""Random choices of rows: hashes of their numbers and a seed.

A choice does not depend on where the stream is cut, and is the same in every pass.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.engine.lookup import mix, scatter
from thresher.learning.shares import Every

U64 = NDArray[np.uint64]
Rows = NDArray[np.int64]
BAGS, HOLDOUT, FOLDS, STARTS = 1, 2, 3, 4
"""What is drawn; draws for one purpose are independent of those for another"""
STEP = np.uint64(0x9E3779B97F4A7C15)
_LOW_BITS, _UNIT = np.uint64(11), 2.0**-53


def bits_of(numbers: U64, seed: int, purpose: int) -> U64:
    """A hash of each of `numbers`."""
    start = np.array([seed % 2**64], np.uint64) + np.array([purpose], np.uint64) * STEP
    bits: U64 = scatter(mix(numbers * STEP + scatter(mix(start))))
    return bits


def unit(bits: U64) -> NDArray[np.float64]:
    """Numbers in [0, 1)."""
    return (bits >> _LOW_BITS).astype(np.float64) * _UNIT


def held_out(first: int, rows: int, every: Every, seed: int) -> NDArray[np.bool_]:
    """Which of the rows `first`, `first` + 1 ... are held out: one of every `every`.

    In each run of N rows that begins at a multiple of N, the place of the one is drawn. If `every` is a
    fraction N / M, the M cells k of a run have the places from floor(k N / M) to floor((k + 1) N / M) - 1,
    and one row in each is drawn; places are counted from a drawn row of the run, so that all rows have the
    same chance.

    >>> [int(held_out(0, 60, 10, seed).sum()) for seed in range(3)]
    [6, 6, 6]
    >>> np.flatnonzero(held_out(0, 60, 10, 0)).tolist()
    [0, 13, 23, 37, 42, 54]
    """
    size, drawn = every.numerator, every.denominator
    runs, places = np.divmod(np.arange(first, first + rows), size)
    if drawn > 1:
        starts = unit(bits_of(runs.astype(np.uint64), seed, STARTS)) * size
        places = (places + starts.astype(np.int64)) % size
    cells = ((places + 1) * drawn - 1) // size
    begins, ends = cells * size // drawn, (cells + 1) * size // drawn
    chosen = unit(bits_of((runs * drawn + cells).astype(np.uint64), seed, HOLDOUT)) * (ends - begins)
    held: NDArray[np.bool_] = places - begins == chosen.astype(np.int64)
    return held


def folds_of(first: int, rows: int, count: int, seed: int) -> Rows:
    """The fold of each of the rows `first`, `first` + 1 ...

    Each run of `count` rows that begins at a multiple of `count` has one row in each fold, in an order drawn
    for that run.

    >>> folds_of(0, 12, 3, 0).tolist()
    [0, 2, 1, 2, 1, 0, 0, 2, 1, 0, 2, 1]
    """
    begin, end = first // count, -(-(first + rows) // count)
    numbers = np.arange(begin * count, end * count, dtype=np.uint64)
    bits = bits_of(numbers, seed, FOLDS).reshape(-1, count)
    places = np.argsort(np.argsort(bits, axis=1), axis=1)
    return np.asarray(places.reshape(-1)[first - begin * count :][:rows], np.int64)


def groups_held_out(groups: U64, first: int, every: Every, seed: int) -> NDArray[np.bool_]:
    """Which rows are held out if rows of a group stay together: each group with the probability 1 / `every`.

    `first` is the number of the first row; a row without a group, 0, is drawn alone.
    """
    return unit(bits_of(_together(groups, first), seed, HOLDOUT)) < float(1 / every)


def folds_of_groups(groups: U64, first: int, count: int, seed: int) -> Rows:
    """The fold of each row if rows of a group stay together; arguments as for `groups_held_out`."""
    return (unit(bits_of(_together(groups, first), seed, FOLDS)) * count).astype(np.int64)


def _together(groups: U64, first: int) -> U64:
    """A number for each row that is the same for rows of a group."""
    return np.where(groups == 0, np.arange(first, first + len(groups), dtype=np.uint64), groups)
