"""Rules whose weights keep a sign: classes that are made from that of a rule, and clamp its weights.

With a convex separable objective, the minimum over w_j >= 0 is the minimum over all w_j, clamped at zero. So
projected gradient steps, proximal steps and dual averaging under the constraint are those of the rule, with
max(0, w_j) in place of w_j wherever a weight is read. Between two gradients no weight changes its sign, so
this commutes with the lazy update. Steps take the weight from their argument `w`, so they start from the
clamped one; a rule whose steps take it from column 0 of the row names these verbs in `CLAMPS`, and after them
the column becomes zero where the weight has the wrong sign.

The signs of some rows are in a further column (`LISTED`), which no common scale multiplies: 1, -1, or 0 for a
weight of any sign. A row with a sign is never idle, so it keeps it. If all weights have the same sign, rows
have no such column.

It is a class of its own, not a field of each rule, so a model without constraints runs the code that it ran
before.
"""

from __future__ import annotations

import functools
import sys
from types import FunctionType
from typing import Any

from thresher.engine.compile.jit import scalar
from thresher.engine.protocol import writes

FIRST = 0  # the column of S that `CLAMPS` is about
NONNEGATIVE, NONPOSITIVE, LISTED = 1.0, -1.0, 0.0
_PREFIXES = {NONNEGATIVE: "Nonnegative", NONPOSITIVE: "Nonpositive", LISTED: "Signed"}


@functools.cache  # rules share methods
def _compiled(method: FunctionType) -> Any:
    """A copy, since what is declared of a method is part of the key of the rule's own code."""
    given = method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__
    return scalar(FunctionType(*given))


@functools.cache
def clamped_class(cls: Any, sign: float) -> Any:
    """The class of a rule of class `cls` whose weights have this `sign`, or each that of its row (`LISTED`).

    It is a class of the module of `cls`, where the cache of compiled code finds it by name.
    """
    place, read, listed = len(cls.SLOTS), _compiled(cls.weight), sign == LISTED

    @scalar
    def wrong(S, j, w):  # false for NaN, which is found later
        return (S[j, place] if listed else sign) * w < 0

    def weight(self, S, j, now):
        w = read(self, S, j, now)
        return S.dtype.type(0) if wrong(S, j, w) else w

    def intercept(self):
        return tuple.__new__(self.BASE, self).intercept()

    def then_clamped(step: Any) -> Any:
        def stepped(self, S, j, w, x, slope, now):
            step(self, S, j, w, x, slope, now)
            if wrong(S, j, read(self, S, j, now)):
                S[j, FIRST] = 0

        return stepped

    own: dict[str, Any] = {"BASE": cls, "__module__": cls.__module__, "__slots__": ()}
    own |= {"weight": weight, "intercept": intercept}
    own |= {name: then_clamped(_compiled(getattr(cls, name))) for name in cls.CLAMPS}
    if writes(cls, "area"):
        sum_up = _compiled(cls.area)

        def area(self, S, j, n, sums, now):
            w = sum_up(self, S, j, n, sums, now)
            return S.dtype.type(0) if wrong(S, j, w) else w

        own["area"] = area
    if listed:
        unused = _compiled(cls.idle)

        def idle(self, S, j, w, now):
            return S[j, place] == 0 and unused(self, S, j, w, now)

        own |= {"SLOTS": (*cls.SLOTS, "sign"), "idle": idle, "unscaled": lambda self: 1}
    made = type(_PREFIXES[sign] + cls.__name__, (cls,), own)
    setattr(sys.modules[cls.__module__], made.__qualname__, made)
    return made
