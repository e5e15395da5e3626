"""JSON in our own files, as the types that it becomes."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from thresher.data.errors import DataError

T = TypeVar("T")


def read(kind: type[T], given: Any, where: str) -> T:
    """The value of a type that a file holds as JSON: dataclasses are objects there, named tuples lists.

    DataError, which names the field, if one has another type, is missing, or is not known.
    """
    import msgspec  # only where a file is read

    try:
        found = msgspec.convert(given, kind, str_keys=True)
        _check_fields(given, msgspec.to_builtins(found, str_keys=True), "$")
    except msgspec.ValidationError as error:
        what, _, place = str(error).replace("`", "").partition(" - at $")
        what = re.sub("^Object missing required field (.*)", r"\1 is missing", what)
        raise DataError(f"{where}{place}: {what.replace('Expected', 'expected')}") from None
    return found


def _check_fields(given: Any, kept: Any, where: str) -> None:
    """ValidationError unless all of some JSON was kept."""
    import msgspec

    if isinstance(given, dict) and isinstance(kept, dict):
        for unknown in given.keys() - kept.keys():
            raise msgspec.ValidationError(f"unknown field {unknown} - at {where}")
        for name in given:
            _check_fields(given[name], kept[name], f"{where}.{name}")
    elif isinstance(given, list) and isinstance(kept, list | tuple):
        for k, (one, other) in enumerate(zip(given, kept, strict=False)):  # named tuples have defaults
            _check_fields(one, other, f"{where}[{k}]")
