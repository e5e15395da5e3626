"""What can be wrong with data, said in one line."""

from __future__ import annotations

from typing import NamedTuple

_SHOWN = 40


class DataError(ValueError):
    """Data that cannot be read; the message is one line that names the source and the reason."""


def shown(raw: bytes) -> str:
    """Bytes as a quoted piece of a message: printable, and cut when long."""
    text = raw[:_SHOWN].decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"'{text}...'" if len(raw) > _SHOWN else f"'{text}'"


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
        return f"{self.file}:{self.line}:{self.column}: expected {self.expected}, found {self.found}"
