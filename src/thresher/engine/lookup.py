"""The loops of the indexes: keys to rows by open addressing or by hashing; counting keys; closing up rows.

`slots` are those of a growing index: the row whose key is `known[row]` stands at the first free
place at or behind its key's home, 0 marks a free place. `registers` are those of a HyperLogLog counter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from thresher.engine.inplace import in_place
from thresher.engine.jit import kernel, scalar

REGISTERS = 1 << 14
MOST_RANK = 50
"""A register holds no more: 64 bits less the 14 that choose it."""
FITS = 1 << 18
"""An index of so many entries lies in a cache."""
_LINE = 64  # bytes of a line of the cache, of which rows of as many take one then, not two
FAR, NEXT = 32, 16
"""So many keys ahead their places in the index, and then the keys that stand there, are fetched."""
NEAR = np.uint64(1 << 17)
"""Keys below this are their own place in the index: small ids need no hash and no comparison."""


@scalar
def mix(key):
    """64 bits in, 64 well-spread bits out (an xor-shift and Fibonacci's multiplier)."""
    return (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)


@scalar
def scatter(mixed):
    """64 bits of which each depends on all of `mixed`: what `mix` leaves in its low bits is not random."""
    spread = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return spread ^ (spread >> np.uint64(32))


def empty_index(limit: int) -> NDArray[np.uint32]:
    """Room for `limit` rows at a load of one half at most."""
    return np.zeros(int(NEAR) + 2 * limit, np.uint32)


@in_place(lambda array, at: types.void)
def fetch(array, at):
    """Have entry (of a table: row) `at` of an array brought to the cache, for which nobody waits.

    It may lie beyond the array. Plain Python does nothing.
    """


@fetch.emits
def _emit_fetch(context, builder, signature, values):
    given = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=values[0])
    at = context.cast(builder, values[1], signature.args[1], types.uint64)
    offset = builder.mul(at, builder.extract_value(given.strides, 0))
    emit_prefetch(builder, builder.add(builder.ptrtoint(given.data, ir.IntType(64)), offset))
    return context.get_dummy_value()


def emit_prefetch(builder: Any, address: Any) -> None:
    """Have the line of a cache that `address`, a number, lies in brought there."""
    flags = [ir.Constant(ir.IntType(32), value) for value in (0, 3, 1)]  # to read, to keep, data
    pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, *(flag.type for flag in flags)])
    builder.call(
        cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8"), [pointer, *flags]
    )


@scalar
def home(slots, key):
    """Where in the index `key` would like to stand: at its own number if that is small."""
    if key < NEAR:
        return key
    size = np.uint64(slots.size) - NEAR
    return NEAR + (((mix(key) >> np.uint64(32)) * size) >> np.uint64(32))


@scalar
def place(slots, known, key):
    """Where in the index `key` stands, or would stand."""
    h = home(slots, key)
    if key < NEAR:
        return h
    row = slots[h]
    while row != 0 and known[row] != key:
        h += np.uint64(1)
        if h == np.uint64(slots.size):
            h = NEAR
        row = slots[h]
    return h


@kernel
def find_or_add(slots, known, registers, count, limit, keys, indptr, lo, hi, rows):
    """Rows of the keys of examples lo..hi-1, adding the unknown ones.

    Returns (first example that would not fit below `limit` rows, number of rows in use).
    """
    last = np.uint64(indptr[hi]) if slots.size > FITS else np.uint64(0)
    for i in range(lo, hi):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if count + np.int64(end - begin) > limit:
            return i, count
        for p in range(begin, end):
            if p + np.uint64(FAR) < last:
                fetch(slots, home(slots, keys[p + np.uint64(FAR)]))
                fetch(known, np.uint64(slots[home(slots, keys[p + np.uint64(NEXT)])]))
            h = place(slots, known, keys[p])
            row = slots[h]
            if row == 0:
                row = np.uint32(count)
                slots[h] = row
                known[row] = keys[p]
                count += 1
                note(registers, mix(keys[p]))
            rows[p] = row
    return hi, count


@scalar
def note(registers, mixed):
    """One HyperLogLog observation (Flajolet et al. 2007) of a key never met before."""
    spread = scatter(mixed)
    which = spread & np.uint64(16383)
    rest = spread >> np.uint64(14)
    rank = np.uint8(1)
    while rank < MOST_RANK and rest & np.uint64(1) == 0:
        rest = rest >> np.uint64(1)
        rank += np.uint8(1)
    if rank > registers[which]:
        registers[which] = rank


def note_all(registers: NDArray[np.uint8], keys: NDArray[np.uint64]) -> None:
    """The same of many. Plain Python: all at once."""
    spread = scatter(mix(keys))
    rest = (spread >> np.uint64(14)) | np.uint64(1 << (MOST_RANK - 1))
    lowest = rest & (~rest + np.uint64(1))
    ranks = np.log2(lowest.astype(np.float64)).astype(np.uint8) + np.uint8(1)
    np.maximum.at(registers, (spread & np.uint64(16383)).astype(np.intp), ranks)


@kernel
def find(slots, known, keys, rows):
    """Rows of keys; those of unknown keys are the null row."""
    for p in range(np.uint64(keys.size)):
        rows[p] = slots[place(slots, known, keys[p])]


@kernel
def reindex(slots, known, count):
    """Enter the rows 1..count-1 into an empty index. No key comes twice, so none is compared."""
    for row in range(1, count):
        if row + FAR < count:
            fetch(slots, home(slots, known[row + FAR]))
        key = known[row]
        h = home(slots, key)
        while slots[h] != 0 and key >= NEAR:
            h += np.uint64(1)
            if h == np.uint64(slots.size):
                h = NEAR
        slots[h] = row


@kernel
def hash_and_merge(shift, seed, signed, keys, indptr, values, lo, hi, last, rows, ends, merged):
    """Keys to 2^bits rows; keys of one example that meet are merged, their values summed.

    With `signed` each value first takes the sign of its key: a bit of the hash that is no part of the
    row. Bits side by side in a product are not independent, so that hash is mixed once more.
    `last` holds, for each row, one more than the output position it was last written to.
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
    """Move the rows of a table up over those that are `idle`, with zeros behind them; how many stay.

    `words` (rows, words) uint32 is the table, whatever its numbers are; rows keep their order.
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


def estimate(registers: NDArray[np.uint8]) -> int:
    """HyperLogLog: harmonic mean of the registers, linear counting while many are empty."""
    m = registers.size
    raw = 0.7213 / (1 + 1.079 / m) * m * m / float(np.sum(np.exp2(-registers.astype(np.float64))))
    empty = int(np.count_nonzero(registers == 0))
    return round(m * np.log(m / empty)) if raw <= 2.5 * m and empty else round(raw)


def resized(array: NDArray[Any], size: int) -> NDArray[Any]:
    """A copy with `size` rows: cut, or filled up with zeros. It begins with a line of the cache."""
    shape = (size, *array.shape[1:])
    count = math.prod(shape) * array.itemsize
    memory = np.zeros(count + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    out = memory[begin : begin + count].view(array.dtype).reshape(shape)
    out[: len(array)] = array[:size]
    return out
