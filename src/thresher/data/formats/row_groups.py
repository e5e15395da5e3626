"""Groups of rows, such as queries or users, as hashes of their names: hold-outs and folds keep them whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.chunk import Place
from thresher.data.errors import DataError
from thresher.data.source import Chunks, Source, Through

NONE = 0
"""The hash of a row without a group"""
_MOST = 1 << 20
"""Names that are remembered"""


_VALUE = re.compile(r"[-+.:\d TZeE]+|[Tt]\w{3}|[Ff]\w{4}")
"""Names that may be values"""
_WHOLE = re.compile(r"0|-?[1-9]\d*")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d{0,20})?(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:\.(\d+))?(?:Z|\+00:?00)?)?")


def spelled_alike(name: str) -> str:
    """One spelling for values that formats write differently; codes such as 007 stay as they are.

    >>> [spelled_alike(name) for name in ("True", "17.0", "0.50", "1e3", "2024-05-01T08:30:00.000")]
    ['true', '17', '0.5', '1000', '2024-05-01 08:30:00']
    """
    if _WHOLE.fullmatch(name) or not _VALUE.fullmatch(name):
        return name
    if name.lower() in ("true", "false"):
        return name.lower()
    if _NUMBER.fullmatch(name) and any(map(str.isdigit, name)):
        number = Decimal(name)
        whole = abs(number) < 10**21 and number == number.to_integral_value()
        return str(int(number) if whole else number.normalize())
    if found := _TIME.fullmatch(name):
        day, clock, seconds, fraction = found.groups("")
        time = f"{clock}{seconds or ':00'}{('.' + fraction.rstrip('0')).rstrip('.')}"
        return day if not clock or time == "00:00:00" else f"{day} {time}"
    return name


class HashedNames:
    """Hashes of names, each computed once."""

    def __init__(self) -> None:
        self._known = {"": NONE}

    def hashes(self, names: Iterable[str]) -> NDArray[np.uint64]:
        """The hash of each name; `NONE` for an empty one."""
        known, found = self._known, list[int]()
        for name in names:
            value = known.get(name)
            if value is None:
                bits = blake2b(spelled_alike(name).encode("utf-8", "surrogatepass"), digest_size=8).digest()
                value = known[name] = int.from_bytes(bits, "little") or 1
            found.append(value)
        if len(known) > _MOST:
            self._known = {"": NONE}
        return np.array(found, np.uint64)


class Grouped(Through[Source]):
    """A source in memory whose rows have the groups of an array."""

    def __init__(self, source: Source, groups: ArrayLike) -> None:
        super().__init__(source)
        self._groups = groups_of(groups)

    def chunks(self, start: Place | None = None) -> Chunks:
        """One pass, read from the beginning to count rows. DataError unless each row has one group."""
        done, groups = 0, self._groups
        with closing(self._source.chunks()) as chunks:
            for chunk in chunks:
                of_rows, done = groups[done : done + len(chunk)], done + len(chunk)
                if len(of_rows) < len(chunk):
                    break
                if start is None or chunk.place is None or chunk.place >= start:
                    yield replace(chunk, groups=of_rows)
        if done != len(groups):
            rows = f"{done:,}" + (" rows or more" if done > len(groups) else " rows")
            raise DataError(f"{len(groups):,} groups for {rows}: give one group for each row")


def groups_of(values: ArrayLike) -> NDArray[np.uint64]:
    """The hashes of `values` (n,), one for each row. DataError unless they are one-dimensional."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise DataError(
            f"groups must be one-dimensional, with a value for each row, not of shape {given.shape}"
        )
    if given.dtype.kind == "M":
        given = given.astype("datetime64[us]")  # nanoseconds become whole numbers
    missing = given != given if given.dtype.kind in "fO" else np.zeros(len(given), bool)
    texts = [
        "" if gone or value is None else str(value)
        for gone, value in zip(missing, given.tolist(), strict=True)
    ]
    return HashedNames().hashes(texts)
