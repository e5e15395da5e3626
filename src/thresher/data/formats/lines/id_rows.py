"""Shared by formats with ids: labels before the first feature, and two ways to read ``id:value``.

The fast path reads the usual shapes, ``id:d.ddd`` and ``id:ddd``, eight digits at a time, given a mask of the
non-digits in 64 bytes; it branches only on the shape of the text. Everything else takes the careful path,
which reports every error. Both yield the same numbers.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.data.formats.line_status import (
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
    NO_LABEL,
    UNDECIDED,
    VALUE,
    VALUE_RANGE,
)
from thresher.data.formats.lines.line_rows import (
    ends_token,
    exact_number,
    line_ends,
    read_labels,
    read_weight,
    skip_blanks,
)
from thresher.data.text.numbers import FINE, HARD, NOT_A_NUMBER, TENS, decimal, read_digits, read_id, scaled
from thresher.data.text.words import WINDOW, byte, load_word, lowest_bit, short_number
from thresher.engine.compile.jit import scalar

_PLUS, _MINUS, _DOT, _COLON = 43, 45, 46, 58
_NONE, _ONE = np.uint64(0), np.uint64(1)
_QID = np.uint64(int.from_bytes(b"qid:", "little"))
_FOUR_BYTES = np.uint64(2**32 - 1)


@scalar
def is_qid(text, at):
    """Whether there is a ``qid:`` at `at`."""
    return load_word(text, at) & _FOUR_BYTES == _QID


@scalar
def _begins_feature(text, at):
    """Whether there is an ``id:`` at `at`."""
    begin = at + (byte(text, at) == _PLUS)
    end, _, _ = read_digits(text, begin, np.uint64(0))
    return end > begin and byte(text, end) == _COLON


@scalar
def _has_colon(text, at):
    """Whether the field at `at` contains a colon."""
    while byte(text, at) != _COLON and not ends_token(text, at):
        at += 1
    return byte(text, at) == _COLON


@scalar
def _odd_head(text, start, first, at, label, outcome, domain, weighted, exact):
    """Read a first field that is not just a label: ``(end or error position, label, weight, outcome)``.

    The line begins at `start`, the field at `first`; `read_labels` returned ``(at, label, outcome)`` for it.
    """
    weight, weighted = np.float32(1), weighted and (first == start or at == first)
    if weighted and outcome == EXAMPLE:
        at, weight, outcome = read_weight(text, at + 1, exact)
        return at, label, weight, outcome
    if outcome == UNDECIDED:
        return at, label, weight, outcome
    unlabelled = is_qid(text, first) or (not weighted and _begins_feature(text, first))
    if unlabelled and domain.open:
        return first, np.float32(0), weight, EXAMPLE
    numbers = outcome in (EXAMPLE, LABEL_DOMAIN, LABEL_RANGE, LABEL_COUNT, LABEL_REPEATED)
    if numbers and not weighted and _has_colon(text, first):
        return first, label, weight, NO_LABEL
    return at, label, weight, outcome


@scalar
def read_head(text, at, domain, exact, targets, row, weighted):
    """Read everything before the features: ``(at, label, weight, outcome)``."""
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
    return skip_blanks(text, at), label, weight, EXAMPLE


@scalar
def read_feature(text, at, exact):
    """Read any feature at `at`: ``(end or error position, key, value, outcome)``."""
    value = np.float32(0)
    begin = at + (byte(text, at) == _PLUS)
    end, key, fits = read_id(text, begin)
    if end == begin:
        return at, key, value, KEY
    if not fits:
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
    """Read the value ``d.ddd`` at `number` with 9 to 18 decimals: ``(float32, whether it is certain)``."""
    mantissa, at, end = np.uint64(byte(here, number) - 48), dot + 1, dot + 1 + decimals
    while at < end:
        taken = min(end - at, 8)
        mantissa = mantissa * TENS[taken] + short_number(here, at, taken)
        at += taken
    value, status = scaled(mantissa, -decimals)
    return value, status == FINE


@scalar
def quick_feature(here, begin, others, odd):
    """Read a feature ``id:d.ddd`` or ``id:ddd`` at `begin`, given the `marks` of address `here`.

    Returns ``(end, remaining marks, key, value, whether it has this shape)``. It must end in the window. The
    character that ends it is not checked.
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
