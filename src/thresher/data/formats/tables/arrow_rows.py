"""Compiled conversion of the columns of an Arrow record batch to rows of features.

Columns are read in tiles of 256 rows. Row by row, 39 columns are about a hundred memory streams, and every
cell is a switch: 57 ns each. Reading column by column in tiles that fit the cache, and then row by row, takes
20 ns. Reading Parquet as dictionaries was not cheaper (each batch looks up values all over the dictionary)
and took 100 MB more.

Arrow files contain offsets that pyarrow does not check, so these loops do, at 1 ns per string (as bytes:
checking UTF-8 would cost five times as much and does not matter for a hash).
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.data.features import crossing
from thresher.data.features.crossing import note_column
from thresher.data.features.murmur import murmur3_64, whole_murmur3_64
from thresher.data.features.names import TEXT, offer, offer_whole
from thresher.data.formats import line_status
from thresher.data.formats.lines.line_rows import complete, note
from thresher.data.formats.tables import table_rows
from thresher.data.text.numbers import FINE, NOT_A_NUMBER, OUT_OF_RANGE
from thresher.data.text.words import (
    address,
    byte,
    load_double,
    load_float,
    load_half,
    load_int,
    load_word,
    past_blanks,
    store_float,
    store_word,
)
from thresher.engine.centring import FAR, keep_rests, note_rest
from thresher.engine.compile.jit import helper, kernel, scalar

LONG, SHORT, KEYS = range(3)
"""Forms of a column of texts, by its buffers: 64-bit offsets, bytes; 32-bit offsets, bytes; int64 indices,
keys."""

FORM, DATA, OFFSETS, VALID, FIRST = range(5)
LISTS, LISTS_VALID, LISTS_FIRST, COLUMN, FINITE, FIELDS = range(5, 11)
"""A column as a row of int64: its form; the addresses of its data (bytes, float64s or keys), offsets or
indices, and validity bits (0: all entries are valid); its first entry; for lists, the offsets, validity bits
and first entry of the lists; its index in the file; bits of the rows whose number, which is read as text, is
finite (0: all are)."""

TILE = 256
"""Number of rows read together, column by column."""


@scalar
def _is_valid(bits, at):
    return bits == 0 or (byte(bits, at >> 3) >> (at & 7)) & 1 == 1


@scalar
def _key(form, data, offsets, at, seed, blanks, naming, column):
    """The key of entry `at` of a column of texts or keys: ``(key, whether the entry has a value)``.

    Blank texts are values only with `blanks`.
    """
    if form == KEYS:
        return load_word(data, 8 * load_int(offsets, at)), True
    if form == SHORT:
        begin, end = np.int64(load_half(offsets, 4 * at)), np.int64(load_half(offsets, 4 * at + 4))
    else:
        begin, end = load_int(offsets, at), load_int(offsets, at + 1)
    key = murmur3_64(data, begin, end - begin, seed)
    there = (begin if blanks else past_blanks(data, begin, end)) < end
    if there:
        offer(naming, key, data, begin, end - begin, column, TEXT)
    return key, there


@scalar
def _number(data, valid, at):
    """Entry `at` of a column of numbers: ``(float32, whether the entry has a value, status)``."""
    if not _is_valid(valid, at):
        return np.float32(0), False, FINE
    wide = load_double(data, at)
    value = np.float32(wide) + np.float32(0)  # -0 becomes 0: pyarrow reads JSON's -0 as a float, Python as 0
    if np.isfinite(value):
        return value, True, FINE
    return value, True, OUT_OF_RANGE if np.isfinite(wide) else NOT_A_NUMBER


@scalar
def _label_or_weight(kind, data, valid, at, domain):
    """The label or weight in entry `at`: ``(float32, outcome)``."""
    value, there, status = _number(data, valid, at)
    exact = load_double(data, at) if kind == table_rows.LABEL and domain.whole else np.float64(value)
    return value, table_rows.outcome_of(kind, exact, status, not there, domain)


@scalar
def _label(c, i, table, which, domain, targets):
    """Read the label, or labels (into ``targets[i]``), in row `i` of column `c`: ``(first one, outcome)``."""
    data, valid, first, lists = table[c, DATA], table[c, VALID], table[c, FIRST], table[c, LISTS]
    if targets is not None and lists != 0:
        target, at, outcome = targets[i], i + table[c, LISTS_FIRST], line_status.EXAMPLE
        if not _is_valid(table[c, LISTS_VALID], at):
            return target[0], line_status.NO_LABEL
        target[:] = np.float32(-1)  # no class
        for entry in range(first + load_int(lists, at), first + load_int(lists, at + 1)):
            value, outcome = _label_or_weight(table_rows.LABEL, data, valid, entry, domain)
            if outcome == line_status.EXAMPLE:
                outcome = line_status.enter_class(target, value, domain)
            if outcome != line_status.EXAMPLE:
                break
        return target[0], outcome
    label, outcome = _label_or_weight(table_rows.LABEL, data, valid, first + i, domain)
    return line_status.keep_label(targets, i, which, label), outcome


@helper
def _stage(c, lo, hi, table, kinds, stage, domain, crosses, naming, targets, far):
    """Read column `c` of rows [lo, hi): features are appended to the staged rows, except lists and texts."""
    codes, names, seeds = kinds
    keys, values, counts, wrong, labels, weights, shifts, origins = stage
    kind, seed, width = codes[c], seeds[c], codes.size
    form, data, offsets = table[c, FORM], table[c, DATA], table[c, OFFSETS]
    valid, first = table[c, VALID], table[c, FIRST]
    staged, floats = address(keys), address(values)
    for i in range(lo, hi):
        at, r, outcome = first + i, i - lo, line_status.EXAMPLE
        slot = r * width + counts[r]
        if kind == table_rows.CATEGORICAL:
            if _is_valid(valid, at):
                key, there = _key(form, data, offsets, at, seed, False, naming, table[c, COLUMN])
                store_word(staged, slot, key)
                store_float(floats, slot, np.float32(1))
                counts[r] += there
        elif kind == table_rows.LABEL:
            labels[r], outcome = _label(c, i, table, names[c], domain, targets)
        elif kind == table_rows.WEIGHT:
            weights[r], outcome = _label_or_weight(kind, data, valid, at, domain)
        elif kind == table_rows.OFFSET:
            shifts[r], outcome = _label_or_weight(kind, data, valid, at, domain)
        elif kind != table_rows.LIST and kind != table_rows.TEXT:
            value, there, status = _number(data, valid, at)
            outcome = table_rows.outcome_of(kind, value, status, not there, domain)
            key, entered = names[c], value != np.float32(0) or (kind == table_rows.GAPPED and not there)
            if kind == table_rows.BINS:
                place, entered = table_rows.bin_of(value), there and status == FINE
                key, value = whole_murmur3_64(place, seed), np.float32(1)
                if entered:
                    offer_whole(naming, key, place, table[c, COLUMN])
            else:
                offer(naming, key, data, 0, 0, table[c, COLUMN], TEXT)
            store_word(staged, slot, key)
            store_float(floats, slot, value)
            counts[r] += entered
            if kind == table_rows.GAPPED and abs(value) >= FAR and status == FINE:
                far[0][0, 1] = i
                note_rest(far, key, load_double(data, at), value)
        if crosses is not None:
            origins[slot] = c
        finite = table[c, FINITE] == 0 or _is_valid(table[c, FINITE], i)
        outcome = outcome if finite else line_status.NUMBER
        if outcome != line_status.EXAMPLE and wrong[r] == line_status.EXAMPLE:
            wrong[r] = outcome + line_status.OUTCOMES * table[c, COLUMN]


@scalar
def _unstage(r, i, table, kinds, stage, keys, values, nnz, crosses, naming):
    """Append the features of row `i`, staged as row `r` or in lists, at `nnz`; returns the new `nnz`."""
    codes, _, seeds = kinds
    staged, floats, width = address(stage[0]), address(stage[1]), codes.size
    out, out_values = address(keys), address(values)
    for k in range(stage[2][r]):
        store_word(out, nnz + k, load_word(staged, 8 * (r * width + k)))
        store_float(out_values, nnz + k, load_float(floats, r * width + k))
        if crosses is not None:
            note_column(crosses, table[stage[7][r * width + k], COLUMN], nnz + k, nnz + k + 1)
    nnz += stage[2][r]
    for c in range(codes.size):
        begin, lists = nnz, table[c, LISTS]
        if codes[c] == table_rows.TEXT:  # the keys and values of n-grams
            for entry in range(load_int(lists, i), load_int(lists, i + 1)):
                store_word(out, nnz, load_word(table[c, DATA], 8 * entry))
                store_float(out_values, nnz, load_float(table[c, OFFSETS], entry))
                nnz += 1
        elif codes[c] == table_rows.LIST and _is_valid(table[c, LISTS_VALID], i + table[c, LISTS_FIRST]):
            at, first, form = i + table[c, LISTS_FIRST], table[c, FIRST], table[c, FORM]
            for entry in range(first + load_int(lists, at), first + load_int(lists, at + 1)):
                if _is_valid(table[c, VALID], entry):
                    key, there = _key(
                        *(form, table[c, DATA], table[c, OFFSETS], entry, seeds[c], True, naming),
                        table[c, COLUMN],
                    )
                    store_word(out, nnz, key)
                    store_float(out_values, nnz, np.float32(1))
                    nnz += there
        note_column(crosses, table[c, COLUMN], begin, nnz)
    return nnz


@scalar
def _settle(targets, row, i):
    """Move the labels of row `i` of the batch to row `row` of the examples."""
    if targets is not None:
        for k in range(targets.shape[1]):
            targets[row, k] = targets[i, k]


@kernel
def encode(count, columns, table, kinds, mask, domain, state, bad, far, extra, rooms):
    """Convert the rows ``state[AT] <= i < count`` of a batch.

    Columns are read one after the other, for `TILE` rows at a time.

    Args:
        count: Rows of the batch.
        columns: ``(indptr, keys, values, labels, weights, offsets, targets)``, with room for all rows and
            twice the features; `offsets` may be empty.
        table: (columns, FIELDS) describes the columns of the batch.
        kinds: ``(codes, keys, seeds)`` of the columns.
        mask: Bits of a key that are kept.
        domain: A `labels.Range`.
        state: int64 (COUNTERS,), kept between calls.
        bad: As in `line_rows.parse_lines`, with ``outcome + OUTCOMES * column``, and rows for lines and
            positions.
        far: Gets what float32 loses of numbers, with the rows of the batch: see `note_rest`.
        extra: ``(crosses, naming)``; each may be None.
        rooms: Scratch space for `ascending`.

    Returns `DONE`, `TABLE_FULL`, or `NEEDS_ROOM` for the products of row ``state[AT]``.
    """
    indptr, keys, values, labels, weights, offsets, targets = columns
    cells, floats = TILE * kinds[0].size, np.ones((3, TILE), np.float32)
    counts, wrong = np.zeros(TILE, np.int64), np.zeros(TILE, np.int64)
    origins = np.empty(cells if extra[0] is not None else 0, np.int64)
    staged = np.empty(cells, np.uint64), np.empty(cells, np.float32)
    stage = (*staged, counts, wrong, floats[0], floats[1], floats[2], origins)
    row, nnz, i = state[line_status.ROWS], state[line_status.NNZ], state[line_status.AT]
    result = line_status.DONE
    indptr[row] = nnz
    keep_rests(far, i)  # others are read again
    while i < count and result == line_status.DONE:
        lo, hi = i, min(i + TILE, count)
        counts[:], wrong[:], floats[0] = 0, line_status.EXAMPLE, 0
        for c in range(kinds[0].size):
            _stage(c, lo, hi, table, kinds, stage, domain, *extra, targets, far)
        while i < hi and result == line_status.DONE:
            code, last, merged = wrong[i - lo], nnz, False
            if code == line_status.EXAMPLE:
                crossing.clear_spans(extra[0])
                own = _unstage(i - lo, i, table, kinds, stage, keys, values, nnz, *extra)
                table_rows.mask_keys(keys, nnz, own, mask)
                last, merged, code = complete(keys, values, nnz, own, False, extra, rooms)
            if code == line_status.CRAMPED:
                result = code
                break
            if code == line_status.EXAMPLE:
                state[line_status.MERGED] += merged
                labels[row], weights[row] = floats[0, i - lo], floats[1, i - lo]
                if offsets.size:
                    offsets[row] = floats[2, i - lo]
                _settle(targets, row, i)
                row, nnz = row + 1, last
                indptr[row] = nnz
            else:
                result = note(bad, state, row, i, i, code)
            state[line_status.LINES] += 1
            i += 1
    state[line_status.ROWS], state[line_status.NNZ], state[line_status.AT] = row, nnz, i
    return result


@kernel
def hash_values(column, seed, out, naming, space):
    """The key (uint64) of every entry of a text column without nulls, described by `column` (FIELDS,).

    Each is entered as a name in the column number `space`. Returns whether all are values.
    """
    data, offsets, whole = column[DATA], column[OFFSETS], True
    for i in range(out.size):
        out[i], there = _key(LONG, data, offsets, column[FIRST] + i, seed, False, naming, space)
        whole &= there
    return whole
