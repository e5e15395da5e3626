"""Where the cells of a line of JSON are: compiled code that finds them in one pass.

No text is copied unless it has an escape; `text_rows` makes features of the cells where they are. A name is
compared whole with that of the field which followed the same field of its object in the row before, so fields
in a steady order cost one comparison each. Fields of objects within an object are fields like any.

A line with anything unusual (a name that is new or has an escape, a list in a column of numbers, a long
number in one of texts) is left to Python, as a bad or blank one is.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment, var-annotated"

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.features.murmur import padded_murmur3_64
from thresher.data.features.names import TEXT, offer
from thresher.data.formats import line_status
from thresher.data.text.numbers import read_digits, read_double, read_power
from thresher.data.text.words import (
    address,
    byte,
    enter,
    load_int,
    load_word,
    lowest_bit,
    skip_blanks,
    store_byte,
    store_character,
    store_word,
    string_stops,
)
from thresher.engine.compile.jit import compiled_apart, scalar

WITHIN, IGNORED, NUMBER, WORDS, NAMES, CLASSES = range(6)
"""What the values of a field must be: anything, if it is not read, but what is in an object is; anything;
numbers or booleans; these or texts; lists of texts and whole numbers; lists of numbers."""
NULL, NUMBERS, STRINGS, TRUTHS, NESTED, KINDS = range(6)
"""Kinds of values, and how many there are"""
START, END, KIND, SPAN = 0, 1, 2, 3
"""A cell as a row of int64: addresses of its text and its end, both 0 for none; the kind of value"""
BEGIN, SIZE, FOLLOWS, FIRST, ROLE, PLACE, FOUND, PARENT, FIELD = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""A field as a row of int64: where its name begins among all names, and its length; the field of the same
object that followed it; the first one of its own object; what its values must be; its column; the line that
had it last; the field in whose object it is, or 0. The number of these."""
WRITTEN, KNOWN, LINES, USES = range(4)
"""What is in use: bytes of the texts of a line, fields; lines read. The number of these."""
PLAIN, WHOLE = 1, 2
"""How a number may be read as text; 0: not at all"""
_QUOTE, _COMMA, _MINUS, _DOT, _ZERO, _COLON, _ESCAPE = b'",-.0:\\'
_OPEN, _CLOSE, _LIST, _LIST_END = b"{}[]"
_NEWLINE, _RETURN, _BLANK, _LARGEST_PLAIN = 10, 13, 32, np.uint64(10**15)
_MOST_DECIMALS = 290
"""Beyond, a float64 may have fewer than 15 digits, or be 0"""
_NULL, _TRUE, _ALS, _NAN, _INFINITY = (
    np.uint64(int.from_bytes(word, "little")) for word in (b"null", b"true", b"alse", b"NaN", b"Infinity")
)
_FOUR, _THREE, _ONE, _NOTHING = np.uint64(2**32 - 1), np.uint64(2**24 - 1), np.uint64(1), np.uint64(0)
_BAD = np.int64(-1)
UNSEEN, _UNWATCHED = -1, -2
_DEEPEST = 60


class Objects(NamedTuple):
    """What compiled code is told of the fields of objects, and gets of those of a line."""

    names: NDArray[np.uint8]
    """the names of fields, each with a quote after it and zeros up to a multiple of eight bytes; and room"""
    fields: NDArray[np.int64]
    """(fields + 1, FIELD), of which entry 0 is the line, whose name occurs nowhere; the last ones are free"""
    spans: NDArray[np.int64]
    """(columns, SPAN) the cells of a line"""
    written: NDArray[np.uint8]
    """room for texts that have escapes"""
    used: NDArray[np.int64]
    """(USES,)"""
    firsts: NDArray[np.int64]
    """(fields + 1,) gets KINDS * place of the line + kind of the first value of a field that is `UNSEEN`"""
    spare: int
    """entries to be left free for a row besides one for each byte"""


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
def _field(text, at, follows, parent, names, fields, count):
    """The field of an object whose name is at `at`, or 0; `follows` says where the expected one is noted."""
    before = load_int(fields, follows)
    if _is_name(
        text, at, names, load_int(fields, FIELD * before + BEGIN), load_int(fields, FIELD * before + SIZE)
    ):
        return before
    for k in range(count):
        c = before + k + 1 if before + k < count else before + k + 1 - count
        same = load_int(fields, FIELD * c + PARENT) == parent
        if same and _is_name(
            text, at, names, load_int(fields, FIELD * c + BEGIN), load_int(fields, FIELD * c + SIZE)
        ):
            store_word(fields, follows, np.uint64(c))
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
def _read_escape(text, at):
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
def _unescape(text, at, out, size):
    """Write the string at `at` without escapes: ``(position of its last quote or -1, its end in `out`)``."""
    while True:
        stop = _string_end(text, at)
        for k in range(at, stop):
            store_byte(out, size + k - at, byte(text, k))
        size += stop - at
        if byte(text, stop) != _ESCAPE:
            return stop if byte(text, stop) == _QUOTE else _BAD, size
        point, at = _read_escape(text, stop)
        if point < 0:
            return _BAD, size
        size = store_character(point, out, size)


@scalar
def _number(text, at):
    """The end of the number at `at`, -1 if it is none of JSON, and how it may be read as text.

    As text, `PLAIN` numbers have at most 15 digits and no exponent, and `WHOLE` ones no decimal point either;
    -0 is neither.
    """
    negative = byte(text, at) == _MINUS
    at += negative
    end, mantissa, _ = read_digits(text, at, _NOTHING)
    valid, plain, decimals = end > at and (byte(text, at) != _ZERO or end == at + 1), WHOLE, 0
    if byte(text, end) == _DOT:
        at, plain = end + 1, PLAIN
        end, mantissa, _ = read_digits(text, at, mantissa)
        decimals = end - at
        valid &= decimals > 0
    if mantissa >= _LARGEST_PLAIN or decimals > _MOST_DECIMALS or (negative and mantissa == _NOTHING):
        plain = 0
    if byte(text, end) | 32 == 101:  # e
        end, _, status = read_power(text, end + 1)
        plain = 0
        valid &= status == 0
    return end if valid else _BAD, plain


@scalar
def _string(text, at, objects):
    """The string after the quote at `at`: ``(end or -1, addresses of its text and its end)``."""
    stop = _string_end(text, at + 1)
    if byte(text, stop) == _QUOTE:
        return stop + 1, text + at + 1, text + stop
    out, begin = address(objects.written), objects.used[WRITTEN]
    end, last = _unescape(text, at + 1, out, begin)
    objects.used[WRITTEN] = last
    return end + 1 if end >= 0 else _BAD, out + begin, out + last


@scalar
def _literal(text, at):
    """The position after the literal at `at`, and its kind; -1 if it is none.

    Python, pandas and others write numbers that are not finite so.
    """
    four, signed = load_word(text, at) & _FOUR, at + (byte(text, at) == _MINUS)
    if four == _NULL or four == _TRUE:
        return at + 4, NULL if four == _NULL else TRUTHS
    if load_word(text, signed) == _INFINITY:
        return signed + 8, NUMBERS
    if four & _THREE == _NAN:
        return at + 3, NUMBERS
    is_false = byte(text, at) == 102 and load_word(text, at + 1) & _FOUR == _ALS
    return at + 5 if is_false else _BAD, TRUTHS


@compiled_apart
def _skip_nested(text, at, objects):
    """The position after the list or object at `at`, which is not read; -1 if it is bad, or deep."""
    depth, inside = np.int64(0), _NOTHING  # bit k: whether the bracket at depth k is that of an object
    while at >= 0 and depth < _DEEPEST:
        code = byte(text, at)
        opens, closed = code == _OPEN or code == _LIST, False
        if opens:
            inside = inside << _ONE | np.uint64(code == _OPEN)
            depth, at = depth + 1, skip_blanks(text, at + 1)
            closed = byte(text, at) == (_CLOSE if code == _OPEN else _LIST_END)
        elif code == _QUOTE:
            at = _string(text, at, objects)[0]
        else:
            end = _number(text, at)[0] if code == _MINUS or 48 <= code <= 57 else _BAD
            at = end if end >= 0 else _literal(text, at)[0]
        while at >= 0 and (closed or not opens):
            if closed:
                depth, inside, at = depth - 1, inside >> _ONE, at + 1
            if depth == 0:
                return at
            at, opens = skip_blanks(text, at), False
            closed = byte(text, at) == (_CLOSE if inside & _ONE else _LIST_END)
            if not closed:
                at = skip_blanks(text, at + 1) if byte(text, at) == _COMMA else _BAD
                break
        if at >= 0 and inside & _ONE:  # a name and its colon come before the value
            end = _string(text, at, objects)[0] if byte(text, at) == _QUOTE else _BAD
            end = skip_blanks(text, end) if end >= 0 else at
            at = skip_blanks(text, end + 1) if byte(text, end) == _COLON else _BAD
    return _BAD


@scalar
def _cell(text, at, role, objects):
    """The value at `at`: ``(end or -1, kind, addresses of its text and its end)``."""
    code = byte(text, at)
    if code == _QUOTE:
        end, begin, stop = _string(text, at, objects)
        return end if role == WORDS or role <= IGNORED else _BAD, STRINGS, begin, stop
    if code == _OPEN or code == _LIST:
        usual = role <= IGNORED or (role >= NAMES and code == _LIST)
        end = _skip_nested(text, at, objects) if usual else _BAD
        return end, NESTED, text + at, text + end
    if code == _MINUS or 48 <= code <= 57:
        end, plain = _number(text, at)
        if end >= 0:
            return (
                end if role <= NUMBER or (role == WORDS and plain) else _BAD,
                NUMBERS,
                text + at,
                text + end,
            )
    end, kind = _literal(text, at)
    usual = kind == NULL or role <= NUMBER or (role == WORDS and kind == TRUTHS)
    return end if usual else _BAD, kind, text + at, text + end


@scalar
def find_cells(text, line, columns, objects):
    """Find the cells of the object at `line`; returns the position of its end, or -1 if it is unusual."""
    names, fields, spans = address(objects.names), address(objects.fields), address(objects.spans)
    used, firsts = objects.used, objects.firsts
    for c in range(columns):
        store_word(spans, SPAN * c + START, _NOTHING)
        store_word(spans, SPAN * c + END, _NOTHING)
    used[WRITTEN] = 0
    used[LINES] += 1
    number, parent, follows, count = used[LINES], np.int64(0), np.int64(FIRST), used[KNOWN]
    at = skip_blanks(text, line)
    if byte(text, at) != _OPEN:
        return _BAD
    at = skip_blanks(text, at + 1)
    ends = byte(text, at) == _CLOSE
    while not ends:
        c = np.int64(0)
        if byte(text, at) == _QUOTE:
            c = _field(text, at + 1, follows, parent, names, fields, count)
        if c == 0 or load_int(fields, FIELD * c + FOUND) == number:
            return _BAD
        at = skip_blanks(text, at + 1 + load_int(fields, FIELD * c + SIZE))
        if byte(text, at) != _COLON:
            return _BAD
        role, at = load_int(fields, FIELD * c + ROLE), skip_blanks(text, at + 1)
        store_word(fields, FIELD * c + FOUND, np.uint64(number))
        follows, within = FIELD * c + FOLLOWS, role == WITHIN and byte(text, at) == _OPEN
        if within:
            at = skip_blanks(text, at + 1)
            if byte(text, at) != _CLOSE:
                parent, follows = c, FIELD * c + FIRST
                continue
            at += 1
        else:
            at, kind, begin, stop = _cell(text, at, role, objects)
            if at < 0:
                return _BAD
            if role > IGNORED:
                place = SPAN * load_int(fields, FIELD * c + PLACE)
                store_word(spans, place + START, np.uint64(begin if kind != NULL else 0))
                store_word(spans, place + END, np.uint64(stop if kind != NULL else 0))
                store_word(spans, place + KIND, np.uint64(kind))
            if kind != NULL and firsts[c] == UNSEEN:
                firsts[c] = KINDS * line + kind
        at = skip_blanks(text, at)
        while parent != 0 and byte(text, at) == _CLOSE:
            follows, parent = FIELD * parent + FOLLOWS, load_int(fields, FIELD * parent + PARENT)
            at = skip_blanks(text, at + 1)
        ends = byte(text, at) == _CLOSE
        if not ends and byte(text, at) != _COMMA:
            return _BAD
        at = at if ends else skip_blanks(text, at + 1)
    at = skip_blanks(text, at + 1)
    at += byte(text, at) == _RETURN
    return at if byte(text, at) == _NEWLINE else _BAD


@scalar
def _next_element(text, at):
    """The position of the element of a list at or after `at`, or of its end."""
    at = skip_blanks(text, at)
    return skip_blanks(text, at + 1) if byte(text, at) == _COMMA else at


@compiled_apart
def enter_names(begin, stop, seed, keys, values, nnz, naming, column, objects):
    """Enter each text and whole number in a list between two addresses: ``(nnz, outcome)``."""
    text, out, floats = np.int64(0), address(keys), address(values)
    at = _next_element(text, begin + 1) if begin < stop else stop
    while at < stop and byte(text, at) != _LIST_END:
        end, first, last = at + 4, at, at
        if byte(text, at) == _QUOTE:
            end, first, last = _string(text, at, objects)
        elif load_word(text, at) & _FOUR != _NULL:
            end, plain = _number(text, at)
            last = end if plain == WHOLE else _BAD
        if end < 0 or last < 0:
            return nnz, line_status.UNUSUAL
        if last > first:
            key = padded_murmur3_64(text, first, last - first, seed)
            offer(naming, key, text, first, last - first, column, TEXT)
            nnz = enter(key, np.float32(1), out, floats, nnz)
        at = _next_element(text, end)
    return nnz, line_status.EXAMPLE


@scalar
def enter_classes(begin, stop, domain, targets, row):
    """Store the classes in the list between two addresses as those of a row: ``(first label, outcome)``."""
    if targets is not None:
        if begin == stop:
            return np.float32(0), line_status.NO_LABEL
        text, target = np.int64(0), targets[row]
        target[:] = np.float32(-1)  # no class
        at = _next_element(text, begin + 1)
        while byte(text, at) != _LIST_END:
            end, number, outcome = _number(text, at)[0], read_double(text, at), line_status.EXAMPLE
            if end < 0:
                end, kind = _literal(text, at)
                number = np.float64(byte(text, at) == 116)
                if end < 0 or kind == NULL:
                    return np.float32(0), line_status.UNUSUAL
                outcome = line_status.LABEL_NUMBER if kind == NUMBERS else line_status.EXAMPLE
            if outcome == line_status.EXAMPLE:
                outcome = line_status.check_label(number, domain)
            if outcome == line_status.EXAMPLE:
                outcome = line_status.enter_class(target, np.float32(number), domain)
            if outcome != line_status.EXAMPLE:
                return np.float32(0), outcome
            at = _next_element(text, end)
        return target[0], line_status.EXAMPLE
    return np.float32(0), line_status.NO_LABEL


_WORD = 8
_MORE, _ROOM = 64, 1 << 13
"""Fields that only later rows have, and bytes for their names"""


def flat(found: Mapping[str, object], kept: Collection[str]) -> dict[str, object]:
    """The fields of an object, and those of objects in it, except of such whose names are `kept`.

    >>> flat({"a": {"b": {"c": 1}, "d": {"e": 2}}, "f": 3}, {"a.d"})
    {'a.b.c': 1, 'a.d': {'e': 2}, 'f': 3}
    """
    fields, left = dict[str, Any](), [("", iter(found.items()))]
    while left:
        before, items = left[-1]
        for key, value in items:
            if isinstance(value, dict) and (name := before + key) not in kept:
                left.append((f"{name}.", iter(value.items())))
                break
            fields[before + key] = value
        else:
            left.pop()
    return fields


class ObjectFields:
    """The fields of the objects of a file, which later lines may have more of."""

    def __init__(
        self,
        columns: Sequence[str],
        roles: Mapping[str, int],
        kept: Collection[str],
        watched: Callable[[str], str],
    ) -> None:
        """What is in an object is a field by itself, unless the name of the object is `kept`.

        Columns with `roles` are read. The first value is noted of a field for which `watched` returns a text.
        """
        self._places, self.roles = {name: c for c, name in enumerate(columns)}, roles
        self.kept, self._watch, self.names_of = kept, watched, [""]
        self._known = dict[tuple[int, bytes], int]()
        most = 2 * sum(2 + name.count(".") for name in columns) + _MORE + 1
        size = sum(16 * len(name) + 16 for name in columns)
        self._fields, self._watched = np.zeros((most, FIELD), np.int64), np.full(most, UNSEEN)
        self._names, self._used = np.zeros(size + _ROOM, np.uint8), np.zeros(USES, np.int64)
        self._fields[0, SIZE] = self._end = _WORD
        for name in columns:
            self._enter(0, name, name)
            *above, last = name.split(".")
            self.enter(reduce(lambda found, key: {key: found}, reversed(above), {last: None}))

    def enter(self, found: Mapping[str, object], parent: int = 0, before: str = "") -> None:
        """Know the fields of an object, as far as there is room: compiled code then finds their cells."""
        for key, value in found.items():
            for c in self._enter(parent, key, name := before + key):
                if isinstance(value, dict) and self._fields[c, ROLE] == WITHIN:
                    self.enter(value, c, f"{name}.")

    def _enter(self, parent: int, key: str, name: str) -> list[int]:
        """The entries of a field, one for each way in which programs write its key."""
        found = list[int]()
        for escaped in (False, True)[: 2 - key.isascii()]:
            text = json.dumps(key, ensure_ascii=escaped)[1:].encode("utf-8", "surrogatepass")
            c, begin = self._known.get((parent, text), len(self.names_of)), self._end
            if c == len(self.names_of):
                if c == len(self._fields) or begin + len(text) > self._names.size - _WORD:
                    continue
                self._names[begin : begin + len(text)] = [*text]
                self._end = -(-(begin + len(text)) // _WORD) * _WORD
                role = self.roles.get(name, IGNORED if name in self.kept else WITHIN)
                self._fields[c] = begin, len(text), c, 0, role, self._places.get(name, 0), 0, parent
                self._watched[c] = UNSEEN if self._watch(name) else _UNWATCHED
                self._known[parent, text], self._used[KNOWN] = c, c
                self.names_of.append(name)
            found.append(c)
        return found

    def objects(self, size: int, spare: int) -> Objects:
        """What compiled code needs to read lines of at most `size` bytes."""
        written, spans = np.empty(2 * size, np.uint8), np.zeros((len(self._places), SPAN), np.int64)
        return Objects(self._names, self._fields, spans, written, self._used, self._watched.copy(), spare)
