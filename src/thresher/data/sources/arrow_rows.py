"""The compiled way from the columns of an Arrow record batch to rows of features."""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from thresher.data.hashing import murmur3_64
from thresher.data.sources.sorting import FEW, ascending
from thresher.data.sources.table_rows import (
    CATEGORICAL,
    EXAMPLE,
    LABEL,
    LABEL_NUMBER,
    LIST,
    NO_LABEL,
    NO_WEIGHT,
    NUMBER,
    NUMBER_RANGE,
    NUMERIC,
    OUTCOMES,
    SUM_RANGE,
    WEIGHT,
    WEIGHT_NUMBER,
    check_label,
)
from thresher.data.sources.words import address, byte, load_double, load_word, store_float, store_word
from thresher.engine.jit import kernel

NUMBERS, TEXT, KEYS = 0, 1, 2
"""What the buffers of a column hold: float64s; offsets and bytes of large_string; keys and their indices."""

FORM, DATA, OFFSETS, VALID, FIRST, LISTS, LISTS_VALID, LISTS_FIRST, FIELDS = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""A column as a row of int64: its form; addresses of its data, of its offsets or indices, and of its bits of
validity (0: all are valid); the entry it begins with; for lists the same three of the lists round them."""

ROWS, NNZ, MERGED, BAD, AT, COUNTERS = 0, 1, 2, 3, 4, 5
"""The counters in `state`."""


@register_jitable
def _is_valid(bits, at):
    return bits == 0 or (byte(bits, at >> 3) >> (at & 7)) & 1 == 1


@register_jitable
def _offset(words, at):
    return np.int64(load_word(words, 8 * at))


@register_jitable
def _key(column, at, seed):
    """The key of entry `at` of a column of texts or of keys: ``(key, whether there is one)``."""
    form, data, offsets = column[FORM], column[DATA], column[OFFSETS]
    at += column[FIRST]
    if not _is_valid(column[VALID], at):
        return seed, False
    if form == KEYS:
        return load_word(data, 8 * _offset(offsets, at)), True
    begin, end = _offset(offsets, at), _offset(offsets, at + 1)
    return murmur3_64(data, begin, end - begin, seed), end > begin


@register_jitable
def _number(column, at):
    """Entry `at` of a column of numbers: ``(float32, whether there is one, outcome)``."""
    at += column[FIRST]
    if not _is_valid(column[VALID], at):
        return np.float32(0), False, EXAMPLE
    wide = load_double(column[DATA], at)
    value = np.float32(wide)
    if np.isfinite(value):
        return value, True, EXAMPLE
    return value, True, NUMBER_RANGE if np.isfinite(wide) else NUMBER


@register_jitable
def _target(kind, column, at, domain):
    """The label or weight in entry `at`: ``(float32, outcome)``."""
    value, there, outcome = _number(column, at)
    if kind == LABEL:
        if not there:
            return value, NO_LABEL
        return value, check_label(value, domain) if outcome == EXAMPLE else LABEL_NUMBER
    if not there:
        return value, NO_WEIGHT
    return value, EXAMPLE if outcome == EXAMPLE and value >= np.float32(0) else WEIGHT_NUMBER


@register_jitable
def _add(column, begin, end, seed, out, nnz):
    """The features of entries [begin, end) of a column, stored from `nnz` on; the new `nnz`."""
    keys, values = out
    for at in range(begin, end):
        key, there = _key(column, at, seed)
        store_word(keys, nnz, key)
        store_float(values, nnz, np.float32(1))
        nnz += there
    return nnz


@register_jitable
def _row(i, table, out, nnz, domain):
    """Row `i`, its features stored from `nnz` on: ``(nnz, label, weight, outcome, column)``."""
    columns, codes, names, seeds = table
    keys, values = out
    label, weight = np.float32(0), np.float32(1)
    for c in range(codes.size):
        kind, column, outcome = codes[c], columns[c], EXAMPLE
        if kind == CATEGORICAL:
            nnz = _add(column, i, i + 1, seeds[c], out, nnz)
        elif kind == NUMERIC:
            value, _, outcome = _number(column, i)
            store_word(keys, nnz, names[c])
            store_float(values, nnz, value)
            nnz += value != np.float32(0)
        elif kind == LIST:
            at = i + column[LISTS_FIRST]
            if _is_valid(column[LISTS_VALID], at):
                begin, end = _offset(column[LISTS], at), _offset(column[LISTS], at + 1)
                nnz = _add(column, begin, end, seeds[c], out, nnz)
        elif kind == LABEL:
            label, outcome = _target(kind, column, i, domain)
        elif kind == WEIGHT:
            weight, outcome = _target(kind, column, i, domain)
        if outcome != EXAMPLE:
            return nnz, label, weight, outcome, c
    return nnz, label, weight, EXAMPLE, 0


@kernel
def encode(count, columns, table, kinds, domain, state, bad):
    """Rows ``state[AT] <= i < count`` of a batch whose columns are described by `table` (columns, FIELDS).

    ``columns = (indptr, keys, values, labels, weights, targets)`` have room for every row and twice every
    feature; ``kinds = (codes, keys, seeds)``. A bad row leaves its number and ``outcome + OUTCOMES * column``
    in the int64 table `bad`. Returns when that is full or all is done; `state` carries on.
    """
    indptr, keys, values, labels, weights, _ = columns
    room_keys, room_values = np.empty(FEW + 8, np.uint64), np.empty(FEW + 8, np.float32)
    described, features = (table, *kinds), (address(keys), address(values))
    row, nnz, i = state[ROWS], state[NNZ], state[AT]
    indptr[row] = nnz
    while i < count and state[BAD] < len(bad):
        stop, label, weight, outcome, column = _row(i, described, features, nnz, domain)
        if outcome == EXAMPLE:
            last, finite = ascending(keys, values, nnz, stop, room_keys, room_values)
            state[MERGED] += finite and last < stop
            stop, outcome = last, EXAMPLE if finite else SUM_RANGE
        if outcome == EXAMPLE:
            labels[row], weights[row] = label, weight
            row, nnz = row + 1, stop
            indptr[row] = nnz
        else:
            bad[state[BAD], 0], bad[state[BAD], 1] = i, outcome + OUTCOMES * column
            state[BAD] += 1
        i += 1
    state[ROWS], state[NNZ], state[AT] = row, nnz, i


@kernel
def hash_values(column, seed, out):
    """The key (uint64) of every entry of a column of texts described by `column` (FIELDS,)."""
    for i in range(out.size):
        out[i], _ = _key(column, i, seed)
