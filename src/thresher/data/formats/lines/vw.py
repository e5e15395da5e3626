"""VW text.

    [label [importance [base]]] [tag]|[namespace[:scale]] feature[:value] feature[:value] ... |...

A tag touches the first bar or begins with a single quote; it is ignored. Labels are as in svmlight text. A
feature without a value has the value 1. Values are multiplied by the scale of the namespace, and those of
repeated features are added up. ``name:text`` is a feature with the value 1, whatever the scale. A namespace
may occur again, or have no name. Blank lines are ignored.

The key of a name is its 64-bit hash, seeded with the hash of its namespace. In the namespace without a name,
whole numbers below 2**64 are ids, as in svmlight text. With the hash ``vw``, keys are the indices that Vowpal
Wabbit computes. If `bits` is given, only that many low bits of a key are kept.

Whole numbers in the unnamed namespace are ids so that ``1 | 3:0.5`` is svmlight's ``1 3:0.5``, and one model
fits both files. Lines on which Vowpal Wabbit guesses are bad lines: if it does not understand a line, it
drops the rest or assumes 0 (docs/formats/vw.md lists the differences). A base other than 0 is
refused unless bases are read as offsets (`data.offsets`): in files of other learners it is often a forgotten
field, and it changes every margin. Tags are ignored: a string for each row would cost
more than the row.

As in svmlight text, the usual shapes take a fast path, which reads masks of 64 bytes, if a blank, a bar or
the line end follows. They are the features ``name``, ``name:ddd``, ``name:d.ddd`` and ``name:d.ddde-dd``, and
before them a label ``ddd`` or ``d.ddd`` alone, or nothing. Everything else takes the careful path,
which reports every error; both yield the same features. The careful path is compiled when a line
first needs it.

At first only the fast path is compiled; a line of any other shape ends it (`NEEDS_CARE`), and from there the
complete parser reads on. Both give the same numbers, so results do not depend on when that happens. A file
that needs care would pay for two parsers, so its first line is examined beforehand (`USUAL`). The careful
path is never used alone, because then a file with one unusual feature per line would be read by it entirely.
The first use of VW text took 6.8 s, and then 3.8. Parsing ``|f id:value`` takes 21 ns per feature including
the sort.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

import numpy as np

from thresher.data.feature_specs import terms_of
from thresher.data.features.crossing import note_namespace, of_namespaces
from thresher.data.features.murmur import (
    SHORT,
    VW,
    WIDE,
    first_bytes,
    hash_bytes,
    padded_murmur3_64,
    vw_hash,
    whole_murmur3_64,
    word_murmur3_64,
)
from thresher.data.features.names import names_any, offer_with
from thresher.data.formats import line_status
from thresher.data.formats.line_status import (
    AFTER_LABEL,
    AFTER_VALUE,
    BLANK,
    EXAMPLE,
    NO_LABEL,
    OWN,
    UNDECIDED,
    UNUSUAL,
    VALUE,
    VALUE_RANGE,
    check_written,
)
from thresher.data.formats.lines.line_rows import (
    ends_line,
    exact_number,
    head_number,
    read_labels,
    read_weight,
    skip_blanks,
)
from thresher.data.formats.lines.parse_loop import LineParser, Wording
from thresher.data.labels import LISTED, ONE
from thresher.data.layout import BASE, AnyLayout
from thresher.data.sources.reader import TAG, Reading
from thresher.data.text.numbers import FINE, HARD, NOT_A_NUMBER, TENS, decimal, read_id
from thresher.data.text.words import (
    WINDOW,
    among,
    byte,
    byte_set,
    load_word,
    lowest_bit,
    short_number,
    stops,
    store_float,
    store_word,
)
from thresher.engine.compile.jit import scalar
from thresher.options.messages import mention

# Reasons for bad lines specific to VW text
BAR, AFTER_TAG, FIELDS, BASE_NUMBER = range(OWN, OWN + 4)
LAST = BASE_NUMBER

_NUL, _TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _PLUS, _MINUS, _DOT = 0, 9, 10, 13, 32, 39, 43, 45, 46
_COLON, _BAR = 58, 124


@scalar
def breaks(text, at):
    """Whether there is a blank, a bar or the end of the line at `at`."""
    code = byte(text, at)
    return code == _SPACE or code == _TAB or code == _BAR or ends_line(text, at)


@scalar
def _word_end(text, at):
    while byte(text, at) != _NUL and not breaks(text, at):
        at += 1
    return at


@scalar
def _field(text, at, end, place, based, domain, exact, targets, row):
    """Read field `place` of the label, the word [at, end): ``(position of the error, number, outcome)``.

    Unless lines are `based`, the last must be 0.
    """
    if place == 0:
        stop, number, outcome = read_labels(text, at, domain, exact, targets, row, False)
        return (stop, number, AFTER_LABEL) if outcome == EXAMPLE and stop != end else (stop, number, outcome)
    if place == 1:
        stop, number, outcome = read_weight(text, at, exact)
        return (stop, number, AFTER_VALUE) if outcome == EXAMPLE and stop != end else (stop, number, outcome)
    stop, number, status = head_number(text, at, exact)
    if place > 2:
        return at, number, FIELDS
    if status == HARD:
        return at, number, UNDECIDED
    fits = status == FINE and stop == end and (based or number == np.float32(0))
    return at, number, EXAMPLE if fits else BASE_NUMBER


@scalar
def _unlabelled(text, at, domain, exact, targets, row):
    """The label of an example without a label field: ``(label, outcome)``."""
    if domain.kind == LISTED:
        _, label, outcome = read_labels(text, at, domain, exact, targets, row, True)
        return label, outcome
    return np.float32(0), EXAMPLE if domain.open else NO_LABEL


@scalar
def read_head(text, at, based, domain, exact, targets, row):
    """Read all before the first bar: ``(position of the bar or error, label, weight, base, outcome)``."""
    label, weight, base, fields = np.float32(0), np.float32(1), np.float32(0), 0
    at = first = skip_blanks(text, at)
    if ends_line(text, at):
        return at, label, weight, base, BLANK
    while byte(text, at) != _BAR:
        if ends_line(text, at):
            return at, label, weight, base, BAR
        end = _word_end(text, at)
        if byte(text, at) == _QUOTE or byte(text, end) == _BAR:
            at = skip_blanks(text, end)
            if byte(text, at) != _BAR:
                return at, label, weight, base, AFTER_TAG
            break
        stop, number, outcome = _field(text, at, end, fields, based, domain, exact, targets, row)
        if outcome != EXAMPLE:
            return stop, label, weight, base, outcome
        if fields == 0:
            label = number
        elif fields == 1:
            weight = number
        else:
            base = number
        fields += 1
        at = skip_blanks(text, end)
    if fields == 0:
        label, outcome = _unlabelled(text, first, domain, exact, targets, row)
        return at if outcome == EXAMPLE else first, label, weight, base, outcome
    return at, label, weight, base, EXAMPLE


_LETTER = ord("e")
_ONE, _TWO, _THREE, _NONE = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(0)
ID_DIGITS = 20

_NUMBER = r"-?(?:\d{1,8}|\d\.\d{1,8}(?:[eE]-\d\d)?)"
_FEATURE = rf"[^\s:|]{{1,40}}(?::{_NUMBER})?"
_NAMELESS = rf"\|(?: (?:(?!\d{{9,20}}(?:[ :|]|$)){_FEATURE})?)*"
_NAMED = rf"\|[^\s:|]+(?: (?:{_FEATURE})?)*"
USUAL = re.compile(rf" *(?:{_NUMBER} +)?(?:{_NAMELESS}|{_NAMED})+".encode())
"""Lines with only these shapes. If the first line matches, only the fast path is compiled at first."""


@scalar
def hash_name(vw, text, at, size, seed):
    """The hash of a name, of the kind that the layout selects: see `Vw.vw`."""
    if vw is None:
        return padded_murmur3_64(text, at, size, seed)
    return vw_hash(text, at, size, seed)


@scalar
def _scientific(here, first, length, shape):
    """Read a value ``d.ddde-dd`` of `length` bytes from `first` on: ``(float32, whether it fits)``."""
    decimals, letter = length - 6, first + length - 4
    if not (1 <= decimals <= 8 and shape == _TWO | _THREE << np.uint64(length - 4)):
        return np.float32(0), False
    mantissa = np.uint64(byte(here, first) - 48) * TENS[decimals] + short_number(here, first + 2, decimals)
    places = decimals + np.int64(short_number(here, letter + 2, 2))
    value, sure = decimal(mantissa, min(places, 22))
    dotted = byte(here, first + 1) == _DOT and byte(here, letter) | 32 == _LETTER
    return value, sure and places <= 22 and dotted and byte(here, letter + 1) == _MINUS


@scalar
def _quick_value(here, number, stop, unlike):
    """Read a value ``ddd``, ``d.ddd`` or ``d.ddde-dd`` in [number, stop): ``(float32, whether it fits)``."""
    sign = byte(here, number) == _MINUS
    first = number + sign
    length = stop - first
    shape = (unlike >> np.uint64(first & 63)) & ((_ONE << np.uint64(length & 63)) - _ONE)
    if shape == _TWO and 3 <= length <= 10 and byte(here, first + 1) == _DOT:
        mantissa = np.uint64(byte(here, first) - 48) * TENS[length - 2]
        value, sure = decimal(mantissa + short_number(here, first + 2, length - 2), length - 2)
    elif shape == _NONE and 1 <= length <= 8:
        value, sure = np.float32(np.int64(short_number(here, first, length))), True
    else:
        value, sure = _scientific(here, first, length, shape)
    return -value if sign else value, sure and stop < WINDOW


@scalar
def quick_feature(grammar, here, begin, ends, unlike, space):
    """Read a feature of the usual shape at `begin`, given the `stops` of address `here`.

    Returns ``(end, remaining ends, key, value, whether it has this shape)``. The character that ends it is
    not checked.
    """
    seed, ids, offset, value = space
    end = lowest_bit(ends)
    ends &= ends - _ONE
    size = end - begin
    quick = end < WINDOW and size > 0
    if quick:
        if ids and size <= 8 and (unlike >> np.uint64(begin)) & ((_ONE << np.uint64(size)) - _ONE) == _NONE:
            key = (short_number(here, begin, size) + offset) & grammar.mask
        elif size <= 8 and grammar.vw is None:
            key = word_murmur3_64(first_bytes(load_word(here, begin), size), size, seed) & grammar.mask
        else:
            quick = not (ids and size <= ID_DIGITS and grammar.vw is None) or _has_letters(
                unlike, begin, size
            )
            key = hash_name(grammar.vw, here, begin, size, seed) & grammar.mask
        if byte(here, end) == _COLON:
            number, end = end + 1, lowest_bit(ends)
            ends &= ends - _ONE
            plain, sure = _quick_value(here, number, end, unlike)
            value *= plain
            quick = quick and sure
    else:
        key = _NONE
    return end, ends, key, value, quick


@scalar
def _has_letters(unlike, begin, size):
    return (unlike >> np.uint64(begin)) & ((_ONE << np.uint64(size)) - _ONE) != _NONE


@scalar
def quick_head(text, at, domain):
    """Read the label at `at`, if any. Returns what `read_head` does, or `UNUSUAL` for other shapes."""
    label, weight, base = np.float32(0), np.float32(1), np.float32(0)
    at = skip_blanks(text, at)
    if ends_line(text, at):
        return at, label, weight, base, BLANK
    if byte(text, at) == _BAR:
        return at, label, weight, base, EXAMPLE if domain.open else UNUSUAL
    ends, unlike = stops(text, at)
    end = lowest_bit(ends)
    label, sure = _quick_value(text + at, 0, end, unlike)
    sure = sure and byte(text, at + end) == _SPACE
    if not sure or check_written(text, at, at + end, label, domain) != EXAMPLE:
        return at, label, weight, base, UNUSUAL
    at = skip_blanks(text, at + end)
    return at, label, weight, base, EXAMPLE if byte(text, at) == _BAR else UNUSUAL


NAMESPACE, AFTER_NAMESPACE, SCALE, SCALE_RANGE, AFTER_NAME = range(LAST + 1, LAST + 6)
"""Reasons for bad lines specific to VW text; more stand with the head of the line."""

_ENDS_NAME, _ENDS_TEXT = byte_set(b" \t\n\r\0:"), byte_set(b" \t\n\r\0")
_LARGEST_ID = np.uint64(2**64 - 1)
_SMALL = np.uint64(0x2020202020202020)
_NAN, _INF, _INFINITY = (np.uint64(int.from_bytes(word, "little")) for word in (b"nan", b"inf", b"infinity"))
_SAFE_SCALE = np.float32(1e20)  # the product with a value of the usual shape is finite


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
def _named(grammar, text, at, size, space):
    """The key of the name of `size` bytes at `at`; in the nameless namespace, a whole number is an id."""
    seed, ids, _, _ = space
    if ids and grammar.vw is None and 0 < size <= ID_DIGITS:
        end, key, fits = read_id(text, at)
        if fits and end == at + size:
            return key & grammar.mask
    return hash_name(grammar.vw, text, at, size, seed) & grammar.mask


@scalar
def _numbered(grammar, number, space):
    """The key of a feature without a name: that of its `number` in the namespace."""
    seed, ids, offset, _ = space
    if ids:
        return (np.uint64(number) + offset) & grammar.mask
    return whole_murmur3_64(number, seed) & grammar.mask


@scalar
def _begins_number(text, at):
    code = byte(text, at)
    if code == _PLUS or code == _MINUS:
        code = byte(text, at + 1)
        return code == _DOT or 48 <= code <= 57
    return 48 <= code <= 57 or (code == _DOT and 48 <= byte(text, at + 1) <= 57)


@scalar
def _not_finite(text, at, end):
    """Whether the word [at, end) is an infinity or NaN."""
    if byte(text, at) == _PLUS or byte(text, at) == _MINUS:
        at += 1
    size = end - at
    word = first_bytes(load_word(text, at) | _SMALL, min(max(size, 0), 8))
    return (size == 3 and (word == _NAN or word == _INF)) or (size == 8 and word == _INFINITY)


@scalar
def _text_end(text, at):
    """The end of a value that is text: a blank, a carriage return, a NUL or the line end."""
    while not among(byte(text, at), _ENDS_TEXT):
        at += 1
    return at


@scalar
def _feature(grammar, text, at, exact, space, numbered):
    """Read any feature at `at`: ``(end or error position, key, value, outcome)``."""
    seed, _, _, scale = space
    name, end, value = at, _name_end(text, at), scale
    size = end - name
    if byte(text, end) != _COLON:
        key = _named(grammar, text, name, size, space)
        return end, key, value, EXAMPLE if breaks(text, end) else AFTER_NAME
    at = end + 1
    if not _begins_number(text, at):
        end = _text_end(text, at)
        if end == at or _not_finite(text, at, end):
            return at, _NONE, value, VALUE
        chained = hash_name(grammar.vw, text, name, size, seed)
        key = hash_name(grammar.vw, text, at, end - at, chained) & grammar.mask
        return end, key, np.float32(1), EXAMPLE if breaks(text, end) else AFTER_NAME
    end, value, status = exact_number(text, at, exact)
    if status != FINE:
        return (
            at,
            _NONE,
            value,
            UNDECIDED if status == HARD else VALUE if status == NOT_A_NUMBER else VALUE_RANGE,
        )
    value *= scale
    if not np.isfinite(value):
        return at, _NONE, value, VALUE_RANGE
    key = _named(grammar, text, name, size, space) if size > 0 else _numbered(grammar, numbered, space)
    return end, key, value, EXAMPLE if breaks(text, end) else AFTER_VALUE


@scalar
def _careful_feature(careful, grammar, text, at, exact, space, numbered):
    """`_feature`, also returning, before the outcome, whether it has no name; `UNUSUAL` if not `careful`."""
    if careful is None:
        return at, _NONE, np.float32(0), False, UNUSUAL
    unnamed = byte(text, at) == _COLON and _begins_number(text, at + 1)
    at, key, value, outcome = _feature(grammar, text, at, exact, space, numbered)
    return at, key, value, unnamed, outcome


@scalar
def _scale(careful, text, at, exact):
    """Read the scale of a namespace: ``(position after it or of the error, float32, outcome)``."""
    if careful is None:
        return at, np.float32(1), UNUSUAL
    end, scale, status = head_number(text, at, exact)
    if status != FINE:
        return at, scale, UNDECIDED if status == HARD else SCALE if status == NOT_A_NUMBER else SCALE_RANGE
    return end, scale, EXAMPLE if breaks(text, end) else AFTER_VALUE


@scalar
def _head(careful, based, text, at, domain, exact, targets, row):
    """Read everything before the first bar. Returns what `read_head` does."""
    if careful is None:
        return quick_head(text, at, domain)
    return read_head(text, at, based, domain, exact, targets, row)


@scalar
def _namespace(grammar, text, at, exact):
    """Read the namespace after a bar: ``(position after it or of the error, space, outcome)``.

    ``space = (seed, whether numbers are ids, offset added to ids, scale)``.
    """
    scale = np.float32(1)
    end = _name_end(text, at)
    seed, ids = grammar.nameless, True
    if end > at:
        seed, ids = hash_name(grammar.vw, text, at, end - at, grammar.seed), grammar.vw is not None
    offset = seed if grammar.vw is not None else _NONE
    if byte(text, end) == _COLON:
        if end == at:
            return at, (seed, ids, offset, scale), NAMESPACE
        end, scale, outcome = _scale(grammar.careful, text, end + 1, exact)
        return end, (seed, ids, offset, scale), outcome
    return end, (seed, ids, offset, scale), EXAMPLE if breaks(text, end) else AFTER_NAMESPACE


@scalar
def _features(grammar, text, at, keys, values, nnz, exact, space, start, sorted_so_far, before, naming):
    """Read the features of one namespace from `at` on, and store them from entry `nnz` on.

    `keys` and `values` are addresses. The row began at entry `start`, and the name of the namespace at
    `before`. Returns ``(position of the bar, line end or error, nnz, whether keys ascend, outcome)``.
    """
    ascend, numbered, safe = sorted_so_far, np.int64(0), abs(space[3]) < _SAFE_SCALE and not names_any(naming)
    floor = load_word(keys, 8 * (nnz - 1)) + _ONE if nnz > start else _NONE
    while True:
        at = skip_blanks(text, at)
        ends, unlike = stops(text, at)
        here, begin = text + at, np.int64(0)
        while safe:
            end, ends, key, value, quick = quick_feature(grammar, here, begin, ends, unlike, space)
            after = byte(here, end)
            if not quick or (after != _SPACE and after != _NEWLINE and after != _BAR):
                break
            ascend &= (key >= floor) & (key != _LARGEST_ID)  # which has no floor above it
            floor = key + _ONE
            store_word(keys, nnz, key)
            store_float(values, nnz, value)
            nnz += 1
            if after != _SPACE:
                return at + end, nnz, ascend, EXAMPLE
            begin = end + 1
        at += begin
        if begin > 0:
            continue  # the window may have ended: read a new one from here
        if byte(text, at) == _BAR or ends_line(text, at):
            return at, nnz, ascend, EXAMPLE
        name = at
        at, key, value, unnamed, outcome = _careful_feature(
            grammar.careful, grammar, text, at, exact, space, numbered
        )
        if outcome != EXAMPLE:
            return at, nnz, ascend, outcome
        numbered += unnamed
        _offer(naming, key, text, name, at, before)
        ascend &= (key >= floor) & (key != _LARGEST_ID)  # which has no floor above it
        floor = key + _ONE
        store_word(keys, nnz, key)
        store_float(values, nnz, value)
        nnz += 1


@scalar
def _offer(naming, key, text, at, end, before):
    """Enter the name of a feature; if its value is text, the name includes the value."""
    if names_any(naming):
        stop = _name_end(text, at)
        if stop < end and not _begins_number(text, stop + 1):
            stop = end
        if stop > at:
            offer_with(naming, key, text, at, stop - at, before, _name_end(text, before) - before)


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
    careful: bool | None = None
    """true to read every shape; None to read only the usual ones, so that the rest is not compiled"""
    based: bool = False
    """whether bases are offsets; otherwise they must be 0"""

    def read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
        """See `line_rows.read_line`."""
        at, label, weight, base, outcome = _head(
            self.careful, self.based, text, at, domain, exact, targets, row
        )
        start, ascend = nnz, True
        keys, values = columns
        while outcome == EXAMPLE and byte(text, at) == _BAR:
            first, begin = nnz, at + 1
            at, space, outcome = _namespace(self, text, begin, exact)
            if outcome == EXAMPLE:
                at, nnz, ascend, outcome = _features(
                    self, text, at, keys, values, nnz, exact, space, start, ascend, begin, extra[1]
                )
                note_namespace(extra[0], space[0], first, nnz)
        if self.based:
            store_word(keys, nnz, _LARGEST_ID)
            store_float(values, nnz, base)
            nnz += 1
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


def kind_of_label(head: bytes) -> str:
    """The kind of label that the text before the first bar of a line looks like; empty if unknown."""
    words = _without_tag(head)
    if not words:
        return ""
    if words[0] in _BY_WORD:
        return _BY_WORD[words[0]]
    for shape, kind in _BY_SHAPE:
        if any(shape.fullmatch(word) for word in words):
            return kind
    return ""


def is_word(head: bytes) -> bool:
    """Whether the label in the text before the first bar of a line is a word."""
    words = _without_tag(head)
    return bool(words and _NAME.fullmatch(words[0]) and not kind_of_label(head))


def _without_tag(head: bytes) -> list[bytes]:
    words = head.split()
    tagged = words and (head[-1:] not in b" \t" or words[-1].startswith(b"'"))
    return words[:-1] if tagged else words


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
    line_status.VALUE: "a number or text after ':'",
    line_status.AFTER_VALUE: "'|' or a space after the number",
    line_status.SUM_RANGE: "values of a repeated feature whose sum is finite in float32",
}
_OF_BASES = {BASE_NUMBER: "a base that is finite in float32"}
_OF_HEAD = {
    *(line_status.LABEL_NUMBER, line_status.LABEL_DOMAIN, line_status.AFTER_LABEL),
    *(line_status.WEIGHT_NUMBER, line_status.WEIGHT_SIGN, line_status.AFTER_VALUE),
    *(BASE_NUMBER, FIELDS),
}


def _kind_message(outcome: int, line: bytes, place: int) -> str:
    head, bar, _ = line.partition(b"|")
    kind = kind_of_label(head) if bar and place <= len(head) and outcome in _OF_HEAD else ""
    return f"; this looks like {kind}, which is not supported" if kind else ""


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
    nameless = hash_bytes(b"", layout.seed, SHORT) if vw and layout.seed else layout.seed
    usual = (
        USUAL
        if reading.naming is None and reading.domain.kind == ONE and not (reading.domain.words or based)
        else None
    )
    grammar = Vw(
        *(np.uint64(layout.mask), np.uint64(layout.seed), np.uint64(nameless), vw or None),
        careful=None if usual else True,
        based=based,
    )

    grouped = "" if layout.group == TAG else layout.group
    tag = partial(text_of, namespace=grouped.encode()) if grouped else tag_of

    def seed(name: str) -> int:
        return hash_bytes(name.encode(), layout.seed, VW if vw else WIDE) if name else nameless

    return LineParser(
        grammar,
        Wording(_EXPECTED | (_OF_BASES if based else {}), usual=usual, tag=tag, advice=_kind_message),
        reading,
        of_namespaces(layout, seed),
        named=True,
        factors=terms_of(layout.interact).factors,
    )
