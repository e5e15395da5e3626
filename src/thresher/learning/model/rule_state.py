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

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.engine import averaging, calibrating, kernels, outputs
from thresher.engine.compile.jit import Kernel
from thresher.engine.index import Index, Resolved
from thresher.engine.lookup import resize
from thresher.engine.protocol import in_dtype, intercept_of, shares_a_clock, snapshot, writes
from thresher.engine.sound import Array, Tensors, beneath, check_tensor, require, under
from thresher.learning.model.margins import Read, first_rows, margins
from thresher.learning.model.objective import F64, Objective

if TYPE_CHECKING:
    from thresher.learning.model.single_rows import RowBuffers


BEFORE_END = "before-end."
RING = 1 << 14
"""Steps between two sweeps over all rows of an averaged model."""


class History:
    """A ring and a position: `ring` (steps, 2, drifts), `place` (2,)."""

    def __init__(self, drifts: int) -> None:
        self.ring = np.zeros(((RING if drifts else 0) + 1, 2, drifts))
        self.place = np.zeros(2, np.int64)

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return int(self.place[averaging.SEEN])

    def past(self, clock: Array, longest: int = 0) -> averaging.Past:
        """What compiled code reads and writes, with room for examples of this length."""
        p, newest = self.steps - self.place[averaging.BASE], np.zeros(self.ring.shape[2])
        if p and len(newest):
            newest[:] = (self.ring[p] - self.ring[p - 1]).sum(axis=0)
        return averaging.Past(clock, self.ring, self.place, newest, np.empty(longest))

    def state(self) -> dict[str, Array]:
        """The part in use."""
        used = self.steps - self.place[averaging.BASE]
        return {"ring": self.ring[: used + 1], "place": self.place}

    def check(self, state: Tensors, steps: int) -> None:
        """StateError for a position outside the ring, or a ring too short for the position."""
        base, seen = check_tensor(state, "place", (2,), np.int64).tolist()
        room, pair, drifts = self.ring.shape
        used = seen - base if drifts else 0
        fits = 0 <= base <= seen <= steps and (used < room - 1 or not drifts)
        expected = f"expected 0 <= steps before the ring <= all steps <= {steps}, with room for the others"
        require(fits, "place", expected)
        check_tensor(state, "ring", (used + 1, pair, drifts), np.float64)

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from `state`."""
        self.ring[: len(state["ring"])] = state["ring"]
        self.place = state["place"].copy()


class Minimum(NamedTuple):
    """Weights of an output that minimise a penalised loss, with the intercept, if any, at the end."""

    weights: F64
    gradient: F64
    """derivatives of the sum of losses"""
    noise: F64
    """their standard deviations for which an `l1` of 1 stands"""
    examples: F64
    """loss and slope of each example ``(n, 2)``"""


F32 = NDArray[np.float32]


class RuleState:
    """A rule with its state: the table `S` of an index, clocks, intercept, sums.

    With `average`, weights are read as the mean of the weights at the start of each step, and the state is
    float64. With `calibrate`, the loop learns what margins mean, from those of new examples.
    """

    reader: ClassVar[Kernel]
    """what reads weights"""
    idle_rows: ClassVar[Kernel]
    own_clocks = False
    """whether each output has a clock of its own"""
    watches: ClassVar[bool] = False
    """whether the loop can stop by itself before examples with large values"""
    limit = float("inf")
    """A loop that watches stops before a value of at least this magnitude."""
    holder: Any = None
    """what holds the state of several loops, which learn one after the other; None: the loop itself"""

    def __init__(
        self,
        head: Objective,
        rule: Any,
        dtype: Any,
        index: Index,
        inner: tuple[int, ...] = (),
        clocks: int | None = None,
        average: bool = False,
        calibrate: bool = False,
    ) -> None:
        self.head, self.rule, self.bias_rule, self.dtype = head, rule, intercept_of(rule), dtype
        self._is_many = bool(inner)
        self.index = index
        self._left = False
        self.again, self._aside = False, np.zeros(2)
        """`again`: whether examples are counted as coming again"""
        self.before_end = dict[str, Array]()
        """the state before the last, incomplete batch was learned; empty if no batch was incomplete"""
        if self.holder is None:
            columns = averaging.COLUMNS if average else 0  # of a row, after those of the rule
            self.S: Array = np.zeros((0, len(rule.SLOTS) + columns, *inner), dtype)
            index.join(self)
            own: list[Array] = [one.clock0() for one in (rule, self.bias_rule)]
            self.clock, self.bclock = own if clocks is None else [np.tile(one, (clocks, 1)) for one in own]
            self.B: Array = np.zeros((1, len(self.bias_rule.SLOTS) + columns, *inner), dtype)
            self.tally = np.zeros(4)
        self.history = History(len(rule.DRIFTS)) if average else None
        self.calibration = np.zeros(calibrating.SIZE) if calibrate else None
        """what the loop has learned of the meaning of margins: see `engine.calibrating`"""
        shifts = (head.loss.SHIFTS or head.loss.SCALES) and "origin" in self.bias_rule.CLOCK
        self._started, self._origin = (
            self.bias_rule.CLOCK.index(n) if shifts else -1 for n in ("begun", "origin")
        )
        """places in the clock of the intercept; -1 without an origin"""
        self.rules = [in_dtype(one, kind) for one in (rule, self.bias_rule) for kind in (np.float64, dtype)]
        """the rule with numbers in float64 and in the dtype of the state, and so that of the intercept"""
        _, self._row_rule, _, self._bias_row_rule = self.rules

    def targets(self, chunk: Chunk) -> F32:
        """The target of each row for the loss, or of each output for the joint loss."""
        found = self.head.targets(chunk) if self._is_many else chunk.labels
        if self._origin < 0 or not len(self.B):
            return found
        clocks = self.bclock.reshape(-1, self.bclock.shape[-1])
        if not clocks[0, self._started]:  # the origin is that of the first example, without its offset
            first = np.log(found[0]) if self.head.loss.SCALES else found[0]
            first = first - np.float32(chunk.base()[0])
            clocks[:, self._origin], clocks[:, self._started] = first, 1.0
        origin = clocks[:, self._origin]
        with np.errstate(over="ignore"):  # learning says what is not finite
            return (found / np.exp(origin) if self.head.loss.SCALES else found - origin).astype(found.dtype)

    def _with_origin(self, bias: Array) -> Array:
        """Intercepts, or margins, with the origin added."""
        if self._origin < 0:
            return bias
        origin = self.bclock.reshape(-1, self.bclock.shape[-1])[:, self._origin]
        return np.asarray((bias + origin).astype(bias.dtype))

    def _arguments(self, loss: Any, resolved: Resolved, targets: Array, *rest: Any) -> tuple[object, ...]:
        return (
            loss,
            *self.rules,
            *(self.S, self.clock, self.B, self.bclock),
            *map(read_only, resolved[1:]),
            *(read_only(targets), *rest, self.index.seen, self.tally),
        )

    def learner_of_row(self, arrays: RowBuffers) -> Callable[[], bool] | None:
        """What learns the row in `arrays`, for as long as the state is in the same arrays: see `Ready`."""
        return None

    def reader_of_row(self, arrays: RowBuffers) -> Callable[[Any, int], F64] | None:
        """What gives the margins ``(1,)`` or ``(1, outputs)`` of the row in `arrays`, likewise."""
        origin = self._origin if len(self.B) else -1
        if self.history is not None or (self.S.ndim > 2 and (origin >= 0 or self.head.count == 1)):
            return None
        read, read_bias = (self.reader.for_parts(one) for one in (self._row_rule, self._bias_row_rule))
        add_up = kernels.add_up if self.S.ndim == 2 else outputs.add_up_outputs
        shape = 1, *self.S.shape[2:]
        room, bias = np.empty((len(arrays.room), *shape[1:]), self.dtype), np.zeros(shape, self.dtype)
        of_bias = self._bias_row_rule, self.B, self.bclock, arrays.places[:1], bias
        row = room, read_only(bias.reshape(-1)), arrays.ends, arrays.places, arrays.values
        cuts, clock = dict[int, tuple[Any, ...]](), self.bclock

        def margins(_: Any, total: int) -> F64:
            if (of_row := cuts.get(total)) is None:
                of_row = self._row_rule, self.S, self.clock, arrays.rows[:total], room[:total]
                cuts[total] = of_row
            read(*of_row)
            if len(self.B):
                read_bias(*of_bias)
                if origin >= 0:
                    bias[0] = bias.item() + clock.item(origin)
            out = np.empty(shape)
            add_up(*row, out)
            return out

        return margins

    def idle(self, count: int) -> NDArray[np.bool_]:
        """Which of the first `count` rows are equivalent to zeros, in their mean too if that is read."""
        if self._left:
            return np.ones(count, np.bool_)
        out = np.empty(count, np.bool_)
        self.idle_rows.for_parts(self.rule)(self._row_rule, self.S, self.clock, out)
        if self.history is not None:
            out &= first_rows(self.read_rows, count, (), self.dtype) == 0
        return out

    def leave(self, read: bool) -> None:
        """Stop learning; rows that only this loop needs may be freed, unless they are still to be `read`."""
        self._left = not read

    def moved(self, count: int) -> None:
        """Tell the rule that rows have moved and that `count` are left."""
        if not writes(type(self.rule), "relocate"):
            return
        relocate = kernels.relocate_rows.for_parts(self.rule)
        for output, clock in self._outputs(self.S, self.clock):
            relocate(self._row_rule, output, count, clock)

    def _outputs(self, table: Array, clocks: Array) -> Iterator[tuple[Array, Array]]:
        outputs, own = table.reshape(*table.shape[:2], *(table.shape[2:] or (1,))), np.atleast_2d(clocks)
        for k in range(outputs.shape[2]):
            yield outputs[:, :, k], own[min(k, len(own) - 1)]

    def _read_from(self, row_rule: Any, S: Array, clock: Array) -> Read:
        """Reads rows of `S`: of an averaged model the mean, or before the first step the initial weights."""
        reader, past = self.reader, cast(Any, clock)
        if self.history is not None and self.history.steps:
            reader, past = averaging.read, self.history.past(clock)
        compiled = reader.for_parts(row_rule)
        return lambda rows, out: compiled(row_rule, S, past, rows, out)

    @property
    def read_rows(self) -> Read:
        """Writes the settled weights of rows (n,) to an array (n, *S.shape[2:])."""
        return self._read_from(self._row_rule, self.S, self.clock)

    def settled_weights(self) -> Array:
        """Settled weights of all rows ``(rows,)`` or ``(rows, outputs)``."""
        return self._in_order(first_rows(self.read_rows, self.index.used, self.S.shape[2:], self.dtype))

    def place(self, keys: NDArray[np.uint64], weights: Array, bias: Array) -> None:
        """Replace all features by these, with ascending keys, and set their weights and the intercepts."""
        rows = self.index.enter(keys)
        self.S = np.zeros((self.index.size, *self.S.shape[1:]), self.dtype)
        everything = np.arange(len(self.B))
        for rule, table, clocks, places, wanted in (
            (self.rule, self.S, self.clock, rows, weights.reshape(len(rows), bias.size)),
            (self.bias_rule, self.B, self.bclock, everything, bias[np.newaxis][: len(self.B)]),
        ):
            for k, (output, clock) in enumerate(self._outputs(table, clocks)):
                now = snapshot(rule, clock, table)
                rule.place(output, places, wanted[:, k].astype(self.dtype), now)
        if self._origin >= 0:  # it stays zero
            self.bclock.reshape(-1, self.bclock.shape[-1])[:, self._started] = 1.0

    def place_measured(
        self, keys: NDArray[np.uint64], scales: F64, size: float, solutions: Sequence[Minimum]
    ) -> None:
        """Set weights and what is known of their derivatives as passes would, given a solution per output.

        All features have ascending `keys` and the largest magnitudes `scales`; `size` as in the verb. Sums of
        losses and step sizes stay, unlike in `place`. Origins move to the intercepts.
        """
        rows, count, origin = self._rows_of(keys), len(keys), self._origin
        self.S[...], self.B[...] = 0, 0
        if origin >= 0 and len(self.B):
            clocks = self.bclock.reshape(-1, self.bclock.shape[-1])
            bias = np.array([one.weights[count] for one in solutions])
            self.tally[kernels.LAST_MARGIN] += clocks[0, origin] - bias[0]
            clocks[:, origin] = bias
            solutions = [one._replace(weights=np.append(one.weights[:count], 0.0)) for one in solutions]
        for rule, table, clocks, places, scale, part in (
            (self.rule, self.S, self.clock, rows, scales, slice(count)),
            (self.bias_rule, self.B, self.bclock, np.arange(len(self.B)), np.ones(1), slice(count, None)),
        ):
            for (output, clock), one in zip(self._outputs(table, clocks), solutions, strict=True):
                known = one.weights[part], one.gradient[part], one.noise[part]
                rule.place_measured(output, places, scale[: len(places)], *known, one.examples, size, clock)

    def keep_signs(self, keys: NDArray[np.uint64], signs: NDArray[np.float64]) -> None:
        """Give each feature a row with the sign that its weights keep. The rule is `parts.clamped.LISTED`."""
        if len(keys):
            rows = self._rows_of(keys)
            self.S[rows, len(self.rule.SLOTS) - 1] = signs.reshape(-1, *[1] * (self.S.ndim - 2))

    def _rows_of(self, keys: NDArray[np.uint64]) -> Array:
        """The rows of these features, which get one if they have none."""
        index, count = self.index, len(keys)
        index.extend(keys)
        ends, ones, room = np.arange(count + 1), np.ones(count, np.float32), np.empty(count, np.uint32)
        fixed = read_only(keys), read_only(ends), read_only(ones)
        while (resolved := index.resolve(*fixed, 0, count, room)).hi < count:
            index.make_room(count)
        return resolved.rows[:count]

    def count_as(self, again: bool) -> None:
        """Add losses from here on to those of examples that come `again`, or to those of new ones.

        So progressive losses stay those of examples that the model had not seen.
        """
        if again != self.again:
            before = self.tally[: len(self._aside)].copy()
            self.tally[: len(self._aside)] = self._aside
            self.again, self._aside = again, before

    def sums(self, again: bool) -> Array:
        """Sums of losses and importances of new examples, or of those that came `again` (2,)."""
        return self.tally[: len(self._aside)] if again == self.again else self._aside

    def bias(self) -> Array:
        """Settled intercepts (outputs,); 0 without intercepts, -inf for classes not met yet."""
        return self._in_order(self.intercepts(), masked=True)

    def _in_order(self, found: Array, masked: bool = False) -> Array:
        """What was found for outputs, the last axis, in the order in which these are read.

        If `masked`, it is -inf for classes not met yet, unless none was met at all.
        """
        return found

    def intercepts(self) -> Array:
        """Settled intercepts of all outputs, in the order of the state; 0 without intercepts."""
        if not len(self.B):
            return np.zeros(self.S.shape[2:] or 1, self.dtype)
        if self.history is not None and self.history.steps:
            return self._with_origin(self.B[0, -averaging.COLUMNS :][:1] / self.history.steps)
        read = self._read_from(self._bias_row_rule, self.B, self.bclock)
        bias = first_rows(read, 1, self.B.shape[2:], self.dtype).reshape(-1)
        return self._with_origin(bias)

    def has_met(self, label: float) -> bool:
        """Whether nothing has to be made ready to learn a row with this label; False for a new class."""
        return True

    def unmet(self) -> Array:
        """The weights of a feature that was never seen (outputs,)."""
        read = self._read_from(self._row_rule, np.zeros((1, *self.S.shape[1:]), self.dtype), self.clock)
        return self._in_order(first_rows(read, 1, self.S.shape[2:], self.dtype).reshape(-1))

    def last_margins(self) -> tuple[float, float]:
        """Margin of the first output for the last example, before it was learned, and which was largest."""
        first = self._with_origin(self.tally[kernels.LAST_MARGIN :][:1])
        return float(first[0]), float(self.tally[kernels.LAST_HEAVIEST])

    def margins(self, chunk: Chunk, bias: Array) -> F64:
        """Margins ``(n,)`` under the settled weights with these intercepts; ``(n, outputs)`` for many."""
        found = margins(self.read_rows, self.index, len(self.S), bias, self.S.shape[2:], chunk)
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

    def beside_rows(self) -> list[Array]:
        """What learning changes besides rows."""
        history = [] if self.history is None else [self.history.ring, self.history.place]
        meant = [] if self.calibration is None else [self.calibration]
        return [*self.clocks().values(), self.tally, *history, *meant]

    def state(self) -> dict[str, Array]:
        """Rows, clocks, intercept and sums, of an average and a calibration too, now and before the end."""
        now = {"S": self.S[: self.index.used], **self.clocks(), "tally": self.tally}
        if self.again or self._aside.any():  # sums over new examples, then over those that came again
            now["tally"] = np.concatenate([self.sums(False), self.tally[len(self._aside) :]])
            now["again"] = np.array([*self.sums(True), self.again])
        if self.history is not None:
            now |= self.history.state()
        if self.calibration is not None:
            now["calibration"] = np.array(self.calibration)
        return now | beneath(BEFORE_END, self.before_end)

    def check(self, state: Tensors, rows: int, steps: int, outputs: int | None = None) -> None:
        """StateError if learning from `steps` examples cannot leave `state` in `rows` rows.

        The state has as many `outputs` as the table unless others are expected.
        """
        inner = self.S.shape[2:] if outputs is None else (outputs,)
        check_tensor(state, "tally", self.tally.shape, np.float64, finite=False)
        if "again" in state:
            again = check_tensor(state, "again", (3,), np.float64, finite=False)
            require(again[2] in (0.0, 1.0), "again", "whether examples come again is 0 or 1")
        for table, count, name, rule, mine in (
            ("S", rows, "clock", self.rule, self.clock),
            ("B", len(self.B), "bclock", self.bias_rule, self.bclock),
        ):
            check_tensor(state, table, (count, getattr(self, table).shape[1], *inner), self.dtype)
            own = inner if self.own_clocks else mine.shape[:-1]
            clocks = check_tensor(state, name, (*own, mine.shape[-1]), np.float64)
            for output, clock in self._outputs(state[table], clocks):
                wrong = rule.sound(output, clock, steps)
                require(not wrong, name, wrong)
        if self.history is not None:
            self.history.check(state, steps)
            since = state["S"][:, -1]
            visited = ((since >= 0) & (since <= steps)).all()
            require(visited, "S", f"rows must have been visited in 0..{steps}")
        if self.calibration is not None:
            found = check_tensor(state, "calibration", self.calibration.shape, np.float64)
            sound = (found[calibrating.SEEN :] >= 0).all()
            require(sound, "calibration", "sums must not be negative")

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from `state`; the index has been restored already."""
        self.S = resize(state["S"], self.index.size)
        self.clock, self.bclock = state["clock"].copy(), state["bclock"].copy()
        self.B, self.tally = state["B"].copy(), state["tally"].copy()
        again = state.get("again", np.zeros(3))
        self.again, self._aside = False, again[:2].copy()
        self.before_end = under(state, BEFORE_END)
        self.count_as(bool(again[2]))
        if self.history is not None:
            self.history.restore(state)
        if self.calibration is not None:
            self.calibration = state["calibration"].copy()


class OneState(RuleState):
    """One output, one example per step: the fastest loop. `S` is (rows, columns), clocks are vectors."""

    watches = True
    reader, idle_rows = kernels.read, kernels.idle_rows

    def __init__(self, head: Objective, rule: Any, dtype: Any, index: Index, *kinds: bool) -> None:
        super().__init__(head, rule, dtype, index, (), None, *kinds)
        self._learn = kernels.learn.for_parts(head.loss, rule, self.bias_rule)

    def learn(
        self, resolved: Resolved, lo: int, targets: F32, weights: F32, offsets: F32 | None, longest: int
    ) -> int:
        """Learn the examples lo..resolved.hi-1; return the first example that was not learned."""
        room = np.empty(longest, self.dtype)  # allocated here: in Numba it would cost 0.1 s of compiling
        kept: Any = None if self.history is None else self.history.past(self.clock, longest)
        meant = None if self.again else self.calibration  # margins of these are not those of new examples
        limits = (read_only(weights), offsets, lo, resolved.hi, self.limit, room, kept, meant)
        return int(self._learn(*self._arguments(self.head.loss, resolved, targets, *limits)))

    def learner_of_row(self, arrays: RowBuffers) -> Callable[[], bool] | None:
        """As in `RuleState`."""
        if self.history is not None or self.calibration is not None:
            return None
        of_row = Resolved(1, arrays.ends, arrays.rows, arrays.values), arrays.targets, arrays.weights
        limits = None, 0, 1, float("inf"), arrays.room, None, None
        args, compiled, clock = self._arguments(self.head.loss, *of_row, *limits), self._learn, self.bclock
        origin = self._origin if len(self.B) else -1
        if origin >= 0 and not clock[self._started]:
            return None

        def learn() -> bool:
            label: float = arrays.label.item()
            arrays.target[0] = label if origin < 0 else label - clock.item(origin)
            return bool(compiled(*args))

        return learn


class ManyState(RuleState):
    """Many outputs or mini-batches. `S` is (rows, columns, outputs), clocks (1 or outputs, scalars).

    Outputs share one clock if the rule's clock does not depend on the examples.
    """

    reader, idle_rows = outputs.read_outputs, outputs.idle_rows_of_outputs

    def __init__(
        self, head: Objective, rule: Any, dtype: Any, index: Index, batch: int, calibrate: bool
    ) -> None:
        self.batch = batch
        shared = shares_a_clock(rule) and shares_a_clock(rule.intercept())
        self.own_clocks = not shared
        clocks = 1 if shared else head.count
        super().__init__(head, rule, dtype, index, (head.count,), clocks, calibrate=calibrate)
        self._together = shared and batch == 1
        self._places = np.zeros(0, np.int64)
        learn = outputs.learn_together if self._together else outputs.learn_batches
        self._each = True if batch > 1 and writes(type(rule), "step_on_sum") else None
        self._learn = learn.for_parts(head.joint, rule, self.bias_rule)

    def learn(
        self, resolved: Resolved, lo: int, targets: F32, weights: F32, offsets: F32 | None, longest: int
    ) -> int:
        """Learn lo..resolved.hi-1 in batches, the last of which may be short; return the first row left."""
        known = np.full(resolved.hi, self.head.count)
        done: int = self._learn(*self._call(known, resolved, lo, targets, weights, offsets, longest))
        return done

    def _call(
        self, known: Array, resolved: Resolved, lo: int, targets: F32, weights: F32, *rest: Any
    ) -> tuple[object, ...]:
        """The arguments of the compiled loop: those of `learn`, with a loss of `known` outputs for each."""
        offsets, longest = rest
        room: tuple[Any, ...] = (longest,)
        added: tuple[Any, ...] = ()
        if not self._together:
            if len(self._places) < len(self.S):
                self._places = np.zeros(len(self.S), np.int64)
            room = self.batch, self._each, self._places
            added = (offsets,)
        meant: object = None
        if self.calibration is not None:  # margins of examples that come again are not those of new ones
            learned = self.calibration.copy() if self.again else self.calibration
            meant = learned, np.empty_like(learned), np.empty(self.S.shape[2])
        limits = (read_only(weights), *added, lo, resolved.hi, *room, meant)
        return self._arguments(self.head.joint, resolved, targets, read_only(known), *limits)
