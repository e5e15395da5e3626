"""What can be wrong with data, said in one line."""

from __future__ import annotations

import math
from typing import NamedTuple

_SHOWN = 40


def printable(text: str) -> str:
    """`text` on one line of printable characters: names of files and data may hold any others."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class OneLineError(ValueError):
    """An error whose message is one line of printable characters, whatever it quotes."""

    def __str__(self) -> str:
        return printable(super().__str__())


class DataError(OneLineError):
    """Data that cannot be read; the message names the source and the reason."""


def shown(raw: bytes) -> str:
    """Bytes as a quoted piece of a message: printable, and cut when long."""
    text = printable(raw[:_SHOWN].decode("utf-8", "backslashreplace"))
    return f"'{text}...'" if len(raw) > _SHOWN else f"'{text}'"


def unfit(value: float) -> str:
    """A number that is not finite in float32, as messages write it."""
    if math.isnan(value):
        return "NaN"
    return f"{value:g}" if math.isinf(value) else f"{value:g}, too large for float32"


class BadLine(NamedTuple):
    """One line that is no example.

    `line` and `column` count from 1, columns in bytes. `raw` is the line without its newline.
    ``str()`` of it is the message: ``train.svm:17:23: expected a number after ':', found 'x'``.
    """

    file: str
    line: int
    column: int
    expected: str
    found: str
    raw: bytes

    def __str__(self) -> str:
        return printable(
            f"{self.file}:{self.line}:{self.column}: expected {self.expected}, found {self.found}"
        )
