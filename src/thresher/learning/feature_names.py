"""Names for the weights of a model, read from data."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.data.errors import DataError
from thresher.data.features.names import Names, find_names
from thresher.data.layout import AnyLayout
from thresher.engine.index import HashedIndex
from thresher.learning.api import as_source
from thresher.learning.model import Model, as_model


def name_features(
    model: Any,
    data: Any,
    *,
    on_error: str = "skip",
    where: str = "",
    layout: AnyLayout | None = None,
) -> Names:
    """Find the names of the features that weigh something in `data`, and keep them in ``model.names``.

    `model` is a Model, a Readout, or a fitted estimator, whose ``model_`` then keeps them. `data` are files
    (see `open_source`) or a table, rows of which `where` may choose, or pairs of a dictionary and a label,
    read as the model's training data were, or as `layout` says; labels are not looked at, and nothing is
    learned. It is read until each such feature has a name, and once more where products of features were
    found behind their factors. Names that the model has stay; those of features that no longer weigh
    anything go. What was an id in the data has no other name.

    Raises `DataError` for a model with a hashed store, where one weight stands for several features, and
    for data without names; TypeError for what is no model.
    """
    own = as_model(model)
    check_nameable(own.store)
    readout = own.readout() if isinstance(own, Model) else own
    options: dict[str, Any] = {"on_error": on_error, "layout": layout or own.layout, "where": where}
    source = as_source(data, readout.head.open_domain, unlabelled=True, **options)
    if not hasattr(source, "namer"):
        raise DataError("matrices have no names beside keys: give files, a table, or rows as dictionaries")
    kept = (own.names or Names.of({})).only(readout.keys)
    unnamed = np.setdiff1d(readout.keys, kept.keys, assume_unique=True)
    own.names = named = kept.joined(find_names(source, unnamed))
    return named


def check_nameable(store: str) -> None:
    """`DataError` where a weight can stand for several features."""
    if store.startswith(HashedIndex.NAME):
        raise DataError(
            "in a hashed store a weight stands for several features, so none has a name: use --store growing"
        )
