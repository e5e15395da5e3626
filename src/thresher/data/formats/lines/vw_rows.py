"""The compiled parser of VW text: ``[label [importance [base]]] [tag]|name[:scale] feature[:value] ...``.

As in svmlight text, the usual shapes take a fast path (`vw_quick`) if a blank, a bar or the line end follows.
Everything else takes the careful path in this module, which reports every error; both yield the same
features. The careful path is compiled when a line first needs it.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.data.features.crossing import note_namespace
from thresher.data.features.murmur import (
    first_bytes,
    whole_murmur3_64,
)
from thresher.data.features.wanted import names_any, offer_with
from thresher.data.formats.lines.line_rows import ends_line, exact_number, head_number, skip_blanks
from thresher.data.formats.lines.vw_head import LAST, breaks, read_head
from thresher.data.formats.lines.vw_quick import ID_DIGITS, hash_name, quick_feature, quick_head
from thresher.data.formats.outcomes import AFTER_VALUE, EXAMPLE, UNDECIDED, UNUSUAL, VALUE, VALUE_RANGE
from thresher.data.text.numbers import FINE, HARD, NOT_A_NUMBER, read_id
from thresher.data.text.words import (
    WINDOW,
    among,
    byte,
    byte_set,
    load_word,
    lowest_bit,
    stops,
    store_float,
    store_word,
)
from thresher.engine.jit import scalar

NAMESPACE, AFTER_NAMESPACE, SCALE, SCALE_RANGE, AFTER_NAME = range(LAST + 1, LAST + 6)
"""Reasons for bad lines specific to VW text; more are in `vw_head`."""

_NUL, _TAB, _NEWLINE, _RETURN, _SPACE, _PLUS, _MINUS, _DOT = 0, 9, 10, 13, 32, 43, 45, 46
_COLON, _BAR = 58, 124
_ENDS_NAME, _ENDS_TEXT = byte_set(b" \t\n\r\0:"), byte_set(b" \t\n\r\0")
_LETTER = ord("e")
_ONE, _TWO, _THREE, _NONE = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(0)
_LARGEST_ID = np.uint64(2**64 - 1)
_SMALL = np.uint64(0x2020202020202020)
_NAN, _INF, _INFINITY = (np.uint64(int.from_bytes(word, "little")) for word in (b"nan", b"inf", b"infinity"))
_SAFE_SCALE = np.float32(1e20)  # the product with a value of the usual shape is finite


@scalar
def _name_end(text, at):
    """The end of the name that begins at `at`: a blank, colon, bar, carriage return, NUL or line end."""
    while True:
        end = lowest_bit(stops(text, at)[0])
        at += end
        if end < WINDOW:
            code = byte(text, at)
            if among(code, _ENDS_NAME) or code == _BAR:
                return at
            at += 1


@scalar
def _named(grammar, text, at, size, space):
    """The key of the name of `size` bytes at `at`; in the nameless namespace, a whole number is an id."""
    seed, ids, _, _ = space
    if ids and grammar.vw is None and 0 < size <= ID_DIGITS:
        end, key, fits = read_id(text, at)
        if fits and end == at + size:
            return key & grammar.mask
    return hash_name(grammar.vw, text, at, size, seed) & grammar.mask


@scalar
def _numbered(grammar, number, space):
    """The key of a feature without a name: that of its `number` in the namespace."""
    seed, ids, offset, _ = space
    if ids:
        return (np.uint64(number) + offset) & grammar.mask
    return whole_murmur3_64(number, seed) & grammar.mask


@scalar
def _begins_number(text, at):
    code = byte(text, at)
    if code == _PLUS or code == _MINUS:
        code = byte(text, at + 1)
        return code == _DOT or 48 <= code <= 57
    return 48 <= code <= 57 or (code == _DOT and 48 <= byte(text, at + 1) <= 57)


@scalar
def _not_finite(text, at, end):
    """Whether the word [at, end) is an infinity or NaN."""
    if byte(text, at) == _PLUS or byte(text, at) == _MINUS:
        at += 1
    size = end - at
    word = first_bytes(load_word(text, at) | _SMALL, min(max(size, 0), 8))
    return (size == 3 and (word == _NAN or word == _INF)) or (size == 8 and word == _INFINITY)


@scalar
def _text_end(text, at):
    """The end of a value that is text: a blank, a carriage return, a NUL or the line end."""
    while not among(byte(text, at), _ENDS_TEXT):
        at += 1
    return at


@scalar
def _feature(grammar, text, at, exact, space, numbered):
    """Read any feature at `at`: ``(end or error position, key, value, outcome)``."""
    seed, _, _, scale = space
    name, end, value = at, _name_end(text, at), scale
    size = end - name
    if byte(text, end) != _COLON:
        key = _named(grammar, text, name, size, space)
        return end, key, value, EXAMPLE if breaks(text, end) else AFTER_NAME
    at = end + 1
    if not _begins_number(text, at):
        end = _text_end(text, at)
        if end == at or _not_finite(text, at, end):
            return at, _NONE, value, VALUE
        chained = hash_name(grammar.vw, text, name, size, seed)
        key = hash_name(grammar.vw, text, at, end - at, chained) & grammar.mask
        return end, key, np.float32(1), EXAMPLE if breaks(text, end) else AFTER_NAME
    end, value, status = exact_number(text, at, exact)
    if status != FINE:
        return (
            at,
            _NONE,
            value,
            UNDECIDED if status == HARD else VALUE if status == NOT_A_NUMBER else VALUE_RANGE,
        )
    value *= scale
    if not np.isfinite(value):
        return at, _NONE, value, VALUE_RANGE
    key = _named(grammar, text, name, size, space) if size > 0 else _numbered(grammar, numbered, space)
    return end, key, value, EXAMPLE if breaks(text, end) else AFTER_VALUE


@scalar
def _careful_feature(careful, grammar, text, at, exact, space, numbered):
    """`_feature`, also returning, before the outcome, whether it has no name; `UNUSUAL` if not `careful`."""
    if careful is None:
        return at, _NONE, np.float32(0), False, UNUSUAL
    unnamed = byte(text, at) == _COLON and _begins_number(text, at + 1)
    at, key, value, outcome = _feature(grammar, text, at, exact, space, numbered)
    return at, key, value, unnamed, outcome


@scalar
def _scale(careful, text, at, exact):
    """Read the scale of a namespace: ``(position after it or of the error, float32, outcome)``."""
    if careful is None:
        return at, np.float32(1), UNUSUAL
    end, scale, status = head_number(text, at, exact)
    if status != FINE:
        return at, scale, UNDECIDED if status == HARD else SCALE if status == NOT_A_NUMBER else SCALE_RANGE
    return end, scale, EXAMPLE if breaks(text, end) else AFTER_VALUE


@scalar
def _head(careful, text, at, domain, exact, targets, row):
    """Read everything before the first bar. Returns what `read_head` does."""
    if careful is None:
        return quick_head(text, at, domain)
    return read_head(text, at, domain, exact, targets, row)


@scalar
def _namespace(grammar, text, at, exact):
    """Read the namespace after a bar: ``(position after it or of the error, space, outcome)``.

    ``space = (seed, whether numbers are ids, offset added to ids, scale)``.
    """
    scale = np.float32(1)
    end = _name_end(text, at)
    seed, ids = grammar.nameless, True
    if end > at:
        seed, ids = hash_name(grammar.vw, text, at, end - at, grammar.seed), grammar.vw is not None
    offset = seed if grammar.vw is not None else _NONE
    if byte(text, end) == _COLON:
        if end == at:
            return at, (seed, ids, offset, scale), NAMESPACE
        end, scale, outcome = _scale(grammar.careful, text, end + 1, exact)
        return end, (seed, ids, offset, scale), outcome
    return end, (seed, ids, offset, scale), EXAMPLE if breaks(text, end) else AFTER_NAMESPACE


@scalar
def _features(grammar, text, at, keys, values, nnz, exact, space, start, sorted_so_far, before, naming):
    """Read the features of one namespace from `at` on, and store them from entry `nnz` on.

    `keys` and `values` are addresses. The row began at entry `start`, and the name of the namespace at
    `before`. Returns ``(position of the bar, line end or error, nnz, whether keys ascend, outcome)``.
    """
    ascend, numbered, safe = sorted_so_far, np.int64(0), abs(space[3]) < _SAFE_SCALE and not names_any(naming)
    floor = load_word(keys, 8 * (nnz - 1)) + _ONE if nnz > start else _NONE
    while True:
        at = skip_blanks(text, at)
        ends, unlike = stops(text, at)
        here, begin = text + at, np.int64(0)
        while safe:
            end, ends, key, value, quick = quick_feature(grammar, here, begin, ends, unlike, space)
            after = byte(here, end)
            if not quick or (after != _SPACE and after != _NEWLINE and after != _BAR):
                break
            ascend &= (key >= floor) & (key != _LARGEST_ID)  # which has no floor above it
            floor = key + _ONE
            store_word(keys, nnz, key)
            store_float(values, nnz, value)
            nnz += 1
            if after != _SPACE:
                return at + end, nnz, ascend, EXAMPLE
            begin = end + 1
        at += begin
        if begin > 0:
            continue  # the window may have ended: read a new one from here
        if byte(text, at) == _BAR or ends_line(text, at):
            return at, nnz, ascend, EXAMPLE
        name = at
        at, key, value, unnamed, outcome = _careful_feature(
            grammar.careful, grammar, text, at, exact, space, numbered
        )
        if outcome != EXAMPLE:
            return at, nnz, ascend, outcome
        numbered += unnamed
        _offer(naming, key, text, name, at, before)
        ascend &= (key >= floor) & (key != _LARGEST_ID)  # which has no floor above it
        floor = key + _ONE
        store_word(keys, nnz, key)
        store_float(values, nnz, value)
        nnz += 1


@scalar
def _offer(naming, key, text, at, end, before):
    """Enter the name of a feature; if its value is text, the name includes the value."""
    if names_any(naming):
        stop = _name_end(text, at)
        if stop < end and not _begins_number(text, stop + 1):
            stop = end
        if stop > at:
            offer_with(naming, key, text, at, stop - at, before, _name_end(text, before) - before)


class Vw(NamedTuple):
    """The grammar of VW text, with the layout's options for keys."""

    mask: np.uint64
    """mask of the bits of a key that are kept"""
    seed: np.uint64
    """hash seed for names of namespaces"""
    nameless: np.uint64
    """hash seed for names in the namespace without a name"""
    vw: bool | None
    """true if keys are the indices of Vowpal Wabbit; otherwise None, so that their hash is not compiled"""
    ordered: bool = False
    careful: bool | None = None
    """true to read every shape; None to read only the usual ones, so that the rest is not compiled"""

    def read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
        """See `line_rows.read_line`."""
        at, label, weight, outcome = _head(self.careful, text, at, domain, exact, targets, row)
        start, ascend = nnz, True
        keys, values = columns
        while outcome == EXAMPLE and byte(text, at) == _BAR:
            first, begin = nnz, at + 1
            at, space, outcome = _namespace(self, text, begin, exact)
            if outcome == EXAMPLE:
                at, nnz, ascend, outcome = _features(
                    self, text, at, keys, values, nnz, exact, space, start, ascend, begin, extra[1]
                )
                note_namespace(extra[0], space[0], first, nnz)
        return at, nnz, ascend, label, weight, outcome
