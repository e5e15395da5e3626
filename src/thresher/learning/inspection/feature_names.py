"""Find names for the weights of a model in data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError
from thresher.data.features.names import Names, find_names, numeric_keys
from thresher.data.formats.listing import kind_of_features
from thresher.data.inputs.any_data import Data
from thresher.data.layout import has_columns
from thresher.data.source import Source
from thresher.engine.index import HashedIndex
from thresher.learning.inspection.effects import DrawnRows, keep_effects
from thresher.learning.model.model import Model
from thresher.learning.model.prediction import LinearPredictor, source_for
from thresher.options.messages import mention


def find_in(models: Sequence[Model | LinearPredictor], data: Data, **reading: Any) -> Names:
    """Find the names of the features of models in `data`, and keep them: see `thresher.name_features`."""
    own = models[0]
    check_nameable(own.store)
    options: dict[str, Any] = {"on_error": "skip", **reading}
    source = source_for(own, data, own.head.open_domain, more={"unlabelled": True}, **options)
    check_nameable(own.store, source)
    drawn = DrawnRows()
    for one in models:
        one.drawn = drawn
    return give_names(models, partial(find_names, source, look=drawn.add))


def keep_names(model: Model | LinearPredictor, source: Source) -> None:
    """Give a model the names of its features, read from a source that has names."""
    give_names([model], partial(find_names, source))


def give_names(
    models: Sequence[Model | LinearPredictor], find: Callable[[NDArray[np.uint64]], Names]
) -> Names:
    """Give models the names of their features; `find` finds those of keys. Return all of them."""
    predictors = [one.predictor() for one in models]
    keys = np.unique(np.concatenate([one.keys for one in predictors]))
    known = Names.of({})
    for one in models:
        if one.names is not None:
            known = one.names.union(known)
    known = known.only(keys)
    unnamed = np.setdiff1d(keys, known.features, assume_unique=True)
    named = known.union(find(unnamed)).distinct(keys)
    for one, predictor in zip(models, predictors, strict=True):
        one.names = named if len(models) == 1 else named.only(predictor.keys)
        keep_effects(one)
    return named


def known_names(predictor: LinearPredictor) -> dict[int, str]:
    """The names of a model's features; those of numeric columns are always known."""
    layout, found = predictor.layout, dict[int, str]()
    if layout is not None and has_columns(layout) and not predictor.store.startswith(HashedIndex.NAME):
        found = numeric_keys(layout)
    return found | dict(predictor.names or {})


def is_nameable(predictor: LinearPredictor) -> bool:
    """Whether weights without a name have names that can be read from data."""
    if predictor.store.startswith(HashedIndex.NAME) or predictor.layout is None:
        return False
    known = np.array([*known_names(predictor)], np.uint64)
    return kind_of_features(predictor.layout.format) != "ids" and not np.isin(predictor.keys, known).all()


def check_nameable(store: str, source: Source | None = None) -> None:
    """`DataError` if a weight can stand for several features, or features of `source` have no names."""
    if store.startswith(HashedIndex.NAME):
        why = "weights of a hashed store have no names, as features may share one"
        raise DataError(f"{why}: use {mention(store='growing')}")
    if source is not None and not source.nameable:
        raise DataError("a matrix or a log has no feature names: give files, a table, dictionaries or texts")
