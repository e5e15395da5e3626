"""Linear predictors: what models, their settled weights (`LinearPredictor`) and ensembles share.

The margin of a row is the sum of its values, as the model multiplies them, times weights, plus an intercept;
every prediction follows from it. A model settles the weights of the row from its state, a LinearPredictor
has all in a table, without state, and an ensemble is the mean of others.

A weight can be non-zero before its first example: in `simplex`, and in `eg` without sign, each starts at 1/N.
So a model file stores the weight of unseen features once, and all features that were seen.

`teach` trains an existing model on data of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.cluster.remote_readers import reads_elsewhere
from thresher.data.chunk import Chunk, concat, read_only
from thresher.data.columns import check_same, read_beside
from thresher.data.errors import DataError, NoPackageError
from thresher.data.features.names import Names
from thresher.data.inputs.any_data import Data, as_source, is_beside, open_data, with_labels
from thresher.data.labels import WordTable
from thresher.data.layout import AnyLayout, Layout, SettledLayout, has_columns, settle_without_columns
from thresher.data.source import Parsed, Source
from thresher.engine.index import HashedIndex, Index, make_index
from thresher.engine.kernels import add_up
from thresher.engine.sound import Array, Tensors, are_ends, check_keys, check_tensor, require
from thresher.learning.diagnostics.column_findings import troubles_of_reading
from thresher.learning.diagnostics.findings import warn
from thresher.learning.files.choice import by_option
from thresher.learning.model.agreement import (
    NAMES,
    Numbering,
    check_kinds,
    in_agreement,
    kind_in,
    kind_of_model,
    names_refused,
    note_kind,
)
from thresher.learning.model.divergence import rows_beyond
from thresher.learning.model.margins import any_output, finder_in, table_margins
from thresher.learning.model.objective import F64, Objective, Output
from thresher.learning.model.scaling import NO_MEANS, Divisors, Means, divide, divisors_of, means_of, ones
from thresher.learning.model.single_rows import Ready, Row, RowBuffers, as_data, margins_of
from thresher.options.data import ReadOptions
from thresher.options.kinds import Whole
from thresher.options.layouts import layout_asked, layout_like
from thresher.options.option import Option, Options, settle

if TYPE_CHECKING:
    import pandas as pd

    from thresher.data.bodies import BodyReader
    from thresher.learning.inspection.effects import DrawnRows
    from thresher.learning.model.model import Model
    from thresher.learning.training.record import Record


OPENING = "on_error", "threads", "where", "offsets"
"""Options of `as_source` beside the layout"""


def source_for(
    model: Any,
    data: Data,
    domain: Any,
    *,
    more: Mapping[str, Any] | None = None,
    **reading: Any,
) -> Source:
    """Open `data` for prediction, read as the training data were except for the options in `reading`.

    A model without a layout was trained on matrices or Chunks: it reads a table without labels as a matrix.
    """
    options = settle(ReadOptions, reading)
    layout = layout_for(model, options)
    read = {name: options[name] for name in OPENING}
    source = as_source(data, domain, layout=layout, **read, **(more or {}))
    source.finder = finder_in(model.index)
    read_beside(source, model.sliced, by_option)
    X: Any = data[0] if isinstance(data, tuple) and data else data
    how = ': rows.to_dict("records")' if hasattr(X, "to_dict") else ""
    return in_agreement(model, source, given=type(X).__name__ + how)


def layout_for(model: Any, options: Options) -> AnyLayout:
    """How new data are read for a model. `DataError` if they cannot have its features, `UsageError`."""
    trained = model.layout
    if trained is None and kind_of_model(model).features == NAMES:
        trained = SettledLayout()
    layout = layout_like(trained, options)
    layout = layout.without_groups() if isinstance(layout, SettledLayout) else layout
    check_kinds(kind_of_model(model), kind_in(layout))
    if layout is None:
        return SettledLayout(gaps=model.centres)
    if model.centres and not has_columns(layout):
        layout = replace(layout, gaps=True)
    return layout


def body_reader(
    model: BasePredictor, form: str, most_rows: int, words: WordTable | None = None
) -> BodyReader:
    """A reader of rows in memory, in this format, for a model. `DataError` if it cannot have any.

    `words` are the classes that other bodies have, and these may add to.
    """
    from thresher.data.bodies import BodyReader
    from thresher.data.formats.listing import FORMATS, TABLES

    layout = layout_for(model, settle(ReadOptions, {"format": form}))
    if not has_columns(layout):
        if form in TABLES:
            title = FORMATS[form].title
            raise DataError(f"the model was not trained on a table, so its rows cannot be {title}")
        layout = settle_without_columns(layout)
    domains = {True: model.head.domain.of_model().sharing(words), False: model.head.open_domain}
    beyond = partial(rows_beyond, model, layout)
    return BodyReader(layout, domains, most_rows, names_refused(model, layout), beyond, model.sliced)


def label_reader(model: BasePredictor, most_rows: int, words: WordTable | None = None) -> BodyReader:
    """A reader of lines of labels that come after their rows, with importances if these are not 1."""
    from thresher.data.bodies import BodyReader, Limit

    kinds = {"label": "label", "weight": "numeric"}
    layout = SettledLayout("jsonl", columns=(*kinds,), kinds=(*kinds.values(),), classes=model.classes)

    def weighed(chunk: Chunk) -> Chunk:
        rows = np.repeat(np.arange(len(chunk)), np.diff(chunk.indptr))
        weights = np.bincount(rows, chunk.values, len(chunk)).astype(np.float32)
        assert chunk.cells is not None
        weights[chunk.cells[:, 0] == ""] = 1.0
        return replace(chunk, weights=weights)

    def beyond(chunk: Chunk, *kind: bool) -> list[Limit]:
        negative = chunk.weights < 0, repeat("a weight of at least 0")
        return [negative, *rows_beyond(model, layout, chunk, True, False)]

    domains = {True: model.head.domain.of_model().sharing(words)}
    return BodyReader(layout, domains, most_rows, weighed, beyond, ["weight"])


def with_known_labels(model: Any, data: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Data to measure a model on, with the labels and columns that a fitted estimator knows.

    `DataError` for a label that a classifier has not seen.
    """
    given = with_labels(with_columns(model, data), y, sample_weight)
    own = getattr(model, "classes_", None) if hasattr(type(model), "model_") else None
    beside: Any = given if is_beside(given) else ()
    if own is None or len(beside) not in (2, 3) or beside[1] is None or np.ndim(beside[1]) != 1:
        return given
    known = {label: code for code, label in enumerate(np.asarray(own).tolist())}
    labels = np.asarray(beside[1]).tolist()
    if unseen := [label for label in labels if label not in known]:
        raise DataError(f"label {unseen[0]!r} is not among the classes the estimator was fitted on")
    if model.model_.classes:  # words
        return given
    return (beside[0], np.array([known[label] for label in labels]), *beside[2:])


def with_columns(model: Any, data: Any) -> Any:
    """Tables for a fitted estimator of named columns, with these columns in order; other data unchanged.

    Raises `DataError` for a table with other columns.
    """
    names, X = getattr(model, "feature_names_in_", None), data[0] if is_beside(data) else data
    there = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None or not (isinstance(there, Iterable) and hasattr(X, "__arrow_c_stream__")):
        return data
    layout = model.model_.layout
    if (layout is not None and has_columns(layout)) or [*there] == [*names]:
        return data
    check_same(
        SettledLayout(columns=(*names,), kinds=("numeric",) * len(names)), [*map(str, there)], "the table"
    )
    X = X.select([*names]) if hasattr(X, "select") else X[[*names]]
    return (X, *data[1:]) if is_beside(data) else X


class Fitted(Protocol):
    """A fitted estimator of `thresher.sklearn`."""

    @property
    def model_(self) -> Any:
        """The fitted Model."""


class Summands(NamedTuple):
    """What the margins of rows are sums of."""

    rows: Chunk
    """the rows as the model multiplies them: with columns centred and scaled"""
    weights: Array
    """of all their values, ``(values,)`` or ``(values, outputs)``"""
    parts: F64
    """the products of both, rounded to the dtype of the weights"""
    intercepts: F64
    """``(outputs,)``"""


class BasePredictor:
    """Base of everything that has weights."""

    head: Objective
    names: Names | None
    """names of features, if they were requested"""
    numbering: Numbering | None
    """the ids of the training data, if its features are numbers"""
    named = False
    """whether it was trained on rows of named features: dictionaries or texts"""
    matches_names = False
    """whether columns of tables are matched by name before, by the estimator that this belongs to"""
    layout: SettledLayout | None
    """how the training data became features, if they came from files or tables"""
    shifted = False
    """whether each example has an offset"""
    sliced: Sequence[str] = ()
    """columns whose cells predictions need beside the features"""
    values: Sequence[str] = ()
    """values of a column that have a model of their own"""
    centres: bool
    """whether columns are centred"""
    only_means: Means | None = None
    """the means of columns, if rows are prepared for prediction by these alone"""
    drawn: DrawnRows | None = None
    """rows that were learned, or in which names were found, by which effects of columns are measured"""
    index: Index
    """that of the weights; of several models, that of the first"""

    @property
    def classes(self) -> tuple[str, ...]:
        """The words that labels are, in the order of their classes; empty if labels are numbers."""
        return self.layout.classes if self.layout else ()

    @property
    def lowest_label(self) -> float:
        """The lowest label seen, at most 0: how the data write the negative class."""
        raise NotImplementedError

    predictor: Callable[[], LinearPredictor]
    """the settled weights, without the learning state"""
    _prepared: Callable[[Chunk], Chunk]
    """rows as they are multiplied: with columns centred and scaled"""
    _products: Callable[[Chunk, Array], F64]
    """weighted sums of prepared rows, with these intercepts ``(outputs,)``"""
    _bias: Callable[[], Array]
    """intercepts ``(outputs,)`` for prepared rows, in the dtype of the weights"""

    def _uncentre(self, means: Means | None, divisors: Divisors | None) -> NDArray[np.generic]:
        """The intercepts for values as they are, in float64: those for centred ones less what means add."""
        bias = self._bias()
        if means is None or not len(means.keys):
            return bias
        # the weights are margins of `ones` without intercepts, which would hide small ones
        weights = self._products(ones(means.keys), np.zeros_like(bias)).reshape(len(means.keys), len(bias))
        by = np.ones(len(means.keys)) if divisors is None else divisors.at(means.keys)
        found: F64 = bias - (means.means / by) @ weights
        return found

    def margins(self, chunk: Chunk) -> F64:
        """Weighted sums of the rows of `chunk`: ``(n,)`` float64, or ``(n, outputs)`` for many outputs.

        They include the offsets, if the model was trained with any. `DataError` if the rows have none.
        """
        chunk.check_arrays()
        found, offsets = self._products(self._prepared(chunk), self._bias()), chunk.offsets_if(self.shifted)
        return found if offsets is None else found + offsets

    def terms(self, chunk: Chunk) -> Summands:
        """What the margins of `chunk`, without offsets, are sums of.

        ValueError for an ensemble whose models centre or scale columns differently.
        """
        chunk.check_arrays()
        rows, bias = self._prepared(chunk), self._bias()
        own = self._products(ones(rows.keys), np.zeros_like(bias)).astype(bias.dtype)
        parts: F64 = (own.T * rows.values).T.astype(np.float64)
        return Summands(rows, own, parts, bias.astype(np.float64))

    def knows(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these features have a weight that is not 0; none if a weight may be that of several."""
        if self.index.NAME == HashedIndex.NAME:
            return np.zeros(len(keys), np.bool_)
        row = np.unique(keys)
        found = self.terms(Chunk.from_csr([0, len(row)], row, np.ones(len(row)), [0]))
        live = any_output(found.weights != 0)
        return np.isin(keys, found.rows.keys[live])

    def respond(self, margins: F64, output: Output) -> F64:
        """Turn `margins` into predictions: see `predict`."""
        return self.head.respond(margins, output, self.lowest_label)

    @overload
    def predict(
        self,
        data: Data,
        output: Literal["margin", "probability"] = ...,
        **reading: Unpack[ReadOptions],
    ) -> F64: ...

    @overload
    def predict(self, data: Data, output: Output, **reading: Unpack[ReadOptions]) -> Array: ...

    @reads_elsewhere
    def predict(
        self,
        data: Data,
        output: Output = "margin",
        **reading: Unpack[ReadOptions],
    ) -> Array:
        """Predict ``(n,)`` float64, or ``(n, outputs)`` for many outputs. The model does not change.

        Args:
            data: examples; labels are optional and ignored. A path, a glob or several; a table (pandas,
                polars, pyarrow); a matrix (numpy, scipy); a list of dictionaries; a Chunk.
            output: ``margin``, the weighted sum; ``probability``, the inverse link of the loss (for two
                classes, the probability of the positive one); ``label``, the class as written in the
                training data ``(n,)``, text if labels are words, or for regression the predicted mean.
            reading: how to read `data`, where that differs from the training data: the options of
                `thresher.open_source` and the fields of a `Layout`; and ``offsets``, numbers ``(n,)`` that
                are added to the margins of rows in memory, if the model was trained with offsets.

        A row skipped by `on_error` gives NaN, so that the answers match the rows.

        Raises ValueError for an output that this loss does not have, `DataError` for data that cannot be
        read.
        """
        return self._of_all(
            data, self.predict, reading, lambda chunk: self._answer(self.margins(chunk), output)
        )

    def _answer(self, margins: F64, output: Output) -> Array:
        found = self.respond(margins, output)
        return self.head.to_words(found, self.classes) if output == "label" and self.classes else found

    def predict_one(self, row: Row, output: Output = "margin") -> Any:
        """Predict one row: ``predict([row], output)[0]``, but fast.

        A number; for the label a text if labels are words; ``(outputs,)`` for many outputs. `row` is a
        dictionary of named features, the numbers of a row of a matrix, or a text. A number that is missing
        from a dictionary counts as 0; for a model of a table, as the mean of a centred column.

        Raises the errors of `predict`.
        """
        margins = margins_of(self, row)
        found = self.predict(as_data(row), output) if margins is None else self._answer(margins, output)
        return found.item() if found.ndim == 1 else found[0]

    def predict_proba_one(self, row: Row) -> F64:
        """The probabilities ``(classes,)`` of one row: ``predict_proba([row])[0]``, but fast."""
        margins = margins_of(self, row)
        found = self.predict_proba(as_data(row)) if margins is None else self.head.probabilities(margins)
        one: F64 = found[0]
        return one

    def score_one(self, row: Row) -> object:
        """The margin of one row, or one for each output: ``predict([row])[0]``, but fast."""
        return self.predict_one(row)

    @cached_property
    def idle(self) -> list[Ready]:
        """What is ready for single rows, and not in use: one for each thread that was in a row at a time."""
        return []

    @reads_elsewhere
    def predict_proba(self, data: Data, **reading: Unpack[ReadOptions]) -> F64:
        """Probabilities ``(n, classes)`` float64: of the negative and positive class, or of each class.

        One-against-rest probabilities are divided by their sum; with outputs ``labels`` they are independent.
        Arguments and errors are those of `predict`; ValueError for a loss without probabilities.
        """
        return self._of_all(
            data,
            self.predict_proba,
            reading,
            lambda chunk: self.head.probabilities(self.margins(chunk)),
        )

    @reads_elsewhere
    def explain(
        self,
        data: Data,
        top: int | None = None,
        **reading: Unpack[ReadOptions],
    ) -> list[dict[str, Any]]:
        """Why each row is predicted so: the terms that its margin is the sum of. See docs/explain.md.

        Args:
            data: examples, as for `predict`.
            top: only so many features of a row, those with the largest contributions; default: all.
            reading: as for `predict`.

        Returns a dictionary for each row: ``label``, ``probability`` if the loss has it, ``margin``,
        ``intercept``, ``offset`` if the model was trained with any, ``features`` and ``rest``. The features
        are dictionaries with ``feature`` (the name, or the key if it has none), ``value``, ``weight`` and
        ``contribution``, the largest magnitude first; ``rest`` is the sum of the contributions that `top`
        leaves out. The intercept, the offset, these contributions and the rest add up to the margin. For many
        outputs, numbers are dictionaries by class or output. A row skipped by `on_error` gives
        ``{"error": "skipped"}``.

        Raises `DataError` for data that cannot be read; ValueError for a wrong `top`, and for an ensemble
        whose models centre or scale columns differently.

        >>> import thresher
        >>> model = thresher.train([{"size": 3.0}, {"size": -2.0}] * 50, [1, -1] * 50, passes=1, names=True)
        >>> [found] = model.explain([{"size": 5.0}])
        >>> found["label"], [term["feature"] for term in found["features"]]
        (1, ['size'])
        """
        from thresher.learning.inspection.explanation import SKIPPED, explain

        told = None if top is None else Option(Whole(1), name="top").take(top)
        each = self._each(data, self.explain, reading)
        return [one for rows in each for one in rows.in_place(explain(self, rows.chunk).told(told), SKIPPED)]

    def _of_all(
        self,
        data: Data,
        method: Callable[..., object],
        reading: object,
        answer: Callable[[Chunk], NDArray[np.generic]],
    ) -> Array:
        found: list[Array] = []  # no `list[Array]()`, which takes as long as a small row
        for rows in self._each(data, method, reading):
            answers = answer(rows.chunk)
            found.append(np.insert(answers, rows.gaps, np.nan, axis=0) if rows.gaps else answers)
        return (found[0] if len(found) == 1 else np.concatenate(found)) if found else answer(concat([]))

    def _each(self, data: Data, method: Callable[..., Any], reading: Any) -> Iterator[Parsed]:
        """The rows of data that `method` was given; at the end, warnings of what reading has shown."""
        if isinstance(data, Chunk) and not reading:
            data.check_arrays()
            yield Parsed(data)
            return
        settle(ReadOptions, reading, method)
        none = isinstance(data, list | tuple | Chunk) and not len(data)
        if none or (hasattr(data, "shape") and data.shape[:1] == (0,)):  # which no source can be of
            return
        source = source_for(self, data, self.head.open_domain, more={"unlabelled": True}, **reading)
        yield from source.rows()
        warn(troubles_of_reading(source.report))

    def weights_frame(self, top: int | None = None) -> pd.DataFrame:
        """The nonzero weights as a pandas DataFrame, largest magnitude first.

        The columns are ``feature`` (its name if known, else its key as text), ``key``, ``output`` if there
        are many outputs (the class, text if labels are words, or the number of the value), and ``weight``.
        `name_features`, or ``names=True`` in training, finds the names; those of numeric columns are always
        known.

        Args:
            top: return only this many rows.

        Raises ImportError without pandas, and ValueError for a wrong `top`.
        """
        told = None if top is None else Option(Whole(1), name="top").take(top)
        try:
            import pandas as pd
        except ImportError as error:
            raise NoPackageError("weights_frame", "pandas") from error

        from thresher.learning.inspection.feature_names import known_names

        predictor = self.predictor()
        heaviest, names = predictor.heaviest(told), known_names(predictor)
        keys = [key for key, _, _ in heaviest]
        columns: dict[str, Any] = {
            "feature": [names.get(key, str(key)) for key in keys],
            "key": np.array(keys, np.uint64),
        }
        if self.head.outputs.kind != "one":
            outputs, levels = np.array([one for _, one, _ in heaviest], np.int64), self.head.outputs.levels
            called = np.array(levels)[outputs] if levels else outputs + self.head.outputs.low
            columns["output"] = self.head.to_words(called, self.classes) if self.classes else called
        weights: Array = np.array([weight for _, _, weight in heaviest], predictor.weights.dtype)
        return pd.DataFrame({**columns, "weight": weights})


_OF_MODELS = ("learn", "learn_one", "finish", "examples", "recipe", "state", "restore")
"""What a model has that can learn"""
_BLOCK = 1 << 20
"""Weights processed at a time."""


class LinearPredictor(BasePredictor):
    """Settled weights of a model.

    `keys` ``(stored,)`` uint64 ascend; `weights` ``(stored,)``, or ``(stored, outputs)`` for many outputs,
    and the intercepts `bias` ``(outputs,)`` have the dtype of the state. Features that are not stored have
    the weight `unmet` ``(outputs,)``, which is 0 except for rules that start elsewhere. `divisors` are those
    of numeric columns, None without scaling; the weight of such a column applies to the scaled value. `means`
    are those of centred columns, None if none are; then `centred_bias` are the intercepts for centred values,
    and `bias`, float64, those for values as they are.
    """

    lowest_label = 0.0
    has_intercept = True
    said: Mapping[str, Any] = {}
    """what the header of its file says beside its recipe"""

    def __init__(
        self,
        head: Objective,
        store: str,
        keys: NDArray[np.uint64],
        weights: Array,
        bias: Array,
        lowest_label: float = 0.0,
        unmet: Array | None = None,
        divisors: Divisors | None = None,
        means: Means | None = None,
    ) -> None:
        self.head, self.loss, self.store = head, head.loss, store
        self.keys, self.weights, self.centred_bias = keys, weights, bias
        self.lowest_label = lowest_label
        self.layout, self.names, self.numbering = None, None, None
        self.record: Record | None = None
        """how the model was trained, if that is known"""
        self.divisors, self.means, self.centres = divisors, means, means is not None
        self.only_means = None if divisors is not None else means or NO_MEANS
        self.unmet = np.zeros_like(bias) if unmet is None else unmet
        inner = weights.shape[1:]
        self.index = make_index(store)
        rows = self.index.enter(keys)
        self.table = np.zeros((self.index.size, *inner), weights.dtype)  # takes no memory until written
        if self.unmet.any():
            self.table[:] = self.unmet.reshape(inner)
        self.table[rows] = weights

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """AttributeError, which says how to load a model that can learn."""
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = ": it can only predict; load the model with Model.load to go on learning"
            raise AttributeError(what + (hint if name in _OF_MODELS else ""), name=name, obj=self)

    def __repr__(self) -> str:
        """Loss, outputs and number of features."""
        loss, outputs = parts.part_name(type(self.loss)), self.head.outputs.spec
        return f"<{type(self).__name__}: {loss} loss, outputs {outputs}, {len(self.keys):,} features>"

    @classmethod
    def of(cls, head: Objective, store: str, lowest_label: float, tensors: Tensors) -> LinearPredictor:
        """The weights in a model file; StateError if the tensors are not weights for `head`."""
        keys = check_keys(tensors, "weights.keys")
        bias = check_tensor(tensors, "weights.intercept", (None,), np.float32, np.float64, finite=False)
        head.meet(1 + int(np.flatnonzero(bias > -np.inf).max(initial=0)))
        inner = () if head.count == 1 else (head.count,)
        weights = check_tensor(tensors, "weights.values", (len(keys), *inner), np.float32, np.float64)
        met = head.outputs.kind != "classes"  # -inf is the intercept of a class not met
        bias = check_tensor(tensors, "weights.intercept", (head.count,), weights.dtype, finite=met)
        require((bias < np.inf).all(), "weights.intercept", "contains a number that is not finite")
        unmet = check_tensor(tensors, "weights.unmet", (head.count,), weights.dtype)
        return cls(
            head, store, keys, weights, bias, lowest_label, unmet, divisors_of(tensors), means_of(tensors)
        )

    @property
    def bias(self) -> Array:
        """The intercepts ``(outputs,)`` for values as they are: without means."""
        return self._uncentre(self.means, self.divisors)

    @bias.setter
    def bias(self, given: Array) -> None:
        """Replace the intercepts; for centred values they change by as much."""
        self.centred_bias = self.centred_bias + (given - self.bias)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is ready for single rows."""
        return {**vars(self), "idle": []}

    def reader_of_row(self, arrays: RowBuffers) -> Callable[[Any, int], F64] | None:
        """What gives the margins of a row without making a chunk of it, if anything does: see `Ready`."""
        if self.table.ndim > 1:
            return None
        args = arrays.ends, arrays.rows, arrays.values

        def margins(model: LinearPredictor, total: int) -> F64:
            out = np.empty(1)
            add_up(model.table, read_only(model.centred_bias), *args, out)
            return out

        return margins

    @property
    def intercept(self) -> Any:
        """Intercept, ``(outputs,)`` for many outputs."""
        return float(self.bias[0]) if self.weights.ndim == 1 else self.bias

    def _prepared(self, chunk: Chunk) -> Chunk:
        chunk = chunk if self.means is None else self.means.of(chunk)
        return chunk if self.divisors is None else divide(chunk, self.divisors.at(chunk.keys))

    def _products(self, rows: Chunk, bias: NDArray[np.generic]) -> F64:
        found: F64 = table_margins(self.index, self.table, bias, rows)
        return found

    def _bias(self) -> NDArray[np.generic]:
        return self.centred_bias

    def predictor(self) -> LinearPredictor:
        """These weights."""
        return self

    def weights_of(self, keys: NDArray[np.uint64]) -> F64:
        """Weights ``(features, outputs)`` of features, known or not, for values as they are: unscaled."""
        found, there = np.tile(self.unmet.astype(np.float64), (len(keys), 1)), np.isin(keys, self.keys)
        places = np.searchsorted(self.keys, keys[there])
        found[there] = self.weights.reshape(len(self.keys), self.head.count)[places]
        if self.divisors is None or self.store.startswith(HashedIndex.NAME):
            return found
        return found / self.divisors.at(keys)[:, np.newaxis]

    def save(self, path: str | Path) -> None:
        """Write a model file with weights only. Raises OSError."""
        from thresher.learning.files.model_file import save_all

        save_all([self], path)

    @property
    def nonzero(self) -> int:
        """Number of nonzero weights, without the intercepts."""
        return int(np.count_nonzero(self.weights))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        own = self.keys.nbytes + self.weights.nbytes + self.table.nbytes + self.index.nbytes
        names = self.names
        return own + (names.features.nbytes + names.ends.nbytes + names.letters.nbytes if names else 0)

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The weights ``(rows, outputs)`` as float64, a million at a time, with their slice of rows."""
        table = self.weights.reshape(len(self.keys), self.head.count)
        step = max(1, _BLOCK // self.head.count)
        for lo in range(0, len(table), step):
            yield slice(lo, lo + step), table[lo : lo + step].astype(np.float64)

    def heaviest(self, top: int | None = None) -> list[tuple[int, int, Any]]:
        """Key, output and weight of nonzero weights, largest magnitude first, then by key and output."""
        table = self.weights.reshape(len(self.keys), self.head.count)
        rows, columns = np.nonzero(table)
        values = table[rows, columns]
        order = np.lexsort((columns, self.keys[rows], -np.abs(values)))[:top]
        return list(zip(self.keys[rows[order]].tolist(), columns[order].tolist(), values[order], strict=True))


def names_of(tensors: Tensors, prefix: str) -> Names | None:
    """The names in a model file, or None. StateError if they are invalid."""
    if not any(name.startswith(prefix) for name in tensors):
        return None
    keys = check_keys(tensors, prefix + "keys")
    ends = check_tensor(tensors, prefix + "ends", (len(keys),), np.int64)
    letters = check_tensor(tensors, prefix + "letters", (None,), np.uint8)
    require(are_ends(ends, len(letters)), prefix + "ends", "names must be consecutive and cover all bytes")
    return Names(keys, ends, letters)


AnyModel = BasePredictor | Fitted
"""A Model, a LinearPredictor, or a fitted estimator."""
ModelOrFile = AnyModel | str | PathLike[str]


@reads_elsewhere
def teach(
    model: Model,
    data: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    again: bool = False,
    **reading: Any,
) -> None:
    """Let `model` learn `data` once: see `Model.learn`. The first data determine how later data are read."""
    from thresher.learning.inspection.feature_names import keep_names

    data = with_labels(data, y, sample_weight)
    options = settle(ReadOptions, reading, model.learn)
    first = not (model.examples or model.layout or model.numbering or model.named)
    if not first:
        source = source_for(model, data, model.head.domain, **reading)
    else:
        read = {name: options[name] for name in OPENING}
        layout = replace(layout_asked(options) or Layout(), gaps=bool(model.recipe.centre))
        source = open_data(data, model.head.domain, layout=layout, **read)
        if source.layout is not None:
            model.layout = source.layout
    named, new, source.finder = model.names, False, None
    with closing(source.chunks()) as chunks:
        for chunk in chunks:
            model.name_classes(source)
            model.learn(chunk, again=again)
            note_kind(model, chunk.span(), source)
            new = new or (named is not None and not np.isin(chunk.keys, named.features).all())
    if new and source.nameable and source.rereadable:
        keep_names(model, source)
    warn(troubles_of_reading(source.report, source.layout if first else None))
