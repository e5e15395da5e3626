"""Functions that read eight or sixty-four bytes of text at a time, in instructions of LLVM.

Numba has no unaligned loads and does not turn loops into byte masks. These functions express both in
LLVM, which generates vector instructions for each processor. All of them read beyond `at` without a check,
so a text buffer needs 64 spare bytes after its end. They require a little-endian machine, as every machine
that Numba supports is today.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from thresher.engine.compile.jit import emitted, scalar

SPACES = b" \t"
"""Blanks: a cell that holds nothing else is empty."""
WINDOW = 64
"""Bytes that `marks` reads."""
_BYTE, _HALF, _WORD, _FLOAT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()
_MASKS = "UniTuple(uint64, 2)(int64, int64)"


def _pointer(builder: Any, address: Any, at: Any, target: Any) -> Any:
    return builder.inttoptr(builder.add(address, at), target.as_pointer())


def _splat(value: int) -> Any:
    return ir.Constant(ir.VectorType(_BYTE, WINDOW), [value] * WINDOW)


@scalar
def address(array):
    """Address (int64) of the first byte of a contiguous array, which the caller keeps alive.

    Small functions in hot loops take addresses: passing an array costs two atomic operations on its
    reference count per call, and each access a check for a negative index.
    """
    return np.int64(array.ctypes.data)


@emitted("int64(int64, int64)")
def byte(builder, text, at):
    """The byte of `text` at position `at`, as an int64."""
    return builder.zext(builder.load(_pointer(builder, text, at, _BYTE), typ=_BYTE), _WORD)


def _loads(kind: object, result: str, shift: int = 0) -> Any:
    """What loads a `kind` as a `result` from an address, at a position in units of ``1 << shift`` bytes."""

    @emitted(f"{result}(int64, int64)")
    def load(builder, text, at):
        at = builder.shl(at, ir.Constant(_WORD, shift))
        found = builder.load(_pointer(builder, text, at, kind), align=1 << shift, typ=kind)
        return builder.zext(found, _WORD) if kind is _HALF else found

    return load


def _stores(kind: object, given: str, shift: int = 0) -> Any:
    """What stores a `given` as a `kind` at an address, at a position as for `_loads`."""

    @emitted(f"void(int64, int64, {given})")
    def store(builder, text, at, value):
        at = builder.shl(at, ir.Constant(_WORD, shift))
        value = builder.trunc(value, _BYTE) if kind is _BYTE else value
        builder.store(value, _pointer(builder, text, at, kind), align=1 << shift)

    return store


load_half, load_word = _loads(_HALF, "uint64"), _loads(_WORD, "uint64")
"""The four or eight bytes of `text` from position `at` on, as a uint64."""
load_float, load_double = _loads(_FLOAT, "float32", 2), _loads(ir.DoubleType(), "float64", 3)
load_int = _loads(_WORD, "int64", 3)
"""An entry, by its index, of the float32s, float64s or int64s at an address."""
store_byte = _stores(_BYTE, "int64")
"""Write the byte at position `at` of address `text`."""
store_word, store_float = _stores(_WORD, "uint64", 3), _stores(_FLOAT, "float32", 2)
"""Write an entry, by its index, of the uint64s or float32s at an address."""


@scalar
def enter(key, value, keys, values, nnz):
    """Store a feature as entry `nnz` of `keys` and `values` (addresses); returns the new `nnz`."""
    store_word(keys, nnz, key)
    store_float(values, nnz, value)
    return nnz + 1


@scalar
def store_character(point, out, at):
    """Write a Unicode code point as UTF-8 at position `at` of address `out`; returns where it ends."""
    if point < 0x80:
        store_byte(out, at, point)
        return at + 1
    more = 1 if point < 0x800 else 2 if point < 0x10000 else 3
    store_byte(out, at, (0xFF00 >> more + 1) & 0xFF | point >> 6 * more)
    for k in range(more):
        store_byte(out, at + 1 + k, 0x80 | (point >> 6 * (more - 1 - k)) & 0x3F)
    return at + 1 + more


@scalar
def is_blank(code):
    """Whether a byte is one of `SPACES`."""
    return code == 32 or code == 9


@scalar
def skip_blanks(text, at):
    """The position of the first byte from `at` on that is not blank."""
    while is_blank(byte(text, at)):
        at += 1
    return at


@scalar
def past_blanks(text, at, end):
    """The position of the first byte in [at, end) that is not blank; `end` if there is none."""
    while at < end and is_blank(byte(text, at)):
        at += 1
    return at


@scalar
def stripped(text, at, end):
    """Where [at, end) begins and ends without the blanks at both ends."""
    at = past_blanks(text, at, end)
    while at < end and is_blank(byte(text, end - 1)):
        end -= 1
    return at, end


@scalar
def same_bytes(text, at, other, begin, size):
    """Whether `size` bytes of two texts are the same: those from `at` and those from `begin` on."""
    k = 0
    while k < size and byte(text, at + k) == byte(other, begin + k):
        k += 1
    return k == size


def _window(builder: Any, text: Any, at: Any) -> Any:
    """The 64 bytes from position `at` on, as a vector."""
    vector = ir.VectorType(_BYTE, WINDOW)
    return builder.load(_pointer(builder, text, at, vector), align=1, typ=vector)


@emitted(_MASKS)
def marks(builder, text, at):
    """Two uint64 masks of the 64 bytes from position `at` on; bit i is byte ``at + i``.

    The first has the bytes that are neither a digit nor a minus sign, the second the minus signs that do not
    follow a colon.
    """
    given = _window(builder, text, at)
    beyond = builder.icmp_unsigned(">", builder.sub(given, _splat(48)), _splat(9))
    minuses, colons = (
        builder.bitcast(builder.icmp_unsigned("==", given, _splat(c)), _WORD) for c in (45, 58)
    )
    # of vectors: of words, LLVM would make a choice of bits, which takes 64 instructions without AVX-512
    others = builder.bitcast(builder.and_(beyond, builder.icmp_unsigned("!=", given, _splat(45))), _WORD)
    return [others, builder.and_(minuses, builder.not_(builder.shl(colons, ir.Constant(_WORD, 1))))]


@emitted(_MASKS)
def stops(builder, text, at):
    """Two uint64 masks of the 64 bytes from position `at` on; bit i is byte ``at + i``.

    The first has the bytes that can end a name in VW text (colon, bar, blanks and control characters), the
    second all bytes except digits and minus signs that follow a colon.
    """
    given = _window(builder, text, at)
    colons, bars, minuses = (builder.icmp_unsigned("==", given, _splat(ord(c))) for c in ":|-")
    ends = builder.or_(colons, bars)
    ends = builder.or_(ends, builder.icmp_unsigned("<=", given, _splat(32)))
    beyond = builder.icmp_unsigned(">", builder.sub(given, _splat(48)), _splat(9))
    signs = builder.shl(builder.bitcast(colons, _WORD), ir.Constant(_WORD, 1))
    signs = builder.and_(signs, builder.bitcast(minuses, _WORD))
    return [builder.bitcast(ends, _WORD), builder.and_(builder.bitcast(beyond, _WORD), builder.not_(signs))]


@emitted("uint64(int64, int64)")
def string_stops(builder, text, at):
    """A uint64 mask of the 64 bytes from position `at` on: quotes, backslashes and control characters."""
    given = _window(builder, text, at)
    quotes, escapes = (builder.icmp_unsigned("==", given, _splat(ord(c))) for c in '"\\')
    found = builder.or_(builder.or_(quotes, escapes), builder.icmp_unsigned("<", given, _splat(32)))
    return builder.bitcast(found, _WORD)


def _every(builder: Any, one: Any, kind: Any, count: int) -> Any:
    """A vector of `count` times the same value."""
    nothing = ir.Constant(ir.VectorType(kind, count), ir.Undefined)
    zeros = ir.Constant(ir.VectorType(_HALF, count), [0] * count)
    return builder.shuffle_vector(builder.insert_element(nothing, one, ir.Constant(_HALF, 0)), nothing, zeros)


@emitted("uint64(int64, int64, int64)")
def separators(builder, text, at, delimiter):
    """A uint64 mask of the 64 bytes from position `at` on: which are newlines or the byte `delimiter`."""
    given = _window(builder, text, at)
    wanted = _every(builder, builder.trunc(delimiter, _BYTE), _BYTE, WINDOW)
    ends = builder.icmp_unsigned("==", given, _splat(10))
    return builder.bitcast(builder.or_(builder.icmp_unsigned("==", given, wanted), ends), _WORD)


@emitted("void(int64, int64, int64, int64)")
def rank_eight(builder, words, count, index, out):
    """How many of the first `count` uint64s at address `words` are below each of the eight from `index` on.

    Stores eight int64s at address `out`, from entry `index` on.
    """
    from numba.core import cgutils  # only to compile

    vector = ir.VectorType(_WORD, 8)
    at = builder.shl(index, ir.Constant(_WORD, 3))
    given = builder.load(_pointer(builder, words, at, vector), align=8, typ=vector)
    ranks = cgutils.alloca_once_value(builder, ir.Constant(vector, [0] * 8))
    with cgutils.for_range(builder, count) as loop:
        place = builder.shl(loop.index, ir.Constant(_WORD, 3))
        word = builder.load(_pointer(builder, words, place, _WORD), typ=_WORD)
        less = builder.icmp_unsigned("<", _every(builder, word, _WORD, 8), given)
        builder.store(builder.add(builder.load(ranks), builder.zext(less, vector)), ranks)
    builder.store(builder.load(ranks), _pointer(builder, out, at, vector), align=8)


@emitted("int64(uint64)")
def lowest_bit(builder, mask):
    """Index (int64) of the lowest set bit of a uint64; 64 if there is none."""
    return builder.cttz(mask, ir.Constant(ir.IntType(1), 0))


@emitted("int64(uint64)")
def bit_length(builder, number):
    """Position (int64) of the highest set bit of a uint64, from 1 to 64; 0 for 0."""
    return builder.sub(ir.Constant(_WORD, 64), builder.ctlz(number, ir.Constant(ir.IntType(1), 0)))


ROOM = 48


@emitted("int64()")
def room_for_words(builder):
    """Address of `ROOM` uint64s, which are there until the function returns that has called this."""
    from numba.core import cgutils  # only to compile

    return builder.ptrtoint(cgutils.alloca_once(builder, ir.ArrayType(_WORD, ROOM)), _WORD)


@emitted("uint64(float64)")
def bits_of(builder, number):
    """The bits of a float64 as a uint64."""
    return builder.bitcast(number, _WORD)


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
