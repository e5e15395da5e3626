"""Shared by line parsers: the loop around a compiled parser, and lines that are too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import BadLine
from thresher.data.files.blocks import LONG_HEAD, LONGEST_LINE, Block
from thresher.data.formats import outcomes
from thresher.data.report import FIRST_BAD
from thresher.data.sources.parsed import FAIL, QUARANTINE, Arenas, Columns, Parsed, Tally

Numbers = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Positions of numbers in a text, ascending, and their values."""

NO_NUMBERS: Numbers = (np.zeros(0, np.int64), np.zeros(0, np.float32))
_TABLE = 256
_WINDOW = 1 << 12


def bad_table(on_error: str) -> NDArray[np.int64]:
    """A table for the bad lines of one call: start, position of the error, outcome, lines, rows before."""
    return np.zeros((1 if on_error == FAIL else _TABLE, 5), np.int64)


def gather(
    parse: Callable[[Columns, Numbers], int],
    exact_of: Callable[[Numbers], Numbers],
    describe: Callable[..., BadLine],
    line_of: Callable[[int], bytes],
    state: NDArray[np.int64],
    table: NDArray[np.int64],
    columns: Columns,
    arenas: Arenas,
    on_error: str,
) -> Parsed:
    """Call `parse` until the block is done; returns the result.

    `exact_of` returns the exact numbers for the line at ``state[AT]``, given those it was parsed with;
    `describe` turns an entry of the `table` into a bad line; `line_of` returns the line at a position.
    """
    exact, gaps, bad, rejected = NO_NUMBERS, list[int](), list[BadLine](), list[bytes]()
    result = None
    while result != outcomes.DONE and not (bad and on_error == FAIL):
        if result == outcomes.NEEDS_EXACT:
            exact = exact_of(exact)
        elif result == outcomes.NEEDS_ROOM:
            columns = arenas.roomier(columns, int(state[outcomes.ROWS]), int(state[outcomes.NNZ]))
        result = parse(columns, exact)
        for *entry, examples in table[: state[outcomes.BAD]].tolist():
            gaps.append(examples)
            if len(bad) < FIRST_BAD:
                bad.append(describe(*entry))
            if on_error == QUARANTINE:
                rejected += [line_of(entry[0]), b"\n"]
        state[outcomes.BAD] = 0
    tally = Tally(
        lines=int(state[outcomes.LINES]),
        examples=int(state[outcomes.ROWS]),
        blank=int(state[outcomes.BLANKS]),
        skipped=len(gaps),
        merged=int(state[outcomes.MERGED]),
    )
    chunk = columns.chunk(tally.examples, int(state[outcomes.NNZ]))
    return Parsed(chunk, tally, bad, b"".join(rejected), gaps=gaps)


def too_long(block: Block, arenas: Arenas, on_error: str) -> Parsed:
    """The result for a part of a line that is too long."""
    nothing = arenas.columns(0, 0)
    nothing.indptr[0] = 0
    first = block.kind == LONG_HEAD
    bad = BadLine("", 1, LONGEST_LINE + 1, "a line of at most 64 MB", "a longer one", b"")
    rejected = block.text[: block.size].tobytes() if on_error == QUARANTINE else b""
    tally = Tally(lines=1, skipped=1) if first else Tally()
    lost = [0] * first
    return Parsed(nothing.chunk(0, 0), tally, [bad] * first, rejected, gaps=lost, ids=[""] * first)


def line_at(text: NDArray[Any], start: int) -> bytes:
    """The line from `start` on, without its newline."""
    end = start
    while True:
        piece = text[end : end + _WINDOW].tobytes()
        found = piece.find(b"\n")
        if found >= 0:
            return text[start : end + found].tobytes()
        end += _WINDOW
