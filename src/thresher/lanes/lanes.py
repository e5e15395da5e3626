"""Lanes: models that learn side by side from one reading of a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.errors import OneLineError
from thresher.engine.lookup import resized
from thresher.engine.sound import Tensors, under
from thresher.lanes.model_set import ModelSet
from thresher.lanes.race import Race
from thresher.learning.diagnostics.stream_statistics import Seen
from thresher.learning.model.divergence import Before, DivergedError
from thresher.learning.model.feed import Feed
from thresher.learning.model.model import Model
from thresher.learning.model.octet import LaneLoop, gathered
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.learner import Tally
from thresher.learning.training.progress import of_earlier
from thresher.learning.training.record import Record
from thresher.options.messages import mention, mention_command

OWN = ("rule", "rate", "loss", "average", "intercept", "dtype")
"""Fields of a Recipe in which lanes may differ."""


class _Lane:
    """A model as a learner of the feed; if it diverges, the others continue."""

    def __init__(self, number: int, model: Model) -> None:
        self.number, self.model, self.loop = number, model, model.loop
        self.error: DivergedError | None = None

    def judge(self, before: Before) -> None:
        self.model.judge(before)

    def diverged(self, what: str, chunk: Chunk) -> DivergedError:
        return self.model.diverged(what, chunk)

    def stop(self, error: DivergedError) -> None:
        self.error = error


class Lanes(ModelSet):
    """Models of several recipes that learn the same examples, read, scaled, admitted and indexed once.

    Each model is, bit for bit, the one it would be alone (law 7); only `features_seen` may be more exact,
    since a row is freed only if it is idle in every lane. A lane that diverges is dropped and `say` is
    called; the others continue. ValueError without recipes, and for recipes that differ in anything but
    `OWN`.

    >>> lanes = Lanes([Recipe("ftrl", l1=0.1), Recipe("ftrl", l1=0.7)])
    >>> lanes.learn(Chunk.of_rows([(1.0, {7: 2.0}), (-1.0, {8: 1.0})]))
    >>> [model.nonzero for model in lanes.models]
    [2, 1]
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        say: Callable[[str], None] = lambda line: None,
        race: Race | None = None,
    ) -> None:
        if not recipes:
            raise ValueError("lanes: give at least one recipe")
        for other in recipes[1:]:
            _check_alike(recipes[0], other)
        self._feed, self._say = Feed(recipes[0]), say
        self.models = [Model.lane(recipe, self._feed) for recipe in recipes]
        for model, loop in zip(self.models, gathered([model.loop for model in self.models]), strict=True):
            model.loop = loop
        self.dropped: dict[int, str] = {}
        """lanes that were dropped, and why"""
        self.left_at: dict[int, int] = {}
        """the number of examples that each of them has learned"""
        self.race = race
        """drops weak lanes"""
        self._learners = [_Lane(k, model) for k, model in enumerate(self.models)]
        self._first = 0

    @classmethod
    def going_on(
        cls, models: Sequence[Model], dropped: dict[int, str], say: Callable[[str], None] = lambda line: None
    ) -> Lanes:
        """Lanes that go on from the states of `models`, which have learned the same rows side by side.

        ValueError if they have not: each can then only go on alone.
        """
        lanes = cls([model.recipe for model in models], say)
        shared, *others = [model.shared_state() for k, model in enumerate(models) if k not in dropped]
        if not all(_are_same(shared, other) for other in others):
            raise OneLineError(
                "not all of these models are of the same pass over the same rows, so they cannot go on"
                " side by side: go on with one of them,"
                f" {mention_command('train')} {mention(continue_from='MODEL')}"
            )
        own = {k: model.loop.state() for k, model in enumerate(models) if k not in dropped}
        lanes.restore(shared | {f"lane.{k}.{n}": a for k in own for n, a in own[k].items()}, dropped)
        for lane, model in zip(lanes.models, models, strict=True):
            lane.curve, lane.names, lane.numbering = of_earlier(model.curve), model.names, model.numbering
        return lanes

    def __reduce__(self) -> Any:
        """Raise TypeError for copies and pickles: lanes share state."""
        raise TypeError("Lanes cannot be copied or pickled; copy one of their models instead")

    @property
    def members(self) -> list[Model]:
        """The models."""
        return self.models

    @property
    def parts(self) -> list[Any]:
        """The parts of lanes that learn in one loop; their types determine its code."""
        return [model.loop.parts for model in self.models if isinstance(model.loop, LaneLoop)]

    @property
    def alive(self) -> list[int]:
        """Numbers of the lanes that learn."""
        return [lane.number for lane in self._learners]

    def _drop(self) -> None:
        """Drop lanes that have stopped; raise the error of the last one if none is left."""
        stopped = [lane for lane in self._learners if lane.error]
        for lane in stopped:
            self.drop(lane.number, str(lane.error))
            self._say(f"{lane.model.recipe.rule}: {lane.error}; the other models continue")
        if stopped and stopped[-1].error and not self._learners:
            raise stopped[-1].error
        if self._first in [lane.number for lane in stopped]:
            self._first = min(self.alive)

    def drop(self, number: int, reason: str) -> None:
        """Stop a lane for good. Rows that only it needs may be freed."""
        self.dropped[number], self.left_at[number] = reason, self.examples
        self.models[number].loop.leave()
        self._learners = [lane for lane in self._learners if lane.number != number]

    def rest(self, number: int) -> None:
        """Stop a lane, keeping its state."""
        self.models[number].loop.rest()
        self._learners = [lane for lane in self._learners if lane.number != number]

    def put_back(self, number: int, state: dict[str, NDArray[Any]]) -> None:
        """Replace a lane's model by one restored from `state`; it stops learning with the others."""
        self.rest(number)
        before = self.models[number]
        before.loop.leave()
        self.models[number] = model = Model(before.recipe)
        model.curve = before.curve
        model.restore(state)

    def may_replay(self, steady: bool) -> bool:
        """Whether the rules of all models are automatic."""
        return all(model.may_replay(steady) for model in self.models)

    def begin_pass(self, number: int, passes: int = 0) -> None:
        """Start pass `number`, from 1, of `passes` over the same data, or resume it after a stop."""
        for k in self.alive:
            self.models[k].begin_pass(number, passes)

    def learn(self, chunk: Chunk, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None:
        """Let every lane learn rows lo <= i < hi of `chunk`. See `Model.learn`.

        Raises the `DivergedError` of the last lane if none is left.
        """
        stop = len(chunk) if hi is None else hi
        if self.race is None:
            self._learn(chunk, lo, stop, again)
            return
        chunk = chunk.rows(lo, stop).counting()
        lo, stop = 0, len(chunk)
        while lo < stop:
            due = min(stop, lo + self.race.due(self.examples))
            self._learn(chunk, lo, due, again)
            self.race.end_of_block(self)
            lo = due

    def _learn(self, chunk: Chunk, lo: int, hi: int, again: bool) -> None:
        self._feed.learn(self._learners, chunk, lo, hi, again)
        self._drop()

    def keep_record(self, record: Record, seen: Seen) -> None:
        """Set the record of all models."""
        for model in self.models:
            model.keep_record(record, seen)

    def mark(self) -> None:
        """Note a point of the progressive curve of each lane that learns."""
        for k in self.alive:
            self.models[k].mark()

    def finish(self) -> None:
        """Learn the examples of an incomplete batch as a smaller batch."""
        self._feed.finish(self._learners)
        self._drop()

    def check_finite(self) -> None:
        """Drop lanes with a non-finite weight or other state."""
        for lane in self._learners:
            try:
                lane.model.check_finite()
            except DivergedError as error:
                lane.stop(error)
        self._drop()

    def alone(self, number: int) -> Model:
        """An independent model in the state of this lane."""
        return alone(self.models[number])

    def sums(self, number: int) -> Tally:
        """Sums of progressive loss and importance of a lane."""
        return self.models[number].tally

    @property
    def lead(self) -> Model:
        """The lane with the lowest progressive loss; in a race always the first, until it diverges."""
        if self.race is not None:
            return self.models[self._first]
        return self.models[min(self.alive or [0], key=lambda k: self.models[k].tally.average)]

    @property
    def examples(self) -> int:
        """Number of examples given so far."""
        return self._feed.examples

    @property
    def features_seen(self) -> int:
        """Number of distinct features seen so far (see the indexes)."""
        return self._feed.index.features_seen

    def state(self) -> dict[str, NDArray[Any]]:
        """The whole learning state as arrays; that of lane k under ``lane.k.``."""
        there = [k for k in range(len(self.models)) if k not in self.dropped]
        own = {f"lane.{k}.{n}": a for k in there for n, a in self.models[k].loop.state().items()}
        return self._feed.state() | own

    def restore(
        self, state: dict[str, NDArray[Any]], dropped: dict[int, str], resting: Sequence[int] = ()
    ) -> None:
        """Continue from the `state` of lanes with these recipes, some dropped or resting. StateError."""
        for k, reason in dropped.items():
            self.drop(k, reason)
        own = [(self.models[k].loop, under(state, f"lane.{k}.")) for k in self.alive]
        self._feed.check(state, own, self.models[0].head)
        self._feed.restore(state)
        for k in self.alive:
            self.models[k].continue_from(under(state, f"lane.{k}."))
        for k in self.dropped:
            self.models[k].loop.S = resized(self.models[k].loop.S[:0], self._feed.index.size)  # to be read
        for k in resting:
            self.rest(k)
        self._first = min(self.alive or [0])


def alone(lane: Model) -> Model:
    """An independent model in the state of a lane."""
    model = Model(lane.recipe)
    model.restore(lane.state())
    model.names, model.record, model.curve = lane.names, lane.record, lane.curve
    model.numbering = lane.numbering
    return model


def _are_same(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def _check_alike(one: Recipe, other: Recipe) -> None:
    """ValueError for recipes that cannot learn side by side."""
    for field in fields(Recipe):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name not in OWN and mine != theirs:
            raise ValueError(f"lanes: {field.name} must be the same for all, not {mine!r} and {theirs!r}")
