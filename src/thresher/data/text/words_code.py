"""The bodies of what `words` declares, in LLVM; imported only to compile."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from thresher.data.text import words
from thresher.engine.compile.translate import emits

_BYTE, _HALF, _WORD, _FLOAT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()


def _pointer(builder: Any, address: Any, at: Any, target: Any) -> Any:
    return builder.inttoptr(builder.add(address, at), target.as_pointer())


def _splat(value: int) -> Any:
    return ir.Constant(ir.VectorType(_BYTE, words.WINDOW), [value] * words.WINDOW)


@emits(words.address, lambda array: types.int64)
def _address(context, builder, signature, args):
    data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0]).data
    return builder.ptrtoint(data, _WORD)


@emits(words.byte, types.int64(types.int64, types.int64))
def _byte(context, builder, signature, args):
    pointer = _pointer(builder, args[0], args[1], _BYTE)
    return builder.zext(builder.load(pointer, typ=_BYTE), _WORD)


def _loads(what: Any, kind: Any, result: Any, shift: int = 0) -> None:
    """Let `what` load a `kind` from an address, at a position in units of ``1 << shift`` bytes."""

    @emits(what, result(types.int64, types.int64))
    def load(context, builder, signature, args):
        at = builder.shl(args[1], ir.Constant(_WORD, shift))
        found = builder.load(_pointer(builder, args[0], at, kind), align=1 << shift, typ=kind)
        return builder.zext(found, _WORD) if kind is _HALF else found


def _stores(what: Any, kind: Any, given: Any, shift: int = 0) -> None:
    """Let `what` store a `given` as a `kind` at an address, at a position as for `_loads`."""

    @emits(what, types.void(types.int64, types.int64, given))
    def store(context, builder, signature, args):
        at = builder.shl(args[1], ir.Constant(_WORD, shift))
        value = builder.trunc(args[2], _BYTE) if kind is _BYTE else args[2]
        builder.store(value, _pointer(builder, args[0], at, kind), align=1 << shift)
        return context.get_dummy_value()


_loads(words.load_half, _HALF, types.uint64)
_loads(words.load_word, _WORD, types.uint64)
_loads(words.load_float, _FLOAT, types.float32, 2)
_loads(words.load_double, ir.DoubleType(), types.float64, 3)
_stores(words.store_byte, _BYTE, types.int64)
_stores(words.store_word, _WORD, types.uint64, 3)
_stores(words.store_float, _FLOAT, types.float32, 2)


def _window(builder: Any, args: Any) -> Any:
    """The 64 bytes from position ``args[1]`` on, as a vector."""
    vector = ir.VectorType(_BYTE, words.WINDOW)
    return builder.load(_pointer(builder, args[0], args[1], vector), align=1, typ=vector)


def _mask(builder: Any, flags: Any) -> Any:
    return builder.bitcast(flags, _WORD)


@emits(words.marks, types.UniTuple(types.uint64, 2)(types.int64, types.int64))
def _marks(context, builder, signature, args):
    given = _window(builder, args)
    beyond = builder.icmp_unsigned(">", builder.sub(given, _splat(48)), _splat(9))
    minus = builder.icmp_unsigned("==", given, _splat(45))
    colons = _mask(builder, builder.icmp_unsigned("==", given, _splat(58)))
    minuses = _mask(builder, minus)
    others = builder.and_(_mask(builder, beyond), builder.not_(minuses))
    odd = builder.and_(minuses, builder.not_(builder.shl(colons, ir.Constant(_WORD, 1))))
    return context.make_tuple(builder, signature.return_type, [others, odd])


@emits(words.stops, types.UniTuple(types.uint64, 2)(types.int64, types.int64))
def _stops(context, builder, signature, args):
    given = _window(builder, args)
    colons, bars, minuses = (builder.icmp_unsigned("==", given, _splat(ord(c))) for c in ":|-")
    ends = builder.or_(colons, bars)
    ends = builder.or_(ends, builder.icmp_unsigned("<=", given, _splat(32)))
    beyond = builder.icmp_unsigned(">", builder.sub(given, _splat(48)), _splat(9))
    signs = builder.shl(_mask(builder, colons), ir.Constant(_WORD, 1))
    signs = builder.and_(signs, _mask(builder, minuses))
    unlike = builder.and_(_mask(builder, beyond), builder.not_(signs))
    return context.make_tuple(builder, signature.return_type, [_mask(builder, ends), unlike])


@emits(words.string_stops, types.uint64(types.int64, types.int64))
def _string_stops(context, builder, signature, args):
    given = _window(builder, args)
    quotes, escapes = (builder.icmp_unsigned("==", given, _splat(ord(c))) for c in '"\\')
    found = builder.or_(builder.or_(quotes, escapes), builder.icmp_unsigned("<", given, _splat(32)))
    return _mask(builder, found)


def _every(builder: Any, one: Any, kind: Any, count: int) -> Any:
    """A vector of `count` times the same value."""
    nothing = ir.Constant(ir.VectorType(kind, count), ir.Undefined)
    zeros = ir.Constant(ir.VectorType(_HALF, count), [0] * count)
    return builder.shuffle_vector(builder.insert_element(nothing, one, ir.Constant(_HALF, 0)), nothing, zeros)


@emits(words.separators, types.uint64(types.int64, types.int64, types.int64))
def _separators(context, builder, signature, args):
    given = _window(builder, args)
    wanted = _every(builder, builder.trunc(args[2], _BYTE), _BYTE, words.WINDOW)
    ends = builder.icmp_unsigned("==", given, _splat(10))
    return _mask(builder, builder.or_(builder.icmp_unsigned("==", given, wanted), ends))


@emits(words.rank_eight, types.void(types.int64, types.int64, types.int64, types.int64))
def _rank_eight(context, builder, signature, args):
    vector = ir.VectorType(_WORD, 8)
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


@emits(words.lowest_bit, types.int64(types.uint64))
def _lowest_bit(context, builder, signature, args):
    return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))


@emits(words.bit_length, types.int64(types.uint64))
def _bit_length(context, builder, signature, args):
    zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))
    return builder.sub(ir.Constant(_WORD, 64), zeros)


@emits(words.bits_of, types.uint64(types.float64))
def _bits_of(context, builder, signature, args):
    return builder.bitcast(args[0], _WORD)
