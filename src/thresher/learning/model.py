"""Model: a loss, a rule, a store and a clock that learn from Chunks."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat, read_only
from thresher.data.features.names import Names
from thresher.data.layout import SettledLayout
from thresher.engine import kernels
from thresher.engine.sound import MOST_STEPS, Tensors, given, require
from thresher.engine.stores import make_index
from thresher.learning import pending
from thresher.learning.checks import check_chunk
from thresher.learning.finite import (
    Before,
    DivergedError,
    NothingLearnedWarning,
    broken_row,
    first_broken,
    has_extremes,
    is_finite,
    ranges,
)
from thresher.learning.head import Output
from thresher.learning.intake import Intake
from thresher.learning.loops import check_born_at_zero, make_loop
from thresher.learning.readout import Readout
from thresher.learning.recipe import Recipe, Spec

_PIECE = 1 << 19  # non-zeros resolved at a time: fewer calls, and their rows stay in a cache
_SHOWN = {"B": "the intercept", "bias": "the intercept", "clock": "the state of the rule"}


class Tally(NamedTuple):
    """What learning has met so far."""

    loss: float
    """sum of importance times progressive loss"""
    weight: float
    """sum of importances"""

    @property
    def average(self) -> float:
        """Progressive loss; NaN before the first example."""
        return self.loss / self.weight if self.weight else float("nan")


class Model:
    """A sparse linear model that learns from a stream.

    Made of a `Recipe`, or of what a Recipe is made of: ``Model("ftrl", l1=1.0)``. Raises what a Recipe does.

    >>> model = Model("sgd", "squared", rate="constant:0.1")
    >>> model.learn(Chunk.of_rows([(1.0, {7: 2.0})]))
    >>> model.predict(Chunk.of_rows([(1.0, {7: 2.0})]))  # 5 * (2 * 0.1 * 1)
    array([1.00000001])
    """

    def __init__(self, rule: Recipe | Spec = "ft-ftrl", loss: Spec | None = None, **options: Any) -> None:
        options |= {} if loss is None else {"loss": loss}
        recipe = replace(rule, **options) if isinstance(rule, Recipe) else Recipe(rule, **options)
        self.recipe = recipe
        """what this model is"""
        self.head, self.rule, self.dtype = recipe.head(), recipe.make_rule(), recipe.numbers
        self.loss, self.batch = self.head.loss, recipe.batch
        self._learned = self._sound = 0
        self._extremes = self._warned = False
        self.lowest_label = 0.0
        self.names: Names | None = None
        """of features, where they were asked for"""
        self._intake = Intake(recipe.scale, recipe.admit, recipe.seed)
        if recipe.layout is not None:
            self._intake.bind(recipe.layout)
        self._index = make_index(recipe.store)
        self._loop = make_loop(recipe, self.head, self.rule, self._index)
        check_born_at_zero(self._loop, recipe.admit is not None)
        self._rows = np.empty(0, np.uint32)
        self._pending = concat([])

    def begin_pass(self, number: int) -> None:
        """Pass `number`, from 1, over the same data begins, or goes on after a stop."""
        self._loop.begin_pass(number)

    def learn(self, chunk: Chunk, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None:
        """Predict, then learn, rows lo <= i < hi of `chunk` (all of them by default).

        Cutting a stream into chunks or ranges anywhere changes nothing, bit for bit: rows of a batch
        that is not full wait for the next call, or for `finish`. Rows that come `again`, in a later pass, are
        not counted twice: scales stay as they are, and features that wait go on waiting.
        Raises `DivergedError` when a loss is not finite (that example has changed no weight), and when an
        example with extreme values leaves a weight that is not; `check_finite` finds all others.
        """
        check_chunk(chunk)
        stop = len(chunk) if hi is None else hi
        if lo > 0 or stop < len(chunk):
            chunk = chunk.rows(lo, stop)
        labels = chunk.labels if chunk.targets is None else chunk.targets
        if labels.size:
            lowest = labels.item() if labels.size == 1 else float(labels.min())
            self.lowest_label = min(self.lowest_label, lowest)
        chunk = self._intake.learned(chunk, again)
        for piece in chunk.pieces(_PIECE):  # whose values are in a cache when they are learned
            self._extremes = self._extremes or (not again and has_extremes(piece))
            if self.batch == 1:
                self._learn(piece)
            else:
                self._learn_in_batches(piece)

    def _learn_in_batches(self, chunk: Chunk) -> None:
        lo, stop = 0, len(chunk)
        if len(self._pending):
            missing = min(self.batch - len(self._pending), stop - lo)
            self._pending = concat([self._pending, chunk.rows(lo, lo + missing)])
            lo += missing
            if len(self._pending) == self.batch:
                self.finish()
        whole = stop - (stop - lo) % self.batch
        self._learn(chunk.rows(lo, whole))
        if whole < stop:
            self._pending = concat([chunk.rows(whole, stop)])

    def finish(self) -> None:
        """Learn the examples of a batch that is not full as a smaller one."""
        waiting, self._pending = self._pending, concat([])
        self._learn(waiting)

    def _learn(self, chunk: Chunk) -> None:
        if chunk.nnz > self._rows.size:
            self._rows = np.empty(chunk.nnz, np.uint32)
        if not len(chunk):
            return
        longest = chunk.nnz if len(chunk) == 1 else int(np.diff(chunk.indptr).max())
        targets = self._loop.targets(chunk)
        for lo, hi, extreme in ranges(chunk, self.batch) if self._extremes else [(0, len(chunk), False)]:
            before = Before(self._loop, chunk.rows(lo, hi)) if extreme else None
            while lo < hi:
                lo = self._learn_piece(chunk, targets, lo, hi, longest)
            if before is not None:
                self._judge(before)

    def _learn_piece(
        self, chunk: Chunk, targets: NDArray[np.float32], lo: int, stop: int, longest: int
    ) -> int:
        hi = stop
        indptr, keys, values = read_only(chunk.indptr), read_only(chunk.keys), read_only(chunk.values)
        if len(keys) > _PIECE:
            hi = int(np.searchsorted(indptr, indptr[lo] + _PIECE, side="right")) - 1
        hi = min(lo + max((hi - lo) // self.batch, 1) * self.batch, stop)
        resolved = self._index.resolve(keys, indptr, values, lo, hi, self._rows)
        fits = resolved.hi
        if fits < hi:
            resolved = resolved._replace(hi=lo + (fits - lo) // self.batch * self.batch)
        if self.batch > 1 or self._loop.S.ndim > 2:
            self._index.extend(keys[indptr[lo] : indptr[hi]])
        done = self._loop.learn(resolved, targets, chunk.weights, lo, longest)
        self._learned += done - lo
        last = min(done + self.batch, stop)
        if done < resolved.hi and not self._index.extend(keys[indptr[done] : indptr[last]]):
            raise DivergedError(f"the loss of example {self._learned + 1} is not finite")
        if done == resolved.hi < hi:
            self._index.make_room(int(indptr[last] - indptr[done]))
        return done

    def _judge(self, before: Before) -> None:
        """Of the examples just learned: have they broken a weight, have they taught anything?"""
        self.check_learned(before.chunk, self._learned - len(before.chunk) + 1)
        if not self._warned and before.taught_nothing():
            self._warned = True
            warnings.warn(
                f"example {self._learned} taught nothing, as others may: its squared values overflow"
                f" {self.dtype}; scale the features, or use the dtype float64",
                NothingLearnedWarning,
                stacklevel=2,
            )

    def _weight_of(self, row: int) -> str:
        """What is stored in a row, for people."""
        key = int(self._index.features()[row])
        name = self.names.get(key) if self.names else None
        return f"the weight of feature {key}" + (f" ({name})" if name else "")

    def check_learned(self, chunk: Chunk, first: int) -> None:
        """Raise `DivergedError` where a weight is not finite after `chunk`, examples from `first` on."""
        row = broken_row(self._loop, chunk)
        broken = self._weight_of(row) if row >= 0 else self._broken_among(self._loop.clocks())
        if broken is not None:
            raise self._diverged(broken, first)

    def check_finite(self) -> None:
        """Raise `DivergedError` where a weight, or anything that learning goes on from, is not finite."""
        if (broken := self._broken()) is not None:
            raise self._diverged(broken, self._sound + 1)
        self._sound = self._learned

    def _diverged(self, what: str, first: int) -> DivergedError:
        last = self._learned
        when = f"one of the examples {first} to {last}" if first < last else f"example {last}"
        return DivergedError(f"{what} is not finite after {when}")

    def _broken(self) -> str | None:
        """What is not finite, if anything is."""
        state = self.state()
        for rows in (self._loop.settled(), state["S"]):
            if (row := first_broken(rows)) >= 0:
                return self._weight_of(row)
        return self._broken_among({"bias": self._loop.bias(), **state})

    def _broken_among(self, state: dict[str, NDArray[Any]]) -> str | None:
        broken = (name for name, array in state.items() if not is_finite(array))
        return next((_SHOWN.get(name, f"the state ({name})") for name in broken), None)

    @property
    def layout(self) -> SettledLayout | None:
        """How the data learned from became features, where they came from files.

        Setting it raises `DataError` where columns are to be scaled and it has no numeric ones.
        """
        return self.recipe.layout

    @layout.setter
    def layout(self, layout: SettledLayout | None) -> None:
        self._intake.bind(layout)
        self.recipe = replace(self.recipe, layout=layout)

    @property
    def features_waiting(self) -> int | None:
        """Features seen that have not entered, but for false positives; None where that is not counted."""
        return self._intake.waiting

    @property
    def tally(self) -> Tally:
        """Sums of progressive loss and importance."""
        tally = self._loop.tally
        return Tally(float(tally[kernels.LOSS_SUM]), float(tally[kernels.WEIGHT_SUM]))

    @property
    def last_margin(self) -> float:
        """Of the first output, for the last example learned from, before it was."""
        return self._loop.last_margin

    @property
    def last_prediction(self) -> float:
        """For the last example learned from, before it was: a class, a probability or a margin."""
        heaviest = float(self._loop.tally[kernels.LAST_HEAVIEST])
        return self.head.last_prediction(self.last_margin, heaviest, self.lowest_label)

    @property
    def examples(self) -> int:
        """How many were given to learn."""
        return self._learned + len(self._pending)

    @property
    def features_seen(self) -> int:
        """Distinct features met so far (see the indexes)."""
        return self._index.features_seen

    @property
    def nbytes(self) -> int:
        """Bytes that keys and state take now."""
        return self._index.nbytes + self._loop.S.nbytes

    @property
    def store(self) -> str:
        """SPEC of the store."""
        return self.recipe.store

    @property
    def nonzero(self) -> int:
        """Weights that are not zero, the intercepts not counted."""
        settled, unmet = self._loop.settled(), self._loop.unmet()
        return int(np.count_nonzero((settled != 0) & (settled != unmet) if unmet.any() else settled))

    @property
    def intercept(self) -> Any:
        """Settled weight of the intercept, ``(outputs,)`` for many; 0 without one."""
        bias = self._loop.bias()
        return float(bias[0]) if self.head.count == 1 else bias

    def weights(self) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """Keys, ascending, and weights of the features with a weight that is not zero.

        ``(features,)`` uint64, and ``(features,)`` or ``(features, outputs)`` in the dtype of the state.
        """
        keys, weights = self._stored()
        alive = _any_output(weights != 0)
        return (keys, weights) if alive.all() else (keys[alive], weights[alive])

    def _stored(self) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """The features whose weights differ from those of one never met."""
        settled = self._loop.settled()
        (rows,) = np.nonzero(_any_output(settled != self._loop.unmet().reshape(settled.shape[1:])))
        if self.head.count == 1:
            settled = settled.reshape(len(settled))
        keys = self._index.features()[rows]
        order = np.argsort(keys)
        return keys[order], settled[rows][order]

    def predict(self, chunk: Chunk, output: Output = "margin") -> NDArray[np.float64]:
        """Predictions for the rows of `chunk`; changes nothing. See `Readout.predict`."""
        check_chunk(chunk)
        margins = self._loop.margins(self._intake.read(chunk))
        return self.head.respond(margins, output, self.lowest_label)

    def readout(self) -> Readout:
        """The settled weights, apart from the state that goes on learning."""
        keys, weights = self._stored()
        rest = (self.lowest_label, self._loop.unmet(), self._intake.divisors)
        return Readout(self.head, self.store, keys, weights, self._loop.bias(), *rest)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning goes on from, as arrays."""
        counts = np.array([self._learned, self.lowest_label])
        whole = {**self._index.tensors(), **self._loop.state(), **self._intake.state(), "counters": counts}
        return whole if self.batch == 1 else whole | pending.state_of(self._pending)

    def check(self, state: Tensors) -> None:
        """StateError for a `state` that no model of these parts and options can be in."""
        steps, lowest = given(state, "counters", (2,), np.float64)
        counted = 0 <= steps <= MOST_STEPS and steps == np.floor(steps)
        require(
            counted and lowest <= 0,
            "counters",
            "examples are counted from 0 up, the least label is 0 or less",
        )
        rows = self._index.check(state, self.batch)
        self._loop.check(state, rows, int(steps))
        self._intake.check(state)
        if self.batch > 1:
            pending.check(state, self.batch, self.head)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from `state`, taken from a model of the same parts and options; StateError for any other."""
        self.check(state)
        self._index.restore(state)
        self._loop.restore(state)
        self._intake.restore(state)
        self._learned, self.lowest_label = int(state["counters"][0]), float(state["counters"][1])
        self._sound, self._extremes = self._learned, True  # for all that is known of the data before
        if self.batch > 1:
            self._pending = pending.restored(state)


def _any_output(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which features have a flag up: ``(features,)``."""
    return flags if flags.ndim == 1 else np.asarray(flags.any(axis=1), np.bool_)
