"""The clock of a rule as verbs of a coordinate read it."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic, overload

from thresher.engine.jit import BORROWING


def snapshot(self: Any, clock: Any, S: Any) -> Any:
    """The clock as a tuple in the dtype of S: what `weight` and `step` read as `now`.

    A tuple lives in registers, so a loop over a row loads and rounds it once; and a running sum is
    rounded in the same way when a debt is noted and when it is paid, so that payments add up.
    """
    return tuple(S.dtype.type(value) for value in clock)


@overload(snapshot, jit_options=BORROWING)
def _snapshot(self, clock, S):
    length = len(self.instance_class.CLOCK)

    def impl(self, clock, S):
        return _as_tuple(clock, S, length)

    return impl


@intrinsic
def _as_tuple(typing_context, clock, S, length):
    """The first `length` (a literal) elements of `clock`, cast to the dtype of S, as a tuple."""
    if not isinstance(length, types.IntegerLiteral):
        return None  # Numba then asks again with the literal
    result = types.UniTuple(S.dtype, length.literal_value)

    def codegen(context, builder, signature, args):
        source = signature.args[0]
        data = context.make_array(source)(context, builder, args[0]).data
        items = []
        for k in range(result.count):
            place = builder.gep(data, [context.get_constant(types.intp, k)])
            items.append(context.cast(builder, builder.load(place), source.dtype, S.dtype))
        return context.make_tuple(builder, result, items)

    return result(clock, S, length), codegen
