"""A value has one spelling, and so one key, whatever the format and the type that hold it."""

import datetime
import json
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from tests.plain import not_compiled
from thresher.data import DataError, open_source, table_source
from thresher.data.chunk import concat
from thresher.data.features.murmur import hash_bytes, seed_of
from thresher.data.formats.tables.spellings import look_at, spelling_of_texts
from thresher.data.layout import Layout
from thresher.data.text.spelling import GROWTH, spell_all


def spelled(*texts: str) -> list[str]:
    written = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(written) + bytes(64), np.uint8)
    places = np.cumsum([0, *map(len, written)])
    out = np.empty(places[-1] + GROWTH * len(texts) + 1, np.uint8)
    ends = np.empty(len(texts) + 1, np.int64)
    spell_all(np.int64(data.ctypes.data), places, out, ends)
    return [out[lo:hi].tobytes().decode() for lo, hi in pairwise(ends)]


SPELLED = {
    "1": "1 1.0 +1 01 1. 1e0 10e-1 1.000 0.1E+1",
    "0": "0 -0 0.0 -0.0 0e5 00",
    "-1.5": "-1.5 -1.50 -15e-1 -01.5",
    "0.000001": "1e-6 0.000001 1E-06 .000001",
    "1e-7": "1e-7 1e-07 0.0000001 1.0E-7",
    "-2.5e-10": "-2.5e-10 -0.00000000025",
    "10000000000000000": "10000000000000000 1e16 1e+16 10000000000000000.0",
    "1152921504606846976": "1152921504606846976 1.152921504606847e+18 1152921504606846976.0",
    "9007199254740993": "9007199254740993",
    "18446744073709551615": "18446744073709551615",
    "100000000000000000000": "100000000000000000000 1e20 1e+20",
    "1e21": "1e21 1000000000000000000000 1e+21",
    "1.2345678901234567890123e22": "12345678901234567890123",
    "true": "true True TRUE",
    "false": "false False FALSE",
    "nan": "nan NaN NAN",
    "-inf": "-inf -Inf",
}
KEPT = ["abc", "1a", "1.2.3", "e5", "1e", "-", ".", "-.", "0x10", "truth", "_", "1e9999999"]
KEPT += ["2024-01-01", "2024-02-29T12:30:00", "2024-01-01 00:00:00.50+01:00", "10:00", "2024-1-1"]


@pytest.mark.parametrize("value", SPELLED)
def test_a_value_has_one_spelling(value: str) -> None:
    ways = [way.replace("_", " ") for way in SPELLED[value].split()]
    assert set(spelled(*ways)) == {value}
    assert spelled(value, f" {value} ") == [value, value]


def test_what_is_no_value_stays_as_it_is() -> None:
    long = ["1" * 41, "Grüße", "", "  ", "9" * 41 + ".5"]
    assert spelled(*KEPT, *long) == [*KEPT, *long]


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_spelled_numbers_are_the_same_numbers(number: float) -> None:
    (text,) = spelled(repr(number))
    assert float(text) == number
    assert spelled(text) == [text]
    assert spelled(repr(number).upper()) == [text]


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        *(("1 2 30", "number"), ("1.0 2.5 1e-7 nan", "number"), ("2.00 1.50", "number")),
        *(("007 123", "text"), ("+49123 +49124", "text"), ("1.1 1.10 1.2", "text"), ("0.5 0 00.5", "text")),
        *(("True False", "boolean"), ("true 1", "text"), ("2024-01-01 2024-01-02T10:00:00", "date")),
        *(("10:30:00 11:00:00", "date"), ("2024-01-01 soon", "text"), ("nan nan", "text"), ("", "text")),
    ],
)
def test_what_the_cells_of_a_column_are(cells: str, what: str) -> None:
    assert look_at(cell.encode() for cell in cells.split())[1] == what
    assert spelling_of_texts(cells.split()) == (what if what != "number" else "text")


COUNT, ZONE = 48, "Asia/Tokyo"
START = datetime.datetime(2024, 1, 1)
HOURS = [START + datetime.timedelta(hours=6 * (k % 7)) for k in range(COUNT)]
TABLE = pa.table(
    {
        "label": [k % 2 for k in range(COUNT)],
        "flag": [None if k % 11 == 0 else k % 3 == 0 for k in range(COUNT)],
        "code": [k % 5 for k in range(COUNT)],
        "maybe": [None if k % 7 == 0 else k % 5 for k in range(COUNT)],
        "large": [2**50 << k % 12 for k in range(COUNT)],
        "small": [10.0 ** -(k % 9) * 3 for k in range(COUNT)],
        "price": [Decimal(50 * (k % 9)).scaleb(-2) for k in range(COUNT)],
        "day": [time.date() for time in HOURS],
        "time": pa.array(HOURS, pa.timestamp("us")),
        "zoned": pa.array(HOURS, pa.timestamp("us", ZONE)),
        "word": ["abc"[k % 3] for k in range(COUNT)],
    }
)
DATES = ("day", "time", "zoned")
CATEGORIES = ("code", "maybe", "large", "small", "price", *DATES)
TYPES = {
    "seconds": {"time": pa.timestamp("s"), "zoned": pa.timestamp("s", ZONE), "day": pa.date64()},
    "nanoseconds": {"time": pa.timestamp("ns"), "zoned": pa.timestamp("ns", ZONE)},
    "floats": {name: pa.float64() for name in ("code", "maybe", "large", "price")},
    "others": {
        "code": pa.float32(),
        "maybe": pa.uint8(),
        "price": pa.decimal256(20, 5),
        "large": pa.uint64(),
    },
    "categories": {name: pa.dictionary(pa.int32(), TABLE.schema.field(name).type) for name in CATEGORIES},
}


def _as_types(types: dict[str, Any]) -> Any:
    def typed(column: Any, kind: Any) -> Any:
        return column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind, safe=False)

    columns = {name: TABLE[name] for name in TABLE.column_names}
    return pa.table(columns | {name: typed(TABLE[name], kind) for name, kind in types.items()})


def _typed(name: str, _: Path) -> Any:
    return _as_types(TYPES[name])


def _written(writer: Callable[[Path], None], name: str) -> Callable[[Path], Any]:
    def written(folder: Path) -> Path:
        writer(folder / name)
        return folder / name

    return written


def _write_arrow(path: Path) -> None:
    with pa.ipc.new_file(path, TABLE.schema) as file:
        file.write_table(TABLE)


def _write_json(path: Path) -> None:
    rows = [
        {name: float(v) if isinstance(v, Decimal) else v for name, v in row.items()}
        for row in WRITTEN.to_pylist()
    ]
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))


FRAME = TABLE.to_pandas()
WRITTEN = pa.table(  # dates as users write them in ISO 8601
    {
        name: [value.isoformat() for value in TABLE[name].to_pylist()] if name in DATES else TABLE[name]
        for name in TABLE.column_names
    }
)
POLARS: Any = pl.from_arrow(TABLE)
FLOATS: Any = pl.from_arrow(WRITTEN).with_columns(pl.col(*TYPES["floats"]).cast(pl.Float64))
FORMATS: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: FRAME,
    "polars": lambda _: POLARS,
    "pyarrow": lambda _: TABLE,
    "rows": lambda _: pa.Table.from_pylist(TABLE.to_pylist()),
    **{name: partial(_typed, name) for name in TYPES},
    "csv of pandas": _written(lambda path: WRITTEN.to_pandas().to_csv(path, index=False), "pandas.csv"),
    "tsv of pandas": _written(
        lambda path: WRITTEN.to_pandas().to_csv(path, sep="\t", index=False), "pandas.tsv"
    ),
    "csv of polars": _written(lambda path: pl.from_arrow(WRITTEN).write_csv(path), "polars.csv"),
    "csv of pyarrow": _written(lambda path: pyarrow.csv.write_csv(WRITTEN, path), "pyarrow.csv"),
    "json": _written(_write_json, "rows.jsonl"),
    "json of polars": _written(lambda path: FLOATS.write_ndjson(path), "polars.jsonl"),
    "parquet": _written(lambda path: pq.write_table(TABLE, path), "table.parquet"),
    "arrow": _written(_write_arrow, "table.arrow"),
}


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_column_that_is_empty_in_the_first_file_is_spelled_as_in_the_next(
    ending: str, tmp_path: Path
) -> None:
    files = [tmp_path / f"{k}.{ending}" for k in range(2)]
    for path, (flag, code) in zip(files, [(None, None), (True, 7)], strict=True):
        rows = [{"label": k, "flag": flag, "code": code} for k in range(2)]
        if ending == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            pq.write_table(pa.Table.from_pylist(rows), path)
    layout = Layout(ending, label="label", categorical=("code",))
    spelling = open_source([*map(str, files)], layout=layout).layout.spelling_of
    assert spelling == {"label": "", "flag": "boolean", "code": "number"}


def opened(data: Any, layout: Any) -> Any:
    if not isinstance(data, Path):
        return table_source(data, layout=replace(layout, format=""))
    form = data.suffix[1:]
    given = layout.in_format(form) if hasattr(layout, "in_format") else replace(layout, format=form)
    return open_source(data, layout=given)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tables")
    return {name: make(folder) for name, make in FORMATS.items()}


def features(data: Any, layout: Any) -> Any:
    return _bits(opened(data, layout))


def _bits(source: Any) -> tuple[bytes, ...]:
    chunk = concat(list(source.chunks()))
    return tuple(np.asarray(one).tobytes() for one in (chunk.indptr, chunk.keys, chunk.values, chunk.labels))


@pytest.mark.parametrize("trained", ["pandas", "floats", "rows", "csv of pandas", "json", "parquet"])
def test_rows_of_any_format_have_the_features_of_the_training_data(trained: str, tables: Any) -> None:
    settled = opened(tables[trained], Layout(categorical=CATEGORIES)).layout
    expected = features(tables["csv of pandas"], Layout(categorical=CATEGORIES))
    assert settled.spelling == ("", "boolean", *["number"] * 5, *["date"] * 3, "text")
    for name, data in tables.items():
        assert features(data, settled) == expected, name


ISO = {
    "2024-02-29": (datetime.date(2024, 2, 29), pa.date32()),
    "2024-02-29T00:00:00": (datetime.datetime(2024, 2, 29), pa.timestamp("ns")),
    "2024-02-29T23:59:59.25": (datetime.datetime(2024, 2, 29, 23, 59, 59, 250_000), pa.timestamp("us")),
    "2024-02-29T23:30:00.100001": (datetime.datetime(2024, 2, 29, 23, 30, 0, 100_001), pa.timestamp("us")),
    "2024-07-01T12:00:00+00:00": (datetime.datetime(2024, 7, 1, 12), pa.timestamp("ms", "UTC")),
    "2024-07-01T14:00:00.5+02:00": (
        datetime.datetime(2024, 7, 1, 12, 0, 0, 500_000),
        pa.timestamp("ns", "Europe/Berlin"),
    ),
    "2024-07-01T09:30:00-02:30": (datetime.datetime(2024, 7, 1, 12), pa.timestamp("s", "-02:30")),
    "10:00:00": (datetime.time(10), pa.time64("ns")),
    "10:00:00.5": (datetime.time(10, 0, 0, 500_000), pa.time32("ms")),
}


@pytest.mark.parametrize("text", ISO)
@pytest.mark.parametrize("coded", [False, True])
def test_dates_and_times_are_categories_in_iso_8601(text: str, coded: bool, tmp_path: Path) -> None:
    value, kind = ISO[text]
    array = pa.array([None, value, value], kind)
    typed = pa.table({"label": [0, 1, 0], "at": array.dictionary_encode() if coded else array})
    for read in (typed, pa.Table.from_batches(typed.to_batches(), typed.schema).slice(1)):
        source = opened(read, Layout(categorical=("at",)))
        keys = np.concatenate([chunk.keys for chunk in source.chunks()])
        assert keys.tolist() == [hash_bytes(text.encode(), seed_of("at"))] * 2
    (tmp_path / "a.csv").write_text(f"label,at\n0,\n1,{text}\n0,{text}\n")
    (tmp_path / "a.jsonl").write_text("".join(f'{{"label": {k % 2}, "at": "{text}"}}\n' for k in range(2)))
    for name in ("a.csv", "a.jsonl"):
        assert features(tmp_path / name, source.layout)[1] == keys.tobytes()


def test_a_time_of_a_zone_that_nobody_knows_is_refused() -> None:
    frame = pa.table({"label": [0, 1], "at": pa.array([0, 1], pa.timestamp("s", "Nowhere/Else"))})
    for layout in (Layout(), Layout(categorical=("at",))):
        with pytest.raises(DataError, match=r"column 'at' .*timestamp\[s, tz=Nowhere/Else\]"):
            opened(frame, layout)


def test_keys_are_hashes_of_the_spelling(tables: dict[str, Any]) -> None:
    chunk = next(iter(opened(tables["csv of pandas"], Layout(categorical=CATEGORIES)).chunks()))
    first = chunk.rows(1, 2).keys.tolist()
    cells = {
        "flag": "false",
        "code": "1",
        "maybe": "1",
        "large": str(2**51),
        "small": "0.30000000000000004",
        "price": "0.5",
    }
    cells |= {
        "day": "2024-01-01",
        "time": "2024-01-01T06:00:00",
        "zoned": "2024-01-01T15:00:00+09:00",
        "word": "b",
    }
    assert sorted(first) == sorted(hash_bytes(cell.encode(), seed_of(name)) for name, cell in cells.items())


@pytest.mark.parametrize(
    "options", [{"interact": ("flag,code", "maybe,x")}, {"text": ("flag", "code", "time")}]
)
def test_products_and_texts_use_the_spelling(options: dict[str, Any], tmp_path: Path) -> None:
    frame = FRAME[["label", "flag", "code", "maybe", "time"]].assign(x=0.5)
    frame.assign(time=[time.isoformat() for time in frame.time]).to_csv(tmp_path / "a.csv", index=False)
    known = (
        {"categorical": ("code", "maybe", "time")} if "interact" in options else {"categorical": ("maybe",)}
    )
    layout = Layout(**known, **options)
    read = opened(tmp_path / "a.csv", layout)
    expected = _bits(read)
    for data in (frame, pl.from_pandas(frame), frame.astype({"code": float}).convert_dtypes()):
        assert features(data, read.layout) == expected
        assert features(data, layout) == expected


def test_texts_are_kept_where_the_column_is_text(tmp_path: Path) -> None:
    codes = ["007", "7", "7.0", "1e3", "True", "2024-01-01 00:00:00"]
    rows = [{"label": k % 2, "zip": code} for k, code in enumerate(codes)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    for data in (tmp_path / "a.jsonl", tmp_path / "a.csv", pd.DataFrame(rows)):
        source = opened(data, Layout(categorical=("zip",)))
        keys = np.concatenate([chunk.keys for chunk in source.chunks()])
        assert keys.tolist() == [hash_bytes(code.encode(), seed_of("zip")) for code in codes]
        assert source.layout.spelling == ("", "text")


def test_quoted_numbers_are_values_where_the_column_is_numbers(tmp_path: Path) -> None:
    layout = opened(pd.DataFrame({"label": [0, 1], "zip": [7, 12]}), Layout(categorical=("zip",))).layout
    (tmp_path / "a.jsonl").write_text('{"label": 0, "zip": "7"}\n{"label": 1, "zip": "012.0"}\n')
    (tmp_path / "a.csv").write_text('label,zip\n0," 7"\n1,12.00\n')
    for name in ("a.jsonl", "a.csv"):
        keys = next(iter(opened(tmp_path / name, layout).chunks())).keys.tolist()
        assert keys == [hash_bytes(code, seed_of("zip")) for code in (b"7", b"12")]


def test_names_are_the_spelling() -> None:
    with not_compiled():
        model = thresher.train(FRAME[["label", "flag", "time"]], categorical=["time"], rule="sgd", names=True)
    names = {str(name) for name in model.weights_frame().feature}
    assert {name for name in names if name.startswith("flag")} == {"flag=true", "flag=false"}
    assert {"time=2024-01-02T00:00:00", "time=2024-01-01T06:00:00"} <= names


LABELS: dict[str, tuple[str, Callable[[int, bool], str]]] = {
    "csv": ("a.csv", lambda code, label: f"{code},{label}\n"),
    "words": ("a.csv", lambda code, label: f"{code}, {str(label).upper()}\n"),
    "json": ("a.jsonl", lambda code, label: json.dumps({"code": code, "label": label}) + "\n"),
    "quoted": ("a.jsonl", lambda code, label: json.dumps({"code": code, "label": str(label)}) + "\n"),
    "numbers": ("a.csv", lambda code, label: f"{code},{float(label)}\n"),
}


@pytest.mark.parametrize("kind", ["frame", *LABELS])
def test_boolean_labels_are_the_classes_1_and_0(kind: str, tmp_path: Path) -> None:
    frame = FRAME[["code"]].assign(label=FRAME.label == 1)
    data: Any = frame
    if kind != "frame":
        name, written = LABELS[kind]
        lines = [written(code, label) for code, label in frame.itertuples(index=False)]
        (tmp_path / name).write_text("code,label\n" * (name == "a.csv") + "".join(lines))
        data = str(tmp_path / name)
    with not_compiled():
        model = thresher.train(data, label="label")
        expected = thresher.train(FRAME[["code", "label"]], label="label")
        assert not model.layout.classes
        assert model.predict(frame).tolist() == expected.predict(frame).tolist()


def test_words_for_booleans_and_numbers_are_found_however_they_are_written(tmp_path: Path) -> None:
    for classes, column in ((("False", "True"), [True, False]), (("3", "7"), [7.0, 3.0])):
        frame = pd.DataFrame({"label": column, "x": [1.0, 2.0]})
        frame.to_csv(tmp_path / "a.csv", index=False)
        for data in (frame, tmp_path / "a.csv"):
            source = opened(data, Layout(classes=classes))
            labels = np.concatenate([chunk.labels for chunk in source.chunks()])
            assert labels.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("kind", ["category", "number", "list"])
def test_whole_numbers_beyond_64_bits(kind: str, tmp_path: Path) -> None:
    numbers = [2**63 - 1, 2**63, 2**64 + 1, -(2**63) - 1, 2**100]
    rows = [{"label": k % 2, "x": [n] if kind == "list" else n} for k, n in enumerate(numbers)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    layout = Layout(categorical=("x",)) if kind == "category" else Layout()
    chunk = next(iter(opened(tmp_path / "a.jsonl", layout).chunks()))
    if kind == "number":
        assert chunk.values.tolist() == [float(np.float32(n)) for n in numbers]
    texts = [str(n) for n in numbers]
    if kind == "category":
        texts = [*texts[:4], "1.267650600228229401496703205376e30"]
    if kind != "number":
        assert chunk.keys.tolist() == [hash_bytes(text.encode(), seed_of("x")) for text in texts]
    if kind != "list":
        assert features(tmp_path / "a.jsonl", layout) == features(_rows_table(rows), layout)
        pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
        assert features(tmp_path / "a.csv", layout) == features(pd.DataFrame(rows), layout)


def _rows_table(rows: list[dict[str, Any]]) -> Any:
    from thresher.data.inputs.any_data import _as_table

    return _as_table(rows, Layout(label="label"))


def test_labels_beyond_64_bits(tmp_path: Path) -> None:
    rows = [{"label": 2**63 << k, "x": 1} for k in range(3)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source in (
        open_source(tmp_path / "a.jsonl", domain="real"),
        table_source(_rows_table(rows), domain="real"),
    ):
        labels = next(iter(source.chunks())).labels
        assert labels.tolist() == [2.0**63, 2.0**64, 2.0**65]


def test_numbers_of_json_are_spelled_as_they_print(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not all text or all numbers"):
        _rows_table([{"label": 1, "x": 2**70}, {"label": 0, "x": "a"}])
    (tmp_path / "a.jsonl").write_text('{"label": 0, "x": 1}\n' * 9 + '{"label": 1, "x": 1.0}\n')
    keys = np.concatenate(
        [chunk.keys for chunk in opened(tmp_path / "a.jsonl", Layout(categorical=("x",))).chunks()]
    )
    assert set(keys.tolist()) == {hash_bytes(b"1", seed_of("x"))}
    numbers = [struct.unpack("d", np.random.default_rng(k).bytes(8))[0] for k in range(200)]
    frame = pd.DataFrame({"label": 1, "x": [x if math.isfinite(x) else 0.0 for x in numbers]})
    keys = np.concatenate([chunk.keys for chunk in opened(frame, Layout(categorical=("x",))).chunks()])
    assert keys.tolist() == [hash_bytes(text.encode(), seed_of("x")) for text in spelled(*map(repr, frame.x))]
