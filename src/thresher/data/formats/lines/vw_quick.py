"""The fast path for VW text, which reads only the usual shapes, from masks of 64 bytes.

These are the features ``name``, ``name:ddd``, ``name:d.ddd`` and ``name:d.ddde-dd``, and before them a label
``ddd`` or ``d.ddd`` alone, or nothing.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import re

import numpy as np

from thresher.data.features.murmur import first_bytes, padded_murmur3_64, vw_hash, word_murmur3_64
from thresher.data.formats.label_rows import check_label
from thresher.data.formats.lines.line_rows import ends_line, skip_blanks
from thresher.data.formats.outcomes import BLANK, EXAMPLE, UNUSUAL
from thresher.data.text.numbers import TENS, decimal
from thresher.data.text.words import WINDOW, byte, load_word, lowest_bit, short_number, stops
from thresher.engine.jit import scalar

_SPACE, _MINUS, _DOT, _COLON, _BAR = 32, 45, 46, 58, 124
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
    """Whether any of the `size` bytes from `begin` on is not a digit."""
    return (unlike >> np.uint64(begin)) & ((_ONE << np.uint64(size)) - _ONE) != _NONE


@scalar
def quick_head(text, at, domain):
    """Read the label at `at`, if any. Returns what `read_head` does, or `UNUSUAL` for other shapes."""
    label, weight = np.float32(0), np.float32(1)
    at = skip_blanks(text, at)
    if ends_line(text, at):
        return at, label, weight, BLANK
    if byte(text, at) == _BAR:
        return at, label, weight, EXAMPLE if domain.open else UNUSUAL
    ends, unlike = stops(text, at)
    end = lowest_bit(ends)
    label, sure = _quick_value(text + at, 0, end, unlike)
    if not sure or byte(text, at + end) != _SPACE or check_label(label, domain) != EXAMPLE:
        return at, label, weight, UNUSUAL
    at = skip_blanks(text, at + end)
    return at, label, weight, EXAMPLE if byte(text, at) == _BAR else UNUSUAL
