"""Any number of models that learn from one reading of a stream: one is a set of one.

A *share* says which rows each part of the set learns; the models of a part are lanes, which learn the same
rows, read, scaled, admitted and indexed once. Everything that trains models trains a set of them, so a plan
such as a path of penalties, cross-validation or an ensemble is a list of recipes and a share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.errors import OneLineError
from thresher.data.layout import SettledLayout
from thresher.data.source import Source
from thresher.engine.lookup import resize
from thresher.engine.sound import PackedSets, State, Tensors, beneath, check_tensor, pack, require, under
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.diagnostics.run_findings import Run, troubles_of
from thresher.learning.diagnostics.stream_statistics import StreamStatistics
from thresher.learning.inspection.effects import keep_effects
from thresher.learning.model.agreement import note_kind
from thresher.learning.model.batch_feeder import BatchFeeder, each
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.eight_lanes import batch_lanes
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.scaling import Spreads
from thresher.learning.training.record import Optimum, Record
from thresher.learning.training.wide import DEVIATIONS, solve, together
from thresher.options.messages import as_stored, mention, mention_command

OWN = ("rule", "rate", "loss", "average", "intercept", "dtype")
"""Fields of a Recipe in which the models of a part may differ."""
_COUNTERS, _SHARE, _SPREADS = "counters", "share.", "spreads."


class Part:
    """Models that learn the same rows, from one feed: lanes. They may differ in `OWN`; else ValueError.

    `features_seen` may be more exact than that of a model alone, since a row is freed only if it is idle in
    every lane.
    """

    def __init__(self, models: list[Model]) -> None:
        self.models, self.feed = models, models[0].feed
        self.alive = [*range(len(models))]
        """numbers of the lanes that learn"""
        self.dropped: dict[int, str] = {}
        """lanes that were dropped, and why"""
        self.left_at: dict[int, int] = {}
        """the number of examples that each of them has learned"""
        self.checked = -1
        """after how many examples the state was last found finite"""

    @classmethod
    def of(cls, recipes: Sequence[Recipe]) -> Part:
        """New lanes. ValueError for recipes that cannot learn side by side."""
        for other, field in product(recipes[1:], fields(Recipe) if recipes[1:] else ()):
            mine, theirs = getattr(recipes[0], field.name), getattr(other, field.name)
            if field.name not in OWN and mine != theirs:
                raise ValueError(f"lanes: {field.name} must be the same for all, not {mine!r} and {theirs!r}")
        feed = BatchFeeder(recipes[0])
        models = [Model.lane(recipe, feed) for recipe in recipes]
        for model, loop in zip(models, batch_lanes([model.loop for model in models]), strict=True):
            model.loop = loop
        return cls(models)

    def learn(self, chunk: Chunk, again: bool) -> None:
        """Let all lanes learn; `fallen` tells which of them diverged."""
        if self.alive:
            self.feed.learn([self.models[k] for k in self.alive], chunk, again=again)

    def fallen(self) -> list[tuple[int, str]]:
        """Drop the lanes that diverged: their numbers, and why. `DivergedError` if none is left."""
        errors = [(k, error) for k in self.alive if (error := self.models[k].error)]
        for k, error in errors:
            self.drop(k, str(error))
        if errors and not self.alive:
            raise errors[-1][1]
        return [(k, str(error)) for k, error in errors]

    def check_finite(self) -> None:
        """Find the lanes with a non-finite weight or other state, if they learned since the last check."""
        if self.checked != self.feed.learned:
            for model in [self.models[k] for k in self.alive]:
                try:
                    model.check_finite()
                except DivergedError as error:
                    model.stop(error)
            self.checked = self.feed.learned

    def drop(self, number: int, reason: str) -> None:
        """Stop a lane for good. Rows that only it needs may be freed."""
        self.dropped[number], self.left_at[number] = reason, self.feed.examples
        self.rest(number, read=False)

    def rest(self, number: int, read: bool = True) -> None:
        """Stop a lane, keeping its state if it is still to be `read`."""
        self.models[number].loop.leave(read)
        self.alive = [k for k in self.alive if k != number]

    def state(self) -> State:
        """The whole learning state as arrays; that of lane k under ``lane.k.``."""
        there = [k for k in range(len(self.models)) if k not in self.dropped]
        own = {f"lane.{k}.{n}": a for k in there for n, a in self.models[k].loop.state().items()}
        return self.feed.state() | own

    def check(self, state: Tensors) -> None:
        """StateError if these lanes cannot be in `state`."""
        own = [(self.models[k].loop, under(state, f"lane.{k}.")) for k in self.alive]
        self.feed.check(state, own, self.models[0].head)

    def restore(self, state: State) -> None:
        """Continue from a `state` of lanes with these recipes that `check` accepts."""
        self.feed.restore(state)
        for k in self.alive:
            self.models[k].continue_from(under(state, f"lane.{k}."))
        for k in self.dropped:
            self.models[k].loop.S = resize(self.models[k].loop.S[:0], self.feed.index.size)  # to be read


class Share:
    """Which rows of a stream each part of a set learns: here, one part learns all of them."""

    parts = 1
    measures = False
    """whether the spreads of features are measured, over the rows of all parts"""
    deals = False
    """whether parts learn different rows, which must then have the same numbers in every pass"""
    spec = ""
    """what a checkpoint calls it"""
    last = 0
    """number of a part that has learned the last row"""
    worth, most_waiting = 0, 0
    """rows of each part that are worth dealing: fewer wait for others, until they have so many values; above
    0 if parts are made as rows come, and each but the first has few"""
    own_passes: NDArray[np.int64] = np.zeros(0, np.int64)
    """the passes that each part makes, where these differ"""
    kept: float = 0
    """how many rows may come again, in later passes"""
    together = False
    """whether the models predict together: they are scored, kept and saved as one"""
    as_one: Callable[[list[Model]], Any]
    """makes one of the models, if they predict together"""
    found: Sequence[Finding] = ()
    """what the values by which rows are told apart have shown"""
    recorded = slice(None)
    """the parts whose models keep curves and records"""
    deviations: float = DEVIATIONS
    """standard deviations of noise that an `l1` of 1 stands for, if models are solved in memory"""

    def attach(self, *sources: Source | None) -> None:
        """Let sources give what rows are told apart by. `DataError` if one cannot."""

    def noted(self, chunk: Chunk, first: int) -> Chunk:
        """`chunk` as it is dealt, maybe later; its first row has the number `first` in this pass."""
        return chunk

    def dealt(self, chunk: Chunk, first: int) -> Callable[[int], Chunk]:
        """What a part learns, given its number, of `chunk`, whose first row has the number `first`."""
        return lambda part: chunk

    def passes(self, part: int, planned: int) -> int:
        """How many passes a part makes, if so many are planned; 0: not known."""
        return int(self.own_passes[part]) if part < len(self.own_passes) else planned

    def settle(self, models: ModelSet, passes: int) -> int:
        """The passes that any part makes, at the end of the first, if all rows together get so many."""
        return passes

    def where(self, part: int) -> str:
        """What a part learns, in words that begin a message; empty: all rows."""
        return ""

    def state(self) -> State:
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
        race: Any = None,
        parts: list[Part] | None = None,
    ) -> None:
        if not recipes:
            raise ValueError("give at least one recipe")
        self.share = share or Share()
        self.spreads = Spreads() if self.share.measures else None
        self.parts, self.say = parts or [Part.of(recipes) for _ in range(self.share.parts)], say
        self.race = race
        """drops weak lanes: asked at the `end_of_block`, after as many examples as its `due` says; or None"""
        self._whole: Any = None
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
        self._solutions = dict[int, Optimum]()
        """by the `id` of models"""

    @classmethod
    def of(
        cls, models: Sequence[Model], share: Share | None = None, given: int = 0, rows: int = 0
    ) -> ModelSet:
        """A set of these models, a part for each; `given` so many examples before, of so many `rows`."""
        found = cls([models[0].recipe], share, parts=[Part([model]) for model in models])
        found._given, found._first_row = given, rows
        return found

    def __reduce__(self) -> Any:
        """Copy or pickle a set of one model. TypeError for several, which share state."""
        if len(self.models) > 1 or not self.models[0].is_alone:
            raise TypeError("models that learn side by side cannot be copied or pickled; copy one of them")
        return ModelSet.of, ([copy(self.models[0])],)

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
    def lead(self) -> Any:
        """What stands for all in a table of progress: the models as one, if they predict together.

        Else, of the last part, the model with the lowest progressive loss.
        """
        self.flush()
        if self.share.together:
            if self._whole is None or len(self._whole.models) < len(self.parts):
                self._whole = self.share.as_one(self.models)
            self._whole.last, self._whole.layout = self.share.last, self.layout
            return self._whole
        part = self.parts[-1]
        return part.models[min(part.alive or [0], key=lambda k: part.models[k].tally.average)]

    @property
    def scored(self) -> dict[int, object]:
        """What is evaluated on rows that are held out, by number: all as one, or the models that learn."""
        return {0: self.lead} if self.share.together else {k: self.models[k] for k in self.alive}

    def holder(self, number: int) -> ModelSet | Model:
        """What has the state of what is scored as `number`."""
        return self if self.share.together else self.models[number]

    def put_back(self, number: int, state: State) -> None:
        """Restore what is scored as `number`; a model among others stops learning with them."""
        before, part = self.holder(number), self.parts[0]
        if isinstance(before, ModelSet) or before.is_alone:
            before.restore(state)
            return
        part.rest(number, read=False)
        part.models[number] = model = Model(before.recipe)
        model.curve = before.curve
        model.restore(state)

    def keep_records(self, records: Callable[[int], Record], seen: StreamStatistics, source: Source) -> None:
        """Set the records, given the one of each model by its number.

        Models that predict together have one record; none was trained on all of those rows.
        """
        self.flush()
        whole = [model for part in self.parts[self.share.recorded] for model in part.models]
        kept = [*whole, *([self.lead] if self.share.together else [])]
        for k, model in enumerate(kept):
            solved = self.solution_of(model)
            # warnings depend on the rows, their order and the recipe alone: not on hold-outs, on how the rows
            # are split into files, or on other models trained on the same reading
            own = seen.of_model(getattr(model, "curve", ()), model.tally, model.repeated)
            models = self.models if self.share.together else ()
            found = troubles_of(Run(own, model, models=models, solved=solved is not None))
            warnings = tuple(as_stored(one.message) for one in found)
            model.record = replace(records(k), solved=solved, warnings=warnings)
        if self.share.together:
            self.lead.examples = self.examples
        for model in (*kept, *self.models):
            note_kind(model, seen.span, source)
        for k, model in enumerate(whole):
            if k not in self.told:
                model.drawn = seen.drawn
                keep_effects(model)

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

    def name_classes(self, source: Source) -> None:
        """Know the words of all classes that a source has met."""
        if source.words is not None and source.words.count > len(self.parts[0].models[0].classes):
            for model in self.models:
                model.name_classes(source)

    @property
    def examples(self) -> int:
        """Number of examples given so far."""
        return self._given if self.share.deals else self.parts[0].feed.examples

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

    def solve(self, rows: Chunk) -> None:
        """Solve each model in memory over its share of all `rows` of a pass, which it has learned."""
        self.flush()
        dealt = self.share.dealt(self.share.noted(rows, 0), self._first_row)
        for number, part in enumerate(self.parts):
            alive, part.checked = [part.models[k] for k in part.alive], -1
            for model, found in zip(alive, solve(alive, dealt(number), self.share.deviations), strict=True):
                self._solutions[id(model)] = found
                if model.curve and model.curve[-1].examples == model.examples:
                    model.curve = model.curve[:-1]  # with other weights

    def solution_of(self, model: object) -> Optimum | None:
        """How a model was solved in memory, or all as one; None if it was not."""
        return self._solutions.get(id(model)) or (
            together([*self._solutions.values()]) if model is self._whole else None
        )

    def end_passes(self) -> None:
        """End the passes over the same data."""
        for model in self.models:
            model.end_passes()

    def learn(self, chunk: Chunk, /, *, again: bool = False) -> None:
        """Let each part learn its share of the rows of `chunk`. See `Model.learn`.

        Raises the `DivergedError` of the last model if none is left.
        """
        chunk.check_arrays()
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
        if self.spreads is not None and not again:
            self.spreads.add(chunk, self.layout is not None and self.layout.gaps)
        if not self.share.deals:
            self.parts[0].learn(chunk, again)
            self._settle()
            return
        self._waiting.append(self.share.noted(chunk, self._row - self._first_row))
        self._row += len(chunk)
        self._given += int(np.count_nonzero(chunk.weights))
        self._again = again
        rows, values = sum(map(len, self._waiting)), sum(one.nnz for one in self._waiting)
        if rows >= self.share.worth * self.share.parts or values >= self.share.most_waiting:
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

        def learn(numbers: Sequence[int]) -> None:
            for p in numbers:
                if self._is_due(p) and len(rows := dealt(p)):
                    self.parts[p].learn(rows, self._again)

        at_once = [every[:1], every[1:]] if self.share.worth else [every[p : p + 1] for p in every]
        each(learn, at_once, chunk.nnz if compiled else 0)
        self._settle()

    def _grow(self) -> None:
        """Make the parts that the share has met."""
        while len(self.parts) < self.share.parts:
            part = Part.of(self.recipes)
            self.parts.append(part)
            self._begin_pass(len(self.parts) - 1, part)

    def finish(self) -> None:
        """Learn the examples of incomplete batches as smaller batches."""
        self.flush()
        for part in self.parts:
            if part.alive:
                part.feed.finish([part.models[k] for k in part.alive])
        self._settle()

    def check_finite(self) -> None:
        """Drop models with a non-finite weight or other state; `DivergedError` if none is left."""
        self.flush()
        for part in self.parts:
            part.check_finite()
        self._settle()

    def _settle(self) -> None:
        """Drop the models that diverged, and tell of their recipes; `DivergedError` if none is left."""
        for p, fallen in enumerate([part.fallen() for part in self.parts]):
            for k, reason in fallen:
                if k not in self.told:
                    self.told.add(k)
                    what = f"{self.recipes[k].rule}: {self.share.where(p)}{reason}"
                    self.say(f"{what}; the other models continue")
        if self.told and len(self.told) == len(self.recipes):
            raise DivergedError("learning diverged in at least one fold for every model")

    def mark(self) -> None:
        """Note a point of the progressive curve of each model that learns and is kept."""
        recorded = self.parts[self.share.recorded]
        if recorded:
            self.flush()
        for part in recorded:
            for k in part.alive:
                part.models[k].mark()

    def state(self) -> State:
        """The whole learning state as arrays; that of part p under ``p.``."""
        self.flush()
        counters = np.array([self._given, self._pass, self._row, self._first_row, self.share.last])
        whole = {_COUNTERS: counters, **beneath(_SHARE, self.share.state())}
        whole |= pack([part.state() for part in self.parts])
        return whole | beneath(_SPREADS, {} if self.spreads is None else self.spreads.state())

    def check(self, state: Tensors) -> None:
        """StateError if this set cannot be in `state`, whose parts it makes."""
        self.share.restore(under(state, _SHARE))
        self._grow()
        if self.spreads is not None:
            self.spreads.check(under(state, _SPREADS))
        counters = check_tensor(state, _COUNTERS, (5,), np.int64)
        known = bool((counters >= 0).all()) and counters[4] < len(self.parts)
        require(known, _COUNTERS, "numbers of examples, passes, rows and a part")
        packed = PackedSets(state, state.__getitem__)
        for p, part in enumerate(self.parts):
            part.check(packed.of(p))

    def restore(self, state: State) -> None:
        """Continue from the `state` of a set with the same recipes and share. StateError."""
        self.check(state)
        packed = PackedSets(state, state.__getitem__)
        for p, part in enumerate(self.parts):
            part.restore(packed.of(p))
        if self.spreads is not None:
            self.spreads.restore(under(state, _SPREADS))
        self.told |= self.dropped.keys()
        self._given, self._pass, self._row, self._first_row, self.share.last = state[_COUNTERS].tolist()

    def described(self) -> dict[str, Any]:
        """What a checkpoint says of the set, beside its `state`."""
        alive, dropped = self.alive, self.parts[0].dropped
        return {
            "share": self.share.spec,
            "recipes": [recipe.as_dict() for recipe in self.recipes],
            "dropped": [*dropped.items()],
            "resting": [k for k in range(len(self.models)) if k not in alive and k not in dropped],
            "curves": [model.curve for model in self.models],
        }


def going_on(models: Sequence[Model | None], dropped: dict[int, str]) -> ModelSet:
    """Lanes that go on from the states of `models`, which have learned the same rows side by side.

    Those that were `dropped` may be None. ValueError if they have not: each can then only go on alone.
    """
    there = {k: model for k, model in enumerate(models) if model is not None and k not in dropped}
    usual = next(iter(there.values())).recipe
    found = ModelSet([usual if model is None else model.recipe for model in models])
    shared, *others = [model.feed.state() for model in there.values()]
    for other in others:
        if other.keys() != shared.keys() or not all(np.array_equal(shared[n], other[n]) for n in shared):
            raise OneLineError(
                "not all of these models are of the same pass over the same rows, so they cannot go on"
                " side by side: go on with one of them,"
                f" {mention_command('train')} {mention(continue_from='MODEL')}"
            )
    for k, reason in dropped.items():
        found.parts[0].drop(k, reason)
    own = {k: model.loop.state() for k, model in there.items()}
    found.parts[0].restore(shared | {f"lane.{k}.{n}": a for k in own for n, a in own[k].items()})
    for mine, model in zip(found.models, models, strict=True):
        if model is not None:
            mine.curve, mine.names, mine.record = model.curve, model.names, model.record
            mine.numbering, mine.named = model.numbering, model.named
    return found
