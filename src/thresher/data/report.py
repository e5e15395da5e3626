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
"""Bytes that are checked at a time"""
TO_UTF8 = "convert Latin-1 (iconv -f LATIN1 -t UTF-8), or remove such bytes (iconv -c -f UTF-8 -t UTF-8)"
"""What to do about text that is not UTF-8"""


def find_undecoded(text: NDArray[np.uint8]) -> NDArray[np.int64]:
    r"""Where lines are not UTF-8 (n,): the first byte in each that is not, ascending.

    >>> find_undecoded(np.frombuffer("caf\u00e9".encode(), np.uint8)).tolist()
    []
    >>> find_undecoded(np.frombuffer(b"caf\xe9\nt\xe9\xe9", np.uint8)).tolist()
    [3, 6]
    """
    found, at = list[int](), 0 if text.size and text.view(np.int8).min() < 0 else text.size
    try:
        while at < text.size:  # in slices, whose decoded text stays in the processor's cache
            at += codecs.utf_8_decode(text.data[at : at + SLICE], "strict", at + SLICE >= text.size)[1]
    except UnicodeDecodeError:
        at = 0
        for line in text.tobytes().split(b"\n"):
            if (wrong := wrong_byte(line)) is not None:
                found.append(at + wrong)
            at += len(line) + 1
    return np.array(found, np.int64)


def wrong_byte(text: bytes) -> int | None:
    """The place of the first byte that is not UTF-8; None if all are."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


FIRST_BAD = 10
"""How many bad lines are kept for display."""

_COUNTS = "lines", "examples", "blank", "skipped", "merged"
MOST_LATE = 20
"""How many late columns are kept for display."""
LATE, NEW, LACKING, AWAITED, FOUND, HEADER = "late", "new", "lacking", "awaited", "found", "header"
NOT_UTF8 = "not-utf8"
"""What reading can show of a column: a value in a column that is not known, so that it is ignored; a
column that the model to start from did not have; a file without a column of the layout; a namespace that an
interaction names, or a column that a filter (its `kind`) does; a value in a column, or a feature of a
namespace, that was awaited; a line that repeats the header; lines that are not UTF-8, whose `kind` is their
number and the byte in the first."""


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

    def never_met(self, filters: bool = False) -> list[Noticed]:
        """What was awaited and no row has: namespaces, or columns of `filters`."""
        there = {one.column for one in self.noticed if one.what == FOUND}
        awaited = (one for one in self.noticed if one.what == AWAITED and bool(one.kind) == filters)
        return [one for one in awaited if one.column not in there]

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


Noted = tuple[tuple[str, str, int, str], ...]
"""See `Parsed.noticed`."""


def lines_not_utf8(block: Block) -> Noted:
    """The first line of a block that is not UTF-8, and how many there are; empty if all are."""
    text = block.text[: block.size]
    if not (found := find_undecoded(text)).size:
        return ()
    before = text[: found[0]].tobytes()
    begin = max(before.rfind(b"\n") + 1, block.begin)
    return (noted("", before.count(b"\n") + 1, found.size, max(len(before) - begin, 0) + 1),)


def noted(column: str, line: int, count: int, place: int = 0) -> tuple[str, str, int, str]:
    """`count` lines or rows that are not UTF-8, the first of which is `line`, from byte `place` of it on."""
    return NOT_UTF8, column, line, f"{count} {place}"
