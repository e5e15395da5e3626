"""A rule's clock in the form that per-coordinate verbs read."""

from __future__ import annotations

from numba import types

from thresher.engine.inplace import data_of, entry, in_place


@in_place(lambda self, clock, S: types.UniTuple(S.dtype, len(self.instance_class.CLOCK)))
def snapshot(self, clock, S):
    """The clock as a tuple in the dtype of S: the argument `now` of `weight` and `step`.

    A tuple stays in registers, so a loop over a row loads and rounds it once. A running sum is rounded in
    the same way when it is noted and when the lazy update is applied, so the differences add up.
    """
    return tuple(clock.astype(S.dtype, copy=False))


@snapshot.emits
def _emit_snapshot(context, builder, signature, values):
    kind, source = signature.return_type, signature.args[1]
    data = data_of(context, builder, source, values[1])
    loaded = (builder.load(entry(builder, data, k)) for k in range(kind.count))
    items = [context.cast(builder, item, source.dtype, kind.dtype) for item in loaded]
    return context.make_tuple(builder, kind, items)
