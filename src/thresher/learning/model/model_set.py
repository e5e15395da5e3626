"""Any number of models that learn from one reading of a stream: one is a set of one.

A *share* says which rows each part of the set learns; the models of a part are lanes, which learn the same
rows, read, scaled, admitted and indexed once. Everything that trains models trains a set of them, so a plan
such as a path of penalties, cross-validation or an ensemble is a list of recipes and a share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import fields
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.errors import OneLineError
from thresher.data.layout import SettledLayout
from thresher.data.source import Source
from thresher.engine.lookup import resized
from thresher.engine.sound import PackedSets, Tensors, beneath, given, pack, require, under
from thresher.learning.diagnostics.stream_statistics import StreamStatistics
from thresher.learning.model.batch_feeder import BatchFeeder, each
from thresher.learning.model.divergence import Before, DivergedError
from thresher.learning.model.eight_lanes import batched
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.passes import is_automatic
from thresher.learning.training.progress import Tally
from thresher.learning.training.record import Record
from thresher.options.messages import mention, mention_command

OWN = ("rule", "rate", "loss", "average", "intercept", "dtype")
"""Fields of a Recipe in which the models of a part may differ."""
_COUNTERS, _SHARE, _RACE = "counters", "share.", "race."


class Referee(Protocol):
    """Watches lanes, and drops those that are too weak."""

    def due(self, done: int) -> int:
        """Number of examples after which it is to be asked again."""

    def end_of_block(self, lanes: ModelSet) -> None:
        """So many examples are learned."""

    def state(self) -> dict[str, NDArray[Any]]:
        """What it knows."""

    def restore(self, state: Tensors) -> None:
        """Go on from a state; StateError."""


class _Lane:
    """A model as a learner of its feed; if it diverges, the others continue."""

    def __init__(self, number: int, model: Model) -> None:
        self.number, self.model, self.loop = number, model, model.loop
        self.error: DivergedError | None = None

    def judge(self, before: Before) -> None:
        self.model.judge(before)

    def diverged(self, what: str, chunk: Chunk) -> DivergedError:
        return self.model.diverged(what, chunk)

    def stop(self, error: DivergedError) -> None:
        self.error = error


class Part:
    """Models that learn the same rows, from one feed: lanes. They may differ in `OWN`; else ValueError.

    `features_seen` may be more exact than that of a model alone, since a row is freed only if it is idle in
    every lane.
    """

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        for other in recipes[1:]:
            _check_alike(recipes[0], other)
        self.feed = BatchFeeder(recipes[0])
        self._take([Model.lane(recipe, self.feed) for recipe in recipes])
        for lane, loop in zip(self._lanes, batched([model.loop for model in self.models]), strict=True):
            lane.model.loop = lane.loop = loop

    @classmethod
    def of(cls, model: Model) -> Part:
        """A part of one model, which stays its own."""
        part = cls.__new__(cls)
        part.feed = model.feed
        part._take([model])
        return part

    def _take(self, models: list[Model]) -> None:
        self.models = models
        self.dropped: dict[int, str] = {}
        """lanes that were dropped, and why"""
        self.left_at: dict[int, int] = {}
        """the number of examples that each of them has learned"""
        self._lanes = [_Lane(k, model) for k, model in enumerate(models)]

    @property
    def alive(self) -> list[int]:
        """Numbers of the lanes that learn."""
        return [lane.number for lane in self._lanes]

    def learn(self, chunk: Chunk, again: bool) -> list[tuple[int, str]]:
        """Let all lanes learn; the numbers of those that diverged, and why.

        `DivergedError` if none is left.
        """
        if self._lanes:
            self.feed.learn(self._lanes, chunk, again=again)
        return self._fallen()

    def finish(self) -> list[tuple[int, str]]:
        """Learn the examples of an incomplete batch as a smaller batch; as `learn`."""
        if self._lanes:
            self.feed.finish(self._lanes)
        return self._fallen()

    def check_finite(self) -> list[tuple[int, str]]:
        """Drop lanes with a non-finite weight or other state; as `learn`."""
        for lane in self._lanes:
            try:
                lane.model.check_finite()
            except DivergedError as error:
                lane.stop(error)
        return self._fallen()

    def _fallen(self) -> list[tuple[int, str]]:
        stopped = [lane for lane in self._lanes if lane.error]
        for lane in stopped:
            if not lane.model.is_alone:  # whose owner may go on with it
                self.drop(lane.number, str(lane.error))
        if stopped and stopped[-1].error and all(lane.error for lane in self._lanes):
            raise stopped[-1].error
        return [(lane.number, str(lane.error)) for lane in stopped]

    def drop(self, number: int, reason: str) -> None:
        """Stop a lane for good. Rows that only it needs may be freed."""
        self.dropped[number], self.left_at[number] = reason, self.feed.examples
        self.models[number].loop.leave()
        self._lanes = [lane for lane in self._lanes if lane.number != number]

    def rest(self, number: int) -> None:
        """Stop a lane, keeping its state."""
        self.models[number].loop.rest()
        self._lanes = [lane for lane in self._lanes if lane.number != number]

    def put_back(self, number: int, state: dict[str, NDArray[Any]]) -> None:
        """Restore a model from `state`; among others, it stops learning with them."""
        before = self.models[number]
        if before.is_alone:
            before.restore(state)
            return
        self.rest(number)
        before.loop.leave()
        self.models[number] = model = Model(before.recipe)
        model.curve = before.curve
        model.restore(state)

    def state(self) -> dict[str, NDArray[Any]]:
        """The whole learning state as arrays; that of lane k under ``lane.k.``."""
        there = [k for k in range(len(self.models)) if k not in self.dropped]
        own = {f"lane.{k}.{n}": a for k in there for n, a in self.models[k].loop.state().items()}
        return self.feed.state() | own

    def check(self, state: Tensors) -> None:
        """StateError if these lanes cannot be in `state`."""
        own = [(self.models[k].loop, under(state, f"lane.{k}.")) for k in self.alive]
        self.feed.check(state, own, self.models[0].head)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from the `state` of lanes with these recipes. StateError."""
        self.check(state)
        self.feed.restore(state)
        for k in self.alive:
            self.models[k].continue_from(under(state, f"lane.{k}."))
        for k in self.dropped:
            self.models[k].loop.S = resized(self.models[k].loop.S[:0], self.feed.index.size)  # to be read


class Share:
    """Which rows of a stream each part of a set learns: here, one part learns all of them.

    It also says which model stands for the set in a table of progress, and what is scored on held-out rows.
    """

    parts = 1
    deals = False
    """whether parts learn different rows"""
    grows = False
    """whether parts are made as rows come: each but the first has few of these"""
    spec = ""
    """what a checkpoint calls it"""
    steady = False
    """whether a row must have the same number in every pass"""
    last = 0
    """number of a part that has learned the last row"""
    kept: float = 0
    """how many rows may come again, in later passes"""

    def attach(self, *sources: Source | None) -> None:
        """Let sources give what rows are told apart by. `DataError` if one cannot."""

    def noted(self, chunk: Chunk, first: int) -> Chunk:
        """`chunk` as it is dealt, maybe later; its first row has the number `first` in this pass."""
        return chunk

    def waits(self, chunks: Sequence[Chunk]) -> bool:
        """Whether these chunks may wait for others before they are dealt."""
        return False

    def dealt(self, chunk: Chunk, first: int) -> Callable[[int], Chunk]:
        """What a part learns, given its number, of `chunk`, whose first row has the number `first`."""
        return lambda part: chunk

    def passes(self, part: int, planned: int) -> int:
        """How many passes a part makes, if so many are planned; 0: not known."""
        return planned

    def settle(self, models: ModelSet, passes: int) -> int:
        """The passes that any part makes, at the end of the first, if all rows together get so many."""
        return passes

    def where(self, part: int) -> str:
        """What a part learns, in words that begin a message; empty: all rows."""
        return ""

    def lead(self, models: ModelSet) -> Any:
        """Of the last part, the model with the lowest progressive loss; in a race, the first.

        Also if the race has dropped it, until another takes the place of all, but not if it diverged.
        """
        if models.race is not None:
            return next(
                (one for k, one in enumerate(models.models) if k not in models.told), models.models[0]
            )
        part = models.parts[-1]
        return part.models[min(part.alive or [0], key=lambda k: part.models[k].tally.average)]

    def recorded(self, models: ModelSet) -> list[Model]:
        """The models whose curves and records are kept."""
        return models.models

    def scored(self, models: ModelSet) -> dict[int, Any]:
        """What is evaluated on rows that are held out: the models that learn, by number."""
        return {k: models.models[k] for k in models.alive}

    def state_of(self, models: ModelSet, number: int) -> dict[str, NDArray[Any]]:
        """The state of what is scored as `number`."""
        return models.models[number].state()

    def check_state(self, models: ModelSet, number: int, state: Tensors) -> None:
        """StateError unless `put_back` can take it."""
        models.models[number].check(state)

    def put_back(self, models: ModelSet, number: int, state: dict[str, NDArray[Any]]) -> None:
        """Restore what is scored as `number`."""
        models.parts[0].put_back(number, state)

    def keep_record(self, models: ModelSet, records: Callable[[int], Record], seen: StreamStatistics) -> None:
        """Set the records, given the one of each model by its number."""
        for k, model in enumerate(models.models):
            model.keep_record(records(k), seen)

    def state(self) -> dict[str, NDArray[Any]]:
        """What it knows of the rows."""
        return {}

    def restore(self, state: Tensors) -> None:
        """Go on from a `state`. StateError."""


class ModelSet:
    """Models that learn from one reading. Model k has recipe k % R, for R recipes, in part k // R.

    Each model is, bit for bit, the one it would be alone on the rows of its part (law 7). A recipe that
    diverges in any part is dropped and `say` is called; the others continue. ValueError without recipes, and
    as `Part`.

    >>> models = ModelSet([Recipe("ftrl", l1=0.1), Recipe("ftrl", l1=0.7)])
    >>> models.learn(Chunk.of_rows([(1.0, {7: 2.0}), (-1.0, {8: 1.0})]))
    >>> [model.nonzero for model in models.models]
    [2, 1]
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        share: Share | None = None,
        *,
        say: Callable[[str], None] = lambda line: None,
        race: Referee | None = None,
    ) -> None:
        if not recipes:
            raise ValueError("give at least one recipe")
        share = share or Share()
        self._begin(share, [Part(recipes) for _ in range(share.parts)], say, race)

    @classmethod
    def of(cls, models: Model | Sequence[Model], share: Share | None = None, given: int = 0) -> ModelSet:
        """A set of these models, a part for each; they have been `given` so many examples before."""
        found = cls.__new__(cls)
        each_alone = [models] if isinstance(models, Model) else models
        found._begin(share or Share(), [Part.of(model) for model in each_alone], lambda line: None, None)
        found._given = found._first_row = given
        return found

    def _begin(
        self, share: Share, parts: list[Part], say: Callable[[str], None], race: Referee | None
    ) -> None:
        self.share, self.parts, self.say = share, parts, say
        self.race = race
        """drops weak lanes"""
        self._given = 0
        """examples so far, if they are dealt to several parts"""
        self._pass = self._row = self._first_row = 0
        """the pass, the number of its next row, and of its first: more where the stream goes on"""
        self._planned, self._again = 0, False
        """the number of passes, if it is known, and whether rows come again"""
        self._waiting: list[Chunk] = []
        """rows that wait to be dealt with others"""
        self.told: set[int] = set()
        """the recipes that diverged, of which `say` was told"""

    def __copy__(self) -> ModelSet:
        """A set with a copy of its only model. TypeError for several, which share state."""
        if len(self.models) > 1 or not self.models[0].is_alone:
            raise TypeError("models that learn side by side cannot be copied or pickled; copy one of them")
        return ModelSet.of(copy(self.models[0]))

    def __reduce__(self) -> Any:
        """As `__copy__`."""
        return ModelSet.of, (copy(self).models[0],)

    @property
    def models(self) -> list[Model]:
        """All models."""
        self.flush()
        return [model for part in self.parts for model in part.models]

    @property
    def recipes(self) -> list[Recipe]:
        """The recipes of each part."""
        return [model.recipe for model in self.parts[0].models]

    @property
    def recipe(self) -> Recipe:
        """The first recipe."""
        return self.parts[0].models[0].recipe

    @property
    def head(self) -> Any:
        """The meaning of margins."""
        return self.parts[0].models[0].head

    @property
    def lead(self) -> Any:
        """What stands for all: see `Share.lead`."""
        self.flush()
        return self.share.lead(self)

    @property
    def features_seen(self) -> int:
        """Number of distinct features that the first model has seen so far."""
        return self.parts[0].models[0].features_seen

    def last_label(self, given: Chunk) -> float:
        """Label of the last of the rows `given`, which were learned."""
        return self.parts[0].models[0].last_label(given)

    @property
    def alive(self) -> list[int]:
        """Numbers of the models that learn."""
        count = len(self.parts[0].models)
        return [p * count + k for p, part in enumerate(self.parts) for k in part.alive]

    @property
    def dropped(self) -> dict[int, str]:
        """The recipes that were dropped, and why in the first part where they were."""
        found: dict[int, str] = {}
        for p, part in enumerate(self.parts):
            where = self.share.where(p)
            found = {k: where + reason for k, reason in part.dropped.items()} | found
        return found

    @property
    def layout(self) -> SettledLayout | None:
        """How the training data became features, if they came from files or tables."""
        return self.recipe.layout

    @layout.setter
    def layout(self, layout: SettledLayout | None) -> None:
        for model in self.models:
            model.layout = layout

    @property
    def examples(self) -> int:
        """Number of examples given so far."""
        return self._given if self.share.deals else self.parts[0].feed.examples

    def may_replay(self, steady: bool) -> bool:
        """Whether the rules of all models are automatic, and rows come as the share needs them."""
        ready = steady or not self.share.steady
        return ready and all(is_automatic(recipe) for recipe in self.recipes)

    def begin_pass(self, number: int, passes: int = 0) -> None:
        """Start pass `number`, from 1, of `passes` over the same data, or resume it after a stop."""
        self.flush()
        if number != self._pass:
            self._pass, self._row = number, self._first_row
        self._planned = passes
        for p, part in enumerate(self.parts):
            self._begin_pass(p, part)

    def _begin_pass(self, number: int, part: Part) -> None:
        if self._is_due(number):
            for k in part.alive:
                part.models[k].begin_pass(self._pass, self.share.passes(number, self._planned))

    def _is_due(self, number: int) -> bool:
        """Whether a part learns in this pass."""
        passes = self.share.passes(number, self._planned)
        return not passes or self._pass <= passes

    def settle(self, passes: int) -> int:
        """The passes that any model makes, at the end of the first, if all rows together get so many."""
        self.flush()
        return self.share.settle(self, passes)

    def end_passes(self) -> None:
        """End the passes over the same data."""
        for model in self.models:
            model.end_passes()

    def learn(self, chunk: Chunk, /, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None:
        """Let each part learn its share of the rows lo <= i < hi of `chunk`. See `Model.learn`.

        Raises the `DivergedError` of the last model if none is left.
        """
        if lo > 0 or hi is not None:
            chunk = chunk.rows(lo, len(chunk) if hi is None else hi)
        if self.race is None:
            self._learn(chunk, again)
            return
        chunk, lo = chunk.counting(), 0
        while lo < len(chunk):
            due = min(len(chunk), lo + self.race.due(self.examples))
            self._learn(chunk.rows(lo, due), again)
            self.race.end_of_block(self)
            lo = due

    def _learn(self, chunk: Chunk, again: bool) -> None:
        if not self.share.deals:
            self._settle([(0, self.parts[0].learn(chunk, again))])
            return
        self._waiting.append(self.share.noted(chunk, self._row - self._first_row))
        self._row += len(chunk)
        self._given += int(np.count_nonzero(chunk.weights))
        self._again = again
        if not self.share.waits(self._waiting):
            self.flush()

    def flush(self) -> None:
        """Learn the rows that wait to be dealt."""
        if not self._waiting:
            return
        chunk = self._waiting[0] if len(self._waiting) == 1 else concat(self._waiting)
        self._waiting = []
        compiled = self.parts[0].feed.learned > 0
        dealt = self.share.dealt(chunk, self._row - len(chunk))
        self._grow()
        every = range(len(self.parts))

        def learn(numbers: Sequence[int]) -> list[tuple[int, list[tuple[int, str]]]]:
            given = ((p, dealt(p)) for p in numbers if self._is_due(p))
            return [(p, self.parts[p].learn(rows, self._again)) for p, rows in given if len(rows)]

        at_once = [every[:1], every[1:]] if self.share.grows else [every[p : p + 1] for p in every]
        self._settle(chain.from_iterable(each(learn, at_once, chunk.nnz if compiled else 0)))

    def _grow(self) -> None:
        """Make the parts that the share has met."""
        while len(self.parts) < self.share.parts:
            part = Part(self.recipes)
            self.parts.append(part)
            self._begin_pass(len(self.parts) - 1, part)

    def finish(self) -> None:
        """Learn the examples of incomplete batches as smaller batches."""
        self.flush()
        self._settle([(p, part.finish()) for p, part in enumerate(self.parts)])

    def check_finite(self) -> None:
        """Drop models with a non-finite weight or other state; `DivergedError` if none is left."""
        self.flush()
        self._settle([(p, part.check_finite()) for p, part in enumerate(self.parts)])

    def _settle(self, fallen: Iterable[tuple[int, Sequence[tuple[int, str]]]]) -> None:
        """Tell of recipes that diverged in a part; `DivergedError` if none is left that did not."""
        for p, some in fallen:
            for k, reason in some:
                if k not in self.told:
                    self.told.add(k)
                    what = f"{self.recipes[k].rule}: {self.share.where(p)}{reason}"
                    self.say(f"{what}; the other models continue")
        if self.told and len(self.told) == len(self.recipes):
            raise DivergedError("learning diverged in at least one fold for every model")

    def drop(self, number: int, reason: str) -> None:
        """Stop a lane for good."""
        self.parts[0].drop(number, reason)

    def rest(self, number: int) -> None:
        """Stop a lane, keeping its state."""
        self.parts[0].rest(number)

    def mark(self) -> None:
        """Note a point of the progressive curve of each model that learns and is kept."""
        if not (kept := {id(model) for model in self.share.recorded(self)}):
            return
        alive = self.alive
        for k, model in enumerate(self.models):
            if id(model) in kept and k in alive:
                model.mark()

    def alone(self, number: int) -> Model:
        """An independent model in the state of this one."""
        return copy(self.models[number])

    def sums(self, number: int) -> Tally:
        """Sums of progressive loss and importance of a model."""
        return self.models[number].tally

    def state(self) -> dict[str, NDArray[Any]]:
        """The whole learning state as arrays; that of part p under ``p.``."""
        self.flush()
        counters = [self._given, self._pass, self._row, self._first_row, self.share.last]
        whole: dict[str, NDArray[Any]] = {
            _COUNTERS: np.array(counters),
            **beneath(_SHARE, self.share.state()),
        }
        whole |= pack([part.state() for part in self.parts])
        return whole | beneath(_RACE, {} if self.race is None else self.race.state())

    def check(self, state: Tensors) -> None:
        """StateError if this set cannot be in `state`, whose parts it makes."""
        self.share.restore(under(state, _SHARE))
        self._grow()
        counters = given(state, _COUNTERS, (5,), np.int64)
        known = bool((counters >= 0).all()) and counters[4] < len(self.parts)
        require(known, _COUNTERS, "numbers of examples, passes, rows and a part")
        packed = PackedSets(state, state.__getitem__)
        for p, part in enumerate(self.parts):
            part.check(packed.of(p))

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from the `state` of a set with the same recipes and share. StateError."""
        self.check(state)
        packed = PackedSets(state, state.__getitem__)
        for p, part in enumerate(self.parts):
            part.restore(packed.of(p))
        if self.race is not None:
            self.race.restore(under(state, _RACE))
        self.told |= self.dropped.keys()
        self._given, self._pass, self._row, self._first_row, self.share.last = state[_COUNTERS].tolist()

    def described(self) -> dict[str, Any]:
        """What a checkpoint says of the set, beside its `state`."""
        alive, dropped = self.alive, self.parts[0].dropped
        return {
            "share": self.share.spec,
            "racing": self.race is not None,
            "recipes": [recipe.as_dict() for recipe in self.recipes],
            "dropped": [*dropped.items()],
            "resting": [k for k in range(len(self.models)) if k not in alive and k not in dropped],
            "curves": [model.curve for model in self.models],
        }


def going_on(models: Sequence[Model], dropped: dict[int, str]) -> ModelSet:
    """Lanes that go on from the states of `models`, which have learned the same rows side by side.

    ValueError if they have not: each can then only go on alone.
    """
    found = ModelSet([model.recipe for model in models])
    shared, *others = [model.feed.state() for k, model in enumerate(models) if k not in dropped]
    for other in others:
        if other.keys() != shared.keys() or not all(np.array_equal(shared[n], other[n]) for n in shared):
            raise OneLineError(
                "not all of these models are of the same pass over the same rows, so they cannot go on"
                " side by side: go on with one of them,"
                f" {mention_command('train')} {mention(continue_from='MODEL')}"
            )
    for k, reason in dropped.items():
        found.drop(k, reason)
    own = {k: model.loop.state() for k, model in enumerate(models) if k not in dropped}
    found.parts[0].restore(shared | {f"lane.{k}.{n}": a for k in own for n, a in own[k].items()})
    for mine, model in zip(found.models, models, strict=True):
        mine.curve, mine.names, mine.numbering = model.curve, model.names, model.numbering
    return found


def _check_alike(one: Recipe, other: Recipe) -> None:
    """ValueError for recipes that cannot learn side by side."""
    for field in fields(Recipe):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name not in OWN and mine != theirs:
            raise ValueError(f"lanes: {field.name} must be the same for all, not {mine!r} and {theirs!r}")
