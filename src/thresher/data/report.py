"""How many lines of a source were read, skipped or blank, and what was noticed, such as text not in UTF-8.

Text that is all ASCII costs one pass at the speed of memory.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import BadLine
from thresher.data.files.blocks import Block
from thresher.data.stored import read
from thresher.options.messages import as_stored

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


FIRST_BAD = 10
"""How many bad lines are kept for display."""

_COUNTS = "lines", "examples", "blank", "skipped", "merged"
MOST_LATE = 20
"""How many late columns are kept for display."""
LATE, NEW, LACKING, AWAITED, FOUND, HEADER = "late", "new", "lacking", "awaited", "found", "header"
NOT_UTF8, RESPELLED, OTHER_LABELS = "not-utf8", "respelled", "other-labels"
"""What reading can show of a column: a value in a column that is not known, so that it is ignored; a
column that the model to start from did not have; a file without a column of the layout; a namespace that an
interaction names; a value in a column, or a feature of a namespace, that was awaited; a line that repeats
the header; lines that are not UTF-8, whose `kind` is their number, the byte in the first, and what they look
like; a column of values that holds none, whose `kind` is what they were and what is there; labels of a file,
in `kind`, none of which is in the files before it, whose labels are in `column`."""


class Noticed(NamedTuple):
    """Something that reading has shown of a column."""

    what: str
    column: str
    place: str
    """the file, and the line if it is known"""
    kind: str = ""
    """the kind of the value, if any"""


@dataclass(slots=True)
class Report:
    """Counts of the lines a source has yielded so far in this pass.

    Every line is an example, blank or skipped: ``lines = examples + blank + skipped``. `merged` counts
    examples with repeated features or with ids out of order. `first_bad` holds the first ten bad lines.
    """

    lines: int = 0
    examples: int = 0
    blank: int = 0
    """lines with only white space or a comment"""
    skipped: int = 0
    merged: int = 0
    quarantined_bytes: int = 0
    """length of the quarantine file so far"""
    first_bad: list[BadLine] = field(default_factory=list)
    noticed: list[Noticed] = field(default_factory=list)
    """the first of each kind for each column"""

    def notice(self, found: Iterable[Noticed]) -> None:
        """Add what a block has shown of columns, unless it is known."""

        def key(one: Noticed) -> tuple[str, str]:
            return one.what, "" if one.what == NOT_UTF8 else one.column

        places = {key(one): k for k, one in enumerate(self.noticed)}
        late = sum(one.what == LATE for one in self.noticed)
        for one in found:
            at = places.get(key(one))
            if at is not None and one.what == NOT_UTF8:
                before, _, rest = self.noticed[at].kind.partition(" ")
                count = int(before) + int(one.kind.partition(" ")[0])
                self.noticed[at] = self.noticed[at]._replace(kind=f"{count} {rest}")
            elif at is None and (one.what != LATE or late < MOST_LATE):
                places[key(one)] = len(self.noticed)
                self.noticed.append(one)
                late += one.what == LATE

    def add(self, *counts: int, bad: Sequence[BadLine] = ()) -> None:
        """Add the counts of one block: its lines and, as far as there are any, the next fields."""
        for name, count in zip(_COUNTS, counts, strict=False):
            setattr(self, name, getattr(self, name) + count)
        self.first_bad += bad[: FIRST_BAD - len(self.first_bad)]

    def leave_out(self, bad: BadLine, count: int) -> None:
        """Count `count` examples, which `bad` tells of, as skipped."""
        self.examples -= count
        self.skipped += count
        self.first_bad += [bad][: FIRST_BAD - len(self.first_bad)]

    def copy(self) -> Report:
        """A report that does not count on with this one."""
        return replace(self, first_bad=[*self.first_bad], noticed=[*self.noticed])

    def as_dict(self) -> dict[str, Any]:
        """The report as a dictionary that can be written as JSON."""
        bad = [
            [file, line, column, as_stored(expected), as_stored(found), base64.b64encode(raw).decode()]
            for file, line, column, expected, found, raw in self.first_bad
        ]
        return asdict(self) | {"noticed": [[*one] for one in self.noticed], "first_bad": bad}

    @classmethod
    def from_dict(cls, given: object) -> Report:
        """The inverse of `as_dict`. StateError."""
        return read(cls, given, "report")


_NEWLINE = ord("\n")
Noted = tuple[tuple[str, str, int, str], ...]
"""See `Parsed.noticed`."""


def lines_not_utf8(block: Block) -> Noted:
    """The first line of a block that is not UTF-8, and how many there are; empty if all are."""
    text = block.text[: block.size]
    found = undecoded(text)
    if found is None:
        return ()
    first = int(found.places[0])
    begins = text[:first].tobytes().rfind(b"\n") + 1
    ends = np.flatnonzero(text == _NEWLINE)
    lines = np.unique(np.searchsorted(ends, found.places))
    return (
        noted("", int(lines[0]) + 1, lines.size, found.looks, max(first - max(begins, block.begin), 0) + 1),
    )


def noted(column: str, line: int, count: int, looks: str, place: int = 0) -> tuple[str, str, int, str]:
    """`count` lines or rows that are not UTF-8, the first of which is `line`, from byte `place` of it on."""
    return NOT_UTF8, column, line, f"{count} {place} {looks}"
