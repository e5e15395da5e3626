"""Which rows a model has learned: the first of them, and a sample of all, known by their content.

Of each row the hash of its label, features and values is taken, and the lowest ones are the sample (Beyer,
Haas, Reinwald, Sismanis and Gemulla, On synopses for distinct-value estimation under multiset operations,
SIGMOD 2007, section 3). So a row is in the samples of all data that contain it, whatever their files, order
and other rows are, and the part of the two samples below both their ends estimates how much they share.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk

FIRST, LOWEST = 16, 64
"""How many rows are kept: of the first, and of all"""
_LONG, _ONE_IN = 8, 8
"""Of rows with so many values, one in so many is looked at as a whole: hashing all would slow learning"""
_SAME, _SHARE = FIRST // 2, 0.2
"""So many of the first rows in common, or this share of a sample, are no chance"""
_FEW = 10
"""Fewer rows may well come again"""
_ALL = 0.99
_LITTLE = 1e-9
_UNLIKE = 4
"""So many different rows at the beginning, in the same order, are no chance either"""
_REPEATED = 2
"""With more rows that come again in the data themselves, rows in common say nothing"""
_BITS = 48
"""of a hash: JSON has it in 15 digits"""
U64 = NDArray[np.uint64]


def mixed(x: Any) -> Any:
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), of each number."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _of_entries(keys: U64, values: NDArray[np.float32]) -> U64:
    found: U64 = mixed(keys + mixed((values + np.float32(0)).view(np.uint32).astype(np.uint64)))
    return found


def _hashes(chunk: Chunk) -> list[int]:
    """The hash of each row."""
    sums = np.append(np.uint64(0), np.cumsum(_of_entries(chunk.keys, chunk.values), dtype=np.uint64))
    labels = (chunk.labels + np.float32(0)).view(np.uint32).astype(np.uint64)
    rows = mixed(sums[chunk.indptr[1:]] - sums[chunk.indptr[:-1]] + mixed(labels))
    found: list[int] = (rows >> np.uint64(64 - _BITS)).tolist()
    return found


class RowSample(NamedTuple):
    """The rows of some data."""

    first: tuple[int, ...] = ()
    lowest: tuple[tuple[int, int], ...] = ()
    """hashes in ascending order, and how often each row has come"""

    def with_rows(self, chunk: Chunk) -> RowSample:
        """With the next rows, of importance above 0."""
        first = self.first
        if len(first) < FIRST:
            first = (*first, *_hashes(chunk.rows(0, FIRST - len(first))))
        sizes = np.diff(chunk.indptr)
        middle = np.minimum(chunk.indptr[:-1] + sizes // 2, max(len(chunk.keys) - 1, 0))
        chosen = sizes < _LONG
        if not chosen.all():  # the ends and the middle say which
            ends = _of_entries(chunk.keys[chunk.indptr[1:] - 1], chunk.values[chunk.indptr[1:] - 1])
            some = mixed(ends + _of_entries(chunk.keys[middle], chunk.values[middle]))
            chosen |= some % np.uint64(_ONE_IN) == 0
        counts = Counter(dict(self.lowest))
        counts.update(one for one in _hashes(chunk.take(chosen)) if one <= self._end)
        return RowSample(first, tuple(sorted(counts.items())[:LOWEST]))

    def and_of(self, other: RowSample) -> RowSample:
        """The rows of both, of which each may come again; the first are those of the `other`."""
        both = Counter(dict(self.lowest)) | Counter(dict(other.lowest))
        return RowSample(other.first, tuple(sorted(both.items())[:LOWEST]))

    @property
    def _end(self) -> float:
        """Below it are the hashes of all rows that are in the sample."""
        return self.lowest[-1][0] if len(self.lowest) == LOWEST else math.inf

    @staticmethod
    def in_words(share: float) -> str:
        """That share of the rows."""
        some = f"some {100 * share:.2g} % of these rows" if share >= _SHARE else "the first of these rows"
        return "these rows" if share > _ALL else some

    def share_in(self, learned: RowSample) -> float:
        """About which share of these rows has been `learned`; little if only the first; 0 if none seem so."""
        if len(learned.first) < _FEW:
            return 0.0
        if sum(count > 1 for _, count in learned.lowest) > _REPEATED:
            return float(self.first == learned.first and len({*self.first}) >= _UNLIKE)
        end = min(self._end, learned._end)
        own, other = ({one for one, _ in two.lowest if one <= end} for two in (self, learned))
        share = len(own & other) / max(len(own), 1)
        if len(own & other) > 2 and share >= _SHARE:
            return share
        return max(share, _LITTLE) if len({*self.first} & {*learned.first}) >= _SAME else 0.0
