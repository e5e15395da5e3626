"""svmlight (libsvm) text.

    label [qid:n] id:value id:value ... # comment
    label,label,... [qid:n] id:value id:value ... # comment

Numbers may be signed and scientific. Ids are whole numbers up to 2**64 - 1, from 0 or 1 on, in any order; the
values of repeated ids are added up. Blank and comment lines are ignored. A label alone is an example without
features. ``qid`` is no feature; the layout's `group` may name it. With several outputs, labels are a list: a
number for each output, or a set of classes. If the set is empty, the line begins with a blank.

If the layout has `label_weights`, ``:weight`` may follow the labels. Otherwise a colon in the first field
means that the line begins with a feature and has no label: a bad line, unless the domain is open.

``3:1 7:1`` may be a label, its weight and a feature, or two features. Nothing in the text decides, people
predict on rows without labels, and a wrong guess would be silent: so `label_weights` is an option, stored in
the layout.

Features are read in two ways. The fast path reads the usual shapes, an id and a value as in `quick_value`,
eight digits at a time, given masks of 64 bytes, which have the ends of all ids and values before any of them
is read; it branches only on the shape of the text. Everything else takes the careful path, which reports
every error. Both yield the same numbers.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from thresher.data.errors import DataError
from thresher.data.feature_specs import ANY
from thresher.data.features.crossing import note_namespace, of_namespaces
from thresher.data.formats import line_status
from thresher.data.formats.line_status import EXAMPLE, OWN
from thresher.data.formats.lines.line_rows import (
    ends_token,
    number_at,
    read_labels,
    read_weight,
)
from thresher.data.formats.lines.parse_loop import LISTED, LineParser
from thresher.data.layout import AnyLayout
from thresher.data.sources.reader import Reading
from thresher.data.text.numbers import (
    FINE,
    NOT_A_NUMBER,
    TENS,
    quick_value,
    read_id,
    read_number,
    scale_decimal,
)
from thresher.data.text.words import (
    WINDOW,
    among,
    byte,
    byte_set,
    enter,
    load_word,
    lowest_bit,
    short_number,
    skip_blanks,
    stops,
)
from thresher.engine.compile.jit import compiled_apart, scalar
from thresher.options.messages import mention

QID = OWN
"""The reason for bad lines specific to svmlight text."""
_NEWLINE, _RETURN, _SPACE, _HASH, _PLUS, _MINUS, _DOT, _COLON = 10, 13, 32, 35, 43, 45, 46, 58
_LARGEST_KEY = np.uint64(2**64 - 1)
_NONE, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_QID_WORD, _FOUR_BYTES = np.uint64(int.from_bytes(b"qid:", "little")), np.uint64(2**32 - 1)
_NUMBERS = byte_set(bytes([EXAMPLE, *range(line_status.LABEL_RANGE, line_status.AFTER_LABEL)]))
"""Outcomes of labels that are numbers"""


@scalar
def _line_ends(text, at):
    """Whether at most a comment follows on the line."""
    code = byte(text, at)
    return code == _NEWLINE or code == _HASH or (code == _RETURN and byte(text, at + 1) == _NEWLINE)


@scalar
def _is_qid(text, at):
    return load_word(text, at) & _FOUR_BYTES == _QID_WORD


@scalar
def _read_head(text, at, domain, targets, row, weighted):
    """Read what is before the features: ``(end or error position, label, weight, outcome)``."""
    weight, start = np.float32(1), at
    at = first = skip_blanks(text, at)
    if _line_ends(text, at):
        return at, weight, weight, line_status.BLANK
    at, label, outcome = read_labels(text, at, domain, targets, row, at > start)
    if outcome != EXAMPLE or byte(text, at) == _COLON:
        weighted = weighted and (first == start or at == first)
        begin = first + (byte(text, first) == _PLUS)
        end, _, _ = read_id(text, begin)
        is_feature = not weighted and end > begin and byte(text, end) == _COLON
        if weighted and outcome == EXAMPLE:
            at, weight, outcome = read_weight(text, at + 1)
        elif domain.open and (is_feature or _is_qid(text, first)):
            at, label, outcome = first, np.float32(0), EXAMPLE
        elif not weighted and among(outcome, _NUMBERS):
            while byte(text, end) != _COLON and not ends_token(text, end):
                end += 1
            if byte(text, end) == _COLON:
                at, outcome = first, line_status.NO_LABEL
    return skip_blanks(text, at) if outcome == EXAMPLE else at, label, weight, outcome


@compiled_apart
def _long_decimal(here, number, stop, unlike):
    """As `quick_value`, a value ``d.ddd`` with more than eight decimals."""
    first = number + (byte(here, number) == _MINUS)
    shape, decimals = (
        (unlike >> np.uint64(first)) & ((_ONE << np.uint64(stop - first)) - _ONE),
        stop - first - 2,
    )
    mantissa = np.uint64(byte(here, first) - 48)
    for at in range(first + 2, stop, 8):
        taken = min(stop - at, 8)
        mantissa = mantissa * TENS[taken] + short_number(here, at, taken)
    value, status = scale_decimal(mantissa, -decimals)
    usual = shape == _TWO and decimals <= 18 and byte(here, first + 1) == _DOT
    return -value if first > number else value, usual and status == FINE


@scalar
def _quick_feature(here, begin, ends, unlike):
    """Read a feature of the usual shape at `begin`, given the `stops` of address `here`.

    Returns ``(end, remaining ends, key, value, whether it has this shape)``. It must end in the window. The
    character that ends it is not checked.
    """
    colon = lowest_bit(ends)
    ends &= ends - _ONE
    end, size, key, value, quick = lowest_bit(ends), colon - begin, np.uint64(0), np.float32(0), False
    word = (unlike >> np.uint64(begin)) & ((_ONE << np.uint64(size & 63)) - _ONE)
    if 0 < size <= 8 and word == _NONE and byte(here, colon) == _COLON:
        key = short_number(here, begin, size)
        value, quick = quick_value(here, colon + 1, end, unlike)
        if not quick and 11 < end - colon < WINDOW - colon:
            value, quick = _long_decimal(here, colon + 1, end, unlike)
    return end, ends & (ends - _ONE), key, value, quick


@scalar
def _feature(text, at):
    """Read any feature at `at`: ``(end or error position, key, value, outcome)``."""
    begin, value = at + (byte(text, at) == _PLUS), np.float32(0)
    end, key, fits = read_id(text, begin)
    if end == begin:
        return at, key, value, line_status.KEY
    if not fits:
        return at, key, value, line_status.KEY_RANGE
    if byte(text, end) != _COLON:
        return end, key, value, line_status.COLON
    end, value, outcome = number_at(text, end + 1, line_status.VALUE, line_status.VALUE_RANGE)
    if outcome == EXAMPLE and not ends_token(text, end):
        outcome = line_status.AFTER_VALUE
    return end, key, value, outcome


@scalar
def _features(text, at, keys, values, nnz, crosses):
    """Read the features from `at` on, and store them from entry `nnz` of `keys` and `values` (addresses) on.

    They are a span of `crosses`. Returns ``(position of the line end or of the error, nnz, whether keys
    ascend, outcome)``.
    """
    start, floor, ascend = nnz, _NONE, True
    while True:
        ends, unlike = stops(text, at)
        here, begin = text + at, np.int64(0)
        while True:
            end, ends, key, value, quick = _quick_feature(here, begin, ends, unlike)
            after = byte(here, end)
            if not quick or (after != _SPACE and after != _NEWLINE):
                break
            ascend &= key >= floor
            floor = key + _ONE
            nnz = enter(key, value, keys, values, nnz)
            if after == _NEWLINE:
                note_namespace(crosses, _NONE, start, nnz)
                return at + end, nnz, ascend, EXAMPLE
            begin = end + 1
        at += begin
        if begin > 0:
            continue  # the window may have ended: read a new one from here
        at = skip_blanks(text, at)
        if _line_ends(text, at):
            note_namespace(crosses, _NONE, start, nnz)
            return at, nnz, ascend, EXAMPLE
        at, key, value, outcome = _feature(text, at)
        if outcome != EXAMPLE:
            return at, nnz, ascend, outcome
        # no floor can exceed the largest key
        ascend &= key >= floor and (nnz == start or key != load_word(keys, 8 * (nnz - 1)))
        floor = key + _ONE if key != _LARGEST_KEY else key
        nnz = enter(key, value, keys, values, nnz)


class Svmlight(NamedTuple):
    """The grammar of svmlight text."""

    weighted: bool = False
    """whether a colon in the first field belongs to ``label:weight``; otherwise it belongs to a feature"""
    ordered: bool = True

    def read_line(self, text, at, columns, nnz, domain, targets, row, extra):
        """See `line_rows.read_line`."""
        at, label, weight, outcome = _read_head(text, at, domain, targets, row, self.weighted)
        if outcome == EXAMPLE and _is_qid(text, at):
            end, _, status = read_number(text, at + 4)
            fits = status != NOT_A_NUMBER and ends_token(text, end)
            at, outcome = (end, EXAMPLE) if fits else (at + 4, QID)
        ascend = True
        if outcome == EXAMPLE:
            keys, values, _, _ = columns
            at, nnz, ascend, outcome = _features(text, at, keys, values, nnz, extra[0])
        return at, nnz, ascend, label, weight, outcome


_EXPECTED = {
    line_status.NO_LABEL: "a label",
    line_status.KEY: "a feature id (a whole number)",
    line_status.KEY_RANGE: "a feature id below 2^64",
    line_status.COLON: "':' after the feature id",
    line_status.SUM_RANGE: "values of a repeated id whose sum is finite in float32",
    line_status.WEIGHT_NUMBER: "a number as importance weight after ':'",
    QID: "a number after 'qid:'",
}
_EXPECTED_WEIGHTED = _EXPECTED | {
    line_status.AFTER_LABEL: "a space or ':' after the label",
    line_status.NO_LABEL: "a label at the start of the line",
}
_QID = re.compile(rb"[ \t]*(?:[^ \t#]+[ \t]+)?qid:([^ \t\r#]+)")


def parser(layout: AnyLayout, reading: Reading) -> LineParser:
    """The parser of blocks of svmlight text."""

    def qid(line: bytes) -> str | None:
        """The number after ``qid:``, as it is written; empty if there is none. None for a comment."""
        if line.lstrip(b" \t").startswith(b"#"):
            return None
        found = _QID.match(line)
        return found[1].decode("ascii", "backslashreplace") if found else ""

    def only_space(name: str) -> int:
        if name not in ("", ANY):
            raise DataError(f"svmlight has no namespaces: use {mention(interact='*,*')}, not '{name}'")
        return 0

    def advice(outcome: int, line: bytes, place: int) -> str:
        wanted = outcome == line_status.NO_LABEL and not layout.label_weights
        return f"; if the field is label:weight, use {mention(label_weights=True)}" if wanted else ""

    return LineParser(
        *(Svmlight(layout.label_weights), reading, _EXPECTED_WEIGHTED if layout.label_weights else _EXPECTED),
        crosses=of_namespaces(layout, only_space),
        tag=qid,
        advice=advice,
        after_listed="',', ':' or a space after the label" if layout.label_weights else LISTED,
    )
