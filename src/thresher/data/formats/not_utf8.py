"""What blocks and tables show of texts that are not UTF-8, for `Parsed.noticed`."""

from __future__ import annotations

import numpy as np

from thresher.data.files.blocks import Block
from thresher.data.report import NOT_UTF8
from thresher.data.text.utf8 import undecoded

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
