"""The Python side of parsers of one example per line: the loop round the compiled one, bad and long lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import BadLine, quote_bytes
from thresher.data.feature_specs import ANY
from thresher.data.features import crossing
from thresher.data.features.crossing import Crosses
from thresher.data.features.ngrams import room_for, rooms_for
from thresher.data.files.blocks import LINES, LONG_HEAD, LONGEST_LINE, Block
from thresher.data.formats import line_status
from thresher.data.formats.lines import line_rows as rows
from thresher.data.labels import ONE, hint_of_words
from thresher.data.report import AWAITED, FOUND, lines_not_utf8
from thresher.data.sources.reader import FAIL, QUARANTINE, LineTally, Parsed, Reading, RowArrays
from thresher.data.text.sorting import room_for_sorting

_TABLE = 256
_LINE = re.compile(rb"[^\n]*")


class BlockParser:
    """What the parsers of all formats hold, and their loop round compiled code."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._domain = reading, reading.domain
        self._bad = np.zeros((1 if reading.on_error == FAIL else _TABLE, 5), np.int64)
        """for the bad lines of one call: start, position of the error, outcome, lines, rows before"""

    def _gather(
        self,
        parse: Callable[[RowArrays], int],
        describe: Callable[..., BadLine],
        line_of: Callable[[int], bytes],
        state: NDArray[np.int64],
        columns: RowArrays,
        spaces: Sequence[str],
    ) -> Parsed:
        """Call `parse` until the block is done; returns the result.

        `describe` turns an entry of the table of bad lines into one; `line_of` returns the line at a
        position; `spaces` are the columns or namespaces in which names were found.
        """
        gaps, bad, rejected = list[int](), list[BadLine](), list[bytes]()
        result, reading = None, self._reading
        while result != line_status.DONE and not (bad and reading.on_error == FAIL):
            if result == line_status.NEEDS_ROOM:
                rows, nnz = state[[line_status.ROWS, line_status.NNZ]].tolist()
                columns = reading.arenas.roomier(columns, rows, nnz)
            result = parse(columns)
            for *entry, examples in self._bad[: state[line_status.BAD]].tolist():
                gaps.append(examples)
                if len(bad) < reading.described:
                    bad.append(describe(*entry))
                if reading.on_error == QUARANTINE:
                    rejected += [line_of(entry[0]), b"\n"]
            state[line_status.BAD] = 0
        if reading.namer is not None:
            reading.namer.take(spaces)
        _at, rows, nnz, lines, blank, merged, _bad = state.tolist()
        tally = LineTally(lines, rows, blank, len(gaps), merged)
        return Parsed(columns.chunk(rows, nnz), tally, bad, b"".join(rejected), gaps=gaps)


def too_long(block: Block, reading: Reading) -> Parsed:
    """The result for a part of a line that is too long."""
    nothing = reading.arenas.columns(0, 0)
    nothing.indptr[0] = 0
    first = int(block.kind == LONG_HEAD)
    bad = BadLine("", 1, LONGEST_LINE + 1, "a line of at most 64 MB", "a longer one", b"")
    rejected = block.text[: block.size].tobytes() if reading.on_error == QUARANTINE else b""
    tally = LineTally(lines=first, skipped=first)
    return Parsed(nothing.chunk(0, 0), tally, [bad] * first, rejected, gaps=[0] * first, ids=[""] * first)


def line_at(text: NDArray[np.generic], start: int) -> bytes:
    """The line from `start` on, without its newline."""
    found = _LINE.match(text.data, start)
    return bytes(found[0]) if found else b""


_OF_LABEL = line_status.LABEL_NUMBER, *range(line_status.LABEL_RANGE, line_status.LABEL_COUNT)
_NOT_FINITE = ("nan", "inf")
_EXPECTED = {
    line_status.LABEL_NUMBER: "a number as label",
    line_status.LABEL_RANGE: "a finite label (float32)",
    line_status.AFTER_LABEL: "a space after the label",
    line_status.LABEL_REPEATED: "each class once",
    line_status.WEIGHT_NUMBER: "a number as importance weight",
    line_status.WEIGHT_SIGN: "an importance weight that is finite and not negative",
    line_status.VALUE: "a number after ':'",
    line_status.VALUE_RANGE: "a value that is finite in float32",
    line_status.AFTER_VALUE: "a space after the number",
    line_status.PRODUCTS: crossing.EXPECTED,
}
"""What most formats expect, for messages."""
LISTED = "',' or a space after the label"
"""What must follow a label in a list of labels."""


class LineParser(BlockParser):
    """Parses blocks into chunks with a grammar, and adds the interactions of `crosses`."""

    def __init__(
        self,
        grammar: Any,
        reading: Reading,
        expected: Mapping[int, str],
        *,
        crosses: Crosses | None = None,
        named: bool = False,
        factors: Sequence[str] = (),
        texts: Sequence[str] = (),
        tag: Callable[[bytes], str | None] | None = None,
        advice: Callable[[int, bytes, int], str] = lambda outcome, line, place: "",
        after_listed: str = LISTED,
        shifted: bool = False,
    ) -> None:
        """Set up a thread's parser.

        Args:
            grammar: See `line_rows`.
            reading: The settings of all formats.
            expected: What is expected, by the outcome of a bad line, where it differs from most formats.
            crosses: The products to add to rows.
            named: Whether features have names; where they have ids, only products have names.
            factors: The namespaces that are multiplied.
            texts: The namespaces that are texts, which the grammar reads with its `texts`.
            tag: The id in a line, None for a comment, if the format has ids.
            advice: A hint about a bad line, or an empty string, given its outcome, the line, and the error
                position.
            after_listed: What must follow a label in a list of labels.
            shifted: Whether the grammar stores offsets.
        """
        super().__init__(reading)
        self._grammar, self._named = grammar, named
        self._shifted, self._texts = shifted, texts
        self._factors = [(place, name) for place, name in enumerate(factors) if name != ANY]
        naming = reading.naming if named or crosses else None  # None compiles less code
        self._extra = crossing.extra_of(crosses, naming)
        self._advice, self._tag = advice, tag if reading.ids else None
        self._expected = {**_EXPECTED, **expected, line_status.LABEL_DOMAIN: self._domain.meaning}
        if self._domain.kind != ONE:
            self._expected[line_status.AFTER_LABEL] = after_listed
            self._expected[line_status.LABEL_COUNT] = f"{self._domain.width} labels with ',' between them"
        self._rooms = room_for_sorting(ranks=False)

    def parse(self, block: Block) -> Parsed:
        """Parse the examples of a block into arrays of an arena."""
        reading, text, size = self._reading, block.text, block.size
        if block.kind != LINES:
            return too_long(block, reading)
        most = size // 2 + 1
        if self._domain.width:
            most = int(np.count_nonzero(text[:size] == ord("\n"))) + 2
        room = size + 16
        if self._texts:
            texts = self._grammar.texts._replace(rooms=rooms_for(size))
            self._grammar, room = self._grammar._replace(texts=texts), room + room_for(size, texts.code)
            texts.met[:] = False
        columns = reading.arenas.columns(most, room, self._domain.width, self._shifted)
        domain, crosses = self._domain.code(), self._extra[0]
        state = np.zeros(line_status.COUNTERS, np.int64)
        state[line_status.AT] = block.begin
        if crosses is not None:
            crosses.spans[0, crossing.MET] = 0

        rest = domain, state, self._bad, self._extra, self._rooms
        parsed = self._gather(
            lambda columns: rows.parse_lines(self._grammar, text, size, columns, *rest),
            partial(self._bad_line, text),
            partial(line_at, text),
            *(state, columns, self._texts),
        )
        met = 0 if crosses is None else int(crosses.spans[0, crossing.MET])
        noticed = [(AWAITED, name, 0, "") for name in (*self._texts, *(one for _, one in self._factors))]
        noticed += [(FOUND, name, 0, "") for place, name in self._factors if met >> place & 1]
        noticed += [(FOUND, name, 0, "") for k, name in enumerate(self._texts) if texts.met[k]]
        noticed += lines_not_utf8(block) if self._named else ()
        ids = None
        if self._tag is not None:
            lines = text[block.begin : size].tobytes().split(b"\n")
            tags = (self._tag(line) for line in lines if line.removesuffix(b"\r").strip(b" \t"))
            ids = [tag for tag in tags if tag is not None]
        return parsed._replace(noticed=tuple(noticed), ids=ids)

    def _bad_line(self, text: NDArray[np.uint8], start: int, at: int, outcome: int, line: int) -> BadLine:
        raw = line_at(text, start)
        at = start if outcome in (line_status.SUM_RANGE, line_status.PRODUCTS) else at  # of the whole line
        rest = raw[at - start :]
        token = rest.split(None, 1)[0] if rest[:1].strip() else b""
        if outcome in _OF_LABEL and self._domain.kind != ONE:
            token = token.partition(b",")[0] or token
        expected = self._expected[outcome]
        if outcome == line_status.AFTER_LABEL and token.startswith(b","):
            expected = "one label (lists need outputs labels:LO-HI or values:K)"
        if token.lstrip(b"+-")[:3].lower().decode("latin-1") in _NOT_FINITE:
            expected = expected.replace("a number", "a finite number")
        found = quote_bytes(token) if token else "a blank" if rest.strip() else "the end of the line"
        found += self._advice(outcome, raw, at - start)
        found += hint_of_words(token, self._domain) if outcome == line_status.LABEL_NUMBER else ""
        return BadLine("", line + 1, at - start + 1, expected, found, raw)
