"""Plain Python functions with a hand-written body in compiled code; the clock as verbs read it.

The emitted code accesses three kinds of memory that never overlap (stack, tables, scratch) and declares so.
Otherwise LLVM would have to compare addresses before each loop over lanes, and would not vectorise it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.extending import type_callable

LINE = 64
"""Bytes per cache line"""
STACK, TABLE, SCRATCH = "stack", "table", "scratch"
WORD: Any = ir.IntType(64)


class InPlace:
    """A plain Python function with a hand-written body in compiled code.

    `typer` maps the types of its parameters to the type of its result. Numba does not treat it as a
    function, because it would count references for functions that create arrays.
    """

    def __init__(self, plain: Callable[..., Any], typer: Callable[..., Any]) -> None:
        functools.update_wrapper(self, plain)
        self.plain = plain
        typing: Any = type_callable(self)
        typing(lambda context: typer)

    def __call__(self, *args: Any) -> Any:
        """Call the plain Python function."""
        return self.plain(*args)

    def emits(self, emit: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator for the function that emits the body: ``(context, builder, signature, values)``."""
        lowering: Any = lower_builtin(self, types.VarArg(types.Any))
        lowering(emit)
        return emit


def in_place(typer: Callable[..., Any]) -> Callable[[Callable[..., Any]], InPlace]:
    """Decorator that turns a function into an `InPlace`."""
    return lambda plain: InPlace(plain, typer)


def load(builder, address, where):
    """Load from an address in one of the three kinds of memory."""
    return _mark_disjoint(builder.load(address), where)


def store(builder, item, address, where):
    """Store to an address in one of the three kinds of memory."""
    _mark_disjoint(builder.store(item, address), where)


def _mark_disjoint(instruction, where):
    module = instruction.module

    def note(*values):
        return module.add_metadata(values)

    domain = note(ir.MetaDataString(module, "thresher"))
    scopes = {place: note(ir.MetaDataString(module, place), domain) for place in (STACK, TABLE, SCRATCH)}
    instruction.set_metadata("alias.scope", note(scopes.pop(where)))
    instruction.set_metadata("noalias", note(*scopes.values()))
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


@in_place(lambda self, clock, S: types.UniTuple(S.dtype, len(self.instance_class.CLOCK)))
def snapshot(self, clock, S):
    """The clock as a tuple in the dtype of S: the argument `now` of `weight` and `step`.

    A tuple stays in registers, so a loop over a row loads and rounds it once. A running sum is rounded in
    the same way when it is noted and when the lazy update is applied, so the differences add up.

    If the verbs got the clock as an array of float64, every read would be a load and a conversion: truncated
    gradient took 4.7 ns per non-zero. With the tuple it takes 2.6, and plain C 2.35.
    """
    return tuple(clock.astype(S.dtype, copy=False))


@snapshot.emits
def _emit_snapshot(context, builder, signature, values):
    kind, source = signature.return_type, signature.args[1]
    data = data_of(context, builder, source, values[1])
    loaded = (builder.load(entry(builder, data, k)) for k in range(kind.count))
    items = [context.cast(builder, item, source.dtype, kind.dtype) for item in loaded]
    return context.make_tuple(builder, kind, items)
