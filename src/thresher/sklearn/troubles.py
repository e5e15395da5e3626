"""Warnings of `fit` and of the first `partial_fit`: those of `thresher.train`, in the estimator's words."""

from __future__ import annotations

import re
from typing import Any

from thresher.data.formats.tables.heads import MOST_ROWS, ROWS, columns_seen
from thresher.data.layout import chosen_in
from thresher.data.sparse_frames import is_sparse_frame
from thresher.data.wording import in_estimators
from thresher.learning.trouble import Trouble, troubles_of_columns, warn
from thresher.sklearn.inputs import MATRIX, TABLE, layout_of, source_of_table

_FEATURE = re.compile(r"\bfeature (\d+)\b")
_PENALTY = re.compile(r"a smaller \w+ \(currently [^)]*\)")


def warn_of(estimator: Any, X: Any, troubles: list[Trouble]) -> None:
    """Emit a Python warning for each trouble of a run on X, and for trouble with the columns of X."""
    found = _troubles_of_columns(estimator, X) + troubles
    if getattr(estimator, "class_weight", None) is not None:  # classes weigh more on purpose
        found = [one for one in found if one.name != "importances"]
    warn([one._replace(message=_said(estimator, one.message)) for one in found])


def _troubles_of_columns(estimator: Any, X: Any) -> list[Trouble]:
    """Trouble with the columns of X in the first rows, if it is a table."""
    if estimator._kind not in (MATRIX, TABLE) or not hasattr(X, "__arrow_c_stream__") or is_sparse_frame(X):
        return []
    few = _first(X, ROWS if estimator._kind == MATRIX else MOST_ROWS)
    source = source_of_table(estimator, few)
    source.chosen += chosen_in(layout_of(estimator))
    return troubles_of_columns(columns_seen(source), source.layout)


def _first(table: Any, rows: int) -> Any:
    return table.head(rows) if hasattr(table, "head") else table.slice(0, rows)


def _said(estimator: Any, message: str) -> str:
    """The message with parameters and columns of a fitted estimator."""
    named = vars(estimator).get("feature_names_in_") if estimator._kind == MATRIX else None
    if hasattr(estimator, "l1s"):
        message = _PENALTY.sub("smaller penalties, l1s", message)
    if named is not None:
        message = _FEATURE.sub(lambda found: f"column {named[int(found[1])]}", message)
    return in_estimators(message)
