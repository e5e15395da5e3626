"""Headers that are too large are refused unsplit; text that is not UTF-8 is read as its bytes."""

import gc
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thresher.data import DataError, open_source, table_source
from thresher.data.columns import LONGEST_NAME, MOST_COLUMNS
from thresher.data.files.streams import LONGEST_HEAD
from thresher.data.formats.tables import delimited
from thresher.data.formats.tables.column_statistics import columns_seen
from thresher.data.layout import Layout

gc.freeze()
NOT_TEXT = b"caf\xe9"


def refused(path: Path, on_error: str, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        open_source(path, on_error=on_error, **options)
    return str(caught.value)


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("header", [True, False])
def test_too_many_columns_are_refused_before_they_are_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_error: str, header: bool
) -> None:
    def split(*_: Any) -> Any:
        raise AssertionError("the line is split")

    monkeypatch.setattr(delimited, "cells_of", split)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"label" + b"," * MOST_COLUMNS + b"\n1,2\n", 1))
    layout = Layout("csv", header=header, label="1")
    assert f": {MOST_COLUMNS + 1:,} columns (at most " in refused(path, on_error, layout=layout)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_first_line_that_is_too_long_is_refused(tmp_path: Path, ending: str, on_error: str) -> None:
    path = tmp_path / f"bomb.{ending}.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(b"\n" + b"x" * (LONGEST_HEAD + 1) + b"\nlabel,a\n1,2\n")
    assert refused(path, on_error).endswith(": its first line is longer than 32 MB")


@pytest.mark.parametrize("text", ["label,{}\n1,2\n", '{{"label": 1, "{}": 2}}\n'])
def test_a_name_that_is_too_long_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / ("t.csv" if text.startswith("label") else "t.jsonl")
    path.write_text(text.format("x" * (LONGEST_NAME + 1)))
    assert f"the name of a column has {LONGEST_NAME + 1:,} characters" in refused(path, "skip")
    table = pa.table({"label": [1], "x" * (LONGEST_NAME + 1): [2]})
    with pytest.raises(DataError, match="the name of a column has"):
        table_source(table)


def test_objects_with_too_many_fields_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"label":1' + b',"":0' * MOST_COLUMNS + b"}\n")
    assert f": {MOST_COLUMNS + 1:,} columns (at most " in refused(path, "skip")


def test_a_long_header_after_blank_lines_is_read_whole(tmp_path: Path) -> None:
    path, count = tmp_path / "t.csv", 3 * delimited.HEAD // 16
    names = ["label", *(f"column{k:09}" for k in range(count))]
    path.write_text("\n\n" + ",".join(names) + "\n1" + ",2" * count + "\n")
    source = open_source(path)
    assert source.layout.columns == tuple(names)
    (chunk,) = source.chunks()
    assert chunk.nnz == count


def test_a_bad_row_of_many_cells_is_counted_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"label,a\n1,2\n1" + b"," * (MOST_COLUMNS + 5) + b"\n")
    source = open_source(path, on_error="skip")
    assert [len(chunk) for chunk in source.chunks()] == [1]
    assert source.report.first_bad[0].found == "more than 1,000,000"


def texts(words: list[bytes], kind: Any = None) -> Any:
    """A string column of bytes that nobody has checked."""
    return pa.array(words, pa.binary()).view(kind or pa.string())


@pytest.mark.parametrize("kind", ["parquet", "arrow", "memory"])
def test_text_that_is_not_utf8_is_read_wherever_it_stands(tmp_path: Path, kind: str) -> None:
    words = [NOT_TEXT, b"tea"] * 2
    column, lists = texts(words), pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), texts(words))
    table = pa.table({"label": [1, -1, 1, -1], "c": column, "l": lists})
    if kind != "parquet":
        coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1]), texts(words[:2]))
        table = table.append_column("d", coded)
    source: Any
    if kind == "memory":
        source = table_source(table)
    else:
        sink = io.BytesIO()
        if kind == "parquet":
            pq.write_table(table, sink)
        else:
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        path = tmp_path / f"t.{kind}"
        path.write_bytes(sink.getvalue())
        source = open_source(path)
    seen = {one.name: one for one in columns_seen(source)}
    assert seen["c"].distinct == 2
    chunk = next(iter(source.chunks()))
    as_csv = tmp_path / "t.csv"
    as_csv.write_bytes(b"label,c\n" + b"".join(b"1,%s\n" % word for word in words))
    keys = next(iter(open_source(as_csv).chunks())).keys
    assert np.isin(keys, chunk.keys).all()


def test_json_lines_that_are_not_utf8_are_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"label": 1, "c": "a"}\n{"label": -1, "c": "' + NOT_TEXT + b'"}\n')
    source = open_source(path, on_error="skip")
    assert [len(chunk) for chunk in source.chunks()] == [1]
    (bad,) = source.report.first_bad
    assert (bad.line, bad.column, bad.expected) == (2, 24, "UTF-8")
    assert bad.found.startswith("'\\xe9")
