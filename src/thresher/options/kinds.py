"""Kinds of values that an option may have: how the command line writes them, and what Python may give."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime, time
from operator import index
from pathlib import Path
from typing import Any, NamedTuple


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

    def read(self, text: str) -> Any:
        """The value that a word of the command line means; `WrongValueError`, or another ValueError."""
        return text

    def take(self, value: Any) -> Any:
        """The value that Python gives, in the form of `read`; the same errors."""
        return value

    def written(self, value: Any) -> list[str]:
        """The words of the command line with this value, one for each time that the option is given."""
        return [str(value)]


@dataclass(frozen=True)
class Flag(Kind):
    """True or False: ``--name`` and ``--no-name``; if `one_way`, only ``--name``."""

    one_way: bool = False
    switch = True

    def take(self, value: Any) -> bool:
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

    @property
    def wanted(self) -> str:
        """What is expected, in words."""
        if self.high is None:
            return f"a whole number of at least {self.low:,}"
        return f"a whole number from {self.low:,} to {self.high:,}"

    def read(self, text: str) -> int:
        """The number."""
        try:
            return self._checked(int(_plain(text)))
        except (ValueError, OverflowError):
            raise WrongValueError(self.wanted) from None

    def take(self, value: Any) -> int:
        """The number; NumPy's too."""
        try:
            number = index(value)
        except TypeError:
            raise WrongValueError(self.wanted) from None
        if isinstance(value, bool):
            raise WrongValueError(self.wanted)
        return self._checked(number)

    def _checked(self, number: int) -> int:
        if number < self.low or (self.high is not None and number > self.high):
            raise WrongValueError(self.wanted)
        return number


@dataclass(frozen=True)
class Number(Kind):
    """A number."""

    def read(self, text: str) -> float:
        """The number."""
        try:
            return float(_plain(text))
        except ValueError:
            several = "; for several values, see thresher path and tune" if ":" in text or "," in text else ""
            raise WrongValueError("a number", several) from None

    def take(self, value: Any) -> Any:
        """The same number; NumPy's too."""
        if (
            isinstance(value, bool | str | type)
            or getattr(value, "ndim", False)
            or not hasattr(value, "__float__")
        ):
            raise WrongValueError("a number")
        return value


class Quantity(NamedTuple):
    """An amount, and what it is an amount of."""

    of: str
    amount: float


TIMES = {"s": ("seconds", 1.0), "m": ("seconds", 60.0), "h": ("seconds", 3600.0), "d": ("seconds", 86400.0)}
"""Units of time"""
SIZES = {"KB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9), "TB": ("bytes", 1e12)}
"""Units of size"""


@dataclass(frozen=True)
class RowOrTime(Kind):
    """The number of a row, a time of the day, or a day with or without one; UTC unless it says otherwise."""

    wanted: str = "the number of a row, or a time such as 12:00 or 2026-03-01T12:00"

    def read(self, text: str) -> int | datetime | time:
        """The number or the time."""
        for made in (Whole(0).read, time.fromisoformat, datetime.fromisoformat):
            try:
                found: int | datetime | time = made(text.strip())
            except ValueError:
                continue
            return found.replace(tzinfo=found.tzinfo or UTC) if isinstance(found, datetime) else found
        raise WrongValueError(self.wanted)


@dataclass(frozen=True)
class Amount(Kind):
    """A number above 0 with a unit, such as ``90s`` or ``10GB``.

    >>> Amount(TIMES | SIZES, "").read("1.5h"), Amount(SIZES, "").written(Quantity("bytes", 2e9))
    (Quantity(of='seconds', amount=5400.0), ['2GB'])
    """

    units: Mapping[str, tuple[str, float]]
    """what each measures, and its size"""
    wanted: str

    def read(self, text: str) -> Quantity:
        """The amount."""
        found = _AMOUNT.fullmatch(text.strip())
        unit = next((unit for unit in self.units if found and unit.upper() == found[2].upper()), None)
        if found is None or unit is None or not 0 < float(found[1]) < _VAST:
            raise WrongValueError(self.wanted)
        of, size = self.units[unit]
        return Quantity(of, float(found[1]) * size)

    def written(self, value: Quantity) -> list[str]:
        """The amount in the largest unit of which it is a whole number."""
        known = sorted((size, unit) for unit, (of, size) in self.units.items() if of == value.of)
        size, unit = next((one for one in reversed(known) if not value.amount % one[0]), known[0])
        return [f"{value.amount / size:g}{unit}"]


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few names."""

    names: tuple[str, ...]
    option: str = ""
    """the option whose values other programs call otherwise"""

    def read(self, text: str) -> str:
        """The name."""
        if text not in self.names:
            from thresher.data.formats.listing import listed
            from thresher.options.synonyms import did_you_mean

            raise WrongValueError(listed([*self.names], "or"), did_you_mean(self.option, text, self.names))
        return text


@dataclass(frozen=True)
class Text(Kind):
    """A text with a form of its own, which `check` brings to its usual form. It raises ValueErrors."""

    check: Callable[[Any], Any]

    def read(self, text: str) -> Any:
        """The text in its usual form."""
        return self.check(text)

    def take(self, value: Any) -> Any:
        """The value from Python in its usual form."""
        return self.check(value)


@dataclass(frozen=True)
class File(Kind):
    """A path; `check` raises ValueErrors."""

    check: Callable[[Path], None] | None = None

    def read(self, text: str) -> Path:
        """The path."""
        return self.take(text)

    def take(self, value: Any) -> Path:
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

    def take(self, value: Any) -> str:
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

    def read(self, text: str) -> Any:
        """One of the values."""
        return self.of.read(text)

    def take(self, value: Any) -> tuple[Any, ...]:
        """The values; a text is one."""
        return tuple(self.of.take(one) for one in _several(value, "a list"))

    def written(self, value: Any) -> list[str]:
        """A word for each value."""
        return [word for one in value for word in self.of.written(one)]


_AMOUNT = re.compile(r"([0-9]+(?:[.][0-9]+)?) ?([A-Za-z]*)")
_VAST = 1e15


def _plain(text: str) -> str:
    """The text of a number as people write it. ValueError for what only Python reads: ``1_000``."""
    if "_" in text or not text.isascii():
        raise ValueError
    return text


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise WrongValueError("text")
    return value


def _column(value: Any, wanted: str = "the name or position of a column") -> str:
    if isinstance(value, str):
        return value
    try:
        if isinstance(value, bool):
            raise WrongValueError(wanted)
        return str(index(value))
    except TypeError:
        raise WrongValueError(wanted) from None


def _several(value: Any, wanted: str) -> list[Any]:
    """The items of a list; a single value is one."""
    if isinstance(value, Mapping):
        raise WrongValueError(wanted)
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | type)
    return [*value] if several and getattr(value, "ndim", True) else [value]
