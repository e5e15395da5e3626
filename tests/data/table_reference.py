"""Simple reference parsers of table lines: cells between delimiters, JSON."""

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from tests.data.reference import BadLineError, Row, float32_of
from tests.data.tables import Bad, meaning

NUMBERS = ("label", "weight", "numeric")


def cells_of(line: bytes, delimiter: bytes, quoting: bool) -> list[bytes] | None:
    """The cells of a line; None if a quote is not closed or is followed by text."""
    cells, rest = list[bytes](), line
    while True:
        if not (quoting and rest.startswith(b'"')):
            one, found, rest = rest.partition(delimiter)
            cells.append(one)
            if not found:
                return cells
            continue
        one, rest = b"", rest[1:]
        while True:
            piece, found, rest = rest.partition(b'"')
            if not found:
                return None
            one += piece
            if not rest.startswith(b'"'):
                break
            one, rest = one + b'"', rest[1:]
        cells.append(one)
        if not rest:
            return cells
        if not rest.startswith(delimiter):
            return None
        rest = rest[1:]


def row_of(
    line: bytes, delimiter: str, quoting: bool, kinds: Mapping[str, str], missing: Collection[str] = ()
) -> Row | Bad:
    """The example on a nonempty line of cells."""
    cells = cells_of(line, delimiter.encode(), quoting)
    if cells is None or len(cells) != len(kinds):
        return Bad("")
    absent = {one.encode() for one in missing}
    cells = [b"" if one in absent or not one.strip(b" ") else one for one in cells]
    row: dict[str, Any] = {}
    for (name, kind), one in zip(kinds.items(), cells, strict=True):
        try:
            number = kind in NUMBERS and one
            row[name] = float32_of(one.decode("latin-1").strip(" ")) + 0 if number else one or None
        except BadLineError:
            return Bad(name)
    return meaning(row, kinds)


def parse_cells(line: bytes, delimiter: str, kinds: Mapping[str, str]) -> Row | None:
    """The example on a line of CSV or TSV, or None; raises `BadLineError`."""
    line = line.removesuffix(b"\r")
    if b"\0" in line:
        raise BadLineError(line)
    return _good(row_of(line, delimiter, delimiter == ",", kinds)) if line else None


def parse_json(line: bytes, kinds: Mapping[str, str]) -> Row | None:
    """The example on a line of JSON whose categories are strings, except ``id``, a whole number."""
    if not line.strip():
        return None
    try:
        read = json.loads(str(line, "utf-8"))
    except (ValueError, RecursionError):
        raise BadLineError(line) from None
    if not isinstance(read, dict) or read.keys() - kinds:
        raise BadLineError(line)
    row = {name: None if (value := read.get(name)) is None else _cell(name, value, kinds) for name in kinds}
    return _good(meaning(row, kinds))


def _cell(name: str, value: Any, kinds: Mapping[str, str]) -> Any:
    if kinds[name] in NUMBERS:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    elif name == "id":
        fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    else:
        fits = isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)
    if not fits:
        raise BadLineError(name)
    try:
        return float(value) + 0.0 if kinds[name] in NUMBERS else value
    except OverflowError:
        return math.inf


def _good(found: Row | Bad) -> Row:
    if isinstance(found, Bad):
        raise BadLineError(found.column)
    return found
