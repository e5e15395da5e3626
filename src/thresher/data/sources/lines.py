"""Formats of one example a line: the Python side of their parsers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import BadLine, shown
from thresher.data.labels import ONE, domain_of
from thresher.data.report import FIRST_BAD
from thresher.data.sources import line_rows as rows
from thresher.data.sources.blocks import LINES, LONG_HEAD, LONGEST_LINE, Block
from thresher.data.sources.numbers import exact_numbers
from thresher.data.sources.parsed import FAIL, QUARANTINE, Arenas, Parsed, Tally

_OF_LABEL = (rows.LABEL, rows.LABEL_DOMAIN, rows.LABEL_RANGE, rows.LABEL_REPEATED)
_NOT_FINITE = ("nan", "inf")
_TABLE = 256
_WINDOW = 1 << 12
_NO_ROWS = ((np.zeros(0, np.int64)), np.zeros(0, np.float32))


class Wording(NamedTuple):
    """How a format says what it expected."""

    expected: Mapping[int, str]
    """by the outcome of a bad line"""
    after_listed: str
    """what must follow a label where several are listed"""


class LineParser:
    """Parses blocks by a grammar into chunks with labels of `domain`, doing `on_error` about bad lines."""

    def __init__(self, grammar: Any, wording: Wording, domain: str, on_error: str, arenas: Arenas) -> None:
        self._grammar = grammar
        self._domain = domain_of(domain)
        self._expected = {**wording.expected, rows.LABEL_DOMAIN: self._domain.meaning}
        if self._domain.kind != ONE:
            self._expected[rows.AFTER_LABEL] = wording.after_listed
            self._expected[rows.LABEL_COUNT] = f"{self._domain.outputs} labels with ',' between them"
        self._on_error = on_error
        self._arenas = arenas
        self._bad = np.zeros((1 if on_error == FAIL else _TABLE, 4), np.int64)

    def parse(self, block: Block) -> Parsed:
        """The examples of a block, in arrays of an arena."""
        if block.kind != LINES:
            return self._too_long(block)
        text, size = block.text, block.size
        most = size // 2 + 1
        if self._domain.width:
            most = int(np.count_nonzero(text[:size] == ord("\n"))) + 2
        columns = self._arenas.columns(most, size + 16, self._domain.width)
        domain = self._domain.code()
        state = np.zeros(rows.COUNTERS, np.int64)
        exact, skipped, bad, rejected = _NO_ROWS, 0, list[BadLine](), list[bytes]()
        result = None
        while result != rows.DONE and not (bad and self._on_error == FAIL):
            if result == rows.NEEDS_EXACT:
                at = int(state[rows.AT])
                exact = exact_numbers(_line(text, at), at)
            result = rows.parse_lines(self._grammar, text, size, columns, domain, state, self._bad, exact)
            for entry in self._bad[: state[rows.BAD]].tolist():
                skipped += 1
                if len(bad) < FIRST_BAD:
                    bad.append(self._bad_line(text, *entry))
                if self._on_error == QUARANTINE:
                    rejected += [_line(text, entry[0]), b"\n"]
            state[rows.BAD] = 0
        tally = Tally(
            lines=int(state[rows.LINES]),
            examples=int(state[rows.ROWS]),
            blank=int(state[rows.BLANKS]),
            skipped=skipped,
            merged=int(state[rows.MERGED]),
        )
        return Parsed(columns.chunk(tally.examples, int(state[rows.NNZ])), tally, bad, b"".join(rejected))

    def _bad_line(self, text: NDArray[np.uint8], start: int, at: int, outcome: int, line: int) -> BadLine:
        raw = _line(text, start)
        words = raw[at - start :].split(None, 1)
        token = words[0] if words and not raw[at - start : at - start + 1].isspace() else b""
        if outcome in _OF_LABEL and self._domain.kind != ONE:
            token = token.partition(b",")[0] or token
        expected = self._expected[outcome]
        if outcome == rows.AFTER_LABEL and token.startswith(b","):
            expected = "one label (lists are for outputs labels:LO-HI and values:K)"
        if token.lstrip(b"+-")[:3].lower().decode("latin-1") in _NOT_FINITE:
            expected = expected.replace("a number", "a finite number")
        found = shown(token) if token else ("a blank" if raw[at - start :].strip() else "the end of the line")
        return BadLine("", line + 1, at - start + 1, expected, found, raw)

    def _too_long(self, block: Block) -> Parsed:
        nothing = self._arenas.columns(0, 0)
        nothing.indptr[0] = 0
        first = block.kind == LONG_HEAD
        column = LONGEST_LINE + 1
        bad = BadLine("", 1, column, "a line of at most 64 MB", "a longer one", b"")
        rejected = block.text[: block.size].tobytes() if self._on_error == QUARANTINE else b""
        tally = Tally(lines=1, skipped=1) if first else Tally()
        return Parsed(nothing.chunk(0, 0), tally, [bad] if first else [], rejected)


def _line(text: NDArray[np.uint8], start: int) -> bytes:
    """The line from `start` to before its newline."""
    end = start
    while True:
        piece = text[end : end + _WINDOW].tobytes()
        found = piece.find(b"\n")
        if found >= 0:
            return text[start : end + found].tobytes()
        end += _WINDOW
