"""BatchFeeder: prepares examples from the stream once, for all models that learn from it.

It keeps the examples of an incomplete batch as arrays of the model's state.

A feed prepares examples (scales, admission, batches, pieces, rows of keys); a Model has its own feed, lanes
share one. A lane is a Model like any other, so saving, reading and judging need nothing new; but only its
feed can train it. 8 lanes of `fobos` on the growing store cost 5.0 times one, of `ftrl` 6.1 times (11 million
non-zeros in memory, CPU time), so most lanes learn eight at a time (`eight_lanes`).

Sixteen lanes take twice as long as eight, so more processors pay: eights of one feed, folds of `cv` and
models of an ensemble share no state and learn in threads (`each`), with the same bits. Other machines would
each have to receive, unpack and index all rows once more; docs/scale-out.md has the figures. The first piece
compiles, and is learned by one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat, read_only
from thresher.data.errors import DataError
from thresher.data.layout import SettledLayout
from thresher.engine.index import Resolved, make_index
from thresher.engine.sound import (
    MOST_STEPS,
    StateError,
    Tensors,
    beneath,
    check_tensor,
    copy_state,
    require,
    under,
)
from thresher.learning.model.divergence import (
    EXTREME,
    DivergedError,
    Offsets,
    Undo,
    has_extremes,
    ranges,
)
from thresher.learning.model.objective import Objective
from thresher.learning.model.preprocessing import Preprocessor
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.rule_state import BEFORE_END as BEFORE_END_OF_LOOP
from thresher.learning.model.rule_state import ManyState, OneState
from thresher.learning.model.sampling import LEFT_OUT, Sample, Sampler
from thresher.learning.model.single_rows import features_of, ready_for

if TYPE_CHECKING:
    from thresher.learning.model.model import Model

T = TypeVar("T")
R = TypeVar("R")

WORTH = 1 << 15
"""Least number of stored values for which threads are worth starting."""
_here = threading.local()


def processors() -> int:
    """How many threads to use: one per processor of this process, or `NUMBA_NUM_THREADS`."""
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else len(os.sched_getaffinity(0))


def each(function: Callable[[T], R], items: Sequence[T], values: int) -> list[R]:
    """The results of `function` for all items, which must not share state; `values` are learned in each.

    The threads end with the call. If `function` raises, the error of the first item that fails is raised when
    all have ended.
    """
    threads = min(processors(), len(items))
    if threads < 2 or values < WORTH or getattr(_here, "inside", False):
        return [function(item) for item in items]
    inside = partial(setattr, _here, "inside", True)  # where nested work is done one after the other
    with ThreadPoolExecutor(threads, "thresher-learner", inside) as pool:
        return list(pool.map(function, items))


_PREFIX = "pending."
NONE = concat([])
"""A chunk without rows"""
BEFORE_END = "feed-before-end."
_ALWAYS = {"indptr", "keys", "values", "labels", "weights", "targets"}
_ARRAYS = _ALWAYS | {"cells", "offsets"}


def _waiting_in(state: Tensors) -> Chunk:
    """A copy of the examples of an incomplete batch in a `state`; StateError."""
    held: Any = {name: one.copy() for name, one in under(state, _PREFIX).items() if name in _ARRAYS}
    require(held.keys() >= _ALWAYS, "pending", "an array is missing")
    if not held["targets"].size:
        del held["targets"]
    found = Chunk(**held)
    try:
        found.check()
    except DataError as error:
        raise StateError(f"pending: {error}") from error
    return found


PIECE = 1 << 19
"""Nonzeros resolved at a time: few calls, and the rows stay in cache."""

MOST_AT_ONCE = 1 << 20
"""Most examples that are learned before what they have changed is looked at, if rows may be skipped."""

_LOOKED_AT = 1000
"""How many examples before a non-finite loss are searched for large values."""


class _Feeding(NamedTuple):
    """A learner with its view of the current chunk."""

    learner: Model
    given: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32] | None, int] | tuple[()]
    """targets, importances, offsets, and the length of the longest row"""


class BatchFeeder:
    """Scales and admits features, cuts the stream into pieces, and resolves keys to rows of one index.

    All learners learn a piece, one after the other, while it is in cache. Each gets exactly the weights it
    would get alone: what they share depends only on the stream, except for when rows are freed, which affects
    no weight. A learner that has stopped is skipped.
    """

    def __init__(self, recipe: Recipe) -> None:
        sample = None if recipe.sample is None else Sample.of(recipe.sample)
        sampler = None if sample is None else Sampler(sample, recipe.objective, recipe.seed)
        self.intake = Preprocessor(recipe.scale, recipe.admit, recipe.seed, bool(recipe.centre), sampler)
        self.shifted = recipe.offset
        self._loss = recipe.objective.loss
        self.signs, self._kept = recipe.signs(), False
        if recipe.layout is not None:
            self.bind(recipe.layout)
        self.index = make_index(recipe.store, recipe.seed)
        self.batch = recipe.batch
        self.learned = 0
        """examples that the loops have learned"""
        self.lowest_label = 0.0
        self.skip: Callable[[int, int, DivergedError], None] | None = None
        """called for an example, or a batch, that would make the only learner not finite: with the place
        of the first among the rows with an importance, their number, and the reason; None: raise it"""
        self._at, self._stride = 0, MOST_AT_ONCE
        self._extremes = False
        self._turn, self._rests, self._resting = Lock(), Lock(), 0
        self._rows = np.empty(0, np.uint32)
        self._undo: Undo | None = None
        self.pending = NONE
        self._before_end = dict[str, NDArray[Any]]()
        """the state before the last, incomplete batch was learned; empty if no batch was incomplete"""

    def bind(self, layout: SettledLayout | None) -> None:
        """Set the layout of the data. `DataError` if such data cannot be scaled, or lack a column."""
        self.intake.bind(layout)
        self.signs.bind(layout)
        self._kept = False

    @property
    def examples(self) -> int:
        """Number of examples so far, including those left out of a sample; none of importance 0."""
        return self.learned + len(self.pending) + self.left_out

    @property
    def left_out(self) -> int:
        """Number of examples left out of a sample."""
        return 0 if self.intake.sampler is None else int(self.intake.sampler.noted[LEFT_OUT])

    def learn(
        self,
        learners: Sequence[Model],
        chunk: Chunk,
        lo: int = 0,
        hi: int | None = None,
        again: bool = False,
    ) -> None:
        """Let all `learners` predict, then learn, rows lo <= i < hi of `chunk`, whose arrays were checked.

        See `Model.learn`.
        """
        self._take_turn()
        try:
            stop = len(chunk) if hi is None else hi
            if lo > 0 or stop < len(chunk):
                chunk = chunk.rows(lo, stop)
            chunk = chunk.counting()
            if (offsets := chunk.offsets_if(self.shifted)) is not None:
                Offsets.of(self._loss).check(offsets, self.examples)
            if len(chunk) and self._before_end:  # continue from before the last batch, which was incomplete
                self.restore(self._before_end)
                for learner in learners:
                    learner.loop.restore(learner.loop.before_end)
            if len(chunk) and self.signs and not self._kept:
                for learner in learners:
                    learner.loop.keep_signs(*self.signs.keys_and_signs())
                self._kept = True
            labels = chunk.labels if chunk.targets is None else chunk.targets
            if labels.size:
                lowest = labels.item() if labels.size == 1 else float(labels.min())
                self.lowest_label = min(self.lowest_label, lowest)
            for learner in learners:
                learner.loop.count_as(again)
            self._at, watched = 0, len(learners) == 1 and learners[0].loop.watches
            for raw in chunk.pieces(PIECE):  # small enough for its values to stay in cache
                piece = self.intake.transform(raw, again)
                # checking in advance is a tenth slower than a loop that stops at extreme values itself
                if not (self._extremes or again or watched):
                    self._extremes = has_extremes(piece)
                if self.batch == 1:
                    self._learn(learners, piece)
                else:
                    self._learn_in_batches(learners, piece)
                self._at += len(raw)
        finally:
            self._turn.release()

    def learn_row(self, learner: Model, row: dict[Any, Any], label: float, weight: float) -> bool:
        """Like `learn`, for one row, of an importance above 0, and the only learner; False if not taken."""
        if self.batch > 1 or self.signs or self.skip or not learner.loop.has_met(label):
            return False
        if not self.intake.counts_only_means or (features := features_of(learner, row)) is None:
            return False
        self._take_turn()
        try:
            if (ready := ready_for(learner, features)) is None:
                return False
            if (added := ready.add(features)) is None:
                learner.idle.append(ready)
                return False
            (total, more), arrays = added, ready.arrays
            self.intake.count_row(more)
            arrays.label[0], arrays.weight[0] = label, weight
            self.lowest_label = min(self.lowest_label, arrays.label.item())
            learner.loop.count_as(False)
            if not more and ready.learn is not None:
                if ready.learn():
                    self.learned += 1
                else:
                    fed = [_Feeding(learner, ())]
                    self._stopped(arrays.chunk(total), fed, [0], 1, self.learned + 1, 1)
            else:
                chunk = arrays.chunk(total)
                if not (self._extremes or learner.loop.watches):
                    self._extremes = has_extremes(chunk)
                self._learn([learner], chunk)
            learner.idle.append(ready)
            return True
        finally:
            self._turn.release()

    def _take_turn(self) -> None:
        if not self._turn.acquire(blocking=False):
            raise RuntimeError(
                "another thread is learning with this model or saving it; use one thread at a time"
            )

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Block learning in this context, of which several threads may be in at once.

        RuntimeError if another thread is learning.
        """
        with self._rests:
            if not self._resting:
                self._take_turn()
            self._resting += 1
        try:
            yield
        finally:
            with self._rests:
                self._resting -= 1
                if not self._resting:
                    self._turn.release()

    def _learn_in_batches(self, learners: Sequence[Model], chunk: Chunk) -> None:
        lo, stop, waiting = 0, len(chunk), len(self.pending)
        if waiting:
            lo = min(self.batch - waiting, stop)
            self.pending = concat([self.pending, chunk.rows(0, lo)])
            if len(self.pending) == self.batch:
                self._at -= waiting
                whole, self.pending = self.pending, NONE
                self._learn(learners, whole)
                self._at += waiting
        end = stop - (stop - lo) % self.batch
        self._at += lo
        self._learn(learners, chunk.rows(lo, end))
        self._at -= lo
        if end < stop:
            self.pending = concat([chunk.rows(end, stop)])

    def finish(self, learners: Sequence[Model]) -> None:
        """Learn the examples of an incomplete batch as a smaller batch, as if the stream ended here.

        If more is learned, these examples are the beginning of its first batch, as if it had not ended; but
        not those of a later pass, after which other data come.
        """
        with self.at_rest():
            if len(self.pending) and not any(one.loop.again for one in learners):
                self._before_end = copy_state(self.state())
                for one in learners:
                    one.loop.before_end = copy_state(one.loop.state())
            waiting, self.pending = self.pending, NONE
            self._learn(learners, waiting)

    def _learn(self, learners: Sequence[Model], chunk: Chunk) -> None:
        if not len(chunk) or all(learner.error for learner in learners):
            return
        offsets = None if chunk.offsets is None else read_only(chunk.offsets)
        if chunk.nnz > self._rows.size:
            self._rows = np.empty(chunk.nnz, np.uint32)
        longest = int((chunk.indptr[1:] - chunk.indptr[:-1]).max())
        fed = [
            _Feeding(one, (one.loop.targets(chunk), chunk.weights, offsets, longest))
            for one in learners
            if not one.error
        ]
        begin = 0  # the first extreme example, if the loop watches for one, or the end
        if not self._extremes and len(fed) == 1 and fed[0].learner.loop.watches:
            fed[0].learner.loop.limit = float(EXTREME)
        while begin < len(chunk) and fed and not self._extremes:
            begin = self._learn_piece(chunk, fed, begin, len(chunk))
            fed = [one for one in fed if not one.learner.error]
        for lo, hi, extreme in ranges(chunk, self.batch, begin):
            rows = chunk.rows(lo, hi)
            while lo < hi and fed:
                lo = self._learn_piece(chunk, fed, lo, hi)
                fed = [one for one in fed if not one.learner.error]
            for one in fed if extreme else ():
                one.learner.check_learned(rows, self.learned - len(rows) + 1)

    def _learn_piece(self, chunk: Chunk, fed: list[_Feeding], lo: int, stop: int) -> int:
        hi = stop if self.skip is None else min(stop, lo + self._stride)
        indptr, keys, values = read_only(chunk.indptr), read_only(chunk.keys), read_only(chunk.values)
        if len(keys) > PIECE:
            hi = int(np.searchsorted(indptr, indptr[lo] + PIECE, side="right")) - 1
        hi = min(lo + max((hi - lo) // self.batch, 1) * self.batch, stop)
        resolved = self.index.resolve(keys, indptr, values, lo, hi, self._rows)
        fits = resolved.hi
        if fits < hi:
            resolved = resolved._replace(hi=lo + (fits - lo) // self.batch * self.batch)
        if len(fed) > 1 or self.batch > 1 or fed[0].learner.loop.S.ndim > 2:
            part = slice(indptr[lo], indptr[hi])
            self.index.extend(keys[part])
            if resolved.rows.dtype != np.uint32:  # keys of the direct store; a loop on one output takes these
                np.copyto(self._rows[part], resolved.rows[part], casting="unsafe")
                resolved = resolved._replace(rows=self._rows)  # so others are compiled for one type of rows
        if self.skip is not None:
            self._undo = self._undo or Undo(fed[0].learner.loop)
            self._undo.note(resolved, lo)
        ends, before = self._ends(fed, resolved, lo, len(keys)), self.learned + 1 - lo
        if self._undo is not None and self._undo.undone():
            hi = resolved.hi
            if hi - lo > self.batch:  # try fewer next: what is not finite stays so, however many are tried
                self._stride = max((hi - lo) // 2 // self.batch, 1) * self.batch
                return lo
            what = f"a weight is not finite after example {self.learned + 1}"
            assert self.skip is not None
            self.skip(self._at + lo, hi - lo, fed[0].learner.divergence_error(what, chunk.rows(lo, hi)))
            return hi
        self._stride = min(2 * self._stride, MOST_AT_ONCE)
        done = max(ends)
        self.learned += done - lo
        last = min(done + self.batch, stop)
        if done == resolved.hi < hi:
            self.index.make_room(int(indptr[last] - indptr[done]))
        return self._stopped(chunk, fed, ends, resolved.hi, before, last)

    def _stopped(
        self, chunk: Chunk, fed: list[_Feeding], ends: list[int], hi: int, before: int, last: int
    ) -> int:
        """Go on where learning has stopped before row `hi`, or say why not. Return the next row."""
        done = max(ends)
        keys = read_only(chunk.keys)[chunk.indptr[done] : chunk.indptr[last]]
        for one, end in zip(fed, ends, strict=True):
            if end == hi or (end == done and self.index.extend(keys)):
                continue
            if one.learner.loop.limit < np.inf and has_extremes(chunk.rows(end, end + 1)):
                self._extremes, one.learner.loop.limit = True, np.inf
            else:
                what = f"the loss of example {before + end} is not finite"
                error = one.learner.divergence_error(what, chunk.rows(max(0, end - _LOOKED_AT), end + 1))
                if self.skip is not None:
                    self.skip(self._at + done, last - done, error)
                    return last
                one.learner.stop(error)
        return done

    def _ends(self, fed: list[_Feeding], resolved: Resolved, lo: int, values: int) -> list[int]:
        """Let all learn from example `lo` on; return the first example that each has not learned."""
        if len(fed) == 1:
            return [fed[0].learner.loop.learn(resolved, lo, *fed[0].given)]
        together: dict[Any, list[int]] = {}
        for k, one in enumerate(fed):
            together.setdefault(id(one.learner.loop.holder or one.learner.loop), []).append(k)

        found = each(
            lambda group: [(k, fed[k].learner.loop.learn(resolved, lo, *fed[k].given)) for k in group],
            [*together.values()],
            values if self.learned else 0,  # the first examples compile the loops
        )
        ends = dict(chain.from_iterable(found))
        return [ends[k] for k in range(len(fed))]

    def state(self) -> dict[str, NDArray[Any]]:
        """The shared part of the learning state."""
        counts = np.array([self.learned, self.lowest_label])
        whole = {**self.index.tensors(), **self.intake.state(), "counters": counts}
        if self.batch > 1:
            held = replace(self.pending, groups=None).arrays()
            held.setdefault("targets", np.zeros((0, 0), np.float32))
            whole |= beneath(_PREFIX, held) | beneath(BEFORE_END, self._before_end)
        return whole

    def check(
        self, state: Tensors, loops: Sequence[tuple[OneState | ManyState, Tensors]], head: Objective
    ) -> int:
        """The examples learned; StateError unless `state`, with those of the `loops`, is one of this feed."""
        counted, lowest = check_tensor(state, "counters", (2,), np.float64)
        sound = 0 <= counted <= MOST_STEPS and counted == np.floor(counted) and lowest <= 0
        require(sound, "counters", "numbers of examples must not be negative, nor the lowest label above 0")
        rows, steps = self.index.check(state, self.batch), int(counted)
        self.intake.check(state)
        if self.batch > 1:
            waiting = _waiting_in(state)
            require(len(waiting) < self.batch, _PREFIX + "labels", f"expected fewer than {self.batch}")
            if len(waiting):
                head.domain.check(waiting.labels, waiting.targets)
                head.targets(waiting)
                waiting.offsets_if(self.shifted)
        before, befores = under(state, BEFORE_END), [under(own, BEFORE_END_OF_LOOP) for _, own in loops]
        for loop, own in loops:
            loop.check(own, rows, steps)
        require(all(bool(own) == bool(before) for own in befores), BEFORE_END, "all or nothing must be there")
        if before:
            require(not under(before, BEFORE_END), BEFORE_END, "a stream ends once")
            inner = [(loop, own) for (loop, _), own in zip(loops, befores, strict=True)]
            learned = self.check(before, inner, head) + len(before[_PREFIX + "labels"])
            require(learned == steps, BEFORE_END, "as many must have been learned")
        return steps

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from a `state` that `check` has accepted; tables follow."""
        self.index.restore(state)
        self.intake.restore(state)
        self.learned, self.lowest_label = int(state["counters"][0]), float(state["counters"][1])
        self._kept = False
        self._extremes = True  # nothing is known about the data before
        self._before_end = under(state, BEFORE_END)
        if self.batch > 1:
            self.pending = _waiting_in(state).counting()
