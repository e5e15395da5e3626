"""Text to features: word and character n-grams, hashed, counted, scaled.

A text is read once. Its words are lower-cased and copied to a scratch buffer with one space between them, so
every n-gram is a run of bytes there, and its key is the hash of that run. A word is a run of at least
`shortest` word characters (letters, digits, underscore: `str.isalnum`). Lower-casing maps one code point to
one (`str.lower` if that returns one). Bytes that are not UTF-8 separate words.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError
from thresher.data.feature_specs import BINARY, BLANKS, LETTERS, LOG, WORDS, Grams
from thresher.data.features.murmur import padded_murmur3_64
from thresher.data.features.names import QUOTED, TEXT, offer
from thresher.data.text.sorting import merge_row
from thresher.data.text.words import address, byte, store_character
from thresher.engine.compile.jit import helper, kernel, scalar

_SPACE = 32
_SPARE = 16
"""Spare bytes after the words of a text: hashing reads them, but they do not count."""
_LETTERS = 0x32400
"""No character from this code point on is a letter or a digit."""
_PARTS: dict[str, Callable[[NDArray[np.str_]], NDArray[np.bool_]]] = {
    WORDS: lambda each: np.strings.isalnum(each) | (each == "_"),
    LETTERS: np.strings.isalpha,
    BLANKS: lambda each: ~np.strings.isspace(each),
}


@cache
def letters(tokens: str = WORDS) -> NDArray[np.int32]:
    """A table of the word characters by code point, for `tokens` (see `Grams.tokens`).

    Entry c is ``(lower case of c) << 1 | 1`` if c can be part of a word, and 0 otherwise.
    """
    codes = np.arange(sys.maxunicode + 1 if tokens == BLANKS else _LETTERS, dtype=np.uint32)
    each = codes.view("U1")
    lowered = codes.astype(np.int32)
    for code in np.flatnonzero(np.strings.isupper(each) | np.strings.istitle(each)).tolist():
        lower = chr(code).lower()
        lowered[code] = ord(lower) if len(lower) == 1 else code
    table: NDArray[np.int32] = np.where(_PARTS[tokens](each), lowered << 1 | 1, 0).astype(np.int32)
    return table


@scalar
def _decode(text, at, end):
    """The character at `at`: ``(code point, or -1 if it is not UTF-8; size in bytes)``."""
    first = byte(text, at)
    if first < 0x80:
        return first, 1
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC2 or first > 0xF4 or at + size > end:
        return -1, 1
    code = first & (0xFF >> (size + 1))
    for k in range(1, size):
        tail = byte(text, at + k)
        if tail & 0xC0 != 0x80:
            return -1, 1
        code = code << 6 | (tail & 0x3F)
    overlong = (size == 3 and code < 0x800) or (size == 4 and code < 0x10000)
    if overlong or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return -1, 1
    return code, size


@scalar
def _words(text, at, end, known, lowercase, shortest, scratch, begins):
    """Copy the words of ``text[at:end]`` to `scratch`, a space after each, and their starts to `begins`.

    Returns the number of words; ``begins[number]`` is the position after the last space.
    """
    count = place = start = size = 0
    begins[0], out = 0, address(scratch)
    while at <= end:
        entry, taken, code = 0, 1, 0
        if at < end:
            code, taken = _decode(text, at, end)
            if 0 <= code < known.size:
                entry = int(known[code])
        if entry != 0:
            place = store_character(entry >> 1 if lowercase else code, out, place)
            size += 1
        elif size >= shortest:
            scratch[place] = _SPACE
            place += 1
            count += 1
            begins[count] = start = place
            size = 0
        else:
            place, size = start, 0
        at += taken
    return count


@scalar
def _hash_runs(scratch, begins, count, low, high, gap, seed, form, keys, values, nnz, naming, space):
    """Append the keys of all runs of `low` to `high` pieces, without their last `gap` bytes, with value 1."""
    if high == 0:
        return nnz
    text = address(scratch)
    for first in range(count):
        for length in range(low, min(high, count - first) + 1):
            begin = begins[first]
            size = begins[first + length] - gap - begin
            keys[nnz], values[nnz] = padded_murmur3_64(text, begin, size, seed), np.float32(1)
            offer(naming, keys[nnz], text, begin, size, space, form)
            nnz += 1
    return nnz


@scalar
def room_for(size: int, code: tuple[Any, ...]) -> int:
    """Twice the maximum number of entries that a text of `size` bytes fills: sorting needs scratch space."""
    words, chars = code[1] - code[0] + 1 if code[1] > 0 else 0, code[3] - code[2] + 1 if code[3] > 0 else 0
    return int(2 * (words * (size // (code[5] + 1) + 1) + chars * (size + 2)))


@helper
def text_features(text, at, end, code, known, seed, scratch, begins, keys, values, nnz, naming, space):
    """Append the n-grams of ``text[at:end]`` at entry `nnz`, unique and ascending; returns the new `nnz`.

    `text` is an address, `code` is `Grams.code()`, and `known` is `letters()`. `scratch` (uint8) and
    `begins` (int64) come from `rooms_for`; `keys` and `values` need `room_for` free entries. `naming`, if not
    None, receives each n-gram as a name in the column `space`.
    """
    word_low, word_high, char_low, char_high, lowercase, shortest, scale, norm = code
    start = nnz
    count = _words(text, at, end, known, lowercase, shortest, scratch, begins)
    nnz = _hash_runs(
        scratch, begins, count, word_low, word_high, 1, seed, TEXT, keys, values, nnz, naming, space
    )
    if char_high > 0:
        stop, count, other = max(begins[count] - 1, 0), 0, seed ^ np.uint64(1)
        form = QUOTED if word_high > 0 else TEXT  # words and characters may be the same
        for at in range(stop):
            if scratch[at] & 0xC0 != 0x80:
                begins[count] = at
                count += 1
        begins[count] = stop
        nnz = _hash_runs(
            *(scratch, begins, count, char_low, char_high, 0, other, form, keys, values, nnz),
            *(naming, space),
        )
    if nnz > start:
        nnz, _ = merge_row(keys, values, start, nnz, begins.view(np.uint64))
    squares = 0.0
    for k in range(start, nnz):
        if scale == BINARY:
            values[k] = np.float32(1)
        elif scale == LOG:
            values[k] = np.float32(1.0 + math.log(np.float64(values[k])))
        squares += np.float64(values[k]) * np.float64(values[k])
    if norm and squares > 0.0:
        by = 1.0 / math.sqrt(squares)
        for k in range(start, nnz):
            values[k] = np.float32(np.float64(values[k]) * by)
    return nnz


def rooms_for(longest: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """`scratch` and `begins` for texts of at most `longest` bytes."""
    return np.empty(2 * longest + 2 + _SPARE, np.uint8), np.empty(2 * longest + 3, np.int64)


@kernel
def _enter_texts(text, offsets, code, known, seed, scratch, begins, indptr, keys, values, naming, space):
    nnz = np.int64(0)
    for i in range(offsets.size - 1):
        nnz = text_features(
            *(text, offsets[i], offsets[i + 1], code, known, seed, scratch, begins, keys, values, nnz),
            *(naming, space),
        )
        indptr[i + 1] = nnz


def rows_of_bytes(
    text: int,
    offsets: NDArray[np.int64],
    grams: Grams,
    seed: int = 0,
    naming: object = None,
    space: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]:
    """CSR arrays of the n-grams of texts, one row per text, keys ascending.

    Text i is the bytes ``offsets[i]`` to ``offsets[i + 1]`` from address `text`. `naming`, if given, receives
    the n-grams as names in the column `space`.
    """
    sizes, code = np.diff(offsets), grams.code()
    longest = int(sizes.max(initial=0))
    room = sum(room_for(size, code) // 2 for size in sizes.tolist()) + room_for(longest, code)
    keys, values = np.empty(room, np.uint64), np.empty(room, np.float32)
    indptr = np.zeros(len(offsets), np.int64)
    rooms, known = rooms_for(longest), letters(grams.tokens)
    _enter_texts(text, offsets, code, known, np.uint64(seed), *rooms, indptr, keys, values, naming, space)
    return indptr, keys[: indptr[-1]].copy(), values[: indptr[-1]].copy()


def rows_of_texts(
    texts: Sequence[str], grams: Grams, seed: int = 0, naming: object = None
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]:
    """`rows_of_bytes` for strings; raises `DataError` for anything else.

    >>> sorted(rows_of_texts(["To be or not to be", ""], Grams())[2].tolist())
    [1.0, 1.0, 2.0, 2.0]
    """
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise DataError(f"example {number}: expected a text, found {text!r:.40}")
    raw = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in raw], dtype=np.int64)])
    whole = np.frombuffer(b"".join(raw) or b"\0", np.uint8)
    return rows_of_bytes(whole.ctypes.data, offsets, grams, seed, naming)
