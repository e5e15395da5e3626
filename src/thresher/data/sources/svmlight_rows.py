"""The compiled svmlight parser: lines of ``labels[:weight] [qid:n] id:value ... # comment``.

One loop over the features carries nearly all the work. It marks what is no digit in 64 bytes at a
time, so that the ends of all runs of digits in them are known before any is read, and reads the
usual shapes, ``id:d.ddd`` and ``id:ddd``, eight digits at once; it branches on nothing but the
shape of the text. Whatever looks different takes the careful way beside it, which knows every
error. Both leave the same numbers.
"""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from thresher.data.labels import LISTED, VALUES
from thresher.data.sources.numbers import (
    FINE,
    HARD,
    NOT_A_NUMBER,
    OUT_OF_RANGE,
    TENS,
    decimal,
    looked_up,
    read_digits,
    read_number,
    scaled,
)
from thresher.data.sources.sorting import add_up, sort_row
from thresher.data.sources.words import (
    WINDOW,
    address,
    byte,
    load_word,
    lowest_bit,
    marks,
    short_number,
    store_float,
    store_word,
)
from thresher.engine.jit import kernel, scalar

# What came of a line: an example, nothing, or the reason it is bad.
EXAMPLE, BLANK, UNDECIDED = 0, 1, 2
LABEL, LABEL_DOMAIN, LABEL_RANGE, AFTER_LABEL, WEIGHT, WEIGHT_SIGN, QID = 10, 11, 12, 13, 14, 15, 16
LABEL_COUNT, LABEL_REPEATED = 17, 18
KEY, KEY_RANGE, COLON, VALUE, VALUE_RANGE, AFTER_VALUE, SUM_RANGE = 20, 21, 22, 23, 24, 25, 26

# What came of a call, and the counters it leaves in `state`.
DONE, TABLE_FULL, NEEDS_EXACT = 0, 1, 2
AT, ROWS, NNZ, LINES, BLANKS, MERGED, BAD, COUNTERS = 0, 1, 2, 3, 4, 5, 6, 7

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _MINUS, _DOT, _COLON, _COMMA = 9, 10, 13, 32, 35, 45, 46, 58, 44
_LARGEST_KEY = np.uint64(2**64 - 1)
_TENTH_KEY = np.uint64((2**64 - 1) // 10)
_TEN, _ONE = np.uint64(10), np.uint64(1)
_NONE = np.uint64(0)
_QID = np.uint64(int.from_bytes(b"qid:", "little"))
_FOUR_BYTES = np.uint64(2**32 - 1)


@register_jitable
def _number(text, at, exact):
    """`read_number`, with the numbers it finds hard looked up in ``exact = (places, float32s, count)``."""
    end, value, status = read_number(text, at)
    if status == HARD:
        value, status = looked_up(at, exact)
    return end, value, status


@register_jitable
def _ends_token(text, at):
    code = byte(text, at)
    return code in (_SPACE, _NEWLINE, _TAB, _HASH) or (code == _RETURN and byte(text, at + 1) == _NEWLINE)


@register_jitable
def _skip_blanks(text, at):
    while byte(text, at) == _SPACE or byte(text, at) == _TAB:
        at += 1
    return at


@register_jitable
def _line_ends(text, at):
    """Whether nothing but a comment follows on the line."""
    code = byte(text, at)
    return code in (_NEWLINE, _HASH) or (code == _RETURN and byte(text, at + 1) == _NEWLINE)


@register_jitable
def _label(text, at, domain, exact, listed):
    """The label at `at`, perhaps one of a list: ``(end or place of the error, label, outcome)``."""
    end, label, status = _number(text, at, exact)
    if status == HARD:
        return at, label, UNDECIDED
    if status == NOT_A_NUMBER:
        return at, label, LABEL
    if status == OUT_OF_RANGE:
        return at, label, LABEL_RANGE
    if not (_ends_token(text, end) or byte(text, end) == _COLON or (listed and byte(text, end) == _COMMA)):
        return end, label, AFTER_LABEL
    low, high, whole, _ = domain
    fits = low <= label <= high and (not whole or label == np.floor(label))
    return (end, label, EXAMPLE) if fits else (at, label, LABEL_DOMAIN)


@register_jitable
def _enter(target, count, label, low, kind):
    """Note label `count` of a list in `target`: its number, or its class; the outcome."""
    if kind == VALUES:
        if count == target.size:
            return LABEL_COUNT
        target[count] = label
    else:
        place = np.int64(label - low)
        if target[place] > np.float32(0):
            return LABEL_REPEATED
        target[place] = np.float32(1)
    return EXAMPLE


@register_jitable
def _list(text, at, domain, exact, target, empty):
    """The list of labels at `at`, which may be `empty`: ``(end or place of the error, first, outcome)``.

    It goes to `target` (outputs,), if that has room for any.
    """
    low, _, _, kind = domain
    first, count, wanted = np.float32(0), np.int64(0), target.size
    if kind == LISTED:
        target[:] = np.float32(-1)
    more = kind == VALUES or not (empty or byte(text, at) == _COLON)
    while more:
        end, label, outcome = _label(text, at, domain, exact, True)
        if outcome == EXAMPLE and wanted > 0:
            outcome = _enter(target, count, label, np.float32(low), kind)
            end = end if outcome == EXAMPLE else at - (outcome == LABEL_COUNT)
        if outcome != EXAMPLE:
            return end, label, outcome
        first = label if count == 0 else first
        count += 1
        more = byte(text, end) == _COMMA
        at = end + more
    if wanted > 0:
        first = target[0]
    return at, first, LABEL_COUNT if kind == VALUES and count < wanted else EXAMPLE


@register_jitable
def _labels(text, at, domain, exact, targets, row, empty):
    """The label field: a number, or a list of them for ``targets[row]``. What `_label` returns."""
    if targets is None:
        return _label(text, at, domain, exact, False)
    return _list(text, at, domain, exact, targets[row], empty)


@register_jitable
def _weight(text, at, exact):
    """The importance at `at`: ``(end or place of the error, weight, outcome)``."""
    end, weight, status = _number(text, at, exact)
    if status == HARD:
        return at, weight, UNDECIDED
    if status == NOT_A_NUMBER:
        return at, weight, WEIGHT
    if status == OUT_OF_RANGE or weight < np.float32(0):
        return at, weight, WEIGHT_SIGN
    if not _ends_token(text, end):
        return end, weight, AFTER_VALUE
    return end, weight, EXAMPLE


@register_jitable
def _head(text, at, domain, exact, targets, row):
    """All before the features: ``(at, label, weight, outcome)``."""
    weight, start = np.float32(1), at
    at = _skip_blanks(text, at)
    if _line_ends(text, at):
        return at, weight, weight, BLANK
    at, label, outcome = _labels(text, at, domain, exact, targets, row, at > start)
    if outcome == EXAMPLE and byte(text, at) == _COLON:
        at, weight, outcome = _weight(text, at + 1, exact)
    if outcome != EXAMPLE:
        return at, label, weight, outcome
    at = _skip_blanks(text, at)
    if load_word(text, at) & _FOUR_BYTES == _QID:
        at += 4
        end, _, _ = read_digits(text, at, np.uint64(0))
        if end == at or not _ends_token(text, end):
            return at, label, weight, QID
        at = end
    return at, label, weight, EXAMPLE


@register_jitable
def _feature(text, at, exact):
    """Any feature at `at`: ``(end or place of the error, key, value, outcome)``."""
    value = np.float32(0)
    end, key, dropped = read_digits(text, at, np.uint64(0))
    if end == at:
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
    end, value, status = _number(text, at, exact)
    if status == FINE:
        return end, key, value, EXAMPLE if _ends_token(text, end) else AFTER_VALUE
    if status == HARD:
        return at, key, value, UNDECIDED
    return at, key, value, VALUE if status == NOT_A_NUMBER else VALUE_RANGE


@register_jitable
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


@register_jitable
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
        at = _skip_blanks(text, at)
        if _line_ends(text, at):
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


@register_jitable
def _note(bad, state, start, at, outcome):
    """Enter a bad line in the table; whether that is full now."""
    entry = bad[state[BAD]]
    entry[0], entry[1], entry[2], entry[3] = start, at, outcome, state[LINES]
    state[BAD] += 1
    return TABLE_FULL if state[BAD] == len(bad) else DONE


@register_jitable
def _line(text, at, columns, nnz, domain, exact, targets, row):
    """One line, its features stored from `nnz` on, several labels in ``targets[row]``.

    Returns ``(place of the line end or of the error, nnz, ascend, label, weight, outcome)``.
    """
    at, label, weight, outcome = _head(text, at, domain, exact, targets, row)
    ascend = True
    if outcome == EXAMPLE:
        keys, values = columns
        at, nnz, ascend, outcome = _features(text, at, keys, values, nnz, exact)
    return at, nnz, ascend, label, weight, outcome


@kernel
def parse_lines(text_bytes, size, columns, domain, state, bad, exact):
    """Parse the whole lines ``text_bytes[:size]`` from ``state[AT]`` on.

    `text_bytes` is uint8 with 64 spare bytes behind `size`; ``columns = (indptr, keys, values,
    labels, weights, targets)`` have room for every row and twice every feature, and for a row more of
    targets (None for one label a line); `state` (COUNTERS,) int64 carries on from call to call. A bad
    line leaves a row (its start, place of the error, outcome, lines before it) in the int64 table
    `bad`. Returns `DONE`, `TABLE_FULL`, or `NEEDS_EXACT` when the line at ``state[AT]`` holds a number
    that must be looked up in ``exact = (places, float32s)``.
    """
    at, row, nnz, result = state[AT], state[ROWS], state[NNZ], DONE
    indptr, keys, values, labels, weights, targets = columns
    text, features = address(text_bytes), (address(keys), address(values))
    known = (address(exact[0]), address(exact[1]), np.int64(len(exact[0])))
    indptr[row] = nnz
    while at < size and result == DONE:
        start = at
        at, stop, ascend, label, weight, outcome = _line(
            text, start, features, nnz, domain, known, targets, row
        )
        if outcome == UNDECIDED:
            at, result = start, NEEDS_EXACT
            break
        if outcome == EXAMPLE and not ascend:
            sort_row(keys, values, nnz, stop)
            stop, finite = add_up(keys, values, nnz, stop)
            outcome = EXAMPLE if finite else SUM_RANGE
        if outcome == EXAMPLE:
            labels[row], weights[row] = label, weight
            row, nnz = row + 1, stop
            indptr[row] = nnz
            state[MERGED] += not ascend
        elif outcome == BLANK:
            state[BLANKS] += 1
        else:
            at = start if outcome == SUM_RANGE else at
            result = _note(bad, state, start, at, outcome)
        state[LINES] += 1
        while byte(text, at) != _NEWLINE:
            at += 1
        at += 1
    state[AT], state[ROWS], state[NNZ] = at, row, nnz
    return result
