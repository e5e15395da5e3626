"""VW text.

    [label [importance [base]]] [tag]|[namespace[:scale]] feature[:value] feature[:value] ... |...

A tag touches the first bar or begins with a single quote; it is ignored. Labels are as in svmlight text. A
feature without a value has the value 1. Values are multiplied by the scale of the namespace, and those of
repeated features are added up. ``name:text`` is a feature with the value 1, whatever the scale. A namespace
may occur again, or have no name. Blank lines are ignored.

Of a namespace that is a text, the n-grams of its words are features, with the keys that they have in a column
of a table with this name. Its words have no values.

The key of a name is its 64-bit hash, seeded with the hash of its namespace. In the namespace without a name,
whole numbers below 2**64 are ids, as in svmlight text. With the hash ``vw``, keys are the indices that Vowpal
Wabbit computes. If `bits` is given, only that many low bits of a key are kept.

Whole numbers in the unnamed namespace are ids so that ``1 | 3:0.5`` is svmlight's ``1 3:0.5``, and one model
fits both files. Lines on which Vowpal Wabbit guesses are bad lines: if it does not understand a line, it
drops the rest or assumes 0 (docs/formats/vw.md lists the differences). A base other than 0 is
refused unless bases are read as offsets (`Chunk.offsets`): in files of other learners it is often a forgotten
field, and it changes every margin. Tags are ignored: a string for each row would cost
more than the row.

As in svmlight text, features of the usual shapes take a fast path, which reads masks of 64 bytes, if a blank,
a bar or the line end follows: ``name``, ``name:ddd``, ``name:d.ddd`` and ``name:d.ddde-dd``. Everything else
takes the careful path, which reports every error; both yield the same features. Parsing ``|f id:value`` takes
21 ns per feature including the sort.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import re
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.feature_specs import grams_of, terms_of
from thresher.data.features import murmur
from thresher.data.features.crossing import note_namespace, of_namespaces
from thresher.data.features.murmur import first_bytes, hash_bytes, padded_murmur3_64
from thresher.data.features.names import offer_with
from thresher.data.features.ngrams import letters, rooms_for, text_features
from thresher.data.formats import line_status
from thresher.data.formats.line_status import AFTER_VALUE, BLANK, EXAMPLE, OWN, VALUE, VALUE_RANGE
from thresher.data.formats.lines.line_rows import (
    ends_line,
    head_number,
    number_at,
    read_labels,
    read_weight,
)
from thresher.data.formats.lines.parse_loop import LineParser
from thresher.data.labels import LISTED
from thresher.data.layout import BASE, AnyLayout
from thresher.data.sources.reader import TAG, Reading
from thresher.data.text.numbers import quick_value, read_id
from thresher.data.text.words import (
    WINDOW,
    among,
    byte,
    byte_set,
    enter,
    load_word,
    lowest_bit,
    short_number,
    skip_blanks,
    stops,
    store_float,
)
from thresher.engine.compile.jit import scalar
from thresher.options.messages import mention

BAR, AFTER_TAG, FIELDS, BASE_NUMBER = range(OWN, OWN + 4)
NAMESPACE, AFTER_NAMESPACE, SCALE, SCALE_RANGE, AFTER_NAME, AFTER_WORD = range(OWN + 4, OWN + 10)
"""Reasons for bad lines specific to VW text: of what is before the first bar, and of what follows it"""

_NUL, _TAB, _SPACE, _QUOTE, _PLUS, _MINUS, _DOT, _COLON = 0, 9, 32, 39, 43, 45, 46, 58
_BAR, _NEWLINE = ord("|"), 10
_NONE, _ONE = np.uint64(0), np.uint64(1)
_LARGEST_ID, _ID_DIGITS = np.uint64(2**64 - 1), 20
_ENDS_NAME, _ENDS_TEXT = byte_set(b" \t\n\r\0:"), byte_set(b" \t\n\r\0")
_SMALL = np.uint64(0x2020202020202020)
_NAN, _INF, _INFINITY = (np.uint64(int.from_bytes(word, "little")) for word in (b"nan", b"inf", b"infinity"))
_SAFE_SCALE = np.float32(1e20)  # the product with a value of the usual shape is finite


@scalar
def _breaks(text, at):
    """Whether there is a blank, a bar or the end of the line at `at`."""
    code = byte(text, at)
    return code == _SPACE or code == _TAB or code == _BAR or ends_line(text, at)


@scalar
def _read_head(text, at, based, domain, targets, row):
    """Read all before the first bar: ``(position of the bar or error, label, weight, base, outcome)``.

    Unless lines are `based`, the base must be 0.
    """
    label, weight, base, fields = np.float32(0), np.float32(1), np.float32(0), 0
    at = first = skip_blanks(text, at)
    if ends_line(text, at):
        return at, label, weight, base, BLANK
    while byte(text, at) != _BAR:
        if ends_line(text, at):
            return at, label, weight, base, BAR
        end = at
        while byte(text, end) != _NUL and not _breaks(text, end):
            end += 1
        if byte(text, at) == _QUOTE or byte(text, end) == _BAR:
            at = skip_blanks(text, end)
            if byte(text, at) != _BAR:
                return at, label, weight, base, AFTER_TAG
            break
        stop, outcome, after = at, FIELDS, AFTER_VALUE
        if fields == 0:
            stop, label, outcome = read_labels(text, at, domain, targets, row, False)
            after = line_status.AFTER_LABEL
        elif fields == 1:
            stop, weight, outcome = read_weight(text, at)
        elif fields == 2:
            stop, base, outcome = head_number(text, at, BASE_NUMBER, BASE_NUMBER)
            if outcome == EXAMPLE and (stop != end or not (based or base == np.float32(0))):
                stop, outcome = at, BASE_NUMBER
        if outcome == EXAMPLE and stop != end:
            outcome = after
        if outcome != EXAMPLE:
            return stop, label, weight, base, outcome
        fields += 1
        at = skip_blanks(text, end)
    outcome = EXAMPLE
    if fields == 0:
        outcome = EXAMPLE if domain.open else line_status.NO_LABEL
        if domain.kind == LISTED:
            _, label, outcome = read_labels(text, first, domain, targets, row, True)
    return at if outcome == EXAMPLE else first, label, weight, base, outcome


@scalar
def _hash_name(vw, text, at, size, seed):
    """The hash of a name, of the kind that the layout selects: see `Vw.vw`."""
    if vw is None:
        return padded_murmur3_64(text, at, size, seed)
    return murmur.vw_hash(text, at, size, seed)


@scalar
def _quick_feature(grammar, here, begin, ends, unlike, space):
    """Read a feature of the usual shape at `begin`, given the `stops` of address `here`.

    Returns ``(end, remaining ends, key, value, whether it has this shape)``. The character that ends it is
    not checked.
    """
    seed, ids, offset, value = space
    end = lowest_bit(ends)
    ends &= ends - _ONE
    size = end - begin
    key, quick = _NONE, end < WINDOW and size > 0
    if quick:
        word = (unlike >> np.uint64(begin)) & ((_ONE << np.uint64(size)) - _ONE)
        whole = ids and size <= _ID_DIGITS and word == _NONE
        if whole and size <= 8:
            key = (short_number(here, begin, size) + offset) & grammar.mask
        elif size <= 8 and grammar.vw is None:
            name = first_bytes(load_word(here, begin), size)
            key = murmur.word_murmur3_64(name, size, seed) & grammar.mask
        else:
            quick = not whole or grammar.vw is not None
            key = _hash_name(grammar.vw, here, begin, size, seed) & grammar.mask
        if byte(here, end) == _COLON:
            number, end = end + 1, lowest_bit(ends)
            ends &= ends - _ONE
            plain, sure = quick_value(here, number, end, unlike)
            value *= plain
            quick = quick and sure
    return end, ends, key, value, quick


@scalar
def _name_end(text, at):
    """The end of the name that begins at `at`: a blank, colon, bar, carriage return, NUL or line end."""
    while True:
        end = lowest_bit(stops(text, at)[0])
        at += end
        if end < WINDOW:
            code = byte(text, at)
            if among(code, _ENDS_NAME) or code == _BAR:
                return at
            at += 1


@scalar
def _begins_number(text, at):
    code = byte(text, at)
    if code == _PLUS or code == _MINUS:
        code = byte(text, at + 1)
        return code == _DOT or 48 <= code <= 57
    return 48 <= code <= 57 or (code == _DOT and 48 <= byte(text, at + 1) <= 57)


@scalar
def _feature(grammar, text, at, space, numbered):
    """Read any feature: ``(end or error position, key, value, whether it has no name, outcome)``.

    A feature without a name is called by its number: so many without one came before it in the namespace. In
    the nameless namespace, a whole number is an id.
    """
    seed, ids, offset, scale = space
    end = name_end = _name_end(text, at)
    size, number, value, after = end - at, end + 1, scale, AFTER_NAME
    if byte(text, end) == _COLON and not _begins_number(text, number):
        end = number
        while not among(byte(text, end), _ENDS_TEXT):
            end += 1
        letters = number + (byte(text, number) == _PLUS or byte(text, number) == _MINUS)
        length = end - letters
        word = first_bytes(load_word(text, letters) | _SMALL, min(max(length, 0), 8))
        of_three = length == 3 and (word == _NAN or word == _INF)
        if end == number or of_three or (length == 8 and word == _INFINITY):
            return number, _NONE, value, False, VALUE
        chained = _hash_name(grammar.vw, text, at, size, seed)
        key = _hash_name(grammar.vw, text, number, end - number, chained) & grammar.mask
        return end, key, np.float32(1), False, EXAMPLE if _breaks(text, end) else AFTER_NAME
    if byte(text, end) == _COLON:
        end, value, outcome = number_at(text, number, VALUE, VALUE_RANGE)
        value *= scale
        if outcome == EXAMPLE and not np.isfinite(value):
            outcome = VALUE_RANGE
        if outcome != EXAMPLE:
            return number, _NONE, value, False, outcome
        after = AFTER_VALUE
    stop, key, fits, unnamed = at, _NONE, False, size == 0 and after == AFTER_VALUE
    if ids and grammar.vw is None and 0 < size <= _ID_DIGITS:
        stop, key, fits = read_id(text, at)
    if unnamed:
        key = np.uint64(numbered) + offset if ids else murmur.whole_murmur3_64(numbered, seed)
    elif not fits or stop != name_end:
        key = _hash_name(grammar.vw, text, at, size, seed)
    return end, key & grammar.mask, value, unnamed, EXAMPLE if _breaks(text, end) else after


@scalar
def _namespace(grammar, text, at):
    """Read the namespace after a bar: ``(position after it or of the error, space, outcome)``.

    ``space = (seed, whether numbers are ids, offset added to ids, scale)``.
    """
    scale, end = np.float32(1), _name_end(text, at)
    seed, ids = grammar.nameless, True
    if end > at:
        seed, ids = _hash_name(grammar.vw, text, at, end - at, grammar.seed), grammar.vw is not None
    offset = seed if grammar.vw is not None else _NONE
    if byte(text, end) != _COLON:
        return end, (seed, ids, offset, scale), EXAMPLE if _breaks(text, end) else AFTER_NAMESPACE
    if end == at:
        return at, (seed, ids, offset, scale), NAMESPACE
    end, scale, outcome = head_number(text, end + 1, SCALE, SCALE_RANGE)
    if outcome == EXAMPLE and not _breaks(text, end):
        outcome = AFTER_VALUE
    return end, (seed, ids, offset, scale), outcome


@scalar
def _features(grammar, text, at, keys, values, nnz, space, start, ascend, before, naming):
    """Read the features of one namespace from `at` on, and store them from entry `nnz` on.

    `keys` and `values` are addresses. The row began at entry `start`, and the name of the namespace at
    `before`; its keys `ascend` so far. Returns ``(position of the bar, line end or error, nnz, whether keys
    ascend, outcome)``.
    """
    numbered, safe = np.int64(0), abs(space[3]) < _SAFE_SCALE and (naming is None or not naming.on)
    floor = load_word(keys, 8 * (nnz - 1)) + _ONE if nnz > start else _NONE
    while True:
        at = skip_blanks(text, at)
        ends, unlike = stops(text, at)
        here, begin = text + at, np.int64(0)
        while safe:
            end, ends, key, value, quick = _quick_feature(grammar, here, begin, ends, unlike, space)
            after = byte(here, end)
            if not quick or (after != _SPACE and after != _NEWLINE and after != _BAR):
                break
            ascend &= (key >= floor) & (key != _LARGEST_ID)  # which has no floor above it
            floor = key + _ONE
            nnz = enter(key, value, keys, values, nnz)
            if after != _SPACE:
                return at + end, nnz, ascend, EXAMPLE
            begin = end + 1
        at += begin
        if begin > 0:
            continue  # the window may have ended: read a new one from here
        if byte(text, at) == _BAR or ends_line(text, at):
            return at, nnz, ascend, EXAMPLE
        name = at
        at, key, value, unnamed, outcome = _feature(grammar, text, at, space, numbered)
        if outcome != EXAMPLE:
            return at, nnz, ascend, outcome
        numbered += unnamed
        if naming is not None and naming.on:
            stop = _name_end(text, name)
            if stop < at and not _begins_number(text, stop + 1):
                stop = at  # text is part of the name
            if stop > name:
                offer_with(naming, key, text, name, stop - name, before, _name_end(text, before) - before)
        ascend &= (key >= floor) & (key != _LARGEST_ID)  # which has no floor above it
        floor = key + _ONE
        nnz = enter(key, value, keys, values, nnz)


class Texts(NamedTuple):
    """The namespaces that are texts."""

    seeds: NDArray[np.uint64]
    """(namespaces,) hash seeds of their names"""
    met: NDArray[np.bool_]
    """(namespaces,) which of them rows had"""
    code: tuple[Any, ...]
    known: NDArray[np.int32]
    rooms: tuple[NDArray[np.uint8], NDArray[np.int64]]
    """see `ngrams.text_features`"""


@scalar
def _text(texts, mask, text, at, columns, nnz, space, naming):
    """Read the namespace `space`, from `at` on, if it is a text: ``(position, nnz, whether it is, outcome)``.

    `columns` are the arrays of keys and values.
    """
    if texts is None:
        return at, nnz, False, EXAMPLE
    which = np.int64(-1)
    for k in range(texts.seeds.size):
        which = np.int64(k) if texts.seeds[k] == space[0] else which
    if which < 0:
        return at, nnz, False, EXAMPLE
    texts.met[which] = True
    begin, start = at, nnz
    while byte(text, at) != _BAR and not ends_line(text, at):
        at = _name_end(text, skip_blanks(text, at))
        if not _breaks(text, at):
            return at, nnz, True, AFTER_WORD
    nnz = text_features(
        *(text, begin, at, texts.code, texts.known, space[0], texts.rooms[0], texts.rooms[1]),
        *(columns[0], columns[1], nnz, naming, which),
    )
    for k in range(start, nnz):
        columns[0][k] &= mask
        columns[1][k] *= space[3]
    return at, nnz, True, EXAMPLE


class Vw(NamedTuple):
    """The grammar of VW text, with the layout's options for keys."""

    mask: np.uint64
    """mask of the bits of a key that are kept"""
    seed: np.uint64
    """hash seed for names of namespaces"""
    nameless: np.uint64
    """hash seed for names in the namespace without a name"""
    vw: bool | None
    """true if keys are the indices of Vowpal Wabbit; otherwise None, so that their hash is not compiled"""
    ordered: bool = False
    based: bool = False
    """whether bases are offsets; otherwise they must be 0"""
    texts: Texts | None = None
    """None if no namespace is a text, so that reading them is not compiled"""

    def read_line(self, text, at, columns, nnz, domain, targets, row, extra):
        """See `line_rows.read_line`."""
        at, label, weight, base, outcome = _read_head(text, at, self.based, domain, targets, row)
        start, ascend = nnz, True
        keys, values, offsets, arrays = columns
        while outcome == EXAMPLE and byte(text, at) == _BAR:
            first, begin = nnz, at + 1
            at, space, outcome = _namespace(self, text, begin)
            if outcome == EXAMPLE:
                at, nnz, is_text, outcome = _text(
                    self.texts, self.mask, text, at, arrays, nnz, space, extra[1]
                )
                if is_text:
                    ascend &= nnz == first
                else:
                    at, nnz, ascend, outcome = _features(
                        self, text, at, keys, values, nnz, space, start, ascend, begin, extra[1]
                    )
                note_namespace(extra[0], space[0], first, nnz)
        if self.based:
            store_float(offsets, row, base)
        return at, nnz, ascend, label, weight, outcome


_BY_WORD = {
    b"shared": "the shared line of a multi-line example (contextual bandit or cost-sensitive)",
    b"***shared***": "the shared line of a multi-line example (contextual bandit or cost-sensitive)",
    b"ccb": "a conditional contextual bandit label (ccb)",
    b"slates": "a slates label",
    b"ca": "a continuous action label (ca action:cost:density)",
}
"""Kinds by the first word."""
_BY_SHAPE = (
    (re.compile(rb"[^:]*:[^:]*(:[^:]*)+"), "a contextual bandit label (action:cost:probability)"),
    (re.compile(rb"\d+:[^:]*"), "a cost-sensitive label (class:cost)"),
)
"""Kinds by the shape of any word."""
_NAME = re.compile(rb"(?!(?:nan|inf|infinity)$)[^\W\d][^\s:|#]*", re.IGNORECASE)


def label_of(head: bytes) -> tuple[bytes, str]:
    """The first word of the label in the text before the first bar of a line, and what kind it looks like.

    Each is empty if there is none.
    """
    words = head.split()
    if words and (head[-1:] not in b" \t" or words[-1].startswith(b"'")):
        del words[-1]  # the tag
    if not words:
        return b"", ""
    shapes = (kind for shape, kind in _BY_SHAPE if any(shape.fullmatch(word) for word in words))
    return words[0], _BY_WORD.get(words[0]) or next(shapes, "")


def is_word(head: bytes) -> bool:
    """Whether the label in the text before the first bar of a line is a word."""
    word, kind = label_of(head)
    return _NAME.fullmatch(word) is not None and not kind


_EXPECTED = {
    line_status.NO_LABEL: "a label before '|' (a word that touches '|' is a tag)",
    BASE_NUMBER: f"a base of 0; to add bases to the margin: {mention(offset=BASE)}",
    FIELDS: "no more than label, importance, base and tag before '|'",
    AFTER_TAG: "'|' after the tag",
    BAR: "'|' before the features",
    NAMESPACE: "a name or a space after '|'",
    AFTER_NAMESPACE: "':', '|' or a space after the namespace",
    SCALE: "a number after ':'",
    SCALE_RANGE: "a scale that is finite in float32",
    AFTER_NAME: "':', '|' or a space after the name",
    AFTER_WORD: "'|' or a space after the word, since the namespace is a text",
    line_status.VALUE: "a number or text after ':'",
    line_status.AFTER_VALUE: "'|' or a space after the number",
    line_status.SUM_RANGE: "values of a repeated feature whose sum is finite in float32",
}
_OF_HEAD = {
    *(line_status.LABEL_NUMBER, line_status.LABEL_DOMAIN, line_status.AFTER_LABEL),
    *(line_status.WEIGHT_NUMBER, line_status.WEIGHT_SIGN, line_status.AFTER_VALUE),
    *(BASE_NUMBER, FIELDS),
}


def tag_of(line: bytes) -> str:
    """The tag of a line; a quote before it is not part of it. Empty if there is none."""
    head, bar, _ = line.partition(b"|")
    last = head.rstrip(b" \t").replace(b"\t", b" ").rpartition(b" ")[2]
    if bar and (head.endswith(last) or last.startswith(b"'")):
        return last.removeprefix(b"'").decode("utf-8", "backslashreplace")
    return ""


def text_of(line: bytes, namespace: bytes) -> str:
    """The features of a namespace in a line, as they are written; empty if there are none.

    >>> text_of(b"1 'tag|user:2 u17 from:ulm |item i4 |user u18", b"user")
    'u17 from:ulm u18'
    """
    words = list[bytes]()
    for part in line.removesuffix(b"\r").split(b"|")[1:]:
        name = part.replace(b"\t", b" ").partition(b" ")[0]
        if name.partition(b":")[0] == namespace:
            words += part[len(name) :].split()
    return b" ".join(words).decode("utf-8", "backslashreplace")


def parser(layout: AnyLayout, reading: Reading) -> LineParser:
    """The parser of blocks of VW text."""
    vw, based = layout.hash == "vw", layout.offset == BASE
    nameless = hash_bytes(b"", layout.seed, murmur.SHORT) if vw and layout.seed else layout.seed
    seeds = np.uint64(layout.mask), np.uint64(layout.seed), np.uint64(nameless)
    grouped = "" if layout.group == TAG else layout.group

    def seed(name: str) -> int:
        kind = murmur.VW if vw else murmur.WIDE
        return hash_bytes(name.encode(), layout.seed, kind) if name else nameless

    texts = None
    if layout.text:
        grams, seeds_of = grams_of(layout.ngrams), np.array([*map(seed, layout.text)], np.uint64)
        met = np.zeros(len(seeds_of), np.bool_)
        texts = Texts(seeds_of, met, grams.code(), letters(grams.tokens), rooms_for(0))

    def advice(outcome: int, line: bytes, place: int) -> str:
        head, bar, _ = line.partition(b"|")
        kind = label_of(head)[1] if bar and place <= len(head) and outcome in _OF_HEAD else ""
        return f"; this looks like {kind}, which is not supported" if kind else ""

    return LineParser(
        Vw(*seeds, vw or None, based=based, texts=texts),
        reading,
        _EXPECTED | ({BASE_NUMBER: "a base that is finite in float32"} if based else {}),
        crosses=of_namespaces(layout, seed),
        named=True,
        factors=terms_of(layout.interact).factors,
        texts=layout.text,
        tag=partial(text_of, namespace=grouped.encode()) if grouped else tag_of,
        advice=advice,
        shifted=based,
    )
