"""Where text is not UTF-8. Text that is all ASCII costs one pass at the speed of memory."""

from __future__ import annotations

import codecs
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SLICE = 1 << 15
"""Bytes that are checked at a time."""
_BEFORE = 3
"""Maximum bytes of a character before its last"""
_UNDEFINED = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
"""Bytes that Windows-1252 does not have"""
MIXED, LATIN1, WINDOWS = "mixed", "LATIN1", "WINDOWS-1252"
"""What bytes that are not UTF-8 may be: damage in UTF-8 text, or text in another encoding"""

REMEDIES = {
    MIXED: "remove these bytes with iconv -c -f UTF-8 -t UTF-8",
    LATIN1: "convert it with iconv -f LATIN1 -t UTF-8",
    WINDOWS: "convert it with iconv -f WINDOWS-1252 -t UTF-8",
}


class Undecoded(NamedTuple):
    """Bytes of a text that are not UTF-8."""

    places: NDArray[np.int64]
    """bytes of characters that are not complete, and bytes that belong to no character, ascending"""
    looks: str
    """`MIXED`, `LATIN1` or `WINDOWS`"""


def undecoded(text: NDArray[np.uint8]) -> Undecoded | None:
    r"""The bytes of `text` that are not UTF-8; None if there are none.

    >>> undecoded(np.frombuffer("caf\u00e9".encode(), np.uint8))
    >>> undecoded(np.frombuffer(b"caf\xe9", np.uint8))
    Undecoded(places=array([3]), looks='WINDOWS-1252')
    """
    if not text.size or text.view(np.int8).min() >= 0:
        return None
    at = 0
    while at < text.size:  # in slices, whose decoded text stays in the processor's cache
        last = at + SLICE >= text.size
        try:
            at += codecs.utf_8_decode(text.data[at : at + SLICE], "strict", last)[1]
        except UnicodeDecodeError:
            found, characters = list[NDArray[np.int64]](), 0
            for start in range(0, text.size + 1, SLICE):
                wrong, good = _wrong(text, start)
                found.append(wrong)
                characters += good
            places = np.concatenate(found)
            if characters > places.size:
                return Undecoded(places, MIXED)
            return Undecoded(places, LATIN1 if np.isin(text, _UNDEFINED).any() else WINDOWS)
    return None


def _wrong(text: NDArray[np.uint8], start: int) -> tuple[NDArray[np.int64], int]:
    """The wrong places in a slice of a text, and the number of its bytes that end or go on with a character.

    Each byte but the first of a character is a continuation (10xxxxxx), and no other byte is one; so is none
    after the end.
    """
    before, own = text[max(0, start - _BEFORE) : start], text[start : start + SLICE]
    zeros = np.zeros(_BEFORE, np.uint8)
    own = np.concatenate([zeros[before.size :], before, own, zeros[: own.size < SLICE]])
    if own.view(np.int8).min() >= 0:
        return np.zeros(0, np.int64), 0
    byte, last, second, third = own[3:], own[2:-1], own[1:-2], own[:-3]
    continues = own.view(np.int8) < -64
    one, two = continues[2:-1], continues[2:-1] & continues[1:-2]
    expected = (last >= 0xC0) | ((second >= 0xE0) & one) | ((third >= 0xF0) & two)
    wrong = (continues[3:] != expected) | (byte > 0xF4) | ((byte & 0xFE) == 0xC0)
    # overlong forms, halves of surrogate pairs and numbers beyond the last character
    wrong |= ((last == 0xE0) & (byte < 0xA0)) | ((last == 0xED) & (byte > 0x9F))
    wrong |= ((last == 0xF0) & (byte < 0x90)) | ((last == 0xF4) & (byte > 0x8F))
    places = np.flatnonzero(wrong)
    return places + start - expected[places], int(np.count_nonzero(continues[3:] & expected))
