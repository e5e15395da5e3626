"""JSON in our own files, as the types that it becomes."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
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
        _check_fields(given, found, "$")
    except msgspec.ValidationError as error:
        what, _, place = str(error).replace("`", "").partition(" - at $")
        what = re.sub("^Object missing required field (.*)", r"\1 is missing", what)
        raise DataError(f"{where}{place}: {what.replace('Expected', 'expected')}") from None
    return found


def said(one: Any) -> dict[str, Any]:
    """The fields of a dataclass as a file holds them: without those `UNSAID` that are empty."""
    found = {field.name: getattr(one, field.name) for field in fields(one)}
    unsaid = getattr(one, "UNSAID", ())
    for name, value in found.items():
        if is_dataclass(value):
            found[name] = value.as_dict() if hasattr(value, "as_dict") else said(value)
    return {name: value for name, value in found.items() if value or name not in unsaid}


def _check_fields(given: object, found: object, where: str) -> None:
    """ValidationError if what was found is not all of some JSON, or has defaults for fields of objects."""
    import msgspec

    unsaid = getattr(found, "UNSAID", ())
    if is_dataclass(found):
        found = {one.name: getattr(found, one.name) for one in fields(found)}
    if isinstance(given, dict) and isinstance(found, dict):
        kept = {str(name): one for name, one in found.items()}
        for name in (given.keys() ^ kept.keys()) - (kept.keys() & unsaid):
            told = f"{name} is missing" if name in kept else f"unknown field {name}"
            raise msgspec.ValidationError(f"{told} - at {where}")
        for name in given:
            _check_fields(given[name], kept[name], f"{where}.{name}")
    elif isinstance(given, list) and isinstance(found, list | tuple):
        for k, (one, other) in enumerate(zip(given, found, strict=False)):  # named tuples have defaults
            _check_fields(one, other, f"{where}[{k}]")
