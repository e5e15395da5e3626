"""The compiled svmlight parser: lines of ``labels[:weight] [qid:n] id:value ... # comment``.

A colon in the first field may be that of a weight or of a first feature, and only the user knows which:
see `Svmlight.weighted`.

One loop over the features carries nearly all the work. It marks what is no digit in 64 bytes at a
time, so that the ends of all runs of digits in them are known before any is read, and reads the
usual shapes, ``id:d.ddd`` and ``id:ddd``, eight digits at once; it branches on nothing but the
shape of the text. Whatever looks different takes the careful way beside it, which knows every
error. Both leave the same numbers.
"""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.data.features.crossing import note_namespace
from thresher.data.formats.lines.line_rows import (
    AFTER_VALUE,
    BLANK,
    COLON,
    EXAMPLE,
    KEY,
    KEY_RANGE,
    LABEL_COUNT,
    LABEL_DOMAIN,
    LABEL_RANGE,
    LABEL_REPEATED,
    QID,
    UNDECIDED,
    VALUE,
    VALUE_RANGE,
    ends_token,
    exact_number,
    line_ends,
    read_labels,
    read_weight,
    skip_blanks,
)
from thresher.data.text.numbers import (
    FINE,
    HARD,
    NOT_A_NUMBER,
    TENS,
    decimal,
    read_digits,
    read_number,
    scaled,
)
from thresher.data.text.words import (
    WINDOW,
    byte,
    load_word,
    lowest_bit,
    marks,
    short_number,
    store_float,
    store_word,
)
from thresher.engine.jit import scalar

NO_LABEL = 50
"""The reason for which a line is bad that only svmlight text has."""
_NEWLINE, _SPACE, _PLUS, _MINUS, _DOT, _COLON = 10, 32, 43, 45, 46, 58
_LARGEST_KEY = np.uint64(2**64 - 1)
_TENTH_KEY = np.uint64((2**64 - 1) // 10)
_TEN, _ONE = np.uint64(10), np.uint64(1)
_NONE = np.uint64(0)
_QID = np.uint64(int.from_bytes(b"qid:", "little"))
_FOUR_BYTES = np.uint64(2**32 - 1)


@scalar
def _is_qid(text, at):
    return load_word(text, at) & _FOUR_BYTES == _QID


@scalar
def _begins_feature(text, at):
    """Whether ``id:`` stands here."""
    begin = at + (byte(text, at) == _PLUS)
    end, _, _ = read_digits(text, begin, np.uint64(0))
    return end > begin and byte(text, end) == _COLON


@scalar
def _has_colon(text, at):
    """Whether there is a colon in the field at `at`."""
    while byte(text, at) != _COLON and not ends_token(text, at):
        at += 1
    return byte(text, at) == _COLON


@scalar
def _odd_head(text, start, first, at, label, outcome, domain, weighted, exact):
    """A first field that is no label alone: ``(end or place of the error, label, weight, outcome)``.

    The line begins at `start`, the field at `first`; `read_labels` returned ``(at, label, outcome)`` for it.
    """
    weight, weighted = np.float32(1), weighted and (first == start or at == first)
    if weighted and outcome == EXAMPLE:
        at, weight, outcome = read_weight(text, at + 1, exact)
        return at, label, weight, outcome
    if outcome == UNDECIDED:
        return at, label, weight, outcome
    unlabelled = _is_qid(text, first) or (not weighted and _begins_feature(text, first))
    if unlabelled and domain[4]:
        return first, np.float32(0), weight, EXAMPLE
    numbers = outcome in (EXAMPLE, LABEL_DOMAIN, LABEL_RANGE, LABEL_COUNT, LABEL_REPEATED)
    if numbers and not weighted and _has_colon(text, first):
        return first, label, weight, NO_LABEL
    return at, label, weight, outcome


@scalar
def _head(text, at, domain, exact, targets, row, weighted):
    """All before the features: ``(at, label, weight, outcome)``."""
    weight, start = np.float32(1), at
    at = first = skip_blanks(text, at)
    if line_ends(text, at):
        return at, weight, weight, BLANK
    at, label, outcome = read_labels(text, at, domain, exact, targets, row, at > start)
    if outcome != EXAMPLE or byte(text, at) == _COLON:
        at, label, weight, outcome = _odd_head(
            text, start, first, at, label, outcome, domain, weighted, exact
        )
    if outcome != EXAMPLE:
        return at, label, weight, outcome
    at = skip_blanks(text, at)
    if _is_qid(text, at):
        at += 4
        end, _, status = read_number(text, at)
        if status == NOT_A_NUMBER or not ends_token(text, end):
            return at, label, weight, QID
        at = end
    return at, label, weight, EXAMPLE


@scalar
def _feature(text, at, exact):
    """Any feature at `at`: ``(end or place of the error, key, value, outcome)``."""
    value = np.float32(0)
    begin = at + (byte(text, at) == _PLUS)
    end, key, dropped = read_digits(text, begin, np.uint64(0))
    if end == begin:
        return at, key, value, KEY
    if dropped == 1:
        digit = np.uint64(byte(text, end - 1) - 48)
        if key < _TENTH_KEY or (key == _TENTH_KEY and digit <= _LARGEST_KEY - _TENTH_KEY * _TEN):
            key, dropped = key * _TEN + digit, np.int64(0)
    if dropped > 0:
        return at, key, value, KEY_RANGE
    if byte(text, end) != _COLON:
        return end, key, value, COLON
    at = end + 1
    end, value, status = exact_number(text, at, exact)
    if status == FINE:
        return end, key, value, EXAMPLE if ends_token(text, end) else AFTER_VALUE
    if status == HARD:
        return at, key, value, UNDECIDED
    return at, key, value, VALUE if status == NOT_A_NUMBER else VALUE_RANGE


@scalar
def _long(here, number, dot, decimals):
    """The value ``d.ddd`` at `number` with 9 to 18 decimals: ``(float32, whether certain)``."""
    mantissa, at, end = np.uint64(byte(here, number) - 48), dot + 1, dot + 1 + decimals
    while at < end:
        taken = min(end - at, 8)
        mantissa = mantissa * TENS[taken] + short_number(here, at, taken)
        at += taken
    value, status = scaled(mantissa, -decimals)
    return value, status == FINE


@scalar
def _quick(here, begin, others, odd):
    """The usual feature ``id:d.ddd`` or ``id:ddd`` at `begin`, given the `marks` of address `here`.

    Returns ``(end, marks left, key, value, whether it is one)``. It must end in the window. What
    ends it is not looked at.
    """
    colon = lowest_bit(others)
    others &= others - _ONE
    end = lowest_bit(others)
    key, value, quick = np.uint64(0), np.float32(0), 0 < colon - begin <= 8
    if quick and byte(here, colon) == _COLON:
        key = short_number(here, begin, colon - begin)
        sign = byte(here, colon + 1) == _MINUS
        number, dot = colon + 1 + sign, end
        if byte(here, dot) == _DOT:
            others &= others - _ONE
            end = lowest_bit(others)
            decimals = end - dot - 1
            quick = dot == number + 1 and 0 < decimals <= 18
            if quick and decimals <= 8:
                mantissa = np.uint64(byte(here, number) - 48) * TENS[decimals]
                value, quick = decimal(mantissa + short_number(here, dot + 1, decimals), decimals)
            elif quick:
                value, quick = _long(here, number, dot, decimals)
        else:
            quick = 0 < end - number <= 8
            value = np.float32(np.int64(short_number(here, number, end - number)))
        quick = quick and end < WINDOW and odd << np.uint64(63 - end) == _NONE
        value = -value if sign else value
    else:
        quick = False
    return end, others & (others - _ONE), key, value, quick


@scalar
def _features(text, at, keys, values, nnz, exact):
    """The features from `at` on, stored from entry `nnz` of `keys` and `values` (addresses) on.

    Returns ``(place of the line end or of the error, nnz, whether keys ascend, outcome)``.
    """
    start, floor, ascend = nnz, np.uint64(0), True
    while True:
        others, odd = marks(text, at)
        here, begin = text + at, np.int64(0)
        while True:
            end, others, key, value, quick = _quick(here, begin, others, odd)
            after = byte(here, end)
            if not quick or (after != _SPACE and after != _NEWLINE):
                break
            ascend &= key >= floor
            floor = key + _ONE
            store_word(keys, nnz, key)
            store_float(values, nnz, value)
            nnz += 1
            if after == _NEWLINE:
                return at + end, nnz, ascend, EXAMPLE
            begin = end + 1
        at += begin
        if begin > 0:
            continue  # the window may have ended: look again from here
        at = skip_blanks(text, at)
        if line_ends(text, at):
            return at, nnz, ascend, EXAMPLE
        at, key, value, outcome = _feature(text, at, exact)
        if outcome != EXAMPLE:
            return at, nnz, ascend, outcome
        # the largest key has no floor above it
        ascend &= key >= floor and (nnz == start or key != load_word(keys, 8 * (nnz - 1)))
        floor = key + _ONE if key != _LARGEST_KEY else key
        store_word(keys, nnz, key)
        store_float(values, nnz, value)
        nnz += 1


class Svmlight(NamedTuple):
    """The grammar."""

    weighted: bool
    """whether a colon in the first field is that of ``label:weight``; otherwise it is that of a feature"""
    ordered: bool = True

    def read_line(self, text, at, columns, nnz, domain, exact, targets, row, aside):
        """See `line_rows.read_line`."""
        at, label, weight, outcome = _head(text, at, domain, exact, targets, row, self.weighted)
        ascend = True
        if outcome == EXAMPLE:
            keys, values = columns
            start = nnz
            at, nnz, ascend, outcome = _features(text, at, keys, values, nnz, exact)
            note_namespace(aside[0], _NONE, start, nnz)
        return at, nnz, ascend, label, weight, outcome
