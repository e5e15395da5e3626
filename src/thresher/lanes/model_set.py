"""Several models that a `Trainer` trains as one: what lanes, folds and ensembles share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thresher.data.chunk import Chunk
from thresher.data.layout import SettledLayout
from thresher.learning.model.feed import each
from thresher.learning.training.passes import is_automatic


class _OfLead:
    """An attribute of the lead, unless the set has one of its own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, models: ModelSet, owner: type) -> Any:
        return getattr(models.lead, self._name)


class ModelSet(ABC):
    """Models, or sets of them, that are told of as one of them, the lead."""

    @property
    @abstractmethod
    def members(self) -> Sequence[Any]:
        """The models."""

    @property
    def lead(self) -> Any:
        """The one that stands for all."""
        return self.members[0]

    recipe = _OfLead()
    head = _OfLead()
    tally = _OfLead()
    repeated = _OfLead()
    last_prediction = _OfLead()
    nonzero = _OfLead()
    features_seen = _OfLead()
    left_out = _OfLead()
    last_label = _OfLead()
    knows = _OfLead()

    @property
    def layout(self) -> SettledLayout | None:
        """How the training data became features, if they came from files or tables."""
        found: SettledLayout | None = self.members[0].layout
        return found

    @layout.setter
    def layout(self, layout: SettledLayout | None) -> None:
        for one in self.members:
            one.layout = layout

    def end_passes(self) -> None:
        """End the passes over the same data."""
        for one in self.members:
            one.end_passes()


class SplitModelSet(ModelSet):
    """Models, or sets of them, each of which learns its part of the rows."""

    _given = 0
    """number of examples given so far"""
    _pass = _rows = 0
    """the pass, and the number of its next row"""
    _first = 0
    """the number of the first row of a pass, where the stream goes on with other data"""

    @abstractmethod
    def _dealt(self, chunk: Chunk) -> Callable[[int], Chunk]:
        """What a member learns, given its number, of `chunk`, the next rows of the pass."""

    def _settle(self) -> None:
        """Note what has diverged."""

    def may_replay(self, steady: bool) -> bool:
        """Whether the rule is automatic; a row must have the same number in every pass."""
        return steady and is_automatic(self.recipe)

    def begin_pass(self, number: int, passes: int = 0) -> None:
        """Start pass `number`, from 1, of `passes` over the same data in the same order, or resume it."""
        if number != self._pass:
            self._pass, self._rows = number, self._first
        for one in self.members:
            one.begin_pass(number, passes)

    def learn(self, chunk: Chunk, /, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None:
        """Let each member learn its part of the rows lo <= i < hi of `chunk`. See `Model.learn`."""
        if lo > 0 or hi is not None:
            chunk = chunk.rows(lo, len(chunk) if hi is None else hi)
        members, part_of, compiled = self.members, self._dealt(chunk), self._given > 0
        self._rows += len(chunk)
        self._given += int(np.count_nonzero(chunk.weights))

        def learn(k: int) -> None:
            members[k].learn(part_of(k), again=again)

        each(learn, range(len(members)), chunk.nnz if compiled else 0)
        self._settle()

    def finish(self) -> None:
        """Learn the examples of incomplete batches as smaller batches."""
        for one in self.members:
            one.finish()
        self._settle()

    def check_finite(self) -> None:
        """Raise `DivergedError` if a weight or any other part of the state is not finite."""
        for one in self.members:
            one.check_finite()
        self._settle()

    @property
    def examples(self) -> int:
        """Number of examples given so far."""
        return self._given
