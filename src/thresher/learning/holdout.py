"""Held-out examples: a separate source, or a share of the stream, that is never learned."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.byrows import identified
from thresher.data.chunk import Chunk, Place
from thresher.data.errors import DataError
from thresher.data.layout import grouped_by
from thresher.data.source import MemorySource, Through
from thresher.learning.draws import groups_held_out, held_out
from thresher.learning.head import Head
from thresher.learning.metrics import score
from thresher.learning.record import Record
from thresher.learning.seen import Seen
from thresher.learning.shares import Last, Meeting, Part, as_text, check_ungrouped
from thresher.learning.sides import counts_of, difference, off
from thresher.learning.trouble import Trouble, no_groups, nothing_held_out, nothing_met, uneven_groups, unlike

Figures = dict[str, float | int | None]


class Best(NamedTuple):
    """The pass with the lowest hold-out loss so far."""

    number: int
    figures: Figures
    state: dict[str, NDArray[Any]]


class Holdout:
    """The hold-out, evaluated after each pass, and the best pass so far."""

    seed = 0
    """seed of the choice of rows"""
    _head: Head | None = None
    _words: tuple[str, ...] = ()
    _names = ""
    """the name of the groups of the rows"""

    def __init__(self, every: Part = 0, given: Any = None) -> None:
        self.every, self._given = every, None if given is None else identified(given)
        self._kept: list[Chunk] = []
        self._learned: int | None = None
        """how many rows come before those that are held out, if those are the last; None: not known yet"""
        self._in_groups = self._read = self._named = False
        self._held_counts, self._learned_counts = Counter[float](), Counter[float]()
        self._rows = self._held_rows = 0
        self.incomplete = bool(every)
        """whether held-out examples of the stream are still to be collected"""
        self.figures: Figures | None = None
        self.best: Best | None = None
        self.passes_since = 0

    def attach(self, model: Any, source: Any) -> None:
        """Draw with the seed of `model`. `DataError` if rows have groups, but are not drawn."""
        self.seed = model.recipe.seed
        self._head, self._names = model.head, grouped_by(source.layout)
        self._words = source.layout.classes if source.layout else ()
        check_ungrouped(self.every, self._names)

    def rest(self, source: Any) -> Any:
        """`source` without its held-out rows."""
        return _Rest(source, self) if self.every else source

    def remaining(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The rows to learn of each of the `chunks` of a pass."""
        if isinstance(self.every, Last):
            yield from self._before_the_last(self.every, chunks)
        else:
            offered = learned = 0
            for chunk in chunks:
                rest = self._split(chunk, self._held(chunk, offered))
                offered, learned = offered + len(chunk), learned + len(rest)
                yield rest
            if not learned:
                raise self._none_left(offered)
        self._read, self.incomplete = True, False

    def _none_left(self, rows: int) -> DataError:
        """The error for a hold-out of all rows."""
        instead = "hold out fewer, such as --holdout last:0.1"
        if not isinstance(self.every, Last):
            others = "hold out others, such as --holdout 0.1"
            instead = "use another --seed, or hold out fewer" if self._in_groups else others
        held = as_text(self.every)
        return DataError(f"the hold-out, {held}, leaves none of {rows:,} rows to learn from: {instead}")

    def _held(self, chunk: Chunk, offered: int) -> NDArray[np.bool_]:
        """Which rows are held out; `offered` is the number of rows read before `chunk` in this pass."""
        assert not isinstance(self.every, Last)
        if isinstance(self.every, Meeting):
            assert chunk.groups is not None
            return np.asarray(chunk.groups != 0)
        if chunk.groups is None:
            return held_out(offered, len(chunk), self.every, self.seed)
        self._in_groups, self._named = True, self._named or bool(chunk.groups.any())
        return groups_held_out(chunk.groups, offered, self.every, self.seed)

    def _before_the_last(self, last: Last, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Chunks without the last rows of the stream.

        Only at its end is it known which these are. Until then, as many rows wait as would be held out if the
        stream ended here: no more than are held out at last.
        """
        waiting, read, passed = deque[Chunk](), 0, 0
        for chunk in chunks:
            waiting.append(chunk)
            read += len(chunk)
            certain = last.learned(read) if self._learned is None else self._learned
            while waiting and passed + len(waiting[0]) <= certain:
                first = waiting.popleft()
                passed += len(first)
                yield self._split(first, np.zeros(len(first), bool))
        self._learned = last.learned(read)
        if not self._learned:
            raise self._none_left(read)
        for chunk in waiting:
            numbers = np.arange(passed, passed + len(chunk))
            passed += len(chunk)
            yield self._split(chunk, numbers >= self._learned)

    def _split(self, chunk: Chunk, held: NDArray[np.bool_]) -> Chunk:
        """The rows of a chunk that are not held out."""
        out = chunk.take(held) if held.any() else None
        rest = chunk if out is None else chunk.take(~held).at(chunk.place, chunk.after)
        if self.incomplete:
            self._rows, self._held_rows = self._rows + len(chunk), self._held_rows + len(out or ())
            if self._head is not None:
                self._learned_counts += counts_of(self._head, rest)
                self._held_counts += Counter() if out is None else counts_of(self._head, out)
            self._kept += [] if out is None else [out]
        return rest

    def troubles(self) -> list[Trouble]:
        """Trouble with the choice of the rows."""
        if not self._read:
            return []
        if not self._kept:
            nothing = [nothing_met(self.every.condition)] if isinstance(self.every, Meeting) else []
            return [nothing_held_out()] if self._in_groups else nothing
        found = [] if self._named or not self._in_groups else [no_groups(self._names)]
        if not isinstance(self.every, Last | Meeting) and self._named:
            got, wanted = self._held_rows / self._rows, float(1 / self.every)
            found += [uneven_groups(got, wanted)] if off(got, wanted, self._rows) else []
        drawn = not isinstance(self.every, Last | Meeting)
        if drawn and not self._named:
            return found  # what differs then differs by chance
        reason = difference(self._held_counts, self._learned_counts, words=self._words)
        return [*found, unlike(reason, self._remedy())] if reason else found

    def _remedy(self) -> str:
        if isinstance(self.every, Last):
            return "if they are not in the order of time, draw the rows to hold out, --holdout 0.1"
        if isinstance(self.every, Meeting):
            return "if the condition is not meant to do that, draw the rows to hold out, --holdout 0.1"
        return "use another --seed, or leave --group out"

    @property
    def given(self) -> Any:
        """The separate source, or None."""
        return self._given

    def source(self) -> Any:
        """The source to evaluate on, or None."""
        if self._given is not None:
            return self._given
        return MemorySource(self._kept) if self._kept else None

    def score(self, model: Any, chunks: Iterable[Chunk]) -> Figures:
        """Evaluate the model on the hold-out."""
        return score(model, chunks).figures()

    def settle(self, model: Any, number: int, figures: Figures | None, patience: int) -> bool:
        """Record the figures of a pass. Return whether patience (0: unlimited) has run out."""
        self.figures = figures
        if not patience or figures is None:
            return False
        if self.best is None or float(figures["loss"] or 0.0) < float(self.best.figures["loss"] or 0.0):
            state = {name: array.copy() for name, array in model.state().items()}
            self.best, self.passes_since = Best(number, figures, state), 0
            return False
        self.passes_since += 1
        return self.passes_since >= patience

    def keep_record(self, model: Any, record: Record, seen: Seen) -> None:
        """Give the model, already restored to its best pass, the record of its training."""
        model.keep_record(record.of_pass(record.passes), seen)

    def stop_waiting(self) -> None:
        """Let the pass under way be no better than the best so far."""
        self.passes_since += 1

    def take_best(self, model: Any) -> int | None:
        """Restore the model of the best pass; return its number, or None if it is the last."""
        if self.best is None or not self.passes_since:
            return None
        model.restore(self.best.state)
        self.figures = self.best.figures
        return self.best.number


class _Rest(Through):
    """A source without its held-out rows, which are collected on the first reading."""

    def __init__(self, source: Any, holdout: Holdout) -> None:
        super().__init__(source)
        self._holdout = holdout

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """One pass. It reads from the beginning even if `start` is given, to count rows."""
        with closing(self._source.chunks()) as chunks:
            for chunk in self._holdout.remaining(chunks):
                if start is None or (chunk.place is not None and chunk.place >= start):
                    yield chunk
