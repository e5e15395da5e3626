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


def _loads(kind: Any, result: Any, shift: int = 0) -> Any:
    """What loads a `kind` as a `result` from an address, at a position in units of ``1 << shift`` bytes."""

    @intrinsic
    def load(typing_context, text, at):
        def codegen(context, builder, signature, args):
            at = builder.shl(args[1], ir.Constant(_WORD, shift))
            found = builder.load(_pointer(builder, args[0], at, kind), align=1 << shift, typ=kind)
            return builder.zext(found, _WORD) if kind is _HALF else found

        return result(types.int64, types.int64), codegen

    return load


def _stores(kind: Any, given: Any, shift: int = 0) -> Any:
    """What stores a `given` as a `kind` at an address, at a position as for `_loads`."""

    @intrinsic
    def store(typing_context, text, at, value):
        def codegen(context, builder, signature, args):
            at = builder.shl(args[1], ir.Constant(_WORD, shift))
            value = builder.trunc(args[2], _BYTE) if kind is _BYTE else args[2]
            builder.store(value, _pointer(builder, args[0], at, kind), align=1 << shift)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, given), codegen

    return store


load_half, load_word = _loads(_HALF, types.uint64), _loads(_WORD, types.uint64)
"""The four or eight bytes of `text` from position `at` on, as a uint64."""
load_float, load_double = _loads(_FLOAT, types.float32, 2), _loads(ir.DoubleType(), types.float64, 3)
"""An entry, by its index, of the float32s or float64s at an address."""
store_byte = _stores(_BYTE, types.int64)
"""Write the byte at position `at` of address `text`."""
store_word, store_float = _stores(_WORD, types.uint64, 3), _stores(_FLOAT, types.float32, 2)
"""Write an entry, by its index, of the uint64s or float32s at an address."""


@scalar
def is_blank(code):
    """Whether a byte is one of `SPACES`."""
    return code == 32 or code == 9


def _window(builder: Any, args: Any) -> Any:
    """The 64 bytes from position ``args[1]`` on, as a vector."""
    vector = ir.VectorType(_BYTE, WINDOW)
    return builder.load(_pointer(builder, args[0], args[1], vector), align=1, typ=vector)


def _mask(builder: Any, flags: Any) -> Any:
    return builder.bitcast(flags, _WORD)


@intrinsic
def marks(typing_context, text, at):
    """Two uint64 masks of the 64 bytes from position `at` on; bit i is byte ``at + i``.

    The first has the bytes that are neither a digit nor a minus sign, the second the minus signs that do not
    follow a colon.
    """

    def codegen(context, builder, signature, args):
        given = _window(builder, args)
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
        given = _window(builder, args)
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
        given = _window(builder, args)
        quotes, escapes = (builder.icmp_unsigned("==", given, _splat(ord(c))) for c in '"\\')
        found = builder.or_(builder.or_(quotes, escapes), builder.icmp_unsigned("<", given, _splat(32)))
        return _mask(builder, found)

    return types.uint64(types.int64, types.int64), codegen


def _every(builder: Any, one: Any, kind: Any, count: int) -> Any:
    """A vector of `count` times the same value."""
    nothing = ir.Constant(ir.VectorType(kind, count), ir.Undefined)
    zeros = ir.Constant(ir.VectorType(_HALF, count), [0] * count)
    return builder.shuffle_vector(builder.insert_element(nothing, one, ir.Constant(_HALF, 0)), nothing, zeros)


@intrinsic
def separators(typing_context, text, at, delimiter):
    """A uint64 mask of the 64 bytes from position `at` on: which are newlines or the byte `delimiter`."""

    def codegen(context, builder, signature, args):
        given = _window(builder, args)
        wanted = _every(builder, builder.trunc(args[2], _BYTE), _BYTE, WINDOW)
        ends = builder.icmp_unsigned("==", given, _splat(10))
        return _mask(builder, builder.or_(builder.icmp_unsigned("==", given, wanted), ends))

    return types.uint64(types.int64, types.int64, types.int64), codegen


@intrinsic
def rank_eight(typing_context, words, count, index, out):
    """How many of the first `count` uint64s at address `words` are below each of the eight from `index` on.

    Stores eight int64s at address `out`, from entry `index` on.
    """
    vector = ir.VectorType(_WORD, 8)

    def codegen(context, builder, signature, args):
        at = builder.shl(args[2], ir.Constant(_WORD, 3))
        given = builder.load(_pointer(builder, args[0], at, vector), align=8, typ=vector)
        ranks = cgutils.alloca_once_value(builder, ir.Constant(vector, [0] * 8))
        with cgutils.for_range(builder, args[1]) as loop:
            place = builder.shl(loop.index, ir.Constant(_WORD, 3))
            word = builder.load(_pointer(builder, args[0], place, _WORD), typ=_WORD)
            less = builder.icmp_unsigned("<", _every(builder, word, _WORD, 8), given)
            builder.store(builder.add(builder.load(ranks), builder.zext(less, vector)), ranks)
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
