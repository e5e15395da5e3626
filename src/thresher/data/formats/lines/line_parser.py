"""Formats with one example per line: the Python side of their parsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import BadLine, shown
from thresher.data.features import crossing
from thresher.data.features.factors import extra_of
from thresher.data.files.blocks import LINES, Block
from thresher.data.formats import outcomes
from thresher.data.formats.lines import line_rows as rows
from thresher.data.formats.lines.gathering import Numbers, bad_table, gather, line_at, too_long
from thresher.data.formats.not_utf8 import lines_not_utf8
from thresher.data.labels import ONE, hint_of_words
from thresher.data.sources.parsed import Columns, Parsed, Reading
from thresher.data.text.numbers import exact_numbers
from thresher.data.text.sorting import BUCKETS

_OF_LABEL = (outcomes.LABEL_NUMBER, outcomes.LABEL_DOMAIN, outcomes.LABEL_RANGE, outcomes.LABEL_REPEATED)
_PEEK = 1 << 12
_NOT_FINITE = ("nan", "inf")


_EXPECTED = {
    outcomes.LABEL_NUMBER: "a number as label",
    outcomes.LABEL_RANGE: "a finite label (float32)",
    outcomes.AFTER_LABEL: "a space after the label",
    outcomes.LABEL_REPEATED: "each class once",
    outcomes.WEIGHT_NUMBER: "a number as importance weight",
    outcomes.WEIGHT_SIGN: "an importance weight that is finite and not negative",
    outcomes.VALUE: "a number after ':'",
    outcomes.VALUE_RANGE: "a value that is finite in float32",
    outcomes.AFTER_VALUE: "a space after the number",
    outcomes.PRODUCTS: crossing.EXPECTED,
}
"""What most formats expect, for messages."""
OF_IDS = {
    outcomes.NO_LABEL: "a label",
    outcomes.KEY: "a feature id (a whole number)",
    outcomes.KEY_RANGE: "a feature id below 2^64",
    outcomes.COLON: "':' after the feature id",
    outcomes.SUM_RANGE: "values of a repeated id whose sum is finite in float32",
}
"""What formats with ids expect in addition."""
LISTED = "',' or a space after the label"
"""What must follow a label in a list of labels."""


def no_advice(outcome: int, line: bytes, place: int) -> str:
    """See `Wording.advice`."""
    return ""


class Wording(NamedTuple):
    """The messages of a format."""

    expected: Mapping[int, str]
    """what is expected, by the outcome of a bad line, where it differs from most formats"""
    after_listed: str = LISTED
    usual: re.Pattern[bytes] | None = None
    """lines that the grammar can read without being `careful`, if any"""
    tag: Callable[[bytes], str | None] | None = None
    """the id in a line, None for a comment, if the format has ids"""
    advice: Callable[[int, bytes, int], str] = no_advice
    """a hint about a bad line, or an empty string, given its outcome, the line, and the error position"""


class LineParser:
    """Parses blocks into chunks with a grammar, and adds the interactions of `crosses`."""

    def __init__(
        self, grammar: Any, wording: Wording, reading: Reading, crosses: Any, named: bool = False
    ) -> None:
        """`named` says whether features have names; where they have ids, only products have names."""
        self._grammar, self._usual, self._named = grammar, wording.usual, named
        naming = reading.naming if named or crosses else None  # None compiles less code
        self._reading, self._extra = reading, extra_of(crosses, naming)
        self._domain = reading.domain
        self._advice, self._tag = wording.advice, wording.tag if reading.ids else None
        self._expected = {**_EXPECTED, **wording.expected, outcomes.LABEL_DOMAIN: self._domain.meaning}
        if self._domain.kind != ONE:
            self._expected[outcomes.AFTER_LABEL] = wording.after_listed
            self._expected[outcomes.LABEL_COUNT] = f"{self._domain.width} labels with ',' between them"
        self._on_error, self._arenas = reading.on_error, reading.arenas
        self._bad = bad_table(reading.on_error)
        sorts = crosses or not grammar.ordered
        self._counts = np.empty(BUCKETS, np.uint64) if sorts else None
        """scratch space for sorting; None until a line needs it, so that sorting is compiled only then"""

    def parse(self, block: Block) -> Parsed:
        """Parse the examples of a block into arrays of an arena."""
        if block.kind != LINES:
            return too_long(block, self._arenas, self._on_error)
        text, size = block.text, block.size
        self._choose(text[block.begin : block.begin + _PEEK].tobytes())
        most = size // 2 + 1
        if self._domain.width:
            most = int(np.count_nonzero(text[:size] == ord("\n"))) + 2
        columns = self._arenas.columns(most, size + 16, self._domain.width)
        domain = self._domain.code()
        state = np.zeros(outcomes.COUNTERS, np.int64)
        state[outcomes.AT] = block.begin

        def parse(columns: Columns, exact: Numbers) -> int:
            given = (text, size, columns, domain, state, self._bad, exact, self._extra)
            while True:
                result: int = rows.parse_lines(self._grammar, *given, self._counts)
                if result == outcomes.NEEDS_SORTING:
                    self._counts = np.empty(BUCKETS, np.uint64)
                elif result == outcomes.NEEDS_CARE:
                    self._grammar = self._grammar._replace(careful=True)
                else:
                    return result

        parsed = gather(
            parse,
            lambda _: exact_numbers(line_at(text, int(state[outcomes.AT])), int(state[outcomes.AT])),
            lambda *entry: self._bad_line(text, *entry),
            lambda start: line_at(text, start),
            *(state, self._bad, columns, self._arenas, self._on_error),
        )
        self._reading.take_names()
        if self._named:
            parsed = parsed._replace(noticed=lines_not_utf8(block))
        return parsed if self._tag is None else parsed._replace(ids=self._ids(block, self._tag))

    @staticmethod
    def _ids(block: Block, tag: Callable[[bytes], str | None]) -> list[str]:
        """The ids of the lines that are neither blank nor comments."""
        lines = block.text[block.begin : block.size].tobytes().split(b"\n")
        found = (tag(line) for line in lines if line.removesuffix(b"\r").strip(b" \t"))
        return [one for one in found if one is not None]

    def _choose(self, begin: bytes) -> None:
        """Use the careful path from the first block on if its first line has an unusual shape."""
        if self._usual is not None:
            line, ended, _ = begin.partition(b"\n")
            if not self._usual.fullmatch(line if ended else line.rpartition(b" ")[0]):
                self._grammar = self._grammar._replace(careful=True)
            self._usual = None

    def _bad_line(self, text: NDArray[np.uint8], start: int, at: int, outcome: int, line: int) -> BadLine:
        raw = line_at(text, start)
        words = raw[at - start :].split(None, 1)
        token = words[0] if words and not raw[at - start : at - start + 1].isspace() else b""
        if outcome in _OF_LABEL and self._domain.kind != ONE:
            token = token.partition(b",")[0] or token
        expected = self._expected[outcome]
        if outcome == outcomes.AFTER_LABEL and token.startswith(b","):
            expected = "one label (lists need outputs labels:LO-HI or values:K)"
        if token.lstrip(b"+-")[:3].lower().decode("latin-1") in _NOT_FINITE:
            expected = expected.replace("a number", "a finite number")
        found = shown(token) if token else ("a blank" if raw[at - start :].strip() else "the end of the line")
        found += self._advice(outcome, raw, at - start)
        found += hint_of_words(token, self._domain) if outcome == outcomes.LABEL_NUMBER else ""
        return BadLine("", line + 1, at - start + 1, expected, found, raw)
