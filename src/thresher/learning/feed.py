"""Feed: examples on their way from the stream to the loops, prepared once for all that learn from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat, read_only
from thresher.engine.index import Resolved
from thresher.engine.sound import MOST_STEPS, Tensors, given, require
from thresher.engine.stores import make_index
from thresher.learning import pending
from thresher.learning.checks import check_chunk
from thresher.learning.finite import EXTREME, Before, DivergedError, has_extremes, ranges
from thresher.learning.head import Head
from thresher.learning.intake import Intake
from thresher.learning.loops import ManyLoop, OneLoop
from thresher.learning.recipe import Recipe

_PIECE = 1 << 19  # non-zeros resolved at a time: fewer calls, and their rows stay in a cache

_LOOKED_AT = 1000
"""Examples before one whose loss is not finite in which large values are looked for."""


class Learner(Protocol):
    """What learns from a feed: a model."""

    loop: OneLoop | ManyLoop

    def judge(self, before: Before) -> None:
        """Look at what learning the examples of `before` has done. Raises `DivergedError`."""

    def diverged(self, what: str, chunk: Chunk) -> DivergedError:
        """The error that tells of this, and of the features of `chunk`, in which it has happened."""

    error: DivergedError | None
    """why it learns no more"""

    def stop(self, error: DivergedError) -> None:
        """Raise the error, or keep it and learn no more."""


Learners = Sequence[Learner]


class _Fed:
    """A learner, and what it reads of the chunk under way."""

    def __init__(self, learner: Learner, chunk: Chunk, longest: int) -> None:
        self.learner, self.loop = learner, learner.loop
        self._weights, self._targets = chunk.weights, learner.loop.targets(chunk)
        self._longest = longest

    def learn(self, resolved: Resolved, lo: int) -> int:
        """Learn from example `lo` on; the first that was not."""
        return self.loop.learn(resolved, self._targets, self._weights, lo, self._longest)

    def judge(self, before: Before) -> None:
        """Of extreme examples."""
        try:
            self.learner.judge(before)
        except DivergedError as error:
            self.learner.stop(error)


class Feed:
    """Scales and admits features, cuts the stream into pieces, finds the rows of their keys on one index.

    Every learner then learns the piece, one after the other, while it lies in a cache. Each comes to the same
    as if it were alone, bit for bit: what is shared depends on the stream alone, but for when rows are freed,
    which no weight depends on. A learner that has stopped is fed no more.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.intake = Intake(recipe.scale, recipe.admit, recipe.seed)
        if recipe.layout is not None:
            self.intake.bind(recipe.layout)
        self.index = make_index(recipe.store, recipe.seed)
        self.batch = recipe.batch
        self.learned = 0
        """examples that the loops have learned"""
        self.lowest_label = 0.0
        self._extremes = False
        self._turn = Lock()
        self._rows = np.empty(0, np.uint32)
        self._pending = concat([])

    @property
    def examples(self) -> int:
        """How many were given to learn."""
        return self.learned + len(self._pending)

    def learn(
        self,
        learners: Learners,
        chunk: Chunk,
        lo: int = 0,
        hi: int | None = None,
        again: bool = False,
    ) -> None:
        """Have all `learners` predict, then learn, rows lo <= i < hi of `chunk`. See `Model.learn`."""
        check_chunk(chunk)
        self._take_turn()
        try:
            self._take(learners, chunk, lo, hi, again)
        finally:
            self._turn.release()

    def _take_turn(self) -> None:
        if not self._turn.acquire(blocking=False):
            raise RuntimeError("another thread learns with this model, or saves it: one at a time can")

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Nothing is learned in this block. RuntimeError where another thread is learning."""
        self._take_turn()
        try:
            yield
        finally:
            self._turn.release()

    def _take(self, learners: Learners, chunk: Chunk, lo: int, hi: int | None, again: bool) -> None:
        stop = len(chunk) if hi is None else hi
        if lo > 0 or stop < len(chunk):
            chunk = chunk.rows(lo, stop)
        labels = chunk.labels if chunk.targets is None else chunk.targets
        if labels.size:
            lowest = labels.item() if labels.size == 1 else float(labels.min())
            self.lowest_label = min(self.lowest_label, lowest)
        chunk = self.intake.learned(chunk, again)
        for piece in chunk.pieces(_PIECE):  # whose values are in a cache when they are learned
            if not (self._extremes or again or self._watched(learners)):
                self._extremes = has_extremes(piece)
            if self.batch == 1:
                self._learn(learners, piece)
            else:
                self._learn_in_batches(learners, piece)

    def _watched(self, learners: Learners) -> bool:
        """Whether the loop stops by itself at extreme values; to look beforehand is a tenth slower."""
        return len(learners) == 1 and learners[0].loop.watches

    def _learn_in_batches(self, learners: Learners, chunk: Chunk) -> None:
        lo, stop = 0, len(chunk)
        if len(self._pending):
            missing = min(self.batch - len(self._pending), stop - lo)
            self._pending = concat([self._pending, chunk.rows(lo, lo + missing)])
            lo += missing
            if len(self._pending) == self.batch:
                self._finish(learners)
        whole = stop - (stop - lo) % self.batch
        self._learn(learners, chunk.rows(lo, whole))
        if whole < stop:
            self._pending = concat([chunk.rows(whole, stop)])

    def finish(self, learners: Learners) -> None:
        """Learn the examples of a batch that is not full as a smaller one."""
        with self.at_rest():
            self._finish(learners)

    def _finish(self, learners: Learners) -> None:
        waiting, self._pending = self._pending, concat([])
        self._learn(learners, waiting)

    def _learn(self, learners: Learners, chunk: Chunk) -> None:
        if chunk.nnz > self._rows.size:
            self._rows = np.empty(chunk.nnz, np.uint32)
        if not len(chunk):
            return
        longest = chunk.nnz if len(chunk) == 1 else int(np.diff(chunk.indptr).max())
        fed = [_Fed(learner, chunk, longest) for learner in learners if not learner.error]
        begin = 0 if self._extremes else self._learn_up_to_extremes(chunk, fed)
        for lo, hi, extreme in ranges(chunk, self.batch, begin):
            befores = [(one, Before(one.loop, chunk.rows(lo, hi))) for one in fed if extreme]
            while lo < hi and fed:
                lo = self._learn_piece(chunk, fed, lo, hi)
                fed = [one for one in fed if not one.learner.error]
            for one, before in befores:
                if not one.learner.error:
                    one.judge(before)

    def _learn_up_to_extremes(self, chunk: Chunk, fed: list[_Fed]) -> int:
        """Learn all, or where the loop watches up to the first extreme example; the first that is left."""
        lo = 0
        if self._watched([one.learner for one in fed]):
            fed[0].loop.limit = float(EXTREME)
        while lo < len(chunk) and fed and not self._extremes:
            lo = self._learn_piece(chunk, fed, lo, len(chunk))
            fed[:] = [one for one in fed if not one.learner.error]
        return lo

    def _learn_piece(self, chunk: Chunk, fed: list[_Fed], lo: int, stop: int) -> int:
        hi = stop
        indptr, keys, values = read_only(chunk.indptr), read_only(chunk.keys), read_only(chunk.values)
        if len(keys) > _PIECE:
            hi = int(np.searchsorted(indptr, indptr[lo] + _PIECE, side="right")) - 1
        hi = min(lo + max((hi - lo) // self.batch, 1) * self.batch, stop)
        resolved = self.index.resolve(keys, indptr, values, lo, hi, self._rows)
        fits = resolved.hi
        if fits < hi:
            resolved = resolved._replace(hi=lo + (fits - lo) // self.batch * self.batch)
        if len(fed) > 1 or self.batch > 1 or fed[0].loop.S.ndim > 2:
            self.index.extend(keys[indptr[lo] : indptr[hi]])
        ends, before = [one.learn(resolved, lo) for one in fed], self.learned + 1 - lo
        done = max(ends)
        self.learned += done - lo
        last = min(done + self.batch, stop)
        for one, end in zip(fed, ends, strict=True):
            if end == resolved.hi or (end == done and self.index.extend(keys[indptr[done] : indptr[last]])):
                continue
            if one.loop.limit < np.inf and has_extremes(chunk.rows(end, end + 1)):
                self._extremes, one.loop.limit = True, np.inf
            else:
                what = f"the loss of example {before + end} is not finite"
                one.learner.stop(one.learner.diverged(what, chunk.rows(max(0, end - _LOOKED_AT), end + 1)))
        if done == resolved.hi < hi:
            self.index.make_room(int(indptr[last] - indptr[done]))
        return done

    def state(self) -> dict[str, NDArray[Any]]:
        """All that is shared and goes on."""
        counts = np.array([self.learned, self.lowest_label])
        whole = {**self.index.tensors(), **self.intake.state(), "counters": counts}
        return whole if self.batch == 1 else whole | pending.state_of(self._pending)

    def check(self, state: Tensors, head: Head) -> tuple[int, int]:
        """Rows of a table and examples learned; StateError for what no feed can be in."""
        steps, lowest = given(state, "counters", (2,), np.float64)
        counted = 0 <= steps <= MOST_STEPS and steps == np.floor(steps)
        require(
            counted and lowest <= 0,
            "counters",
            "examples are counted from 0 up, the least label is 0 or less",
        )
        rows = self.index.check(state, self.batch)
        self.intake.check(state)
        if self.batch > 1:
            pending.check(state, self.batch, head)
        return rows, int(steps)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from a `state` that `check` accepts; tables follow."""
        self.index.restore(state)
        self.intake.restore(state)
        self.learned, self.lowest_label = int(state["counters"][0]), float(state["counters"][1])
        self._extremes = True  # for all that is known of the data before
        if self.batch > 1:
            self._pending = pending.restored(state)
