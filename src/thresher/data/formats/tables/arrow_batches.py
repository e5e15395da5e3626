"""Converting Arrow record batches to Chunks.

Columns of numbers are numeric; columns of strings, bytes, bools or dictionaries are categorical; in a column
of lists of strings or whole numbers, each element is a feature. Categories are hashed as text, with one
spelling for each value, whatever its type. Null and the empty string are missing values: they add no feature;
a missing label or weight makes the row bad.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.data import columns
from thresher.data.columns import CATEGORICAL, LABEL, LIST, NUMERIC, SPELLED, TEXT
from thresher.data.errors import BadLine, DataError, nonfinite, quote_bytes
from thresher.data.features.ngrams import rows_of_bytes
from thresher.data.formats import line_status
from thresher.data.formats.tables import arrow_rows as rows
from thresher.data.formats.tables.table_rows import (
    NOT_FINITE,
    ColumnEncodings,
    TableParser,
    expected_of,
)
from thresher.data.formats.tables.table_rows import OFFSET as OFFSET_CODE
from thresher.data.labels import LISTED, Domain, hint_of_words
from thresher.data.report import find_undecoded, noted, wrong_byte
from thresher.data.sources.reader import Parsed
from thresher.data.text.numbers import NUMBER, OVERFLOW
from thresher.data.text.sorting import room_for_sorting
from thresher.data.text.spelling import GROWTH, spell_all
from thresher.data.text.words import SPACES

if TYPE_CHECKING:
    from thresher.data.files.content import ReadSoFar

_TRUTHS = {b"true": 1.0, b"false": 0.0}
NUMBERS = (LABEL, *columns.NUMBERS)
"""Kinds of columns whose cells are numbers; those of labels may be words or lists, too"""
_NAN = nonfinite(math.nan)
LISTS_NEED = "single numbers (lists need labels:LO-HI)"
"""What outputs need that are not lists of classes"""


def guesses(schema: pa.Schema) -> list[str]:
    """The kinds of the columns of a schema, guessed from their types.

    Columns that pandas has noted as categories are categorical, whatever the type they are stored in.
    """
    notes = (schema.metadata or {}).get(b"pandas")
    try:
        found = json.loads(notes)["columns"] if notes else ()
        noted = frozenset(one["field_name"] for one in found if one["pandas_type"] == "categorical")
    except (ValueError, TypeError, KeyError, RecursionError):
        noted = frozenset()
    kinds = zip(schema.names, map(guess, schema.types), strict=True)
    return [CATEGORICAL if kind == NUMERIC and name in noted else kind for name, kind in kinds]


@functools.lru_cache(256)
def guess(kind: pa.DataType) -> str:
    """The kind of a column, guessed from its type; empty if only the user can tell."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return NUMERIC
    if types.is_boolean(kind) or types.is_dictionary(kind) or is_text(kind) or types.is_null(kind):
        return CATEGORICAL
    if not _is_list(kind):
        return ""
    inner = kind.value_type
    return LIST if is_text(inner) or types.is_integer(inner) or types.is_null(inner) else ""


def is_of_text(kind: pa.DataType) -> bool:
    """Whether a type is text, or a dictionary of text."""
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def remedy_of(kind: pa.DataType) -> str:
    """How to make numbers of dates, times and durations; empty for other types."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_duration(kind):
        return "make numbers of the durations, such as hours"
    times = pa.types.is_temporal(kind)
    return "make numbers of the times, such as hours since the first" if times else ""


@functools.lru_cache(256)
def fits(found: pa.DataType, kind: str) -> bool:
    """Whether a column of type `found` can be of this kind, which may be one that is not read."""
    if kind in (CATEGORICAL, TEXT):
        return is_written(found)
    if kind == LIST:
        return guess(found) == LIST or pa.types.is_null(found)
    inner = pa.types.is_dictionary(found) or (kind == LABEL and _is_list(found))
    one = found.value_type if inner else found
    number = guess(one) == NUMERIC or bool(pa.types.is_boolean(one) or pa.types.is_null(one))
    return kind not in NUMBERS or number or (kind == LABEL and is_of_text(found))


@functools.lru_cache(256)
def is_written(kind: pa.DataType) -> bool:
    """Whether values of a type can be converted to text; those of a zone that nobody knows cannot."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        return bool(cast(pa.nulls(1, kind), pa.large_string()).type) and not hasattr(kind, "storage_type")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False


def sound(batch: pa.RecordBatch, needed: list[str]) -> pa.RecordBatch:
    """The `needed` columns of a batch, validated: no offset or index points outside its memory.

    pyarrow may read such columns from a damaged Arrow file. Raises ``pyarrow.ArrowInvalid``.
    """
    batch = batch.select(needed)
    for column in batch.columns:
        column.view(as_bytes(column.type)).validate(full=True)
    return batch


class TableBlock(NamedTuple):
    """A batch of rows of a file."""

    batch: pa.RecordBatch
    file: int
    offset: int
    """where the block begins, in the unit of the format"""
    end: int
    raw_position: int
    passed: int = 0
    """rows from `offset` on that were skipped before those of the batch"""
    so_far: ReadSoFar | None = None
    """content read up to the end of this block, if the content of the pass is hashed"""


class BatchParser(TableParser):
    """Converts record batches to chunks."""

    def parse(self, block: TableBlock) -> Parsed:
        """Parse the examples of a batch into arrays of an arena."""
        kinds, batch, kept = self._files[block.file], block.batch, None
        if kinds.where:
            there = {name: batch.column(name) for name in kinds.where.columns}
            kept = kinds.where.rows(there, batch.num_rows)
            batch = take_rows(batch, kept)
        shown = functools.cache(lambda: [column.view(as_bytes(column.type)) for column in batch.columns])

        def line(row: int) -> int:
            return row + 1 if kept is None else block.passed + int(kept[row]) + 1

        def cells(row: int) -> dict[str, Any]:
            return {n: column[row].as_py() for n, column in zip(batch.schema.names, shown(), strict=True)}

        def as_json(row: int) -> bytes:
            return json.dumps(cells(row), default=_readable).encode()

        def describe(row: int, at: int, code: int, before: int) -> BadLine:
            cell = cells(row)[kinds.names[code // line_status.OUTCOMES]]
            return bad_row(self._domain, kinds, cell, code, line(row), as_json(row))

        parsed, noticed = self._encode(batch, kinds, describe, as_json), [*kinds.noticed]
        named = zip(kinds.names, kinds.what, strict=True)
        texts = [name for name, kind in named if kind in (CATEGORICAL, TEXT, LIST)]
        if wrong := {one: found for one in texts if (found := rows_not_utf8(batch.column(one))).size}:
            name = min(wrong, key=lambda one: int(wrong[one][0]))  # the first row with text that is not UTF-8
            count = np.unique(np.concatenate([*wrong.values()])).size
            noticed.append(noted(name, line(int(wrong[name][0])), count))
        there, height = {name: batch.column(name) for name in batch.schema.names}, batch.num_rows
        ids = _texts(there[kinds.ids]) if kinds.ids and kinds.ids in there else None
        sliced = self._reading.sliced
        return parsed._replace(
            excluded=0 if kept is None else block.passed + block.batch.num_rows - len(kept),
            noticed=tuple(noticed),
            ids=kinds.marks.ids(there, height) if kinds.marks else ids,
            cells=[_texts(dates_as_texts(there[one])) if one in there else [""] * height for one in sliced],
        )

    def _encode(
        self,
        batch: pa.RecordBatch,
        kinds: ColumnEncodings,
        describe: Callable[..., BadLine],
        as_json: Callable[[int], bytes],
    ) -> Parsed:
        """The rows of a batch; see `_gather`."""
        reading, count = self._reading, batch.num_rows
        read = [c for c, kind in enumerate(kinds.what) if kind in (*NUMBERS, CATEGORICAL, LIST, TEXT)]
        table, held, most = np.zeros((len(read), rows.FIELDS), np.int64), list[Any](), 0
        table[:, rows.COLUMN] = read
        for row, c in zip(table, read, strict=True):
            own, features = self._describe(row, batch.column(kinds.names[c]), kinds, c)
            held.append(own)
            most += features
        state = np.zeros(line_status.COUNTERS, np.int64)
        used = kinds.codes[read], kinds.keys[read], kinds.seeds[read]
        far, extra = kinds.room_for_rests(most), kinds.extra(reading.naming, self._spans)
        rest = table, used, kinds.mask, self._domain.code(), state, self._bad, far, extra, room_for_sorting()
        shifted = OFFSET_CODE in kinds.codes
        parsed = self._gather(
            lambda arrays: rows.encode(count, arrays, *rest),
            *(describe, as_json, state),
            reading.arenas.columns(count, 2 * most + 16, self._domain.width, shifted),
            kinds.names,
        )
        skipped = [gap + before for before, gap in enumerate(parsed.gaps)]
        return parsed._replace(chunk=kinds.add_absent(kinds.with_rests(parsed.chunk, far, skipped)))

    def _describe(
        self, row: NDArray[np.int64], array: pa.Array, kinds: ColumnEncodings, c: int
    ) -> tuple[object, int]:
        """Describe column `c`; returns what to keep alive, and the maximum number of features."""
        kind, most, bits, listed = kinds.what[c], len(array), None, self._domain.kind == LISTED
        if kind == LABEL and listed != _is_list(array.type):
            wanted = f"but these outputs need {'lists' if listed else LISTS_NEED} as labels"
            raise DataError(f"column '{kinds.names[c]}' has type {array.type}, {wanted}")
        if kind == LABEL:
            array = cast(array, pa.large_list(pa.float64())) if listed else self._labels(array)
        elif kind in columns.NUMBERS:
            array = cast(array, pa.float64())
        elif kind == LIST:
            array = cast(array, pa.large_list(TEXTS))
            most = len(array.values)
        else:
            bits = _finite_in(array)
            row[rows.FINITE] = 0 if bits is None else bits.ctypes.data
            if kind == TEXT:
                texts = cast(texts_of(array, kinds.spelling[c]), TEXTS)
                if texts.null_count:  # a scalar made of Python's makes pyarrow import pandas
                    texts = pc.fill_null(texts, "")
                places, data = _places_in(texts)
                seed, naming = int(kinds.seeds[c]), self._reading.naming
                grams = lists, keys, values = rows_of_bytes(
                    _address(data), places, kinds.grams, seed, naming, c
                )
                row[rows.LISTS], row[rows.DATA] = lists.ctypes.data, keys.ctypes.data
                row[rows.OFFSETS] = values.ctypes.data
                return (grams, bits), most + len(keys)
            different = array.dictionary if pa.types.is_dictionary(array.type) else None
            # keys of its values are computed once if most of them occur, and none is missing
            if different is not None and not different.null_count and len(different) <= len(array):
                texts = cast(texts_of(different, kinds.spelling[c]), TEXTS)
                described, hashed = np.zeros(rows.FIELDS, np.int64), np.empty(len(texts), np.uint64)
                _note_buffers(described, texts)
                if rows.hash_values(described, kinds.seeds[c], hashed, self._reading.naming, c):
                    indices = cast(array.indices, pa.int64())
                    _note_buffers(row, indices)
                    row[rows.FORM], row[rows.OFFSETS] = rows.KEYS, row[rows.DATA]
                    row[rows.DATA] = hashed.ctypes.data
                    return (indices, hashed, bits), most
            array = texts_of(array, kinds.spelling[c])
        _note_buffers(row, array)
        return (array, bits), most

    def _labels(self, array: pa.Array) -> pa.Array:
        words = self._domain.words
        if words is None and not is_of_text(array.type):
            return cast(array, pa.float64())
        texts = cast(array, TEXTS)
        texts = texts if pa.types.is_large_binary(texts.type) else texts.view(pa.large_binary())
        coded = pc.dictionary_encode(texts)
        known = [word.strip(SPACES) for word in coded.dictionary.to_pylist()]
        numbers = np.array([*map(words.number_of if words else number_of, known)], np.float64)
        missing = pc.fill_null(pc.equal(pc.binary_length(texts), 0), True)
        found = np.append(numbers, 0.0)[pc.fill_null(coded.indices, len(known)).to_numpy()]
        return pa.array(found, mask=missing.to_numpy(zero_copy_only=False))


def bad_row(
    domain: Domain, kinds: ColumnEncodings, cell: object, code: int, line: int, raw: bytes
) -> BadLine:
    """The bad line for a row whose text is `raw`, and the `cell` in its bad column."""
    column, outcome = divmod(code, line_status.OUTCOMES)
    found = "null" if cell is None else quote_bytes(_readable(cell).encode())
    if outcome == line_status.SUM_RANGE:
        found = "a larger sum"
    elif outcome in NOT_FINITE and isinstance(cell, int | float | Decimal):
        found = nonfinite(float(cell)) if not abs(float(cell)) < OVERFLOW else found
    expected = expected_of(outcome, kinds.names[column], domain, len(kinds.names))
    if outcome == line_status.NUMBER and found == _NAN:
        found += "; if it stands for a missing number, make it null"
    if outcome == line_status.LABEL_NUMBER and isinstance(cell, str | bytes):
        found += hint_of_words(found.strip("'").encode(), domain)
    return BadLine("", line, column + 1, expected, found, raw)


def number_of(text: bytes) -> float:
    """The number that is the label written so; NaN if it is none."""
    return float(text) if NUMBER.fullmatch(text) else _TRUTHS.get(text.lower(), math.nan)


def _note_buffers(row: NDArray[np.int64], array: pa.Array) -> None:
    """Note where the entries of an array of numbers or texts are, or of lists of these."""
    if pa.types.is_large_list(array.type):
        row[rows.LISTS_VALID], row[rows.LISTS] = map(_address, array.buffers()[:2])
        row[rows.LISTS_FIRST], array = array.offset, array.values
    valid, *_, data = buffers = array.buffers()
    row[rows.FORM] = rows.SHORT if array.type in (pa.string(), pa.binary()) else rows.LONG
    row[rows.OFFSETS], row[rows.DATA] = _address(buffers[1]), _address(data)
    row[rows.VALID], row[rows.FIRST] = _address(valid) if array.null_count else 0, array.offset


def _finite_in(array: pa.Array) -> NDArray[np.uint8] | None:
    """Bits of the rows with a finite number or none; None if all are, or other values."""
    numbers = array.dictionary if pa.types.is_dictionary(array.type) else array
    if not pa.types.is_floating(numbers.type):
        return None
    finite = pc.fill_null(pc.is_finite(cast(numbers, pa.float64())), True).to_numpy(False)
    if finite.all():
        return None
    if numbers is not array:
        finite = np.append(finite, True)[pc.fill_null(array.indices, len(finite)).to_numpy()]
    return np.packbits(finite, bitorder="little")


def _texts(column: pa.Array) -> list[str]:
    cells = column.view(as_bytes(column.type)).to_pylist()
    return ["" if cell is None else _readable(cell) for cell in cells]


def _readable(value: object) -> str:
    """Text for a value that JSON cannot represent; bytes that are not UTF-8 are escaped."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else int(buffer.address)


TEXTS = pa.large_string()
_NEEDLESS = r"(?:\.0+|(\.[0-9]*[1-9])0+)([-+].*)?$"
"""Zeros at the end of a fraction of a second, and the zone after it"""
_DECIMALS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimals of a second that a unit of time has"""


_AS_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
"""The types of bytes in place of those of texts"""
_VIEWED = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""The types in place of views, which pyarrow cannot take or join"""


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text or bytes."""
    return kind in _AS_BYTES or kind in _AS_BYTES.values()


def as_bytes(kind: pa.DataType) -> pa.DataType:
    """The type with bytes in place of strings, which may not be UTF-8."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, as_bytes(kind.value_type), kind.ordered)
    return _with(kind, _AS_BYTES)


def _with(kind: pa.DataType, others: Mapping[pa.DataType, pa.DataType]) -> pa.DataType:
    """The type with other types in place of some, in lists and structs too."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([one.with_type(_with(one.type, others)) for one in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        return (pa.list_ if types.is_list(kind) else pa.large_list)(_with(kind.value_type, others))
    return others.get(kind, kind)


def take_rows(batch: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """These rows of a batch. pyarrow cannot take rows of string views, as polars has them: these are cast."""
    kinds = [_with(one.type, _VIEWED) for one in batch.schema]
    if kinds != batch.schema.types:
        fields = [one.with_type(kind) for one, kind in zip(batch.schema, kinds, strict=True)]
        batch = batch.cast(pa.schema(fields))
    whole = np.ascontiguousarray(rows, np.int64)
    # `pa.array` would import pandas, if it is installed
    return batch.take(pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)]))


def rows_not_utf8(array: pa.Array) -> NDArray[np.int64]:
    """The rows of an array with text that is not UTF-8, ascending."""
    types, texts, found = pa.types, array, list[int]()
    while types.is_dictionary(texts.type) or types.is_list(texts.type) or types.is_large_list(texts.type):
        texts = texts.dictionary if types.is_dictionary(texts.type) else texts.flatten()
    if types.is_string(texts.type) or types.is_large_string(texts.type):
        places, data = _places_in(texts)
        if data and find_undecoded(np.frombuffer(data, np.uint8)[places[0] : places[-1]]).size:
            for row, cell in enumerate(array.view(as_bytes(array.type)).to_pylist()):
                some = cell if isinstance(cell, list) else [cell]
                found += [row] * any(wrong_byte(one or b"") is not None for one in some)
    return np.array(found, np.int64)


def _places_in(texts: pa.Array) -> tuple[NDArray[Any], pa.Buffer | None]:
    """Where texts begin in their data, and the last one ends; and these data."""
    if not len(texts):
        return np.zeros(1, np.int64), None
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int32 if pa.types.is_string(texts.type) else np.int64)
    return places[texts.offset : texts.offset + len(texts) + 1], data


def cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array as `kind`; bytes stay bytes, since they have the same memory layout as strings."""
    if pa.types.is_large_string(kind) and array.type in _AS_BYTES.values():
        kind = pa.large_binary()
    if pa.types.is_dictionary(array.type):  # pyarrow cannot take views
        values, kind = _with(array.type.value_type, _VIEWED), _with(kind, _VIEWED)
        array = pa.DictionaryArray.from_arrays(array.indices, cast(array.dictionary, values))
    return array if array.type == kind else pc.cast(array, kind, safe=False)


@functools.lru_cache(256)
def spelling_of_type(kind: pa.DataType) -> str:
    """What the values of a type are; empty for text, which may be dates or booleans."""
    types = pa.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_boolean(kind):
        return columns.AS_BOOLEAN
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_duration(kind):
        return columns.AS_NUMBER
    if types.is_temporal(kind):
        return columns.AS_DATE
    return "" if is_text(kind) else columns.AS_TEXT


def texts_of(array: pa.Array, spelling: str) -> pa.Array:
    """The values of an array, not of lists, as texts or bytes, in a column whose values are `spelling`."""
    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        return texts_of(cast(array, kind.value_type), spelling)
    if is_text(kind) and spelling not in SPELLED:
        return cast(array, _with(kind, _VIEWED))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_null(kind):
        return cast(array, TEXTS)
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind):
        return iso_texts(array)
    if types.is_floating(kind):
        if pa.types.is_float64(array.type):
            array = cast(array, TEXTS)
        else:
            array = cast(array, pa.float32())
            whole = pc.equal(array, pc.floor(array))
            array = pc.if_else(whole, cast(cast(array, pa.float64()), TEXTS), cast(array, TEXTS))
    elif types.is_duration(kind):
        seconds = cast(cast(array, pa.int64()), TEXTS)
        exponent, nothing = (pa.scalar(text, TEXTS) for text in (f"e-{_DECIMALS[kind.unit]}", ""))
        array = pc.binary_join_element_wise(seconds, exponent, nothing)
    texts = cast(array, TEXTS)
    places, data = _places_in(texts)
    written = np.empty(int(places[-1] - places[0]) + GROWTH * len(texts) + 1, np.uint8)
    ends = np.empty(len(texts) + 1, np.int64)
    spell_all(np.int64(_address(data)), places, written, ends)
    valid = pc.is_valid(texts).to_numpy(zero_copy_only=False)
    bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if texts.null_count else None
    buffers = [bits, pa.py_buffer(ends), pa.py_buffer(written)]
    return pa.Array.from_buffers(texts.type, len(texts), buffers)


def dates_as_texts(array: pa.Array) -> pa.Array:
    """The array, but for dates and times the categories that they are."""
    return texts_of(array, columns.AS_DATE) if spelling_of_type(array.type) == columns.AS_DATE else array


def iso_texts(array: pa.Array) -> pa.Array:
    """Dates and times in ISO 8601, as isoformat() writes them, but without zeros at the end of a fraction.

    >>> some = pa.array([0, 1_500_000], pa.timestamp("us", "+01:00"))
    >>> iso_texts(some).to_pylist()
    ['1970-01-01T01:00:00+01:00', '1970-01-01T01:00:01.5+01:00']
    """
    kind = array.type
    if pa.types.is_date(kind):
        return cast(array, TEXTS)
    coded = pc.dictionary_encode(array)  # which costs less than writing a time again
    if pa.types.is_timestamp(kind) and kind.tz:
        texts = pc.strftime(coded.dictionary, "%Y-%m-%dT%H:%M:%S%Ez")
    else:  # quicker
        texts = pc.replace_substring(cast(coded.dictionary, TEXTS), " ", "T")
    texts = pc.replace_substring_regex(texts, _NEEDLESS, r"\1\2")
    return cast(pa.DictionaryArray.from_arrays(coded.indices, texts), TEXTS)
