"""From names to keys: MurmurHash3, the 64-bit half that keys are, and the 32 bits of Vowpal Wabbit.

Austin Appleby's MurmurHash3 (public domain, 2011): `murmur3_64` is the first half of ``x64_128``,
`murmur3_32` is ``x86_32``. The key of a named feature is ``murmur3_64(name, seed)``, its seed that of its
namespace or column (`seed_of`), so equal names in different namespaces are different features.
"""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from thresher.data.sources.words import address, byte, load_half, load_word
from thresher.engine.jit import kernel

_A, _B = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_C, _D = np.uint64(0xCC9E2D51), np.uint64(0x1B873593)
_E, _F = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_ADD1, _ADD2, _ADD3 = np.uint64(0x52DCE729), np.uint64(0x38495AB5), np.uint64(0xE6546B64)
_FIVE, _LOW = np.uint64(5), np.uint64(0xFFFFFFFF)


@register_jitable
def _turn(word, by):
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@register_jitable
def _turn32(word, by):
    return ((word << np.uint64(by)) | (word >> np.uint64(32 - by))) & _LOW


@register_jitable
def _finish(word):
    word = (word ^ (word >> np.uint64(33))) * _MIX1
    word = (word ^ (word >> np.uint64(33))) * _MIX2
    return word ^ (word >> np.uint64(33))


@register_jitable
def _short(text, at, count, before):
    """The `count` (0 to 8) bytes at `at` as a word, reading nothing but them and `before` bytes before."""
    if count == 0:
        return np.uint64(0)
    if count + before >= 8:
        return load_word(text, at + count - 8) >> np.uint64(64 - 8 * count)
    if count >= 4:
        upper = load_half(text, at + count - 4) >> np.uint64(64 - 8 * count)
        return load_half(text, at) | (upper << np.uint64(32))
    word = np.uint64(byte(text, at)) | np.uint64(byte(text, at + count - 1)) << np.uint64(8 * count - 8)
    return word | np.uint64(byte(text, at + (count >> 1))) << np.uint64(8 * (count >> 1))


@register_jitable
def murmur3_64(text, at, size, seed):
    """Hash (uint64) of the `size` bytes at position `at` of address `text`, with a uint64 `seed`."""
    h, k, end = seed, seed, at + size
    while end - at >= 16:
        h ^= _turn(load_word(text, at) * _A, 31) * _B
        h = (_turn(h, 27) + k) * _FIVE + _ADD1
        k ^= _turn(load_word(text, at + 8) * _B, 33) * _A
        k = (_turn(k, 31) + h) * _FIVE + _ADD2
        at += 16
    left, before = end - at, size - (end - at)
    if left > 8:
        k ^= _turn(_short(text, at + 8, left - 8, before + 8) * _B, 33) * _A
    if left > 0:
        h ^= _turn(_short(text, at, min(left, 8), before) * _A, 31) * _B
    h ^= np.uint64(size)
    k ^= np.uint64(size)
    h += k
    k += h
    return _finish(h) + _finish(k)


@register_jitable
def murmur3_32(text, at, size, seed):
    """The 32-bit hash of the same bytes, with a `seed` below 2^32; both as uint64."""
    h, end = seed, at + size
    while end - at >= 4:
        h ^= _turn32((load_half(text, at) * _C) & _LOW, 15) * _D & _LOW
        h = (_turn32(h, 13) * _FIVE + _ADD3) & _LOW
        at += 4
    if at < end:
        h ^= _turn32((_short(text, at, end - at, size - (end - at)) * _C) & _LOW, 15) * _D & _LOW
    h ^= np.uint64(size)
    h = (h ^ (h >> np.uint64(16))) * _E & _LOW
    h = (h ^ (h >> np.uint64(13))) * _F & _LOW
    return h ^ (h >> np.uint64(16))


@kernel
def _hash_each(text, starts, sizes, seed, short, out):
    start = address(text)
    for i in range(out.size):
        if short:
            out[i] = murmur3_32(start, starts[i], sizes[i], seed)
        else:
            out[i] = murmur3_64(start, starts[i], sizes[i], seed)


def hash_bytes(name: bytes, seed: int = 0, bits: int = 64) -> int:
    """`murmur3_64` of a name, or with ``bits=32`` `murmur3_32`.

    >>> hash_bytes(b"hello"), hash_bytes(b"hello", bits=32)
    (14688674573012802306, 613153351)
    """
    out, text = np.zeros(1, np.uint64), np.frombuffer(name or b"\0", np.uint8)
    place, size = np.zeros(1, np.int64), np.full(1, len(name), np.int64)
    _hash_each(text, place, size, np.uint64(seed), bits == 32, out)
    return int(out[0])


def seed_of(namespace: str, seed: int = 0) -> int:
    """The seed of the names in a namespace or column: the hash of its own name, `seed` for the nameless."""
    return hash_bytes(namespace.encode(), seed) if namespace else seed
