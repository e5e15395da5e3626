"""Outcomes of lines and rows, counters of compiled parsers; labels: numbers, words, lists."""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.data.labels import BASIS, COUNT, ENTRIES, FIELDS, MOST, OUTSIDE, PRIME, ROOM, USED
from thresher.data.text.numbers import read_double
from thresher.data.text.words import byte, load_int, same_bytes, store_byte, store_word
from thresher.engine.compile.jit import scalar

EXAMPLE, BLANK = 0, 1
CRAMPED, UNUSUAL = 2, 3
"""A line that cannot be parsed yet: it needs room for products, or more care."""

# Reasons why a line or row is bad. A column of labels, weights or offsets has no number, or one that is none;
# tables name these by the place of its kind in `columns.KINDS`.
NO_LABEL, NO_WEIGHT, NO_OFFSET, LABEL_NUMBER, WEIGHT_NUMBER, OFFSET_NUMBER = range(10, 16)
NUMBER, NUMBER_RANGE, TOO_FEW, TOO_MANY, UNCLOSED, AFTER_QUOTE, NUL = range(16, 23)
LABEL_RANGE, LABEL_DOMAIN, LABEL_REPEATED, LABEL_COUNT, AFTER_LABEL, WEIGHT_SIGN = range(23, 29)
KEY, KEY_RANGE, COLON, VALUE, VALUE_RANGE, AFTER_VALUE = range(29, 35)
SUM_RANGE, PRODUCTS = 35, 36
OWN = 40
"""Line formats define their own reasons from here on."""
OUTCOMES = 64
"""A bad row of a table is recorded as ``outcome + OUTCOMES * column``."""

DONE, TABLE_FULL, NEEDS_ROOM, NEEDS_CARE = 0, 1, 2, 3
"""Results of a call: a line that cannot be parsed yet ends it, with the outcome as result."""
AT, ROWS, NNZ, LINES, BLANKS, MERGED, BAD, COUNTERS = range(8)
"""The counters in the `state` of calls, and their number."""


_SURE = 4
"""Characters within which a number is whole in float32 only if it is whole"""
_BASIS, _PRIME = np.uint64(BASIS), np.uint64(PRIME)


@scalar
def check_label(label, domain):
    """The outcome of a label that is a finite number; `domain` is a `labels.Range`."""
    fits = domain.low <= label <= domain.high and (not domain.whole or label == np.floor(label))
    return EXAMPLE if fits else LABEL_DOMAIN


@scalar
def check_written(text, at, end, label, domain):
    """As `check_label`, of the number written in [at, end), which float32 may have rounded to a whole one."""
    exact = read_double(text, at) if domain.whole and end - at > _SURE else np.float64(label)
    return check_label(exact, domain)


@scalar
def _may_be_class(text, at, end):
    """Whether [at, end) may name a class: no list of whole numbers, without line breaks and NUL."""
    commas = others = 0
    for k in range(at, end):
        one = byte(text, k)
        if one == 10 or one == 13 or one == 0:
            return False
        commas += one == 44
        others += one != 44 and one != 45 and not 48 <= one <= 57
    return commas == 0 or others > 0


@scalar
def _without_zero(text, at, end):
    """The end of a whole number that ends with ``.0``, without that; the end of any other word."""
    if end - at < 3 or byte(text, end - 1) != 48 or byte(text, end - 2) != 46:
        return end
    k = at + (byte(text, at) == 45)
    if byte(text, k) == 48 and end - at > 3:  # such as 01.0 and -0.0
        return end
    while k < end - 2 and 48 <= byte(text, k) <= 57:
        k += 1
    return end - 2 if k == end - 2 and byte(text, k - 1) != 45 else end


@scalar
def word_label(text, at, end, domain):
    """The number of the word [at, end), without blanks around it, in the `WordTable` of a `labels.Range`."""
    end = _without_zero(text, at, end)
    code, size, table = _BASIS, end - at, domain.words
    for k in range(at, end):
        code = (code ^ np.uint64(byte(text, k))) * _PRIME
    slot = np.int64(code ^ code >> np.uint64(32)) & domain.slots
    entry = ENTRIES + FIELDS * slot
    while load_int(table, entry + 1) != 0:
        if load_int(table, entry + 1) == size and same_bytes(
            text, at, domain.letters, load_int(table, entry), size
        ):
            return np.float32(load_int(table, entry + 2))
        slot = (slot + 1) & domain.slots
        entry = ENTRIES + FIELDS * slot
    count, used = load_int(table, COUNT), load_int(table, USED)
    fits = size > 0 and count < load_int(table, MOST) and used + size <= load_int(table, ROOM)
    if fits and _may_be_class(text, at, end):
        for k in range(size):
            store_byte(domain.letters, used + k, byte(text, at + k))
        store_word(table, entry, np.uint64(used))
        store_word(table, entry + 1, np.uint64(size))
        store_word(table, entry + 2, np.uint64(count))
        store_word(table, COUNT, np.uint64(count + 1))
        store_word(table, USED, np.uint64(used + size))
        return np.float32(count)
    return np.float32(0) if domain.open else np.float32(OUTSIDE)


@scalar
def enter_class(target, label, domain):
    """Add the class `label`, which must be in the domain, to `target`; returns the outcome."""
    place = np.int64(label - np.float32(domain.low))
    if target[place] > np.float32(0):
        return LABEL_REPEATED
    target[place] = np.float32(1)
    return EXAMPLE


@scalar
def keep_label(targets, row, which, label):
    """Store label number `which` of a row in `targets`, if it is not None; returns the first label."""
    if targets is not None:
        targets[row, np.int64(which)] = label
        return targets[row, 0]
    return label
