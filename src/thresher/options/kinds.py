"""Kinds of values that an option may have: how the command line writes them, and what Python may give."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any

DEVIATIONS = "sd"
"""What follows a number of standard deviations"""


class WrongValueError(ValueError):
    """A value that an option does not take; its text is what was expected, without the name."""

    def __init__(self, wanted: str, near: str = "") -> None:
        super().__init__(wanted)
        self.wanted, self.near = wanted, near
        """`near`: the end of the message, with the value that was probably meant"""


class Kind:
    """Any value from Python; a text from the command line."""

    switch = False
    """whether the option is written without a value"""
    columns = False
    """whether the value names columns"""

    def read(self, text: str) -> object:
        """The value that a word of the command line means; `WrongValueError`, or another ValueError."""
        return self.take(text)

    def take(self, value: object) -> object:
        """The value that Python gives, in the form of `read`; the same errors."""
        return value

    def written(self, value: object) -> list[str]:
        """The words of the command line with this value, one for each time that the option is given."""
        return [str(value)]


@dataclass(frozen=True)
class Flag(Kind):
    """True or False: ``--name`` and ``--no-name``; if `one_way`, only ``--name``."""

    one_way: bool = False
    switch = True

    def take(self, value: object) -> bool:
        """True for 1 and False for 0, too."""
        try:
            known = value in (0, 1)
        except (TypeError, ValueError):  # arrays, missing values
            known = False
        if not known:
            raise WrongValueError("True or False")
        return bool(value)


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number from `low` to `high`."""

    low: int
    high: int | None = None
    even: bool = False

    @property
    def wanted(self) -> str:
        """What is expected, in words."""
        if self.high is None:
            return f"a whole number of at least {self.low:,}"
        return f"{'an even' if self.even else 'a whole'} number from {self.low:,} to {self.high:,}"

    def read(self, text: str) -> int:
        """The number."""
        try:
            return self.take(int(_plain(text)))
        except (ValueError, OverflowError):
            raise WrongValueError(self.wanted) from None

    def take(self, value: Any) -> int:
        """The number; NumPy's too."""
        try:
            number = index(value)
        except TypeError:
            raise WrongValueError(self.wanted) from None
        beyond = number < self.low or (self.high is not None and number > self.high)
        if isinstance(value, bool) or beyond or (self.even and number % 2):
            raise WrongValueError(self.wanted)
        return number


@dataclass(frozen=True)
class Number(Kind):
    """A number, which `fits`; in words, it is what is `wanted`."""

    wanted: str = "a number"
    fits: Callable[[float], bool] | None = None

    def read(self, text: str) -> float:
        """The number."""
        try:
            number = float(_plain(text))
        except ValueError:
            several = "; for several values, see thresher path and tune" if ":" in text or "," in text else ""
            raise WrongValueError("a number", several) from None
        return float(self.take(number))

    def take(self, value: Any) -> Any:
        """The same number; NumPy's too."""
        wrong = isinstance(value, bool | str | type) or getattr(value, "ndim", False)
        if wrong or not hasattr(value, "__float__"):
            raise WrongValueError("a number")
        if self.fits is None:
            return value
        if not self.fits(float(value)):
            raise WrongValueError(self.wanted)
        return float(value)


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few names."""

    names: tuple[str, ...]

    def read(self, text: str) -> str:
        """The name."""
        if text not in self.names:
            from thresher.data.formats.listing import listed
            from thresher.options.synonyms import did_you_mean

            raise WrongValueError(listed([*self.names], "or"), did_you_mean(text, self.names))
        return text


def text(value: object) -> str:
    """A text. `WrongValueError`."""
    if not isinstance(value, str):
        raise WrongValueError("text")
    return value


def text_with_content(value: object) -> str:
    """A text that is not empty. `WrongValueError`."""
    if not text(value):
        raise WrongValueError("text")
    return str(value)


@dataclass(frozen=True)
class Text(Kind):
    """A text with a form of its own, which `check` brings to its usual form. It raises ValueErrors."""

    check: Callable[[Any], Any] = text
    write: Callable[[Any], str] = str
    """what is typed for a value"""
    columns: bool = False

    def take(self, value: object) -> object:
        """The text in its usual form."""
        return self.check(value)

    def written(self, value: object) -> list[str]:
        """The text that is typed."""
        return [self.write(value)]


@dataclass(frozen=True)
class File(Kind):
    """A path; `check` raises ValueErrors."""

    check: Callable[[Path], None] | None = None

    def take(self, value: object) -> Path:
        """The path."""
        if not isinstance(value, str | os.PathLike) or not os.fspath(value):
            raise WrongValueError("the name of a file")
        path = Path(value)
        if self.check is not None:
            self.check(path)
        return path


@dataclass(frozen=True)
class Column(Kind):
    """A column: its name, in double quotes if it has a comma, or its number, counted from 1."""

    columns = True

    def read(self, text: str) -> str:
        """The name."""
        from thresher.data.feature_specs import unquoted

        return unquoted(text)

    def take(self, value: object) -> str:
        """The name, or the number as text."""
        return _column(value)

    def written(self, value: Any) -> list[str]:
        """The name, in quotes if it needs them."""
        from thresher.data.feature_specs import in_list

        return [in_list(value)]


@dataclass(frozen=True)
class NameList(Kind):
    """Names or numbers of columns, ranges and patterns, or words: a list with commas between."""

    columns: bool = True

    def read(self, text: str) -> tuple[str, ...]:
        """The names."""
        from thresher.data.feature_specs import names_in

        return names_in(text)

    def take(self, value: Any) -> tuple[str, ...]:
        """The names in a text or in a list."""
        if isinstance(value, str):
            return self.read(value)
        wanted = "names or positions of columns" if self.columns else "texts"
        several = _several(value, wanted)
        return tuple(_column(one, wanted) for one in (sorted(several) if isinstance(value, Set) else several))

    def written(self, value: Any) -> list[str]:
        """The list."""
        from thresher.data.feature_specs import as_list

        return [as_list(value)]


@dataclass(frozen=True)
class Repeated(Kind):
    """Several values of a kind: the option is repeated on the command line, Python gives a list."""

    of: Kind

    def read(self, text: str) -> object:
        """One of the values."""
        return self.of.read(text)

    def take(self, value: object) -> tuple[object, ...]:
        """The values; a text is one."""
        return tuple(self.of.take(one) for one in _several(value, "a list"))

    def written(self, value: Any) -> list[str]:
        """A word for each value."""
        return [word for one in value for word in self.of.written(one)]


def _plain(text: str) -> str:
    """The text of a number as people write it. ValueError for what only Python reads: ``1_000``."""
    if "_" in text or not text.isascii():
        raise ValueError
    return text


def _column(value: Any, wanted: str = "the name or position of a column") -> str:
    try:
        if isinstance(value, bool):
            raise WrongValueError(wanted)
        return value if isinstance(value, str) else str(index(value))
    except TypeError:
        raise WrongValueError(wanted) from None


def _several(value: Any, wanted: str) -> list[Any]:
    """The items of a list; a single value is one."""
    if isinstance(value, Mapping):
        raise WrongValueError(wanted)
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | type)
    return [*value] if several and getattr(value, "ndim", True) else [value]
