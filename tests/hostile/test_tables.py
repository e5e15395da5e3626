"""Parquet and Arrow: damaged bytes, cuts at many places, odd types, wrong footers."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hostile.conftest import Tried
from tests.hostile.trials import outcome
from thresher.data import DataError, open_source
from thresher.data.layout import Layout

ROWS = 40
SHORTER = (16, 32, 24)
"""possible numbers of rows in some of the batches of 16, 16 and 8"""
NAMES = ["d.parquet", "d.arrow", "d.arrows"]
every_kind = pytest.mark.parametrize("name", NAMES)


def write(table: Any, path: Path, batch: int = 16) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=batch)
    else:
        with (pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream)(path, table.schema) as file:
            file.write_table(table, batch)
    return path


def ordinary() -> Any:
    random = np.random.default_rng(0)
    words = [f"w{k % 7}" for k in range(ROWS)]
    return pa.table(
        {
            "label": random.integers(0, 2, ROWS),
            "x": [None if k % 5 == 0 else k / 3 for k in range(ROWS)],
            "word": words,
            "code": pa.array(words).dictionary_encode(),
            "tags": [[word, "t"] if k % 3 else None for k, word in enumerate(words)],
        }
    )


def damaged(path: Path, trials: int, seed: int) -> int:
    """How many of the damaged copies were rejected; the others must have all rows.

    An Arrow file may have lost whole batches, since only its footer records their number.
    """
    data, random, refused = path.read_bytes(), np.random.default_rng(seed), 0
    for _ in range(trials):
        changed = bytearray(data)
        for at in random.integers(0, len(data), random.choice([1, 2, 8])).tolist():
            changed[at] ^= 1 << int(random.integers(8))
        if random.random() < 0.2:  # move eight bytes elsewhere
            a, b = random.integers(0, len(data) - 8, 2).tolist()
            changed[a : a + 8] = changed[b : b + 8]
        path.write_bytes(changed)
        found = outcome(path)
        assert isinstance(found, str) or found == ROWS or (path.suffix == ".arrow" and found in SHORTER)
        refused += found != ROWS
    return refused


@every_kind
def test_bits_that_are_wrong(folder: Path, name: str, tried: Tried) -> None:
    tried(150)
    assert damaged(write(ordinary(), Path(name)), 150, 1) > 10


@pytest.mark.hostile
@every_kind
@pytest.mark.parametrize("seed", range(4))
def test_many_bits_that_are_wrong(folder: Path, name: str, seed: int, tried: Tried) -> None:
    tried(5000)
    assert damaged(write(ordinary(), Path(name)), 5000, seed) > 500


def cuts(path: Path, step: int) -> int:
    data, tried = path.read_bytes(), 0
    for size in range(0, len(data), step):
        path.write_bytes(data[:size])
        assert isinstance(outcome(path), str), size
        tried += 1
    return tried


@every_kind
def test_a_file_cut_off_anywhere_is_no_shorter_file(folder: Path, name: str, tried: Tried) -> None:
    tried(cuts(write(ordinary(), Path(name)), 61))


def test_footers_that_lie(folder: Path, tried: Tried) -> None:
    """A reader begins with the length of the footer."""
    for name, place in (("d.parquet", -8), ("d.arrow", -10)):
        path = write(ordinary(), Path(name))
        data = path.read_bytes()
        (right,) = struct.unpack_from("<i", data, len(data) + place)
        for wrong in (-(2**31), -1, 0, 1, right - 1, right + 1, right * 2, len(data), 2**31 - 1):
            changed = bytearray(data)
            struct.pack_into("<i", changed, len(data) + place, wrong)
            path.write_bytes(changed)
            assert isinstance(outcome(path), str), wrong
            tried(1)


@pytest.mark.parametrize("name", ["d.arrow", "d.arrows"])
def test_a_head_with_a_wrong_bit(folder: Path, name: str, tried: Tried) -> None:
    """This includes dictionaries with other numbers."""
    path = write(ordinary(), Path(name))
    data = path.read_bytes()
    for at in range(0, 700, 3):
        changed = bytearray(data)
        changed[at] ^= 1 << 4
        path.write_bytes(changed)
        found = outcome(path)
        assert isinstance(found, str) or found == ROWS, at
        tried(1)


def test_messages_of_a_stream_that_are_missing(folder: Path, tried: Tried) -> None:
    """Without a dictionary or the schema, nothing can be read; without a batch, the stream is shorter."""
    path = write(ordinary(), Path("d.arrows"))
    messages = list(pa.ipc.MessageReader.open_stream(path.read_bytes()))
    for missing in range(len(messages)):
        kept = [one.serialize().to_pybytes() for k, one in enumerate(messages) if k != missing]
        path.write_bytes(b"".join(kept) + b"\xff\xff\xff\xff\0\0\0\0")
        found = outcome(path)
        batch = messages[missing].type == "record batch"
        assert isinstance(found, int) == batch, found
        tried(1)


def nested(depth: int) -> Any:
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)
    return kind


def _column(array: Any) -> Callable[[], Any]:
    return lambda: pa.table({"label": pa.array([0, 1] * 5), "c": array()})


_INDICES = pa.array([0, 1] * 5, pa.int8())
ODD: dict[str, Callable[[], Any]] = {
    "no rows": lambda: pa.table({"label": pa.array([], pa.int64()), "x": pa.array([], pa.float64())}),
    "no columns": lambda: pa.table({}),
    "a label alone": lambda: pa.table({"label": [0, 1]}),
    "no names": lambda: pa.table([[0, 1], [1, 2]], names=["label", ""]),
    "names of bytes that break lines": lambda: pa.table(
        [[0, 1], [None, 2]], names=["label", "a\nb\0\x1b[31m"]
    ),
    "null labels": lambda: pa.table({"label": pa.nulls(9, pa.int64()), "x": [1.0] * 9}),
    "NaN and infinity": _column(
        lambda: pa.array([float("nan"), float("inf"), float("-inf"), 1e300, -0.0] * 2)
    ),
    "a dictionary of nothing": _column(
        lambda: pa.DictionaryArray.from_arrays(pa.nulls(10, pa.int8()), pa.array([], pa.string()))
    ),
    "a dictionary with a null": _column(
        lambda: pa.DictionaryArray.from_arrays(_INDICES, pa.array(["a", None]))
    ),
    "a dictionary that repeats itself": _column(
        lambda: pa.DictionaryArray.from_arrays(_INDICES, pa.array(["a", "a"]))
    ),
    "a dictionary of numbers": _column(
        lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1] * 5, pa.uint64()), pa.array([1.5, 2.5]))
    ),
    "a dictionary of lists": _column(
        lambda: pa.DictionaryArray.from_arrays(_INDICES, pa.array([["a"], ["b"]]))
    ),
    "lists in lists": _column(lambda: pa.array([None] * 10, nested(30))),
    "structs": _column(lambda: pa.array([{"a": {"b": [1]}}] * 10)),
    "maps": _column(lambda: pa.array([[("a", 1)]] * 10, pa.map_(pa.string(), pa.int64()))),
    "huge decimals": _column(lambda: pa.array([10**60] * 10, pa.decimal256(70, 2))),
    "times": _column(lambda: pa.array([-(2**63), 2**63 - 1] * 5, pa.int64()).cast(pa.timestamp("us", "UTC"))),
    "whole numbers beyond float64": _column(lambda: pa.array([2**64 - 1, 2**53 + 1] * 5, pa.uint64())),
    "bytes of one width": _column(lambda: pa.array([b"abc"] * 10, pa.binary(3))),
    "texts that are no UTF-8": _column(lambda: pa.array([b"\xff\xfe"] * 10).view(pa.string())),
    "huge texts": _column(lambda: pa.array(["x" * (1 << 20), "y"] * 5)),
    "lists of one length": _column(lambda: pa.array([["a", "b"]] * 10, pa.list_(pa.string(), 2))),
    "views": _column(lambda: pa.array(["a long text, longer than twelve"] * 10, pa.string_view())),
    "runs": _column(lambda: pa.RunEndEncodedArray.from_arrays(pa.array([10], pa.int32()), pa.array([1.5]))),
    "a million rows of nothing": lambda: pa.table({"label": np.zeros(1 << 20, np.int8)}),
}
"""Odd tables, by what is odd about them."""


SAID = [
    Layout(numeric=("c",)),
    Layout(categorical=("c",)),
    Layout(text=("c",)),
    Layout(bins=("c",)),
    Layout(ignore=("c",)),
]


@pytest.mark.parametrize("what", ODD)
def test_tables_that_are_odd(folder: Path, what: str, tried: Tried) -> None:
    """Each is read or rejected with a one-line error, as every kind of column that a user may choose."""
    table = ODD[what]()
    for name in NAMES:
        try:
            path = write(table, Path(name), 1 << 20)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
            continue  # the format does not support such tables
        layouts = [Layout()]
        if "c" in table.column_names:
            layouts += SAID
        for layout in layouts:
            found = outcome(path, layout=layout)
            assert isinstance(found, str) or found == len(table)
            if layout.ignore:
                assert found == len(table)
        tried(len(layouts))


@every_kind
def test_another_file_of_another_type(folder: Path, name: str, tried: Tried) -> None:
    """For all pairs of odd columns, the second file fits the first, or is rejected with its name."""
    kinds = [what for what, made in ODD.items() if "c" in made().column_names and what != "huge texts"]
    written = {}
    for k, what in enumerate(kinds):
        try:
            written[what] = write(ODD[what](), Path(f"{k}-{name}"))
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
            continue
    for first in written.values():
        for second in written.values():
            found = both(first, second)
            assert found == 20 or "\n" not in str(found)
            tried(1)


def both(first: Path, second: Path) -> int | str:
    try:
        source = open_source([first, second], on_error="skip", threads=1)
        return sum(len(chunk) for chunk in source.chunks()) + source.report.skipped
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("given", NAMES)
@every_kind
def test_a_file_that_is_called_something_else(folder: Path, name: str, given: str) -> None:
    write(ordinary(), Path(name)).rename(f"other{Path(given).suffix}")
    found = outcome(Path(f"other{Path(given).suffix}"))
    assert isinstance(found, str) or found == ROWS
