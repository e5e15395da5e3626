"""Up to eight loops of one class of rule and loss that learn together. See `engine.lanes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import read_only
from thresher.engine import kernels
from thresher.engine.index import Resolved
from thresher.engine.lanes import LANES, LaneStream, learn_lanes, side_by_side
from thresher.engine.lookup import resize
from thresher.engine.protocol import writes
from thresher.engine.sound import Array
from thresher.learning.model.margins import Read
from thresher.learning.model.rule_state import F32, ManyState, OneState

FEW = 4
"""Fewer loops learn one after another: eight lanes take as long as three or four of them."""


class EightLanes:
    """Tables, clocks, intercepts and sums of up to eight loops, with LANES as the last axis.

    `alive` tells which lanes learn, and `read` which are read; unused lanes never do, and never are.
    """

    def __init__(self, loops: Sequence[OneState]) -> None:
        one, every = loops[0], [*loops, *[loops[0]] * (LANES - len(loops))]
        self.index, self.dtype = one.index, one.dtype
        self.read = np.arange(LANES) < len(loops)
        self.alive = self.read.astype(np.uint8)
        self.clocks, self.bclocks = (
            np.array([getattr(loop, n) for loop in every]) for n in ("clock", "bclock")
        )
        self.tally = np.zeros((LANES, one.tally.size))
        self.B: Array = np.zeros((*one.B.shape, LANES), one.dtype)
        self.S: Array = np.zeros((0, *one.S.shape[1:], LANES), one.dtype)
        self.index.join(self)
        each = zip(*((loop.head.loss, *loop.rules) for loop in every), strict=True)
        self.parts = tuple(side_by_side(kind) for kind in each)
        self._row_rules = [loop.rules[1] for loop in every]
        self._learn = learn_lanes.for_parts(one.head.loss, one.rule, one.bias_rule)
        self._piece: Resolved | None = None
        self._ends: dict[int, int] = {}

    def learn(
        self, k: int, piece: Resolved, lo: int, targets: F32, weights: F32, offsets: F32 | None, longest: int
    ) -> int:
        """Learn a piece in all lanes when the first one asks; return the first row lane k has not learned.

        If the loss of some is not finite, the others continue.
        """
        if self._piece is piece and k in self._ends:
            return self._ends.pop(k)
        indptr, rows, values = map(read_only, piece[1:])
        stream = LaneStream(indptr, rows, values, read_only(targets), read_only(weights), offsets)
        state = self.S, self.clocks, self.B, self.bclocks
        sums, fallen = (self.index.seen, self.tally, self.alive), [k]
        self._piece, self._ends = piece, {}
        while fallen:
            living = self.alive.copy()
            lo = self._learn(self.parts, *state, stream, lo, piece.hi, longest, *sums)
            fallen = np.flatnonzero(living != self.alive).tolist()
            self._ends |= dict.fromkeys(fallen, lo)
            if lo == piece.hi or not self.alive.any():
                break
        self._ends |= dict.fromkeys(np.flatnonzero(self.alive).tolist(), lo)
        return self._ends.pop(k)

    def idle(self, count: int) -> NDArray[np.bool_]:
        """Which of the first `count` rows are equivalent to zeros in every lane that is read."""
        idle, own = np.ones(count, np.bool_), np.empty(count, np.bool_)
        for k in np.flatnonzero(self.read):
            rule, rows = self._row_rules[k], np.ascontiguousarray(self.S[:count, :, k])
            kernels.idle_rows.for_parts(rule)(rule, rows, self.clocks[k], own)
            idle &= own
        return idle

    def moved(self, count: int) -> None:
        """Do nothing: no state refers to rows."""


def _of_lane(name: str, axis: int) -> object:
    """What eight lanes hold for one, as a view on its array of this `name`; setting it writes there."""

    def view(loop: LaneState) -> Array:
        whole: Array = getattr(loop.holder, name)
        return whole[loop.lane] if axis == 0 else whole[..., loop.lane]

    def put(loop: LaneState, given: Array) -> None:
        if len(given) != len(view(loop)):
            setattr(loop.holder, name, resize(getattr(loop.holder, name), len(given)))
        view(loop)[...] = given

    return property(view, put)


class LaneState(OneState):
    """Lane `lane` of eight, which hold its state and learn for it."""

    watches = False
    S: Any = _of_lane("S", -1)
    B: Any = _of_lane("B", -1)
    clock: Any = _of_lane("clocks", 0)
    bclock: Any = _of_lane("bclocks", 0)
    tally: Any = _of_lane("tally", 0)

    def __init__(self, eight: EightLanes, k: int, loop: OneState) -> None:
        self.holder, self.lane = eight, k
        super().__init__(loop.head, loop.rule, loop.dtype, loop.index)

    def learn(
        self, resolved: Resolved, lo: int, targets: F32, weights: F32, offsets: F32 | None, longest: int
    ) -> int:
        """As in `OneState`."""
        done: int = self.holder.learn(self.lane, resolved, lo, targets, weights, offsets, longest)
        return done

    def leave(self, read: bool) -> None:
        """As in `RuleState`."""
        self.holder.alive[self.lane], self.holder.read[self.lane] = 0, read

    def _read_from(self, row_rule: Any, S: Array, clock: Array) -> Read:
        """Read from copies of the rows: kernels need the columns of a row contiguous."""
        read_from = super()._read_from

        def read(rows: Array, out: Array) -> None:
            places, begin = (
                read_only(np.arange(len(rows), dtype=rows.dtype)),
                int(rows[0]) if len(rows) else 0,
            )
            # copying a slice takes a fifth of the time of copying the same rows one by one
            consecutive = (rows - begin == places).all()
            found = S[begin : begin + len(rows)] if consecutive else S[rows]
            read_from(row_rule, np.ascontiguousarray(found), clock)(places, out)

        return read


def batch_lanes(loops: Sequence[OneState | ManyState]) -> list[OneState | ManyState]:
    """These loops, which must be untrained, with each `FEW` or more of a kind replaced by lanes of eight."""
    kinds: dict[Any, list[tuple[int, OneState]]] = {}
    for place, loop in enumerate(loops if len(loops) >= FEW else ()):
        coupled = any(writes(type(loop.rule), verb) for verb in ("constrain", "relocate"))
        # an example must change only its own rows, and the state be only rows and clocks
        plain = loop.history is None and loop.calibration is None and not coupled
        if isinstance(loop, OneState) and plain:
            kind = *map(_without_numbers, (loop.head.loss, *loop.rules[::2])), loop.dtype, len(loop.B)
            kinds.setdefault(kind, []).append((place, loop))
    found = list(loops)
    for alike in kinds.values():
        for begin in range(0, len(alike), LANES):
            chosen = alike[begin : begin + LANES]
            if len(chosen) >= FEW:
                eight = EightLanes([loop for _, loop in chosen])
                for k, (place, loop) in enumerate(chosen):
                    found[place] = LaneState(eight, k, loop)
    return found


def _without_numbers(value: object) -> object:
    """A part with types for float values: its class, its flags, and the same for nested parts."""
    if isinstance(value, tuple):
        return type(value), *(_without_numbers(inner) for inner in value)
    return float if isinstance(value, float) else value
