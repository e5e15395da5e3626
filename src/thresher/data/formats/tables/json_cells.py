"""The compiled reader of JSON lines: it finds the cells of a block in one pass.

No text is copied unless it has an escape, or is a number or date that is spelled in another way; the encoder
of record batches (`arrow_rows`) hashes the cells where they are. A name is compared whole with that of the
field which followed the same field in the row before, so fields in a steady order cost one comparison each.

At a line with anything unusual (a nested value in a field that is read, an escape in a name, a number whose
float32 is not certain) it stops, as at a bad or blank one: these are read one by one, in Python, and their
values are entered into the same cells.

Without pyarrow, clicks are read three times as fast, and a line of 40 fields in a tenth of a millisecond.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment, var-annotated"

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.data import columns
from thresher.data.columns import CATEGORICAL, LABEL, LIST
from thresher.data.files.blocks import PAD
from thresher.data.formats.tables import arrow_rows as rows
from thresher.data.formats.tables.arrow_batches import TEXTS, columns_read, number_of
from thresher.data.formats.tables.spellings import text_of
from thresher.data.formats.tables.table_rows import GAPPED, ColumnEncodings
from thresher.data.labels import BASIS, PRIME
from thresher.data.text.numbers import nearest_double, read_digits, read_power
from thresher.data.text.spelling import GROWTH, ROOM, respelled, spelled
from thresher.data.text.words import (
    SPACES,
    address,
    bits_of,
    byte,
    is_blank,
    load_word,
    lowest_bit,
    store_byte,
    store_word,
    string_stops,
)
from thresher.engine.centring import FAR
from thresher.engine.compile.jit import compiled_apart, kernel, scalar

NUMBER, EXACT_NUMBER, TEXT, SPELLED, WORDS, LISTS, CLASSES, IGNORED = range(8)
"""How a field is read: as a float32; as a float64; as text; as text with one spelling for each value; as text
that is never a number; as a list of texts and whole numbers; as one of numbers; not at all."""
NULL, NUMBERS, STRINGS, TRUTHS, NESTED, KINDS = range(6)
"""Kinds of values, and how many there are"""
BEGIN, SIZE, FOLLOWS, ROLE, PLACE, FOUND, FIELD = 0, 1, 2, 3, 4, 5, 6
"""A field as a row of int64: where its name begins among all names, and its length; the field that followed
it; how it is read; its place among numbers, or among texts; the row that had it last. The number of these."""
WRITTEN, ELEMENTS, KNOWN, NAMED, USES = range(5)
"""What is in use: bytes of written texts, elements of lists, fields, bytes of names; how many these are."""
PLAIN, WHOLE = 1, 2
"""How a number may be read as text; 0: not at all"""
_QUOTE, _COMMA, _MINUS, _DOT, _ZERO, _COLON, _ESCAPE = b'",-.0:\\'
_OPEN, _CLOSE, _LIST, _LIST_END = b"{}[]"
_NEWLINE, _RETURN, _BLANK, _LARGEST_PLAIN = 10, 13, 32, np.uint64(10**15)
_MOST_DECIMALS = -290
"""Below, a float64 may have fewer than 15 digits, or be 0"""
_NULL, _TRUE, _ALS = (np.uint64(int.from_bytes(word, "little")) for word in (b"null", b"true", b"alse"))
_FOUR, _ONE, _NOTHING = np.uint64(2**32 - 1), np.uint64(1), np.uint64(0)
_BAD = np.int64(-1)
_UNSEEN, _UNWATCHED = -1, -2
_DEEPEST = 60


@scalar
def _past_blanks(text, at):
    """The position of the first byte from `at` on that is not a blank."""
    while is_blank(byte(text, at)):
        at += 1
    return at


@scalar
def _is_name(text, at, names, begin, size):
    """Whether the `size` bytes at `at` are those of `names` at `begin`, a multiple of eight."""
    same = True
    while size > 8 and same:
        same = load_word(text, at) == load_word(names, begin)
        at, begin, size = at + 8, begin + 8, size - 8
    different = (load_word(text, at) ^ load_word(names, begin)) << np.uint64(64 - 8 * size)
    return same and different == _NOTHING


@scalar
def _get(fields, c, what):
    return np.int64(load_word(fields, 8 * (FIELD * c + what)))


@scalar
def _field(text, at, before, names, fields, count):
    """The field whose name is at `at`, in an object in which `before` comes before it; 0 if there is none."""
    c = _get(fields, before, FOLLOWS)
    if _is_name(text, at, names, _get(fields, c, BEGIN), _get(fields, c, SIZE)):
        return c
    for k in range(count):
        c = before + k + 1 if before + k < count else before + k + 1 - count
        if _is_name(text, at, names, _get(fields, c, BEGIN), _get(fields, c, SIZE)):
            store_word(fields, FIELD * before + FOLLOWS, np.uint64(c))
            return c
    return np.int64(0)


@scalar
def _string_end(text, at):
    """The position of the first quote, backslash or control character from `at` on."""
    while True:
        found = string_stops(text, at)
        if found != _NOTHING:
            return at + lowest_bit(found)
        at += 64


@compiled_apart
def _new_field(text, at, form, used):
    """Enter the field whose name is at `at`, which is ignored, and return it; 0 if there is no room."""
    names, fields, most, room = form[0], form[1], form[2], form[3]
    c, begin = np.int64(load_word(used, 8 * KNOWN)) + 1, np.int64(load_word(used, 8 * NAMED))
    end = _string_end(text, at)
    size = end + 1 - at
    if byte(text, end) != _QUOTE or c > most or begin + size > room:
        return np.int64(0)
    for k in range(size):
        store_byte(names, begin + k, byte(text, at + k))
    store_word(fields, FIELD * c + BEGIN, np.uint64(begin))
    store_word(fields, FIELD * c + SIZE, np.uint64(size))
    store_word(used, KNOWN, np.uint64(c))
    store_word(used, NAMED, np.uint64((begin + size + 7) & -8))
    return c


@scalar
def _hex(text, at):
    """The number of four hexadecimal digits at `at`; -1 if they are not that."""
    number = np.int64(0)
    for k in range(4):
        code = byte(text, at + k)
        letter = (code | 32) - 87
        digit = code - 48 if 48 <= code <= 57 else letter if 10 <= letter <= 15 else -1
        number = number * 16 + digit if digit >= 0 and number >= 0 else -1
    return number


@scalar
def _as_utf8(point, out, at):
    """Write a Unicode code point at `at`; returns the position after it."""
    if point < 0x80:
        store_byte(out, at, point)
        return at + 1
    more = 1 if point < 0x800 else 2 if point < 0x10000 else 3
    store_byte(out, at, (0xFF00 >> more + 1) & 0xFF | point >> 6 * more)
    for k in range(more):
        store_byte(out, at + 1 + k, 0x80 | (point >> 6 * (more - 1 - k)) & 0x3F)
    return at + 1 + more


@scalar
def _escaped(text, at):
    """The code point of the escape at `at`, and the position after it; -1 for none that is valid."""
    code = byte(text, at + 1)
    if code == 117:  # u
        unit = _hex(text, at + 2)
        if 0xD800 <= unit < 0xDC00 and byte(text, at + 6) == _ESCAPE and byte(text, at + 7) == 117:
            low = _hex(text, at + 8)
            valid = 0xDC00 <= low < 0xE000
            return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00) if valid else -1, at + 12
        return unit if unit < 0xD800 or unit >= 0xE000 else -1, at + 6
    if code == _QUOTE or code == _ESCAPE or code == 47:
        return code, at + 2
    found = 8 if code == 98 else 12 if code == 102 else 10 if code == 110 else 13 if code == 114 else -1
    return 9 if code == 116 else found, at + 2


@compiled_apart
def _unescaped(text, at, out, size):
    """Write the string at `at` without escapes: ``(position of its last quote or -1, its end in `out`)``."""
    while True:
        stop = _string_end(text, at)
        for k in range(at, stop):
            store_byte(out, size + k - at, byte(text, k))
        size += stop - at
        if byte(text, stop) != _ESCAPE:
            return stop if byte(text, stop) == _QUOTE else _BAD, size
        point, at = _escaped(text, stop)
        if point < 0:
            return _BAD, size
        size = _as_utf8(point, out, size)


@scalar
def _number(text, at):
    """The number at `at`: ``(end, float64, whether that is the nearest one, how it may be read as text)``.

    `end` is -1 if it is not a number of JSON, or if the nearest float32 is not certain. As text, `PLAIN`
    numbers have at most 15 digits and no exponent, and `WHOLE` ones no decimal point either; -0 is neither.
    """
    negative = byte(text, at) == _MINUS
    at += negative
    end, mantissa, exponent = read_digits(text, at, _NOTHING)
    valid, plain = end > at and (byte(text, at) != _ZERO or end == at + 1), WHOLE
    if byte(text, end) == _DOT:
        at, plain = end + 1, PLAIN
        end, mantissa, dropped = read_digits(text, at, mantissa)
        exponent -= end - at - dropped
        valid &= end > at
    if mantissa >= _LARGEST_PLAIN or exponent < _MOST_DECIMALS or (negative and mantissa == _NOTHING):
        plain = 0
    if byte(text, end) | 32 == 101:  # e
        end, power, status = read_power(text, end + 1)
        exponent, plain = exponent + power, 0
        valid &= status == 0
    number, certain, nearest = nearest_double(mantissa, exponent)
    return end if valid and certain else _BAD, -number if negative else number, nearest, plain


@scalar
def _spelled(begin, stop, room):
    """The text between two addresses as it is spelled, by its addresses.

    A new one is written over the text if that was written itself, so that there is room for it.
    """
    scratch, out, used = room[0], room[1], room[2]
    cell, first, last = spelled(np.int64(0), begin, stop, scratch)
    if cell != scratch:
        return first, last
    end = out + np.int64(load_word(used, 8 * WRITTEN))
    if begin < out or begin >= end:
        begin = end
    for k in range(last):
        store_byte(begin, k, byte(scratch, k))
    store_word(used, WRITTEN, np.uint64(begin + last - out))
    return begin, begin + last


@scalar
def _string(text, at, room):
    """The string after the quote at `at`: ``(end or -1, addresses of its text and its end)``."""
    stop = _string_end(text, at + 1)
    if byte(text, stop) == _QUOTE:
        return stop + 1, text + at + 1, text + stop
    out, used = room[1], room[2]
    begin = np.int64(load_word(used, 8 * WRITTEN))
    end, last = _unescaped(text, at + 1, out, begin)
    store_word(used, WRITTEN, np.uint64(last))
    return end + 1 if end >= 0 else _BAD, out + begin, out + last


@scalar
def _literal(text, at):
    """The position after the literal at `at`, and its kind; -1 if it is none."""
    four = load_word(text, at) & _FOUR
    if four == _NULL or four == _TRUE:
        return at + 4, NULL if four == _NULL else TRUTHS
    is_false = byte(text, at) == 102 and load_word(text, at + 1) & _FOUR == _ALS
    return at + 5 if is_false else _BAD, TRUTHS


@scalar
def _element(text, at, spells, room):
    """A text or a plain number at `at` that is read as text: ``(end, addresses of its text and its end)``."""
    if byte(text, at) == _QUOTE:
        return _string(text, at, room)
    end, _, _, plain = _number(text, at)
    if end < 0 or not (plain == WHOLE or (spells and plain == PLAIN)):
        return _BAD, text, text
    begin, stop = text + at, text + end
    if spells:
        begin, stop = _spelled(begin, stop, room)
    return end, begin, stop


@compiled_apart
def _elements(text, at, classes, room):
    """Keep the elements of the list at `at`: ``(end or -1, index of the first, index after the last)``.

    Those of `classes` are float64s, of others the addresses of a text and its end.
    """
    used, elements = room[2], room[3]
    first = np.int64(load_word(used, 8 * ELEMENTS))
    count, at = first, _past_blanks(text, at + 1)
    ends = byte(text, at) == _LIST_END
    while not ends:
        if classes:
            end, number, _, _ = _number(text, at)
            store_word(elements, 2 * count, bits_of(number))
            count += 1
        elif load_word(text, at) & _FOUR == _NULL:
            end = at + 4
        else:
            end, begin, stop = _element(text, at, False, room)
            store_word(elements, 2 * count, np.uint64(begin))
            store_word(elements, 2 * count + 1, np.uint64(stop))
            count += 1
        if end < 0:
            return _BAD, first, first
        at = _past_blanks(text, end)
        ends = byte(text, at) == _LIST_END
        if not ends and byte(text, at) != _COMMA:
            return _BAD, first, first
        at = at if ends else _past_blanks(text, at + 1)
    store_word(used, ELEMENTS, np.uint64(count))
    return at + 1, first, count


@compiled_apart
def _nested(text, at, room):
    """The position after the list or object at `at`, which is not read; -1 if it is bad, or deep."""
    depth, objects = np.int64(0), _NOTHING  # bit k: whether the bracket at depth k is that of an object
    while at >= 0 and depth < _DEEPEST:
        code = byte(text, at)
        opens, closed = code == _OPEN or code == _LIST, False
        if opens:
            objects = objects << _ONE | np.uint64(code == _OPEN)
            depth, at = depth + 1, _past_blanks(text, at + 1)
            closed = byte(text, at) == (_CLOSE if code == _OPEN else _LIST_END)
        elif code == _QUOTE:
            at = _string(text, at, room)[0]
        else:
            is_number = code == _MINUS or 48 <= code <= 57
            at = _number(text, at)[0] if is_number else _literal(text, at)[0]
        while at >= 0 and (closed or not opens):
            if closed:
                depth, objects, at = depth - 1, objects >> _ONE, at + 1
            if depth == 0:
                return at
            at, opens = _past_blanks(text, at), False
            closed = byte(text, at) == (_CLOSE if objects & _ONE else _LIST_END)
            if not closed:
                at = _past_blanks(text, at + 1) if byte(text, at) == _COMMA else _BAD
                break
        if at >= 0 and objects & _ONE:  # a name and its colon come before the value
            end = _string(text, at, room)[0] if byte(text, at) == _QUOTE else _BAD
            end = _past_blanks(text, end) if end >= 0 else at
            at = _past_blanks(text, end + 1) if byte(text, end) == _COLON else _BAD
    return _BAD


@scalar
def _cell(text, at, role, room):
    """The value at `at`: ``(end or -1, kind, float64, addresses of its text and its end)``."""
    code, none = byte(text, at), np.int64(0)
    if code == _QUOTE:
        end, begin, stop = _string(text, at, room)
        if role == SPELLED and end >= 0:
            begin, stop = _spelled(begin, stop, room)
        usual = role > EXACT_NUMBER and role != LISTS and role != CLASSES
        return end if usual else _BAD, STRINGS, 0.0, begin, stop
    if code == _MINUS or 48 <= code <= 57:
        if role == TEXT or role == SPELLED:
            end, begin, stop = _element(text, at, True, room)
            return end, NUMBERS, 0.0, begin, stop
        end, number, nearest, _ = _number(text, at)
        usual = (role < WORDS or role > CLASSES) and (role != EXACT_NUMBER or nearest or abs(number) < FAR)
        return end if usual else _BAD, NUMBERS, number, none, none
    if code == _OPEN or code == _LIST:
        if (role == LISTS or role == CLASSES) and code == _LIST:
            end, begin, stop = _elements(text, at, role == CLASSES, room)
            return end, NESTED, 0.0, begin, stop
        return _nested(text, at, room) if role == IGNORED else _BAD, NESTED, 0.0, none, none
    end, kind = _literal(text, at)
    if kind == NULL or end < 0:
        return end, kind, 0.0, none, none
    stop = end if role < WORDS or role > CLASSES else _BAD
    return stop, kind, np.float64(code == 116), text + at, text + end


@scalar
def _object(text, at, row, form, cells, firsts, room):
    """Read the object at `at` as a row; returns the position of its line end, or -1 if it is unusual."""
    names, fields, used = form[0], form[1], room[2]
    numbers, valid, spans, rows, texts = cells
    before, count = np.int64(0), np.int64(load_word(used, 8 * KNOWN))
    at = _past_blanks(text, at + 1)
    ends = byte(text, at) == _CLOSE
    while not ends:
        c = np.int64(0)
        if byte(text, at) == _QUOTE:
            c = _field(text, at + 1, before, names, fields, count)
            if c == 0:
                c = _new_field(text, at + 1, form, used)
                count += c > 0
        if c == 0 or _get(fields, c, FOUND) == row:
            return _BAD
        at = _past_blanks(text, at + 1 + _get(fields, c, SIZE))
        if byte(text, at) != _COLON:
            return _BAD
        role = _get(fields, c, ROLE)
        at, kind, number, begin, stop = _cell(text, _past_blanks(text, at + 1), role, room)
        if at < 0:
            return _BAD
        if kind != NULL:
            place = _get(fields, c, PLACE)
            if role == NUMBER or role == EXACT_NUMBER:
                bits = valid + place * ((rows + 7) >> 3) + (row >> 3)
                store_byte(bits, np.int64(0), byte(bits, np.int64(0)) | 1 << (row & 7))
                store_word(numbers, place * rows + row, bits_of(number))
            elif role < IGNORED:
                store_word(spans, 2 * (row * texts + place), np.uint64(begin))
                store_word(spans, 2 * (row * texts + place) + 1, np.uint64(stop))
            if firsts[c] == _UNSEEN:
                firsts[c] = KINDS * row + kind
        store_word(fields, FIELD * c + FOUND, np.uint64(row))
        before, at = c, _past_blanks(text, at)
        ends = byte(text, at) == _CLOSE
        if not ends and byte(text, at) != _COMMA:
            return _BAD
        at = at if ends else _past_blanks(text, at + 1)
    at = _past_blanks(text, at + 1)
    at += byte(text, at) == _RETURN
    return at if byte(text, at) == _NEWLINE else _BAD


@kernel
def cut(text_bytes, at, size, row, form, cells, firsts, rooms):
    """Find the cells of the lines ``text_bytes[at:size]``, which end with a newline, as rows from `row` on.

    Args:
        form: ``(names, fields)``: the names of fields, each with a quote after it and zeros up to a
            multiple of eight bytes, and room for more (uint8); int64 (fields + 1, FIELD), of which entry 0
            comes before the first field, and the last ones are free.
        cells: ``(numbers, valid, spans)``: float64 (columns, rows); uint8 (columns, rows / 8) of zeros, their
            bits; int64 (rows, columns, 2), the addresses of texts and of their ends.
        firsts: int64 (fields + 1,), gets KINDS * row + kind of the first value of a field that is -1 there.
        rooms: uint8 scratch space for a spelling, and for all texts that are written in another way; int64
            (4,), how much is in use; int64 (elements, 2), addresses of elements of lists.

    Returns the row after the last; if a line is unusual, that is its row, of which some cells may be found.
    """
    names, fields = form
    numbers, valid, spans = cells
    text = address(text_bytes)
    described = address(names), address(fields), np.int64(len(fields) - 1), np.int64(names.size - 8)
    shape = np.int64(spans.shape[0]), np.int64(spans.shape[1])
    into = address(numbers), address(valid), address(spans), *shape
    space = address(rooms[0]), address(rooms[1]), address(rooms[2]), address(rooms[3])
    while at < size:
        spans[row] = 0
        at, stop = _past_blanks(text, at), _BAD
        if byte(text, at) == _OPEN:
            stop = _object(text, at, row, described, into, firsts, space)
        if stop < 0:
            break
        at, row = stop + 1, row + 1
    return row


@kernel
def join(spans, place, out, ends):
    """Copy the texts ``spans[:, place]`` to `out`; `ends`, int64 (rows + 1,), gets where they end."""
    size, written = np.int64(0), address(out)
    ends[0] = 0
    for row in range(len(spans)):
        begin = spans[row, place, 0]
        for k in range(spans[row, place, 1] - begin):
            store_byte(written, size + k, byte(begin, k))
        size += spans[row, place, 1] - begin
        ends[row + 1] = size


def names_in(text: bytes, most: int) -> int:
    """How many different names there are in lines of JSON, nested ones too; `most` + 1 if there are more."""
    table = np.zeros(1 << (2 * most).bit_length(), np.uint64)
    return int(_distinct(np.frombuffer(text, np.uint8), table, most))


@kernel
def _distinct(text, table, most):
    """Count the strings before a colon by their hashes (FNV-1a), which `table`, of zeros, receives."""
    count, code, inside, ended, at = 0, np.uint64(BASIS), False, False, 0
    while at < text.size and count <= most:
        letter = text[at]
        if inside and letter != _QUOTE and letter != _NEWLINE:
            code = (code ^ np.uint64(letter)) * np.uint64(PRIME)
            at += letter == _ESCAPE
        elif inside:
            inside, ended = False, letter == _QUOTE
        elif letter == _QUOTE:
            inside, code = True, np.uint64(BASIS)
        elif letter == _COLON and ended:
            slot = np.int64(code >> np.uint64(20)) & (table.size - 1)
            while table[slot] != 0 and table[slot] != code:
                slot = (slot + 1) & (table.size - 1)
            count += table[slot] == 0
            table[slot], ended = code, False
        elif letter > _BLANK:
            ended = False
        at += 1
    return count


_WORD = 8
_SPARSE, _SMALL = 64, 1 << 20
"""Bytes of cells for each byte of text, beyond which lines lack most fields, and how many never matter"""
_MORE, _ROOM = 64, 1 << 13
"""Fields that only later rows have, and bytes for their names"""


class ObjectCells(NamedTuple):
    """The cells of objects."""

    table: NDArray[np.int64]
    """see `arrow_rows.encode`: the columns of numbers, categories and lists"""
    held: list[Any]
    """what keeps the memory alive to which the table points"""
    most: int
    """the maximum number of features in these"""
    others: list[tuple[int, int, Any]]
    """the other columns: rows in the table, numbers of columns, and texts"""
    firsts: list[tuple[int, int, str]]
    """the watched and the new fields that have a value: first row, kind of the value there, and name"""
    named: dict[int, Any]
    """columns whose values name features, by number, if names are wanted; lists are flat"""


class ObjectColumns:
    """What is read of the objects of a file, and the cells of some of them.

    After `start`, lines are read in their order, by `cut` or, one by one, by `enter`; then `found` returns
    their cells.
    """

    row: int
    """the number of rows so far"""

    def __init__(
        self, kinds: ColumnEncodings, words: bool, lists: bool, watched: Callable[[str], str]
    ) -> None:
        """`words`: labels are not numbers; `lists`: they are lists of these.

        A field for which `watched` returns a text is watched.
        """
        read = columns_read(kinds)
        of_labels = CLASSES if lists else WORDS if words else NUMBER
        usual = {CATEGORICAL: TEXT, columns.TEXT: TEXT, LIST: LISTS, LABEL: of_labels}
        roles = [IGNORED] * len(kinds.names)
        for c in read:
            roles[c] = usual.get(kinds.what[c], NUMBER)
            if roles[c] == NUMBER and kinds.codes[c] == GAPPED:
                roles[c] = EXACT_NUMBER
            elif kinds.what[c] == CATEGORICAL and kinds.spelling[c] in columns.SPELLED:
                roles[c] = SPELLED
        own = [roles[c] for c in read]
        self._numbers = [k for k, role in enumerate(own) if role in (NUMBER, EXACT_NUMBER)]
        self._texts = [k for k, role in enumerate(own) if role not in (NUMBER, EXACT_NUMBER)]
        self._columns, self._roles = [read[k] for k in self._texts], [own[k] for k in self._texts]
        self._lists, self._classes = (
            [k for k, one in enumerate(self._roles) if one == role] for role in (LISTS, CLASSES)
        )
        whats = [kinds.what[c] for c in self._columns]
        self._others = [
            k for k, what in enumerate(whats) if what == columns.TEXT or (what == LABEL and not lists)
        ]
        self._names = [[kinds.names[read[k]] for k in some] for some in (self._numbers, self._texts)]
        self._table = np.zeros((len(read), rows.FIELDS), np.int64)
        self._table[:, rows.COLUMN] = read
        self._table[self._texts, rows.FORM] = rows.SPANS
        self._table[self._texts, rows.STEP] = len(self._texts)
        self._table[self._texts, rows.LISTS_STEP] = 2 * len(self._texts)
        if self._classes:
            labels = self._texts[self._classes[0]]
            self._table[labels, [rows.FORM, rows.STEP]] = rows.NUMBER_LISTS, 2
        self._width = sum(2 if kinds.codes[c] == GAPPED else 1 for c in read)
        # What `cut` is told of the fields. Many programs write letters beyond ASCII with escapes.
        again = [c for c, name in enumerate(kinds.names) if not name.isascii()]
        names = [json.dumps(name, ensure_ascii=False)[1:].encode() for name in kinds.names]
        names += [json.dumps(kinds.names[c])[1:].encode() for c in again]
        padded = [name.ljust(-(-len(name) // _WORD) * _WORD, b"\0") for name in names]
        text, count, fields = b"".join(padded), len(names), np.ones((len(names) + _MORE + 1, FIELD), np.int64)
        fields[: count + 1, FOLLOWS] = [*range(1, count + 1), 1]
        fields[1 : count + 1, BEGIN] = np.cumsum([0, *map(len, padded)])[:-1]
        fields[1 : count + 1, SIZE] = [len(name) for name in names]
        fields[:, ROLE] = IGNORED
        fields[1 : count + 1, ROLE] = [*roles, *(roles[c] for c in again)]
        for group in ([read[k] for k in self._numbers], self._columns):
            fields[[1 + c for c in group], PLACE] = range(len(group))
        fields[1 + len(kinds.names) : 1 + count, PLACE] = fields[[1 + c for c in again], PLACE]
        self._watched = np.full(len(fields), _UNSEEN)
        for c, name in enumerate([*kinds.names, *(kinds.names[c] for c in again)], 1):
            self._watched[c] = _UNSEEN if watched(name) else _UNWATCHED
        self._used = np.zeros(USES, np.int64)
        self._used[[KNOWN, NAMED]] = count, len(text)
        self._form = np.frombuffer(bytearray(text) + bytes(_ROOM), np.uint8), fields
        self._scratch = np.empty(ROOM, np.uint8)

    def most_lines(self, size: int) -> int:
        """The most lines of a text of this size whose cells take not much more memory."""
        return max(1, (_SPARSE * size + _SMALL) // (2 * _WORD * max(1, len(self._table))))

    def start(self, size: int, count: int) -> None:
        """Begin with `count` lines of so many bytes. A line may be read twice, first by `cut`."""
        lists, written = self._lists or self._classes, size + GROWTH * count * len(self._texts)
        self._cells = (
            np.empty((len(self._numbers), count)),
            np.zeros((len(self._numbers), -(-count // 8)), np.uint8),
            np.empty((count, len(self._texts), 2), np.int64),
        )
        self._elements = np.empty((size + 2 if lists else 0, 2), np.int64)
        self._written = np.empty(2 * written + PAD, np.uint8)
        self._firsts, self.row = self._watched.copy(), 0
        self._used[[WRITTEN, ELEMENTS]] = 0, 1
        self._form[1][:, FOUND] = _UNSEEN

    def cut(self, text: NDArray[np.uint8], begin: int, end: int, count: int) -> int:
        """How many of the `count` lines ``text[begin:end]`` are read, up to the first that is unusual."""
        row, rooms = self.row, (self._scratch, self._written, self._used, self._elements)
        self.row = int(cut(text, begin, end, row, self._form, self._cells, self._firsts, rooms))
        if self.row < row + count:  # nothing of the unusual line is left
            self._cells[1][:, self.row >> 3] &= 255 - (1 << (self.row & 7))
            self._firsts[self._firsts >= KINDS * self.row] = _UNSEEN
            self._form[1][:, FOUND] = _UNSEEN
        return self.row - row

    def enter(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Enter the values of the next lines, by field: numbers, texts, and lists of them."""
        numbers, valid, spans = self._cells
        own = np.arange(self.row, self.row + len(objects))
        self.row += len(objects)
        spans[own] = 0
        for place, name in enumerate(self._names[0]):
            values = [one[name] for one in objects]
            values = [_number_of(one) if isinstance(one, str) else one for one in values]
            bits = np.array([one is not None for one in values]) << (own & 7)
            numbers[place, own] = np.array(values, np.float64)
            np.bitwise_or.at(valid[place], own >> 3, bits.astype(np.uint8))
        for place, (name, role) in enumerate(zip(self._names[1], self._roles, strict=True)):
            there = [k for k, one in enumerate(objects) if one[name] is not None]
            values = [objects[k][name] for k in there]
            if role in (LISTS, CLASSES):
                lists = [[one for one in each if one is not None] for each in values]
                ends = int(self._used[ELEMENTS]) + np.cumsum([0, *map(len, lists)])
                flat, self._used[ELEMENTS] = [*chain.from_iterable(lists)], ends[-1]
                if role == CLASSES:
                    self._elements.view(np.float64)[ends[0] : ends[-1], 0] = flat
                else:
                    self._elements[ends[0] : ends[-1]] = self._write(flat)
                found: Any = np.column_stack([ends[:-1], ends[1:]])
            else:
                texts = [one if isinstance(one, str) else text_of(one) for one in values]
                found = self._write([*map(respelled, texts)] if role == SPELLED else texts)
            spans[own[there], place] = found

    def _write(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Keep some texts; returns the addresses of each and its end."""
        letters = [text.encode() for text in texts]
        ends = int(self._used[WRITTEN]) + np.cumsum([0, *map(len, letters)])
        self._written.data[ends[0] : ends[-1]] = b"".join(letters)
        self._used[WRITTEN] = ends[-1]
        return self._written.ctypes.data + np.column_stack([ends[:-1], ends[1:]])

    def found(self, named: bool) -> ObjectCells:
        """The cells of all rows; `named`: whether names are wanted."""
        numbers, valid, spans = self._cells
        spans = spans[: self.row]
        table, texts, elements = self._table.copy(), np.array(self._texts, np.int64), self._elements
        table[self._numbers, rows.DATA] = numbers.ctypes.data + numbers.strides[0] * np.arange(len(numbers))
        table[self._numbers, rows.VALID] = valid.ctypes.data + valid.strides[0] * np.arange(len(valid))
        places = spans.ctypes.data + 2 * _WORD * np.arange(len(texts))
        table[texts, rows.OFFSETS] = places
        table[texts[self._lists], rows.LISTS] = places[self._lists]
        table[texts[self._lists], rows.OFFSETS] = elements.ctypes.data
        held: list[Any] = [*self._cells, elements, self._written]
        for k in self._classes:
            there = np.packbits(spans[:, k, 1] != 0, bitorder="little")
            lists = [rows.DATA, rows.LISTS, rows.LISTS_VALID]
            table[self._texts[k], lists] = elements.ctypes.data, places[k], there.ctypes.data
            held.append(there)
        others = [(self._texts[k], self._columns[k], _joined(spans, k)) for k in self._others]
        seen = list[tuple[int, int, str]]()
        for c in np.flatnonzero(self._firsts >= 0).tolist():
            at, length = self._form[1][c, [BEGIN, SIZE]].tolist()
            name = json.loads(b'"' + self._form[0][at : at + length].tobytes())
            seen.append((*divmod(int(self._firsts[c]), KINDS), str(name)))
        values, read = dict[int, Any](), self._table[:, rows.COLUMN].tolist()
        for k, row, bits in zip(self._numbers, numbers[:, : self.row], valid, strict=True) if named else ():
            there = np.unpackbits(bits, bitorder="little")[: self.row] != 0
            values[read[k]] = pa.array(row, mask=~there)
        for k, (c, role) in enumerate(zip(self._columns, self._roles, strict=True)) if named else ():
            if role == LISTS and len(spans):
                own = np.concatenate([elements[lo:hi] for lo, hi in spans[:, k]])
                values[c] = _joined(own[:, np.newaxis], 0)
            elif role in (TEXT, SPELLED):
                values[c] = _joined(spans, k)
        most = self.row * self._width + int(self._used[ELEMENTS])
        return ObjectCells(table, held, most, others, seen, values)


def _number_of(label: str) -> float | None:
    return number_of(label.encode().strip(SPACES)) if label else None


def _joined(spans: NDArray[np.int64], place: int) -> Any:
    """The texts of a column, empty where there is none, as an array."""
    ends = np.empty(len(spans) + 1, np.int64)
    text = np.empty(int((spans[:, place, 1] - spans[:, place, 0]).sum()), np.uint8)
    join(spans, place, text, ends)
    return pa.Array.from_buffers(TEXTS, len(spans), [None, pa.py_buffer(ends), pa.py_buffer(text)])
