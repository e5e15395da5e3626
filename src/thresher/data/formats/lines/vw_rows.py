"""The compiled parser of VW text: ``[label [importance [base]]] [tag]|name[:scale] feature[:value] ...``.

As in svmlight text the usual shapes are read from marks of 64 bytes, on one path: features ``name``,
``name:ddd``, ``name:d.ddd`` and ``name:d.ddde-dd`` that a blank, a bar or the line end follows. Whatever
looks different takes the careful way beside it, which knows every error; both leave the same features.
"""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.data.features.crossing import note_namespace
from thresher.data.features.murmur import (
    first_bytes,
    roomy_murmur3_64,
    vw_hash,
    whole_murmur3_64,
    word_murmur3_64,
)
from thresher.data.features.wanted import offer_with
from thresher.data.formats.lines.line_rows import ends_line, exact_number, skip_blanks
from thresher.data.formats.lines.vw_head import LAST, breaks, read_head
from thresher.data.formats.outcomes import AFTER_VALUE, EXAMPLE, UNDECIDED, VALUE, VALUE_RANGE
from thresher.data.text.numbers import FINE, HARD, NOT_A_NUMBER, TENS, decimal, read_id
from thresher.data.text.words import (
    WINDOW,
    byte,
    load_word,
    lowest_bit,
    short_number,
    stops,
    store_float,
    store_word,
)
from thresher.engine.jit import scalar

NAMESPACE, AFTER_NAMESPACE, SCALE, SCALE_RANGE, AFTER_NAME = range(LAST + 1, LAST + 6)
"""The reasons for which a line is bad that only VW text has; others are in `vw_head`."""

_NUL, _TAB, _NEWLINE, _RETURN, _SPACE, _PLUS, _MINUS, _DOT = 0, 9, 10, 13, 32, 43, 45, 46
_COLON, _BAR = 58, 124
_LETTER = ord("e")
_ONE, _TWO, _THREE, _NONE = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(0)
_ID_DIGITS = 20
_LARGEST_ID = np.uint64(2**64 - 1)
_SMALL = np.uint64(0x2020202020202020)
_NAN, _INF, _INFINITY = (np.uint64(int.from_bytes(word, "little")) for word in (b"nan", b"inf", b"infinity"))
_GENTLE = np.float32(1e20)  # times a value of the usual shape it stays finite


@scalar
def _name_end(text, at):
    """Where the name that begins at `at` ends: at a blank, colon, bar, carriage return, NUL or line end."""
    while True:
        end = lowest_bit(stops(text, at)[0])
        at += end
        if end < WINDOW:
            if byte(text, at) in (_SPACE, _NEWLINE, _COLON, _BAR, _TAB, _RETURN, _NUL):
                return at
            at += 1


@scalar
def _hash(vw, text, at, size, seed):
    """The hash of a name, of the kind that the layout wants: see `Vw.vw`."""
    if vw is None:
        return roomy_murmur3_64(text, at, size, seed)
    return vw_hash(text, at, size, seed)


@scalar
def _named(grammar, text, at, size, space):
    """The key of the name of `size` bytes at `at`; an id in the nameless namespace stays as it is."""
    seed, ids, _, _ = space
    if ids and grammar.vw is None and 0 < size <= _ID_DIGITS:
        end, key, fits = read_id(text, at)
        if fits and end == at + size:
            return key & grammar.mask
    return _hash(grammar.vw, text, at, size, seed) & grammar.mask


@scalar
def _numbered(grammar, number, space):
    """The key of the feature without a name that is the `number`-th of its namespace: that of the number."""
    seed, ids, offset, _ = space
    if ids:
        return (np.uint64(number) + offset) & grammar.mask
    return whole_murmur3_64(number, seed) & grammar.mask


@scalar
def _begins_number(text, at):
    code = byte(text, at)
    if code in (_PLUS, _MINUS):
        code = byte(text, at + 1)
        return code == _DOT or 48 <= code <= 57
    return 48 <= code <= 57 or (code == _DOT and 48 <= byte(text, at + 1) <= 57)


@scalar
def _not_finite(text, at, end):
    """Whether the word [at, end) writes infinity or no number."""
    if byte(text, at) == _PLUS or byte(text, at) == _MINUS:
        at += 1
    size = end - at
    word = first_bytes(load_word(text, at) | _SMALL, min(max(size, 0), 8))
    return (size == 3 and word in (_NAN, _INF)) or (size == 8 and word == _INFINITY)


@scalar
def _text_end(text, at):
    """Where text as a value ends: at a blank, a carriage return, a NUL or the line end."""
    while byte(text, at) not in (_SPACE, _NEWLINE, _TAB, _RETURN, _NUL):
        at += 1
    return at


@scalar
def _feature(grammar, text, at, exact, space, numbered):
    """Any feature at `at`: ``(end or place of the error, key, value, outcome)``."""
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
        chained = _hash(grammar.vw, text, name, size, seed)
        key = _hash(grammar.vw, text, at, end - at, chained) & grammar.mask
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
def _namespace(grammar, text, at, exact):
    """What stands behind the bar before `at`: ``(place behind or of the error, space, outcome)``.

    ``space = (seed, whether numbers are ids, what is added to them, scale)``.
    """
    scale, outcome = np.float32(1), EXAMPLE
    end = _name_end(text, at)
    seed, ids = grammar.nameless, True
    if end > at:
        seed, ids = _hash(grammar.vw, text, at, end - at, grammar.seed), grammar.vw is not None
    offset = seed if grammar.vw is not None else _NONE
    if byte(text, end) == _COLON:
        if end == at:
            return at, (seed, ids, offset, scale), NAMESPACE
        at = end + 1
        end, scale, status = exact_number(text, at, exact)
        if status != FINE:
            outcome = UNDECIDED if status == HARD else SCALE if status == NOT_A_NUMBER else SCALE_RANGE
            return at, (seed, ids, offset, scale), outcome
        outcome = AFTER_VALUE
    else:
        outcome = AFTER_NAMESPACE
    return end, (seed, ids, offset, scale), EXAMPLE if breaks(text, end) else outcome


@scalar
def _scientific(here, first, length, shape):
    """The value ``d.ddde-dd`` of the `length` bytes from `first` on: ``(float32, whether it is one)``."""
    decimals, letter = length - 6, first + length - 4
    if not (1 <= decimals <= 8 and shape == _TWO | _THREE << np.uint64(length - 4)):
        return np.float32(0), False
    mantissa = np.uint64(byte(here, first) - 48) * TENS[decimals] + short_number(here, first + 2, decimals)
    places = decimals + np.int64(short_number(here, letter + 2, 2))
    value, sure = decimal(mantissa, min(places, 22))
    dotted = byte(here, first + 1) == _DOT and byte(here, letter) | 32 == _LETTER
    return value, sure and places <= 22 and dotted and byte(here, letter + 1) == _MINUS


@scalar
def _quick_value(here, number, stop, unlike):
    """The value ``ddd``, ``d.ddd`` or ``d.ddde-dd`` in [number, stop): ``(float32, whether it is one)``."""
    sign = byte(here, number) == _MINUS
    first = number + sign
    length = stop - first
    shape = (unlike >> np.uint64(first & 63)) & ((_ONE << np.uint64(length & 63)) - _ONE)
    if shape == _TWO and 3 <= length <= 10 and byte(here, first + 1) == _DOT:
        mantissa = np.uint64(byte(here, first) - 48) * TENS[length - 2]
        value, sure = decimal(mantissa + short_number(here, first + 2, length - 2), length - 2)
    elif shape == _NONE and 1 <= length <= 8:
        value, sure = np.float32(np.int64(short_number(here, first, length))), True
    else:
        value, sure = _scientific(here, first, length, shape)
    return -value if sign else value, sure and stop < WINDOW


@scalar
def _quick(grammar, here, begin, ends, unlike, space):
    """The usual feature at `begin`, given the `stops` of address `here`.

    Returns ``(end, ends left, key, value, whether it is one)``. What ends it is not looked at.
    """
    seed, ids, offset, value = space
    end = lowest_bit(ends)
    ends &= ends - _ONE
    size = end - begin
    quick = end < WINDOW and size > 0
    if quick:
        if ids and size <= 8 and (unlike >> np.uint64(begin)) & ((_ONE << np.uint64(size)) - _ONE) == _NONE:
            key = (short_number(here, begin, size) + offset) & grammar.mask
        elif size <= 8 and grammar.vw is None:
            key = word_murmur3_64(first_bytes(load_word(here, begin), size), size, seed) & grammar.mask
        else:
            quick = not (ids and size <= _ID_DIGITS and grammar.vw is None) or _has_letters(
                unlike, begin, size
            )
            key = _hash(grammar.vw, here, begin, size, seed) & grammar.mask
        if byte(here, end) == _COLON:
            number, end = end + 1, lowest_bit(ends)
            ends &= ends - _ONE
            plain, sure = _quick_value(here, number, end, unlike)
            value *= plain
            quick = quick and sure
    else:
        key = _NONE
    return end, ends, key, value, quick


@scalar
def _has_letters(unlike, begin, size):
    """Whether any of the `size` bytes from `begin` on is no digit."""
    return (unlike >> np.uint64(begin)) & ((_ONE << np.uint64(size)) - _ONE) != _NONE


@scalar
def _features(grammar, text, at, keys, values, nnz, exact, space, start, sorted_so_far, before, naming):
    """The features of one namespace from `at` on, stored from entry `nnz` of `keys` and `values` (addresses).

    The row began at entry `start`, the name of the namespace at `before`.
    Returns ``(place of the bar, line end or error, nnz, ascend, outcome)``.
    """
    ascend, numbered, gentle = sorted_so_far, np.int64(0), abs(space[3]) < _GENTLE and naming is None
    floor = load_word(keys, 8 * (nnz - 1)) + _ONE if nnz > start else _NONE
    while True:
        at = skip_blanks(text, at)
        ends, unlike = stops(text, at)
        here, begin = text + at, np.int64(0)
        while gentle:
            end, ends, key, value, quick = _quick(grammar, here, begin, ends, unlike, space)
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
            continue  # the window may have ended: look again from here
        if byte(text, at) == _BAR or ends_line(text, at):
            return at, nnz, ascend, EXAMPLE
        unnamed, name = byte(text, at) == _COLON and _begins_number(text, at + 1), at
        at, key, value, outcome = _feature(grammar, text, at, exact, space, numbered)
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
    """Say how a feature is written: its name, or with text for a value all of it."""
    if naming is not None:
        stop = _name_end(text, at)
        if stop < end and not _begins_number(text, stop + 1):
            stop = end
        if stop > at:
            offer_with(naming, key, text, at, stop - at, before, _name_end(text, before) - before)


class Vw(NamedTuple):
    """The grammar, with what the layout says of keys."""

    mask: np.uint64
    """of the bits of a key"""
    seed: np.uint64
    """of the names of namespaces"""
    nameless: np.uint64
    """of the names in the namespace without a name"""
    vw: bool | None
    """true where keys are the indices of Vowpal Wabbit, else None, so that their hash is not compiled"""
    ordered: bool = False

    def read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
        """See `line_rows.read_line`."""
        at, label, weight, outcome = read_head(text, at, domain, exact, targets, row)
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
