"""svmlight (libsvm) text: the Python side of its parser.

    label[:weight] [qid:n] id:value id:value ... # comment
    label,label,...[:weight] [qid:n] id:value id:value ... # comment

Numbers may be signed and scientific; ids count from 0 or 1 up to 2**64 - 1, in any order, and
repeated ones are added up. Blank lines and lines of comment are no examples; a label alone is an
example without features. ``qid`` is read past. For several outputs the labels are a list: a number for
each output, or the classes that hold, of which there may be none: such a line begins with a blank or a
colon and the weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import BadLine, shown
from thresher.data.labels import ONE, Domain, domain_of
from thresher.data.layout import Layout
from thresher.data.sources import svmlight_rows as rows
from thresher.data.sources.blocks import LINES, Block
from thresher.data.sources.lines import bad_table, gather, line_at, too_long
from thresher.data.sources.numbers import exact_numbers
from thresher.data.sources.parsed import Arenas, Parsed

_EXPECTED = {
    rows.LABEL: "a number as label",
    rows.LABEL_RANGE: "a finite label (float32)",
    rows.AFTER_LABEL: "a space or ':' after the label",
    rows.WEIGHT: "a number as importance weight after ':'",
    rows.WEIGHT_SIGN: "an importance weight that is finite and not negative",
    rows.LABEL_REPEATED: "each class once",
    rows.QID: "a whole number after 'qid:'",
    rows.KEY: "a feature id (a whole number from 0 on)",
    rows.KEY_RANGE: "a feature id below 2^64",
    rows.COLON: "':' after the feature id",
    rows.VALUE: "a number after ':'",
    rows.VALUE_RANGE: "a value that is finite in float32",
    rows.AFTER_VALUE: "a space after the number",
    rows.SUM_RANGE: "values of a repeated id with a sum finite in float32",
}
_OF_LABEL = (rows.LABEL, rows.LABEL_DOMAIN, rows.LABEL_RANGE, rows.LABEL_REPEATED)
_NOT_FINITE = ("nan", "inf")


class SvmlightParser:
    """Parses blocks into chunks with labels of `domain`, doing `on_error` about bad lines."""

    def __init__(self, layout: Layout, domain: str, on_error: str, arenas: Arenas) -> None:
        self._domain = domain_of(domain)
        self._expected = {**_EXPECTED, **_expected_of(self._domain)}
        self._on_error = on_error
        self._arenas = arenas
        self._bad = bad_table(on_error)

    def parse(self, block: Block) -> Parsed:
        """The examples of a block, in arrays of an arena."""
        if block.kind != LINES:
            return too_long(block, self._arenas, self._on_error)
        text, size = block.text, block.size
        most = size // 2 + 1
        if self._domain.width:
            most = int(np.count_nonzero(text[:size] == ord("\n"))) + 2
        columns = self._arenas.columns(most, size // 2 + 16, self._domain.width)
        domain = self._domain.code()
        state = np.zeros(rows.COUNTERS, np.int64)
        return gather(
            lambda exact: rows.parse_lines(text, size, columns, domain, state, self._bad, exact),
            lambda _: exact_numbers(line_at(text, int(state[rows.AT])), int(state[rows.AT])),
            lambda *entry: self._bad_line(text, *entry),
            *(text, state, self._bad, columns, self._on_error),
        )

    def _bad_line(self, text: NDArray[np.uint8], start: int, at: int, outcome: int, line: int) -> BadLine:
        raw = line_at(text, start)
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


def _expected_of(domain: Domain) -> dict[int, str]:
    """What depends on the labels there may be."""
    expected = {rows.LABEL_DOMAIN: domain.meaning}
    if domain.kind != ONE:
        expected[rows.AFTER_LABEL] = "',', ':' or a space after the label"
        expected[rows.LABEL_COUNT] = f"{domain.outputs} labels with ',' between them"
    return expected
