"""Reading X: matrices, tables with any kinds of columns, dictionaries, texts.

Features are named by the columns of X, or by reading X again. The warnings of `fit` and of the first
`partial_fit` are those of `thresher.train`, in the estimator's words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Number
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight, check_non_negative, validate_data

from thresher.data import layout as layouts
from thresher.data.chunk import Chunk
from thresher.data.inputs import any_data, arrays
from thresher.data.source import Source
from thresher.learning.diagnostics import column_findings, findings
from thresher.learning.inspection import feature_names
from thresher.learning.model import agreement, signs
from thresher.options.data import LayoutOptions, ReadOptions
from thresher.options.layouts import layout_asked
from thresher.options.option import options_of, settle

Examples = any_data.Matrix | any_data.ArrowTable | Iterable[Any]
"""n examples: a matrix, dense or sparse; a table; or rows of numbers, dictionaries or texts"""
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
Columns = str | int | Sequence[str | int] | None
"""Columns of X, by name or number; ``"*"`` for all"""
RandomState = int | np.random.RandomState | None
Reading = layouts.AnyLayout | Mapping[str, Any] | None
"""How tables and texts become features"""
_FLOATS = [np.float64, np.float32]


def read(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, Chunk]:
    """The features of X, and X, a table as one of pyarrow, which costs most once.

    With `reset` the estimator records the kind of X, else X must be of that kind. Labels mean nothing; arrays
    of a matrix have any integer and float types.
    Raises ValueError (TypeError for non-numbers), like scikit-learn's own estimators; `DataError`.
    """
    X, name = any_data.examples_in(X), type(estimator).__name__
    layout = layout_of(estimator)
    kind = any_data.kind_of(X, layout) if reset else estimator._kind
    if kind == arrays.TABLE and not hasattr(X, arrays.STREAM):
        raise ValueError(f"{name} was fitted on {arrays.TABLE}: give a table, not {type(X).__name__}")
    if kind in (arrays.ROWS, arrays.TEXTS):
        if isinstance(X, str | Mapping):
            raise ValueError(f"{name} was fitted on {kind}: give a list of them, not a single one")
        if isinstance(X, list | tuple) and not X:
            raise ValueError("X contains no examples")
    given = kind if reset or kind == arrays.TABLE else any_data.kind_of(X)
    if given != kind and {kind, given} & {arrays.ROWS, arrays.TEXTS}:
        raise ValueError(f"{name} was fitted on {kind}, not on {given}")
    if reset:
        for attribute in ("_layout", "n_features_in_", "feature_names_in_"):
            vars(estimator).pop(attribute, None)
        if kind == arrays.MATRIX and layout is not None:
            raise ValueError("layout is for columns and texts, but X is a matrix of numbers")
    estimator._kind = kind
    if kind == arrays.MATRIX:
        if issparse(X):
            any_data.check_stored(X)
        # finiteness is checked once, by `chunk_of`, with an error that names the entry
        arguments: dict[str, Any] = {"accept_sparse": "csr", "accept_large_sparse": True, "dtype": _FLOATS}
        numbers = validate_data(estimator, X, ensure_all_finite=False, reset=reset, **arguments)
        given = X if hasattr(X, arrays.STREAM) else _without_zeros(numbers)
        return X, arrays.chunk_of(given, gaps=estimator.centres())
    if kind == arrays.TABLE:
        if len(getattr(X, "shape", (0, 0))) == 1:
            raise any_data.single(X)
        X = any_data.in_arrow(X)
        if not reset:
            any_data.check_same(estimator._layout, X.column_names, "X")
    source = source_of(estimator, X)
    if reset and kind == arrays.TABLE:
        estimator._layout = source.layout
        estimator.feature_names_in_ = np.array(estimator._layout.columns, object)
        estimator.n_features_in_ = len(estimator._layout.columns)
    if not reset:
        findings.warn(agreement.lost_zeros(estimator.model_, source))
    return X, any_data.concat([any_data.concat([one]) for one in source.chunks()])


def _without_zeros(numbers: Any) -> Any:
    """A matrix, of which a sparse one stores no 0 and no entry twice: entries give examples their order."""
    if issparse(numbers) and not (numbers.has_canonical_format and numbers.data.all()):
        numbers = numbers.copy()
        numbers.sum_duplicates()
        numbers.eliminate_zeros()
    return numbers


def layout_of(estimator: Any) -> Any:
    """The parameter `layout`, which may be a dictionary of options of `thresher.train`. ValueError."""
    given = estimator.layout
    if not isinstance(given, Mapping):
        return layout_asked(settle(ReadOptions, {"layout": given}))
    known = options_of(LayoutOptions)
    if unknown := sorted(map(str, given.keys() - known)):
        raise ValueError(f"layout has no option {unknown[0]}; it has {', '.join(sorted(known))}")
    return layout_asked(settle(LayoutOptions, given))


def columns_listed(estimator: Any, option: str, given: Any) -> Any:
    """The columns of X that a parameter names, as an option of `thresher.train`; None for none. ValueError.

    Columns of a matrix without names are numbered from 0; of a table they have names, patterns and positions.
    """
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if estimator._kind != arrays.MATRIX:
        return given
    named = [*map(str, vars(estimator).get("feature_names_in_", ()))]
    return signs.numbers_spec(option, given, estimator.n_features_in_, named)


def source_of(estimator: Any, X: Any) -> Source:
    """X as the estimator reads it; a table of pyarrow by the columns it was fitted on, or by its own.

    `DataError`.
    """
    jobs = estimator.n_jobs or 1  # as in scikit-learn: -1 means all processors
    threads = jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)
    if (layout := vars(estimator).get("_layout")) is None:
        layout = replace(layout_of(estimator) or layouts.Layout(), gaps=estimator.centres())
    if estimator._kind in (arrays.ROWS, arrays.TEXTS):
        return any_data.of_examples([*X], None, None, "open", {"threads": threads, "layout": layout})
    return any_data.of_table(X, layout, threads)


def importances(given: Any, count: int) -> NDArray[np.float64]:
    """`sample_weight` as ``(n,)`` float64, not all zero. ValueError."""
    given = np.full(count, given) if isinstance(given, Number) else given  # which goes unchecked there
    weights: NDArray[np.float64] = _check_sample_weight(given, np.empty((count, 0)), dtype=np.float64)
    check_non_negative(weights, "sample_weight")
    if not weights.any():
        raise ValueError("all weights in sample_weight are zero: there is nothing to learn from")
    return weights


def keep_names(estimator: Any, X: Any, model: Any) -> None:
    """Find and keep the feature names of a model that learned X. `DataError` for a hashed store."""
    columns = vars(estimator).get("feature_names_in_", ())
    if estimator._kind == arrays.MATRIX:
        known = {key: name.encode() for key, name in enumerate(columns)}
        feature_names.give_names([model], lambda keys: any_data.Names.of(known).only(keys))
    else:
        feature_names.keep_names(model, source_of(estimator, X))


def warn_of(estimator: Any, X: object, troubles: list[findings.Finding]) -> None:
    """Emit a Python warning for each trouble of a run, and with the first rows of X, if it is a table."""
    kind, found = estimator._kind, troubles
    few = any_data.beginning(X, kind == arrays.MATRIX) if kind in (arrays.MATRIX, arrays.TABLE) else None
    if few is not None:
        source = source_of(estimator, few)
        found = column_findings.troubles_at_first(source, layout_of(estimator)) + found
    if getattr(estimator, "class_weight", None) is not None:  # classes weigh more on purpose
        found = [one for one in found if one.name != "importances"]
    if kind == arrays.MATRIX and (names := vars(estimator).get("feature_names_in_")) is not None:
        in_columns = partial(re.sub, r"\bfeature (\d+)\b", lambda at: f"column {names[int(at[1])]}")
        found = [one._replace(message=in_columns(one.message)) for one in found]
    findings.warn(found)
