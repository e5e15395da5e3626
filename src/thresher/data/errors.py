"""Errors in data, as one-line messages."""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from thresher.options.messages import as_shown

_SHOWN = 40


def printable(text: str) -> str:
    """`text` with every unprintable character escaped, since names of files and data may hold any."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class OneLineError(ValueError):
    """An error whose message is one printable line, whatever it quotes."""

    def __str__(self) -> str:
        return printable(as_shown(super().__str__()))


class DataError(OneLineError):
    """Data that cannot be read; the message names the source and the reason."""


def reason_of(error: OSError) -> str:
    """The reason of a system error, in plain words where we have them."""
    if error.errno == errno.ENOSPC:
        return "the disk is full"
    if error.errno == errno.EBADF and not error.filename:
        return "standard output is closed"
    return error.strerror or str(error)


@contextmanager
def system_errors(about: object, kind: type[DataError] = DataError) -> Iterator[None]:
    """Turn errors of the system into those of a `kind` that say what they are about."""
    try:
        yield
    except OSError as error:
        raise kind(f"{about}: {reason_of(error)}") from error


class NothingNewError(DataError):
    """A model that goes on has learned all there is. Nothing is wrong, so commands end with status 0."""

    def __init__(self, message: str, model: Any, moved: bool) -> None:
        super().__init__(message)
        self.model = model
        """as it was"""
        self.moved = moved
        """whether its record differs, in where topics that are new to it begin"""


class NoPackageError(DataError, ImportError):
    """A package that a part of thresher needs, and thresher itself does not, is not installed."""

    def __init__(self, user: str, *packages: str) -> None:
        super().__init__(f"{user} needs {' and '.join(packages)}: pip install {' '.join(packages)}")


class OddFileError(DataError):
    """A binary file, or text in another encoding. The message says how to read it."""


def quote_bytes(raw: bytes) -> str:
    """Bytes quoted for a message: printable, and shortened if long."""
    text = printable(raw[:_SHOWN].decode("utf-8", "backslashreplace"))
    return f"'{text}...'" if len(raw) > _SHOWN else f"'{text}'"


def shorten(text: str, most: int) -> str:
    """A text for a message, cut to so many characters.

    >>> shorten("thresher", 3)
    'thr...'
    """
    return text if len(text) <= most else f"{text[:most]}..."


def first_few(names: Sequence[str], most: int = 3) -> str:
    """At most so many names for a message, and how many more there are: ``a, b, c and 2 more``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def nonfinite(value: float) -> str:
    """A number that is not finite in float32, formatted for messages."""
    if math.isnan(value):
        return "NaN"
    return f"{value:g}" if math.isinf(value) else f"{value:g}, too large for float32"


class BadLine(NamedTuple):
    """A line that is not a valid example.

    `line` and `column` count from 1, columns in bytes. `raw` is the line without its newline. ``str()``
    gives the message: ``train.svm:17:23: expected a number after ':', found 'x'``.
    """

    file: str
    line: int
    column: int
    expected: str
    found: str
    raw: bytes

    def at(self, place: str, line: int) -> BadLine:
        """The same line, as that of a message."""
        return self._replace(file=", ".join(filter(None, (self.file, place))), line=line)

    def __str__(self) -> str:
        return printable(
            as_shown(f"{self.file}:{self.line}:{self.column}: expected {self.expected}, found {self.found}")
        )
