"""Comma and tab separated values: the Python side of their parser.

The first line names the columns, unless the layout has no header; then they are called 1, 2 and so on. In
CSV, a cell may be quoted, with ``""`` for a quote; it ends on its line, unless the layout allows quoted line
breaks. In TSV, quotes have no meaning. A cell is missing if it is empty, blank or one of the layout's
`missing` cells: a missing number or category adds no feature; a missing label or
weight makes the row bad. Blank lines and headers are not examples, nor are lines that repeat the header, as
in the middle of files that were joined. In a table of one column, a blank line is a row whose cell is
missing: other programs write null so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import StreamPosition
from thresher.data.columns import (
    CATEGORICAL,
    EMPTY,
    LABEL,
    MOST_COLUMNS,
    NUMBERS,
    NUMERIC,
    TEXT,
    settle,
    too_many,
)
from thresher.data.errors import BadLine, DataError, OddFileError, shown
from thresher.data.features.crossing import room_for_spans
from thresher.data.features.ngrams import letters, room_for, rooms_for
from thresher.data.files.blocks import LINES, MARK, PAD, Block, BlockReader, check_is_text
from thresher.data.files.paths import called, is_stream
from thresher.data.files.streams import LONGEST_HEAD, OpenStreams, head_of
from thresher.data.formats.choosing import CSV_OF_TABS
from thresher.data.formats.line_status import (
    AFTER_QUOTE,
    AT,
    BLANKS,
    LABEL_NUMBER,
    OUTCOMES,
    TOO_FEW,
    TOO_MANY,
    UNCLOSED,
)
from thresher.data.formats.line_status import LINES as LINES_READ
from thresher.data.formats.line_status import NUMBER as NOT_A_NUMBER
from thresher.data.formats.lines.parse_loop import NO_NUMBERS, Numbers, bad_table, gather, line_at, too_long
from thresher.data.formats.tables import delimited_rows as rows
from thresher.data.formats.tables.spellings import Observed, hint_of_numbers, with_usual
from thresher.data.formats.tables.table_rows import (
    GAPPED,
    NOT_FINITE,
    ColumnEncodings,
    cell_filter,
    check_columns_of_labels,
    expected_of,
    kinds_of,
)
from thresher.data.labels import LISTED, hint_of_words
from thresher.data.layout import AnyLayout, SettledLayout, has_columns
from thresher.data.report import HEADER, LATE, lines_not_utf8
from thresher.data.sources.parsed import TextSource
from thresher.data.sources.reader import Parsed, Reading
from thresher.data.text.numbers import NUMBER, OVERFLOW, exact_number, means_missing
from thresher.data.text.sorting import BUCKETS, FEW, ROW_ROOM
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.data.files.content import Watches

LONGEST_CELL = 1 << 20
"""Maximum bytes of a quoted cell with line breaks."""
HEAD = 1 << 20
"""Bytes of text that are read to settle the columns."""
_QUOTE, _NEWLINE = b'"\n'
_SAMPLE = 100
"""Rows that show what a column of a later file holds"""
_WITH_QUOTES = f"quotes have no meaning in TSV: read it with {CSV_OF_TABS}"
_QUOTED = f"cells are in quotes: read them with {mention(quoting=True)}"
_PLAIN_ROWS = 1000
"""Rows that show whether quotes are parts of cells"""
_DELIMITING = b",;\t|"
_MARKED = r"^\xef\xbb\xbf"
"""The byte order mark at the beginning of a line, for sed"""
_EXCEL = re.compile(rb'"?sep=(.)"?', re.IGNORECASE)
_IN_QUOTES = re.compile(rb'"[^"]*"')


class Dialect(NamedTuple):
    """How cells are written."""

    delimiter: bytes
    quotes: bool
    """whether cells may be quoted"""
    missing: frozenset[bytes]
    """cells that mean a missing value"""
    span: int
    """maximum bytes of a quoted cell with line breaks; 0 if they are not allowed"""

    def compiled(self) -> tuple[int, NDArray[np.uint8], int | None]:
        """The dialect for compiled code: see `delimited_rows`."""
        listed = b"".join(bytes([len(one)]) + one for one in sorted(self.missing))
        return self.delimiter[0], np.array([*listed], np.uint8), self.span or None


def dialect_of(layout: AnyLayout) -> Dialect:
    """The dialect of files with this layout."""
    return Dialect(
        layout.delimited_by.encode(),
        layout.format == "csv" and layout.quoting,
        frozenset(one.encode() for one in layout.missing),
        LONGEST_CELL if layout.quoted_newlines else 0,
    )


@dataclass(frozen=True)
class DelimitedFormat:
    """Makes the parsers of delimited files."""

    files: list[ColumnEncodings]
    headers: list[bytes]
    """the header line of each file, see `as_header`; empty if there is none that could be repeated"""
    may_be_words: bool = False
    """whether labels look like words"""

    def __call__(self, layout: SettledLayout, reading: Reading) -> DelimitedParser:
        """Make a parser for one thread."""
        return DelimitedParser(self, layout, reading)


class _FileHead(NamedTuple):
    """The beginning of a file."""

    name: str
    names: list[str]
    """of its columns"""
    first: bytes
    """its first line"""
    lines: list[bytes]
    """its first rows"""
    header: bytes
    """see `DelimitedFormat.headers`"""


def open_table(
    names: list[str],
    layout: AnyLayout,
    streams: OpenStreams,
    unlabelled: bool,
    ids: str = "",
    live: bool = False,
    marked: str = "",
) -> tuple[SettledLayout, DelimitedFormat]:
    """The settled layout of files, and the maker of their parsers.

    The beginning of the first file settles the kinds of columns, or that of the next if a column is empty
    there. If `live`, a stream is read up to its first row. Raises `DataError`.
    """
    files, headers, dialect = list[ColumnEncodings](), list[bytes](), dialect_of(layout)
    heads, guesses, spelling, may_be_words = list[_FileHead](), list[str](), list[str](), False
    columns = list[list[bytes]]()
    for name in names:
        text = beginning(name, streams, live, dialect if dialect.span else None)
        head = _head(text, name, layout, dialect)
        if not heads and not has_columns(layout):
            columns = _columns_in(head, dialect)
            guesses, spelling = _guesses(columns)
        if heads and EMPTY in guesses:
            guesses, spelling = _decided(guesses, spelling, heads[0].names, head, dialect)
        heads.append(head._replace(lines=head.lines[:_SAMPLE]))
    found = layout
    if not has_columns(found):
        others = [column for head in heads[1:] for column in head.names] if layout.header else []
        known = dict(zip(heads[0].names, spelling, strict=True))
        found = settle(layout, heads[0].names, guesses, names[0], others, spelling=known)
        first = dict(zip(heads[0].names, columns, strict=True))
        found = with_usual(found, layout, lambda name: first.get(name, ()))
        may_be_words = (LABEL, CATEGORICAL) in zip(found.kinds, guesses, strict=False)
    used = found.unlabelled() if unlabelled else found
    for head in heads:
        kinds = _kinds(used, head, dialect, ids)
        files.append(kinds._replace(marks=cell_filter(marked, kinds.names, head.name, layout.missing)))
        headers.append(head.header)
    return found, DelimitedFormat(files, headers, may_be_words)


def form_of(
    text: bytes, layout: SettledLayout, unlabelled: bool, ids: str = "", name: str = "the text"
) -> DelimitedFormat:
    """The maker of parsers for a text in memory, called `name` in messages. Raises `DataError`."""
    dialect = dialect_of(layout)
    head = _head(text[:HEAD], name, layout, dialect)
    used = layout.unlabelled() if unlabelled else layout
    return DelimitedFormat([_kinds(used, head, dialect, ids)], [head.header])


def _kinds(layout: SettledLayout, head: _FileHead, dialect: Dialect, ids: str) -> ColumnEncodings:
    columns = head.names if layout.header else _positions(layout, len(head.names), head.name)
    return kinds_of(layout, columns, head.name, _guesses(_columns_in(head, dialect))[0], ids)


def _head(head: bytes, name: str, layout: AnyLayout, dialect: Dialect) -> _FileHead:
    """The beginning of a file, without lines that repeat its header."""
    spanning = dialect if dialect.span else None
    lines, start = lines_of(head, name, spanning), _MARKED if head.startswith(MARK) else "^"
    first = lines[0]
    if layout.header and b"\0" in first:
        raise DataError(f"{name}: the header line, {shown(first)}, contains a NUL")
    if len(lines) == 1 and b"\r" in _IN_QUOTES.sub(b"", first):
        raise OddFileError(f"{name}: its lines end with \\r alone: convert them with tr '\\r' '\\n'")
    if (count := first.count(dialect.delimiter) + 1) > MOST_COLUMNS:
        raise DataError(f"{name}: {too_many(count)}")
    if found := _EXCEL.fullmatch(first):
        delimiter = found[1].decode("ascii", "replace").replace("\t", r"\t")
        raise OddFileError(
            f"{name}: its first line, {shown(first)}, is for Excel: remove it (sed 1d) and use"
            f" {mention(delimiter=delimiter)}"
        )
    if not has_columns(layout):
        _check_delimiter(lines, dialect, name, start)
    cells = cells_of(first, dialect)
    if layout.header:
        _check_closed(lines, dialect, name)
    if layout.header and len(lines) > 1 and not has_columns(layout):
        _check_row_names(len(cells), lines[1:], dialect, name, start)
    if not layout.header:
        return _FileHead(name, [str(k + 1) for k in range(len(cells))], first, lines, b"")
    names = [_text(cell) for cell in cells]
    known = layout.columns if has_columns(layout) else ()
    quoted = next(
        (name for name in names if len(name) > 1 and name[0] == name[-1] == '"' and name not in known), None
    )
    if layout.format == "tsv" and quoted is not None:
        raise DataError(f"{name}: the name of a column is in quotes, {quoted}; {_WITH_QUOTES}")
    header = as_header(first) if _can_repeat(cells) and b"\n" not in first else b""
    rows_only = [line for line in lines[1:] if as_header(line) != header]
    return _FileHead(name, names, first, rows_only, header)


def _check_closed(lines: list[bytes], dialect: Dialect, file: str) -> None:
    """Raise `DataError` if the header has a cell that begins with a quote and does not end with one."""
    first, end = lines[0], dialect.delimiter
    if len(cells_of(first + end, dialect)) != len(cells_of(first, dialect)):
        return
    counts = [len(cells_of(line, dialect._replace(quotes=False))) for line in (*lines[:2], lines[-1])]
    is_part = dialect.span or len({*counts}) == 1
    remedy = (
        f"use {mention(quoting=False)} if it is part of a name"
        if is_part
        else f"use {mention(quoted_newlines=True)}"
    )
    raise DataError(f"{file}: the header line, {shown(first)}, has a quote that is not closed; {remedy}")


def as_header(line: bytes) -> bytes:
    """A line as headers are compared: without a byte order mark and quotes, in small letters."""
    return line.removeprefix(MARK).replace(b'"', b"").lower()


def _can_repeat(cells: list[bytes]) -> bool:
    """Whether a line of these cells is surely a header: names alone, or names and consecutive numbers."""
    numbers = [cell for cell in cells if NUMBER.fullmatch(cell.strip())]
    if not numbers:
        return len(cells) > 1
    first = int(numbers[0]) if numbers[0].isdigit() else -1
    counted = numbers == [b"%d" % (first + k) for k in range(len(numbers))]
    return counted and 2 < len(numbers) < len(cells)


def _check_row_names(columns: int, rows: list[bytes], dialect: Dialect, name: str, start: str) -> None:
    """Raise `DataError` if all rows have one cell more than the header, as R writes names of rows.

    `start` matches what is before the header.
    """
    cells = [cells_of(row, dialect) for row in rows[:_SAMPLE]]
    if any(len(cells_of(row, dialect._replace(quotes=True))) == columns for row in rows[:_SAMPLE]):
        return
    if columns > 1 and all(len(row) == columns + 1 for row in cells) and any(row[-1] for row in cells):
        mark = chr(dialect.delimiter[0]).replace("\t", "\\t")
        raise OddFileError(
            f"{name}: each row has one cell more than the header, as R writes row names: write the file with"
            f" row.names = FALSE, or name that column (sed '1s/{start}/row{mark}/') and use"
            f" {mention(ignore='row')}"
        )


def _check_delimiter(lines: list[bytes], dialect: Dialect, name: str, start: str) -> None:
    """Raise `DataError` if the first line has a single cell but contains another common delimiter.

    `start` matches what is before it.
    """
    line = lines[0]
    if dialect.delimiter in line:
        return
    if found := [bytes([byte]) for byte in _DELIMITING if byte in line]:
        most = max(found, key=line.count).decode().replace("\t", "\\t")
        raise DataError(
            f"{name}: one column, {shown(line)}: is the delimiter '{most}'? ({mention(delimiter=most)})"
        )
    if b" " in line.strip() and b":" not in line:
        read = dialect._replace(delimiter=b" ", quotes=True, span=0)
        _check_blanks(lines[: _SAMPLE + 1], read, name, start)


def _check_blanks(lines: list[bytes], read: Dialect, name: str, start: str) -> None:
    """Raise `DataError` if columns are separated by blanks; with `read`, each blank separates two cells."""
    cells, words = [cells_of(line, read) for line in lines], [len(line.split()) for line in lines]
    first, *others = map(len, cells)
    begin, single = f"{name}: one column, {shown(lines[0])}", others and all(map(all, cells))
    if single and {*others} == {first}:
        raise DataError(f"{begin}: is the delimiter a blank? ({mention(delimiter=' ')})")
    if single and {*others} == {first + 1}:
        raise DataError(
            f"{begin}: its columns are separated by blanks, and each row has one cell more than the header,"
            f" as R writes row names: name that column (sed '1s/{start}/row /') and use"
            f" {mention(delimiter=' ', ignore='row')}"
        )
    if len({*words}) == 1 or words[0] > 2 or b"  " in lines[0]:
        raise DataError(
            f"{begin}: if its columns are separated by blanks, replace these (awk '{{$1=$1}}1' OFS=,)"
        )


def beginning(name: str, streams: OpenStreams, live: bool, spanning: Dialect | None = None) -> bytes:
    """The beginning of a file: `HEAD` bytes, or if `live` the first row of a stream."""

    def first(head: bytes) -> int:
        check_is_text(head, name)
        padded = np.frombuffer(head + bytes(PAD), np.uint8)
        at = len(MARK) if head.startswith(MARK) else 0
        while at < len(head):
            end = _row_end(padded, at, len(head), spanning, False) if spanning else head.find(b"\n", at) + 1
            if end <= at or head[at:end] not in (b"\n", b"\r\n"):
                return end if end > at else 0
            at = end
        return 0

    return head_of(name, HEAD, streams, first if live and is_stream(name) else None)


def lines_of(head: bytes, name: str, spanning: Dialect | None = None) -> list[bytes]:
    """The non-blank whole lines at the beginning of a file; with `spanning`, rows of that dialect."""
    check_is_text(head, name)
    if not head:
        raise DataError(f"{called(name)}: empty, no examples")
    text = head.removeprefix(MARK)
    if len(head) >= LONGEST_HEAD and b"\n" not in text.lstrip(b"\r\n"):
        raise DataError(f"{name}: its first line is longer than {LONGEST_HEAD >> 20} MB")
    lines = _rows(text, spanning, len(head) < HEAD) if spanning else text.split(b"\n")
    lines = lines[:-1] if len(head) >= HEAD and len(lines) > 1 else lines
    found = [line.removesuffix(b"\r") for line in lines]
    found = [line for line in found if line]
    if not found:
        raise DataError(f"{name}: no examples, only blank lines")
    return found


def _rows(text: bytes, dialect: Dialect, whole: bool) -> list[bytes]:
    """The rows of a text, without line ends; only complete ones if it is not the `whole` file."""
    text += b"\n" if whole and not text.endswith(b"\n") else b""
    padded = np.frombuffer(text + bytes(PAD), np.uint8)
    found, at, end = list[bytes](), -1, 0
    while at < end < len(text):
        at, end = end, _row_end(padded, end, len(text), dialect, whole or not found)
        found += [text[at:end].removesuffix(b"\n")] if end > at else []
    return found


def _row_end(text: NDArray[np.uint8], at: int, size: int, dialect: Dialect, final: bool = True) -> int:
    """The end of the row at `at` in a padded text; `at` itself if that depends on bytes after `size`."""
    return int(rows.whole_rows(text, at, size, dialect.delimiter[0], dialect.span, final, 1))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _positions(layout: SettledLayout, count: int, name: str) -> list[str]:
    """The columns of a file without a header; absent columns may be missing."""
    wanted = [c for c, kind in zip(layout.columns, layout.kinds, strict=True) if kind != "absent"]
    if count not in (len(layout.columns), len(wanted)):
        columns = "column" if count == 1 else "columns"
        raise DataError(f"{name}: {count} {columns}, but the training data had {len(layout.columns)}")
    return list(layout.columns) if count == len(layout.columns) else wanted


def cells_of(line: bytes, dialect: Dialect, most: int = MOST_COLUMNS + 1) -> list[bytes]:
    """The first cells of one row, at most `most`, unquoted."""
    delimiter = dialect.delimiter
    if not dialect.quotes or b'"' not in line:
        return line.split(delimiter, most)[:most]
    cells, at = list[bytes](), 0
    while at <= len(line) and len(cells) < most:
        if line[at : at + 1] != b'"':
            end = line.find(delimiter, at)
            end = len(line) if end < 0 else end
            cells.append(line[at:end])
        else:
            end = at + 1
            while (end := line.find(b'"', end)) >= 0 and line[end + 1 : end + 2] == b'"':
                end += 2
            end = len(line) if end < 0 else end
            cells.append(line[at + 1 : end].replace(b'""', b'"'))
            end += 1
        at = end + 1
    return cells


def _decided(
    guesses: list[str], spelling: list[str], names: list[str], head: _FileHead, dialect: Dialect
) -> tuple[list[str], list[str]]:
    """The guesses for the columns `names`, with those of the next file for columns that were empty."""
    found = dict(zip(head.names, zip(*_guesses(_columns_in(head, dialect)), strict=True), strict=True))
    pairs = [
        found.get(name, (kind, what)) if kind == EMPTY else (kind, what)
        for name, kind, what in zip(names, guesses, spelling, strict=True)
    ]
    return [kind for kind, _ in pairs], [what for _, what in pairs]


def _columns_in(head: _FileHead, dialect: Dialect) -> list[list[bytes]]:
    rows = [[] if b"\0" in line else cells_of(line, dialect) for line in head.lines]
    whole = [cells for cells in rows if len(cells) == len(head.names)]
    missing = dialect.missing
    columns = zip(*whole, strict=True) if whole else ((),) * len(head.names)
    return [[cell for cell in one if cell.strip() and cell not in missing] for one in columns]


def _guesses(columns: list[list[bytes]]) -> tuple[list[str], list[str]]:
    """The guessed kinds of columns, and what their values are, given their first cells.

    Columns are numeric if all cells are numbers or missing, empty if all are missing. Without any row they
    are categorical.
    """
    seen = [Observed() for _ in columns]
    for one, cells in zip(seen, columns, strict=True):
        one.look_at(dict.fromkeys(cells))
    spelling = [one.spelling for one in seen]
    if not any(one.count for one in seen):
        return [CATEGORICAL] * len(columns), spelling
    kinds = (NUMERIC if one.numeric else CATEGORICAL for one in seen)
    return [kind if one.count else EMPTY for kind, one in zip(kinds, seen, strict=True)], spelling


class DelimitedParser:
    """Parses blocks of delimited lines into chunks."""

    def __init__(self, form: DelimitedFormat, layout: SettledLayout, reading: Reading) -> None:
        self._layout = layout
        self._domain = check_columns_of_labels(reading.domain, layout)
        self._files = [one.of_cells(words=bool(self._domain.words)) for one in form.files]
        self._headers = form.headers
        if self._domain.kind == LISTED and not self._domain.open:
            raise DataError(
                f"{layout.format}: lists of labels need a column of lists (jsonl, parquet or arrow)"
            )
        self._dialect = dialect_of(layout)
        self._compiled_dialect = self._dialect.compiled()
        self._on_error, self._arenas = reading.on_error, reading.arenas
        self._reading, self._spans = reading, room_for_spans()
        self._bad = bad_table(reading.on_error)
        self.room = np.zeros(0, np.uint8)

    def parse(self, block: Block) -> Parsed:
        """Parse the examples of a block into arrays of an arena."""
        if block.kind != LINES:
            return too_long(block, self._arenas, self._on_error)
        kinds, text = self._files[block.file], block.text
        grams, more = None, 0
        if TEXT in kinds.what:
            code = kinds.grams.code()
            grams = (code, letters(kinds.grams.tokens), *rooms_for(block.size))
            more = room_for(block.size, code)
        most, width = block.size // min(len(kinds.names), 2) + 1, self._domain.width
        if width:  # then it pays to count the lines
            most = int(np.count_nonzero(text[: block.size] == _NEWLINE)) + 1
        columns = self._arenas.columns(most, block.size + 4 * len(kinds.codes) + 16 + more, width)
        state = np.zeros(rows.ALL_COUNTERS, np.int64)
        state[rows.HAS_NUL] = block.has_nul
        at, blank = block.begin, self._layout.header and block.offset == 0
        while blank and at < block.size:
            line = self._row_at(block, at)
            at += len(line) + 1
            state[rows.BREAKS] += line.count(b"\n")
            state[LINES_READ] += 1 + line.count(b"\n")
            state[BLANKS] += 1
            blank = not line.removesuffix(b"\r")
        state[AT] = at
        begin = int(state[AT])
        room, extra = self._room_for(block), kinds.extra(self._reading.naming, self._spans)
        first_at = np.full(len(kinds.codes) + 1, -1, np.int64)
        header = np.frombuffer(self._headers[block.file], np.uint8)
        # Scratch space for `ascending`; the sort for long rows is compiled only if a row can be long.
        most = len(kinds.codes) + int(np.count_nonzero(kinds.codes == GAPPED))
        few = most <= FEW and TEXT not in kinds.what and extra[0] is None
        rooms = np.empty(2 * ROW_ROOM, np.uint64), np.empty(ROW_ROOM, np.float32)
        rest = (
            (*kinds.compiled, first_at, header),
            self._compiled_dialect,
            room,
            (*rooms, None if few else np.empty(BUCKETS, np.uint64)),
            grams,
            kinds.mask,
            self._domain.code(),
            state,
            self._bad,
        )
        parsed = gather(
            lambda columns, exact: rows.parse_delimited(text, block.size, columns, *rest, exact, extra),
            lambda exact: _with(exact, self._row_at(block, int(state[AT])), state),
            lambda *entry: self._bad_line(block, *entry),
            lambda start: self._row_at(block, start),
            *(state, self._bad, columns, self._reading),
        )
        self._reading.take_names(kinds.names)
        breaks = int(state[rows.BREAKS])
        tally = parsed.tally._replace(lines=parsed.tally.lines - breaks)
        noticed = (*kinds.noticed, *self._noticed(block, kinds, first_at), *lines_not_utf8(block))
        cells = self._cells(block, begin, kinds, [*kinds.beside, *self._reading.sliced])
        ids, sliced = kinds.ids_of(cells[: len(kinds.beside)]), cells[len(kinds.beside) :]
        chunk = kinds.completed(parsed.chunk)
        parsed = parsed._replace(chunk=chunk, tally=tally, uncounted=breaks, noticed=noticed)
        return parsed._replace(ids=ids, cells=sliced)

    def _noticed(self, block: Block, kinds: ColumnEncodings, first_at: NDArray[np.int64]) -> list[Any]:
        """What the rows that begin at `first_at` show: values in empty columns, and a repeated header."""
        if first_at.max() < 0:
            return []
        found = list[tuple[int, str, str, str]]()
        for c in np.flatnonzero(first_at >= 0).tolist():
            start = int(first_at[c])
            line = int(np.count_nonzero(block.text[block.begin : start] == _NEWLINE)) + 1
            if c == len(kinds.names):
                found.append((line, HEADER, "", ""))
                continue
            cell = cells_of(self._row_at(block, start).removesuffix(b"\r"), self._dialect)[c].strip()
            found.append((line, LATE, kinds.names[c], NUMERIC if NUMBER.fullmatch(cell) else CATEGORICAL))
        found.sort(key=lambda one: one[0])
        return [(what, name, line, kind) for line, what, name, kind in found]

    def _cells(
        self, block: Block, begin: int, kinds: ColumnEncodings, columns: Sequence[str]
    ) -> list[list[str]]:
        """For each of these columns, its cells in the rows from `begin` on; empty where there is none."""
        if not columns:
            return []
        none, header, single = MOST_COLUMNS + 1, self._headers[block.file] or None, len(kinds.names) == 1
        places = [kinds.names.index(name) if name in kinds.names else none for name in columns]
        most, found = max([at for at in places if at < none], default=0) + 1, [list[str]() for _ in columns]
        pairs = [*zip(places, found, strict=True)]
        first = () if header is None else (header[:1], header[:1].upper(), MARK[:1], b'"')
        for row in self._rows(block, begin):
            bare = row.removesuffix(b"\r")
            if (bare or single) and not (bare[:1] in first and as_header(bare) == header):  # quicker
                cells = cells_of(bare, self._dialect, most)
                for at, texts in pairs:
                    texts.append(_text(cells[at]) if at < len(cells) else "")
        return found

    def _rows(self, block: Block, at: int) -> Iterator[bytes]:
        if not self._dialect.span:
            yield from block.text[at : block.size].tobytes().split(b"\n")[:-1]
            return
        while at < block.size:
            row = self._row_at(block, at)
            at += len(row) + 1
            yield row

    def _row_at(self, block: Block, start: int) -> bytes:
        if not self._dialect.span:
            return line_at(block.text, start)
        end = _row_end(block.text, start, block.size, self._dialect)
        return block.text[start:end].tobytes().removesuffix(b"\n")

    def _room_for(self, block: Block) -> NDArray[np.uint8] | None:
        """Scratch space for a quoted cell: empty if the block has no quote, None if the format has none."""
        if not self._dialect.quotes:
            return None
        if not (block.text[: block.size] == _QUOTE).any():
            return self.room[:0]
        if len(self.room) < block.size + PAD:
            self.room = np.empty(block.size + PAD, np.uint8)
        return self.room

    def _remedy_of_quotes(self, block: Block, start: int, kinds: ColumnEncodings) -> str:
        """What to do about the row at `start`, in which a cell begins with a quote and does not end with one.

        Either the cell goes on in the next lines, or the quote is part of the cell.
        """
        plain = self._dialect._replace(quotes=False, span=0)
        spanned = self._dialect._replace(span=LONGEST_CELL)
        row = block.text[start : _row_end(block.text, start, block.size, spanned)].tobytes()
        pieces, whole = row.splitlines(), row.removesuffix(b"\n").removesuffix(b"\r")
        goes_on = len(pieces) > 1 and _fits(cells_of(whole, spanned), kinds) and not self._dialect.span
        if goes_on and not all(_fits(cells_of(piece, plain), kinds) for piece in pieces):
            return f"the cell contains a line break: use {mention(quoted_newlines=True)}"
        first = block.text[block.begin : min(block.size, HEAD)].tobytes().splitlines()[:_PLAIN_ROWS]
        rows = [line for line in first + pieces if line and as_header(line) != self._headers[block.file]]
        if all(len(cells_of(line, plain)) == len(kinds.names) for line in rows):
            instead = f" in place of {mention('quoted_newlines')}" if self._dialect.span else ""
            return f"the quote is part of the cell: use {mention(quoting=False)}{instead}"
        return (
            "write a quote inside a cell as two, in quotes, or leave out such lines with"
            f" {mention(on_error='skip')}"
        )

    def _hint_of_quotes(self, line: bytes, rest: bytes, columns: int) -> str:
        """A hint, if this row would be right with quotes read; `rest` begins with the bad cell."""
        if self._dialect.quotes or b'"' not in line:
            return ""
        read = self._dialect._replace(quotes=True)
        fits = len(cells_of(line, read)) == columns != len(cells_of(line, self._dialect))
        is_number = rest[:1] == b'"' and NUMBER.fullmatch(cells_of(rest, read, 1)[0].strip()) is not None
        remedy = _WITH_QUOTES if self._layout.format == "tsv" else _QUOTED
        return f"; {remedy}" if fits or is_number else ""

    def _bad_line(self, block: Block, start: int, at: int, code: int, line: int) -> BadLine:
        column, outcome = divmod(code, OUTCOMES)
        raw, files = self._row_at(block, start), self._files[block.file]
        without_end, before = raw.removesuffix(b"\r"), raw[: at - start]
        expected = expected_of(outcome, files.names[column], self._domain, len(files.names))
        if outcome == UNCLOSED and self._dialect.span:
            expected = f"a quote that ends column '{files.names[column]}' within {LONGEST_CELL} bytes"
        if outcome in (TOO_FEW, TOO_MANY):
            count = len(cells_of(without_end, self._dialect))
            found = str(count) if count <= MOST_COLUMNS else f"more than {MOST_COLUMNS:,}"
        else:
            cell = cells_of(without_end[at - start :], self._dialect, 1)[0]
            found = shown(cell) if cell else "an empty cell"
            if outcome in NOT_FINITE and NUMBER.fullmatch(cell.strip()) and not abs(float(cell)) < OVERFLOW:
                found += ", too large for float32"
            found += hint_of_words(cell, self._domain) if outcome == LABEL_NUMBER else ""
            if outcome in NOT_FINITE and outcome != LABEL_NUMBER:
                found += hint_of_numbers(cell.decode("utf-8", "replace"))
            if outcome == NOT_A_NUMBER and means_missing(cell):
                found += f"; to read it as a missing value: {mention(missing=cell.decode())}"
        if outcome in (UNCLOSED, AFTER_QUOTE):
            found += f"; {self._remedy_of_quotes(block, start, files)}"
        found += self._hint_of_quotes(without_end, without_end[at - start :], len(files.names))
        begins = before.rfind(b"\n") + 1
        return BadLine("", line + 1 + before.count(b"\n"), at - start - begins + 1, expected, found, raw)


def _fits(cells: list[bytes], kinds: ColumnEncodings) -> bool:
    """Whether cells can be a row: one for each column, with numbers where numbers must be."""
    return len(cells) == len(kinds.names) and all(
        means_missing(cell) or NUMBER.fullmatch(cell.strip()) is not None
        for cell, kind in zip(cells, kinds.what, strict=True)
        if kind in NUMBERS
    )


def _with(exact: Numbers, row: bytes, state: NDArray[np.int64]) -> Numbers:
    """The exact numbers of the current row, with the number at ``state[PLACE]`` added."""
    start, place = int(state[AT]), int(state[rows.PLACE])
    places, numbers = (exact[0], exact[1]) if len(exact[0]) and exact[0][0] >= start else NO_NUMBERS
    number = exact_number(row, start, place)
    return np.append(places, place), np.append(numbers, number).astype(np.float32)


class SpanningSource(TextSource):
    """Files whose quoted cells may contain line breaks, so that blocks end where rows end."""

    def blocks(self, start: StreamPosition | None, watches: Watches | None = None) -> BlockReader:
        """A reader of the blocks of a pass."""
        return BlockReader(self.names, self.block_bytes, start, watches, self._streams, whole=self._whole)

    def cuts(self, file: int, start: int) -> Iterator[int]:
        """None: only reading from the beginning shows which line breaks are quoted."""
        return iter(())

    def _whole(self, text: NDArray[np.uint8], size: int, first: bool) -> int:
        """Length of the whole rows in ``text[:size]``, which is the `first` text of a file or a later one."""
        dialect = dialect_of(self.layout)
        at = len(MARK) if first and text[: len(MARK)].tobytes() == MARK else 0
        end = rows.whole_rows(text, at, size, dialect.delimiter[0], dialect.span, False, size)
        return int(end) if end > at else 0
