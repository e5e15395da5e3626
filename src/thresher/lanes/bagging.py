"""Bagging: models of one recipe that learn different rows of one stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.layout import SettledLayout
from thresher.engine.sound import StateError, Tensors, given, require
from thresher.lanes.bags import Bags, drawn
from thresher.learning import header as headers
from thresher.learning import modelfile
from thresher.learning.abreast import each
from thresher.learning.admission import Admission
from thresher.learning.ensemble import Ensemble
from thresher.learning.model import Model
from thresher.learning.modelfile import LANES, ModelFileError
from thresher.learning.recipe import Recipe
from thresher.learning.record import Record
from thresher.learning.repeating import is_automatic
from thresher.learning.seen import Seen
from thresher.learning.trained import Tally, total
from thresher.learning.training_state import TrainingState
from thresher.learning.trouble import with_warnings

_STATE, _BEST = "models.", "best."
_COUNTERS = "counters"
_FIELDS = {"ensemble": "text", "recipes": "a list"}


class Bagging(Ensemble[Model]):
    """An ensemble that learns.

    Each model is, byte for byte, the one trained alone on its rows (law 7). Scales, admission and batches
    count only these rows, so each model has its own feed and index.

    >>> bagging = Bagging(Recipe("ftrl", l1=0.1), Bags.of("disjoint:2"))
    >>> bagging.learn(Chunk.of_rows([(1.0, {7: 2.0}), (-1.0, {8: 1.0}), (1.0, {9: 2.0})]))
    >>> [model.weights()[0].tolist() for model in bagging.models]
    [[7, 9], [8]]
    """

    def __init__(self, recipe: Recipe, bags: Bags) -> None:
        self.bags = bags
        super().__init__([Model(recipe) for _ in range(bags.count)], bags.rows)
        self._given = self._pass = self._rows = self._last = 0

    def may_replay(self, steady: bool) -> bool:
        """Whether the rule is automatic; a row must have the same number in every pass."""
        return steady and is_automatic(self.recipe)

    def begin_pass(self, number: int, passes: int = 0) -> None:
        """Start pass `number`, from 1, of `passes` over the same data in the same order, or resume it."""
        if number != self._pass:
            self._pass, self._rows = number, 0
        for model in self.models:
            model.begin_pass(number, passes)

    def end_passes(self) -> None:
        """End the passes over the same data."""
        for model in self.models:
            model.end_passes()

    def learn(self, chunk: Chunk, /, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None:
        """Let each model learn its part of the rows lo <= i < hi of `chunk`. See `Model.learn`."""
        if lo > 0 or hi is not None:
            chunk = chunk.rows(lo, len(chunk) if hi is None else hi)
        draws, compiled = self.bags.draw(self._rows, len(chunk)), self._given > 0
        self._rows += len(chunk)
        self._given += int(np.count_nonzero(chunk.weights))

        def teach(k: int) -> None:
            self.models[k].learn(drawn(chunk, draws[k]), again=again)

        each(teach, range(len(self.models)), chunk.nnz if compiled else 0)
        if draws.any():
            last = np.flatnonzero(draws.any(axis=0))[-1]
            self._last = int(np.flatnonzero(draws[:, last])[0])

    def mark(self) -> None:
        """Models of an ensemble keep no curve."""

    def keep_record(self, record: Record, seen: Seen) -> None:
        """Keep the record of the ensemble; its models were not trained on all of those rows."""
        self.record = with_warnings(record, self, seen)
        for one in (self, *self.models):
            one.note_ids(seen.span, seen.columns, self.layout)

    def finish(self) -> None:
        """Learn the examples of incomplete batches as smaller batches."""
        for model in self.models:
            model.finish()

    def check_finite(self) -> None:
        """Raise `DivergedError` if a weight or any other part of the state is not finite."""
        for model in self.models:
            model.check_finite()

    @property
    def recipe(self) -> Recipe:
        """The recipe of the models."""
        return self.models[0].recipe

    @property
    def layout(self) -> SettledLayout | None:
        """How the training data became features, if they came from files or tables."""
        return self.models[0].layout

    @layout.setter
    def layout(self, layout: SettledLayout | None) -> None:
        for model in self.models:
            model.layout = layout

    @property
    def examples(self) -> int:
        """Number of examples given so far."""
        return self._given

    @property
    def tally(self) -> Tally:
        """Sums over the models, each of which predicted its own rows before it learned them."""
        return total(model.tally for model in self.models)

    @property
    def repeated(self) -> Tally:
        """The same over examples that came again."""
        return total(model.repeated for model in self.models)

    @property
    def last_prediction(self) -> float:
        """Last prediction of a model that has learned the last row, or the last one that any has learned."""
        return self.models[self._last].last_prediction

    @property
    def admission(self) -> Admission | None:
        """Which features the first model admits; None: all."""
        return self.models[0].admission

    @property
    def features_seen(self) -> int:
        """Mean number of distinct features that a model has seen, rounded."""
        return round(sum(model.features_seen for model in self.models) / len(self.models))

    @property
    def features_waiting(self) -> None:
        """Not counted: a feature waits in some models and not in others."""

    def state(self) -> dict[str, NDArray[Any]]:
        """The whole learning state as arrays; that of model k under ``k.``."""
        whole = {f"{k}.{n}": a for k, one in enumerate(self.models) for n, a in one.state().items()}
        return whole | {_COUNTERS: np.array([self._given, self._pass, self._rows, self._last])}

    def check(self, state: Tensors) -> None:
        """StateError if an ensemble with this recipe and these bags cannot be in `state`."""
        counters = given(state, _COUNTERS, (4,), np.int64)
        known = bool((counters >= 0).all()) and counters[3] < len(self.models)
        require(known, _COUNTERS, "numbers of examples and the number of a model")
        for k, model in enumerate(self.models):
            model.check(_under(state, f"{k}."))

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from `state`, taken from an ensemble with the same recipe and bags; else StateError."""
        self.check(state)
        for k, model in enumerate(self.models):
            model.restore(_under(state, f"{k}."))
        self._given, self._pass, self._rows, self._last = state[_COUNTERS].tolist()


def save(path: Path, bagging: Bagging, training_state: TrainingState) -> None:
    """Write a checkpoint: everything that `load` needs to resume. Raises OSError, `DivergedError`."""
    bagging.check_finite()
    first = bagging.models[0]
    saved = {"ensemble": bagging.bags.spec, "recipes": [one.recipe.as_dict() for one in bagging.models]}
    header = {**modelfile.header_of(first), LANES: saved, "training": training_state.as_dict()}
    tensors = modelfile.weights_of(first.readout())
    tensors |= {f"{_STATE}{name}": array for name, array in bagging.state().items()}
    if training_state.best is not None:
        tensors |= {f"{_BEST}{name}": array for name, array in training_state.best.state.items()}
    modelfile.write(path, header, tensors)


def load(path: Path) -> tuple[Bagging, TrainingState]:
    """The ensemble in a checkpoint and the state of its training; `ModelFileError`."""
    if not path.exists():
        raise ModelFileError(f"{path}: no such file, so there is no training to resume")
    header, tensors = modelfile.read(path, lanes=True)
    saved = header.get(LANES)
    if not isinstance(saved, dict) or "ensemble" not in saved or "training" not in header:
        raise ModelFileError(f"{path}: not a checkpoint of an ensemble")
    with modelfile.naming_file(path):
        headers.check(saved, _FIELDS, LANES)
        headers.check_training(header["training"])
        bagging = _bagging_of(saved)
        bagging.restore(_under(tensors, _STATE))
        best = _under(tensors, _BEST)
        if header["training"]["best"] is not None:
            bagging.check(best)
        return bagging, TrainingState.from_dict(header["training"], best)


def _bagging_of(saved: dict[str, Any]) -> Bagging:
    try:
        recipe = Recipe.from_dict(saved["recipes"][0])
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise StateError(f"lanes: damaged ({error})") from error
    return Bagging(recipe, Bags.of(saved["ensemble"], recipe.seed))


def _under(tensors: Tensors, prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): a for name, a in tensors.items() if name.startswith(prefix)}
