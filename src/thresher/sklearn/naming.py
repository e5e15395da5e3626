"""Names of features: the columns of X, or found by reading X again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.sklearn.inputs import MATRIX, ROWS, TEXTS, layout_of


def keep_names(estimator: Any, X: Any, models: Sequence[Any]) -> None:
    """Find and keep the feature names of `models`, which learned X. `DataError` for a hashed store."""
    from thresher.data.features.names import Names, find_names

    keys = [(model.readout() if hasattr(model, "readout") else model).keys for model in models]
    wanted = np.unique(np.concatenate(keys))
    known = (models[0].names or Names.of({})).only(wanted)
    unnamed = np.setdiff1d(wanted, known.features, assume_unique=True)
    if estimator._kind == MATRIX:
        columns = vars(estimator).get("feature_names_in_", ())
        found = Names.of({key: columns[key].encode() for key in unnamed.tolist() if key < len(columns)})
    else:
        found = find_names(_source(estimator, X), unnamed)
    named = known.joined(found)
    for model, own in zip(models, keys, strict=True):
        model.names = named.only(own)


def _source(estimator: Any, X: Any) -> Any:
    """X as a source with names."""
    from thresher.data import table_source
    from thresher.data.arrays import PairSource, texts_of
    from thresher.data.layout import SettledLayout

    given_layout = layout_of(estimator)
    if estimator._kind == ROWS:
        return PairSource([(row, 0.0) for row in X], seed=given_layout.seed if given_layout else 0)
    if estimator._kind == TEXTS:
        import pyarrow as pa

        shared = given_layout.shared() if given_layout else {}
        texts = SettledLayout(**shared, columns=("",), kinds=("text",))  # words of an unnamed column
        return table_source(pa.table({"": texts_of(X, None)}), layout=texts, domain="open", unlabelled=True)
    return table_source(X, layout=estimator._layout, domain="open", unlabelled=True)


def names_of(model: Any) -> NDArray[Any]:
    """The names of the features with a weight, by key; ValueError if they were not kept."""
    from thresher.learning.feature_names import check_nameable, known_names
    from thresher.learning.readout import Readout

    readout = model if isinstance(model, Readout) else model.readout()
    check_nameable(readout.store)
    known, weights = known_names(readout), readout.weights.reshape(len(readout.keys), readout.head.count)
    keys = readout.keys[weights.any(axis=1)].tolist()
    if readout.names is None and not all(key in known for key in keys):
        raise ValueError(
            "the names of these features were not kept (feature_keys_ has their keys): fit with names=True,"
            " or find them with thresher.name_features(model, X)"
        )
    return np.array([known.get(key, str(key)) for key in keys], object)
