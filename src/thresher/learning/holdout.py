"""Held-out examples: a source of their own, or a share of the stream, never learned from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.byrows import known
from thresher.data.chunk import Chunk, Place
from thresher.data.source import MemorySource, Through
from thresher.learning.metrics import score
from thresher.learning.record import Record
from thresher.learning.shares import Every

Figures = dict[str, float | int | None]


class Best(NamedTuple):
    """The pass with the least hold-out loss so far."""

    number: int
    figures: Figures
    state: dict[str, NDArray[Any]]


class Holdout:
    """What is evaluated after each pass, and the best pass so far."""

    def __init__(self, every: Every = 0, given: Any = None) -> None:
        self.every, self._given = every, None if given is None else known(given)
        self._kept: list[Chunk] = []
        self.incomplete = bool(every)
        """the examples of the stream are still to be collected"""
        self.figures: Figures | None = None
        self.best: Best | None = None
        self.passes_since = 0

    def rest(self, source: Any) -> Any:
        """`source` without what is held out of it."""
        return _Rest(source, self) if self.every else source

    def split(self, chunk: Chunk, offered: int) -> Chunk:
        """The rows to learn from, given how many rows were read before `chunk` since the pass began.

        Row i, from 0, is held out where floor((i + 1) / N) > floor(i / N).
        """
        ends = np.arange(offered, offered + len(chunk) + 1)
        ends = ends * self.every.denominator // self.every.numerator
        held = ends[1:] > ends[:-1]
        if self.incomplete and held.any():
            self._kept.append(chunk.take(held))
        return chunk.take(~held).at(chunk.place, chunk.after)

    @property
    def given(self) -> Any:
        """The source of its own; None without one."""
        return self._given

    def source(self) -> Any:
        """What to evaluate on; None without any."""
        if self._given is not None:
            return self._given
        return MemorySource(self._kept) if self._kept else None

    def score(self, model: Any, chunks: Iterable[Chunk]) -> Figures:
        """What the model is worth on what was held out."""
        return score(model, chunks).figures()

    def settle(self, model: Any, number: int, figures: Figures | None, patience: int) -> bool:
        """Note the figures of a pass; True when patience (0: endless) is at its end."""
        self.figures = figures
        if not patience or figures is None:
            return False
        if self.best is None or float(figures["loss"] or 0.0) < float(self.best.figures["loss"] or 0.0):
            state = {name: array.copy() for name, array in model.state().items()}
            self.best, self.passes_since = Best(number, figures, state), 0
            return False
        self.passes_since += 1
        return self.passes_since >= patience

    def keep_record(self, model: Any, record: Record) -> None:
        """Note how the model came to be, which is now that of its best pass."""
        model.keep_record(record)

    def take_best(self, model: Any) -> int | None:
        """Put `model` back to where the best pass left it; its number where that is not the last."""
        if self.best is None or not self.passes_since:
            return None
        model.restore(self.best.state)
        self.figures = self.best.figures
        return self.best.number


class _Rest(Through):
    """A source without the rows that are held out, which are collected when it is first read."""

    def __init__(self, source: Any, holdout: Holdout) -> None:
        super().__init__(source)
        self._holdout = holdout

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """One pass; read from its beginning even to go on from `start`, since rows are counted from there."""
        offered = 0
        with closing(self._source.chunks()) as chunks:
            for chunk in chunks:
                rest = self._holdout.split(chunk, offered)
                offered += len(chunk)
                if start is None or chunk.place >= start:
                    yield rest
        self._holdout.incomplete = False
