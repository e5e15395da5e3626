"""Packing parsed blocks for the way from a reader to the learner: narrow keys, and nothing that is constant.

Per stored value, a packed block holds a key of 2 bytes if all keys of the block are below 2¹⁶, of 4 bytes if
they are below 2³², and of 2 bytes plus its share of a dictionary if hashed keys repeat; a value of 4 bytes,
and none if all values are 1. Unpacking gives the same arrays, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.sources.reader import Arenas, Parsed
from thresher.engine.compile.jit import kernel
from thresher.engine.lookup import empty_index, home, place

U16 = NDArray[np.uint16]
U64 = NDArray[np.uint64]
MOST_CODES = 1 << 16
"""Keys in one dictionary."""
_WORTH = 0.6
"""The largest share of distinct keys for which a dictionary is sent."""


class Packed(NamedTuple):
    """A parsed block; each array has the narrowest dtype that holds all its numbers."""

    lengths: NDArray[Any]
    """(n,) stored values of each row"""
    keys: NDArray[Any]
    """(nnz,) keys, or their places in `words`"""
    words: NDArray[np.uint64]
    """the dictionaries, one after the other; empty if `keys` are the keys"""
    cuts: NDArray[np.int64]
    """(dictionaries, 2) where the keys and the words of each dictionary end"""
    values: NDArray[np.float32]
    """(nnz,); (1,) if all are the same bits; without the ones if there are `others`"""
    others: NDArray[np.uint8]
    """a bit for each value that is not 1; empty if all values are sent"""
    labels: NDArray[Any]
    """(n,) or (1,) likewise; int8 if all are small whole numbers"""
    weights: NDArray[np.float32]
    """(n,) or (1,) likewise"""
    extras: dict[str, NDArray[Any]]
    """what the chunk has besides, by name"""
    rest: Any
    """the `Parsed` without its chunk"""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(one.nbytes for one in (*self, *self.extras.values()) if isinstance(one, np.ndarray))


@kernel
def number_keys(
    keys: U64, codes: U16, words: U64, cuts: NDArray[np.int64], slots: NDArray[np.uint32], most: int
) -> int:
    """Replace keys by places in dictionaries of at most `most` words; returns the number of dictionaries.

    `slots` is an empty index (see `engine.lookup`) of `words`, which begin with one that is not used.
    Returns -1 as soon as there are more dictionaries than `cuts` (d, 2), or more words than `words`, has room
    for.
    """
    count, first, total = 0, 1, 1
    if cuts.shape[0] == 0:
        return -1
    for k in range(keys.shape[0]):
        slot = place(slots, words, keys[k], home(slots, keys[k]))
        if slots[slot] == 0:
            if total - first == most:
                cuts[count, 0], cuts[count, 1] = k, total - 1
                count, first = count + 1, total
                slots[:] = 0
                slot = home(slots, keys[k])
            if total == words.shape[0] or count == cuts.shape[0]:
                return -1
            words[total], slots[slot] = keys[k], total
            total += 1
        codes[k] = slots[slot] - first
    cuts[count, 0], cuts[count, 1] = keys.shape[0], total - 1
    return count + 1


@kernel
def read_words(codes: U16, words: U64, cuts: NDArray[np.int64], keys: U64) -> None:
    """The inverse of `number_keys`."""
    start, first = 0, 0
    for d in range(cuts.shape[0]):
        end, last = cuts[d]
        book = words[first:last]
        for k in range(start, end):
            keys[k] = book[codes[k]]
        start, first = end, last


@kernel
def read_values(values: NDArray[np.float32], others: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
    """Ones, and where a bit of `others` is set the next of `values`."""
    taken, last = 0, values.shape[0] - 1
    for k in range(out.shape[0]):
        other = (others[k >> 3] >> np.uint8(k & 7)) & 1
        value = values[min(taken, last)]
        out[k] = value if other else np.float32(1)  # no branch, which would often be mispredicted
        taken += other


@dataclass(eq=False)
class Packer:
    """Packs blocks, with memory that is used again for each."""

    _slots: NDArray[Any] = field(default_factory=partial(empty_index, MOST_CODES))

    def pack(self, parsed: Parsed, far: bool = True) -> Packed:
        """The packed block; arrays that are not narrowed are views of it.

        Dictionaries are made only if the block goes `far`, over a network: making and reading them takes
        longer than copying what they save.
        """
        chunk, values, none = parsed.chunk, parsed.chunk.values, np.zeros(0, np.uint8)
        keys: NDArray[Any] = chunk.keys
        words, cuts = np.zeros(0, np.uint64), np.zeros((0, 2), np.int64)
        kind = _narrowest(int(keys.max(initial=0)))
        if kind != np.uint64 or not far:
            keys = keys.astype(kind, copy=False)
        else:
            most = int(_WORTH * len(keys))
            codes, book = np.empty(len(keys), np.uint16), np.empty(1 + most, np.uint64)
            ends = np.empty((most // MOST_CODES + 1, 2), np.int64)
            self._slots[:] = 0
            count = number_keys(keys, codes, book, ends, self._slots, MOST_CODES)
            if count >= 0:
                keys, words, cuts = codes, book[1 : 1 + ends[count - 1, 1]], ends[:count]
        # the values to send, and a bit for each that is not 1 if at least half of them are
        sent, others = _unless_constant(values), none
        if len(sent) == len(values):
            other = values != 1
            if 2 * np.count_nonzero(other) <= len(values):
                sent, others = values[other], np.packbits(other, bitorder="little")
        lengths, numbers = np.diff(chunk.indptr), _unless_constant(chunk.labels)
        with np.errstate(invalid="ignore"):
            small = numbers.astype(np.int8)
        return Packed(
            lengths.astype(_narrowest(int(lengths.max(initial=0)))),
            *(keys, words, cuts, sent, others),
            small if small.astype(np.float32).tobytes() == numbers.tobytes() else numbers,
            _unless_constant(chunk.weights),
            {name: one for name, one in chunk.arrays().items() if name not in (*Packed._fields, "indptr")},
            parsed._replace(chunk=None),  # type: ignore[arg-type]
        )


def _narrowest(largest: int) -> Any:
    return np.uint16 if largest < 1 << 16 else np.uint32 if largest < 1 << 32 else np.uint64


def _unless_constant(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """The first number if all have its bits."""
    bits = numbers.view(np.uint32)
    return numbers[:1] if len(bits) and bits[0] == bits[-1] and (bits == bits[0]).all() else numbers


def unpack(packed: Packed, arenas: Arenas) -> Parsed:
    """The parsed block, with arrays from `arenas`."""
    rows, nnz = len(packed.lengths), len(packed.keys)
    # powers of two, so that the memory of one block is large enough for most others
    columns = arenas.columns(1 << rows.bit_length(), 1 << nnz.bit_length())
    columns.indptr[0] = 0
    np.cumsum(packed.lengths, dtype=np.int64, out=columns.indptr[1 : rows + 1])
    if len(packed.cuts):
        read_words(packed.keys, packed.words, packed.cuts, columns.keys)
    else:
        columns.keys[:nnz] = packed.keys
    columns.labels[:rows], columns.weights[:rows] = packed.labels, packed.weights
    if len(packed.others):
        read_values(packed.values, packed.others, columns.values[:nnz])
    else:
        columns.values[:nnz] = packed.values
    extras: Any = {name: one.copy() for name, one in packed.extras.items()}
    chunk = replace(columns.chunk(rows, nnz), **extras)
    parsed: Parsed = packed.rest._replace(chunk=chunk)
    return parsed
