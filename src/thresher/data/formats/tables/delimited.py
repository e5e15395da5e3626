"""Comma and tab separated values: the Python side of their parser.

The first line names the columns, unless the layout has no header; then they are called 1, 2 and so on. In
CSV, a cell may be quoted, with ``""`` for a quote; it ends on its line, unless the layout allows quoted line
breaks. In TSV, quotes have no meaning. A cell is missing if it is empty or one of the layout's `missing`
cells: a missing number or category adds no feature; a missing label or weight makes the row bad. Blank lines
and headers are not examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Place
from thresher.data.columns import CATEGORICAL, LABEL, NUMERIC, TEXT, settle
from thresher.data.errors import BadLine, DataError, shown
from thresher.data.features.factors import room_for_spans
from thresher.data.features.ngrams import letters, room_for, rooms_for
from thresher.data.files.blocks import LINES, MARK, PAD, Block, BlockReader, check_is_text
from thresher.data.files.streams import OpenStreams, head_of
from thresher.data.formats.lines.gathering import NO_NUMBERS, Numbers, bad_table, gather, line_at, too_long
from thresher.data.formats.outcomes import AT, BLANKS, LABEL_NUMBER, OUTCOMES, TOO_FEW, TOO_MANY, UNCLOSED
from thresher.data.formats.outcomes import LINES as LINES_READ
from thresher.data.formats.outcomes import NUMBER as NOT_A_NUMBER
from thresher.data.formats.tables import delimited_rows as rows
from thresher.data.formats.tables.table_rows import (
    NOT_FINITE,
    Kinds,
    check_columns_of_labels,
    expected_of,
    kinds_of,
)
from thresher.data.labels import LISTED, hint_of_words
from thresher.data.layout import AnyLayout, SettledLayout, has_columns
from thresher.data.sources.parsed import Columns, Parsed, Reading
from thresher.data.sources.text import TextSource
from thresher.data.text.numbers import NUMBER, OVERFLOW, exact_number, means_missing
from thresher.data.text.sorting import BUCKETS, FEW

if TYPE_CHECKING:
    from thresher.data.files.watches import Watches

LONGEST_CELL = 1 << 20
"""Maximum bytes of a quoted cell with line breaks."""
HEAD = 1 << 20
"""Bytes of text that are read to settle the columns."""
_QUOTE = ord('"')
_DELIMITING = b",;\t|"


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
        layout.format == "csv",
        frozenset(one.encode() for one in layout.missing),
        LONGEST_CELL if layout.quoted_newlines else 0,
    )


@dataclass(frozen=True)
class DelimitedFormat:
    """Makes the parsers of delimited files."""

    files: list[Kinds]
    may_be_words: bool = False
    """whether labels look like words"""

    def __call__(self, layout: SettledLayout, reading: Reading) -> DelimitedParser:
        """Make a parser for one thread."""
        return DelimitedParser(self.files, layout, reading)


def opened(
    names: list[str], layout: AnyLayout, streams: OpenStreams, unlabelled: bool
) -> tuple[SettledLayout, DelimitedFormat]:
    """The settled layout of files, and the maker of their parsers.

    The beginning of the first file settles the kinds of columns; all other files must have the same columns.
    Raises `DataError`.
    """
    files, dialect, may_be_words = list[Kinds](), dialect_of(layout), False
    found = layout if has_columns(layout) else None
    for name in names:
        lines = lines_of(head_of(name, HEAD, streams), name, dialect if dialect.span else None)
        if layout.header and b"\0" in lines[0]:
            raise DataError(f"{name}: the header line, {shown(lines[0])}, contains a NUL")
        if len(lines) == 1 and b"\r" in lines[0] and b'"' not in lines[0]:
            raise DataError(f"{name}: its lines end with \\r alone: convert them with tr '\\r' '\\n'")
        head = [_text(cell) for cell in cells_of(lines[0], dialect)]
        if not layout.header:
            head = [str(k + 1) for k in range(len(head))]
        if found is None:
            _check_delimiter(lines[0], len(head), name)
            guesses = _guesses(lines[layout.header :], len(head), dialect)
            found = settle(layout, head, guesses, name)
            may_be_words = (LABEL, CATEGORICAL) in zip(found.kinds, guesses, strict=True)
        used = found.unlabelled() if unlabelled else found
        if not layout.header:
            head = _positions(used, len(head), name)
        files.append(kinds_of(used, head, name))
    assert found is not None
    return found, DelimitedFormat(files, may_be_words)


def _check_delimiter(line: bytes, columns: int, name: str) -> None:
    """Raise `DataError` if the first line has a single cell but contains another common delimiter."""
    found = [bytes([byte]) for byte in _DELIMITING if byte in line]
    if columns == 1 and found:
        most = max(found, key=line.count).decode().replace("\t", "\\t")
        raise DataError(
            f"{name}: one column, {shown(line)}: is the delimiter '{most}'? (--delimiter '{most}')"
        )


def lines_of(head: bytes, name: str, spanning: Dialect | None = None) -> list[bytes]:
    """The non-blank whole lines at the beginning of a file; with `spanning`, rows of that dialect."""
    check_is_text(head, name)
    text = head.removeprefix(MARK)
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


def cells_of(line: bytes, dialect: Dialect) -> list[bytes]:
    """The cells of one row, unquoted."""
    delimiter = dialect.delimiter
    if not dialect.quotes or b'"' not in line:
        return line.split(delimiter)
    cells, at = list[bytes](), 0
    while at <= len(line):
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


def _guesses(lines: Sequence[bytes], count: int, dialect: Dialect) -> list[str]:
    """The guessed kinds of columns: numeric if all cells are numbers or missing, and not all are missing."""
    numbers, seen = np.ones(count, bool), np.zeros(count, bool)
    for line in lines:
        cells = [] if b"\0" in line else cells_of(line, dialect)
        if len(cells) != count:  # a bad row
            continue
        for k, cell in enumerate(cells):
            if cell and numbers[k] and cell not in dialect.missing:
                seen[k] = True
                numbers[k] = NUMBER.fullmatch(cell.strip()) is not None
    return [NUMERIC if a and b else CATEGORICAL for a, b in zip(numbers, seen, strict=True)]


class DelimitedParser:
    """Parses blocks of delimited lines into chunks."""

    def __init__(self, files: list[Kinds], layout: SettledLayout, reading: Reading) -> None:
        self._layout = layout
        self._domain = check_columns_of_labels(reading.domain, layout)
        self._files = [one.with_words() for one in files] if self._domain.words else files
        if self._domain.kind == LISTED and not self._domain.open:
            raise DataError(
                f"{layout.format}: lists of labels need a column of lists (jsonl, parquet or arrow)"
            )
        self._dialect = dialect_of(layout)
        self._on_error, self._arenas = reading.on_error, reading.arenas
        self._reading, self._spans = reading, room_for_spans()
        self._bad = bad_table(reading.on_error)
        self._room = np.zeros(0, np.uint8)

    def parse(self, block: Block) -> Parsed:
        """Parse the examples of a block into arrays of an arena."""
        if block.kind != LINES:
            return too_long(block, self._arenas, self._on_error)
        kinds, text = self._files[block.file], block.text
        grams, more = self._grams_for(block, kinds)
        columns = self._columns_for(block, block.size + 2 * len(kinds.codes) + 16 + more)
        state = np.zeros(rows.ALL_COUNTERS, np.int64)
        state[rows.HAS_NUL] = block.has_nul
        self._skip_head(block, state)
        room, extra = self._room_for(block), kinds.extra(self._reading.naming, self._spans)
        domain, dialect = self._domain.code(), self._dialect.compiled()
        rest = (
            kinds.compiled,
            dialect,
            room,
            _rooms_for(kinds, extra),
            grams,
            kinds.mask,
            domain,
            state,
            self._bad,
        )
        parsed = gather(
            lambda columns, exact: rows.parse_delimited(text, block.size, columns, *rest, exact, extra),
            lambda exact: _with(exact, self._row_at(block, int(state[AT])), state),
            lambda *entry: self._bad_line(block, *entry),
            lambda start: self._row_at(block, start),
            *(state, self._bad, columns, self._arenas, self._on_error),
        )
        self._reading.take_names(kinds.names)
        breaks = int(state[rows.BREAKS])
        tally = parsed.tally._replace(lines=parsed.tally.lines - breaks)
        return parsed._replace(tally=tally, uncounted=breaks)

    def _row_at(self, block: Block, start: int) -> bytes:
        """The row that begins at `start`, without its newline."""
        if not self._dialect.span:
            return line_at(block.text, start)
        end = _row_end(block.text, start, block.size, self._dialect)
        return block.text[start:end].tobytes().removesuffix(b"\n")

    def _skip_head(self, block: Block, state: NDArray[np.int64]) -> None:
        """Skip the byte order mark and the header of a file; the header counts as a blank line."""
        at, blank = block.begin, self._layout.header and block.offset == 0
        while blank and at < block.size:
            line = self._row_at(block, at)
            at += len(line) + 1
            state[rows.BREAKS] += line.count(b"\n")
            state[LINES_READ] += 1 + line.count(b"\n")
            state[BLANKS] += 1
            blank = not line.removesuffix(b"\r")
        state[AT] = at

    def _room_for(self, block: Block) -> NDArray[np.uint8] | None:
        """Scratch space for a quoted cell: empty if the block has no quote, None if the format has none."""
        if not self._dialect.quotes:
            return None
        if not (block.text[: block.size] == _QUOTE).any():
            return self._room[:0]
        if len(self._room) < block.size + PAD:
            self._room = np.empty(block.size + PAD, np.uint8)
        return self._room

    def _columns_for(self, block: Block, numbers: int) -> Columns:
        """Columns for the rows of a block; lines are counted only if rows have several targets."""
        most, width = block.size // 2 + 1, self._domain.width
        if width:
            most = int(np.count_nonzero(block.text[: block.size] == ord("\n"))) + 1
        return self._arenas.columns(most, numbers, width)

    def _grams_for(self, block: Block, kinds: Kinds) -> tuple[tuple[Any, ...] | None, int]:
        """Settings and scratch space for text columns, or None; and how many features they may add."""
        if TEXT not in kinds.what:
            return None, 0
        code = kinds.grams.code()
        return (code, letters(kinds.grams.tokens), *rooms_for(block.size)), room_for(block.size, code)

    def _bad_line(self, block: Block, start: int, at: int, code: int, line: int) -> BadLine:
        column, outcome = divmod(code, OUTCOMES)
        raw, files = self._row_at(block, start), self._files[block.file]
        without_end, before = raw.removesuffix(b"\r"), raw[: at - start]
        expected = expected_of(outcome, files.names[column], self._domain, len(files.names))
        if outcome == UNCLOSED and self._dialect.span:
            expected = f"a quote that ends column '{files.names[column]}' within {LONGEST_CELL} bytes"
        if outcome in (TOO_FEW, TOO_MANY):
            found = str(len(cells_of(without_end, self._dialect)))
        else:
            cell = cells_of(without_end[at - start :], self._dialect)[0]
            found = shown(cell) if cell else "an empty cell"
            if outcome in NOT_FINITE and NUMBER.fullmatch(cell.strip()) and not abs(float(cell)) < OVERFLOW:
                found += ", too large for float32"
            found += hint_of_words(cell, self._domain) if outcome == LABEL_NUMBER else ""
            if outcome == NOT_A_NUMBER and means_missing(cell):
                found += f"; to read it as a missing value: --missing {shown(cell)}"
        begins = before.rfind(b"\n") + 1
        return BadLine("", line + 1 + before.count(b"\n"), at - start - begins + 1, expected, found, raw)


def _rooms_for(
    kinds: Kinds, extra: Any
) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint64] | None]:
    """Scratch space for `ascending`; the sort for long rows is compiled only if a row can be long."""
    few = len(kinds.codes) <= FEW and TEXT not in kinds.what and extra[0] is None
    rooms = np.empty(FEW + 8, np.uint64), np.empty(FEW + 8, np.float32)
    return *rooms, None if few else np.empty(BUCKETS, np.uint64)


def _with(exact: Numbers, row: bytes, state: NDArray[np.int64]) -> Numbers:
    """The exact numbers of the current row, with the number at ``state[PLACE]`` added."""
    start, place = int(state[AT]), int(state[rows.PLACE])
    places, numbers = (exact[0], exact[1]) if len(exact[0]) and exact[0][0] >= start else NO_NUMBERS
    number = exact_number(row, start, place)
    return np.append(places, place), np.append(numbers, number).astype(np.float32)


class SpanningSource(TextSource):
    """Files whose quoted cells may contain line breaks, so that blocks end where rows end."""

    def blocks(self, start: Place | None, watches: Watches | None = None) -> BlockReader:
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
