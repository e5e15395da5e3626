"""Filters for the rows of a table: ``COL OP VALUE``, or several joined by ``and``.

OP is ``=`` (or ``==``), ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in (VALUE, ...)``, ``is null`` or
``is not null``. VALUE is a number, a text, date or time in single quotes, ``true`` or ``false``. Quote a
column name that is not a word with double quotes. As in SQL, a missing value is neither equal to anything nor
different from it.

A filter belongs to a run, not to the layout: there it would travel with the model, and `predict` would
silently drop rows. So it is an option of reading, and part of the name of the cache and of the data that a
checkpoint names. The parser threads apply it, so it is as parallel as parsing; pyarrow's fragments exclude
row groups. It has a small language of its own, because an expression of pyarrow or Python would have to be
evaluated from text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.data.errors import DataError
from thresher.data.text.numbers import NUMBER
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.data.formats.tables.table_rows import ColumnEncodings
    from thresher.data.sources.reader import RowsAsked

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")+")|(?P<sign><=|>=|!=|==|=|<|>|[(),])|(?P<word>[^\s'"<>=!(),]+)|(?P<rest>\S.*)|(?P<end>$))"""
)
_COMPARED: dict[str, Any] = {
    "=": pc.equal,
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "is null": pc.is_null,
    "is not null": pc.is_valid,
}
_IN = "in"
_NOT_A_WORD = "a column whose name is not one word is in double quotes"
_KNOWN = "one of = != < <= > >= in (...), is null, is not null"


WHERE, MARKED = mention("where"), "hold-out:"
"""What messages call the filter of the rows that are marked"""


class Condition(NamedTuple):
    """A condition on one column."""

    column: str
    operator: str
    values: tuple[Any, ...]
    """str, bool, or Decimal for a number; Arrow scalars once bound to a column"""

    def holds(self, column: pa.Array) -> Any:
        """Whether it holds: a mask for an Arrow array, or an expression for a field."""
        if self.operator == _IN:
            return reduce(pc.or_kleene, [pc.equal(column, value) for value in self.values])
        return _COMPARED[self.operator](column, *self.values)


def conditions_in(text: str, option: str = WHERE) -> list[Condition]:
    """Parse the conditions of a filter; raises `DataError`, which names the option, for a syntax error."""
    left = deque[tuple[str, str]](
        (str(one.lastgroup), one[str(one.lastgroup)]) for one in _TOKEN.finditer(text)
    )

    def take(*words: str) -> str:
        # the next token in small letters, if it is one of these
        kind, word = left[0]
        fits = kind in ("word", "sign") and word.lower() in words
        return left.popleft()[1].lower() if fits else ""

    def wrong(expected: str) -> DataError:
        kind, word = left[0]
        expected = "a closing quote" if kind == "rest" else expected
        return DataError(f"{option} {text}: expected {expected}, found {word or 'the end'}")

    def need(word: str, expected: str = "") -> None:
        if not take(word):
            raise wrong(expected or f"'{word}'")

    def value() -> str | bool | Decimal:
        if left[0][0] == "text":
            return left.popleft()[1][1:-1].replace("''", "'")
        if word := take("true", "false"):
            return word == "true"
        if not NUMBER.fullmatch(left[0][1].encode()):
            raise wrong("a number, true, false, or a text in single quotes")
        return Decimal(left.popleft()[1])

    found = list[Condition]()
    while not found or take("and"):
        if left[0][0] not in ("word", "name"):
            raise wrong("a column")
        kind, column = left.popleft()
        column = column if kind == "word" else column[1:-1].replace('""', '"')
        if take("is"):
            operator = "is not null" if take("not") else "is null"
            need("null")
            found.append(Condition(column, operator, ()))
        elif operator := take(*_COMPARED):
            found.append(Condition(column, operator, (value(),)))
        elif take(_IN):
            need("(")
            values = [value()]
            while take(","):
                values.append(value())
            need(")", "',' or ')'")
            found.append(Condition(column, _IN, tuple(values)))
        else:
            raise wrong(_KNOWN if kind == "name" else f"{_KNOWN} ({_NOT_A_WORD})")
    if left[0][0] != "end":
        raise wrong("'and' or the end")
    return found


class Filter:
    """A filter bound to the columns of a file. Texts are read as what they are compared with.

    >>> cells = Filter("day >= 9 and city = 'Ulm'", {"day": None, "city": None}, "a.csv")
    >>> cells.rows({"day": ["8", "10", "9", ""], "city": ["Ulm", "Ulm", "Kiel", "Ulm"]}, 4).tolist()
    [1]
    """

    def __init__(
        self,
        text: str,
        types: Mapping[str, pa.DataType] | None,
        file: str,
        option: str = WHERE,
        missing: Collection[str] = (),
    ) -> None:
        """`types` are those of the columns, each None in a file of texts, or None if columns are not known.

        `missing` are texts that mean a missing value. Raises `DataError`, which names the option, if a column
        does not exist, has the wrong type, or is compared with values of different types.
        """
        self._bound, self._missing = list[tuple[Condition, Any]](), {"", *missing}
        for condition in conditions_in(text):
            column, _, values = condition
            if types is not None and column not in types:
                raise DataError(f"{file}: no column is called '{column}' ({option} {text})")
            kind = types[column] if types is not None else None
            if kind is not None:
                kind = kind.value_type if pa.types.is_dictionary(kind) else kind
                values = tuple(_scalar(value, kind, column, file, option) for value in values)
            elif len({type(value) for value in values}) > 1:
                raise DataError(
                    f"{file}: column '{column}' is compared with texts and others ({option} {text})"
                )
            else:
                values = tuple(pa.scalar(float(one) if isinstance(one, Decimal) else one) for one in values)
                kind = values[0].type if values else pa.string()
            self._bound.append((condition._replace(values=values), kind))
        self.columns = list(dict.fromkeys(condition.column for condition, _ in self._bound))
        """the columns in its conditions"""

    def expression(self) -> Any:
        """The filter as a pyarrow expression, to be evaluated on statistics."""
        return reduce(pc.and_kleene, [one.holds(pc.field(one.column)) for one, _ in self._bound])

    def rows(self, columns: Mapping[str, pa.Array], count: int) -> NDArray[np.int64]:
        """Indices of the rows that pass, of `count` rows, given its columns as Arrow arrays or texts."""
        kept = np.ones(count, bool)
        for condition, kind in self._bound:
            column = columns[condition.column]
            if not isinstance(column, pa.Array):
                read = (None if cell in self._missing else _AS[kind](cell) for cell in column)
                column = pa.array(list(read), kind)
            elif column.type != kind:
                column = pc.cast(column, kind)
            kept &= pc.fill_null(condition.holds(column), False).to_numpy(zero_copy_only=False)
        return np.flatnonzero(kept)

    def ids(self, columns: Mapping[str, pa.Array], count: int) -> list[str]:
        """Ids that mark these rows: the same for all that pass, and empty for the others."""
        found = np.full(count, "", object)
        found[self.rows(columns, count)] = "met"
        return list(found)


def with_filters(
    kinds: ColumnEncodings,
    asked: RowsAsked,
    types: Mapping[str, pa.DataType] | None,
    file: str,
    missing: Collection[str] = (),
) -> ColumnEncodings:
    """`kinds` with what says which rows of the file are read, and which of these are marked: see `Filter`."""
    return kinds._replace(
        where=Filter(asked.where, types, file, missing=missing) if asked.where else None,
        marks=Filter(asked.marked, types, file, MARKED, missing) if asked.marked else None,
    )


_AS: dict[Any, Callable[[str], Any]] = {
    pa.string(): str,
    pa.bool_(): lambda cell: {"true": True, "false": False}.get(cell.lower()),
    pa.float64(): lambda cell: float(text) if NUMBER.fullmatch(text := cell.strip().encode()) else None,
}
"""How a text is read that is compared with a value of this type"""


def _scalar(value: Any, kind: pa.DataType, column: str, file: str, option: str) -> object:
    """A value converted to the type of a column; raises `DataError` if that is not possible."""
    types = pa.types
    text = types.is_temporal(kind) or types.is_string(kind) or types.is_large_string(kind)
    text = text or types.is_string_view(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    whole, number = types.is_integer(kind), types.is_floating(kind) or types.is_decimal(kind)
    shown = f"'{value}'" if isinstance(value, str) else str(value).lower()
    if not {str: text, bool: types.is_boolean(kind), Decimal: whole or number}[type(value)]:
        hint = " (put text in single quotes)" if text else ""
        raise DataError(f"{file}: column '{column}' of type {kind} cannot be compared with {shown}{hint}")
    try:
        if whole:
            return pa.scalar(int(value), kind) if value == int(value) else pa.scalar(float(value))
        found = pa.scalar(float(value) if types.is_floating(kind) else value)
        return found if types.is_decimal(kind) else found.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        raise DataError(
            f"{file}: {shown} is not a value of column '{column}' with type {kind} ({option})"
        ) from error
