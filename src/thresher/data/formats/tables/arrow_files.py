"""Parquet files, Arrow IPC files and streams, and tables in memory and query results, as sources.

Chunks are batches of at most `BATCH` rows. They end at the end of a row group or record batch. In a
`StreamPosition`, both `offset` and `line` count rows.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thresher.data.chunk import StreamPosition
from thresher.data.columns import CATEGORICAL, IGNORE, LABEL, UNREAD, as_option_value, finder, settle
from thresher.data.errors import DataError, quote_bytes
from thresher.data.files.paths import is_stream, name_errors, open_file, size_of
from thresher.data.files.remote import is_remote
from thresher.data.files.streams import OpenStreams, Previews, RawFile
from thresher.data.formats.tables import arrow_batches as arrow
from thresher.data.formats.tables.spellings import spelling_of_texts
from thresher.data.formats.tables.table_rows import ColumnEncodings, ParserMaker, kinds_of
from thresher.data.formats.tables.where import Filter, with_filters
from thresher.data.inputs.arrays import is_missing
from thresher.data.labels import Domain
from thresher.data.layout import AnyLayout, Extension, Layout, SettledLayout, has_columns
from thresher.data.sources.parsed import ParsedSource, TextSource
from thresher.data.sources.reader import OpenOptions, RowsAsked
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.data.files.content import Watches

BATCH, CELLS = 1 << 16, 1 << 19
"""Maximum rows per chunk, and maximum cells unless a single row has more."""
CROSSED_ROWS = 1 << 10
"""Maximum rows per chunk with interactions, which make rows longer."""
_ROWS = 1000
"""Number of texts that show what a column holds"""
_MAGIC, END_OF_STREAM = b"ARROW1", b"\xff\xff\xff\xff\0\0\0\0"

Rows = Iterator[tuple[int, pa.RecordBatch, float | None]]
"""For each record batch: the row after it, the batch, and the share of the file read so far, if known."""


class TableHead(NamedTuple):
    """What a table file shows before it is read."""

    schema: pa.Schema
    in_order: bool
    """whether it is a stream, which is read from front to back"""
    rows: pa.RecordBatch | None
    """the first rows, a record batch of the columns that may be read; None if they were not looked at"""


def settle_arrow(
    layout: AnyLayout,
    schema: pa.Schema,
    name: str,
    asked: RowsAsked,
    head: pa.RecordBatch | None,
    later: Sequence[pa.Schema] = (),
) -> tuple[SettledLayout, ColumnEncodings]:
    """The layout, settled by a schema and those of `later` files if necessary, and how columns are read.

    `head` is a record batch of the first rows, or None.
    """
    found = layout
    if not has_columns(found):

        def texts_of(field: str) -> Any:
            if head is None or field not in head.schema.names:
                return ()
            texts = head.column(head.schema.names.index(field)).slice(0, _ROWS)
            return texts.view(arrow.as_bytes(texts.type)).to_pylist()

        # a model without columns that reads a table is told of it
        labelled = not asked.unlabelled or isinstance(layout, SettledLayout)
        found = by_schema(layout, [schema, *later], name, texts_of, labelled=labelled)
    used = found.unlabelled() if asked.unlabelled else found
    kinds, types = kinds_by(used, schema, name, asked.ids), dict(zip(schema.names, schema.types, strict=True))
    return found, with_filters(kinds, asked, types, name)


def kinds_by(layout: SettledLayout, schema: pa.Schema, name: str, ids: str = "") -> ColumnEncodings:
    """How the columns of a file are read; raises `DataError` unless they, and their types, fit the layout."""
    types = dict(zip(schema.names, schema.types, strict=True))
    for column, kind in layout.kind_of.items():
        if column in types and not arrow.fits(found := types[column], kind):
            how = f": {arrow.remedy_of(found) or 'convert it to numbers'}" if kind in arrow.NUMBERS else ""
            raise DataError(f"{name}: column '{column}' is {kind}, but has type {found} here{how}")
    kinds = kinds_of(layout, schema.names, name, arrow.guesses(schema), ids)
    words = (
        arrow.is_of_text(one) for one, what in zip(schema.types, kinds.what, strict=True) if what == LABEL
    )
    return kinds._replace(words=any(words))


def by_schema(
    layout: AnyLayout,
    schemas: Sequence[pa.Schema],
    name: str,
    texts_of: Callable[[str], Iterable[bytes | str | None]],
    unknown: str = CATEGORICAL,
    open_ended: bool = False,
    labelled: bool = True,
) -> SettledLayout:
    """The layout settled by the schema of the first file, and those of others.

    A column has the first of its types that says more than null; without any, its kind is `unknown`.
    `texts_of` gives some texts of a column. Raises `DataError` if the type of a column cannot be a feature.
    """
    types, (first, *later) = dict[str, pa.DataType](), schemas
    for field in chain.from_iterable(schemas):
        if pa.types.is_null(types.get(field.name, pa.null())):
            types[field.name] = field.type
    schema = pa.schema([field.with_type(types[field.name]) for field in first], first.metadata)
    kinds = zip(schema.types, arrow.guesses(schema), strict=True)
    guessed = [unknown if pa.types.is_null(one) else kind for one, kind in kinds]
    spelling = {
        field.name: arrow.spelling_of_type(field.type) or spelling_of_texts(texts_of(field.name))
        for field in schema
    }
    others = [one for further in later for one in further.names]
    found = settle(layout, schema.names, guessed, name, others, open_ended, spelling, labelled)
    for field, kind in zip(schema, found.kinds, strict=False):
        if not kind:
            what = f"column '{field.name}' has type {field.type}"
            fit = (CATEGORICAL, IGNORE) if arrow.is_written(field.type) else (IGNORE,)
            given, how = as_option_value([field.name], schema.names), arrow.remedy_of(field.type)
            use = " or ".join(mention(**{one: given}) for one in fit)
            raise DataError(f"{name}: {what}: use {use}{', or ' * bool(how)}{how}")
    return found


def open_table(
    names: list[str], layout: AnyLayout, previews: Previews, asked: RowsAsked
) -> tuple[SettledLayout, ParserMaker]:
    """The settled layout of files, and the maker of their parsers. Raises `DataError`."""
    files, found = list[ColumnEncodings](), layout
    heads = [_head_of(layout, name, asked.where, not k, previews) for k, name in enumerate(names)]
    schemas = [head.schema for head in heads]
    for name, head in zip(names, heads, strict=True):
        with read_from(name):
            found, kinds = settle_arrow(found, head.schema, name, asked, head.rows, schemas[1:])
            files.append(kinds)
    assert has_columns(found)
    return found, ParserMaker(arrow.BatchParser, files, heads)


@contextmanager
def read_from(name: str) -> Iterator[None]:
    """Turn errors while reading a file into a `DataError` that names it."""
    with name_errors(name):
        try:
            yield
        except (pa.ArrowException, MemoryError) as error:
            raise ValueError(str(error) or "it needs more memory than is available") from error


def most_rows(needed: list[str]) -> int:
    """Maximum rows per batch with the columns `needed`."""
    return max(1, min(BATCH, CELLS // max(1, len(needed))))


def count_rows(batches: Iterable[tuple[pa.RecordBatch, float | None]], needed: list[str]) -> Rows:
    """Batches of the columns `needed`, with the row after each."""
    end = 0
    for batch, part in batches:
        end += batch.num_rows
        yield end, batch.select(needed), part


def _head_of(layout: AnyLayout, name: str, where: str, first: bool, previews: Previews) -> TableHead:
    """What a file shows; if it is the first, with rows of the first row group that the filter allows.

    Rows have the columns that may be read; those of a remote file, texts and categories.
    """

    def look(streams: OpenStreams) -> TableHead:
        with read_from(name), _open(layout.format, name, streams) as (schema, in_order, rows_of):
            rows, types, far = None, dict(zip(schema.names, schema.types, strict=True)), is_remote(name)
            if not first or is_stream(name) or len(types) < len(schema):  # repeated names are refused later
                return TableHead(schema, in_order, None)
            if has_columns(layout):
                kinds = {column: kind for column, kind in layout.kind_of.items() if column in types}
            else:
                find, kinds = finder(schema.names), dict(zip(types, arrow.guesses(schema), strict=True))
                given = (CATEGORICAL, getattr(layout, "categorical", ())), (IGNORE, layout.ignore)
                kinds |= {
                    one: what for what, patterns in given for pattern in patterns for one in find(pattern)
                }
            unread = ("", *UNREAD)
            wanted = [
                one for one, kind in kinds.items() if kind == CATEGORICAL or not (far or kind in unread)
            ]
            if wanted:
                chosen = Filter(where, types, name) if where else None
                most = most_rows(wanted)
                rows = next((batch for _, batch, _ in rows_of(wanted, 0, chosen)), None)
                if rows is not None and rows.num_rows > most:  # which may be all of the file
                    rows = arrow.take_rows(rows, np.arange(most))
            return TableHead(schema, in_order, rows)

    found: TableHead = previews.once("table", name, look)
    return found


@contextmanager
def _open(
    form: str, name: str, streams: OpenStreams, begin: Any = lambda *_: None, in_order: bool | None = None
) -> Iterator[tuple[pa.Schema, bool, Callable[..., Rows]]]:
    """An open file: its schema, whether it is `in_order`, and what yields its rows.

    That takes the columns, the first row and a filter. If `in_order` is not known, the file is looked at, and
    a pipe is stored in `streams`, to be read on. `begin` takes a file with random access, which it may read,
    and returns what is told the bytes of another.
    """
    at_its_end = "cannot be read from standard input or a pipe: it is read from its end"
    once = is_stream(name)
    if form == "parquet":
        if once:
            raise DataError(f"a Parquet file {at_its_end}")
        with _random(name) as file:
            begin(file)
            with pq.ParquetFile(file, pre_buffer=is_remote(name)) as table:
                yield table.schema_arrow, False, partial(_parquet_rows, table, file)
        return
    if in_order is False:
        with _random(name) as file:
            begin(file)
            yield None, False, partial(_file_rows, file)
        return
    seen, last, watch = list[bytes](), bytearray(), begin()

    def see(view: memoryview) -> None:
        if once and in_order is None:
            seen.append(bytes(view))
        last.extend(view[-len(END_OF_STREAM) :])
        del last[: -len(END_OF_STREAM)]
        if watch is not None:
            watch(view)

    with RawFile(name, see, streams.get(name)) as raw:
        given = io.BufferedReader(raw)
        if not given.peek(len(_MAGIC)).startswith(_MAGIC):
            with pa.ipc.open_stream(given) as reader:
                yield reader.schema, True, partial(_stream_rows, reader, given, raw, size_of(name), last)
        elif once:
            raise DataError(
                f"an Arrow file {at_its_end}; write it as an Arrow stream (pyarrow.ipc.new_stream)"
            )
        else:
            with closing(raw.release()) as plain:
                file = pa.PythonFile(plain, mode="r")
                yield pa.ipc.open_file(file).schema, False, partial(_file_rows, file)
        if once and in_order is None:
            streams[name] = (raw.release(), b"".join(seen))


def _parquet_rows(
    table: pq.ParquetFile, file: object, needed: list[str], start: int, chosen: Filter | None
) -> Rows:
    """The rows of a Parquet file by row group, only the columns that are needed."""
    groups, first = table.metadata, 0
    counts = [groups.row_group(g).num_rows for g in range(groups.num_row_groups)]
    if sum(counts) != groups.num_rows:
        raise ValueError(f"its row groups have {sum(counts)} rows, not {groups.num_rows}")
    candidates: Container[int] = range(len(counts))
    if chosen:  # those whose statistics allow rows that pass
        import pyarrow.dataset as ds

        fragment = ds.ParquetFileFormat().make_fragment(file)
        candidates = {group.id for group in fragment.subset(chosen.expression()).row_groups}
    for g, count in enumerate(counts):
        at, first = first, first + count
        if first <= start or g not in candidates:
            continue
        for batch in table.iter_batches(most_rows(needed), [g], needed):
            at += batch.num_rows
            yield at, batch, at / max(1, groups.num_rows)
        if at != first:
            raise ValueError(f"row group {g} ends with row {at}, not {first}")


def _file_rows(file: object, needed: list[str], *_: object) -> Rows:
    """The rows of an Arrow IPC file, only the columns that are needed."""
    wanted = frozenset(needed)
    fields = [k for k, one in enumerate(pa.ipc.open_file(file).schema.names) if one in wanted]
    reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=fields))
    count = reader.num_record_batches
    return count_rows(
        ((arrow.sound(reader.get_batch(k), needed), (k + 1) / count) for k in range(count)), needed
    )


def _stream_rows(
    reader: pa.RecordBatchReader,
    given: Any,
    raw: RawFile,
    size: int | None,
    last: bytearray,
    needed: list[str],
    *_: object,
) -> Rows:
    """The rows of an Arrow IPC stream, which must have an end and nothing after it."""
    yield from count_rows(
        ((arrow.sound(batch, needed), raw.position / size if size else None) for batch in reader), needed
    )
    if given.read(1):
        raise ValueError("unexpected bytes after the end of the stream")
    if last != END_OF_STREAM:
        raise ValueError("the stream has no end mark, so its writer was not closed")


def _random(name: str) -> Any:
    """A file with random access for pyarrow. It is not memory-mapped, since it may be truncated meanwhile."""
    if is_remote(name):
        return pa.PythonFile(open_file(name, piece=1 << 16), mode="r")
    return pa.OSFile(name)


@dataclass
class BatchReader:
    """The batches of files, one after the other. Not safe for use by two threads at once."""

    blocks: Generator[arrow.TableBlock, None, None]

    def fill(self, *_: object) -> arrow.TableBlock | None:
        """The next batch; None after the last. Raises `DataError` for a bad file."""
        return next(self.blocks, None)

    def close(self) -> None:
        """Close the open file; `fill` must not be running."""
        self.blocks.close()


def blocks_of(
    names: list[str],
    rows: Callable[[int, list[str], int], AbstractContextManager[Rows]],
    files: Sequence[ColumnEncodings],
    start: StreamPosition | None,
    watches: Watches | None = None,
    sliced: Sequence[str] = (),
    size_of: Callable[[str], int | None] = lambda name: None,
) -> Generator[arrow.TableBlock, None, None]:
    """The batches from `start` on. `rows` opens a file, by number, of columns from a row on.

    `sliced` are columns that are wanted besides those that are read.
    """
    done, begins = 0, start or StreamPosition(0, 0, 0)
    for k, (name, kinds) in enumerate(zip(names, files, strict=True)):
        size, position = size_of(name) or 0, done
        read, wanted = zip(kinds.names, kinds.what, strict=True), kinds.side_columns(sliced)
        needed = [column for column, what in read if what not in UNREAD or column in wanted]
        if k >= begins.file:
            at = skipped = begins.offset if k == begins.file else 0
            most = min(most_rows(needed), CROSSED_ROWS if kinds.crosses else BATCH)
            with read_from(name), rows(k, needed, skipped) as whole:
                for end, batch, part in whole:
                    first = end - batch.num_rows
                    for begin in range(first, end, most):
                        piece = batch.slice(begin - first, most)
                        last = begin + piece.num_rows
                        if part is not None and last == end:
                            position = done + round(size * part)
                        if begin >= skipped:
                            so_far = watches.so_far() if watches else None
                            yield arrow.TableBlock(piece, k, at, last, position, begin - at, so_far)
                            at = last
        done += size


class TableSource(TextSource):
    """Table files as a `Source`; made by `open_source`."""

    counts_rows = True

    def _in_order(self) -> bool:
        return all(head.in_order for head in self._form.heads)

    @property
    def first_rows(self) -> pa.RecordBatch | None:
        """Rows that were looked at, in the columns that are read; None of a pipe."""
        rows, files = self._form.heads[0].rows, self._form.files[0]
        read = {name for name, what in zip(files.names, files.what, strict=True) if what not in UNREAD}
        return rows and rows.select([name for name in rows.schema.names if name in read])

    def cuts(self, file: int, start: int) -> Iterator[int]:
        """The first rows of the row groups of a Parquet file after row `start`; none with a filter.

        With a filter, the rows that it leaves out are counted with the next that pass, in another row group.
        """
        if self.layout.format != "parquet" or self.where:
            return
        with read_from(name := self.names[file]), _random(name) as bytes_of:
            groups, first = pq.read_metadata(bytes_of), 0
        for g in range(groups.num_row_groups):
            if first > start:
                yield first
            first += groups.row_group(g).num_rows

    def blocks(self, start: StreamPosition | None, watches: Watches | None = None) -> BatchReader:
        """A reader of the batches of a pass."""

        @contextmanager
        def rows(file: int, needed: list[str], start: int) -> Iterator[Rows]:
            begin = partial(watches.open, file) if watches else lambda *_: None
            form, name, opened = self.layout.format, self.names[file], self.previews.opened
            with _open(form, name, opened, begin, self._form.heads[file].in_order) as (*_, rows_of):
                yield rows_of(needed, start, self._form.files[file].where)

        given = self.names, rows, self._form.files, start, watches, self.sliced
        return BatchReader(blocks_of(*given, size_of))


_LARGE, _LARGEST = pa.decimal256(76, 0), 10**76
UNREADABLE = pa.ArrowException, OverflowError, UnicodeEncodeError
"""Errors of pyarrow for values that it cannot convert"""
_CAST = ", which pyarrow cannot read: cast it, for example to float64, or leave it out"
NAME = "the table"
"""Its name in messages."""
_FEW = 1000
"""Rows that are read sooner than a thread has started."""


def reader_of(table: Any) -> pa.RecordBatchReader:
    """The rows of a table as batches. The index of a pandas table is not read.

    `DataError` names the column that cannot be read, if pandas or polars have made the table.
    """
    is_frame = hasattr(table, "iloc")
    names = [*table.columns] if hasattr(table, "dtypes") else []
    for name, kind in zip(names, table.dtypes if names else (), strict=False):
        if str(kind) == "Object":  # polars would give Python objects by their addresses
            how = "make it text with .map_elements(str, return_dtype=pl.String), or drop it"
            raise DataError(f"{NAME}: column '{name}' has type Object: {how}")

    def read(some: Any) -> pa.RecordBatchReader:
        return _of_frame(some).to_reader() if is_frame else pa.RecordBatchReader.from_stream(some)

    try:
        return read(table)
    except UNREADABLE as error:
        for k, name in enumerate(names):
            one = table.iloc[:, [k]] if is_frame else table.select([name])
            try:
                read(one)
            except UNREADABLE as its_error:
                values = one.iloc[:, 0] if is_frame else table[name]
                raise fault_of(f"{NAME}: column", name, values, its_error) from its_error
        raise DataError(f"{NAME}: a column has a type{_CAST}") from error


def fault_of(what: str, name: Any, values: Any, error: Exception) -> DataError:
    """Why the column `name` of a table or of rows cannot be read: `error`, one of `UNREADABLE`."""
    where = f"{what} {quote_bytes(str(name).encode('utf-8', 'backslashreplace'))}"
    if isinstance(error, UnicodeEncodeError):
        row = next((k for k, one in enumerate(values, 1) if isinstance(one, str) and one == error.object), 0)
        text = quote_bytes(error.object.encode("utf-8", "backslashreplace"))
        where += f", row {row}" if row else ""
        return DataError(f"{where}: {text} is not valid Unicode (it holds a lone surrogate): correct it")
    kind = getattr(values, "dtype", None)
    if kind is not None and getattr(kind, "kind", "") != "O":
        return DataError(f"{where} has type {kind}{_CAST}")
    return DataError(f"{where} is not all text or all numbers: {'; '.join(map(str, error.args))}")


def _of_frame(frame: Any) -> pa.Table:
    """A pandas table as one of Arrow. Columns of one type of NumPy's numbers are taken out together.

    pandas and pyarrow take 0.2 ms for each column that is taken out alone.
    """
    alike, columns = defaultdict[Any, list[int]](list), dict[int, pa.Array]()
    for place, kind in enumerate(frame.dtypes):
        values = getattr(getattr(kind, "categories", None), "dtype", kind)
        if type(values).__name__ in ("IntervalDtype", "PeriodDtype"):  # as pandas writes them to CSV
            column = frame.iloc[:, place]
            texts = (
                column.map(str, na_action="ignore") if values is kind else column.cat.rename_categories(str)
            )
            columns[place] = pa.array(texts)
            continue
        plain = isinstance(kind, np.dtype) and kind.kind in "iufb" and kind.itemsize <= 8
        alike[kind if plain else None].append(place)
    for kind, places in alike.items():
        some = frame.iloc[:, places]
        if kind is None:
            try:
                found = list(pa.Table.from_pandas(some, preserve_index=False).columns)
            except OverflowError:
                found = [column_of(some.iloc[:, k]) for k in range(some.shape[1])]
        else:
            found = [pa.array(one, from_pandas=True) for one in np.asfortranarray(some.to_numpy()).T]
        columns |= zip(places, found, strict=True)
    return pa.table([columns[k] for k in range(len(columns))], [*map(str, frame.columns)])


def column_of(values: Iterable[Any], nan_is_missing: bool | None = None) -> pa.Array:
    """Values as an Arrow array; whole numbers beyond 64 bits as decimals. Raises the errors of pyarrow.

    NaN is missing in columns of pandas, unless `nan_is_missing` says otherwise.
    """
    try:
        return pa.array(values, from_pandas=nan_is_missing)
    except (OverflowError, pa.ArrowInvalid):
        given = [None if is_missing(value) else value for value in values]
        found = [value for value in given if value is not None]
        if all(isinstance(value, str) for value in found):
            return pa.array(given)
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
            raise
        if all(isinstance(value, int) and abs(value) < _LARGEST for value in found):
            return pa.array([None if value is None else Decimal(value) for value in given], _LARGE)
        return pa.array([None if value is None else float(value) for value in given], pa.float64())


class StreamSource(ParsedSource):
    """The rows of `given`, which has ``__arrow_c_stream__``: pandas, polars, pyarrow, DuckDB.

    `layout` sets the kinds of columns; the other arguments and errors are those of `open_source`. A
    ``pyarrow.RecordBatchReader`` can be read only once; for other objects, each pass requests a new stream.
    Nothing is cached.
    """

    def __init__(self, given: Any, domain: str | Domain = "binary", **options: Unpack[OpenOptions]) -> None:
        how: dict[str, Any] = {**options}
        layout: AnyLayout | None = how.pop("layout", None)
        if isinstance(layout, Layout) and not isinstance(layout, Extension) and layout.missing:
            raise DataError(
                f"{NAME}: {mention('missing')} is only for csv and tsv; replace these cells by None"
            )
        self._given, self._once = given, isinstance(given, pa.RecordBatchReader)
        self._first = reader = reader_of(given)
        schema = reader.schema
        with read_from(NAME):
            self.first_rows = next(reader, None)
        unnamed = replace(layout or AnyLayout(), format="")  # data read later may have any format
        asked = RowsAsked(**{name: how.pop(name) for name in RowsAsked._fields if name in how})
        settled_by, kinds = settle_arrow(unnamed, schema, NAME, asked, self.first_rows)
        form = ParserMaker(arrow.BatchParser, [kinds])
        super().__init__([NAME], settled_by, form, layout, asked, domain=domain, **how)
        self.rereadable = not self._once
        counted = isinstance(given, pa.Table) or hasattr(given, "iloc")  # others may run a query to count
        self.is_small = counted and len(given) <= _FEW

    def _nothing(self) -> str:
        hint = "; a reader can be read only once, so make a table of it first" if self._once else ""
        return super()._nothing() + hint

    def blocks(self, start: StreamPosition | None, watches: Watches | None = None) -> BatchReader:
        """A reader of the batches of a pass."""

        def rows(file: int, needed: list[str], start: int) -> AbstractContextManager[Rows]:
            ahead = [] if self._first is None or self.first_rows is None else [self.first_rows]
            batches = chain(ahead, self._first or reader_of(self._given))
            self._first = self.first_rows = None
            return nullcontext(count_rows(((batch, None) for batch in batches), needed))

        return BatchReader(blocks_of(self.names, rows, self._form.files, start, sliced=self.sliced))
