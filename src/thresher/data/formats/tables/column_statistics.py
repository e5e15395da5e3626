"""Statistics of the columns in the first rows of a table, collected before training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from thresher.data.columns import CATEGORICAL, LABEL, NUMERIC, finder
from thresher.data.errors import quote_bytes
from thresher.data.files.paths import is_local
from thresher.data.formats.listing import TABLES
from thresher.data.formats.tables.spellings import WRITTEN_DATE, text_of
from thresher.data.source import Source
from thresher.data.sources.parsed import ParsedSource
from thresher.data.text.numbers import NUMBER, means_missing

ROWS = 1000
"""Number of rows that are examined."""
MOST_ROWS = 100_000
"""Number of rows that are examined in columns of numbers that are read as categories"""
_WHOLE = re.compile(r"-?[0-9]{1,18}(\.0*)?")
_PADDED = re.compile(r"\s*[+-]?0[0-9]")
_DIGITS = re.compile(r"-?[0-9]+(\.0*)?")
_MANY = 10
"""Minimum number of different numbers in a column of numbers; fewer may be codes of categories"""
_LONG = 8
"""Whole numbers with this many digits are ids if all have as many and none occurs twice"""
_INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__|level_\d|\.\.\.\d+")
"""Names of the index of a DataFrame, as pandas and R write it"""
_CODE = re.compile(
    r"(^|[_\W])(id|uuid|guid|code|zip|zipcode|postcode|postal|plz|sku|isbn|ean|upc|asin|iban|phone|cat|category)"
    r"([_\W]|$)|(?-i:[a-z]Id$)|(user|item|page|site|shop|device|product|customer|session|order|group)id$|^C\d+$",
    re.IGNORECASE,
)
"""Names of columns whose numbers are codes, such as those of click logs, C14 to C21"""
_MANY_CODES = 20
"""Minimum number of different codes"""
_INEXACT = 16
"""Whole numbers with this many digits are not exact, even in float64"""
_TIMES = re.compile(r"1\d{9}(\d{3}){0,3}|(19|20)?\d\d(0[1-9]|1[0-2])[0-3]\d([0-2]\d([0-5]\d([0-5]\d)?)?)?")
"""Seconds, or thousandths and smaller parts, since 1970; and dates, some with a time of day"""
_ID = re.compile(
    r"(^|[_\W])(id|uuid|guid|key|index|idx|row|row_?(id|no|num|number|names?)|recno|serial)([_\W]|$)|(?-i:[a-z]Id$)",
    re.IGNORECASE,
)


class ColumnSeen(NamedTuple):
    """Statistics of a column in the first rows of a table."""

    name: str
    kind: str
    rows: int
    """number of rows with a value in the column"""
    distinct: int
    """number of distinct values"""
    words: float
    """average number of words in a cell"""
    counts_rows: bool
    """whether its values are whole numbers that seem to number or name the rows"""
    strays: tuple[str, ...] = ()
    """if nearly all cells of a categorical column are numbers, the others"""
    is_numbers: bool = False
    """whether all cells of a categorical column are numbers, and not just codes"""
    dated: bool = False
    """whether a categorical column holds dates as people write them, besides numbers"""
    example: str = ""
    """the first of these dates; of other columns, the first cell"""
    is_index: bool = False
    """whether it looks like the row numbers that pandas and R write"""
    is_code: bool = False
    """whether it holds whole numbers that look like codes"""
    is_unsure: bool = False
    """whether all cells of a categorical column are words for a missing value, or a few numbers"""

    @property
    def means_missing(self) -> bool:
        """Whether all strays are words for a missing value, such as ``NA`` and ``?``."""
        return all(means_missing(_bytes(cell)) for cell in self.strays)


def columns_seen(source: Source, chosen: Sequence[str] = ()) -> list[ColumnSeen]:
    """Statistics of the label, numeric and categorical columns of a table; empty for other data.

    The kinds of some columns are `chosen`, besides those that `source` knows to be.
    """
    layout = source.layout
    if not isinstance(source, ParsedSource) or layout is None or not layout.columns:
        return []
    batch, find = source.first_rows, finder(layout.columns)
    cells = first_cells(source, ROWS)
    kinds = layout.kind_of
    meant = {name for pattern in (*source.chosen, *chosen) for name in find(pattern)}
    if batch is not None:  # columns that are categories by their type, or numbers noted as such
        from pyarrow.types import is_dictionary

        from thresher.data.formats.tables.arrow_batches import guess

        numbers = {field.name for field in batch.schema if guess(field.type) == NUMERIC}
        meant |= {field.name for field in batch.schema if is_dictionary(field.type)}
        meant |= {name for name in numbers if kinds.get(name) == CATEGORICAL}
    wanted = [name for name in cells if kinds.get(name) in (CATEGORICAL, NUMERIC, LABEL)]
    found = {name: _look_at(name, kinds[name], cells[name], name in meant) for name in wanted}
    open_ = [one.name for one in found.values() if one.is_numbers or (not one.strays and one.is_unsure)]
    if open_:  # another cell may come after the rows examined
        more = first_cells(source, MOST_ROWS)
        found |= {name: _look_at(name, kinds[name], more[name], False) for name in open_}
    return [*found.values()]


def first_cells(source: ParsedSource, rows: int) -> Mapping[str, Sequence[str]]:
    """The cells of each column that are not missing, in the first rows of the first file."""
    name, layout, batch = source.names[0], source.layout, source.first_rows
    if batch is not None:
        columns = zip(batch.schema.names, batch.columns, strict=True)
        return {name: _of_column(column.slice(0, rows), layout.kind_of.get(name)) for name, column in columns}
    form = TABLES.get(layout.format)
    if form is None or form.batches or not is_local(name):
        return {}
    from thresher.data.formats.tables.delimited import first_values, lines_of

    text = source.previews.text(name)
    if not form.cells:
        from thresher.data.formats.tables.jsonl import first_objects

        _, fields = first_objects(lines_of(text, name)[:rows], name, ())
        return {field: _texts(found) for field, found in fields.items()}
    names, _, values = first_values(text, name, layout, rows)
    columns = zip(names if layout.header else layout.columns, values, strict=False)
    return {name: [str(cell, "utf-8", "replace") for cell in cells] for name, cells in columns}


def _of_column(column: Any, kind: str | None) -> list[str]:
    """The cells that are text, dates or numbers; text may be stored that is not UTF-8.

    In a column of amounts all cells are like the first that is not whole: to write all of many columns takes
    long, and amounts are no trouble.
    """
    import pyarrow as pa

    from thresher.data.formats.tables.arrow_batches import as_bytes, dates_as_texts

    if kind == NUMERIC and pa.types.is_floating(column.type):
        there = column.drop_null() if column.null_count else column  # which takes longer than all else here
        numbers = np.from_dlpack(there)  # `to_numpy` would import pandas, if it is installed
        amounts = numbers[numbers != np.floor(numbers)]
        if len(amounts):
            return [str(float(amounts[0]))] * len(there)
    column = dates_as_texts(column)
    plain = as_bytes(column.type)
    cells = (column if plain == column.type else column.view(plain)).to_pylist()
    if plain != column.type:
        cells = [str(cell, "utf-8", "replace") if isinstance(cell, bytes) else cell for cell in cells]
    return _texts(cells)


def _texts(values: Iterable[object]) -> list[str]:
    """The values that are texts, numbers or booleans, as categories are written."""
    return [text_of(one) for one in values if isinstance(one, str | int | float)]


def _look_at(name: str, kind: str, cells: Sequence[str], chosen: bool) -> ColumnSeen:
    counted = cells[:100] if kind == CATEGORICAL else ()  # numbers are one word
    words = sum(len(cell.split()) for cell in counted) / max(1, len(counted))
    texts, guessed, dated = set(cells), kind == CATEGORICAL and not chosen, False
    example = cells[0] if cells else ""
    if guessed:  # cells that are neither plain numbers nor missing may all be dates
        stripped = dict.fromkeys(cell.strip() for cell in cells)
        odd = [one for one in stripped if not (NUMBER.fullmatch(_bytes(one)) or means_missing(_bytes(one)))]
        dated = bool(odd) and len(stripped) >= _MANY and all(map(WRITTEN_DATE.fullmatch, odd))
        example = odd[0] if dated else example
    strays = _strays(name, cells) if guessed and not dated else ()
    others = {cell for cell in texts if guessed and not NUMBER.fullmatch(_bytes(cell))}
    numbers = guessed and not others and len(texts) >= _MANY and any("." in cell for cell in texts)
    unsure = len(others) > 0 and all(means_missing(_bytes(cell)) for cell in others)
    counts, few = _counts_rows(name, cells), len(cells) > 2 * len(texts)
    index = _INDEX.fullmatch(name) is not None and not few and all(map(_WHOLE.fullmatch, cells))
    code = kind == NUMERIC and not chosen and not index and _are_codes(name, cells)
    return ColumnSeen(
        *(name, kind, len(cells), len(texts), words, counts, strays, numbers, dated, example, index, code),
        is_unsure=unsure,
    )


def _counts_rows(name: str, cells: Sequence[str]) -> bool:
    """Whether all cells are whole numbers that number the rows or name them.

    Their range is below twice their count, the column has the name of an id, or the numbers are long, of one
    length and in no order.
    """
    if not cells or not all(_WHOLE.fullmatch(cell) for cell in cells):
        return False
    numbers = [int(cell.partition(".")[0]) for cell in cells]
    if max(numbers) - min(numbers) < 2 * len(numbers) or _ID.search(name) is not None:
        return True
    lengths = {len(str(number)) for number in numbers}
    return len(lengths) == 1 and min(lengths) >= _LONG and numbers != sorted(numbers)


def _are_codes(name: str, cells: Sequence[str]) -> bool:
    """Whether many different whole numbers look like codes, which the size of a number says nothing about.

    They have so many digits that they are not exact; or the column is named like a code; or they are long, of
    one length, in no order, and not times.
    """
    if not all(map(_DIGITS.fullmatch, cells)):
        return False
    texts = {cell.partition(".")[0].lstrip("-") for cell in cells}
    if len(texts) < _MANY_CODES:
        return False
    if _CODE.search(name) is not None:
        return True
    sizes, in_order = {len(text) for text in texts}, list(cells) == sorted(cells)
    long = min(sizes) >= _INEXACT or (len(sizes) == 1 and min(sizes) >= _LONG and not in_order)
    return long and not all(map(_TIMES.fullmatch, texts))


def _strays(name: str, cells: Sequence[str]) -> tuple[str, ...]:
    """The distinct cells that are not numbers, if at most a twentieth are not and the numbers are many.

    Words for a missing value may be any share of the cells. Numbers that look like codes are categories.
    """
    others = [cell for cell in cells if not NUMBER.fullmatch(_bytes(cell))]
    numbers = set(cells) - set(others)
    if _are_codes(name, [cell for cell in cells if cell in numbers]) or any(map(_PADDED.match, numbers)):
        return ()
    rare = len(others) <= len(cells) / 20
    missing = all(means_missing(_bytes(cell)) for cell in dict.fromkeys(others))
    return tuple(dict.fromkeys(others)) if len(numbers) >= _MANY and (rare or missing) else ()


def quote_cell(cell: str) -> str:
    """A cell in quotes, for messages: printable and not too long."""
    return quote_bytes(_bytes(cell) or cell.encode())


def _bytes(cell: str) -> bytes:
    return cell.strip().encode("utf-8", "surrogatepass")
