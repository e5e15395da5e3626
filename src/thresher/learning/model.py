"""Model: a loss, a rule, a store and a clock that learn from Chunks."""

from __future__ import annotations

import os
import warnings
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.chunk import Chunk
from thresher.data.features.names import Names
from thresher.data.layout import SettledLayout
from thresher.engine import kernels
from thresher.engine.index import HashedIndex
from thresher.engine.sound import Tensors
from thresher.learning.curve import Curve, marked, up_to
from thresher.learning.feed import Feed
from thresher.learning.finite import (
    Before,
    DivergedError,
    NothingLearnedWarning,
    broken_row,
    first_broken,
    is_finite,
)
from thresher.learning.given import Data
from thresher.learning.head import F64, Output
from thresher.learning.keywords import SourceOptions
from thresher.learning.loops import check_born_at_zero, make_loop
from thresher.learning.predicting import Predictor
from thresher.learning.reading import any_output
from thresher.learning.readout import Readout
from thresher.learning.recipe import Recipe, Spec
from thresher.learning.record import Record
from thresher.learning.remedies import divergence_remedy, feature_name, largest_in
from thresher.learning.trained import Tally

if TYPE_CHECKING:
    from thresher.learning.trouble import Trouble

_SHOWN = {"B": "the intercept", "bias": "the intercept", "clock": "the state of the rule"}


class Model(Predictor):
    """A sparse linear model that learns from a stream.

    Made of a `Recipe`, or of what a Recipe is made of: ``Model("ftrl", l1=1.0)``. Raises what a Recipe does.
    A model belongs to one thread at a time. To learn, or to save, while another thread learns is a
    RuntimeError; to predict meanwhile is not safe.

    >>> model = Model("sgd", "squared", rate="constant:0.1")
    >>> model.learn(Chunk.of_rows([(1.0, {7: 2.0})]))
    >>> model.predict(Chunk.of_rows([(1.0, {7: 2.0})]))  # 5 * (2 * 0.1 * 1)
    array([1.00000001])
    """

    def __init__(self, rule: Recipe | Spec = "ft-ftrl", loss: Spec | None = None, **options: Any) -> None:
        options |= {} if loss is None else {"loss": loss}
        recipe = replace(rule, **options) if isinstance(rule, Recipe) else Recipe(rule, **options)
        self._begin(recipe, Feed(recipe), alone=True)

    @classmethod
    def lane(cls, recipe: Recipe, feed: Feed) -> Model:
        """One that learns with others from `feed`, by which they are taught."""
        model = cls.__new__(cls)
        model._begin(recipe, feed, alone=False)
        return model

    def _begin(self, recipe: Recipe, feed: Feed, alone: bool) -> None:
        self.recipe = recipe
        """what this model is"""
        self.head, self.rule, self.dtype = recipe.head(), recipe.make_rule(), recipe.numbers
        self.loss, self.batch = self.head.loss, recipe.batch
        self._sound, self._warned, self._alone = 0, False, alone
        self.error: DivergedError | None = None
        self.names: Names | None = None
        """of features, where they were asked for"""
        self.record: Record | None = None
        """how it came to be, once its training is over; None where examples were given to `learn` since"""
        self.curve: Curve = ()  # how progressive loss and weights developed in training
        self.warm = False
        """whether it began with the weights of another model"""
        self.warnings: list[Trouble] = []
        """trouble that was met in training"""
        self._feed = feed
        self.loop = make_loop(recipe, self.head, self.rule, feed.index)
        check_born_at_zero(self.loop, recipe.admit is not None)

    def __repr__(self) -> str:
        """What it is, and how far it has come."""
        recipe = replace(self.recipe, layout=None)  # which may name a hundred columns
        return f"<Model of {recipe!r}: {self.examples:,} examples, {self.features_seen:,} features seen>"

    def __copy__(self) -> Model:
        """Another model, as far as this one has come, that learns by itself."""
        model = Model(self.recipe)
        with self.at_rest():
            model.restore(self.state())
        model.names, model.curve = self.names, self.curve
        model.record, model.warm = self.record, self.warm
        return model

    def __deepcopy__(self, memo: Any) -> Model:
        """The same: models share nothing that changes."""
        return copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickles: the bytes of a model file. `DivergedError` as `save`."""
        from thresher.learning.modelbytes import as_bytes, from_bytes

        return from_bytes, (as_bytes(self),)

    def at_rest(self) -> AbstractContextManager[None]:
        """Nothing is learned in this block, so what is read in it belongs together.

        RuntimeError where another thread is learning.
        """
        return self._feed.at_rest()

    def begin_pass(self, number: int) -> None:
        """Pass `number`, from 1, over the same data begins, or goes on after a stop."""
        self.loop.begin_pass(number)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """The model in a file, which goes on learning; one that has no state saved is a `ModelFileError`."""
        from thresher.learning import modelfile

        return modelfile.load(os.fspath(path))[0]

    def save(self, path: str | os.PathLike[str], *, state: bool = True) -> None:
        """Write a model file: see `thresher.save`."""
        from thresher.learning import modelfile

        modelfile.save(self, os.fspath(path), state=state)

    @overload
    def learn(self, chunk: Chunk, /, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None: ...

    @overload
    def learn(
        self,
        data: Data,
        /,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **reading: Unpack[SourceOptions],
    ) -> None: ...

    def learn(self, data: Any, /, *args: Any, **given: Any) -> None:
        """Predict, then learn, each example of `data` once, in order.

        A Chunk is learned as it is, rows lo <= i < hi of it; anything else is read first.
        Cutting a stream into chunks or ranges anywhere changes nothing, bit for bit: rows of a batch
        that is not full wait for the next call, or for `finish`. Rows that come `again`, in a later pass, are
        not counted twice: scales stay as they are, and features that wait go on waiting.

        Args:
            data: whatever `thresher.train` takes.
            y: labels of the rows of `data` ``(n,)`` or ``(n, outputs)``, where they stand beside them.
            sample_weight: importances ``(n,)``, beside `y`.
            reading: how `data` are read, where it is not as those before: the options of
                `thresher.open_source` and the fields of a `Layout`.

        Raises `DataError` for data that cannot be read, `DivergedError` when a loss is not finite (that
        example has changed no weight), and when an example with extreme values leaves a weight that is not;
        `check_finite` finds all others. RuntimeError for a lane, which learns with the others, and while
        another thread learns.
        """
        self._check_alone()
        self.record = None
        if isinstance(data, Chunk):
            self._feed.learn([self], data, *args, **given)
        else:
            from thresher.learning.teaching import teach

            teach(self, data, *args, **given)

    def keep_record(self, record: Record) -> None:
        """Note how this model came to be."""
        self.record = record

    def mark(self) -> None:
        """Note a point of the progressive curve."""
        self.curve = marked(self.curve, self)

    def finish(self) -> None:
        """Learn the examples of a batch that is not full as a smaller one."""
        self._check_alone()
        self._feed.finish([self])

    def _check_alone(self) -> None:
        if not self._alone:
            raise RuntimeError("this model is a lane: Lanes.learn teaches all of them")

    def stop(self, error: DivergedError) -> None:
        """Raise what has happened."""
        raise error

    def judge(self, before: Before) -> None:
        """Of the examples just learned: have they broken a weight, have they taught anything?"""
        self.check_learned(before.chunk, self._feed.learned - len(before.chunk) + 1)
        if not self._warned and before.taught_nothing():
            self._warned = True
            warnings.warn(
                f"example {self._feed.learned} taught nothing, as others may: its squared values overflow"
                f" {self.dtype}; scale the features, or use the dtype float64",
                NothingLearnedWarning,
                stacklevel=2,
            )

    def _weight_of(self, row: int) -> str:
        """What is stored in a row, for people."""
        return f"the weight of {feature_name(int(self._feed.index.features()[row]), self.layout, self.names)}"

    def check_learned(self, chunk: Chunk, first: int) -> None:
        """Raise `DivergedError` where a weight is not finite after `chunk`, examples from `first` on."""
        row = broken_row(self.loop, chunk)
        broken = self._weight_of(row) if row >= 0 else self._broken_among(self.loop.clocks())
        if broken is not None:
            raise self._not_finite(broken, first, chunk)

    def check_finite(self) -> None:
        """Raise `DivergedError` where a weight, or anything that learning goes on from, is not finite."""
        if (broken := self._broken()) is not None:
            raise self._not_finite(broken, self._sound + 1)
        self._sound = self._feed.learned

    def _not_finite(self, what: str, first: int, chunk: Chunk | None = None) -> DivergedError:
        last = self._feed.learned
        when = f"one of the examples {first} to {last}" if first < last else f"example {last}"
        return self.diverged(f"{what} is not finite after {when}", chunk)

    def diverged(self, what: str, chunk: Chunk | None = None) -> DivergedError:
        """The error that says what has happened, names the largest features of `chunk`, and what helps."""
        large = largest_in(chunk, self.layout, self.names) if chunk is not None else ""
        return DivergedError(what, divergence_remedy(self.recipe, large))

    def _broken(self) -> str | None:
        """What is not finite, if anything is."""
        state = self.state()
        for rows in (self.loop.settled(), state["S"]):
            if (row := first_broken(rows)) >= 0:
                return self._weight_of(row)
        return self._broken_among({"bias": self.loop.bias(), **state})

    def _broken_among(self, state: dict[str, NDArray[Any]]) -> str | None:
        broken = (name for name, array in state.items() if not is_finite(array))
        return next((_SHOWN.get(name, f"the state ({name})") for name in broken), None)

    @property
    def layout(self) -> SettledLayout | None:
        """How the data learned from became features, where they came from files.

        Setting it raises `DataError` where columns are to be scaled and it has no numeric ones.
        """
        return self.recipe.layout

    @layout.setter
    def layout(self, layout: SettledLayout | None) -> None:
        self._feed.intake.bind(layout)
        self.recipe = replace(self.recipe, layout=layout)

    @property
    def classes(self) -> tuple[str, ...]:
        """The words that labels are, in the order of their classes; none where labels are numbers."""
        return self.layout.classes if self.layout else ()

    @property
    def features_waiting(self) -> int | None:
        """Features seen that have not entered, but for false positives; None where that is not counted."""
        return self._feed.intake.waiting

    @property
    def tally(self) -> Tally:
        """Sums of progressive loss and importance."""
        tally = self.loop.tally
        return Tally(float(tally[kernels.LOSS_SUM]), float(tally[kernels.WEIGHT_SUM]))

    @property
    def last_margin(self) -> float:
        """Of the first output, for the last example learned from, before it was."""
        return self.loop.last_margin

    @property
    def last_prediction(self) -> float:
        """For the last example learned from, before it was: a class, a probability or a margin."""
        heaviest = float(self.loop.tally[kernels.LAST_HEAVIEST])
        return self.head.last_prediction(self.last_margin, heaviest, self.lowest_label)

    @property
    def lowest_label(self) -> float:
        """The least label met, 0 at most: how the data write a negative one."""
        return self._feed.lowest_label

    @property
    def examples(self) -> int:
        """How many were given to learn."""
        return self._feed.examples

    @property
    def features_seen(self) -> int:
        """Distinct features met so far (see the indexes)."""
        return self._feed.index.features_seen

    @property
    def nbytes(self) -> int:
        """Bytes that keys and state take now."""
        return self._feed.index.nbytes + self.loop.S.nbytes

    @property
    def store(self) -> str:
        """SPEC of the store."""
        return self.recipe.store_in_full

    @property
    def nonzero(self) -> int:
        """Weights that are not zero, the intercepts not counted."""
        settled, unmet = self.loop.settled(), self.loop.unmet()
        return int(np.count_nonzero((settled != 0) & (settled != unmet) if unmet.any() else settled))

    @property
    def intercept(self) -> Any:
        """Settled weight of the intercept, ``(outputs,)`` for many; 0 without one."""
        bias = self.loop.bias()
        return float(bias[0]) if self.head.count == 1 else bias

    def weights(self) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """Keys, ascending, and weights of the features with a weight that is not zero.

        ``(features,)`` uint64, and ``(features,)`` or ``(features, outputs)`` in the dtype of the state.
        """
        keys, weights = self._stored()
        alive = any_output(weights != 0)
        return (keys, weights) if alive.all() else (keys[alive], weights[alive])

    def _stored(self) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """The features whose weights differ from those of one never met."""
        settled = self.loop.settled()
        (rows,) = np.nonzero(any_output(settled != self.loop.unmet().reshape(settled.shape[1:])))
        if self.head.count == 1:
            settled = settled.reshape(len(settled))
        keys = self._feed.index.features()[rows]
        order = np.argsort(keys)
        return keys[order], settled[rows][order]

    def margins(self, chunk: Chunk) -> F64:
        """Weighted sums ``(n,)`` float64 of the rows of `chunk`, ``(n, outputs)`` for many."""
        return self.loop.margins(self._feed.intake.read(chunk))

    def respond(self, margins: F64, output: Output) -> F64:
        """What `margins` mean: see `predict`."""
        return self.head.respond(margins, output, self.lowest_label)

    def _weights(self) -> Readout:
        return self.readout()

    def readout(self) -> Readout:
        """The settled weights, apart from the state that goes on learning."""
        keys, weights = self._stored()
        unmet = self.loop.unmet()
        of_keys = not unmet.any() and not self.store.startswith(HashedIndex.NAME)
        rest = (self.lowest_label, unmet, self._feed.intake.divisors(keys if of_keys else None))
        readout = Readout(self.head, self.store, keys, weights, self.loop.bias(), *rest)
        readout.layout, readout.names = self.layout, self.names
        return readout

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning goes on from, as arrays."""
        return self._feed.state() | self.loop.state()

    def check(self, state: Tensors) -> None:
        """StateError for a `state` that no model of these parts and options can be in."""
        self.loop.check(state, *self._feed.check(state, self.head))

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from `state`, taken from a model of the same parts and options; StateError for any other."""
        self._check_alone()
        self.check(state)
        self._feed.restore(state)
        self.go_on(state)
        self.curve = up_to(self.curve, self.examples)

    def go_on(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from its own part of a `state` from which the feed goes on."""
        self.loop.restore(state)
        self._sound = self._feed.learned


def as_model(given: Any) -> Model | Readout:
    """A model itself, or that of a fitted estimator, its ``model_``; TypeError for anything else."""
    found = given.model_ if hasattr(type(given), "model_") else given
    if not isinstance(found, Model | Readout):
        raise TypeError(f"expected a Model or a Readout, not {type(given).__name__}")
    return found
