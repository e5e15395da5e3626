"""What a model and its weights share: predictions for any kind of data, weights by name.

`teach` trains an existing model on such data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.cluster.elsewhere import reads_elsewhere
from thresher.data.chunk import Chunk, concat
from thresher.data.columns import check_same
from thresher.data.errors import DataError
from thresher.data.features.names import Names
from thresher.data.inputs.any_data import Data, as_source, is_beside, opened, with_labels
from thresher.data.layout import AnyLayout, SettledLayout, has_columns
from thresher.data.offsets import shifted, split_offsets, unused_offsets, with_offsets, without_offsets
from thresher.data.source import ReadRows, Source
from thresher.engine.index import HashedIndex, Index
from thresher.learning.diagnostics.column_findings import troubles_of_reading
from thresher.learning.diagnostics.findings import warn
from thresher.learning.model.agreement import Numbering, check_format, in_agreement, numbering_of
from thresher.learning.model.margins import any_output
from thresher.learning.model.objective import F64, Head, Output
from thresher.learning.model.recipe import with_gaps
from thresher.learning.model.scaling import alone
from thresher.options.checks import check_whole
from thresher.options.data import ReadOptions
from thresher.options.layouts import layout_asked, layout_like
from thresher.options.option import settled

if TYPE_CHECKING:
    import pandas as pd

    from thresher.learning.model.model import Model
    from thresher.learning.model.weights import Readout


_SAMPLE = 1000
"""How many keys are examined."""


def codes_of(model: Any, y: Any) -> Any:
    """Labels as the model of a fitted classifier knows them: words, or their places in ``classes_``.

    Labels for other models are unchanged. Raises `DataError` for a label that the classifier has not seen.
    """
    if not (hasattr(type(model), "model_") and hasattr(model, "classes_")) or np.ndim(y) != 1:
        return y
    known = {label: code for code, label in enumerate(np.asarray(model.classes_).tolist())}
    labels = np.asarray(y).tolist()
    if unseen := [label for label in labels if label not in known]:
        raise DataError(f"label {unseen[0]!r} is not among the classes the estimator was fitted on")
    return y if model.model_.classes else np.array([known[label] for label in labels])


def source_for(
    model: Any,
    data: Data,
    domain: Any,
    *,
    more: Mapping[str, Any] | None = None,
    offsets: ArrayLike | None = None,
    **reading: Any,
) -> Source:
    """Open `data` for prediction, read as the training data were except for the options in `reading`.

    Rows in memory have these `offsets`.

    A model without a layout was trained on matrices or Chunks: it reads a table without labels as a matrix.
    """
    options = settled(ReadOptions, reading)
    layout = layout_for(model, options)
    read = {name: options[name] for name in ("on_error", "threads", "where")}
    if offsets is not None and not model.shifted:
        raise unused_offsets()
    source = shifted(as_source(data, domain, layout=layout, **read, **(more or {})), offsets)
    X: Any = data[0] if isinstance(data, tuple) and data else data
    how = ': rows.to_dict("records")' if hasattr(X, "to_dict") else ""
    return in_agreement(model, source, given=type(X).__name__ + how)


def layout_for(model: Any, options: Any) -> AnyLayout:
    """How new data are read for a model. `DataError` if they cannot have its features, `UsageError`."""
    layout = layout_like(model.layout, options)
    layout = layout.ungrouped() if isinstance(layout, SettledLayout) else layout
    check_format(model, layout)
    if layout is None:
        return SettledLayout(gaps=model.centres)
    if model.centres and not has_columns(layout):
        layout = replace(layout, gaps=True)
    return layout


def with_codes(model: Any, data: Any) -> Any:
    """``(X, y)`` for a fitted classifier, with labels as its model knows them; all other data unchanged."""
    if not (is_beside(data) and len(data) in (2, 3) and data[1] is not None):
        return data
    return (data[0], codes_of(model, data[1]), *data[2:])


def labelled(model: Any, data: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Data to measure a model on, with the labels and columns that a fitted estimator knows."""
    labels = y if y is None else codes_of(model, y)
    return with_labels(with_columns(model, with_codes(model, data)), labels, sample_weight)


def with_columns(model: Any, data: Any) -> Any:
    """Tables for a fitted estimator of named columns, with these columns in order; other data unchanged.

    Raises `DataError` for a table with other columns.
    """
    names, X = getattr(model, "feature_names_in_", None), data[0] if is_beside(data) else data
    there = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None or _names_columns(model.model_.layout) or not isinstance(there, Iterable):
        return data
    if not hasattr(X, "__arrow_c_stream__") or [*there] == [*names]:
        return data
    check_same(
        SettledLayout(columns=(*names,), kinds=("numeric",) * len(names)), [*map(str, there)], "the table"
    )
    X = X.select([*names]) if hasattr(X, "select") else X[[*names]]
    return (X, *data[1:]) if is_beside(data) else X


def _names_columns(layout: SettledLayout | None) -> bool:
    return layout is not None and has_columns(layout)


def some_features(index: Index) -> NDArray[np.uint64]:
    """Keys of some features in the index; none if its rows may each stand for several."""
    return index.features(_SAMPLE)[1:] if index.NAME != HashedIndex.NAME else np.empty(0, np.uint64)


class Fitted(Protocol):
    """A fitted estimator of `thresher.sklearn`."""

    @property
    def model_(self) -> Any:
        """The fitted Model."""


class Summands(NamedTuple):
    """What the margins of rows are sums of."""

    rows: Chunk
    """the rows as the model multiplies them: with columns centred and scaled"""
    weights: NDArray[Any]
    """of all their values, ``(values,)`` or ``(values, outputs)``"""
    parts: F64
    """the products of both, rounded to the dtype of the weights"""
    intercepts: F64
    """``(outputs,)``"""

    @classmethod
    def of(cls, rows: Chunk, weights: F64, intercepts: NDArray[Any]) -> Summands:
        """The terms for weights of the dtype of the intercepts."""
        own = weights.astype(intercepts.dtype)
        parts: F64 = (own.T * rows.values).T.astype(np.float64)
        return cls(rows, own, parts, intercepts.astype(np.float64))


class Predictor:
    """Base of everything that has weights."""

    head: Head
    names: Names | None
    numbering: Numbering | None
    """the ids of the training data, if its features are numbers"""
    matches_names = False
    """whether columns of tables are matched by name before, by the estimator that this belongs to"""

    def note_ids(
        self, span: tuple[int, int] | None, columns: int | None, layout: SettledLayout | None
    ) -> None:
        """Note the lowest and highest key of data that were learned, and the columns if it was a matrix."""
        found = numbering_of(span, columns, layout)
        self.numbering = self.numbering if found is None else found.joined(self.numbering)

    @property
    def classes(self) -> tuple[str, ...]:
        """The words that labels are, in the order of their classes; none where labels are numbers."""
        raise NotImplementedError

    @property
    def centres(self) -> bool:
        """Whether columns are centred."""
        raise NotImplementedError

    shifted = False
    """whether each example has an offset"""

    def margins(self, chunk: Chunk) -> F64:
        """Weighted sums of the rows of `chunk`: ``(n,)`` float64, or ``(n, outputs)`` for many outputs.

        They include the offsets, if the model was trained with any. `DataError` if the rows have none.
        """
        chunk.check_arrays()
        if not self.shifted:
            return self._sums(chunk)
        own, offsets = split_offsets(chunk)
        return self._sums(own) + offsets

    def _sums(self, chunk: Chunk) -> F64:
        """Weighted sums of rows without offsets."""
        raise NotImplementedError

    def terms(self, chunk: Chunk) -> Summands:
        """What the margins of `chunk`, which has no offsets, are sums of.

        ValueError for an ensemble whose models centre or scale columns differently.
        """
        raise NotImplementedError

    def _weights(self) -> Readout:
        raise NotImplementedError

    def _some_keys(self) -> NDArray[np.uint64]:
        """Keys of some features that the model knows; none if they cannot be told from its rows."""
        raise NotImplementedError

    def knows(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these features have a weight that is not 0; none if a weight may be that of several."""
        own: Any = self
        if own.store.startswith(HashedIndex.NAME):
            return np.zeros(len(keys), np.bool_)
        row = np.unique(keys)
        found = self.terms(Chunk.from_csr([0, len(row)], row, np.ones(len(row)), [0]))
        live = any_output(found.weights != 0)
        return np.isin(keys, found.rows.keys[live])

    def respond(self, margins: F64, output: Output) -> F64:
        """Turn `margins` into predictions: see `predict`."""
        raise NotImplementedError

    @overload
    def predict(
        self,
        data: Data,
        output: Literal["margin", "probability"] = ...,
        *,
        offsets: ArrayLike | None = ...,
        **reading: Unpack[ReadOptions],
    ) -> F64: ...

    @overload
    def predict(
        self, data: Data, output: Output, *, offsets: ArrayLike | None = ..., **reading: Unpack[ReadOptions]
    ) -> NDArray[Any]: ...

    @reads_elsewhere
    def predict(
        self,
        data: Data,
        output: Output = "margin",
        *,
        offsets: ArrayLike | None = None,
        **reading: Unpack[ReadOptions],
    ) -> NDArray[Any]:
        """Predict ``(n,)`` float64, or ``(n, outputs)`` for many outputs. The model does not change.

        Args:
            data: examples; labels are optional and ignored. A path, a glob or several; a table (pandas,
                polars, pyarrow); a matrix (numpy, scipy); a list of dictionaries; a Chunk.
            output: ``margin``, the weighted sum; ``probability``, the inverse link of the loss (for two
                classes, the probability of the positive one); ``label``, the class as written in the
                training data ``(n,)``, text if labels are words, or for regression the predicted mean.
            offsets: numbers ``(n,)`` that are added to the margins of rows in memory, if the model was
                trained with offsets.
            reading: how to read `data`, where that differs from the training data: the options of
                `thresher.open_source` and the fields of a `Layout`.

        A row skipped by `on_error` gives NaN, so that the answers match the rows.

        Raises ValueError for an output that this loss does not have, `DataError` for data that cannot be
        read.
        """

        def answer(chunk: Chunk) -> NDArray[Any]:
            found = self.respond(self.margins(chunk), output)
            return self.head.worded(found, self.classes) if output == "label" and self.classes else found

        return self._of_all(data, self.predict, reading, answer, offsets)

    @reads_elsewhere
    def predict_proba(
        self, data: Data, *, offsets: ArrayLike | None = None, **reading: Unpack[ReadOptions]
    ) -> F64:
        """Probabilities ``(n, classes)`` float64: of the negative and positive class, or of each class.

        One-against-rest probabilities are divided by their sum; with outputs ``labels`` they are independent.
        Arguments and errors are those of `predict`; ValueError for a loss without probabilities.
        """

        def answer(chunk: Chunk) -> F64:
            return self.head.probabilities(self.margins(chunk))

        return self._of_all(data, self.predict_proba, reading, answer, offsets)

    @reads_elsewhere
    def explain(
        self,
        data: Data,
        top: int | None = None,
        *,
        offsets: ArrayLike | None = None,
        **reading: Unpack[ReadOptions],
    ) -> list[dict[str, Any]]:
        """Why each row is predicted so: the terms that its margin is the sum of. See docs/explain.md.

        Args:
            data: examples, as for `predict`.
            top: only so many features of a row, those with the largest contributions; default: all.
            offsets, reading: as for `predict`.

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

        if top is not None:
            check_whole("top", top, 1)
        each = self._each(data, self.explain, reading, offsets)
        return [one for rows in each for one in rows.in_place(explain(self, rows.chunk).told(top), SKIPPED)]

    def _of_all(
        self,
        data: Data,
        method: Callable[..., Any],
        reading: Any,
        answer: Callable[[Chunk], NDArray[Any]],
        offsets: ArrayLike | None = None,
    ) -> NDArray[Any]:
        found = [
            np.insert(answers, gaps, np.nan, axis=0) if gaps else answers
            for answers, gaps in (
                (answer(rows.chunk), rows.gaps) for rows in self._each(data, method, reading, offsets)
            )
        ]
        return (found[0] if len(found) == 1 else np.concatenate(found)) if found else answer(concat([]))

    def _each(
        self, data: Data, method: Callable[..., Any], reading: Any, offsets: ArrayLike | None = None
    ) -> Iterator[ReadRows]:
        """The rows of data that `method` was given; at the end, warnings of what reading has shown."""
        if isinstance(data, Chunk) and not reading and (offsets is None or self.shifted):
            data.check_arrays()
            yield ReadRows(data if offsets is None else with_offsets(data, offsets))
            return
        settled(ReadOptions, reading, method)
        none = isinstance(data, list | tuple) and not data
        if none or (hasattr(data, "shape") and data.shape[:1] == (0,)):  # which no source can be of
            return
        more = {"unlabelled": True}
        source = source_for(self, data, self.head.open_domain, more=more, offsets=offsets, **reading)
        yield from source.rows()
        warn(troubles_of_reading(source.report))

    @reads_elsewhere
    def effects(self, data: Data, **reading: Unpack[ReadOptions]) -> tuple[NDArray[np.uint64], F64]:
        """Keys of features with a weight, ascending, and weight × standard deviation of their values.

        ``(features,)`` uint64, and ``(features,)`` or ``(features, outputs)`` float64: by how much the margin
        changes if a feature changes by one standard deviation, however its column is scaled. The deviation is
        that in `data`, with divisor n, of what the model multiplies: a missing value is 0, or the mean in a
        centred column. Features that `data` do not have do not vary. Arguments are those of `predict`.

        Raises `DataError`, also for a hashed store, where one weight stands for several features; TypeError
        for an ensemble.

        >>> import thresher
        >>> rows = [{"size": 3.0}, {"size": -2.0}] * 50
        >>> model = thresher.train(rows, [1, -1] * 50)
        >>> keys, effects = model.effects(rows)
        >>> bool(np.isclose(effects[0], 2.5 * model.weights()[1][0]))
        True
        """
        readout = self._weights()
        if readout.store.startswith(HashedIndex.NAME):
            raise DataError(
                "a weight of a hashed store stands for several features, so it has no effect of its own"
            )
        keys, count = readout.keys, 0
        sums, squares = np.zeros(len(keys) + 1), np.zeros(len(keys) + 1)
        for read in self._each(data, self.effects, reading):
            rows = readout.terms(without_offsets(read.chunk)).rows
            places = np.searchsorted(keys, rows.keys)
            places[np.append(keys, np.uint64(0))[places] != rows.keys] = len(keys)
            values = rows.values.astype(np.float64)
            np.add.at(sums, places, values)
            np.add.at(squares, places, values * values)
            count += len(rows)
        mean = sums / max(count, 1)
        deviations = np.sqrt(np.maximum(squares / max(count, 1) - mean * mean, 0.0))[:-1]
        alive = readout.weights.reshape(len(keys), -1).any(axis=1)
        effects: F64 = (readout.weights.T * deviations).T
        return keys[alive], effects[alive]

    def weights_frame(self, top: int | None = None) -> pd.DataFrame:
        """The nonzero weights as a pandas DataFrame, largest magnitude first.

        The columns are ``feature`` (its name if known, else its key as text), ``key``, ``output`` if there
        are many outputs (the class, text if labels are words, or the number of the value), and ``weight``.
        `name_features`, or ``names=True`` in training, finds the names; those of numeric columns are always
        known.

        Args:
            top: return only this many rows.

        Raises ImportError without pandas.
        """
        from thresher.learning.inspection.feature_names import known_names

        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("weights_frame needs pandas: pip install pandas") from error
        readout = self._weights()
        heaviest, names = readout.heaviest(top), known_names(readout)
        keys = [key for key, _, _ in heaviest]
        columns: dict[str, Any] = {
            "feature": [names.get(key, str(key)) for key in keys],
            "key": np.array(keys, np.uint64),
        }
        if self.head.outputs.kind != "one":
            outputs = [one for _, one, _ in heaviest]
            numbers = np.array(outputs, np.int64) + self.head.outputs.low
            columns["output"] = [self.classes[k] for k in outputs] if self.classes else numbers
        weights: NDArray[Any] = np.array([weight for _, _, weight in heaviest], readout.weights.dtype)
        return pd.DataFrame({**columns, "weight": weights})


AnyModel = Predictor | Fitted
"""A Model, a Readout, or a fitted estimator."""
ModelOrFile = AnyModel | str | PathLike[str]


@reads_elsewhere
def teach(
    model: Model,
    data: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    offsets: Any = None,
    again: bool = False,
    **reading: Any,
) -> None:
    """Let `model` learn `data` once: see `Model.learn`. The first data determine how later data are read."""
    from thresher.learning.inspection.feature_names import names_follow

    data = with_labels(data, y, sample_weight)
    options = settled(ReadOptions, reading, model.learn)
    first = not model.examples and model.layout is None
    if not first:
        source = source_for(model, data, model.head.domain, offsets=offsets, **reading)
    else:
        read: dict[str, Any] = {"on_error": options["on_error"], "threads": options["threads"]}
        read |= {"where": options["where"], "layout": with_gaps(layout_asked(options), model.recipe.centre)}
        source = shifted(opened(data, model.head.domain, **read), offsets)
        if source.layout is not None:
            model.layout = source.layout
    named, new = model.names, False
    with closing(source.chunks()) as chunks:
        for chunk in chunks:
            model.learn(chunk, again=again)
            own = alone(chunk, model.layout)
            model.note_ids(own.span(), source.columns, model.layout)
            new = new or (named is not None and not np.isin(own.keys, named.features).all())
    unnamed = names_follow(model, source) if new else []
    warn(troubles_of_reading(source.report, source.layout if first else None) + unnamed)
