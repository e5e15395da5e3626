"""Reading X: matrices, tables with any kinds of columns, dictionaries, texts.

Features are named by the columns of X, or by reading X again. The warnings of `fit` and of the first
`partial_fit` are those of `thresher.train`, in the estimator's words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from thresher.data.layout import chosen_in
from thresher.data.source import Source
from thresher.options.option import declared

if TYPE_CHECKING:
    from thresher.data.chunk import Chunk
    from thresher.data.inputs.any_data import ArrowTable
    from thresher.data.inputs.any_data import Matrix as AnyMatrix
    from thresher.data.layout import AnyLayout
    from thresher.learning.diagnostics.findings import Finding

    Examples = AnyMatrix | ArrowTable | Iterable[Any]
    """n examples: a matrix, dense or sparse; a table; or rows of numbers, dictionaries or texts"""
    ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
    Columns = str | int | Sequence[str | int] | None
    """Columns of X, by name or number; ``"*"`` for all"""
    RandomState = int | np.random.RandomState | None
    Reading = AnyLayout | Mapping[str, Any] | None
    """How tables and texts become features"""

MATRIX, TABLE, ROWS, TEXTS = "a matrix", "a table", "dictionaries", "texts"
"""Forms of X, as in `data.inputs.arrays`, which loads compiled code"""
_NO_LABEL = "\0label"
_FLOATS = [np.float64, np.float32]


def read(estimator: Any, X: Any, *, reset: bool) -> Chunk:
    """The features of X; with `reset` the estimator records the kind of X, else X must be of that kind.

    Labels mean nothing; arrays of a matrix have any integer and float types.
    Raises ValueError (TypeError for non-numbers), like scikit-learn's own estimators; `DataError`.
    """
    from thresher.data.inputs.any_data import single

    X, name = held(X), type(estimator).__name__
    layout = layout_of(estimator)
    kind = kind_of(X, layout) if reset else estimator._kind
    if kind == TABLE and not hasattr(X, "__arrow_c_stream__"):
        raise ValueError(f"{name} was fitted on {TABLE}: give a table, not {type(X).__name__}")
    if kind == TABLE and len(getattr(X, "shape", (0, 0))) == 1:
        raise single(X)
    if kind in (ROWS, TEXTS):
        if isinstance(X, str | Mapping):
            raise ValueError(f"{name} was fitted on {kind}: give a list of them, not a single one")
        if isinstance(X, list | tuple) and not X:
            raise ValueError("X contains no examples")
    if not reset and kind != TABLE and (given := kind_of(X)) != kind and {kind, given} & {ROWS, TEXTS}:
        raise ValueError(f"{name} was fitted on {kind}, not on {given}")
    if reset:
        for attribute in ("_layout", "n_features_in_", "feature_names_in_"):
            vars(estimator).pop(attribute, None)
        if kind == MATRIX and layout is not None:
            raise ValueError("layout is for columns and texts, but X is a matrix of numbers")
    estimator._kind = kind
    if kind in (ROWS, TEXTS):
        from thresher.data.inputs.arrays import chunk_of

        arguments = {} if layout is None else {"seed": layout.seed, "text": layout.ngrams}
        return chunk_of(list(X), **arguments)
    return _table(estimator, X, reset) if kind == TABLE else _matrix(estimator, X, reset)


def layout_of(estimator: Any) -> Any:
    """The parameter `layout`, which may be a dictionary of options of `thresher.train`. ValueError."""
    from thresher.options.data import LayoutOptions, ReadOptions
    from thresher.options.layouts import layout_asked
    from thresher.options.option import settle

    given = estimator.layout
    if not isinstance(given, Mapping):
        return layout_asked(settle(ReadOptions, {"layout": given}))
    known = declared(LayoutOptions)
    if unknown := sorted(map(str, given.keys() - known)):
        raise ValueError(f"layout has no option {unknown[0]}; it has {', '.join(sorted(known))}")
    return layout_asked(settle(LayoutOptions, given))


def held(X: Any) -> Any:
    """X; a list or a table if X can be read only once. ValueError if nothing can be read."""
    from thresher.data.columns import check_once
    from thresher.data.inputs import any_data

    X = any_data.held(X)
    if hasattr(X, "__arrow_c_stream__"):
        if len(sides := getattr(X, "shape", ())) == 2:
            check_once(map(str, getattr(X, "column_names", X.columns)), "X")
        if sides[1:] == (0,):
            raise ValueError("X has no columns")
        if not hasattr(X, "__array__"):
            import pyarrow as pa

            X = pa.table(X)
    return X


def kind_of(X: Any, layout: Any = None) -> str:
    """What X is; a table of numbers is a matrix, unless a layout says how to read its columns."""
    from thresher.data.inputs.arrays import form_of

    if (form := form_of(X)) != TABLE or layout is not None:
        return form
    if hasattr(X, "iloc"):  # pandas: Arrow rejects some of its numeric columns
        return MATRIX if all(kind.kind in "fiub" for kind in X.dtypes) else TABLE
    import pyarrow as pa

    few = X.head(0) if hasattr(X, "head") else X.slice(0, 0) if hasattr(X, "slice") else X
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    types = pa.RecordBatchReader.from_stream(few).schema.types
    return MATRIX if all(any(test(kind) for test in tests) for kind in types) else TABLE


def _matrix(estimator: Any, X: Any, reset: bool) -> Chunk:
    from thresher.data.chunk import Chunk, check_starts
    from thresher.data.inputs.arrays import check_stored, nonzeros, rests_of

    arguments: dict[str, Any] = {"accept_sparse": "csr", "accept_large_sparse": True, "dtype": _FLOATS}
    if issparse(X):
        check_stored(X)
    # finiteness is checked once, when numbers are copied, with an error that names the entry
    given, X = X, validate_data(estimator, X, ensure_all_finite=False, reset=reset, **arguments)
    if issparse(X):
        check_starts(X.indptr, min(len(X.indices), len(X.data)))
        if not (X.has_canonical_format and np.count_nonzero(X.data) == len(X.data)):
            X = X.copy()  # the order of examples is drawn from the entries, so none is repeated or 0
            X.sum_duplicates()
            X.eliminate_zeros()
        found, missing = (X.indptr, X.indices, X.data), None
    else:
        found, missing = nonzeros(X, given, estimator.centres())
    rests, labels = (
        rests_of(found[2], missing) if estimator.centres() else None,
        np.zeros(X.shape[0], np.float32),
    )
    return Chunk(*found, labels, labels, rests=rests)


def columns_listed(estimator: Any, option: str, given: Any) -> str | None:
    """The columns of X that a parameter names, as an option of `thresher.train`; None for none. ValueError.

    Columns of a matrix without names are numbered from 0; of a table they have names, patterns and positions.
    """
    from thresher.data.columns import column_meant, matching
    from thresher.data.feature_specs import ANY, as_list, names_in
    from thresher.learning.model.signs import names_spec

    spec = names_spec(option, given.tolist() if isinstance(given, np.ndarray) else given)
    if spec in (None, ANY) or estimator._kind != MATRIX:
        return spec
    columns, found = [*map(str, range(estimator.n_features_in_))], list[str]()
    named = [*map(str, vars(estimator).get("feature_names_in_", ()))]
    places = dict(zip(named or columns, columns, strict=True))
    for name in names_in(spec):
        matched = matching(name, named) if named else [name] * (name in places)
        if not matched:
            raise ValueError(f"{option}: no column is called '{name}'; {column_meant(name, [*places])}")
        found += [places[one] for one in matched]
    return as_list(found)


def _table(estimator: Any, X: Any, reset: bool) -> Chunk:
    from thresher.data import concat
    from thresher.data.columns import check_same
    from thresher.data.formats.tables.arrow_files import reader_of
    from thresher.learning.diagnostics.findings import warn
    from thresher.learning.model.agreement import unknown_values
    from thresher.learning.model.recipe import with_gaps

    if reset:
        estimator._layout = with_gaps(_settle(layout_of(estimator), X), estimator.centres())
        estimator.feature_names_in_ = np.array(estimator._layout.columns, object)
        estimator.n_features_in_ = len(estimator._layout.columns)
    check_same(estimator._layout, reader_of(X).schema.names, "X", ignores=False)
    source = source_of_table(estimator, X)
    if not reset:
        warn(unknown_values(estimator.model_, source))
    return concat([concat([one]) for one in source.chunks()])


def source_of_table(estimator: Any, X: Any) -> Source:
    """The rows of a table, read as the estimator reads them; a table read as a matrix, by its own columns."""
    from thresher.data import table_source

    layout = estimator._layout if estimator._kind == TABLE else _settle(None, X)
    jobs = 1 if estimator.n_jobs is None else estimator.n_jobs  # as in scikit-learn: -1 means all processors
    threads = max(1, (os.cpu_count() or 1) + 1 + jobs if jobs < 0 else jobs)
    return table_source(X, layout=layout, domain="open", unlabelled=True, threads=threads)


def _settle(layout: Any, table: Any) -> Any:
    """The layout with the kind of each column of `table`, which has no label column."""
    import pyarrow as pa

    from thresher.data.errors import DataError
    from thresher.data.formats.tables.arrow_files import reader_of, settle_arrow
    from thresher.data.layout import Layout

    layout = (layout or Layout()).unsettled()
    if layout.label or layout.weight:
        raise DataError(
            "labels and weights are given as y and sample_weight, so the layout must not name them"
        )
    reader = reader_of(table)
    schema = reader.schema.append(pa.field(_NO_LABEL, pa.float32()))
    layout = replace(layout, label=_NO_LABEL)
    settled, _ = settle_arrow(layout, schema, "X", True, next(reader, None))
    columns, kinds, spelling = (own[:-1] for own in (settled.columns, settled.kinds, settled.spelling))
    return replace(settled, columns=columns, kinds=kinds, spelling=spelling)


def importances(given: Any, count: int) -> NDArray[np.float64]:
    """`sample_weight` as ``(n,)`` float64, not all zero. ValueError."""
    if given is None:
        return np.ones(count)
    numbers = np.asarray(given)
    if numbers.dtype.kind == "c":
        raise ValueError("sample_weight must contain real numbers, not complex ones")
    weights = numbers.astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(count, float(weights))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weights.shape != (count,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(count,)}!")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must contain finite numbers >= 0")
    if not weights.any():
        raise ValueError("all weights in sample_weight are zero: there is nothing to learn from")
    return weights


def keep_names(estimator: Any, X: Any, models: Sequence[Any]) -> None:
    """Find and keep the feature names of `models`, which learned X. `DataError` for a hashed store."""
    from thresher.data.features.names import Names, find_names
    from thresher.data.inputs.arrays import nameable_source
    from thresher.learning.inspection.feature_names import give_names

    columns = vars(estimator).get("feature_names_in_", ())

    def find(keys: NDArray[np.uint64]) -> Names:
        if estimator._kind == MATRIX:
            return Names.of({key: columns[key].encode() for key in keys.tolist() if key < len(columns)})
        if estimator._kind == TABLE:
            return find_names(source_of_table(estimator, X), keys)
        return find_names(nameable_source(X, layout_of(estimator)), keys)

    give_names(models, find)


def names_of(model: Any) -> NDArray[Any]:
    """The names of the features with a weight, by key; ValueError if they were not kept."""
    from thresher.learning.inspection.feature_names import check_nameable, known_names

    readout = model.readout()
    check_nameable(readout.store)
    known, weights = known_names(readout), readout.weights.reshape(len(readout.keys), readout.head.count)
    keys = readout.keys[weights.any(axis=1)].tolist()
    if readout.names is None and not all(key in known for key in keys):
        raise ValueError(
            "the names of these features were not kept (feature_keys_ has their keys): fit with names=True,"
            " or find them with thresher.name_features(model, X)"
        )
    return np.array([known.get(key, str(key)) for key in keys], object)


def warn_of(estimator: Any, X: Any, troubles: list[Finding]) -> None:
    """Emit a Python warning for each trouble of a run, and with the first rows of X, if it is a table."""
    from thresher.data.formats.tables import column_statistics
    from thresher.data.inputs.any_data import is_sparse_frame
    from thresher.learning.diagnostics.column_findings import troubles_of_columns
    from thresher.learning.diagnostics.findings import warn

    kind, found = estimator._kind, troubles
    if kind in (MATRIX, TABLE) and hasattr(X, "__arrow_c_stream__") and not is_sparse_frame(X):
        rows = column_statistics.ROWS if kind == MATRIX else column_statistics.MOST_ROWS
        few = X.head(rows) if hasattr(X, "head") else X.slice(0, rows)
        source = source_of_table(estimator, few)
        columns = column_statistics.columns_seen(source, chosen_in(layout_of(estimator)))
        found = troubles_of_columns(columns, source.layout) + found
    if getattr(estimator, "class_weight", None) is not None:  # classes weigh more on purpose
        found = [one for one in found if one.name != "importances"]
    if kind == MATRIX and (names := vars(estimator).get("feature_names_in_")) is not None:
        found = [
            one._replace(
                message=re.sub(r"\bfeature (\d+)\b", lambda at: f"column {names[int(at[1])]}", one.message)
            )
            for one in found
        ]
    warn(found)
