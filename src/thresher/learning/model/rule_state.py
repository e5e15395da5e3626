"""The state of a rule in a table, and the compiled loops over it, for one output and for many.

The origin of the intercepts is zero, or the first label. Squared loss, absolute loss and similar losses do
not change when labels and margins are shifted by the same amount. For these a rule may request, with
``begun`` and ``origin`` in the CLOCK of its intercept, to learn labels relative to the first one, which is
added back wherever the intercept is read. Years and prices are then no further from zero than from each
other.

So an origin is a subtraction, not a rule: no kernel, table or format is involved. Without it, the step size
of a rule that measures targets shrinks before the intercept has converged (housing with prices + 1e5: RMSE
3,005 instead of 7).

The history of an averaged model says how the rule moved weights in steps that did not touch them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.chunk import Chunk, read_only
from thresher.engine import (
    averaging,
    calibrating,
    kernels,
    outputs,
)
from thresher.engine.compile.inplace import snapshot
from thresher.engine.compile.jit import Kernel
from thresher.engine.index import HashedIndex, Index, Resolved
from thresher.engine.lookup import resized
from thresher.engine.protocol import in_dtype, measures_each, shares_a_clock, writes
from thresher.engine.sound import Tensors, beneath, given, require, under
from thresher.learning.model.margins import Read, first_rows, margins
from thresher.learning.model.objective import F64, Objective
from thresher.learning.model.recipe import Recipe

Array = NDArray[Any]


class Origin:
    """The origin of the intercepts learned by `bias_rule` for `loss`."""

    def __init__(self, bias_rule: Any, loss: Any) -> None:
        wanted = loss.SHIFTS and "origin" in bias_rule.CLOCK
        self._started, self._place = (bias_rule.CLOCK.index(n) if wanted else -1 for n in ("begun", "origin"))

    def added(self, bias: Array, bclock: Array) -> Array:
        """Intercepts with the origin added."""
        if self._place < 0:
            return bias
        moved: Array = (bias + bclock.reshape(-1, bclock.shape[-1])[:, self._place]).astype(bias.dtype)
        return moved

    def relative(self, targets: Array, bclock: Array, offsets: F32 | None) -> Array:
        """Labels minus the origin: that of the first example, maybe among these, without its offset."""
        if self._place < 0:
            return targets
        clocks = bclock.reshape(-1, bclock.shape[-1])
        if not clocks[0, self._started]:
            first = targets[0] if offsets is None else targets[0] - offsets[0]
            clocks[:, self._place], clocks[:, self._started] = first, 1.0
        return (targets - clocks[:, self._place]).astype(targets.dtype)

    def stay(self, bclock: Array) -> None:
        """Keep the origin at zero."""
        if self._place >= 0:
            bclock.reshape(-1, bclock.shape[-1])[:, self._started] = 1.0


BEFORE_END = "before-end."
RING = 1 << 14
"""Steps between two sweeps over all rows of an averaged model."""
RINGS = 1 << 20
"""Upper limit for that number times the number of clocks."""


class History:
    """A ring and a position for each clock: `ring` (*clocks, steps, 2, drifts), `place` (*clocks, 2)."""

    def __init__(self, drifts: tuple[str, ...], clock: Array) -> None:
        clocks = clock.shape[:-1]
        steps = min(RING, RINGS // max(1, *clocks, 1)) if drifts else 0
        self.ring = np.zeros((*clocks, steps + 1, 2, len(drifts)))
        self.place = np.zeros((*clocks, 2), np.int64)

    def mean(self, B: Array) -> Array:
        """Mean of each intercept ``(outputs,)``."""
        sums: Array = B[0, -averaging.COLUMNS].reshape(-1)
        return sums / self.steps

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return int(self.place[..., averaging.SEEN].max())

    def state(self) -> dict[str, Array]:
        """The part in use; unused entries of shorter rings are written as zeros."""
        used = self.place[..., averaging.SEEN] - self.place[..., averaging.BASE]
        used = np.minimum(used, self.ring.shape[-3] - 1)
        within = np.arange(used.max() + 1) <= used[..., np.newaxis]
        kept = self.ring[..., : used.max() + 1, :, :]
        return {"ring": np.where(within[..., np.newaxis, np.newaxis], kept, 0.0), "place": self.place}

    def check(self, state: Tensors, steps: int) -> None:
        """StateError for a position outside the ring, or a ring too short for the positions."""
        place = given(state, "place", self.place.shape, np.int64)
        base, seen = place[..., averaging.BASE], place[..., averaging.SEEN]
        sound = (base >= 0).all() and (base <= seen).all() and (seen <= steps).all()
        require(sound, "place", f"expected 0 <= steps before the ring <= all steps <= {steps}")
        *clocks, room, pair, drifts = self.ring.shape
        used = int((seen - base).max()) if drifts else 0
        require(used < room - 1 or not drifts, "place", f"{used} steps do not fit in the ring")
        given(state, "ring", (*clocks, used + 1, pair, drifts), np.float64)

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from `state`."""
        ring = state["ring"]
        self.ring[..., : ring.shape[-3], :, :] = ring
        self.place = state["place"].copy()


F32 = NDArray[np.float32]
_BLOCK = 1 << 16  # rows whose means are checked at a time


class RuleState:
    """A rule with its state: the table `S` of an index, clocks, intercept, sums."""

    reader: ClassVar[Kernel]
    idle_rows: ClassVar[Kernel]
    columns: ClassVar[int] = 0
    """columns of a row after those of the rule"""

    def __init__(self, head: Objective, rule: Any, dtype: Any, index: Index, inner: tuple[int, ...]) -> None:
        self.head, self.rule, self.bias_rule, self.dtype = head, rule, rule.intercept(), dtype
        self.inner = inner
        """inner shape of a feature's weights: empty, or (outputs,)"""
        self.index = index
        self._left = False
        self._again, self._aside = False, np.zeros(2)
        self.before_end = dict[str, Array]()
        """the state before the last, incomplete batch was learned; empty if no batch was incomplete"""
        self._begin()
        self._origin = Origin(self.bias_rule, head.loss)
        self._rules = [in_dtype(one, kind) for one in (rule, self.bias_rule) for kind in (np.float64, dtype)]
        _, self._row_rule, _, self._bias_row_rule = self._rules

    def _begin(self) -> None:
        self.S: Array = np.zeros((0, len(self.rule.SLOTS) + self.columns, *self.inner), self.dtype)
        self.index.join(self)
        self.clock, self.bclock = self.rule.clock0(), self.bias_rule.clock0()
        self.B: Array = np.zeros((1, len(self.bias_rule.SLOTS) + self.columns, *self.inner), self.dtype)
        self.tally = np.zeros(4)

    def _learn_with(self, compiled: Any, loss: Any, resolved: Resolved, targets: Array, *rest: Any) -> int:
        done: int = compiled(
            loss,
            *self._rules,
            *(self.S, self.clock, self.B, self.bclock),
            *(read_only(a) for a in resolved[1:]),
            *(read_only(targets), *rest, self.noted, self.index.seen, self.tally),
        )
        return done

    def _from_origin(self, targets: F32, offsets: F32 | None) -> F32:
        return self._origin.relative(targets, self.bclock, offsets) if len(self.B) else targets

    def _past(self) -> Any:
        """The state other than rows from which weights are read."""
        return self.clock

    def idle(self, count: int) -> NDArray[np.bool_]:
        """Which of the first `count` rows are equivalent to zeros."""
        if self._left:
            return np.ones(count, np.bool_)
        out = np.empty(count, np.bool_)
        self.idle_rows.for_parts(self.rule)(self._row_rule, self.S, self.clock, out)
        return out

    watches: ClassVar[bool] = False
    """whether the loop can stop by itself before examples with large values"""
    calibration: Array | None = None
    """what the loop has learned of the meaning of margins; None if it does not"""
    noted: F64 | None = None
    """takes the margins that examples are predicted with before they are learned, without the origin of
    intercepts, ``(n,)`` or ``(n, outputs)``; None: they are not kept"""
    limit = float("inf")
    """A loop that watches stops before a value of at least this magnitude."""

    @property
    def holder(self) -> Any:
        """What holds the state: loops with another holder may learn at the same time."""
        return self

    def rest(self) -> None:
        """Stop learning; keep the state as it is."""

    def leave(self) -> None:
        """Stop learning and being read: rows that only this loop needs may be freed."""
        self._left = True

    def moved(self, count: int) -> None:
        """Tell the rule that rows have moved and that `count` are left."""
        if not writes(type(self.rule), "relocate"):
            return
        relocate = kernels.relocate_rows.for_parts(self.rule)
        for output, clock in self._outputs(self.S, self.clock):
            relocate(self._row_rule, output, count, clock)

    def _outputs(self, table: Array, clocks: Array) -> Iterator[tuple[Array, Array]]:
        outputs, own = table.reshape(*table.shape[:2], *(self.inner or (1,))), np.atleast_2d(clocks)
        for k in range(outputs.shape[2]):
            yield outputs[:, :, k], own[min(k, len(own) - 1)]

    def _read_from(self, row_rule: Any, S: Array, past: Any) -> Read:
        compiled = self.reader.for_parts(self.rule, self.bias_rule)
        return lambda rows, out: compiled(row_rule, S, past, rows, out)

    @property
    def read_rows(self) -> Read:
        """Writes the settled weights of rows (n,) to an array (n, *inner)."""
        return self._read_from(self._row_rule, self.S, self._past())

    def settled(self) -> Array:
        """Settled weights of all rows (rows, *inner)."""
        return first_rows(self.read_rows, self.index.used, self.inner, self.dtype)

    def place(self, keys: NDArray[np.uint64], weights: Array, bias: Array) -> None:
        """Replace all features by these, with ascending keys, and set their weights and the intercepts."""
        rows = self.index.enter(keys)
        self.index.count(keys)
        self.S = np.zeros((self.index.size, *self.S.shape[1:]), self.dtype)
        everything = np.arange(len(self.B))
        for rule, table, clocks, places, wanted in (
            (self.rule, self.S, self.clock, rows, weights.reshape(-1, self.head.count)),
            (self.bias_rule, self.B, self.bclock, everything, bias[np.newaxis][: len(self.B)]),
        ):
            for k, (output, clock) in enumerate(self._outputs(table, clocks)):
                now = snapshot(rule, clock, table)
                rule.place(output, places, wanted[:, k].astype(self.dtype), now)
        self._origin.stay(self.bclock)

    def keep_signs(self, keys: NDArray[np.uint64], signs: NDArray[np.float64]) -> None:
        """Give each feature a row with the sign that its weights keep. The rule is `parts.clamped.LISTED`."""
        if len(keys):
            index, count = self.index, len(keys)
            index.extend(keys)
            ends, ones, room = np.arange(count + 1), np.ones(count, np.float32), np.empty(count, np.uint32)
            fixed = read_only(keys), read_only(ends), read_only(ones)
            resolved = index.resolve(*fixed, 0, count, room)
            if resolved.hi < count:
                index.make_room(count)
                resolved = index.resolve(*fixed, 0, count, room)
            rows = resolved.rows[:count]
            self.S[rows, len(self.rule.SLOTS) - 1] = signs.reshape(-1, *[1] * len(self.inner))

    def count_as(self, again: bool) -> None:
        """Add losses from here on to those of examples that come `again`, or to those of new ones.

        So progressive losses stay those of examples that the model had not seen.
        """
        if again != self._again:
            before = self.tally[: len(self._aside)].copy()
            self.tally[: len(self._aside)] = self._aside
            self._again, self._aside = again, before

    @property
    def again(self) -> bool:
        """Whether the examples are counted as coming again."""
        return self._again

    def sums(self, again: bool) -> Array:
        """Sums of losses and importances of new examples, or of those that came `again` (2,)."""
        return self.tally[: len(self._aside)] if again == self._again else self._aside

    @property
    def losses(self) -> float:
        """Sum of the losses so far in passes of this kind."""
        return float(self.tally[kernels.LOSS_SUM])

    def bias(self) -> Array:
        """Settled intercepts (outputs,); 0 without intercepts."""
        if not len(self.B):
            return np.zeros(self.head.count, self.dtype)
        read = self._read_from(self._bias_row_rule, self.B, self.bclock)
        bias = first_rows(read, 1, self.inner, self.dtype).reshape(-1)
        return self._origin.added(bias, self.bclock)

    def unmet(self) -> Array:
        """The weights of a feature that was never seen (outputs,)."""
        row = np.zeros((1, *self.S.shape[1:]), self.dtype)
        read = self._read_from(self._row_rule, row, self._past())
        return first_rows(read, 1, self.inner, self.dtype).reshape(-1)

    @property
    def last_margin(self) -> float:
        """Margin of the first output for the last example learned, before it was learned."""
        return float(self._origin.added(self.tally[kernels.LAST_MARGIN :][:1], self.bclock)[0])

    def take_margins(self) -> F64:
        """The margins `noted`, which are then noted no more."""
        assert self.noted is not None
        found, self.noted = self._origin.added(self.noted, self.bclock), None
        return found.reshape(len(found)) if self.head.count == 1 else found

    def margins(self, chunk: Chunk, bias: Array | None = None) -> F64:
        """Margins ``(n,)`` under the settled weights; ``(n, outputs)`` for many outputs.

        The intercepts are those of the state unless `bias` is given.
        """
        added = self.bias() if bias is None else bias
        found = margins(self.read_rows, self.index, len(self.S), added, self.inner, chunk)
        return found.reshape(len(found)) if self.head.count == 1 else found

    def _sides(self) -> list[tuple[Any, Array, Array]]:
        rows = self.S[: self.index.used]
        return [(self.rule, self.clock, rows), (self.bias_rule, self.bclock, self.B)]

    def begin_pass(self, number: int, passes: int = 0) -> None:
        """Tell the rules that pass `number` of `passes` over the same data begins or resumes."""
        for rule, clocks, table in self._sides():
            for output, clock in islice(self._outputs(table, clocks), len(np.atleast_2d(clocks))):
                rule.begin_pass(clock, number, output, passes)

    def end_passes(self) -> None:
        """Tell the rules that the passes over the same data are over."""
        for rule, clocks, table in self._sides():
            for output, clock in self._outputs(table, clocks):
                rule.end_passes(clock, output)

    def clocks(self) -> dict[str, Array]:
        """Clocks and intercept."""
        return {"clock": self.clock, "bclock": self.bclock, "B": self.B}

    @property
    def writes_all_rows(self) -> bool:
        """Whether an example may change rows other than those of its features."""
        return writes(type(self.rule), "constrain") or writes(type(self.rule), "renorm")

    def beside_rows(self) -> list[Array]:
        """What learning changes besides rows."""
        return [*self.clocks().values(), self.tally]

    def state(self) -> dict[str, Array]:
        """Rows, clocks, intercept and sums, now and before the end."""
        now = {"S": self.S[: self.index.used], **self.clocks(), **self._tallies()}
        return now | beneath(BEFORE_END, self.before_end)

    def _tallies(self) -> dict[str, Array]:
        """Sums over new examples, then over those that came again, and whether these still come."""
        if not self._again and not self._aside.any():
            return {"tally": self.tally}
        fresh = np.concatenate([self.sums(False), self.tally[len(self._aside) :]])
        return {"tally": fresh, "again": np.array([*self.sums(True), self._again])}

    def check(self, state: Tensors, rows: int, steps: int) -> None:
        """StateError if learning from `steps` examples cannot leave `state` in `rows` rows."""
        given(state, "S", (rows, *self.S.shape[1:]), self.dtype)
        given(state, "tally", self.tally.shape, np.float64, finite=False)
        if "again" in state:
            again = given(state, "again", (3,), np.float64, finite=False)
            require(again[2] in (0.0, 1.0), "again", "whether examples come again is 0 or 1")
        for rule, table, name, mine in (
            (self.rule, state["S"], "clock", self.clock),
            (self.bias_rule, given(state, "B", self.B.shape, self.dtype), "bclock", self.bclock),
        ):
            clocks = given(state, name, mine.shape, np.float64)
            for output, clock in self._outputs(table, clocks):
                wrong = rule.sound(output, clock, steps)
                require(not wrong, name, wrong)

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from `state`; the index has been restored already."""
        self.S = resized(state["S"], self.index.size)
        self.clock, self.bclock = state["clock"].copy(), state["bclock"].copy()
        self.B, self.tally = state["B"].copy(), state["tally"].copy()
        again = state.get("again", np.zeros(3))
        self._again, self._aside = False, again[:2].copy()
        self.before_end = under(state, BEFORE_END)
        self.count_as(bool(again[2]))


class OneState(RuleState):
    """One output, one example per step: the fastest loop. `S` is (rows, columns), clocks are vectors."""

    watches = True

    reader, idle_rows = kernels.read, kernels.idle_rows

    def __init__(self, head: Objective, rule: Any, dtype: Any, index: Index) -> None:
        super().__init__(head, rule, dtype, index, ())
        self._learn = kernels.learn.for_parts(head.loss, rule, self.bias_rule)

    def targets(self, chunk: Chunk, offsets: F32 | None) -> F32:
        """The target of each row for the loss."""
        return self._from_origin(chunk.labels, offsets)

    def learn(
        self, resolved: Resolved, targets: F32, weights: F32, offsets: F32 | None, lo: int, longest: int
    ) -> int:
        """Learn the examples lo..resolved.hi-1; return the first example that was not learned."""
        room = np.empty(longest, self.dtype)  # allocated here: in Numba it would cost 0.1 s of compiling
        added = None if offsets is None else read_only(offsets)
        limits = (read_only(weights), added, lo, resolved.hi, self.limit, room, self._kept(longest))
        return self._learn_with(self._learn, self.head.loss, resolved, targets, *limits)

    def _kept(self, longest: int) -> Any:
        return None


class Calibrated(RuleState):
    """A loop that learns what margins mean, from those of new examples. See `engine.calibrating`."""

    calibration: Array

    def __init__(self, head: Objective, rule: Any, dtype: Any, *rest: Any) -> None:
        super().__init__(head, rule, dtype, *rest)
        self.calibration = np.zeros(calibrating.SIZE)

    def beside_rows(self) -> list[Array]:
        """Add what was learned of margins."""
        return [*super().beside_rows(), self.calibration]

    def state(self) -> dict[str, Array]:
        """Add what was learned of margins."""
        return super().state() | {"calibration": np.array(self.calibration)}

    def check(self, state: Tensors, rows: int, steps: int) -> None:
        """Also check the sums of the calibration."""
        super().check(state, rows, steps)
        found = given(state, "calibration", (calibrating.SIZE,), np.float64)
        require((found[calibrating.SEEN :] >= 0).all(), "calibration", "sums must not be negative")

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from `state`."""
        super().restore(state)
        self.calibration = state["calibration"].copy()


class CalibratedState(Calibrated, OneState):
    """One output, one example per step."""

    def __init__(self, head: Objective, rule: Any, dtype: Any, index: Index) -> None:
        super().__init__(head, rule, dtype, index)
        self._calibrating = calibrating.learn_calibrating.for_parts(head.loss, rule, self.bias_rule)

    def learn(
        self, resolved: Resolved, targets: F32, weights: F32, offsets: F32 | None, lo: int, longest: int
    ) -> int:
        """Learn as `OneState` does. Margins of examples that come again are not those of new ones."""
        if self.again:
            return super().learn(resolved, targets, weights, offsets, lo, longest)
        room, added = np.empty(longest, self.dtype), None if offsets is None else read_only(offsets)
        limits = (read_only(weights), added, lo, resolved.hi, self.limit, room, None, self.calibration)
        return self._learn_with(self._calibrating, self.head.loss, resolved, targets, *limits)


class Averaged(RuleState):
    """Weights are read as the mean of the weights at the start of each step; the state is float64."""

    columns = averaging.COLUMNS
    plain: ClassVar[Kernel]
    """reads the weights at the start of a step"""

    def __init__(self, head: Objective, rule: Any, dtype: Any, *rest: Any) -> None:
        super().__init__(head, rule, dtype, *rest)
        self._history = History(rule.DRIFTS, self.clock)

    def _read_from(self, row_rule: Any, S: Array, past: Any) -> Read:
        """Read the mean; before the first step, the initial weights."""
        if self._history.steps:
            return super()._read_from(row_rule, S, past)
        compiled = self.plain.for_parts(self.rule, self.bias_rule)
        return lambda rows, out: compiled(row_rule, S, self.bclock if S is self.B else self.clock, rows, out)

    def bias(self) -> Array:
        """Mean intercepts (outputs,); 0 without intercepts."""
        if not (len(self.B) and self._history.steps):
            return super().bias()
        return self._origin.added(self._history.mean(self.B), self.bclock)

    def idle(self, count: int) -> NDArray[np.bool_]:
        """Also require a mean of zero."""
        idle = super().idle(count)
        if self._left:
            return idle
        for begin in range(0, count, _BLOCK):
            rows = self.S[begin : min(begin + _BLOCK, count)]
            read = self._read_from(self._row_rule, rows, self._past())
            means = first_rows(read, len(rows), self.inner, self.dtype)
            idle[begin : begin + len(rows)] &= ~means.any(axis=tuple(range(1, means.ndim)))
        return idle

    writes_all_rows = True  # when the ring is full

    def beside_rows(self) -> list[Array]:
        """Add the history."""
        return [*super().beside_rows(), self._history.ring, self._history.place]

    def state(self) -> dict[str, Array]:
        """Add the history."""
        return super().state() | self._history.state()

    def check(self, state: Tensors, rows: int, steps: int) -> None:
        """Also check the history, and that rows were not visited at impossible steps."""
        super().check(state, rows, steps)
        self._history.check(state, steps)
        since = state["S"][:, -1]
        require(
            (since >= 0).all() and (since <= steps).all(), "S", f"rows must have been visited in 0..{steps}"
        )

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from `state`."""
        super().restore(state)
        self._history.restore(state)


class AveragedState(Averaged, OneState):
    """One output, one example per step. See `engine.averaging`."""

    reader, plain = averaging.read, OneState.reader

    def _kept(self, longest: int) -> Any:
        room = np.zeros(self._history.ring.shape[2]), np.empty(longest)
        return averaging.Adding(self.clock, self._history.ring, self._history.place, *room)

    def _past(self) -> Any:
        return averaging.Past(self.clock, self._history.ring, self._history.place)


class ManyState(RuleState):
    """Many outputs or mini-batches. `S` is (rows, columns, outputs), clocks (1 or outputs, scalars).

    Outputs share one clock if the rule's clock does not depend on the examples.
    """

    reader, idle_rows = outputs.read_outputs, outputs.idle_rows_of_outputs

    def __init__(self, head: Objective, rule: Any, dtype: Any, index: Index, batch: int) -> None:
        super().__init__(head, rule, dtype, index, (head.count,))
        self.batch = batch
        shared = shares_a_clock(rule) and shares_a_clock(self.bias_rule)
        self._together = shared and batch == 1
        own = 1 if shared else head.count
        self.clock, self.bclock = (np.tile(clock, (own, 1)) for clock in (self.clock, self.bclock))
        self._places = np.zeros(0, np.int64)
        learn = outputs.learn_together if self._together else outputs.learn_batches
        self._each = True if batch > 1 and measures_each(rule) else None
        self._learn = learn.for_parts(head.joint, rule, self.bias_rule)

    def targets(self, chunk: Chunk, offsets: F32 | None) -> F32:
        """The targets of each row for the joint loss."""
        return self._from_origin(self.head.targets(chunk), offsets)

    def learn(
        self, resolved: Resolved, targets: F32, weights: F32, offsets: F32 | None, lo: int, longest: int
    ) -> int:
        """Learn lo..resolved.hi-1 in batches, the last of which may be short; return the first row left."""
        room: tuple[Any, ...] = (longest,)
        if not self._together:
            if len(self._places) < len(self.S):
                self._places = np.zeros(len(self.S), np.int64)
            room = self.batch, self._each, self._places
        added: tuple[Any, ...] = () if self._together else (None if offsets is None else read_only(offsets),)
        limits = (read_only(weights), *added, lo, resolved.hi, *room, self._kept(), self._meant())
        return self._learn_with(self._learn, self.head.joint, resolved, targets, *limits)

    def _kept(self) -> Any:
        return outputs.FORGOTTEN

    def _meant(self) -> Any:
        """What the compiled loop learns of the meaning of margins; None for nothing."""
        return None


class CalibratedManyState(Calibrated, ManyState):
    """Several classes, or mini-batches."""

    def _meant(self) -> Any:
        # margins of examples that come again are not those of new ones
        learned = self.calibration.copy() if self.again else self.calibration
        return learned, np.empty_like(learned), np.empty(self.head.count)


class AveragedManyState(Averaged, ManyState):
    """Many outputs or mini-batches. See `engine.averaging.Pasts`."""

    reader, plain = averaging.read_means, ManyState.reader

    def _kept(self) -> Any:
        return self._past()

    def _past(self) -> Any:
        return averaging.Pasts(self.clock, self._history.ring, self._history.place)


def make_loop(recipe: Recipe, head: Objective, rule: Any, index: Index) -> OneState | ManyState:
    """The loop for the recipe's outputs and batch size. A group of one output is not treated as a group.

    ValueError for a rule that cannot be averaged.
    """
    if recipe.average:
        _check_average(rule)
    if head.count == 1 and hasattr(rule, "group"):
        rule = parts.make("rule", rule, group=type(rule)._field_defaults["group"])
    if signs := recipe.signs():
        rule = parts.clamped(rule, signs.of_class)
    made = (head, rule, recipe.numbers, index)
    if head.outputs.kind == "one" and recipe.batch == 1:
        one = AveragedState if recipe.average else CalibratedState if recipe.calibrate else OneState
        loop: OneState | ManyState = one(*made)
    else:
        many = AveragedManyState if recipe.average else CalibratedManyState if recipe.calibrate else ManyState
        loop = many(*made, recipe.batch)
    if not recipe.intercept:
        loop.B = loop.B[:0]
    return loop


def _check_average(rule: Any) -> None:
    if getattr(rule, "half_life", np.inf) < np.inf:
        raise ValueError(
            f"{parts.part_name(type(rule))} cannot be averaged with a half_life: there is no formula for the"
            " sum of weights that fade; leave out one of them"
        )
    if rule.DRIFTS is None:
        able = sorted(
            n for n, cls in parts.REGISTRY["rule"].items() if getattr(cls, "DRIFTS", None) is not None
        )
        raise ValueError(
            f"{parts.part_name(type(rule))} cannot be averaged: there is no formula for the sum of its"
            f" weights between two visits; these rules can: {', '.join(able)}"
        )


def check_born_at_zero(loop: RuleState, admitting: bool) -> None:
    """ValueError if weights that do not start at zero are combined with a signed store or admission."""
    what = "features wait to be admitted" if admitting else ""
    if isinstance(loop.index, HashedIndex) and loop.index.signed:
        what = "a signed store flips half of the signs"
    if what and loop.unmet().any():
        name = parts.part_name(type(loop.rule))
        raise ValueError(f"{name}: its weights do not start at zero, which does not work if {what}")
