"""LibFFM text.

    label field:id:value field:id:value ... # comment
    label,label,... field:id:value field:id:value ... # comment

It is svmlight text in which features have fields, which are whole numbers like ids. The key of a feature is
its id alone, as in LibFFM, where an id belongs to one field: a line without its fields is the same example
in svmlight text. Fields are the namespaces of interactions.

LibFFM numbers features across all fields. If an id were hashed with its field, the same data as svmlight text
would have different keys.

As in svmlight text, the usual shapes are read from masks of 64 bytes: see `line_rows`.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from thresher.data.errors import DataError
from thresher.data.feature_specs import ANY, terms_of
from thresher.data.features.crossing import note_namespace, of_namespaces
from thresher.data.formats.line_status import EXAMPLE, OWN
from thresher.data.formats.lines.line_rows import (
    line_ends,
    quick_feature,
    read_feature,
    read_head,
    skip_blanks,
)
from thresher.data.formats.lines.parse_loop import OF_IDS, LineParser, Wording
from thresher.data.layout import AnyLayout
from thresher.data.sources.reader import Reading
from thresher.data.text.numbers import read_id
from thresher.data.text.words import byte, load_word, lowest_bit, marks, short_number, store_float, store_word
from thresher.engine.compile.jit import scalar
from thresher.options.messages import mention

FIELD, AFTER_FIELD = OWN, OWN + 1
"""Reasons for bad lines specific to LibFFM text."""
_NEWLINE, _SPACE, _PLUS, _MINUS, _COLON = 10, 32, 43, 45, 58
_NONE, _ONE = np.uint64(0), np.uint64(1)


@scalar
def _quick(here, begin, others, odd):
    """Read a feature of the usual shape at `begin`: its field, and what `quick_feature` returns."""
    colon = lowest_bit(others)
    if 0 < colon - begin <= 8 and byte(here, colon) == _COLON and byte(here, colon + 1) != _MINUS:
        field = short_number(here, begin, colon - begin)
        end, others, key, value, quick = quick_feature(here, colon + 1, others & (others - _ONE), odd)
    else:
        field, end, key, value, quick = _NONE, begin, _NONE, np.float32(0), False
    return field, end, others, key, value, quick


@scalar
def _careful(text, at, exact):
    """Read any feature at `at`: ``(field, end or error position, key, value, outcome)``."""
    begin = at + (byte(text, at) == _PLUS)
    end, field, fits = read_id(text, begin)
    if end == begin or not fits:
        return field, at, _NONE, np.float32(0), FIELD
    if byte(text, end) != _COLON:
        return field, end, _NONE, np.float32(0), AFTER_FIELD
    end, key, value, outcome = read_feature(text, end + 1, exact)
    return field, end, key, value, outcome


@scalar
def _features(text, at, keys, values, nnz, exact, crosses):
    """Read the features from `at` on, and store them from entry `nnz` of `keys` and `values` (addresses) on.

    Consecutive features of one field are a span of `crosses`. Returns ``(position of the line end or of the
    error, nnz, whether keys ascend, outcome)``.
    """
    start = first = nnz
    ascend, last = True, _NONE
    while True:
        others, odd = marks(text, at)
        here, begin = text + at, np.int64(0)
        while True:
            field, end, others, key, value, quick = _quick(here, begin, others, odd)
            after = byte(here, end)
            if not quick or (after != _SPACE and after != _NEWLINE):
                break
            first = _begin_field(crosses, field, last, first, nnz)
            ascend, last = _store(keys, values, nnz, start, key, value, ascend), field
            nnz += 1
            if after == _NEWLINE:
                note_namespace(crosses, last, first, nnz)
                return at + end, nnz, ascend, EXAMPLE
            begin = end + 1
        at += begin
        if begin > 0:
            continue  # the window may have ended: read a new one from here
        at = skip_blanks(text, at)
        if line_ends(text, at):
            note_namespace(crosses, last, first, nnz)
            return at, nnz, ascend, EXAMPLE
        field, at, key, value, outcome = _careful(text, at, exact)
        if outcome != EXAMPLE:
            return at, nnz, ascend, outcome
        first = _begin_field(crosses, field, last, first, nnz)
        ascend, last = _store(keys, values, nnz, start, key, value, ascend), field
        nnz += 1


@scalar
def _begin_field(crosses, field, last, first, nnz):
    """Begin a new span at entry `nnz` if `field` is not that of entry `first`; returns the new `first`."""
    if field != last:
        note_namespace(crosses, last, first, nnz)
        first = nnz
    return first


@scalar
def _store(keys, values, nnz, start, key, value, ascend):
    """Store a feature as entry `nnz`; returns whether the keys from `start` on still ascend."""
    store_word(keys, nnz, key)
    store_float(values, nnz, value)
    return ascend and (nnz == start or key > load_word(keys, 8 * (nnz - 1)))


class Libffm(NamedTuple):
    """The grammar of LibFFM text."""

    ordered: bool = False

    def read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
        """See `line_rows.read_line`."""
        at, label, weight, outcome = read_head(text, at, domain, exact, targets, row, False)
        ascend = True
        if outcome == EXAMPLE:
            keys, values = columns
            at, nnz, ascend, outcome = _features(text, at, keys, values, nnz, exact, extra[0])
        return at, nnz, ascend, label, weight, outcome


_EXPECTED = OF_IDS | {
    FIELD: "a field (a whole number below 2^64)",
    AFTER_FIELD: "':' after the field",
}


def parser(layout: AnyLayout, reading: Reading) -> LineParser:
    """The parser of blocks of LibFFM text."""
    crosses, factors = of_namespaces(layout, _field), terms_of(layout.interact).factors
    return LineParser(Libffm(), Wording(_EXPECTED), reading, crosses, factors=factors)


def _field(name: str) -> int:
    if name == ANY:
        return 0
    if not re.fullmatch("[0-9]{1,20}", name) or int(name) >= 1 << 64:
        raise DataError(
            f"libffm: fields are whole numbers ({mention(interact='3,7')} or '*,*'), not '{name}'"
        )
    return int(name)
