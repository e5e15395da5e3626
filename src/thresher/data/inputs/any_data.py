"""What the package's functions accept as data (paths, tables, matrices, rows), turned into sources."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data import Chunk, DataError, MemorySource, Source, open_source, table_source
from thresher.data import columns as kinds
from thresher.data.chunk import concat as concat
from thresher.data.chunk import floats
from thresher.data.columns import check_same as check_same
from thresher.data.feature_specs import as_list
from thresher.data.features.names import Names as Names
from thresher.data.files.paths import is_log
from thresher.data.inputs import arrays
from thresher.data.inputs.arrays import check_stored as check_stored
from thresher.data.inputs.arrays import check_unmasked as check_unmasked
from thresher.data.labels import LISTED, ONE, Domain, domain_of
from thresher.data.layout import AnyLayout, Layout, SettledLayout, has_columns
from thresher.data.log.source import open_log
from thresher.data.opening import without_columns
from thresher.data.source import BesideRows
from thresher.data.source import groups_of as groups_of
from thresher.data.sources.reader import OpenOptions, current_readers
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.data.features.names import Namer


class ArrowTable(Protocol):
    """A table of pandas, polars or pyarrow, or a query result: anything that exports an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the stream."""
        ...


class Sparse(Protocol):
    """A sparse matrix or array of scipy, in any format."""

    def tocsr(self) -> Any:
        """Convert to CSR."""
        ...


Matrix = Sparse | NDArray[Any]
Data = str | os.PathLike[str] | Chunk | Source | ArrowTable | Matrix | Iterable[Any]
"""Paths or globs; a table; a matrix or rows, with separate labels; Chunks, or a source of them"""
_PROSE = re.compile(r"(?!\w+://)[^*?\[]*\s[^*?\[]*")
"""A text with a blank that is neither a URL nor a glob"""
_BARE = SettledLayout(), Layout()
_READY = "toPandas", "collect", "to_reader", "to_pandas"
"""Methods that make a table of what holds no rows yet: of Spark, of lazy frames, of Scanners, of Ray"""
_KINDS = (
    "a path, paths, a table, a matrix, a list of dictionaries, a Chunk, Chunks, (X, y) or pairs of a mapping"
    " and a label"
)
_BESIDE = "X and y, or (X, y)"


def with_labels(data: Data, y: ArrayLike | None, weights: ArrayLike | None = None) -> Data:
    """Combine examples with their labels and weights, in the form `as_source` takes; without labels, `data`.

    `DataError` if `data` already contain labels.
    """
    if y is None:
        if weights is not None:
            raise DataError(f"sample_weight needs labels y: give {_BESIDE}")
        rows: Any = as_rows(data)
        frame = hasattr(rows, "iloc") and arrays.form_of(rows) == arrays.TABLE
        found: Data = in_arrow(rows) if frame else rows  # or each look copies
        return found
    if isinstance(data, str | os.PathLike | Chunk | Source):
        raise DataError(
            f"labels y are for examples in memory, not for {type(data).__name__}, which has its own"
        )
    X: Any = held([*data] if isinstance(data, tuple) else data)  # a tuple would be mistaken for (X, y)
    return (X, y) if weights is None else (X, y, weights)


def as_rows(data: Any) -> Any:
    """`data`; a stream for a Dataset of pyarrow, CSR for a sparse matrix that is a dictionary.

    `DataError` for a frame with sparse columns, and for what holds no rows yet.
    """
    if isinstance(data, Mapping) and (as_csr := getattr(data, "tocsr", None)):
        return as_csr()
    if type(data).__module__ == "pyarrow._dataset" and hasattr(data, "scanner"):
        return _Scanned(data)
    if hasattr(data, "iloc") and getattr(data, "ndim", 2) == 2:
        for name, kind in data.dtypes.items():
            if str(kind).startswith("Sparse"):
                raise DataError(f"column {name!r} is sparse: make it dense, or a matrix, X.sparse.to_coo()")
    if hasattr(data, arrays.STREAM) or hasattr(data, "__array__"):
        return data
    if how := next((name for name in _READY if hasattr(data, name)), ""):
        raise DataError(f"{type(data).__name__} holds no rows yet: {how}() it")
    return data


@dataclass
class _Scanned:
    """The rows of a Dataset of pyarrow as a stream of Arrow batches: a new one each time."""

    dataset: Any

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow stream, for ``pyarrow.RecordBatchReader.from_stream``."""
        return self.dataset.scanner().to_reader().__arrow_c_stream__(requested_schema)


def held(X: Any) -> Any:
    """The examples, as `as_rows` has them; a list or a table of an iterator. `DataError` if that is empty."""
    X = as_rows(X)
    if not isinstance(X, Iterator):
        return X
    if hasattr(X, arrays.STREAM):
        import pyarrow as pa

        found = pa.table(X)
    else:
        found = list(X)
    if not len(found):
        raise empty_error("X")
    return found


def empty_error(what: str) -> DataError:
    """The error for an iterator without rows."""
    return DataError(
        f"{what} holds no rows: an iterator can be read only once, so make a list or a table of it first"
    )


def as_source(
    data: Data,
    domain: str | Domain,
    *,
    groups: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    **options: Unpack[OpenOptions],
) -> Source:
    """Turn `data` into a source; a source is returned unchanged.

    Accepts: paths, globs and ``-`` (see `open_source`); a Chunk or Chunks; tables, that is, anything with
    ``__arrow_c_stream__`` (pandas, polars, pyarrow, a DuckDB result) and lists of dictionaries; an iterable
    of pairs of a mapping and a label (see `PairSource`); a tuple ``(X, y)`` or ``(X, y, weights)``, where X
    is a table or anything that `chunk_of` takes. `options` are those of `open_source`; with `unlabelled`, X
    may come without y. Rows in memory have these `groups` and `offsets`. Raises `DataError` for anything
    else, and for `where` with anything but files and tables.
    """
    data = as_rows(data)
    found = _as_source(data, domain, options)
    if options.get("where") and found.where != options["where"]:
        raise DataError("where works only with files and tables")
    if options.get("marked") and found.marked != options["marked"]:
        raise without_columns("these data have", options["marked"])
    if groups is not None:
        found = BesideRows(found, "group", groups_of(groups))
    return found if offsets is None else BesideRows(found, "offset", floats(offsets, "offset"))


def open_data(data: Data, domain: str | Domain, **read: Any) -> Source:
    """As `as_source`, for a new model: `DataError` if a layout is given for data without one."""
    source = as_source(data, domain, **read)
    layout: AnyLayout | None = read.get("layout")
    if not is_bare(layout) and is_bare(source.layout):
        raise DataError("a layout is for files and tables, not for matrices, Chunks and pairs")
    if current_readers.get() is not None and (source.origin is None or source.origin.readers is None):
        both = f"{mention('workers')} and {mention('ray')}"
        raise DataError(f"{both} are for files, not for data in memory or a log")
    return source


def is_bare(layout: AnyLayout | None) -> bool:
    """Whether the layout says nothing but label words and gaps, as for examples in memory."""
    return layout is None or replace(layout, classes=(), gaps=False) in _BARE


def is_beside(data: Any) -> bool:
    """Whether `data` is ``(X, y)``."""
    return isinstance(data, tuple) and not isinstance(next(iter(data), ""), str | os.PathLike | Chunk | tuple)


def is_matrix(data: Any) -> bool:
    """Whether `data`, or X of ``(X, y)``, is a matrix that cannot be a table, whose columns have no names."""
    X = data[0] if is_beside(data) and data else data
    return not hasattr(X, arrays.STREAM) and getattr(X, "ndim", 2 * hasattr(X, "tocsr")) == 2


def labels_beside(data: Any) -> Any:
    """The labels of ``(X, y)`` and of a list of pairs; None for all other data."""
    if is_beside(data):
        return data[1] if len(data) > 1 else None
    if isinstance(data, Sequence) and data and isinstance(data[0], tuple) and len(data[0]) in (2, 3):
        return [pair[1] for pair in data if isinstance(pair, tuple) and len(pair) > 1]
    return None


def is_table(data: object, layout: AnyLayout | None) -> bool:
    """Whether `data` is read as a table with a label column."""
    return hasattr(data, arrays.STREAM) or (not is_bare(layout) and _holds(data, Mapping))


def _as_source(data: Any, domain: str | Domain, options: OpenOptions) -> Source:
    if isinstance(data, Source):
        return data
    if isinstance(data, Chunk):
        return MemorySource(data, domain)
    if isinstance(data, str | os.PathLike):
        return _of_files([data], domain, options)
    if is_beside(data):
        if len(data) not in (2, 3) or data[1] is None:
            raise DataError("a tuple of examples in memory is (X, y) or (X, y, weights), with labels y")
        return of_examples(data[0], data[1], data[2] if len(data) == 3 else None, domain, options)
    layout: AnyLayout | None = options.get("layout")
    if options.get("unlabelled") and _are_examples(data, layout):
        return of_examples(data, None, None, domain, options)
    if (table := _as_table(data, layout)) is not None:
        return table_source(table, domain=domain, **options)
    no_rows = isinstance(data, bytes | Mapping) or hasattr(data, "read") or getattr(data, "ndim", 1) == 0
    if no_rows or not hasattr(data, "__iter__"):
        raise _without_rows(data)
    rest = iter(data)
    first = next(rest, rest)
    if first is rest and rest is data:
        raise empty_error("data")
    again = chain([first], rest) if rest is data else data
    if rest is data and options.get("unlabelled") and isinstance(first, Mapping):
        return _as_source([*again], domain, options)
    if isinstance(first, tuple):
        return arrays.PairSource(again, domain, layout)
    if hasattr(data, "tocsr") or getattr(data, "ndim", 0) == 2 or isinstance(first, Mapping):
        what = "rows of features" if isinstance(first, Mapping) else f"a matrix ({type(data).__name__})"
        raise DataError(f"{what} without labels: give {_BESIDE}, or name the label column, label=")
    prose = isinstance(first, str) and _PROSE.fullmatch(first) and not os.path.exists(first)
    if prose and has_columns(layout) and kinds.TEXT in layout.kinds:
        column = layout.columns[layout.kinds.index(kinds.TEXT)]
        raise DataError(
            f"the texts of the model are in column '{column}': give rows, such as [{{'{column}': ...}}]"
        )
    kind, name = (Chunk, "a Chunk") if isinstance(first, Chunk) else (str | os.PathLike, "a path")
    items = list[Any]()
    for item in again:
        if not isinstance(item, kind):
            wanted = f"expected {name if items else _KINDS}"
            wanted = "put the tables together into one" if hasattr(item, arrays.STREAM) else wanted
            raise DataError(f"item {len(items) + 1} of data is {type(item).__name__}: {wanted}")
        items.append(item)
    return MemorySource(items, domain) if kind is Chunk else _of_files(items, domain, options)


def _without_rows(data: object) -> DataError:
    hint = ": put one row into a list" if isinstance(data, Mapping) else ""
    return DataError(f"data must be {_KINDS}, not {type(data).__name__}{hint}")


def _of_files(paths: list[Any], domain: str | Domain, options: OpenOptions) -> Source:
    """The source of files, or of one log."""
    if len(paths) != 1 or not is_log(paths[0]):
        return open_source(paths, domain=domain, **options)
    chosen = options.get("where") or options.get("ids") or options.get("marked") or ""
    return open_log(paths[0], domain, options.get("layout"), chosen)


def _are_examples(data: Any, layout: AnyLayout | None) -> bool:
    """Whether `data` are examples without labels, other than a table for a model that has columns.

    `DataError` for a matrix if the layout knows columns by name.
    """
    columns, rows = has_columns(layout), _holds(data, Mapping)
    if hasattr(data, arrays.STREAM):
        return not columns
    matrix = hasattr(data, "tocsr") or getattr(data, "ndim", 0) == 2 or _holds(data, list | np.ndarray)
    if matrix or (_holds(data, tuple) and not _holds(data[0], Mapping)):
        if columns:
            raise DataError(
                f"the model was trained on named columns: give a table, not {type(data).__name__}"
            )
        return True
    array = isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.kind in "OU"
    if rows or not is_bare(layout) or not (array or isinstance(data, list | tuple)):
        return rows and not columns
    return bool(texts := _texts_in(data)) and not os.path.exists(texts[0])  # nor are they names of files


def _texts_in(data: Any) -> list[str]:
    """All items that are not missing, if they are texts; else none."""
    known = [one for one in data if not arrays.is_missing(one)]
    return known if all(isinstance(one, str) for one in known) else []


def of_examples(X: Any, y: Any, weights: Any, domain: str | Domain, options: OpenOptions) -> Source:
    """A source of examples with separate labels, or of examples without labels: see `_are_examples`.

    The options are those of `as_source`; the layout says how names and texts become features.
    """
    X = as_rows(X)
    if isinstance(X, Mapping):
        raise _without_rows(X)
    check_unmasked("sample_weight", weights)
    layout, wanted = options.get("layout"), domain_of(domain)
    words = layout.classes if layout else ()
    as_matrix = (y is None or isinstance(layout, SettledLayout)) and not has_columns(layout)
    table = None if as_matrix else _as_table(X, layout)
    if table is not None:
        table, layout = _join(table, y, weights, layout, wanted)
        options = {**options, "layout": layout}
        source = table_source(table, domain=domain, **options)
        source.weighed_beside = weights is not None
        return source
    wanted = wanted.of_words(words) if wanted.most else wanted
    labels: Any = None if y is None else arrays.numbers_of(y, wanted.of_words(words))
    if wanted.kind == ONE and np.ndim(labels) == 2:
        outputs = np.shape(labels)[1]
        if outputs != 1 and not wanted.open:
            raise DataError(f"expected one label for each example, found {outputs}")
        labels = np.ravel(labels) if outputs == 1 else labels
    matrix = list(X) if isinstance(X, Iterator) else X
    own = layout or AnyLayout()
    chunk = arrays.chunk_of(matrix, labels, weights, seed=own.seed, text=own.ngrams, gaps=own.gaps)
    known = SettledLayout(classes=words) if words and y is not None else None
    if arrays.form_of(matrix) in (arrays.MATRIX, arrays.TABLE):
        sides = matrix.shape if hasattr(matrix, "shape") else np.shape(matrix)
        names = getattr(X, "column_names", getattr(X, "columns", ()))
        named = any(isinstance(name, str) and not name.isdigit() for name in names)
        by_position = hasattr(X, arrays.STREAM) and named
        shape: dict[str, Any] = {"columns": int(sides[1]) if len(sides) == 2 else None}
        return MemorySource(chunk, wanted, layout=known, by_position=by_position, sound=True, **shape)

    def tell(namer: Namer) -> None:
        if arrays.form_of(matrix) == arrays.ROWS:
            again = arrays.PairSource([(row, 0.0) for row in matrix], seed=own.seed)
            again.namer = namer
            for _ in again.chunks():
                pass
        else:
            arrays.chunk_of(matrix, seed=own.seed, text=own.ngrams, naming=namer.table)
            namer.take([""])

    return MemorySource(chunk, wanted, layout=known, sound=True, tell_names=tell)


def _holds(data: Any, kind: Any) -> bool:
    """Whether it is a list of such things, as the first shows."""
    return isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], kind)


def _as_table(data: Any, layout: AnyLayout | None) -> Any:
    """`data` as a table, rows included if `layout` describes their columns; None for anything else."""
    settled = layout if has_columns(layout) else None
    if hasattr(data, arrays.STREAM):
        if arrays.form_of(data) != arrays.TABLE:
            if _texts_in(data):
                return None
            raise single(data)
        return data
    if not is_table(data, layout):
        return None
    import pyarrow as pa

    from thresher.data.formats.tables.arrow_files import NAME, UNREADABLE, column_of, fault_of

    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in data for name in row):
        try:
            values = [row.get(name) for row in data]
            columns[str(name)] = column_of(values, nan_is_missing=True)
        except UNREADABLE as error:
            raise fault_of("the rows: column", name, values, error) from error
    if settled:
        misspelt = kinds.lacking_in_objects(settled.unlabelled(), [*columns], NAME)
        types = dict.fromkeys((kinds.CATEGORICAL, kinds.TEXT), pa.string())
        types |= dict.fromkeys((kinds.BINS, kinds.NUMERIC), pa.float64())
        for name, kind in settled.kind_of.items():
            if kind in types and name not in misspelt:  # missing in every row
                columns.setdefault(name, pa.nulls(len(data), types[kind]))
    return pa.table(columns)


def single(data: object) -> DataError:
    """The error for a column, or for a row of a frame, in place of a table."""
    return DataError(
        f"{type(data).__name__} is a single column: give a table or a matrix with one row per example"
        f"{' (one row of a frame: frame.iloc[[0]])' * hasattr(data, 'iloc')}"
    )


# Labels as columns


def _join(
    table: Any, y: Any, weights: Any, layout: AnyLayout | None, domain: Domain
) -> tuple[Any, AnyLayout]:
    """The table with labels and weights added as columns, and a layout that names them.

    They could go to the chunks beside the table. But the layout of the model would still need a column of
    that name, so that a table or file with labels in it can be evaluated, and readers, filters and hold-outs
    would have two ways for labels. Arrow adds a column without copying the others.
    """
    from thresher.data.formats.tables.arrow_files import reader_of

    whole = reader_of(table).read_all()
    if not whole.num_columns:
        raise DataError("the table has no columns")
    numbers = arrays.array_of(y)
    if len(numbers) != whole.num_rows or numbers.ndim > 2:
        raise DataError(
            f"{whole.num_rows} examples have labels of shape {numbers.shape}: give one for each row"
        )
    columns, taken = [numbers] if numbers.ndim == 1 else [*numbers.T], frozenset(whole.column_names)
    if numbers.ndim == 2 and domain.kind == LISTED:  # sets of classes are one column of lists
        if not domain.open:
            domain.check(numbers[:, 0], numbers.astype(np.float32))
        columns = [np.empty(len(numbers), object)]
        columns[0][:] = [
            [] if domain.open else (int(domain.low) + np.flatnonzero(row > 0)).tolist() for row in numbers
        ]
    base: AnyLayout = layout or Layout()
    check_unnamed(base)
    labels = _label_names(base, taken, len(columns), getattr(y, "name", None))
    if twice := [name for name in labels if name in taken]:
        raise DataError(f"the table has a column '{twice[0]}', which y would replace: rename one of them")
    for name, column in zip(labels, columns, strict=True):
        whole = whole.append_column(name, _column_of("labels y", column, None))
    weight = ""
    if weights is not None:
        known = dict(zip(base.kinds, base.columns, strict=True)) if has_columns(base) else {}
        weight = known.get(kinds.WEIGHT) or _free("weight", {*taken, *labels})
        if np.shape(weights) != (whole.num_rows,):
            raise DataError(f"{whole.num_rows} examples have sample_weight of shape {np.shape(weights)}")
        whole = whole.append_column(weight, _column_of("sample_weight", weights, np.float64))
    if not has_columns(base):
        return whole, replace(base.unsettle(), label=as_list(labels), weight=weight)
    # estimators are fitted on features alone, and a model trained without weights may be measured with them
    own = dict.fromkeys(labels, kinds.LABEL) | ({weight: kinds.WEIGHT} if weight else {})
    found = base.kind_of | own | base.kind_of  # new ones last
    for name in found.keys() - whole.column_names:
        found[name] = kinds.ABSENT if found[name] == kinds.WEIGHT else found[name]
    several = base.labels or (tuple(labels) if len(labels) > 1 else ())
    return whole, replace(base.with_kinds(found), labels=several)


def check_unnamed(layout: AnyLayout) -> None:
    """Raise `DataError` if a layout names columns of labels or weights, which are given beside the table."""
    if isinstance(layout, Layout) and (layout.label or layout.weight):
        raise DataError("labels and weights are given as y and sample_weight: leave label and weight out")


def _column_of(what: str, values: Any, dtype: Any) -> Any:
    """Values beside a table as a column of it. `DataError`."""
    import pyarrow as pa

    from thresher.data.formats.tables.arrow_files import column_of

    try:
        if np.iscomplexobj(values):
            raise TypeError("complex numbers")
        array = np.asarray(values, dtype)
        return column_of(array.astype(np.int8) if array.dtype == bool else array)
    except (ValueError, TypeError, pa.ArrowNotImplementedError, OverflowError) as error:  # Arrow's too
        raise DataError(f"{what}: {error}") from error


def _label_names(layout: AnyLayout, taken: Set[str], count: int, given: Any) -> list[str]:
    """Names for the label columns: those of a settled layout, else names that are not taken."""
    if has_columns(layout):
        before = [*layout.labels] or [name for name, kind in layout.kind_of.items() if kind == kinds.LABEL]
        if len(before) == count:
            return before
    named = isinstance(given, str) and given and "," not in given
    if named and count == 1:
        return [given]
    stem = given if named else "label"
    return [_free(stem if count == 1 else f"{stem}{k}", taken) for k in range(1, count + 1)]


def _free(name: str, taken: Set[str]) -> str:
    while name in taken:
        name += "_"
    return name


# X alone, for estimators


def examples_in(X: Any) -> Any:
    """X, as `held` has it; a table in memory of what computes one. `DataError` if nothing can be read."""
    X = held(X)
    if hasattr(X, arrays.STREAM):
        if len(sides := getattr(X, "shape", ())) == 2:
            kinds.check_once(map(str, getattr(X, "column_names", X.columns)), "X")
        if sides[1:] == (0,):
            raise DataError("X has no columns")
        if not hasattr(X, "__array__"):
            import pyarrow as pa

            X = pa.table(X)
    return X


def kind_of(X: Any, layout: Any = None) -> str:
    """What X is; a table of numbers is a matrix, unless a layout says how to read its columns."""
    if (form := arrays.form_of(X)) != arrays.TABLE or layout is not None:
        return form
    if hasattr(X, "iloc"):  # pandas: Arrow rejects some of its numeric columns
        return arrays.MATRIX if all(kind.kind in "fiub" for kind in X.dtypes) else arrays.TABLE
    import pyarrow as pa

    few = X.head(0) if hasattr(X, "head") else X.slice(0, 0) if hasattr(X, "slice") else X
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    types = pa.RecordBatchReader.from_stream(few).schema.types
    return arrays.MATRIX if all(any(test(kind) for test in tests) for kind in types) else arrays.TABLE


def in_arrow(X: Any) -> Any:
    """A table as one of pyarrow, which of pandas is a copy."""
    from thresher.data.formats.tables.arrow_files import reader_of

    return reader_of(X).read_all()


def dictionaries_of(frame: Any) -> list[dict[Any, Any]]:
    """The rows of a frame of pandas, in which NaN is a missing value, or of polars. `TypeError`."""
    if not (hasattr(frame, "columns") and hasattr(frame, "to_dict")):
        what = type(frame).__name__
        raise TypeError(f"expected a frame of pandas or polars, not {what}: give pd.DataFrame(rows)")
    names, columns = [*frame.columns], (column.to_pylist() for column in in_arrow(frame).columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def of_table(X: Any, layout: AnyLayout, threads: int) -> Source:
    """A source of the rows of a table without labels, by its own columns unless the layout knows some.

    `DataError`.
    """
    layout = layout if has_columns(layout) else layout.unsettle()
    check_unnamed(layout)
    return table_source(X, domain="open", layout=layout, unlabelled=True, threads=threads)


def beginning(X: Any, as_matrix: bool) -> Any:
    """The first rows of a table, as many as are looked at for warnings, as one of pyarrow; else None."""
    if not hasattr(X, arrays.STREAM):
        return None
    from thresher.data.formats.tables import column_statistics

    rows = column_statistics.ROWS if as_matrix else column_statistics.MOST_ROWS
    return in_arrow(X.head(rows) if hasattr(X, "head") else X.slice(0, rows))
