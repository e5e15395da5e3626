"""The state of a rule for classes: each has the next free output from its first example on.

Before, that output has a slope of zero and is no part of any loss, so a class is known late or early with the
same bits. If classes are not given, there is always a free output, and one more is a copy of it: it is zero,
and its clock is that of an output that has learned nothing so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.engine.index import Index, Resolved
from thresher.engine.sound import Array, Tensors, check_tensor, require
from thresher.learning.model.objective import F64, Objective
from thresher.learning.model.rule_state import F32, ManyState, Minimum

if TYPE_CHECKING:
    from thresher.learning.model.single_rows import RowBuffers


class ClassState(ManyState):
    """The state of outputs that are classes, in the order in which these were met."""

    def __init__(
        self, head: Objective, rule: Any, dtype: Any, index: Index, batch: int, calibrate: bool
    ) -> None:
        super().__init__(head, rule, dtype, index, batch, calibrate)
        self._most = head.outputs.most or head.count
        """of the classes that may come"""
        self._output_of = np.full(self._most, -1)
        """the output of each class; -1, which as an index is the last, a free one, for those not met yet"""
        self._met = np.zeros(1, np.int64)
        """how many classes were met: an array, as compiled code reads it"""

    @property
    def known(self) -> Array:
        """The classes met so far, in that order."""
        return np.argsort(self._output_of)[self._most - self._met.item() :]

    def _know(self, classes: Array) -> None:
        """Replace the classes met so far."""
        self._output_of.fill(-1)
        self._output_of[classes], self._met[0] = np.arange(len(classes)), len(classes)

    def _met_with(self, classes: Array) -> tuple[Array, Array]:
        """The outputs of the classes of examples ``(n,)``, and how many classes are met with each."""
        found, known = self._output_of[classes], np.full(len(classes), self._met.item())
        if len(found) and found.min() < 0:
            new, after = [*dict.fromkeys(classes[found < 0].tolist())], self._output_of.copy()
            after[new] = self._met.item() + np.arange(len(new))
            found = after[classes]
            known = np.maximum(np.maximum.accumulate(found + 1), known)
        return found, known

    def targets(self, chunk: Chunk) -> F32:
        """As in `RuleState`; makes room for the classes of these rows."""
        found = super().targets(chunk)
        if self.head.outputs.most and len(found):
            _, known = self._met_with(found[:, 0].astype(np.int64))
            self._make_room(int(known[-1]))
            self.head.meet(int(found.max()) + 1)
        return found

    def has_met(self, label: float) -> bool:
        """As in `RuleState`."""
        return bool(self._output_of.item(int(label) - self.head.outputs.low) >= 0)

    def _make_room(self, count: int) -> None:
        """Have outputs for so many classes and a free one, unless none is left; new ones are copies of it."""
        have = self.S.shape[2]
        missing = min(count + 1, self._most) - have
        if missing > 0:
            more = max(missing, have // 4)
            self.S, self.B = (_widen(table, -1, more) for table in (self.S, self.B))
            if self.own_clocks:
                self.clock, self.bclock = (_widen(one, 0, more) for one in (self.clock, self.bclock))

    def learn(
        self, resolved: Resolved, lo: int, targets: F32, weights: F32, offsets: F32 | None, longest: int
    ) -> int:
        """As in `ManyState`, with the classes of examples as targets."""
        hi, own, known = resolved.hi, np.empty_like(targets), np.empty(resolved.hi, np.int64)
        classes = targets[lo:hi, 0].astype(np.int64)
        found, known[lo:] = self._met_with(classes)
        own[lo:hi, 0] = found
        done: int = self._learn(*self._call(known, resolved, lo, own, weights, offsets, longest))
        if done > lo and known[done - 1] > self._met.item():
            self._output_of[classes[: done - lo]], self._met[0] = found[: done - lo], known[done - 1]
        return done

    def learner_of_row(self, arrays: RowBuffers) -> Callable[[], bool] | None:
        """As in `RuleState`; the row must be of a class that was met."""
        if self.calibration is not None:
            return None
        compiled, output_of, low, label = self._learn, self._output_of, self.head.outputs.low, arrays.label
        row, target = Resolved(1, arrays.ends, arrays.rows, arrays.values), np.zeros((1, 1), np.float32)
        args = self._call(self._met, row, 0, target, arrays.weights, None, len(arrays.rows))

        def learn() -> bool:
            target[0, 0] = output_of.item(int(label.item()) - low)
            return bool(compiled(*args))

        return learn

    def reader_of_row(self, arrays: RowBuffers) -> Callable[[Any, int], F64] | None:
        """As in `RuleState`."""
        read = super().reader_of_row(arrays)
        return read and (lambda model, total: self._in_order(read(model, total), masked=True))

    def _in_order(self, found: Array, masked: bool = False) -> Array:
        """As in `RuleState`, of the classes; of those not met yet what a free output has."""
        places = self._output_of[: self.head.count]
        found = found.take(places, -1)
        if masked and 0 < self._met.item() < self.head.count:
            found[..., places < 0] = -np.inf
        return found

    def margins(self, chunk: Chunk, bias: Array) -> F64:
        """As in `RuleState`."""
        return self._in_order(super().margins(chunk, np.zeros(self.S.shape[2], self.dtype))) + bias

    def last_margins(self) -> tuple[float, float]:
        """As in `RuleState`, the class."""
        first, heaviest = super().last_margins()
        return first, float(self.known[int(heaviest)]) if self._met.item() else 0.0

    def place(self, keys: NDArray[np.uint64], weights: Array, bias: Array) -> None:
        """As in `RuleState`; classes with an intercept of -inf stay unmet."""
        known = np.flatnonzero(~np.isneginf(bias))
        self._know(known)
        self._make_room(len(known))
        rest = self.S.shape[2] - len(known)
        super().place(keys, np.pad(weights[:, known], ((0, 0), (0, rest))), np.pad(bias[known], (0, rest)))

    def place_measured(
        self, keys: NDArray[np.uint64], scales: F64, size: float, solutions: Sequence[Minimum]
    ) -> None:
        """As in `RuleState`; those of classes not met do not matter."""
        nothing, known = np.zeros(len(keys) + len(self.B)), self.known
        free = Minimum(nothing, nothing, nothing, np.zeros((0, 2)))
        each = [*(solutions[k] for k in known), *[free] * (self.S.shape[2] - len(known))]
        super().place_measured(keys, scales, size, each)

    def beside_rows(self) -> list[Array]:
        """As in `RuleState`."""
        return [*super().beside_rows(), self._output_of, self._met]

    def state(self) -> dict[str, Array]:
        """As in `RuleState`, with the classes met; without free outputs but one, if classes are not given."""
        now, known = super().state(), self.known
        count = self._outputs_for(len(known))
        now |= {name: now[name][..., :count] for name in ("S", "B")}
        if self.own_clocks:
            now |= {name: now[name][:count] for name in ("clock", "bclock")}
        return now | {"classes": known}

    def _outputs_for(self, known: int) -> int:
        """How many outputs a state with so many classes has."""
        return min(known + 1, self._most) if self.head.outputs.most else self._most

    def check(self, state: Tensors, rows: int, steps: int, outputs: int | None = None) -> None:
        """As in `RuleState`."""
        known = check_tensor(state, "classes", (None,), np.int64)
        sound = len(np.unique(known)) == len(known) <= self._most
        sound = sound and bool(((known >= 0) & (known < self._most)).all())
        require(sound, "classes", f"expected different numbers from 0 to {self._most - 1}")
        super().check(state, rows, steps, self._outputs_for(len(known)))

    def restore(self, state: dict[str, Array]) -> None:
        """As in `RuleState`."""
        super().restore(state)
        self._know(state["classes"])
        self.head.meet(int(state["classes"].max(initial=-1)) + 1)


def _widen(table: Array, axis: int, more: int) -> Array:
    """The table with copies of the last output after it."""
    last = np.take(table, [-1] * more, axis)
    return np.ascontiguousarray(np.concatenate([table, last], axis))
