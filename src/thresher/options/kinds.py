"""Kinds of values that an option may have: how the command line writes them, and what Python may give."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from operator import index
from pathlib import Path
from typing import Any

from thresher.data.feature_specs import as_list, in_list, names_in, unquote

AUTO, DEVIATIONS = "auto", "sd"
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

    def words(self, value: object) -> list[str]:
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
    auto: bool = False
    """whether it may also be the word ``auto``"""

    def read(self, text: str) -> Any:
        """The number."""
        try:
            number: Any = int(_plain(text))
        except ValueError:
            number = text
        return self.take(number)

    def take(self, value: Any) -> Any:
        """The number; NumPy's too."""
        if self.auto and isinstance(value, str) and value == AUTO:
            return value
        number = _whole(value)
        if number is None or not self.low <= number <= (self.high or number) or (self.even and number % 2):
            least, most = f"{self.low:,}", f"{self.high:,}" if self.high else ""
            kind = "an even number" if self.even else "a whole number"
            span = f"from {least} to {most}" if most else f"of at least {least}"
            raise WrongValueError(f"{'auto or ' if self.auto else ''}{kind} {span}")
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
class Text(Kind):
    """A text with a form of its own, which `check` brings to its usual form. It raises ValueErrors."""

    check: Callable[[Any], Any]
    parse: Callable[[str], Any] | None = None
    """what a word of the command line means, if it is not checked like a text from Python"""
    write: Callable[[Any], str] = str
    """what is typed for a value"""
    columns: bool = False

    def read(self, text: str) -> Any:
        """The text in its usual form."""
        return (self.parse or self.check)(text)

    def take(self, value: object) -> Any:
        """The same of a value from Python."""
        return self.check(value)

    def words(self, value: object) -> list[str]:
        """The text that is typed."""
        return [self.write(value)]


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

    def words(self, value: Any) -> list[str]:
        """A word for each value."""
        return [word for one in value for word in self.of.words(one)]


def text(value: object, empty: bool = True, wanted: str = "text") -> str:
    """A text, which may be `empty`. `WrongValueError`."""
    if not isinstance(value, str) or not (value or empty):
        raise WrongValueError(wanted)
    return value


def path(value: object) -> Path:
    """A path. `WrongValueError`."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise WrongValueError("the name of a file")
    return Path(value)


def one_of(names: Collection[str], value: Any) -> str:
    """One of a few names. `WrongValueError`."""
    if not isinstance(value, str) or value not in names:
        from thresher.data.formats.listing import list_titles
        from thresher.options.synonyms import did_you_mean

        raise WrongValueError(list_titles([*names], "or"), did_you_mean(str(value), names))
    return str(value)


def column(value: Any, wanted: str = "the name or position of a column", empty: bool = False) -> str:
    """The name of a column, maybe `empty`, or its number, counted from 1, as text. `WrongValueError`."""
    if isinstance(value, str) and (value or empty):
        return value
    if (number := _whole(value)) is None:
        raise WrongValueError(wanted)
    return str(number)


def names(value: Any, wanted: str = "names or positions of columns") -> tuple[str, ...]:
    """The names or numbers of columns, ranges and patterns, in a text or in a list. `WrongValueError`."""
    if isinstance(value, str):
        return names_in(value)
    several = _several(value, wanted)
    return tuple(
        column(one, wanted, empty=True) for one in (sorted(several) if isinstance(value, Set) else several)
    )


TEXT, FILLED, FILE = Text(text), Text(partial(text, empty=False)), Text(path)
COLUMN = Text(column, lambda text: column(unquote(text)), in_list, columns=True)
"""A column: its name, in double quotes if it has a comma, or its number"""
COLUMN_OR_NONE = Text(partial(column, empty=True), unquote, in_list, columns=True)
"""The same, or an empty text for none"""
_column_name = partial(column, wanted="the name of a column")
COLUMN_NAME = Text(_column_name, lambda text: _column_name(unquote(text)), in_list, columns=True)
"""The name alone"""
FILTER = Text(partial(text, empty=False, wanted='a condition, such as "day < 20"'))
COLUMNS = Text(names, write=as_list, columns=True)
"""A list with commas between"""
WORDS = Text(partial(names, wanted="texts"), write=as_list)
PASSES = Whole(1, 10**9, auto=True)
LEVEL = Number("a number between 0 and 1", lambda level: 0 < level <= 0.999999999999999)
"""A share of all intervals; a quantile of one closer to 1 is not finite in float64"""


def _whole(value: Any) -> int | None:
    """A whole number, NumPy's too; None for anything else."""
    try:
        return None if isinstance(value, bool) else index(value)
    except TypeError:
        return None


def _plain(text: str) -> str:
    """The text of a number as people write it. ValueError for what only Python reads: ``1_000``."""
    if "_" in text or not text.isascii():
        raise ValueError
    return text


def _several(value: Any, wanted: str) -> list[Any]:
    """The items of a list; a single value is one."""
    if isinstance(value, Mapping):
        raise WrongValueError(wanted)
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | type)
    return [*value] if several and getattr(value, "ndim", True) else [value]
