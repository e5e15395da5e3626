"""The values of Arrow columns as texts: one spelling for each value, whatever its type."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.data.columns import AS_BOOLEAN, AS_DATE, AS_NUMBER, AS_TEXT, SPELLED
from thresher.data.formats.tables.spellings import spelling_of_texts
from thresher.data.text.spelling import GROWTH, spell_all
from thresher.data.text.utf8 import undecoded
from thresher.data.usual import spread

TEXTS = pa.large_string()
_HEAD = 1000
"""Number of texts that are examined"""
_DECIMALS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimals of a second that a unit of time has"""


def is_text(kind: Any) -> bool:
    """Whether a type is text or bytes."""
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or _is_bytes(kind)
    )


def _is_bytes(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def as_bytes(kind: Any) -> Any:
    """The type with bytes in place of strings, which may not be UTF-8."""
    types = pa.types
    if types.is_string(kind):
        return pa.binary()
    if types.is_large_string(kind):
        return pa.large_binary()
    if types.is_string_view(kind):
        return pa.binary_view()
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, as_bytes(kind.value_type), kind.ordered)
    if types.is_list(kind):
        return pa.list_(as_bytes(kind.value_type))
    return pa.large_list(as_bytes(kind.value_type)) if types.is_large_list(kind) else kind


def taken(batch: Any, rows: NDArray[np.int64]) -> Any:
    """These rows of a batch. pyarrow cannot take rows of string views, as polars has them: these are cast."""
    kinds = [_without_views(one.type) for one in batch.schema]
    if kinds != batch.schema.types:
        fields = [one.with_type(kind) for one, kind in zip(batch.schema, kinds, strict=True)]
        batch = batch.cast(pa.schema(fields))
    return batch.take(pa.array(rows))


def _without_views(kind: Any) -> Any:
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return TEXTS if types.is_string_view(kind) else pa.large_binary()
    if types.is_list(kind):
        return pa.list_(_without_views(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([one.with_type(_without_views(one.type)) for one in kind])
    return pa.large_list(_without_views(kind.value_type)) if types.is_large_list(kind) else kind


def rows_not_utf8(array: Any) -> tuple[NDArray[np.int64], str]:
    """The rows of an array with text that is not UTF-8, ascending, and what it looks like (see `utf8`)."""
    types, kind, none = pa.types, array.type, np.zeros(0, np.int64)
    if types.is_dictionary(kind):
        wrong, looks = rows_not_utf8(array.dictionary)
        return (
            np.flatnonzero(np.isin(pc.fill_null(array.indices, -1), wrong)) if wrong.size else none
        ), looks
    if types.is_list(kind) or types.is_large_list(kind):
        wrong, looks = rows_not_utf8(array.flatten())
        return np.unique(pc.list_parent_indices(array).to_numpy()[wrong]), looks
    if not (types.is_string(kind) or types.is_large_string(kind)) or not len(array):
        return none, ""
    _, offsets, data = array.buffers()
    size = np.int32 if types.is_string(kind) else np.int64
    ends = np.frombuffer(offsets, size)[array.offset : array.offset + len(array) + 1]
    found = None if data is None else undecoded(np.frombuffer(data, np.uint8)[ends[0] : ends[-1]])
    if found is None:
        return none, ""
    return np.unique(np.searchsorted(ends[1:] - ends[0], found.places, side="right")), found.looks


def cast(array: Any, kind: Any) -> Any:
    """The array as `kind`; bytes stay bytes, since they have the same memory layout as strings."""
    if pa.types.is_large_string(kind) and _is_bytes(array.type):
        kind = pa.large_binary()
    if pa.types.is_dictionary(array.type):  # pyarrow cannot take views
        values, kind = _without_views(array.type.value_type), _without_views(kind)
        array = pa.DictionaryArray.from_arrays(array.indices, cast(array.dictionary, values))
    return array if array.type == kind else pc.cast(array, kind, safe=False)


def picked(array: Any, count: int) -> Any:
    """At most `count` values from all parts of an array; pyarrow cannot take views."""
    kind = _without_views(array.type)
    return (array if kind == array.type else cast(array, kind)).take([*spread(range(len(array)), count)])


def is_of_times(kind: Any) -> bool:
    """Whether a type is that of dates or times, or a dictionary of these."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_temporal(kind) and not pa.types.is_duration(kind))


@functools.lru_cache(256)
def spelling_of_type(kind: Any) -> str:
    """What the values of a type are; empty for text, which may be dates or booleans."""
    types = pa.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_boolean(kind):
        return AS_BOOLEAN
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_duration(kind):
        return AS_NUMBER
    if is_of_times(kind):
        return AS_DATE
    return "" if is_text(kind) else AS_TEXT


def spelling_of_column(head: Any) -> str:
    """What the values of a column of text are, by its first ones."""
    head = head.slice(0, _HEAD)
    return spelling_of_texts(head.view(as_bytes(head.type)).to_pylist())


def texts_of(array: Any, spelling: str) -> Any:
    """The values of an array, not of lists, as texts or bytes, in a column whose values are `spelling`."""
    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        return texts_of(cast(array, kind.value_type), spelling)
    if is_text(kind) and spelling not in SPELLED:
        return cast(array, _without_views(kind))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_date(kind) or types.is_null(kind):
        return cast(array, TEXTS)
    if types.is_floating(kind):
        if pa.types.is_float64(array.type):
            array = cast(array, TEXTS)
        else:
            array = cast(array, pa.float32())
            whole = pc.equal(array, pc.floor(array))
            array = pc.if_else(whole, cast(cast(array, pa.float64()), TEXTS), cast(array, TEXTS))
    elif types.is_timestamp(kind) or types.is_time(kind):
        return _iso_of(array)
    elif types.is_duration(kind):
        seconds = cast(cast(array, pa.int64()), TEXTS)
        exponent, nothing = (pa.scalar(text, TEXTS) for text in (f"e-{_DECIMALS[kind.unit]}", ""))
        array = pc.binary_join_element_wise(seconds, exponent, nothing)
    texts = cast(array, TEXTS)
    if not len(texts):
        return texts
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    written = np.empty(int(places[-1] - places[0]) + GROWTH * len(texts) + 1, np.uint8)
    ends = np.empty(len(texts) + 1, np.int64)
    spell_all(np.int64(data.address if data is not None else 0), places, written, ends)
    valid = pc.is_valid(texts).to_numpy(zero_copy_only=False)
    bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if texts.null_count else None
    buffers = [bits, pa.py_buffer(ends), pa.py_buffer(written)]
    return pa.Array.from_buffers(texts.type, len(texts), buffers)


def _iso_of(array: Any) -> Any:
    """Times as texts of ISO 8601, in UTC, without needless zeros; midnight of a day is the date alone."""
    kind = array.type
    is_stamp = pa.types.is_timestamp(kind)
    texts = cast(cast(array, pa.timestamp(kind.unit)) if is_stamp and kind.tz else array, TEXTS)
    if kind.unit != "s":
        texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    if not is_stamp:
        return texts
    return pc.replace_substring_regex(pc.replace_substring(texts, " ", "T"), r"T00:00:00$", "")


def fraction_in(column: Any) -> float | None:
    """The first number of a column that is not whole; None if there is none."""
    if not pa.types.is_floating(column.type):
        return None
    column = column.drop_null() if column.null_count else column  # which takes longer than all else here
    numbers = column.to_numpy(zero_copy_only=False)
    found = numbers[numbers != np.floor(numbers)]
    return float(found[0]) if len(found) else None
