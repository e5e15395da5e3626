"""Model: a loss, a rule, a store and a clock; learns from Chunks."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.data.errors import OneLineError
from thresher.data.features.names import Names
from thresher.data.inputs.any_data import Data
from thresher.data.inputs.arrays import numbers_of
from thresher.data.labels import ONE
from thresher.data.layout import SettledLayout
from thresher.data.source import Source
from thresher.engine.index import HashedIndex, Index, store_spec
from thresher.engine.sound import Array, State, Tensors
from thresher.learning.diagnostics.advice import (
    divergence_remedy,
    feature_names,
    largest_in,
)
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.model.batch_feeder import BatchFeeder
from thresher.learning.model.class_state import ClassState
from thresher.learning.model.divergence import (
    DivergedError,
    first_broken,
    is_finite,
    no_margin_fits,
)
from thresher.learning.model.margins import any_output, find
from thresher.learning.model.objective import F64, FittedLink, Objective
from thresher.learning.model.prediction import BasePredictor, LinearPredictor, teach
from thresher.learning.model.recipe import Recipe, Spec
from thresher.learning.model.rule_state import ManyState, OneState
from thresher.learning.model.sampling import LAST_LABEL
from thresher.learning.model.single_rows import LABELS, SCALARS, Row, RowBuffers, check_row, is_plain
from thresher.learning.training.progress import Curve, CurvePoint, Tally
from thresher.learning.training.record import Record
from thresher.options.data import ReadOptions
from thresher.options.messages import mention
from thresher.options.model import RecipeOptions
from thresher.options.option import check_names, options_of

ALWAYS_COUNTED, _FILLED = 1 << 16, 4
"""Rows of a table whose weights are always counted; of a larger one a quarter must be in use."""
_SHOWN = {"B": "the intercept", "bias": "the intercept", "clock": "the state of the rule"}


class Model(BasePredictor):
    """A sparse linear model that learns from a stream.

    Constructed from a `Recipe`, or from the arguments of one: ``Model("ftrl", l1=1.0)``. Raises the errors of
    a Recipe. Use a model from one thread at a time: learning or saving while another thread learns raises
    RuntimeError, and predicting meanwhile is not safe.

    >>> model = Model("sgd", "squared", rate="constant:0.1")
    >>> model.learn(Chunk.of_rows([(1.0, {7: 2.0})]))
    >>> model.predict(Chunk.of_rows([(1.0, {7: 2.0})]))  # 5 * (2 * 0.1 * 1)
    array([1.00000001])
    """

    def __init__(self, rule: Recipe | Spec = "ft-ftrl", loss: Spec | None = None, **given: Any) -> None:
        known = [*options_of(RecipeOptions), "layout", "offset"]
        if reading := [name for name in given if name not in known and name in options_of(ReadOptions)]:
            say = "says how to read data: give it to learn, learn_one or thresher.train"
            raise TypeError(f"Model has no option {reading[0]}, which {say}")
        check_names(type(self), given, known)
        given |= {} if loss is None else {"loss": loss}
        recipe = replace(rule, **given) if isinstance(rule, Recipe) else Recipe(rule, **given)
        self._begin(recipe, BatchFeeder(recipe), alone=True)

    @classmethod
    def lane(cls, recipe: Recipe, feed: BatchFeeder) -> Model:
        """A model that learns from `feed` together with others; the feed's owner teaches it."""
        model = cls.__new__(cls)
        model._begin(recipe, feed, alone=False)
        return model

    def _begin(self, recipe: Recipe, feed: BatchFeeder, alone: bool) -> None:
        self.recipe = recipe
        """the parts and options of this model"""
        self.rule, self.dtype = recipe.rule_part, recipe.numbers
        self.head = copy(recipe.objective)  # which may have a calibration of its own, or meet classes
        self.shifted = recipe.offset
        self.loss, self.centres = self.head.loss, bool(recipe.centre)
        self.store = store_spec(recipe.store, recipe.seed)
        self._sound = 0
        self.feed, self.index, self.is_alone = feed, feed.index, alone
        self.only_means, self._prepared = feed.intake.only_means, feed.intake.read
        """`is_alone`: whether it is the only learner of its feed"""
        self.error: DivergedError | None = None
        """why a lane has stopped learning; None while it learns"""
        self.names: Names | None = None
        self.record: Record | None = None
        """how it was trained, once training is over; None if `learn` was given more examples since"""
        self.curve: Curve = ()  # how progressive loss and weights developed in training
        self.numbering = None
        self.warm = False
        """whether it started from the weights of another model"""
        self.holdout: dict[str, float | int | None] | None = None
        """figures on the examples held out in training; None without any, and for a model that was loaded"""
        self.warnings: list[Finding] = []
        """trouble found in training"""
        self.loop = make_loop(recipe, self.head, self.rule, feed.index)
        self.head.meet(len(self.classes))
        domain = self.head.domain
        self._limits = domain.low, domain.high if domain.kind == ONE else -np.inf, domain.whole
        self._labels = dict[tuple[type, Any], float]()
        if recipe.calibrate:
            self.head.link = self._calibration

    def __repr__(self) -> str:
        """The recipe, and numbers of examples and features."""
        recipe = replace(self.recipe, layout=None)  # which may name a hundred columns
        return f"<Model of {recipe!r}: {self.examples:,} examples, {self.features_seen:,} features seen>"

    def _repr_html_(self) -> str:
        """A small table for notebooks: how the model was made, and its heaviest weights."""
        from thresher.learning.inspection.notebooks import summary

        return summary(self)

    def __copy__(self, memo: object = None) -> Model:
        """An independent copy in the same state: models share nothing mutable."""
        model = Model(self.recipe)
        with self.feed.at_rest():
            model.restore(self.state())
        model.feed.skip = self.feed.skip and (lambda first, count, error: None)
        model.names, model.curve = self.names, self.curve
        model.record, model.warm = self.record, self.warm
        model.numbering, model.named = self.numbering, self.named
        return model

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the bytes of a model file. Raises `DivergedError` as `save`."""
        from thresher.learning.modelbytes import as_bytes, from_bytes

        return from_bytes, (as_bytes(self),)

    def begin_pass(self, number: int, passes: int = 0) -> None:
        """Start pass `number` of `passes`, counted from 1, over the same data, or resume it after a stop.

        Without `passes`, or with 0, it is not known how many will follow.
        """
        if number > 1 and not self.loop.again:
            # The progressive figures end: examples in an incomplete batch count as if training ended here,
            # and will be counted again in the batch that they are part of.
            before, waiting = self.loop.sums(False).copy(), len(self.feed.pending)
            if waiting:
                last = copy(self)
                with suppress(DivergedError):  # raised when they are learned
                    last.finish()
                    self.loop.tally[:] = last.loop.tally
            early = self.loop.sums(False) - before
            if waiting and self.curve and self.curve[-1].examples == self.examples:
                self.curve = self.curve[:-1]
                self.mark()
            self.loop.count_as(True)
            self.loop.sums(True)[:] -= early
        self.loop.begin_pass(number, passes)

    def end_passes(self) -> None:
        """End the passes over the same data: what is learned next is new."""
        self.loop.end_passes()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Load a saved model to go on learning; to predict only, `thresher.load` needs less memory.

        `ModelFileError` for a file saved without its state.
        """
        from thresher.learning.files import model_file

        return model_file.load(os.fspath(path))[0]

    def save(self, path: str | os.PathLike[str], *, state: bool = True) -> None:
        """Write a model file: see `thresher.save`."""
        from thresher.learning.files import model_file

        model_file.save(self, os.fspath(path), state=state)

    @overload
    def learn(self, chunk: Chunk, /, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None: ...

    @overload
    def learn(
        self,
        data: Data,
        /,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **reading: Unpack[ReadOptions],
    ) -> None: ...

    def learn(self, data: object, /, *args: Any, **given: Any) -> None:
        """Predict, then learn, each example of `data` once, in order.

        Of a Chunk, rows lo <= i < hi are learned as they are; other data are read first. It makes no
        difference, bit for bit, where a stream is cut into chunks or ranges: the rows of an incomplete batch
        wait for the next call or for `finish`. Rows that come `again`, in a later pass, are not counted
        twice: scales do not change, and features that wait for admission keep waiting.

        Args:
            data: anything that `thresher.train` accepts.
            y: labels of the rows of `data`, ``(n,)`` or ``(n, outputs)``, if `data` does not contain them.
            sample_weight: importances ``(n,)``, together with `y`.
            reading: how to read `data`, where that differs from the training data: the options of
                `thresher.open_source` and the fields of a `Layout`; and ``offsets``, numbers ``(n,)`` that
                are added to the margins of rows in memory, for a model made with ``offset=True``.

        Raises `DataError` for data that cannot be read; `DivergedError` if a loss is not finite (that example
        has changed no weight), or if an example with extreme values makes a weight non-finite; `check_finite`
        finds all other cases. RuntimeError for a lane, which learns with the others, and while another thread
        learns.
        """
        self._check_alone()
        self.record = None
        if isinstance(data, Chunk):
            data.check_arrays()
            self.feed.learn([self], data, *args, **given)
        else:
            teach(self, data, *args, **given)

    def learn_one(self, row: Row, label: Any, weight: float = 1.0, *, classes: Any = None) -> None:
        """Predict, then learn, one example: like ``learn([row], [label], [weight])``, but fast.

        Args:
            row: a dictionary of named features; the numbers of a row of a matrix; or a text. A number that is
                missing from a dictionary, or None, counts as 0; for a model of a table, as the mean of a
                centred column.
            label: its label; a list of them for several outputs.
            weight: its importance.
            classes: with the first row, the words that labels are, such as ``"ham,spam"``, if they are words.

        Raises the errors of `learn`.

        >>> model = Model("ftrl", l1=0.01)
        >>> for number in range(20):
        ...     model.learn_one({"size": float(number), "city": "Ulm"}, int(number > 9))
        >>> model.predict_one({"size": 15.0, "city": "Ulm"}, "label")
        1.0
        """
        if type(row) is dict and self.is_alone and self.names is None and classes is None:
            number = self._number_of(label)
            if number is not None and is_plain(weight) and weight > 0:
                self.record = None
                if self.feed.learn_row(self, row, number, weight):
                    self.named = True
                    return
        check_row(row, label)
        named = {} if classes is None else {"classes": classes}
        self.learn([row], [label], None if is_plain(weight) and weight == 1 else [weight], **named)
        label = label.item() if type(label) in SCALARS else label
        if type(label) in (str, bool) or (self.classes and type(label) in (float, int)):
            if len(self._labels) >= LABELS:
                self._labels.clear()
            number = numbers_of([label], self.head.domain.of_words(self.classes))[0]
            self._labels[type(label), label] = float(np.float32(number))

    def _number_of(self, label: Any) -> float | None:
        """A label as a number, if it is known to be in the domain."""
        if type(label) in SCALARS:
            label = label.item()
        if is_plain(label) and not self.classes and not self.head.outputs.most:
            low, high, whole = self._limits
            return label if low <= label <= high and (not whole or label == int(label)) else None
        return self._labels.get((type(label), label)) if type(label) in (str, bool, float, int) else None

    def mark(self) -> None:
        """Note a point of the progressive curve, unless there is one or the loss is not finite.

        Weights are counted unless the table is large and less than a quarter full: scanning millions of empty
        rows after each of the first examples would take longer than learning.
        """
        if (self.curve and self.curve[-1].examples >= self.examples) or not math.isfinite(self.tally.loss):
            return
        seen = self.features_seen
        nonzero = self.nonzero if self.index.used <= max(ALWAYS_COUNTED, _FILLED * seen) else None
        self.curve = (*self.curve, CurvePoint(self.examples, *self.tally, nonzero, seen))

    def finish(self) -> None:
        """Learn the examples of an incomplete batch as a smaller batch."""
        self._check_alone()
        self.feed.finish([self])

    def _check_alone(self) -> None:
        if not self.is_alone:
            raise RuntimeError("this model is a lane: call `learn` of its set, which trains all of them")

    def stop(self, error: DivergedError) -> None:
        """Raise `error`, or if others learn from the same feed, keep it: they go on."""
        if self.is_alone:
            raise error
        self.error = error

    def check_learned(self, chunk: Chunk, first: int) -> None:
        """Stop if a weight is not finite after `chunk`, whose first example is `first`."""
        found = find(self.index, chunk)
        rows = found.rows[: found.indptr[-1]]
        place = first_broken(self.loop.S[rows])
        row = place if place < 0 else int(rows[place])
        if error := self._broken_error(row, self.loop.clocks(), first, chunk):
            self.stop(error)

    def check_finite(self) -> None:
        """Raise `DivergedError` if a weight or any other part of the state is not finite."""
        state = self.state()
        rows = (first_broken(rows) for rows in (self.loop.settled_weights(), state.pop("S")))
        row = next((one for one in rows if one >= 0), -1)
        if error := self._broken_error(row, {"bias": self.loop.intercepts(), **state}, self._sound + 1):
            raise error
        self._sound = self.feed.learned

    def _broken_error(
        self, row: int, others: Tensors, first: int, chunk: Chunk | None = None
    ) -> DivergedError | None:
        """The error for a broken `row`, unless it is -1, or for broken `others`; None if there are none.

        They broke in one of the examples from `first` on.
        """
        if row >= 0:
            key = int(self.index.features()[row])
            broken = f"the weight of {feature_names([key], self.layout, self.names)[0]}"
        else:
            name = next((name for name, array in others.items() if not is_finite(array)), None)
            if name is None:
                return None
            broken = _SHOWN.get(name, f"the state ({name})")
        last = self.feed.learned
        when = f"one of the examples {first} to {last}" if first < last else f"example {last}"
        return self.divergence_error(f"{broken} is not finite after {when}", chunk)

    def divergence_error(self, what: str, chunk: Chunk | None = None) -> DivergedError:
        """An error with what happened, the largest features of `chunk`, and a remedy."""
        large = None if chunk is None else largest_in(chunk, self.layout, self.names)
        numbers = [] if chunk is None or self.head.classifies else [chunk.labels, chunk.targets]
        label = max((float(np.abs(one).max(initial=0)) for one in numbers if one is not None), default=0.0)
        last = 0.0 if chunk is None else float(chunk.labels[-1])
        if chunk is not None and self.head.count == 1 and no_margin_fits(self.loss, last):
            refused = 'DOMAIN = "positive" in the class of the loss refuses labels of 0'
            reason = f"it is infinite for the label {last:g}, whatever is predicted"
            return DivergedError(what, f"{reason}; leave such rows out ({refused})")
        return DivergedError(what, divergence_remedy(self.recipe, large, label))

    @property
    def layout(self) -> SettledLayout | None:
        """How the training data became features, if they came from files or tables.

        Setting it raises `DataError` if columns are to be scaled and none is numeric, or to keep a sign and
        it has none of that name.
        """
        return self.recipe.layout

    @layout.setter
    def layout(self, layout: SettledLayout | None) -> None:
        self._labels.clear()
        self.feed.bind(layout)
        self.recipe = replace(self.recipe, layout=layout)
        self.head.meet(len(self.classes))
        self.shifted = self.feed.shifted = self.recipe.offset

    def name_classes(self, source: Source) -> None:
        """Know the words of all classes that a source has met; nothing if classes are given."""
        if source.words is not None and source.words.count > len(self.classes):
            self.layout = replace(self.layout or SettledLayout(), classes=source.words.names())

    @property
    def features_waiting(self) -> int | None:
        """Features seen but not admitted, apart from false positives; None if not counted."""
        admission = self.feed.intake.admission
        return None if admission is None else admission.waiting

    @property
    def tally(self) -> Tally:
        """Sums of progressive loss and importance, over examples when they were new: the first pass."""
        return Tally(*self.loop.sums(False).tolist())

    @property
    def repeated(self) -> Tally:
        """Sums of loss and importance over rows that came again, after the model had learned them."""
        return Tally(*self.loop.sums(True).tolist())

    @property
    def last_prediction(self) -> float:
        """Prediction for the last example, before it was learned: a class, a probability or a margin."""
        return self.head.last_prediction(*self.loop.last_margins(), self.lowest_label)

    def last_label(self, given: Chunk) -> float:
        """Label of the last example learned, that of the rows `given` unless they are sampled.

        Of a list of labels the first; NaN if it is empty.
        """
        if self.feed.intake.sampler is not None:
            return float(self.feed.intake.sampler.noted[LAST_LABEL])
        if self.head.outputs.kind != "labels":
            return float(given.labels[-1])
        held = np.flatnonzero(self.head.targets(given.rows(len(given) - 1, len(given)))[0] > 0)
        return float(held[0] + self.head.outputs.low) if len(held) else float("nan")

    @property
    def lowest_label(self) -> float:
        """The lowest label seen, at most 0: how the data write the negative class."""
        return self.feed.lowest_label

    @property
    def examples(self) -> int:
        """Number of examples given so far."""
        return self.feed.examples

    @property
    def features_seen(self) -> int:
        """Number of distinct features seen so far; at least so many, if `features_freed`."""
        return self.index.features_seen

    @property
    def features_freed(self) -> bool:
        """Whether rows of features without a weight were freed: these are not counted if they come again."""
        return self.index.freed > 0

    @property
    def left_out(self) -> int:
        """Number of examples left out of a sample so far."""
        return self.feed.left_out

    @property
    def nbytes(self) -> int:
        """Current bytes of keys and state."""
        return self.index.nbytes + self.loop.S.nbytes

    @property
    def nonzero(self) -> int:
        """Number of nonzero weights of the features seen, without the intercepts."""
        settled, met = self.loop.settled_weights(), self.index.met
        return int(np.count_nonzero(settled if met.all() or not self.loop.unmet().any() else settled[met]))

    @property
    def intercept(self) -> Any:
        """Settled intercept for values as they are, ``(outputs,)`` for many outputs; 0 without one."""
        means = self.feed.intake.means()
        divisors = None if means is None else self.feed.intake.divisors(means.keys)
        bias = self._uncentre(means, divisors)
        return float(bias[0]) if self.head.count == 1 else bias

    def _calibration(self) -> FittedLink | None:
        assert self.loop.calibration is not None
        added = 0.0 if self.correction is None else float(self.correction[0])
        return FittedLink.learned(self.loop.calibration, self.head, added)

    def _bias(self) -> Array:
        """The intercepts of the loop, corrected if rows were sampled."""
        bias, added = self.loop.bias(), self.correction
        return bias if added is None else (bias + added[: len(bias)]).astype(bias.dtype)

    @property
    def correction(self) -> F64 | None:
        """What is added to intercepts that were learned, of all classes that may come; None for nothing."""
        return None if self.feed.intake.sampler is None else self.feed.intake.sampler.correction

    def weights(self) -> tuple[NDArray[np.uint64], Array]:
        """Keys, in ascending order, and weights of the features with a nonzero weight.

        ``(features,)`` uint64, and ``(features,)`` or ``(features, outputs)`` in the dtype of the state.
        """
        keys, weights = self._stored()
        alive = any_output(weights != 0)
        return (keys, weights) if alive.all() else (keys[alive], weights[alive])

    def _stored(self) -> tuple[NDArray[np.uint64], NDArray[np.generic]]:
        """The features with a weight; all features seen, if unseen ones have a weight."""
        settled = self.loop.settled_weights()
        there = self.index.met if self.loop.unmet().any() else any_output(settled != 0)
        (rows,) = np.nonzero(there)
        if self.head.count == 1:
            settled = settled.reshape(len(settled))
        keys = self.index.features()[rows]
        order = np.argsort(keys)
        return keys[order], settled[rows][order]

    @property
    def table(self) -> Array:
        """The state of all features, which weights are read from."""
        return self.loop.S

    def reader_of_row(self, arrays: RowBuffers) -> Callable[[Any, int], F64] | None:
        """As in `LinearPredictor`."""
        return None if self.correction is not None else self.loop.reader_of_row(arrays)

    def _products(self, rows: Chunk, bias: NDArray[np.generic]) -> F64:
        return self.loop.margins(rows, bias)

    def predictor(self) -> LinearPredictor:
        """The settled weights, without the learning state."""
        keys, weights = self._stored()
        unmet = self.loop.unmet()
        of_keys = not unmet.any() and not self.store.startswith(HashedIndex.NAME)
        intake = self.feed.intake
        rest = self.lowest_label, unmet, intake.divisors(keys if of_keys else None)
        head = self.head.with_calibration(self.head.calibrated())
        predictor = LinearPredictor(head, self.store, keys, weights, self._bias(), *rest, intake.means())
        predictor.layout, predictor.names, predictor.numbering = self.layout, self.names, self.numbering
        predictor.shifted, predictor.named, predictor.record = self.shifted, self.named, self.record
        return predictor

    def state(self) -> State:
        """The whole learning state as arrays."""
        return self.feed.state() | self.loop.state()

    def check(self, state: Tensors) -> None:
        """StateError if a model with these parts and options cannot be in `state`."""
        self.feed.check(state, [(self.loop, state)], self.head)

    def restore(self, state: State) -> None:
        """Continue from `state`, taken from a model with the same parts and options; else StateError."""
        self._check_alone()
        self.check(state)
        self.feed.restore(state)
        self.continue_from(state)
        self.curve = tuple(point for point in self.curve if point.examples <= self.examples)

    def continue_from(self, state: State) -> None:
        """Continue from this model's part of a `state`; the feed has been restored already."""
        self.loop.restore(state)
        self._sound = self.feed.learned


def as_model(given: Any) -> Model | LinearPredictor:
    """The model itself, or the ``model_`` of an estimator or a search; TypeError for anything else."""
    found = given.model_ if hasattr(type(given), "model_") else given
    if not isinstance(found, Model | LinearPredictor):
        one = ".of(value)" if getattr(found, "values", ()) else "one of its .models"
        several = f": give {one}" if isinstance(found, BasePredictor) else ""
        raise TypeError(f"expected a model, not {type(given).__name__}{several}")
    return found


def make_loop(recipe: Recipe, head: Objective, rule: Any, index: Index) -> OneState | ManyState:
    """The loop for the recipe's outputs and batch size. A group of one output is not treated as a group.

    ValueError for what cannot be averaged, and for a rule whose weights do not start at zero with a
    signed store or admission.
    """
    name = parts.part_name(type(rule))
    if recipe.average and getattr(rule, "half_life", np.inf) < np.inf:
        raise ValueError(f"{name} cannot be averaged with a half_life: leave out one of them")
    if recipe.average and rule.DRIFTS is None:
        others = parts.able(lambda cls: cls.DRIFTS is not None)
        raise ValueError(f"{name} cannot be averaged: the sums of its weights have no formula; {others}")
    alone = getattr(type(rule), "_field_defaults", {}).get("group")
    if head.count == 1 and getattr(rule, "group", alone) != alone:
        rule = parts.make("rule", rule, group=alone)
    if signs := recipe.signs():
        rule = parts.clamped(rule, signs.of_class)
    made = head, rule, recipe.numbers, index
    loop: OneState | ManyState
    if head.outputs.kind == "one" and recipe.batch == 1:
        loop = OneState(*made, recipe.average, recipe.calibrate)
    elif recipe.average:
        one = "a mean of weights is that of one output, learned row by row"
        raise OneLineError(f"{one}: leave {mention('average')} out")
    else:
        of_classes = head.outputs.kind == "classes"
        loop = (ClassState if of_classes else ManyState)(*made, recipe.batch, recipe.calibrate)
    if not recipe.intercept:
        loop.B = loop.B[:0]
    what = "" if recipe.admit is None else "features wait to be admitted"
    if isinstance(index, HashedIndex) and index.signed:
        what = "a signed store flips half of the signs"
    if what and loop.unmet().any():
        name = parts.part_name(type(loop.rule))
        raise ValueError(f"{name}: its weights do not start at zero, which does not work if {what}")
    return loop
