"""The loops of the indexes: map keys to rows by open addressing or hashing, count keys, compact rows.

`slots` belongs to a growing index, or to another table by 64-bit keys (names wanted, dictionaries sent): the
row whose key is `known[row]` is stored in the first free slot at or after the key's home; 0 marks a free
slot.

The rows of a table are aligned to cache lines (`resize`), which saves 15 % of the time of `fobos` in eight
lanes.

Homes of keys ahead are computed once and kept where their rows will be: 67 million keys of a click log, 5.4
million different, take 9.4 ns each, and 10.6 when a home was computed three times. With key and row side by
side in slots of 12 bytes, three quarters full, they took 7.1, but filling larger tables took as much longer,
a model of 280,000 rows was read 20 % more slowly, and learning two million clicks took the same time and 9 %
more memory. Growing tables in reserved address space instead of copying them gained nothing either.

Rows and signs of a signed hashed store come from a hash that is mixed twice. One multiplication spreads
consecutive ids over the table more evenly than a random hash, so the unsigned store uses only that. But then
two ids always collide or never do, whatever the seed, and a bit next to the row is not random: ids 1 to 60 in
2^4 rows had a mean kernel of -0.3 instead of 14.0. With a second mixing step, mean and variance match the
formula for ids, strides and hashes, and it costs no measurable time (5 ns per non-zero).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.engine.compile.jit import in_place, kernel, scalar

FITS = 1 << 18
"""An index with this many entries fits in the cache."""
_MOST_HOMES = 1 << 32
_LINE = 64  # bytes per cache line; aligned rows of this size take one line, not two
FAR, NEXT = 32, 16
"""How many keys ahead slots, and then the keys stored there, are prefetched"""
NEAR = np.uint64(1 << 17)
"""The most keys that are their own slot number: small ids need no hash and no comparison."""


@scalar
def mix(key):
    """64 bits in, 64 well-spread bits out (an xor-shift and a Fibonacci multiplier)."""
    return (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)


@scalar
def scatter(mixed):
    """64 bits, each of which depends on all of `mixed`: the low bits from `mix` are not random."""
    spread = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return spread ^ (spread >> np.uint64(32))


def empty_index(limit: int) -> NDArray[np.uint32]:
    """Slots for `limit` rows at a load of at most one half, after those of small keys."""
    return np.zeros(min(int(NEAR), limit) + 2 * limit, np.uint32)


@in_place
def fetch(array, at):
    """Prefetch entry (of a table: row) `at` of an array into the cache, without waiting.

    It may lie beyond the array. Plain Python does nothing.
    """


@scalar
def near(slots):
    """Keys below this are their own slot number: a third of the slots, up to `NEAR`."""
    return min(NEAR, np.uint64(slots.size) // np.uint64(3))


@scalar
def home(slots, key):
    """The home slot of `key`: its own number if that is small."""
    first = near(slots)
    if key < first:
        return key
    size = np.uint64(slots.size) - first
    return first + (((mix(key) >> np.uint64(32)) * size) >> np.uint64(32))


@scalar
def place(slots, known, key, h):
    """The slot where `key`, whose home is `h`, is, or would be, stored."""
    first = near(slots)
    if key < first:
        return h
    row = slots[h]
    while row != 0 and known[row] != key:
        h += np.uint64(1)
        if h == np.uint64(slots.size):
            h = first
        row = slots[h]
    return h


@scalar
def fetches(slots):
    """Whether to prefetch: an index beyond the cache, whose homes are numbers of 32 bits."""
    return FITS < slots.size <= _MOST_HOMES


@scalar
def home_fetched(slots, known, homes, keys, p, first, last):
    """The home of key `p`; prefetches slots and keys for those after it, up to `last`.

    `homes` holds those of keys ahead of `p`, each computed once. It lacks those of the first keys, and is not
    used if `last` is 0, for an index that is in the cache.
    """
    far, near = p + np.uint64(FAR), p + np.uint64(NEXT)
    if far < last:
        homes[far] = home(slots, keys[far])
        fetch(slots, homes[far])
        if near >= first + np.uint64(FAR):
            fetch(known, np.uint64(slots[homes[near]]))
    if last == 0 or p < first + np.uint64(FAR):
        return home(slots, keys[p])
    return np.uint64(homes[p])


@kernel
def find_or_add(slots, known, count, limit, keys, indptr, lo, hi, rows):
    """Rows of the keys of examples lo..hi-1; unknown keys are added.

    Returns (first example that would not fit below `limit` rows, number of rows in use).
    """
    first, last = np.uint64(indptr[lo]), np.uint64(indptr[hi]) if fetches(slots) else np.uint64(0)
    for i in range(lo, hi):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if count + np.int64(end - begin) > limit:
            return i, count
        for p in range(begin, end):
            h = place(slots, known, keys[p], home_fetched(slots, known, rows, keys, p, first, last))
            row = slots[h]
            if row == 0:
                row = np.uint32(count)
                slots[h] = row
                known[row] = keys[p]
                count += 1
            rows[p] = row
    return hi, count


@kernel
def find(slots, known, keys, rows):
    """Rows of keys; the null row for unknown keys."""
    first, last = np.uint64(0), np.uint64(keys.size) if fetches(slots) else np.uint64(0)
    for p in range(np.uint64(keys.size)):
        h = home_fetched(slots, known, rows, keys, p, first, last)
        rows[p] = slots[place(slots, known, keys[p], h)]


@kernel
def reindex(slots, known, count):
    """Enter the rows 1..count-1 into an empty index. Keys are distinct, so none are compared."""
    for row in range(1, count):
        if row + FAR < count:
            fetch(slots, home(slots, known[row + FAR]))
        key = known[row]
        h, first = home(slots, key), near(slots)
        while slots[h] != 0 and key >= first:
            h += np.uint64(1)
            if h == np.uint64(slots.size):
                h = first
        slots[h] = row


@kernel
def hash_and_merge(shift, seed, signed, keys, indptr, values, lo, hi, last, rows, ends, merged):
    """Hash keys to 2^bits rows; merge keys of one example that collide, and sum their values.

    With `signed`, each value is first multiplied by the sign of its key: a hash bit that is not part of the
    row. Adjacent bits of a product are not independent, so that hash is mixed once more.
    `last` holds for each row the last output position it was written to, plus one.
    """
    out = indptr[lo]
    ends[lo] = out
    for i in range(lo, hi):
        first = out
        for p in range(indptr[i], indptr[i + 1]):
            mixed, value = mix(keys[p] ^ seed), values[p]
            if signed:
                mixed = scatter(mixed)
                if mixed & np.uint64(1) == 0:
                    value = -value
            row = np.uint32(mixed >> shift)
            place = last[row] - 1
            if first <= place < out and rows[place] == row:
                merged[place] += value
                continue
            rows[out] = row
            merged[out] = value
            last[row] = out + 1
            out += 1
        ends[i + 1] = out


@kernel
def close_up(words, idle):
    """Move the rows of a table up over the `idle` ones, followed by zeros; return the number of rows left.

    `words` (rows, words) uint32 is the table, whatever its dtype; rows keep their order.
    """
    kept = 0
    for j in range(idle.size):
        if not idle[j]:
            if kept != j:
                for k in range(words.shape[1]):
                    words[kept, k] = words[j, k]
            kept += 1
    for j in range(kept, idle.size):
        for k in range(words.shape[1]):
            words[j, k] = 0
    return kept


@kernel
def set_aside(words, rows, marks, mark, own, copies):
    """Copy the words of each different one of `rows` that the table has to `copies`; return how many.

    Their numbers go to `own`. `words` as in `close_up`. `marks`, uint32 for each row of the table, gets
    `mark`, which none has yet.
    """
    kept = 0
    for k in range(rows.size):
        row = rows[k]
        if row < words.shape[0] and marks[row] != mark:
            marks[row] = mark
            own[kept] = row
            for c in range(words.shape[1]):
                copies[kept, c] = words[row, c]
            kept += 1
    return kept


def resize(array: NDArray[np.generic], size: int) -> NDArray[Any]:
    """A copy with `size` rows, truncated or padded with zeros, aligned to a cache line."""
    shape = (size, *array.shape[1:])
    count = math.prod(shape) * array.itemsize
    memory = np.zeros(count + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    out = memory[begin : begin + count].view(array.dtype).reshape(shape)
    out[: len(array)] = array[:size]
    return out
