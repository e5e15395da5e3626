"""The compiled parser of lines with cells: between delimiters, quoted (CSV) or not (TSV), or in JSON.

The ends of cells are found 64 bytes at a time; a cell that begins with a quote is read separately. The
features of a row are stored in order of appearance, then sorted by key.

A quoted cell ends on its line: if line breaks in quotes were cells' own, whether a newline ends a row would
depend on all quotes before it, so one pass over the text would have to find where blocks can be cut, and a
stray quote would swap the inside and outside of cells up to the end of the file.

pyarrow.csv takes 1.6 to 2.5 s of processor to make strings of a click log (2 million rows, 39 columns, 488
MB), which would still have to be turned into rows of keys. This parser goes from text to keys in 1.25 s. It
is cut and resumed at bytes like svmlight, names the column of every bad cell, reads numbers to the same
float32, and skips a bad line where pyarrow rejects a whole block.

For a table of at most 64 columns, rows are sorted by counting, and the sort of long rows is not compiled; nor
are bins, and the hash of column names (plain Python hashes 20 in half a millisecond), unless they are used.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment, var-annotated"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.features.crossing import note_column
from thresher.data.features.murmur import padded_murmur3_64, whole_murmur3_64
from thresher.data.features.names import TEXT, offer, offer_whole
from thresher.data.features.ngrams import text_features
from thresher.data.formats import line_status
from thresher.data.formats.lines.line_rows import ends_line
from thresher.data.formats.tables import table_rows
from thresher.data.formats.tables.json_cells import (
    END,
    KIND,
    NUMBERS,
    SPAN,
    START,
    Objects,
    enter_classes,
    enter_names,
    find_cells,
)
from thresher.data.text.numbers import FINE, NOT_A_NUMBER, read_double, read_number
from thresher.data.text.spelling import is_finite, spell, truth
from thresher.data.text.words import (
    address,
    all_digits,
    byte,
    enter,
    load_int,
    lowest_bit,
    past_blanks,
    same_bytes,
    separators,
    short_number,
    store_float,
    stripped,
)
from thresher.engine.centring import FAR, note_rest
from thresher.engine.compile.jit import scalar

_NUL, _NEWLINE, _RETURN, _QUOTE = 0, 10, 13, 34
_NONE, _ONE = np.uint64(0), np.uint64(1)


@scalar
def _copy_quoted(text, at, room):
    """Copy the quoted cell whose text begins at `at` to `room`: ``(position after it, length, closed)``."""
    size = np.int64(0)
    while byte(text, at) != _NEWLINE:
        if byte(text, at) == _QUOTE:
            if byte(text, at + 1) != _QUOTE:
                room[size] = _NEWLINE
                return at + 1, size, True
            at += 1
        room[size] = byte(text, at)
        size += 1
        at += 1
    return at, size, False


@scalar
def _repeats(text, at, header, first_at):
    """Whether the line at `at` is the header, see `delimited.as_header`; keeps where it is first."""
    marked = byte(text, at) == 0xEF and byte(text, at + 1) == 0xBB and byte(text, at + 2) == 0xBF
    end = at + 3 if marked else at
    for k in range(header.size):
        while byte(text, end) == _QUOTE:
            end += 1
        code = byte(text, end)
        if code + 32 * (65 <= code <= 90) != header[k]:
            return False
        end += 1
    while byte(text, end) == _QUOTE:
        end += 1
    found = header.size > 0 and ends_line(text, end)
    if found and first_at[-1] < 0:
        first_at[-1] = at
    return found


@scalar
def _cell(text, at, base, mask, delimiter, room):
    """Find the cell at `at`, given the separators `mask` from `base` on.

    Returns ``(address of its text, begin and end there, position of the separator, base, mask, outcome)``.
    """
    if room.size and byte(text, at) == _QUOTE:
        end, size, closed = _copy_quoted(text, at + 1, room)
        if byte(text, end) == _RETURN and byte(text, end + 1) == _NEWLINE:
            end += 1
        outcome = line_status.EXAMPLE if closed else line_status.UNCLOSED
        if closed and byte(text, end) != delimiter and byte(text, end) != _NEWLINE:
            outcome = line_status.AFTER_QUOTE
        return address(room), np.int64(0), size, end, end, separators(text, end, delimiter), outcome
    while mask == _NONE:
        base += 64
        mask = separators(text, base, delimiter)
    end = base + lowest_bit(mask)
    last = end
    if byte(text, end) == _NEWLINE and last > at and byte(text, last - 1) == _RETURN:
        last -= 1
    return text, at, last, end, base, mask, line_status.EXAMPLE


@scalar
def _value(kind, cell, at, end, domain):
    """The number, or the number of the class word, in ``cell[at:end]``: ``(float32, outcome)``."""
    empty, value, status = at == end, np.float32(0), FINE
    if kind == table_rows.WORD:
        value = line_status.word_label(cell, at, end, domain)
        return value, table_rows.outcome_of(table_rows.LABEL, value, FINE, empty, domain)
    if not empty and end - at <= 8 and all_digits(cell, at, end - at):
        value = np.float32(np.int64(short_number(cell, at, end - at)))
    elif not empty:
        stop, value, status = read_number(cell, at)
        status = NOT_A_NUMBER if stop != end else status
        value += np.float32(0)  # -0 becomes 0
    said = truth(cell, at, end) if status == NOT_A_NUMBER else -1
    if said >= 0:
        value, status = np.float32(said), FINE
    elif kind == table_rows.LABEL and status == FINE and not empty:
        return value, line_status.check_written(cell, at, end, value, domain)
    return value, table_rows.outcome_of(kind, value, status, empty, domain)


@scalar
def _meant(code, cell, at, end, tokens, scratch):
    """The kind of a column, a cell's text (empty if missing, or as the value is spelled), and the outcome."""
    listed, k, outcome = address(tokens), 0, line_status.EXAMPLE
    while k < tokens.size:
        size = np.int64(byte(listed, k))
        if size == end - at and same_bytes(cell, at, listed, k + 1, size):
            end = at
        k += 1 + size
    if code >= table_rows.SPELLED:
        cell, at, end = spell(cell, at, end, scratch)
        if code >= table_rows.NUMERALS and not is_finite(cell, at, end):
            outcome = line_status.NUMBER
        code %= table_rows.SPELLED
    return code, cell, at, end, outcome


@scalar
def _enter_cell(code, cell, first, last, start, c, row, grams, found):
    """Enter what the cell ``cell[first:last]`` of column `c` becomes: ``((nnz, label, weight), outcome)``.

    The row begins at `start`; `found` are entries, label and weight of the cells before.
    """
    (_, names, seeds, first_at, _, scratch), out, domain, extra, into, tokens = row
    nnz, label, weight = found
    keys, values, begin = address(out[0]), address(out[1]), nnz
    kind, cell, first, last, outcome = _meant(code, cell, first, last, tokens, scratch)
    if kind == table_rows.TEXT:
        if grams is not None:
            code, known, room_of_grams, begins = grams
            nnz = text_features(
                *(cell, first, last, code, known, seeds[c], room_of_grams, begins),
                *(out[0], out[1], nnz, extra[1], c),
            )
    elif kind == table_rows.CATEGORICAL:
        if past_blanks(cell, first, last) < last:
            key = padded_murmur3_64(cell, first, last - first, seeds[c])
            offer(extra[1], key, cell, first, last - first, c, TEXT)
            nnz = enter(key, np.float32(1), keys, values, nnz)
    elif kind >= table_rows.NUMERIC:
        first, last = stripped(cell, first, last)
        value, outcome = _value(kind, cell, first, last, domain)
        if kind == table_rows.LABEL or kind == table_rows.WORD:
            label = line_status.keep_label(*into, names[c], value)
        elif kind == table_rows.WEIGHT:
            weight = value
        elif kind == table_rows.OFFSET:
            store_float(out[2], 0, value)
        elif outcome == line_status.EXAMPLE and (last > first or kind == table_rows.GAPPED):
            if kind == table_rows.GAPPED and abs(value) >= FAR:
                note_rest(out[3], names[c], read_double(cell, first), value)
            if kind == table_rows.BINS:
                place = table_rows.bin_of(value)
                key = whole_murmur3_64(place, seeds[c])
                offer_whole(extra[1], key, place, c)
                nnz = enter(key, np.float32(1), keys, values, nnz)
            else:
                offer(extra[1], names[c], keys, 0, 0, c, TEXT)
                if last == first or value != np.float32(0):
                    nnz = enter(names[c], value, keys, values, nnz)
    elif kind == table_rows.EMPTY:
        if first_at[c] < 0 and past_blanks(cell, first, last) < last:
            first_at[c] = start
    if outcome == line_status.EXAMPLE:
        note_column(extra[0], c, begin, nnz)
    return (nnz, label, weight), outcome


@scalar
def _row(text, at, delimiter, room, row, grams, found):
    """Read one row: ``(position of the line end or error, (nnz, label, weight), outcome, column)``.

    ``row = (columns, (keys, values, offset, far), domain, extra, into, tokens)``: features are stored
    from the nnz of `found` on, several labels in ``into = (targets, row)``, an offset at an address, rests in
    `far`.
    """
    codes, count = row[0][0], row[0][4]
    base, mask, start = at, separators(text, at, delimiter), at
    for c in range(count):
        cell, first, last, end, base, mask, outcome = _cell(text, at, base, mask, delimiter, room)
        if outcome == line_status.EXAMPLE:
            found, outcome = _enter_cell(codes[c], cell, first, last, start, c, row, grams, found)
        if outcome != line_status.EXAMPLE:
            return at, found, outcome, c
        if (byte(text, end) == _NEWLINE) != (c == count - 1):
            return end, found, line_status.TOO_FEW if c < count - 1 else line_status.TOO_MANY, c
        mask &= mask - _ONE
        at = end + 1
    return at - 1, found, line_status.EXAMPLE, 0


@scalar
def _object_row(text, at, objects, row, grams, found):
    """As `_row`, of a line with an object; the outcome is `UNUSUAL` if the line needs more care."""
    (codes, _, seeds, _, count, _), out, domain, extra, into, _ = row
    end, spans, zero = find_cells(text, at, count, objects), address(objects.spans), np.int64(0)
    if end < 0:
        return at, found, line_status.UNUSUAL, 0
    for c in range(count):
        code, first, last = codes[c], load_int(spans, SPAN * c + START), load_int(spans, SPAN * c + END)
        nnz, label, weight = found
        if code == table_rows.LIST:
            more, outcome = enter_names(first, last, seeds[c], out[0], out[1], nnz, extra[1], c, objects)
            note_column(extra[0], c, nnz, more)
            found = more, label, weight
        elif code == table_rows.CLASSES:
            label, outcome = enter_classes(first, last, domain, *into)
            found = nnz, label, weight
        else:
            as_text = code == table_rows.CATEGORICAL or code == table_rows.TEXT or code == table_rows.WORD
            if as_text and load_int(spans, SPAN * c + KIND) == NUMBERS:
                code += table_rows.SPELLED
            found, outcome = _enter_cell(code, zero, first, last, at, c, row, grams, found)
        if outcome != line_status.EXAMPLE:
            return end, found, outcome, c
    return end, found, line_status.EXAMPLE, 0


@scalar
def _read_row(cells, objects, text, at, row, nnz):
    """Read one line with the grammar `cells`, if it is a row: see `_row`."""
    found = nnz, np.float32(0), np.float32(1)
    if objects is not None:
        if (
            nnz + cells.size - at + objects.spare > row[1][0].size
        ):  # a feature for each byte at most, but for gaps
            return at, found, line_status.CRAMPED, 0
        return _object_row(text, at, objects, row, cells.grams, found)
    if (row[0][4] > 1 and ends_line(text, at)) or _repeats(text, at, cells.header, cells.first_at):
        return at, found, line_status.BLANK, 0
    return _row(text, at, cells.dialect[0], cells.room, row, cells.grams, found)


class Cells(NamedTuple):
    """The grammar of lines with cells, with scratch space."""

    columns: tuple[NDArray[Any], ...]
    """``(codes, keys, seeds)`` of the columns"""
    first_at: NDArray[np.int64]
    """(columns + 1,) gets the position of the first row with a value in each `EMPTY` column, and of the first
    line that repeats the header"""
    header: NDArray[np.uint8]
    dialect: tuple[int, NDArray[np.uint8]]
    """the delimiter, a byte; cells that mean a missing value, each after its length"""
    objects: Objects | None
    """of lines of JSON, which have no dialect; None for other lines"""
    room: NDArray[np.uint8]
    """for a quoted cell, as long as the padded text; empty if there are no quotes, or they have no meaning"""
    has_nul: bool
    """whether the text may hold a NUL"""
    size: int
    """of the text"""
    grams: tuple[Any, ...] | None
    """``(code, known, scratch, begins)`` for `text_features`; None without text columns"""
    mask: np.uint64
    """mask of the bits of a key that are kept"""
    far: tuple[NDArray[np.int64], NDArray[np.float32]]
    """gets what float32 loses of numbers, with their rows: see `note_rest`"""
    spelling: NDArray[np.uint8]
    """(ROOM,) for the spelling of a cell"""
    ordered: bool = False

    def read_line(self, text, at, columns, nnz, domain, targets, row, extra):
        """See `line_rows.read_line`. The outcome of a bad row is ``outcome + OUTCOMES * column``."""
        start, noted = at, self.far[0]
        while noted[0, 0] > 0 and noted[noted[0, 0], 0] == row:  # the row is read again
            noted[0, 0] -= 1
        noted[0, 1] = row
        count, (keys, values) = np.int64(self.columns[0].size), columns[3]
        described = (*self.columns, self.first_at, count, address(self.spelling))
        out = keys, values, columns[2] + 4 * row, self.far
        given = described, out, domain, extra, (targets, row), self.dialect[1]
        at, (own, label, weight), outcome, column = _read_row(self, self.objects, text, at, given, nnz)
        if outcome == line_status.EXAMPLE and self.has_nul:
            for place in range(at - 1, start - 1, -1):
                if byte(text, place) == _NUL:
                    at, outcome = place, line_status.NUL
        table_rows.mask_keys(keys, nnz, own, self.mask)
        if outcome > line_status.UNUSUAL:
            outcome += line_status.OUTCOMES * column
        return at, own, False, label, weight, outcome
