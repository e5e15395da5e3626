"""Whether new data can have the features that a model was trained on, and number them alike.

The columns of a matrix are counted from 0. Files often count from 1, so the matrix that scikit-learn makes of
such a file has every feature one place before its id.

Features are columns of tables, names (VW text, dictionaries, texts) or ids (svmlight, matrices).
Where the kinds differ no feature has a weight, and every prediction would be the intercept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.columns import AS_TEXT, CATEGORICAL, LEARN_A_TABLE
from thresher.data.errors import DataError, first_few
from thresher.data.features.murmur import hash_columns, seed_of
from thresher.data.formats.listing import FORMATS, LINES, kind_of_features
from thresher.data.formats.tables.column_statistics import ROWS, first_cells
from thresher.data.layout import AnyLayout, has_columns
from thresher.data.report import LACKING
from thresher.data.source import Parsed, Source, Watched
from thresher.data.sources.parsed import ParsedSource
from thresher.engine.index import HashedIndex
from thresher.learning.diagnostics.findings import Finding, warn
from thresher.learning.model.scaling import NO_MEANS

SMALL = 1 << 32
"""Keys up to here number features; hashes of names are nearly all larger."""
_SAMPLE = 1000
"""How many keys of a model are examined"""
_WIDEST = 20
"""Digits of the longest codes that have lost their zeros"""


class Numbering(NamedTuple):
    """The ids that a model was trained on."""

    low: int
    """the lowest id seen"""
    high: int
    """the highest id seen; of a matrix, its last column, whether it has values or not"""
    matrix: bool
    """whether the ids are columns of a matrix"""


def note_kind(model: Any, span: tuple[int, int] | None, source: Source) -> None:
    """Note which features data of a source have that a model learned, with their lowest and highest key."""
    model.named = model.named or (kind_of(source).data == NAMED and (span is None or span[1] > SMALL))
    columns = source.columns
    if columns is not None:
        found = Numbering(columns if span is None else span[0], columns - 1, True)
    elif span is None or span[1] > SMALL or not _has_ids(model.layout):
        return
    else:
        found = Numbering(*span, False)
    low, high, matrix = model.numbering or found
    model.numbering = Numbering(min(found.low, low), max(found.high, high), found.matrix and matrix)


def _has_ids(layout: AnyLayout | None) -> bool:
    if layout is None or layout.format not in LINES:
        return False
    return not (LINES[layout.format].named and layout.bits) and not layout.interact


def _check_matrix(numbering: Numbering, columns: int, source: Source) -> None:
    """`DataError`, or a warning, for a matrix whose columns are not the ids of the model."""
    count, low = numbering.high + 1, numbering.low
    given, read = f"the columns of the matrix are 0 to {columns - 1:,}", f"n_features={count}"
    if numbering.matrix:
        if columns != count:
            remedy = f"give a matrix of the same columns (load_svmlight_file has {read})"
            raise DataError(f"{given}, but the model was trained on 0 to {count - 1:,}: {remedy}")
        return
    given += f", but the model was trained on a file with ids {low} to {numbering.high}"
    empty = "put an empty column in front, or " if low == 1 and columns == count - 1 else ""
    right = f"column j must be id j: {empty}read it by load_svmlight_file(FILE, {read}, zero_based=True)"
    if columns > count:
        right += f"; leave out columns that the model does not know, X[:, :{count}]"
    if columns != count:
        raise DataError(f"{given}: {right}")
    if low > 0 and any((chunk.span() or (1, 1))[0] == 0 for chunk in source.chunks()):
        warn([Finding("shifted-ids", f"{given}, and column 0 has values; {right}")])


def _compare_ids(trained: Numbering, given: Iterator[Parsed], whole: bool) -> Iterator[Parsed]:
    """The rows of a file; warns once if its first id seems to differ from that of the training data."""
    low, high, reason = SMALL, -1, ""
    for rows in given:
        if not reason and (span := rows.chunk.span()) is not None:
            low, high = min(low, span[0]), max(high, span[1])
            reason = _warn_if_shifted(trained, low, high, False)
        yield rows
    if whole and not reason:
        _warn_if_shifted(trained, low, high, True)


def _warn_if_shifted(trained: Numbering, low: int, high: int, whole: bool) -> str:
    """Warn if the ids so far, or of the `whole` file, show that features are numbered differently."""
    beyond = trained.matrix and high > trained.high
    below = trained.low == 1 and low == 0
    above = whole and trained.low == 0 and (low, high) == (1, trained.high + 1)
    if not beyond and (trained.matrix or not (below or above)):
        return ""
    right = f"write both with dump_svmlight_file(X, y, FILE, zero_based={trained.low == 0})"
    if beyond:
        right = f"give the matrix of load_svmlight_file(FILE, n_features={trained.high + 1})"
    ids = f"the data have ids {low} to {high}, the training data had {trained.low} to {trained.high}"
    reason = f"{ids}: if both do not start at the same id, every feature is one place off; {right}"
    warn([Finding("shifted-ids", reason)])
    return reason


def _look_for_values(column: str, source: Source, given: Iterator[Parsed], whole: bool) -> Iterator[Parsed]:
    """The rows; warns if none of several has a value in a column, the first of the cells, that models go by.

    A file without the column is told of like one that lacks another feature.
    """
    rows, empty, found = 0, {"", *(source.layout.missing if source.layout else ())}, False
    for one in given:
        rows += len(one.chunk)
        if not found and one.chunk.cells is not None:
            found = not empty.issuperset(map(str.strip, one.chunk.cells[:, 0]))
        yield one
    lacks = any((one.what, one.column) == (LACKING, column) for one in source.report.noticed)
    if whole and rows > 1 and not found and not lacks:
        reason = f"no row has a value in column {column}, so the model of all rows predicts each: fill it in"
        warn([Finding("missing-columns", reason)])


COLUMNS, NAMES, IDS = "columns", "names", "ids"
NAMED, _TRAINED = "rows of named features", "the model was trained on"
_FILES = [form.title for form in FORMATS.values()]


class FeatureKind(NamedTuple):
    """Which features data have."""

    features: str = ""
    """`COLUMNS`, `NAMES` or `IDS`; empty: unknown"""
    data: str = ""
    """what the data are, for messages"""
    numbers: bool = False
    """whether names may be numbers, which mean the same as ids"""


def kind_of(source: Source) -> FeatureKind:
    """The features of a source; unknown for Chunks."""
    if (found := kind_in(source.layout)).features:
        return found
    if source.columns is not None:
        return FeatureKind(IDS, "a matrix")
    return FeatureKind(NAMES, NAMED) if source.nameable else FeatureKind()


def kind_in(layout: AnyLayout | None) -> FeatureKind:
    """The features of data with this layout; unknown if it only says which classes data in memory have."""
    if layout is None or not (layout.format or has_columns(layout)):
        return FeatureKind()
    features = kind_of_features(layout.format)
    return FeatureKind(
        features, FORMATS[layout.format].title if layout.format else "a table", features == NAMES
    )


def kind_of_model(model: Any) -> FeatureKind:
    """The features of the data that a model was trained on."""
    found, keys = kind_in(model.layout), _keys_in(model)
    small = model.numbering is not None or bool(len(keys) and keys.max() <= SMALL)
    if found.features:
        return found._replace(numbers=found.numbers and small and not model.layout.bits)
    if small:
        return FeatureKind(IDS, "a matrix")
    named = model.named or (len(keys) and keys.min() > SMALL)
    return FeatureKind(NAMES, NAMED) if named else FeatureKind()


def _keys_in(model: Any) -> NDArray[np.uint64]:
    """Some keys that the model knows: of weights, and of columns that it centres, which may have none.

    None if the rows of its index may each stand for several.
    """
    if model.index.NAME == HashedIndex.NAME:
        return np.empty(0, np.uint64)
    columns = NO_MEANS if model.only_means is None else model.only_means
    return np.append(model.index.features(_SAMPLE)[1:], columns.keys)


def check_kinds(before: FeatureKind, now: FeatureKind, trained: str = _TRAINED, given: str = "") -> None:
    """`DataError`, as `refusal` has it, unless data of these kinds can have features in common."""
    alike = not before.features or not now.features or before.features == now.features
    numbers = {before.features, now.features} == {NAMES, IDS} and (before.features == IDS or before.numbers)
    if not (alike or numbers):
        raise refusal(before, now, trained, given)


def refusal(before: FeatureKind, now: FeatureKind, trained: str = _TRAINED, given: str = "") -> DataError:
    """The error for data of another kind; `given` names their type in Python."""
    if before.data == NAMED and now.features == COLUMNS and now.data in _FILES:
        return DataError(f"{trained} {NAMED}, not on {now.data}: {LEARN_A_TABLE}")
    if before.data == NAMED and given:
        return DataError(f"{trained} named features: give rows as dictionaries or texts, not {given}")
    return DataError(
        f"{trained} {before.data}, whose features are {before.features}; the features of {now.data} are"
        f" {now.features}"
    )


def names_refused(model: object, layout: AnyLayout) -> Callable[[Chunk], Chunk]:
    """What raises `DataError` for rows with this layout whose features are names, if they must be numbers."""
    before, now = kind_of_model(model), kind_in(layout)
    refused = refusal(before, now) if (before.features, now.features) == (IDS, NAMES) else None

    def check(chunk: Chunk) -> Chunk:
        if refused is not None and chunk.nnz and chunk.keys.min() > SMALL:
            raise refused
        return chunk

    return check


def in_agreement(model: Any, source: Source, trained: str = _TRAINED, given: str = "") -> Source:
    """The source, for this model.

    It warns if the ids of a file seem to start at another number, or no row has a value to choose a model by.
    `DataError` for features of another kind, and for a matrix with another number of columns.
    """
    before, now, numbering = kind_of_model(model), kind_of(source), model.numbering
    by_position = numbering is not None and numbering.matrix and not model.matches_names
    source = _alike(source, before, trained, given, "the model was trained on a matrix" * by_position)
    if now.data == NAMED and before.features == NAMES and model.layout is not None and model.layout.text:
        texts = f"{trained} {before.data} with the n-grams of {', '.join(model.layout.text)}"
        raise DataError(f"{texts}, which {NAMED} do not get: give a file of {before.data}")
    if before.features == now.features == COLUMNS:
        warn(lost_zeros(model, source))
    if before.data == NAMED == now.data and len(_keys_in(model)):
        numbers = FeatureKind(IDS, "rows of numbered features")
        source = Watched(source, partial(_check_first, False, refusal(before, numbers, trained)))
    if numbering is not None and source.columns is not None:
        _check_matrix(numbering, source.columns, source)
    elif numbering is not None and source.layout is not None and _has_ids(source.layout):
        source = Watched(source, partial(_compare_ids, numbering))
    return Watched(source, partial(_look_for_values, model.sliced[0], source)) if model.sliced else source


def check_holdout(source: Source, held: Source) -> Source:
    """The hold-out; `DataError` if it has other features than the data."""
    width, other = source.columns, held.columns
    if width is not None and other not in (None, width):
        raise DataError(f"the data have {width:,} columns, the hold-out {other:,}: give the same columns")
    by_position = "the data are a matrix" * (width is not None)
    return _alike(held, kind_of(source), "the data are", by_position=by_position)


def _alike(
    source: Source, before: FeatureKind, trained: str, given: str = "", by_position: str = ""
) -> Source:
    """The source, for features `before`, of a matrix if columns are matched `by_position`; `DataError`."""
    now = kind_of(source)
    check_kinds(before, now, trained, given)
    if by_position and source.by_position:
        reason = f"{by_position}, so the columns of the table are matched by position, not by name"
        remedy = "give them in the order of the matrix, or train on a table"
        warn([Finding("by-position", f"{reason}: {remedy}")])
    if before.features == IDS and now.features == NAMES:
        return Watched(source, partial(_check_first, True, refusal(before, now, trained, given)))
    return source


def _check_first(names: bool, error: DataError, given: Iterator[Parsed], whole: bool) -> Iterator[Parsed]:
    """The rows, unless the first features are all `names`, or if not, all numbers: then the error."""
    unknown = True
    for rows in given:
        if unknown and rows.chunk.nnz:
            unknown = False
            if rows.chunk.keys.min() > SMALL if names else rows.chunk.keys.max() <= SMALL:
                raise error
        yield rows


def lost_zeros(model: Any, source: Source) -> list[Finding]:
    """Columns of codes that were texts in training, and are numbers now: 1730 where the model knows 01730.

    Two of the codes must be unknown as they are, and known with zeros in front.
    """
    if not isinstance(source, ParsedSource) or source.layout.bits:
        return []
    cells, found, kinds = first_cells(source, ROWS), list[str](), source.layout.kind_of
    for name, what in source.layout.spelling_of.items():
        if what != AS_TEXT or kinds[name] != CATEGORICAL:
            continue
        texts = {cell.strip().removesuffix(".0") for cell in cells.get(name, ())}
        codes = sorted(filter(str.isdecimal, texts))
        padded = {code.zfill(k): code for code in codes for k in range(len(code) + 1, _WIDEST + 1)}
        hashes = hash_columns([*padded, *padded.values()], seed_of(name, source.layout.seed))
        known, unpadded = np.split(model.knows(hashes), 2)
        lost = [pair for pair, one in zip(padded.items(), known & ~unpadded, strict=True) if one]
        if len(lost) > 1:
            before, now = lost[0]
            found.append(f"{name} ('{now}' for '{before}')")
    if not found:
        return []
    reason = f"codes of {source.names[0]} have lost zeros in front, and the model does not know them"
    remedy = "write them as in the training data; in pandas, read such columns as str"
    return [Finding("lost-zeros", f"{reason} (column {first_few(found)}): {remedy}")]
