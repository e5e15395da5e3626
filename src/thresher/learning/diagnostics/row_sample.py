"""Which rows a model has learned: the first of them, and a sample of all, known by their content.

Of each row the hash of its label, features and values is taken, and the lowest ones are the sample (Beyer,
Haas, Reinwald, Sismanis and Gemulla, On synopses for distinct-value estimation under multiset operations,
SIGMOD 2007, section 3). So a row is in the samples of all data that contain it, whatever their files, order
and other rows are, and the part of the two samples below both their ends estimates how much they share.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.engine.compile.jit import kernel, scalar

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
_MOST = 2**64 - 1
U64 = NDArray[np.uint64]


@scalar
def mixed(x: Any) -> Any:
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), of one or many."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@scalar
def _of_entry(key: Any, bits: Any) -> Any:
    return mixed(key + mixed(np.uint64(bits)))


@kernel
def _hash_rows(indptr: Any, keys: Any, bits: Any, labels: Any, long: Any, end: Any, out: Any) -> Any:
    """Write the hashes of rows up to `end` to `out`, in order; return how many there are.

    Of rows with `long` values or more, their last and their middle entry say which are looked at. `bits` are
    those of values in float32, `labels` those of labels.
    """
    count = 0
    for i in range(labels.size):
        begin, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if stop - begin >= long:
            last, middle = stop - np.uint64(1), begin + (stop - begin) // np.uint64(2)
            some = _of_entry(keys[last], bits[last]) + _of_entry(keys[middle], bits[middle])
            if mixed(some) % np.uint64(_ONE_IN) != 0:
                continue
        total = mixed(np.uint64(labels[i]))
        for p in range(begin, stop):
            total += _of_entry(keys[p], bits[p])
        found = mixed(total) >> np.uint64(64 - _BITS)
        if found <= end:
            out[count] = found
            count += 1
    return count


def _hashes(chunk: Chunk, long: int, end: int) -> list[int]:
    """Those that `_hash_rows` finds; -0.0 is 0.0."""
    bits = ((one + np.float32(0)).view(np.uint32) for one in (chunk.values, chunk.labels))
    out, limits = np.empty(len(chunk), np.uint64), (np.uint64(long), np.uint64(end))
    count = _hash_rows(read_only(chunk.indptr), read_only(chunk.keys), *bits, *limits, out)
    found: list[int] = out[:count].tolist()
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
            first = (*first, *_hashes(chunk.rows(0, FIRST - len(first)), _MOST, _MOST))
        if not (new := _hashes(chunk, _LONG, self._end)):
            return self._replace(first=first)
        counts = Counter(dict(self.lowest))
        counts.update(new)
        return RowSample(first, tuple(sorted(counts.items())[:LOWEST]))

    def and_of(self, other: RowSample) -> RowSample:
        """The rows of both, of which each may come again; the first are those of the `other`."""
        both = Counter(dict(self.lowest)) | Counter(dict(other.lowest))
        return RowSample(other.first, tuple(sorted(both.items())[:LOWEST]))

    @property
    def _end(self) -> int:
        """Below it are the hashes of all rows that are in the sample."""
        return self.lowest[-1][0] if len(self.lowest) == LOWEST else _MOST

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
