"""Intrinsics that read eight or sixty-four bytes of text at a time.

Numba has no unaligned loads and does not turn loops into byte masks. These intrinsics express both in
LLVM, which generates vector instructions for each processor. All of them read beyond `at` without a check,
so a text buffer needs 64 spare bytes after its end. They require a little-endian machine, as every machine
that Numba supports is today.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.engine.compile.jit import emitted_by, in_place, scalar

emitted_by("thresher.data.text.words_code")

SPACES = b" \t"
"""Blanks: a cell that holds nothing else is empty."""
WINDOW = 64
"""Bytes that `marks` reads."""


@in_place
def address(array):
    """Address (int64) of the first byte of a contiguous array, which the caller keeps alive.

    Small functions in hot loops take addresses: passing an array costs two atomic operations on its
    reference count per call, and each access a check for a negative index.
    """


@in_place
def byte(text, at):
    """The byte of `text` at position `at`, as an int64."""


@in_place
def load_half(text, at):
    """The four bytes of `text` from position `at` on, as a uint64."""


@in_place
def load_word(text, at):
    """The eight bytes of `text` from position `at` on, as a uint64."""


@in_place
def load_float(text, at):
    """Entry `at` of the float32s at address `text`."""


@in_place
def load_double(text, at):
    """Entry `at` of the float64s at address `text`."""


@in_place
def store_byte(text, at, value):
    """Write the byte at position `at` of address `text`."""


@in_place
def store_word(text, at, value):
    """Write entry `at` of the uint64s at address `text`."""


@in_place
def store_float(text, at, value):
    """Write entry `at` of the float32s at address `text`."""


@scalar
def is_blank(code):
    """Whether a byte is one of `SPACES`."""
    return code == 32 or code == 9


@in_place
def marks(text, at):
    """Two uint64 masks of the 64 bytes from position `at` on; bit i is byte ``at + i``.

    The first has the bytes that are neither a digit nor a minus sign, the second the minus signs that do not
    follow a colon.
    """


@in_place
def stops(text, at):
    """Two uint64 masks of the 64 bytes from position `at` on; bit i is byte ``at + i``.

    The first has the bytes that can end a name in VW text (colon, bar, blanks and control characters), the
    second all bytes except digits and minus signs that follow a colon.
    """


@in_place
def string_stops(text, at):
    """A uint64 mask of the 64 bytes from position `at` on: quotes, backslashes and control characters."""


@in_place
def separators(text, at, delimiter):
    """A uint64 mask of the 64 bytes from position `at` on: which are newlines or the byte `delimiter`."""


@in_place
def rank_eight(words, count, index, out):
    """How many of the first `count` uint64s at address `words` are below each of the eight from `index` on.

    Stores eight int64s at address `out`, from entry `index` on.
    """


@in_place
def lowest_bit(mask):
    """Index (int64) of the lowest set bit of a uint64; 64 if there is none."""


@in_place
def bit_length(number):
    """Position (int64) of the highest set bit of a uint64, from 1 to 64; 0 for 0."""


@in_place
def bits_of(number):
    """The bits of a float64 as a uint64."""


_PAIRS = np.uint64(0x000000FF000000FF)
_UPPER = np.uint64(0x000F424000000064)  # 1e6 << 32 | 1e2
_LOWER = np.uint64(0x0000271000000001)  # 1e4 << 32 | 1
_ZEROS = np.uint64(0x3030303030303030)
_ONE = np.uint64(1)
_TOPS = np.uint64(0x8080808080808080)
_SEVENTIES = np.uint64(0x7676767676767676)


def byte_set(members: bytes) -> np.uint64:
    """A set of bytes below 64, as the bit mask that `among` takes."""
    return np.uint64(sum(1 << member for member in set(members)))


@scalar
def among(code, members):
    """Whether a byte is in a `byte_set`. For ``in`` with a tuple, Numba compiles a function per length."""
    return code < 64 and (members >> np.uint64(code)) & _ONE == _ONE


@scalar
def short_number(text, at, digits):
    """The number written as 1 to 8 `digits` at position `at`, as a uint64.

    The digits are shifted to the top of a word, after zeros, then combined in pairs, fours and eights.
    """
    word = load_word(text, at) ^ _ZEROS
    word = word << np.uint64(64 - 8 * digits)
    word = word * np.uint64(10) + (word >> np.uint64(8))
    upper = (word & _PAIRS) * _UPPER
    lower = ((word >> np.uint64(16)) & _PAIRS) * _LOWER
    return (upper + lower) >> np.uint64(32)


@scalar
def all_digits(text, at, count):
    """Whether the 1 to 8 bytes at position `at` are digits."""
    word = (load_word(text, at) ^ _ZEROS) << np.uint64(64 - 8 * count)
    return ((word + _SEVENTIES) | word) & _TOPS == np.uint64(0)
