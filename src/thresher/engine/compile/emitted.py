"""Hand-written bodies of functions, imported only to compile.

The emitted code accesses three kinds of memory that never overlap (stack, tables, scratch) and declares so.
Otherwise LLVM would have to compare addresses before each loop over lanes, and would not vectorise it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, call-overload"

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import arrayobj

from thresher.engine import lanes, lookup, protocol
from thresher.engine.compile.translate import emits
from thresher.engine.lanes import LANES

LINE = 64
"""Bytes per cache line"""
STACK, TABLE, SCRATCH = "stack", "table", "scratch"
WORD: Any = ir.IntType(64)


def load(builder, address, where):
    """Load from an address in one of the three kinds of memory."""
    return _mark_disjoint(builder.load(address), where)


def store(builder, item, address, where):
    """Store to an address in one of the three kinds of memory."""
    _mark_disjoint(builder.store(item, address), where)


def _mark_disjoint(instruction, where):
    module = instruction.module
    note, text = module.add_metadata, partial(ir.MetaDataString, module)
    domain = note([text("thresher")])
    scopes = {place: note([text(place), domain]) for place in (STACK, TABLE, SCRATCH)}
    instruction.set_metadata("alias.scope", note([scopes.pop(where)]))
    instruction.set_metadata("noalias", note([*scopes.values()]))
    return instruction


def data_of(context, builder, kind, array):
    """The address of the first item of an array."""
    return context.make_array(kind)(context, builder, array).data


def entry(builder, data, at):
    """The address of item `at` of a vector."""
    return builder.gep(data, [at if isinstance(at, ir.Value) else WORD(at)])


def loop_of_vectors(module):
    """Metadata for a loop that must be vectorised before it is unrolled."""

    def note(name, *values):
        return module.add_metadata([ir.MetaDataString(module, f"llvm.loop.{name}"), *values])

    vectors = note("isvectorized", ir.IntType(32)(1))
    wishes = [note("unroll.disable"), note("vectorize.followup_vectorized", vectors)]
    loop = ir.values.MDValue(module, wishes, name=str(len(module.metadata)))
    loop.operands = (loop, *wishes)  # LLVM requires that it refers to itself
    return loop


def room(context, builder, kind, shape):
    """An array of this type on the stack."""
    item = context.get_data_type(kind.dtype)
    size, itemsize = int(np.prod(shape)), context.get_abi_sizeof(item)
    memory = cgutils.alloca_once(builder, ir.ArrayType(item, size))
    memory.align = LINE
    made = context.make_array(kind)(context, builder)
    arrayobj.populate_array(
        made,
        data=builder.bitcast(memory, item.as_pointer()),
        shape=[WORD(n) for n in shape],
        strides=[WORD(itemsize * int(np.prod(shape[axis + 1 :]))) for axis in range(len(shape))],
        itemsize=WORD(itemsize),
        meminfo=None,
    )
    return made


def emit_prefetch(builder: Any, address: Any) -> None:
    """Prefetch the cache line that contains `address`, a number."""
    flags = [ir.Constant(ir.IntType(32), value) for value in (0, 3, 1)]  # to read, to keep, data
    pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, *(flag.type for flag in flags)])
    builder.call(
        cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8"), [pointer, *flags]
    )


def _scalars(signature):
    return len(signature.args[0].types[0].instance_class.CLOCK)


def _of_lane(builder, data, line, k):
    line = WORD(line) if isinstance(line, int) else line
    return entry(builder, data, builder.add(builder.mul(line, WORD(LANES)), k))


def _addresses(context, builder, signature, memory, *at):
    """The addresses of the scalars of a clock, or of the columns of a row, of a lane; the kind of memory."""
    data, (*row, k) = data_of(context, builder, signature.args[1], memory), at
    if not row:
        return [_of_lane(builder, data, c, k) for c in range(_scalars(signature))], STACK
    columns = len(signature.args[0].types[0].instance_class.SLOTS)
    first = builder.mul(row[0] if row[0].type == WORD else builder.zext(row[0], WORD), WORD(columns))
    return [_of_lane(builder, data, builder.add(first, WORD(c)), k) for c in range(columns)], TABLE


@emits(lanes.each_lane, lambda body, args: types.void)
def _emit_each_lane(context, builder, signature, values):
    body, given = signature.args
    wanted = context.typing_context.resolve_function_type(body, (types.intp, *given.types), {})
    function = context.get_function(body, wanted)
    casts = zip(cgutils.unpack_tuple(builder, values[1]), given.types, wanted.args[1:], strict=True)
    items = [context.cast(builder, *cast) for cast in casts]
    before, loop, after = builder.block, *(builder.append_basic_block(name) for name in ("lane", "lanes"))
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(WORD)
    k.add_incoming(WORD(0), before)
    function(builder, [k, *items])
    following = builder.add(k, WORD(1))
    k.add_incoming(following, builder.block)
    back = builder.cbranch(builder.icmp_unsigned("<", following, WORD(LANES)), loop, after)
    back.set_metadata("llvm.loop", loop_of_vectors(builder.module))
    builder.position_at_end(after)
    return context.get_dummy_value()


@emits(lanes.part_of, lambda parts, k: parts.types[0])
def _emit_part(context, builder, signature, values):
    parts, k = values
    template, columns = signature.args[0].types
    given = builder.extract_value(parts, 1)
    leaves = iter(enumerate(columns.types))

    def emit(kind, value):
        items = []
        for place, inner in enumerate(kind.types):
            item = builder.extract_value(value, place)
            if isinstance(inner, types.BaseTuple):
                item = emit(inner, item)
            else:
                leaf, column = next(leaves)
                if column != types.none:
                    data = data_of(context, builder, column, builder.extract_value(given, leaf))
                    item = load(builder, entry(builder, data, k), STACK)
            items.append(item)
        return context.make_tuple(builder, kind, items)

    return emit(template, builder.extract_value(parts, 0))


@emits(lanes.on_stack, lambda parts: parts)
def _emit_on_stack(context, builder, signature, values):
    kind = signature.args[0].types[1]
    template, columns = cgutils.unpack_tuple(builder, values[0])
    items = cgutils.unpack_tuple(builder, columns)
    for place, column in enumerate(kind.types):
        if column != types.none:
            made = room(context, builder, column, (LANES,))
            source, size = data_of(context, builder, column, items[place]), made.itemsize
            cgutils.raw_memcpy(builder, made.data, source, WORD(LANES), size)
            items[place] = made._getvalue()
    return context.make_tuple(
        builder, signature.return_type, [template, context.make_tuple(builder, kind, items)]
    )


@emits(lanes.lanes_like, lambda value: types.Array(types.unliteral(value), 1, "C"))
@emits(lanes.clocks_like, lambda parts, value: types.Array(types.unliteral(value), 2, "C"))
def _emit_room(context, builder, signature, values):
    scalars = [_scalars(signature)] if signature.return_type.ndim == 2 else []
    return room(context, builder, signature.return_type, (*scalars, LANES))._getvalue()


@emits(lanes.clock_of, lambda parts, clocks, k: types.Array(clocks.dtype, 1, "C"))
@emits(lanes.row_of, lambda parts, S, j, k: types.Array(S.dtype, 2, "C"))
def _emit_copy(context, builder, signature, values):
    addresses, where = _addresses(context, builder, signature, *values[1:])
    shape = (1,) * (signature.return_type.ndim - 1) + (len(addresses),)
    made = room(context, builder, signature.return_type, shape)
    for c, address in enumerate(addresses):
        builder.store(load(builder, address, where), entry(builder, made.data, c))
    return made._getvalue()


@emits(lanes.put_clock, lambda parts, clocks, k, clock, wanted: types.void)
@emits(lanes.put_row, lambda parts, S, j, k, row, wanted: types.void)
def _emit_put_copy(context, builder, signature, values):
    *place, copy, wanted = values
    source = data_of(context, builder, signature.args[-2], copy)
    addresses, where = _addresses(context, builder, signature, *place[1:])
    for c, address in enumerate(addresses):
        new, old = builder.load(entry(builder, source, c)), load(builder, address, where)
        store(builder, builder.select(wanted, new, old), address, where)
    return context.get_dummy_value()


@emits(
    lanes.now_of, lambda parts, nows, k: types.UniTuple(nows.dtype, len(parts.types[0].instance_class.CLOCK))
)
def _emit_now(context, builder, signature, values):
    addresses, where = _addresses(context, builder, signature, *values[1:])
    items = [load(builder, address, where) for address in addresses]
    return context.make_tuple(builder, signature.return_type, items)


@emits(lanes.fetch_lanes, lambda parts, S, j: types.void)
def _emit_fetch(context, builder, signature, values):
    (first, *more), _ = _addresses(context, builder, signature, *values[1:], WORD(0))
    item = context.get_data_type(signature.args[1].dtype)
    size = (1 + len(more)) * LANES * context.get_abi_sizeof(item)
    for begin in range(0, size, LINE):
        emit_prefetch(builder, builder.add(builder.ptrtoint(first, WORD), WORD(begin)))
    return context.get_dummy_value()


def _number(context, builder, kinds, numbers, place):
    """The address of the number at a place, and the kind of memory where it is."""
    *entry, k = cgutils.unpack_tuple(builder, place) if isinstance(kinds[1], types.BaseTuple) else [place]
    address = _of_lane(builder, data_of(context, builder, kinds[0], numbers), *entry or (0,), k)
    return address, SCRATCH if entry else STACK


@emits(lanes.take, lambda numbers, place: numbers.dtype)
def _emit_take(context, builder, signature, values):
    return load(builder, *_number(context, builder, signature.args, *values))


@emits(lanes.put, lambda numbers, place, value: types.void)
def _emit_put(context, builder, signature, values):
    *at, value = values
    item = context.cast(builder, value, signature.args[2], signature.args[0].dtype)
    store(builder, item, *_number(context, builder, signature.args, *at))
    return context.get_dummy_value()


@emits(lookup.fetch, lambda array, at: types.void)
def _emit_fetch_row(context, builder, signature, values):
    given = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=values[0])
    at = context.cast(builder, values[1], signature.args[1], types.uint64)
    offset = builder.mul(at, builder.extract_value(given.strides, 0))
    emit_prefetch(builder, builder.add(builder.ptrtoint(given.data, ir.IntType(64)), offset))
    return context.get_dummy_value()


@emits(protocol.snapshot, lambda self, clock, S: types.UniTuple(S.dtype, len(self.instance_class.CLOCK)))
def _emit_snapshot(context, builder, signature, values):
    kind, source = signature.return_type, signature.args[1]
    data = data_of(context, builder, source, values[1])
    loaded = (builder.load(entry(builder, data, k)) for k in range(kind.count))
    items = [context.cast(builder, item, source.dtype, kind.dtype) for item in loaded]
    return context.make_tuple(builder, kind, items)
