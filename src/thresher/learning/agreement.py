"""Agreement: whether new data can have the features that a model was trained on.

Features are columns of tables, names (VW text, dictionaries, texts) or ids (svmlight, LibFFM, matrices).
Where the kinds differ no feature has a weight, and every prediction would be the intercept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.data.formats.choosing import features_of
from thresher.data.formats.listing import FORMATS
from thresher.data.layout import AnyLayout, has_columns
from thresher.data.source import Watched
from thresher.data.wording import warn_user
from thresher.learning.numbering import numbered_alike
from thresher.learning.trouble import TroubleWarning

COLUMNS, NAMES, IDS = "columns", "names", "ids"
_NAMED, _TRAINED = "rows of named features", "the model was trained on"
_SMALL = 1 << 32
"""Keys up to here number features; hashes of names are nearly all larger."""


class Kind(NamedTuple):
    """Which features data have."""

    features: str = ""
    """`COLUMNS`, `NAMES` or `IDS`; empty: unknown"""
    data: str = ""
    """what the data are, for messages"""
    numbers: bool = False
    """whether names may be numbers, which mean the same as ids"""


def kind_of(source: Any) -> Kind:
    """The features of a source; unknown for Chunks."""
    return _kind_in(source.layout) or (
        Kind(IDS, "a matrix")
        if getattr(source, "columns", None) is not None
        else Kind(NAMES, _NAMED)
        if hasattr(source, "namer")
        else Kind()
    )


def _kind_in(layout: AnyLayout | None) -> Kind | None:
    """The features of data with this layout; None for data in memory, of which only the classes are known."""
    if layout is None or not (layout.format or has_columns(layout)):
        return None
    features = features_of(layout)
    return Kind(features, FORMATS[layout.format].title if layout.format else "a table", features == NAMES)


def kind_of_model(model: Any) -> Kind:
    """The features of the data that a model was trained on."""
    keys, found = model._some_keys(), _kind_in(model.layout)
    if found is not None:
        small = model.numbering is not None or bool(len(keys) and keys.max() <= _SMALL)
        return found._replace(numbers=found.numbers and small and not model.layout.bits)
    if model.numbering is not None or (len(keys) and keys.max() <= _SMALL):
        return Kind(IDS, "a matrix")
    return Kind(NAMES, _NAMED) if len(keys) and keys.min() > _SMALL else Kind()


def agree(before: Kind, now: Kind) -> bool:
    """Whether data of these kinds can have features in common."""
    if not before.features or not now.features or before.features == now.features:
        return True
    return {before.features, now.features} == {NAMES, IDS} and (before.features == IDS or before.numbers)


def refusal(before: Kind, now: Kind, trained: str = _TRAINED, given: str = "") -> DataError:
    """The error for data of another kind; `given` names their type in Python."""
    if before.data == _NAMED and given:
        return DataError(f"{trained} named features: give rows as dictionaries or texts, not {given}")
    return DataError(
        f"{trained} {before.data}, whose features are {before.features}; the features of {now.data} are"
        f" {now.features}"
    )


def check_format(model: Any, layout: AnyLayout | None) -> None:
    """`DataError` if files with this layout have features of another kind than those of the model."""
    before, now = kind_of_model(model), _kind_in(layout)
    if now is not None and not agree(before, now):
        raise refusal(before, now)


def in_agreement(model: Any, source: Any, trained: str = _TRAINED, given: str = "") -> Any:
    """The source, for this model. It warns if the ids of a file seem to start at another number.

    `DataError` for features of another kind, and for a matrix with another number of columns.
    """
    before, now = kind_of_model(model), kind_of(source)
    if not agree(before, now):
        raise refusal(before, now, trained, given)
    if model.numbering is not None and model.numbering.matrix and not model.matches_names:
        _warn_by_position(source, "the model was trained on a matrix")
    if before.features == IDS and now.features == NAMES:
        source = _Numbers(source, refusal(before, now, trained, given), wanted=True)
    if before.data == _NAMED == now.data:
        source = _Numbers(
            source, refusal(before, Kind(IDS, "rows of numbered features"), trained), wanted=False
        )
    return numbered_alike(model.numbering, source)


def _warn_by_position(source: Any, reason: str) -> None:
    if getattr(source, "by_position", False):
        warn_user(
            f"{reason}, so the columns of the table are matched by position, not by name: give them in the"
            " order of the matrix, or train on a table [by-position]",
            TroubleWarning,
        )


class _Numbers(Watched):
    """Data of names, of which the first must be numbers as in the model, or not: else `DataError`."""

    def __init__(self, source: Any, error: DataError, wanted: bool) -> None:
        super().__init__(source)
        self._error: DataError | None = error
        self._wanted = wanted

    def look(self, chunk: Chunk) -> None:
        """Check the first chunk that has features."""
        if self._error is not None and chunk.nnz:
            if chunk.keys.min() > _SMALL if self._wanted else chunk.keys.max() <= _SMALL:
                raise self._error
            self._error = None


def check_holdout(source: Any, held: Any) -> Any:
    """The hold-out; `DataError` if it has other features than the data."""
    data, found = kind_of(source), kind_of(held)
    if not agree(data, found):
        raise refusal(data, found, "the data are")
    wide = [getattr(one, "columns", None) for one in (source, held)]
    if None not in wide and wide[0] != wide[1]:
        raise DataError(f"the data have {wide[0]:,} columns, the hold-out {wide[1]:,}: give the same columns")
    if wide[0] is not None:
        _warn_by_position(held, "the data are a matrix")
    if data.features == IDS and found.features == NAMES:
        return _Numbers(held, refusal(data, found, "the data are"), wanted=True)
    return held
