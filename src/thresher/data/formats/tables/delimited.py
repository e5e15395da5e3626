"""Comma and tab separated values: the Python side of their parser.

The first line names the columns, unless the layout has no header; then they are called 1, 2 and so on. In
CSV, a cell may be quoted, with ``""`` for a quote; it ends on its line. In TSV, quotes have no meaning. A
cell is missing if it is empty, blank or one of the layout's `missing` cells: a missing number or category
adds no feature; a missing label or weight makes the row bad. Blank lines and headers are not examples, nor
are lines that repeat the header, as in the middle of files that were joined. In a table of one column, a
blank line is a row whose cell is missing: other programs write null so.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data import columns
from thresher.data.columns import (
    AS_TEXT,
    CATEGORICAL,
    EMPTY,
    LABEL,
    LIST,
    MOST_COLUMNS,
    NUMERIC,
    TEXT,
)
from thresher.data.errors import BadLine, DataError, OddFileError, quote_bytes
from thresher.data.features.ngrams import letters, room_for, rooms_for
from thresher.data.files.blocks import LINES, MARK, PAD, Block, check_is_text
from thresher.data.files.paths import display_name, is_stream
from thresher.data.files.streams import HEAD, LONGEST_HEAD, Previews
from thresher.data.files.topics import is_topic
from thresher.data.formats import choosing, line_status
from thresher.data.formats.lines.line_rows import parse_lines
from thresher.data.formats.lines.parse_loop import line_at, too_long
from thresher.data.formats.tables.spellings import look_at
from thresher.data.formats.tables.table_rows import LABEL as LABEL_CODE
from thresher.data.formats.tables.table_rows import (
    NOT_FINITE,
    WORD,
    ColumnEncodings,
    ParserMaker,
    TableParser,
    expected_of,
    kinds_of,
    of_cells,
)
from thresher.data.formats.tables.table_rows import OFFSET as OFFSET_CODE
from thresher.data.formats.tables.text_rows import Cells
from thresher.data.labels import LISTED, hint_of_words
from thresher.data.layout import AnyLayout, SettledLayout, has_columns, known_columns
from thresher.data.report import AWAITED, FOUND, HEADER, LATE, lines_not_utf8
from thresher.data.sources.reader import Parsed, Reading, RowsAsked
from thresher.data.text.numbers import NUMBER, OVERFLOW, means_missing
from thresher.data.text.sorting import FEW, room_for_sorting
from thresher.data.text.spelling import ROOM
from thresher.options.messages import mention

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_PLAIN = 32
"""Most bytes of a cell that is read together with those of other rows"""
_TOGETHER = 1 << 14
"""Most rows whose cells are read together"""
_SAMPLE = 100
"""Rows that show what a column of a later file holds"""
_WITH_QUOTES = f"quotes have no meaning in TSV: read it with {choosing.CSV_OF_TABS}"
_QUOTED = f"cells are in quotes: read them with {mention(quoting=True)}"
_OPEN = (
    f"use {mention(quoting=False)} if quotes are part of cells, or write a quote inside a cell as two, in"
    " quotes, and rows with line breaks in cells as JSON lines or Parquet"
)
_DELIMITING = b",;\t| "
_TO_FIRST_ROW = re.compile(rb"(?:%b)?(?:\r?\n)*+[^\n]+\n" % MARK)


class Dialect(NamedTuple):
    """How cells are written."""

    delimiter: bytes
    quotes: bool
    """whether cells may be quoted"""
    cell: re.Pattern[bytes]
    """a byte, the delimiter if the row is sound, and the text of the cell after it, quoted or not"""
    missing: frozenset[bytes]
    """cells that mean a missing value"""


def dialect_of(layout: AnyLayout) -> Dialect:
    """The dialect of files with this layout."""
    delimiter = layout.delimited_by.encode()
    return Dialect(
        delimiter,
        layout.format == "csv" and layout.quoting,
        re.compile(rb'(?s:.)(?:"((?:[^"]|"")*+)"?|([^%b]*+))' % re.escape(delimiter)),
        frozenset(one.encode() for one in layout.missing),
    )


class _Head(NamedTuple):
    """The beginning of a file."""

    name: str
    names: list[str]
    """of its columns"""
    header: bytes
    """see `ColumnEncodings.header`"""
    looks: list[tuple[str, str]]
    """for each column, the kind that it seems to be, and what its values are"""


def open_table(
    names: list[str], layout: AnyLayout, previews: Previews, asked: RowsAsked
) -> tuple[SettledLayout, ParserMaker]:
    """The settled layout of files, and the maker of their parsers.

    The beginning of the first file settles the kinds of columns, or that of the next if a column is empty
    there. If `live`, a stream is read up to its first row. Raises `DataError`.
    """
    heads, looks = list[_Head](), list[tuple[str, str]]()
    for name in names:
        text = beginning(name, previews, asked.live and has_columns(layout))
        decides = not has_columns(layout) and (not heads or any(kind == EMPTY for kind, _ in looks))
        head = _head(text, name, layout, None if decides else _SAMPLE)
        if not heads:
            looks = head.looks
        elif decides:
            found = dict(zip(head.names, head.looks, strict=True))
            pairs = zip(heads[0].names, looks, strict=True)
            looks = [found.get(column, one) if one[0] == EMPTY else one for column, one in pairs]
        heads.append(head)
    settled, first, words = layout, heads[0], False
    if not has_columns(settled):
        guesses = [kind for kind, _ in looks]
        others = [column for head in heads[1:] for column in head.names] if layout.header else []
        spelling = dict(zip(first.names, (what for _, what in looks), strict=True))
        settled = columns.settle(layout, first.names, guesses, names[0], others, spelling=spelling)
        words = (LABEL, CATEGORICAL) in zip(settled.kinds, guesses, strict=False)
    used = settled.unlabelled() if asked.unlabelled else settled
    files = [_kinds(used, head, asked.ids)._replace(words=words) for head in heads]
    if asked.marked or asked.where:
        from thresher.data.formats.tables.where import with_filters

        for k, one in enumerate(files):
            if asked.where and len(one.names) == 1:  # a blank line is a row
                raise DataError(f"{names[k]}: {mention('where')} needs a table of two columns or more")
            types: Any = dict.fromkeys(one.names)
            files[k] = with_filters(one, asked, types, names[k], layout.missing)
    return settled, ParserMaker(DelimitedParser, files)


def kinds_in(text: bytes, layout: SettledLayout, ids: str, name: str) -> ColumnEncodings:
    """How a text in memory is read, called `name` in messages. Raises `DataError`."""
    return _kinds(layout, _head(text[:HEAD], name, layout, None), ids)


def _kinds(layout: SettledLayout, head: _Head, ids: str) -> ColumnEncodings:
    """How the columns of a file are read; absent ones may be missing from a file without a header."""
    names = head.names
    if not layout.header:
        names = [*layout.columns]
        if len(head.names) != len(names):
            names = [name for name, kind in layout.kind_of.items() if kind != columns.ABSENT]
        if (count := len(head.names)) != len(names):
            some = "column" if count == 1 else "columns"
            raise DataError(f"{head.name}: {count} {some}, but the training data had {len(layout.columns)}")
    found = kinds_of(layout, names, head.name, [kind for kind, _ in head.looks], ids)
    return found._replace(header=head.header)


def _head(text: bytes, name: str, layout: AnyLayout, most: int | None) -> _Head:
    """What the beginning of a file shows, by `most` of its rows."""
    names, header, values = first_values(text, name, layout, most)
    none = EMPTY if any(values) else CATEGORICAL, AS_TEXT
    return _Head(name, names, header, [look_at(dict.fromkeys(one)) if one else none for one in values])


def first_values(
    text: bytes, name: str, layout: AnyLayout, most: int | None
) -> tuple[list[str], bytes, list[list[bytes]]]:
    """The names of the columns, the header (see `_Head`), and the values in `most` rows of each column.

    Values are cells that are not missing, of rows that are sound and do not repeat the header.
    """
    lines, known, dialect = lines_of(text, name), known_columns(layout), dialect_of(layout)
    if is_topic(name):  # its first message is one of many, and may be bad
        counts = Counter(len(cells_of(one, dialect)) for one in lines[:_SAMPLE])
        usual = max(counts, key=lambda count: (count == len(known), counts[count]))
        lines = [one for one in lines if len(cells_of(one, dialect)) == usual]
    first = lines[0]
    if layout.header and b"\0" in first:
        raise DataError(f"{name}: the header line, {quote_bytes(first)}, contains a NUL")
    if (count := first.count(dialect.delimiter) + 1) > MOST_COLUMNS:
        raise DataError(f"{name}: {columns.too_many(count)}")
    if not has_columns(layout):
        _check_delimiter(first, dialect, name)
    cells, header = cells_of(first, dialect), b""
    names = [str(cell, "utf-8", "backslashreplace") for cell in cells]
    if not layout.header:
        names = [str(k + 1) for k in range(len(cells))]
    else:
        if len(cells_of(first + dialect.delimiter, dialect)) == len(cells):
            raise DataError(
                f"{name}: the header line, {quote_bytes(first)}, has a quote that is not closed; {_OPEN}"
            )
        quoted = (one for one in names if len(one) > 1 and one[0] == one[-1] == '"' and one not in known)
        if layout.format == "tsv" and (one := next(quoted, None)) is not None:
            raise DataError(f"{name}: the name of a column is in quotes, {one}; {_WITH_QUOTES}")
        header = as_header(first) if _can_repeat(cells) else b""
        lines = [line for line in lines[1:] if as_header(line) != header]
    rows = [cells_of(line, dialect) for line in lines[:most] if b"\0" not in line]
    table = [row for row in rows if len(row) == len(names)]
    by_column = zip(*table, strict=True) if table else ((),) * len(names)
    missing = dialect.missing
    return names, header, [[c for c in cells if c.strip() and c not in missing] for cells in by_column]


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


def _check_delimiter(line: bytes, dialect: Dialect, name: str) -> None:
    """Raise `DataError` if the first line has a single cell, and is not of CSV or has another delimiter."""
    if dialect.delimiter in line:
        return
    if told := choosing.foreign(line):
        raise OddFileError(f"{name}: {told}")
    found = [bytes([byte]) for byte in _DELIMITING if byte in line.strip()]
    if found and (found != [b" "] or b":" not in line):  # features of svmlight and VW text have colons
        most = max(found, key=line.count).decode().replace("\t", "\\t")
        raise DataError(
            f"{name}: one column, {quote_bytes(line)}: is the delimiter '{most}'? ({mention(delimiter=most)})"
        )


def beginning(name: str, previews: Previews, live: bool) -> bytes:
    """The beginning of a file: `HEAD` bytes, or if `live` the first row of a stream."""

    def first(head: bytes) -> int:
        check_is_text(head, name)
        found = _TO_FIRST_ROW.match(head)
        return found.end() if found else 0

    return previews.text(name, first if live and is_stream(name) else None)


def lines_of(head: bytes, name: str) -> list[bytes]:
    """The non-blank whole lines at the beginning of a file."""
    check_is_text(head, name)
    if not head:
        raise DataError(f"{display_name(name)}: empty, no examples")
    text, whole = head.removeprefix(MARK), len(head) < HEAD
    if len(head) >= LONGEST_HEAD and b"\n" not in text.lstrip(b"\r\n"):
        raise DataError(f"{name}: its first line is longer than {LONGEST_HEAD >> 20} MB")
    lines = text.split(b"\n")
    lines = lines[:-1] if not whole and len(lines) > 1 else lines
    found = [line for line in (line.removesuffix(b"\r") for line in lines) if line]
    if not found:
        raise DataError(f"{name}: no examples, only blank lines")
    return found


def cells_of(line: bytes, dialect: Dialect, most: int = MOST_COLUMNS + 1) -> list[bytes]:
    """The first cells of one row, at most `most`, unquoted."""
    delimiter = dialect.delimiter
    if not dialect.quotes or b'"' not in line:
        return line.split(delimiter, most)[:most]
    found = (one.groups() for one in islice(dialect.cell.finditer(delimiter + line), most))
    return [cell if quoted is None else quoted.replace(b'""', b'"') for quoted, cell in found]


TextRow = tuple[list[str], bool]
"""The cells that are wanted of a row, empty where there is none; and whether its cells can be told apart: if
not, the row is bad, whatever a filter says"""


class _Decoded(dict[bytes, str]):
    """Cells as texts."""

    def __missing__(self, cell: bytes) -> str:
        self[cell] = text = str(cell, "utf-8", "backslashreplace")
        return text


class SideCells(NamedTuple):
    """Cells of lines that are wanted beside their features."""

    kinds: ColumnEncodings
    names: Sequence[str]
    """of the columns"""
    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    """where each line of `text` starts, and where the last ends"""
    cells: NDArray[np.object_]
    """(lines, columns) texts, as far as they are read; empty where there is none"""
    is_sound: NDArray[np.bool_]
    """(lines,) as in `TextRow`"""


class RowParser(TableParser, ABC):
    """Parses blocks of lines whose rows have cells into chunks; formats say where cells are."""

    def parse(self, block: Block) -> Parsed:
        """Parse the examples of a block into arrays of an arena."""
        if block.kind != LINES:
            return too_long(block, self._reading)
        kinds, state = self._files[block.file], np.zeros(line_status.COUNTERS, np.int64)
        begin, before = block.begin, self._layout.delimited_by and self._layout.header and block.offset == 0
        while before and begin < block.size:  # skip the header, and blank lines before it
            line = line_at(block.text, begin)
            begin += len(line) + 1
            state[[line_status.LINES, line_status.BLANKS]] += 1
            before = not line.removesuffix(b"\r")
        state[line_status.AT] = begin
        block, excluded, met, cells = self._read_beside(block, begin, kinds)
        parsed, noticed = self._parse_rows(block, state, kinds)
        tally, marks = parsed.tally, kinds.marks
        return parsed._replace(
            tally=tally._replace(lines=tally.lines - excluded, blank=tally.blank - excluded),
            excluded=excluded,
            noticed=(*kinds.noticed, *met, *noticed),
            ids=marks.ids(cells, len(cells[marks.columns[0]])) if marks else cells.get(kinds.ids),
            cells=[cells[name] for name in self._reading.sliced],
        )

    @abstractmethod
    def _parse_rows(
        self, block: Block, state: NDArray[np.int64], kinds: ColumnEncodings
    ) -> tuple[Parsed, Iterable[tuple[str, str, int, str]]]:
        """The rows of a block from its `state` on, and what they show of columns."""

    @abstractmethod
    def _reader(self, kinds: ColumnEncodings, wanted: Sequence[str]) -> Callable[[bytes], TextRow | None]:
        """What reads the cells of a line in the columns `wanted`; None for a line that holds no row."""

    def _read_beside(
        self, block: Block, begin: int, kinds: ColumnEncodings
    ) -> tuple[Block, int, list[tuple[str, str, int, str]], dict[str, list[str]]]:
        """The side columns of the rows that a filter leaves, with blank lines for the others, so many.

        Also which columns of the filter that were awaited have a value in any row.
        """
        if not (names := kinds.side_columns(self._reading.sliced)):
            return block, 0, [], {}
        whole = block.text[begin : block.size]
        starts = np.append(0, np.flatnonzero(whole == _NEWLINE) + 1)
        read, cells = self._reader(kinds, names), np.full((len(starts) - 1, len(names)), "", object)
        is_row, is_sound = np.ones((2, len(cells)), bool)
        odd = self.read_plain(SideCells(kinds, names, whole, starts, cells, is_sound))
        for k in np.flatnonzero(odd).tolist():
            row = read(whole[starts[k] : starts[k + 1] - 1].tobytes())
            is_row[k] = row is not None
            if row is not None:
                cells[k], is_sound[k] = row
        excluded, met = np.zeros(0, np.int64), list[tuple[str, str, int, str]]()
        if kinds.where:
            sound = np.flatnonzero(is_row & is_sound)
            tested = {name: cells[sound, c].tolist() for c, name in enumerate(names)}
            awaited = (name for what, name, *_ in kinds.noticed if what == AWAITED)
            met = [(FOUND, name, 0, "") for name in awaited if any(tested[name])]
            excluded = np.delete(sound, kinds.where.rows(tested, len(sound)))
            is_row[excluded], lines = False, whole.tobytes().split(b"\n")
            for k in excluded.tolist():
                lines[k] = b""
            left, text = b"\n".join(lines), block.text.copy()
            text[begin:] = 0
            text[begin : begin + len(left)] = np.frombuffer(left, np.uint8)
            block = block._replace(text=text, size=begin + len(left))
            names = kinds._replace(where=None).side_columns(self._reading.sliced)
        return block, len(excluded), met, {name: cells[is_row, c].tolist() for c, name in enumerate(names)}

    def read_plain(self, side: SideCells) -> NDArray[np.bool_]:
        """Read the cells of plain lines together. Return which lines must be read one by one: here, all."""
        return np.ones(len(side.cells), np.bool_)

    def _spare(self, block: Block, kinds: ColumnEncodings) -> int:
        """Entries besides one for each byte of a block that must be free for its rows."""
        more = room_for(block.size, kinds.grams.code()) if TEXT in {*kinds.what} else 0
        return 4 * len(kinds.names) + 16 + more

    def _rows(
        self,
        block: Block,
        state: NDArray[np.int64],
        where: tuple[Any, Any, Any, bool],
        first_at: NDArray[np.int64],
        most: int,
        parse: Callable[..., int] = parse_lines,
    ) -> Parsed:
        """At most so many rows of a block from its `state` on.

        `where` says where cells are: from `dialect` to `has_nul` of `Cells`.
        """
        reading, kinds, text = self._reading, self._files[block.file], block.text
        count, width, grams = len(kinds.names), self._domain.width, None
        what = {*kinds.what}
        if TEXT in what:
            grams = (kinds.grams.code(), letters(kinds.grams.tokens), *rooms_for(block.size))
        if width:  # then it pays to count the lines
            most = int(np.count_nonzero(text[: block.size] == _NEWLINE)) + 1
        arrays = reading.arenas.columns(
            most, block.size + self._spare(block, kinds), width, OFFSET_CODE in kinds.codes
        )
        arrays.indptr[0], extra = 0, kinds.extra(reading.naming, self._spans)
        far = kinds.room_for_rests(block.size // 4)
        grammar = Cells(
            (kinds.codes, kinds.keys, kinds.seeds),
            first_at,
            np.frombuffer(kinds.header, np.uint8),
            *where,
            block.size,
            grams,
            kinds.mask,
            far,
            np.empty(ROOM, np.uint8),
        )
        # the sort for long rows is compiled only if a row can be long
        rooms = room_for_sorting(
            long=count > FEW or not what.isdisjoint((TEXT, LIST)) or extra[0] is not None
        )
        rest = self._domain.code(), state, self._bad, extra, rooms
        parsed = self._gather(
            lambda arrays: parse(grammar, text, block.size, arrays, *rest),
            partial(self._bad_line, block),
            partial(line_at, text),
            *(state, arrays, kinds.names),
        )
        return parsed._replace(chunk=kinds.add_absent(kinds.with_rests(parsed.chunk, far)))

    @abstractmethod
    def _bad_line(self, block: Block, start: int, at: int, code: int, line: int) -> BadLine:
        """What is wrong with a line."""


class DelimitedParser(RowParser):
    """Parses blocks of delimited lines into chunks."""

    def __init__(self, files: Sequence[ColumnEncodings], layout: SettledLayout, reading: Reading) -> None:
        label = WORD if reading.domain.words else LABEL_CODE
        super().__init__([of_cells(one, label) for one in files], layout, reading)
        self._dialect, self.room = dialect_of(layout), np.zeros(0, np.uint8)
        if self._domain.kind == LISTED and not self._domain.open:
            raise DataError(
                f"{layout.format}: lists of labels need a column of lists (jsonl, parquet or arrow)"
            )
        listed = b"".join(bytes([len(one)]) + one for one in sorted(self._dialect.missing))
        missing = np.array([*listed], np.uint8)
        self._compiled_dialect = self._dialect.delimiter[0], missing

    def _parse_rows(
        self, block: Block, state: NDArray[np.int64], kinds: ColumnEncodings
    ) -> tuple[Parsed, Iterable[tuple[str, str, int, str]]]:
        text = block.text
        room = self.room[:0]  # for a quoted cell
        if self._dialect.quotes and (text[: block.size] == _QUOTE).any():
            if len(self.room) < block.size + PAD:
                self.room = np.empty(block.size + PAD, np.uint8)
            room = self.room
        count = len(kinds.names)
        first_at, most = np.full(count + 1, -1, np.int64), block.size // min(count, 2) + 1
        where = self._compiled_dialect, None, room, not text[: block.size].all()
        parsed, found = self._rows(block, state, where, first_at, most), list[tuple[str, str, int, str]]()
        for c in np.flatnonzero(first_at >= 0).tolist():  # values in empty columns, and a repeated header
            start = int(first_at[c])
            line = int(np.count_nonzero(text[block.begin : start] == _NEWLINE)) + 1
            if c == count:
                found.append((HEADER, "", line, ""))
                continue
            cell = cells_of(line_at(text, start).removesuffix(b"\r"), self._dialect)[c].strip()
            found.append((LATE, kinds.names[c], line, NUMERIC if NUMBER.fullmatch(cell) else CATEGORICAL))
        return parsed, (*sorted(found, key=lambda one: one[2]), *lines_not_utf8(block))

    def _reader(self, kinds: ColumnEncodings, wanted: Sequence[str]) -> Callable[[bytes], TextRow | None]:
        dialect, header, count, none = self._dialect, kinds.header, len(kinds.names), MOST_COLUMNS + 1
        places = [kinds.names.index(name) if name in kinds.names else none for name in wanted]
        most = max([at for at in places if at < none], default=0) + 1
        delimiter = re.escape(dialect.delimiter)
        whole = re.compile(rb'(?:%b(?:"(?:[^"]|"")*+"|(?!")[^%b]*+)){%d}' % (delimiter, delimiter, count))
        begins = header[:1], header[:1].upper(), MARK[:1], b'"'

        def read(line: bytes) -> TextRow | None:
            bare = line.removesuffix(b"\r")
            if not bare and count > 1:
                return None
            if header and bare[:1] in begins and as_header(bare) == header:  # quicker
                return None
            cells = cells_of(bare, dialect, most)
            texts = [str(cells[at], "utf-8", "backslashreplace") if at < len(cells) else "" for at in places]
            if dialect.quotes and b'"' in bare:
                return texts, whole.fullmatch(dialect.delimiter + bare) is not None
            return texts, bare.count(dialect.delimiter) == count - 1

        return read

    def read_plain(self, side: SideCells) -> NDArray[np.bool_]:
        """As in `RowParser`: those with quotes, NULs or long cells, blank ones, and what may be a header."""
        kinds, names, text, starts, cells, is_sound = side
        delimiter, begins, ends = self._dialect.delimiter[0], starts[:-1], starts[1:] - 1
        ends = ends - ((ends > begins) & (text[ends - 1] == _RETURN))
        others = np.flatnonzero((text == 0) | (text == _QUOTE))
        odd: NDArray[np.bool_] = (np.diff(np.searchsorted(others, starts)) > 0) | (begins == ends)
        if kinds.header:
            firsts = np.array([*kinds.header[:1], *kinds.header[:1].upper(), MARK[0]], np.uint8)
            lengths = len(kinds.header), len(kinds.header) + len(MARK)
            odd |= np.isin(text[begins], firsts) & np.isin(ends - begins, lengths)
        at = np.flatnonzero(text == delimiter)
        first = np.searchsorted(at, starts)
        found, at = np.diff(first), np.append(at, len(text))
        is_sound[:] = found == len(kinds.names) - 1
        for c, name in enumerate(names):
            place = kinds.names.index(name) if name in kinds.names else MOST_COLUMNS
            has = found >= place
            begin = begins if place == 0 else at[np.where(has, first[:-1] + place - 1, 0)] + 1
            sizes = np.where(found > place, at[np.where(has, first[:-1] + place, 0)], ends) - begin
            odd |= has & (sizes > _PLAIN)
            read, every = _Decoded(), np.flatnonzero(has & ~odd)
            for lo in range(0, len(every), _TOGETHER):
                plain = every[lo : lo + _TOGETHER]
                size, place_in = sizes[plain, np.newaxis], np.arange(max(1, sizes[plain].max()))
                letters_at = np.minimum(begin[plain, np.newaxis] + place_in, len(text) - 1)
                texts = np.where(place_in < size, text[letters_at], np.uint8(0)).view(f"S{len(place_in)}")
                cells[plain, c] = [read[cell] for cell in texts[:, 0].tolist()]
        return odd

    def _bad_line(self, block: Block, start: int, at: int, code: int, line: int) -> BadLine:
        column, outcome = divmod(code, line_status.OUTCOMES)
        raw, kinds = line_at(block.text, start), self._files[block.file]
        without_end, count = raw.removesuffix(b"\r"), len(kinds.names)
        cells, rest = cells_of(without_end, self._dialect), without_end[at - start :]
        expected = expected_of(outcome, kinds.names[column], self._domain, count)
        if outcome in (line_status.TOO_FEW, line_status.TOO_MANY):
            found = str(len(cells)) if len(cells) <= MOST_COLUMNS else f"more than {MOST_COLUMNS:,}"
        else:
            cell = cells_of(rest, self._dialect, 1)[0]
            found = quote_bytes(cell) if cell else "an empty cell"
            if outcome in NOT_FINITE and NUMBER.fullmatch(cell.strip()) and not abs(float(cell)) < OVERFLOW:
                found += ", too large for float32"
            if outcome == line_status.LABEL_NUMBER:
                found += hint_of_words(cell, self._domain)
            if outcome == line_status.NUMBER and means_missing(cell):
                found += f"; to read it as a missing value: {mention(missing=cell.decode())}"
        if outcome in (line_status.UNCLOSED, line_status.AFTER_QUOTE):
            found += f"; {_OPEN}"
        if not self._dialect.quotes and b'"' in without_end:  # would the row be right with quotes read?
            read = self._dialect._replace(quotes=True)
            is_number = rest[:1] == b'"' and NUMBER.fullmatch(cells_of(rest, read, 1)[0].strip()) is not None
            if len(cells_of(without_end, read)) == count != len(cells) or is_number:
                found += f"; {_WITH_QUOTES if self._layout.format == 'tsv' else _QUOTED}"
        return BadLine("", line + 1, at - start + 1, expected, found, raw)
