"""Hashing names to keys with MurmurHash3, to 64 bits, or to 32 bits as Vowpal Wabbit does.

Austin Appleby's MurmurHash3 (public domain, 2011): `murmur3_64` is the first half of ``x64_128``;
`murmur3_32` is ``x86_32``, which Vowpal Wabbit uses for names that are not numbers. The key of a named
feature is ``murmur3_64(name, seed)``, where the seed depends on its namespace or column (`seed_of`), so
equal names in different namespaces are different features.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from thresher.data.text.words import address, byte, load_half, load_word
from thresher.engine.compile.jit import kernel, scalar

_A, _B = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_C, _D = np.uint64(0xCC9E2D51), np.uint64(0x1B873593)
_E, _F = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_ADD1, _ADD2, _ADD3 = np.uint64(0x52DCE729), np.uint64(0x38495AB5), np.uint64(0xE6546B64)
_FIVE, _LOW, _ALL = np.uint64(5), np.uint64(0xFFFFFFFF), np.uint64(2**64 - 1)
_TEN, _MINUS = np.uint64(10), np.uint64(ord("-"))

WIDE, SHORT, VW = None, 1, 2
"""Kinds of hash for `hash_one` and `hash_bytes`. None is a separate type for Numba, so that the usual kind
is compiled without the others."""


@scalar
def turn(word, by):
    """A word turned left by so many bits."""
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@scalar
def _turn32(word, by):
    return ((word << np.uint64(by)) | (word >> np.uint64(32 - by))) & _LOW


@scalar
def finish(word):
    """The last step of the 64-bit hash: a bijection of uint64 in which every bit depends on every bit."""
    word = (word ^ (word >> np.uint64(33))) * _MIX1
    word = (word ^ (word >> np.uint64(33))) * _MIX2
    return word ^ (word >> np.uint64(33))


@scalar
def _short(text, at, count, before):
    """The `count` (0 to 8) bytes at `at` as a word; reads at most `before` bytes before them."""
    if count == 0:
        return np.uint64(0)
    if count + before >= 8:
        return load_word(text, at + count - 8) >> np.uint64(64 - 8 * count)
    if count >= 4:
        upper = load_half(text, at + count - 4) >> np.uint64(64 - 8 * count)
        return load_half(text, at) | (upper << np.uint64(32))
    word = np.uint64(byte(text, at)) | np.uint64(byte(text, at + count - 1)) << np.uint64(8 * count - 8)
    return word | np.uint64(byte(text, at + (count >> 1))) << np.uint64(8 * (count >> 1))


@scalar
def _wide_step(h, k, low, high):
    """The state ``(h, k)`` after 16 more bytes, given as two words."""
    h ^= turn(low * _A, 31) * _B
    h = (turn(h, 27) + k) * _FIVE + _ADD1
    k ^= turn(high * _B, 33) * _A
    return h, (turn(k, 31) + h) * _FIVE + _ADD2


@scalar
def _wide_blocks(text, at, size, seed):
    """Hash the full 16-byte blocks of a name: ``(h, k, position of the rest)``."""
    h, k, end = seed, seed, at + size
    while end - at >= 16:
        h, k = _wide_step(h, k, load_word(text, at), load_word(text, at + 8))
        at += 16
    return h, k, at


@scalar
def _wide_end(h, k, low, high, size):
    """The hash, given the rest of the name as two words padded with zeros."""
    k ^= turn(high * _B, 33) * _A
    h ^= turn(low * _A, 31) * _B
    h ^= np.uint64(size)
    k ^= np.uint64(size)
    h += k
    k += h
    return finish(h) + finish(k)


@scalar
def murmur3_64(text, at, size, seed):
    """Hash (uint64) of the `size` bytes at position `at` of address `text`, with a uint64 `seed`."""
    h, k, rest = _wide_blocks(text, at, size, seed)
    left, before = at + size - rest, rest - at
    high = _short(text, rest + 8, left - 8, before + 8) if left > 8 else np.uint64(0)
    return _wide_end(h, k, _short(text, rest, min(left, 8), before), high, size)


@scalar
def word_murmur3_64(word, size, seed):
    """`murmur3_64` of the first `size` (at most 8) bytes of a word; the other bytes are zero."""
    return _wide_end(seed, seed, word, np.uint64(0), size)


@scalar
def whole_murmur3_64(number, seed):
    """`murmur3_64` of a whole number written in decimal, in at most 8 bytes."""
    rest = abs(number)
    tens = rest // 10
    word, size = np.uint64(48 + rest), np.int64(1)
    if tens > 0:  # of two digits, as nearly all bins are: no loop, whose end would often be mispredicted
        word, size = np.uint64(48 + tens) | np.uint64(48 + rest - 10 * tens) << np.uint64(8), np.int64(2)
    if tens >= 10:
        word, size = np.uint64(0), np.int64(0)
        while rest > 0:
            word = word << np.uint64(8) | np.uint64(48 + rest % 10)
            size, rest = size + 1, rest // 10
    if number < 0:
        word, size = word << np.uint64(8) | _MINUS, size + 1
    return word_murmur3_64(word, size, seed)


@scalar
def first_bytes(word, count):
    """The first `count` (0 to 8) bytes of a word."""
    return word & ~(_ALL << np.uint64(8 * count)) if count < 8 else word


@scalar
def padded_murmur3_64(text, at, size, seed):
    """`murmur3_64` of a name that has 16 spare bytes after it, which are read but do not count."""
    if size <= 8:
        return word_murmur3_64(first_bytes(load_word(text, at), size), size, seed)
    h, k, rest = _wide_blocks(text, at, size, seed)
    left = at + size - rest
    high = first_bytes(load_word(text, rest + 8), left - 8) if left > 8 else np.uint64(0)
    return _wide_end(h, k, first_bytes(load_word(text, rest), min(left, 8)), high, size)


@scalar
def murmur3_32(text, at, size, seed):
    """The 32-bit hash of the `size` bytes at `at`, with a `seed` below 2^32; both are uint64."""
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


@scalar
def vw_hash(text, at, size, seed):
    """Hash (uint64) of a name as in Vowpal Wabbit by default (``--hash strings``), with a uint64 `seed`.

    If all bytes are digits, it is their number plus the seed; otherwise `murmur3_32`. Blanks and control
    characters around the name are stripped.
    """
    while size > 0 and byte(text, at) <= 32:
        at, size = at + 1, size - 1
    while size > 0 and byte(text, at + size - 1) <= 32:
        size -= 1
    number = np.uint64(0)
    for k in range(at, at + size):
        digit = byte(text, k) - 48
        if digit < 0 or digit > 9:
            return murmur3_32(text, at, size, seed & _LOW)
        number = number * _TEN + np.uint64(digit)
    return number + seed


@kernel
def hash_one(text, at, size, seed, kind):
    """The hash (uint64) of the `size` bytes at place `at` of `text` (uint8)."""
    if kind is None:
        return murmur3_64(address(text), at, size, seed)
    return (
        murmur3_32(address(text), at, size, seed) if kind == SHORT else vw_hash(address(text), at, size, seed)
    )


def hash_bytes(name: bytes, seed: int = 0, kind: int | None = WIDE) -> int:
    """The hash of a name: `murmur3_64`, or with `kind` `SHORT` `murmur3_32`, with `VW` `vw_hash`.

    >>> hash_bytes(b"hello"), hash_bytes(b"hello", kind=SHORT)
    (14688674573012802306, 613153351)
    """
    return int(hash_one(np.frombuffer(name or b"\0", np.uint8), 0, len(name), np.uint64(seed), kind))


def hash_columns(names: Iterable[str], seed: int = 0) -> NDArray[np.uint64]:
    """`murmur3_64` of the names of columns, in NumPy: a table needs no compiling. Equal lengths go together.

    >>> bool(hash_columns(["hello"])[0] == hash_bytes(b"hello"))
    True
    """
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    by_size = defaultdict[int, list[int]](list)
    for place, name in enumerate(encoded):
        by_size[len(name)].append(place)
    found = np.empty(len(encoded), np.uint64)
    for size, places in by_size.items():
        padded = b"".join(encoded[place].ljust(-(-size // 16) * 16, b"\0") for place in places)
        words = np.frombuffer(padded, "<u8").reshape(len(places), -(-size // 16) * 2)
        h, k = np.full((2, len(places)), seed, np.uint64)
        for word in range(0, size // 16 * 2, 2):
            h, k = _wide_step(h, k, words[:, word], words[:, word + 1])
        low, high = words[:, -2:].T if size % 16 else np.zeros((2, len(places)), np.uint64)
        found[places] = _wide_end(h, k, low, high, size)
    return found


@functools.lru_cache(1 << 12)
def seed_of(namespace: str, seed: int = 0) -> int:
    """The seed for names in a namespace or column: the hash of its name, or `seed` if it has none."""
    return int(hash_columns([namespace], seed)[0]) if namespace else seed
