"""Intrinsics that read eight or sixty-four bytes of text at a time.

Numba has no unaligned loads and does not turn loops into byte masks. These intrinsics express both in
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
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from thresher.engine.compile.jit import scalar

SPACES = b" \t"
"""Blanks: a cell that holds nothing else is empty."""
WINDOW = 64
"""Bytes that `marks` reads."""

_BYTE, _HALF, _WORD, _FLOAT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()


def _pointer(builder: Any, address: Any, at: Any, target: Any) -> Any:
    return builder.inttoptr(builder.add(address, at), target.as_pointer())


def _splat(value: int) -> Any:
    return ir.Constant(ir.VectorType(_BYTE, WINDOW), [value] * WINDOW)


@intrinsic
def address(typing_context, array):
    """Address (int64) of the first byte of a contiguous array, which the caller keeps alive.

    Small functions in hot loops take addresses: passing an array costs two atomic operations on its
    reference count per call, and each access a check for a negative index.
    """

    def codegen(context, builder, signature, args):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0]).data
        return builder.ptrtoint(data, _WORD)

    return types.int64(array), codegen


@intrinsic
def byte(typing_context, text, at):
    """The byte of `text` at position `at`, as an int64."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(builder, args[0], args[1], _BYTE)
        return builder.zext(builder.load(pointer, typ=_BYTE), _WORD)

    return types.int64(types.int64, types.int64), codegen


@scalar
def is_blank(code):
    """Whether a byte is one of `SPACES`."""
    return code == 32 or code == 9


@intrinsic
def load_word(typing_context, text, at):
    """The eight bytes of `text` (see `address`) from position `at` on, as a uint64."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(builder, args[0], args[1], _WORD)
        return builder.load(pointer, align=1, typ=_WORD)

    return types.uint64(types.int64, types.int64), codegen


@intrinsic
def load_half(typing_context, text, at):
    """The four bytes of `text` from position `at` on, as a uint64."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(builder, args[0], args[1], _HALF)
        return builder.zext(builder.load(pointer, align=1, typ=_HALF), _WORD)

    return types.uint64(types.int64, types.int64), codegen


@intrinsic
def load_float(typing_context, floats, index):
    """Entry `index` of the float32s at address `floats`."""

    def codegen(context, builder, signature, args):
        at = builder.shl(args[1], ir.Constant(_WORD, 2))
        return builder.load(_pointer(builder, args[0], at, _FLOAT), align=4, typ=_FLOAT)

    return types.float32(types.int64, types.int64), codegen


@intrinsic
def load_double(typing_context, floats, index):
    """Entry `index` of the float64s at address `floats`."""

    def codegen(context, builder, signature, args):
        at = builder.shl(args[1], ir.Constant(_WORD, 3))
        return builder.load(_pointer(builder, args[0], at, ir.DoubleType()), align=8, typ=ir.DoubleType())

    return types.float64(types.int64, types.int64), codegen


@intrinsic
def store_word(typing_context, words, index, word):
    """Write entry `index` of the uint64s at address `words`."""

    def codegen(context, builder, signature, args):
        at = builder.shl(args[1], ir.Constant(_WORD, 3))
        builder.store(args[2], _pointer(builder, args[0], at, _WORD), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.uint64), codegen


@intrinsic
def store_byte(typing_context, text, at, code):
    """Write the byte at position `at` of address `text`."""

    def codegen(context, builder, signature, args):
        builder.store(builder.trunc(args[2], _BYTE), _pointer(builder, args[0], args[1], _BYTE))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def store_float(typing_context, floats, index, number):
    """Write entry `index` of the float32s at address `floats`."""

    def codegen(context, builder, signature, args):
        at = builder.shl(args[1], ir.Constant(_WORD, 2))
        builder.store(args[2], _pointer(builder, args[0], at, _FLOAT), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float32), codegen


def _mask(builder: Any, flags: Any) -> Any:
    return builder.bitcast(flags, _WORD)


@intrinsic
def marks(typing_context, text, at):
    """Two uint64 masks of the 64 bytes from position `at` on; bit i is byte ``at + i``.

    The first has the bytes that are neither a digit nor a minus sign, the second the minus signs that do not
    follow a colon.
    """

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_BYTE, WINDOW)
        given = builder.load(_pointer(builder, args[0], args[1], vector), align=1, typ=vector)
        beyond = builder.icmp_unsigned(">", builder.sub(given, _splat(48)), _splat(9))
        minus = builder.icmp_unsigned("==", given, _splat(45))
        colons = _mask(builder, builder.icmp_unsigned("==", given, _splat(58)))
        minuses = _mask(builder, minus)
        others = builder.and_(_mask(builder, beyond), builder.not_(minuses))
        odd = builder.and_(minuses, builder.not_(builder.shl(colons, ir.Constant(_WORD, 1))))
        return context.make_tuple(builder, signature.return_type, [others, odd])

    return types.UniTuple(types.uint64, 2)(types.int64, types.int64), codegen


@intrinsic
def stops(typing_context, text, at):
    """Two uint64 masks of the 64 bytes from position `at` on; bit i is byte ``at + i``.

    The first has the bytes that can end a name in VW text (colon, bar, blanks and control characters), the
    second all bytes except digits and minus signs that follow a colon.
    """

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_BYTE, WINDOW)
        given = builder.load(_pointer(builder, args[0], args[1], vector), align=1, typ=vector)
        colons, bars, minuses = (builder.icmp_unsigned("==", given, _splat(ord(c))) for c in ":|-")
        ends = builder.or_(colons, bars)
        ends = builder.or_(ends, builder.icmp_unsigned("<=", given, _splat(32)))
        beyond = builder.icmp_unsigned(">", builder.sub(given, _splat(48)), _splat(9))
        signs = builder.shl(_mask(builder, colons), ir.Constant(_WORD, 1))
        signs = builder.and_(signs, _mask(builder, minuses))
        unlike = builder.and_(_mask(builder, beyond), builder.not_(signs))
        return context.make_tuple(builder, signature.return_type, [_mask(builder, ends), unlike])

    return types.UniTuple(types.uint64, 2)(types.int64, types.int64), codegen


@intrinsic
def string_stops(typing_context, text, at):
    """A uint64 mask of the 64 bytes from position `at` on: quotes, backslashes and control characters."""

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_BYTE, WINDOW)
        given = builder.load(_pointer(builder, args[0], args[1], vector), align=1, typ=vector)
        quotes, escapes = (builder.icmp_unsigned("==", given, _splat(ord(c))) for c in '"\\')
        found = builder.or_(builder.or_(quotes, escapes), builder.icmp_unsigned("<", given, _splat(32)))
        return _mask(builder, found)

    return types.uint64(types.int64, types.int64), codegen


@intrinsic
def separators(typing_context, text, at, delimiter):
    """A uint64 mask of the 64 bytes from position `at` on: which are newlines or the byte `delimiter`."""

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_BYTE, WINDOW)
        given = builder.load(_pointer(builder, args[0], args[1], vector), align=1, typ=vector)
        one = builder.insert_element(
            ir.Constant(vector, ir.Undefined), builder.trunc(args[2], _BYTE), ir.Constant(_HALF, 0)
        )
        zeros = ir.Constant(ir.VectorType(_HALF, WINDOW), [0] * WINDOW)
        every = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)
        ends = builder.icmp_unsigned("==", given, _splat(10))
        return _mask(builder, builder.or_(builder.icmp_unsigned("==", given, every), ends))

    return types.uint64(types.int64, types.int64, types.int64), codegen


@intrinsic
def rank_eight(typing_context, words, count, index, out):
    """How many of the first `count` uint64s at address `words` are below each of the eight from `index` on.

    Stores eight int64s at address `out`, from entry `index` on.
    """
    vector = ir.VectorType(_WORD, 8)

    def every(builder, word):
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), word, ir.Constant(_HALF, 0))
        zeros = ir.Constant(ir.VectorType(_HALF, 8), [0] * 8)
        return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)

    def codegen(context, builder, signature, args):
        at = builder.shl(args[2], ir.Constant(_WORD, 3))
        given = builder.load(_pointer(builder, args[0], at, vector), align=8, typ=vector)
        ranks = cgutils.alloca_once_value(builder, ir.Constant(vector, [0] * 8))
        with cgutils.for_range(builder, args[1]) as loop:
            place = builder.shl(loop.index, ir.Constant(_WORD, 3))
            word = builder.load(_pointer(builder, args[0], place, _WORD), typ=_WORD)
            more = builder.zext(builder.icmp_unsigned("<", every(builder, word), given), vector)
            builder.store(builder.add(builder.load(ranks), more), ranks)
        builder.store(builder.load(ranks), _pointer(builder, args[3], at, vector), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), codegen


@intrinsic
def lowest_bit(typing_context, mask):
    """Index (int64) of the lowest set bit of a uint64; 64 if there is none."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def bit_length(typing_context, number):
    """Position (int64) of the highest set bit of a uint64, from 1 to 64; 0 for 0."""

    def codegen(context, builder, signature, args):
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(_WORD, 64), zeros)

    return types.int64(types.uint64), codegen


@intrinsic
def bits_of(typing_context, number):
    """The bits of a float64 as a uint64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], _WORD)

    return types.uint64(types.float64), codegen


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
