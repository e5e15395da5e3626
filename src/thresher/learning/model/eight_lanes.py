"""Octets: up to eight loops of one class of rule and loss that learn together. See `engine.lanes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import read_only
from thresher.engine import kernels
from thresher.engine.index import Resolved
from thresher.engine.lanes import LANES, LaneStream, learn_lanes, side_by_side
from thresher.engine.lookup import resized
from thresher.engine.protocol import in_dtype, writes
from thresher.learning.model.margins import Read
from thresher.learning.model.rule_state import F32, ManyState, OneState

Array = NDArray[Any]
FEW = 4
"""Fewer loops learn one after another: an octet takes as long as three or four of them."""


class EightLanes:
    """Tables, clocks, intercepts and sums of up to eight loops, with LANES as the last axis.

    `alive` tells which lanes learn; unused lanes never do.
    """

    def __init__(self, loops: Sequence[OneState]) -> None:
        one, every = loops[0], [*loops, *[loops[0]] * (LANES - len(loops))]
        self.index, self.dtype = one.index, one.dtype
        self._read = np.arange(LANES) < len(loops)
        self.alive = self._read.astype(np.uint8)
        self.clocks, self.bclocks = (
            np.array([getattr(loop, n) for loop in every]) for n in ("clock", "bclock")
        )
        self.tally = np.zeros((LANES, one.tally.size))
        self.B: Array = np.zeros((*one.B.shape, LANES), one.dtype)
        self.S: Array = np.zeros((0, *one.S.shape[1:], LANES), one.dtype)
        self.index.join(self)
        rules, self._row_rules, bias_rules, bias_row_rules = (
            [in_dtype(rule, dtype) for rule in given]
            for given in ([loop.rule for loop in every], [loop.bias_rule for loop in every])
            for dtype in (np.float64, one.dtype)
        )
        kinds = [loop.head.loss for loop in every], rules, self._row_rules, bias_rules, bias_row_rules
        self.parts = tuple(map(side_by_side, kinds))
        self._learn = learn_lanes.for_parts(one.head.loss, one.rule, one.bias_rule)
        self._piece: Resolved | None = None
        self._ends: dict[int, int] = {}

    def learn(
        self, k: int, piece: Resolved, targets: F32, weights: F32, offsets: F32 | None, lo: int, longest: int
    ) -> int:
        """Learn a piece in all lanes when the first one asks; return the first row lane k has not learned.

        If the loss of some is not finite, the others continue.
        """
        if self._piece is piece and k in self._ends:
            return self._ends.pop(k)
        added = None if offsets is None else read_only(offsets)
        indptr, rows, values = map(read_only, piece[1:])
        stream = LaneStream(indptr, rows, values, read_only(targets), read_only(weights), added)
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

    def leave(self, k: int) -> None:
        """Lane k stops learning and is not read any more."""
        self.alive[k], self._read[k] = 0, False

    def idle(self, count: int) -> NDArray[np.bool_]:
        """Which of the first `count` rows are equivalent to zeros in every lane that is read."""
        idle, own = np.ones(count, np.bool_), np.empty(count, np.bool_)
        for k in np.flatnonzero(self._read):
            rule, rows = self._row_rules[k], np.ascontiguousarray(self.S[:count, :, k])
            kernels.idle_rows.for_parts(rule)(rule, rows, self.clocks[k], own)
            idle &= own
        return idle

    def moved(self, count: int) -> None:
        """Do nothing: no state refers to rows."""


class _OfLane:
    """What an octet holds for a lane, as a view; setting it writes there."""

    def __init__(self, name: str, axis: int) -> None:
        self._name, self._axis = name, axis
        """of the array, and the axis of its lanes"""

    def __get__(self, loop: LaneState, kind: Any = None) -> Array:
        return self._view(loop)

    def __set__(self, loop: LaneState, given: Array) -> None:
        if len(given) != len(self._view(loop)):
            whole = getattr(loop.holder, self._name)
            setattr(loop.holder, self._name, resized(whole, len(given)))
        self._view(loop)[...] = given

    def _view(self, loop: LaneState) -> Array:
        whole: Array = getattr(loop.holder, self._name)
        return whole[loop.lane] if self._axis == 0 else whole[..., loop.lane]


class LaneState(OneState):
    """Lane `lane` of an octet, which holds its state and learns for it."""

    watches = False
    S: Any = _OfLane("S", -1)
    B: Any = _OfLane("B", -1)
    clock: Any = _OfLane("clocks", 0)
    bclock: Any = _OfLane("bclocks", 0)
    tally: Any = _OfLane("tally", 0)

    def __init__(self, octet: EightLanes, k: int, loop: OneState) -> None:
        self._octet, self.lane = octet, k
        super().__init__(loop.head, loop.rule, loop.dtype, loop.index)

    def _begin(self, clocks: int | None, columns: int) -> None:
        """Do nothing: the octet has set the initial state."""

    @property
    def holder(self) -> Any:
        """The octet."""
        return self._octet

    @property
    def parts(self) -> Any:
        """The parts of all lanes, side by side."""
        return self._octet.parts

    def learn(
        self, resolved: Resolved, targets: F32, weights: F32, offsets: F32 | None, lo: int, longest: int
    ) -> int:
        """As in `OneState`."""
        return self._octet.learn(self.lane, resolved, targets, weights, offsets, lo, longest)

    def rest(self) -> None:
        """Stop learning; keep the state as it is."""
        self._octet.alive[self.lane] = 0

    def leave(self) -> None:
        """Stop learning and being read: rows that only this loop needs may be freed."""
        self._octet.leave(self.lane)

    def _read_from(self, row_rule: Any, S: Array, clock: Array) -> Read:
        """Read from copies of the rows: kernels need the columns of a row contiguous."""
        read_from = super()._read_from

        def read(rows: Array, out: Array) -> None:
            places = read_only(np.arange(len(rows), dtype=rows.dtype))
            read_from(row_rule, np.ascontiguousarray(S[rows]), clock)(places, out)

        return read

    def state(self) -> dict[str, Array]:
        """Rows, clocks, intercept and sums."""
        return {name: np.ascontiguousarray(array) for name, array in super().state().items()}


def batched(loops: Sequence[OneState | ManyState]) -> list[OneState | ManyState]:
    """These loops, which must be untrained, with each `FEW` or more of a kind replaced by lanes of octets."""
    kinds: dict[Any, list[tuple[int, OneState]]] = {}
    for place, loop in enumerate(loops):
        coupled = any(writes(type(loop.rule), verb) for verb in ("constrain", "relocate"))
        # an example must change only its own rows, and the state be only rows and clocks
        plain = loop.history is None and loop.calibration is None and not coupled
        if isinstance(loop, OneState) and plain:
            made = (loop.head.loss, *(in_dtype(rule, np.float64) for rule in (loop.rule, loop.bias_rule)))
            kind = *map(_without_numbers, made), loop.dtype, len(loop.B)
            kinds.setdefault(kind, []).append((place, loop))
    found = list(loops)
    for alike in kinds.values():
        for begin in range(0, len(alike), LANES):
            chosen = alike[begin : begin + LANES]
            if len(chosen) >= FEW:
                octet = EightLanes([loop for _, loop in chosen])
                for k, (place, loop) in enumerate(chosen):
                    found[place] = LaneState(octet, k, loop)
    return found


def _without_numbers(value: Any) -> Any:
    """A part with types for float values: its class, its flags, and the same for nested parts."""
    if isinstance(value, tuple):
        return type(value), *(_without_numbers(inner) for inner in value)
    return float if isinstance(value, float) else value
