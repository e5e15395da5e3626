"""Comma and tab separated values: the Python side of their parser.

The first line names the columns, unless the layout says there is no header; then they are called 1, 2 and so
on. In CSV a cell may be quoted, with ``""`` for a quote, and end on its line; in TSV quotes mean nothing.
An empty cell is missing: a numeric or categorical one is no feature, a label or weight makes the row bad.
Blank lines and headers are no examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import BadLine, DataError, shown
from thresher.data.layout import Layout
from thresher.data.ngrams import letters, room_for, rooms_for
from thresher.data.sources import delimited_rows as rows
from thresher.data.sources.blocks import LINES, PAD, Block
from thresher.data.sources.factors import room_for_spans
from thresher.data.sources.line_rows import AT, BLANKS
from thresher.data.sources.line_rows import LINES as LINES_READ
from thresher.data.sources.lines import NO_NUMBERS, Numbers, bad_table, gather, line_at, too_long
from thresher.data.sources.numbers import NUMBER, exact_number
from thresher.data.sources.parsed import Parsed, Reading
from thresher.data.sources.streams import Passing, head_of
from thresher.data.sources.table_rows import (
    OUTCOMES,
    TOO_FEW,
    TOO_MANY,
    Kinds,
    expected_of,
    kinds_of,
    one_label,
)
from thresher.data.table import CATEGORICAL, NUMERIC, TEXT, settle

DELIMITERS = {"csv": b",", "tsv": b"\t"}
_MARK = b"\xef\xbb\xbf"
HEAD = 1 << 20
"""Bytes of text by which the columns are settled."""
_QUOTE = ord('"')


def opened(names: list[str], layout: Layout, passing: Passing, unlabelled: bool) -> tuple[Layout, Any]:
    """The settled layout of files, and what makes their parsers.

    The head of the first file settles which column is what; all others must have the same. `DataError`.
    """
    files = list[Kinds]()
    for name in names:
        lines = lines_of(head_of(name, HEAD, passing), name)
        head = [_text(cell) for cell in _cells(lines[0], layout.format)]
        if not layout.header:
            head = [str(k + 1) for k in range(len(head))]
        if not layout.columns:
            guesses = _guesses(lines[layout.header :], len(head), layout.format)
            layout = settle(layout, head, guesses, name)
        used = layout.unlabelled() if unlabelled else layout
        if not layout.header:
            head = _positions(used, len(head), name)
        files.append(kinds_of(used, head, name))
    return layout, partial(DelimitedParser, files)


def lines_of(head: bytes, name: str) -> list[bytes]:
    """The whole lines that a file begins with, blank ones left out."""
    if b"\0" in head:
        raise DataError(f"{name}: a binary file, not text (compression by gzip, bz2, xz and zstd is known)")
    text = head.removeprefix(_MARK)
    lines = text.split(b"\n")
    lines = lines[:-1] if len(head) >= HEAD and len(lines) > 1 else lines
    found = [line.removesuffix(b"\r") for line in lines]
    found = [line for line in found if line]
    if not found:
        raise DataError(f"{name}: no examples, only blank lines")
    return found


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _positions(layout: Layout, count: int, name: str) -> list[str]:
    """The columns of a file without a header, which may lack one that is not looked at."""
    wanted = [c for c, kind in zip(layout.columns, layout.kinds, strict=True) if kind != "absent"]
    if count not in (len(layout.columns), len(wanted)):
        raise DataError(f"{name}: {count} columns, where the data before had {len(layout.columns)}")
    return list(layout.columns) if count == len(layout.columns) else wanted


def _cells(line: bytes, form: str) -> list[bytes]:
    """The cells of one line, without their quotes."""
    delimiter = DELIMITERS[form]
    if form == "tsv" or b'"' not in line:
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


def _guesses(lines: Sequence[bytes], count: int, form: str) -> list[str]:
    """Columns whose cells are all numbers or empty, but not all empty, are numeric."""
    numbers, seen = np.ones(count, bool), np.zeros(count, bool)
    for line in lines:
        for k, cell in enumerate(_cells(line, form)[:count]):
            if cell and numbers[k]:
                seen[k] = True
                numbers[k] = NUMBER.fullmatch(cell.strip()) is not None
    return [NUMERIC if a and b else CATEGORICAL for a, b in zip(numbers, seen, strict=True)]


class DelimitedParser:
    """Parses blocks of lines into chunks."""

    def __init__(self, files: list[Kinds], layout: Layout, reading: Reading) -> None:
        self._files = files
        self._layout = layout
        self._domain = one_label(reading.domain)
        self._delimiter = DELIMITERS[layout.format][0]
        self._on_error, self._arenas = reading.on_error, reading.arenas
        self._reading, self._spans = reading, room_for_spans()
        self._bad = bad_table(reading.on_error)
        self._room = np.zeros(0, np.uint8)

    def parse(self, block: Block) -> Parsed:
        """The examples of a block, in arrays of an arena."""
        if block.kind != LINES:
            return too_long(block, self._arenas, self._on_error)
        kinds, text = self._files[block.file], block.text
        described = kinds.compiled
        grams, more = self._grams_for(block, kinds)
        columns = self._arenas.columns(block.size // 2 + 1, block.size + 2 * len(kinds.codes) + 16 + more)
        state = np.zeros(rows.COUNTERS, np.int64)
        if block.offset == 0:
            self._skip_head(block, state)
        room, aside = self._room_for(block), kinds.aside(self._reading.naming, self._spans)
        domain = self._domain.code()
        parsed = gather(
            lambda columns, exact: rows.parse_delimited(
                *(
                    text,
                    block.size,
                    columns,
                    described,
                    self._delimiter,
                    room,
                    grams,
                    kinds.mask,
                    domain,
                    state,
                    self._bad,
                    exact,
                    aside,
                )
            ),
            lambda exact: _with(exact, text, state),
            lambda *entry: self._bad_line(block, *entry),
            *(text, state, self._bad, columns, self._arenas, self._on_error),
        )
        self._reading.take_names(kinds.names)
        return parsed

    def _skip_head(self, block: Block, state: NDArray[np.int64]) -> None:
        """Begin behind the mark of UTF-8 and behind the header, which is counted as blank."""
        at = len(_MARK) if block.text[: len(_MARK)].tobytes() == _MARK else 0
        blank = self._layout.header
        while blank and at < block.size:
            line = line_at(block.text, at)
            at += len(line) + 1
            state[LINES_READ] += 1
            state[BLANKS] += 1
            blank = not line.removesuffix(b"\r")
        state[AT] = at

    def _room_for(self, block: Block) -> NDArray[np.uint8]:
        """Room for a quoted cell; none where there are no quotes."""
        if self._layout.format == "tsv" or not (block.text[: block.size] == _QUOTE).any():
            return self._room[:0]
        if len(self._room) < block.size + PAD:
            self._room = np.empty(block.size + PAD, np.uint8)
        return self._room

    def _grams_for(self, block: Block, kinds: Kinds) -> tuple[tuple[Any, ...], int]:
        """What texts are read with, and how many more features they may be."""
        texts, code = TEXT in kinds.what, kinds.grams.code()
        longest = block.size if texts else 0
        known = letters() if texts else np.zeros(0, np.int32)
        return (code, known, *rooms_for(longest)), room_for(block.size, code) if texts else 0

    def _bad_line(self, block: Block, start: int, at: int, code: int, line: int) -> BadLine:
        column, outcome = divmod(code, OUTCOMES)
        raw, files = line_at(block.text, start), self._files[block.file]
        without_end = raw.removesuffix(b"\r")
        expected = expected_of(outcome, files.names[column], self._domain, len(files.names))
        if outcome in (TOO_FEW, TOO_MANY):
            found = str(len(_cells(without_end, self._layout.format)))
        else:
            cell = _cells(without_end[at - start :], self._layout.format)[0]
            found = shown(cell) if cell else "an empty cell"
        return BadLine("", line + 1, at - start + 1, expected, found, raw)


def _with(exact: Numbers, text: NDArray[np.uint8], state: NDArray[np.int64]) -> Numbers:
    """The numbers, and the one at the place that `state` holds, all of the same line."""
    start, place = int(state[AT]), int(state[rows.PLACE])
    places, numbers = (exact[0], exact[1]) if len(exact[0]) and exact[0][0] >= start else NO_NUMBERS
    number = exact_number(line_at(text, start), start, place)
    return np.append(places, place), np.append(numbers, number).astype(np.float32)
