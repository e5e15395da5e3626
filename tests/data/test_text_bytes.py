"""Bytes of text files: marks, NULs, binary files, no UTF-8, headers that are too large."""

import gzip
import io
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from tests.covering import covering
from tests.data.reference import read_all, rows_of
from tests.data.samples import SAMPLES
from thresher.data import DataError, concat, open_source, report, table_source
from thresher.data.columns import LONGEST_NAME, MOST_COLUMNS
from thresher.data.files.streams import LONGEST_HEAD
from thresher.data.formats.listing import EXAMPLES
from thresher.data.formats.tables import delimited
from thresher.data.formats.tables.column_statistics import columns_seen
from thresher.data.layout import Layout
from thresher.data.report import Report
from thresher.learning.diagnostics.findings import TroubleWarning

MARK = b"\xef\xbb\xbf"
TEXTS = tuple(EXAMPLES)
of_texts = pytest.mark.parametrize("name", TEXTS)


def text_of(name: str, count: int, seed: int = 0) -> bytes:
    sample = SAMPLES[name]
    return b"".join(line + b"\n" for line in [*sample.head, *sample.good(count, seed)])


def opened(name: str, paths: list[Path], **options: Any) -> Any:
    return open_source(paths, layout=replace(SAMPLES[name].layout, format=name), **options)


@of_texts
def test_a_byte_order_mark_begins_a_file_and_is_no_part_of_its_text(tmp_path: Path, name: str) -> None:
    plain, marked = [tmp_path / "a", tmp_path / "b"], [tmp_path / "c", tmp_path / "d"]
    for k in range(2):
        plain[k].write_bytes(text_of(name, 40, k))
        text = MARK + text_of(name, 40, k)
        marked[k].write_bytes(gzip.compress(text) if k else text)
    expected = rows_of(concat(list(opened(name, plain).chunks())))
    for threads in (1, 3):
        source = opened(name, marked, threads=threads, block_bytes=300)
        chunks = list(source.chunks())
        assert rows_of(concat(chunks)) == expected
        report = source.report
        assert (report.examples, report.skipped) == (len(expected), 0)
        for place in (chunks[0].after, chunks[len(chunks) // 2].after, chunks[-1].place):
            assert place is not None
            source.report.examples = 1
            rest = concat(list(source.chunks(place)))
            assert rows_of(rest) == expected[len(expected) - len(rest) :]
            assert len(rest) < len(expected)
    assert [chunk.place.offset for chunk in chunks if chunk.place.line == 0] == [0, 0]


@of_texts
def test_a_byte_order_mark_elsewhere_is_a_bad_line(tmp_path: Path, name: str) -> None:
    lines = text_of(name, 9).splitlines(keepends=True)
    line = len(lines) - 2
    lines[line] = MARK + (b"1" if name in ("csv", "tsv") else b"") + lines[line]
    (tmp_path / "a").write_bytes(b"".join(lines))
    source = opened(name, [tmp_path / "a"], on_error="skip")
    assert len(concat(list(source.chunks()))) == 8
    assert [bad.line for bad in source.report.first_bad] == [line + 1]


def test_a_mark_is_no_part_of_its_line(tmp_path: Path) -> None:
    path, left = tmp_path / "a", tmp_path / "left"
    path.write_bytes(MARK + b"1 5:x\n1 1:1\n")
    source = open_source(path, on_error=f"quarantine={left}")
    list(source.chunks())
    assert str(source.report.first_bad[0]) == f"{path}:1:5: expected a number after ':', found 'x'"
    assert left.read_bytes() == b"1 5:x\n"
    (tmp_path / "a").write_bytes(MARK + b"2,3 1:1\n 1:1\n")
    chunk = read_all(tmp_path / "a", domain="labels:2-3")
    assert chunk.targets.tolist() == [[1, 1], [-1, -1]]


@pytest.mark.parametrize(("name", "place"), covering(TEXTS, [0.0, 0.5, 1.0]))
def test_a_nul_makes_one_line_bad_and_no_more(tmp_path: Path, name: str, place: float) -> None:
    lines = text_of(name, 300).splitlines(keepends=True)
    first = len(SAMPLES[name].head)
    wrong = first + round(place * 299)
    at = max(1, len(lines[wrong]) // 2)
    lines[wrong] = lines[wrong][:at] + b"\0" + lines[wrong][at:]
    path, left = tmp_path / "a", tmp_path / "left"
    path.write_bytes(b"".join(lines))
    source = opened(name, [path], on_error=f"quarantine={left}", block_bytes=500, threads=2)
    rows = rows_of(concat(list(source.chunks())))
    (tmp_path / "b").write_bytes(b"".join(lines[:wrong] + lines[wrong + 1 :]))
    assert rows == rows_of(concat(list(opened(name, [tmp_path / "b"]).chunks())))
    assert left.read_bytes() == lines[wrong]
    (bad,) = source.report.first_bad
    assert bad.line == wrong + 1
    assert str(bad).isprintable()
    with pytest.raises(DataError, match=f":{wrong + 1}:"):
        list(opened(name, [path]).chunks())


def test_a_nul_in_a_quoted_cell_or_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'label,c\n1,"a"\n1,"\0b"\n1,"c"\n')
    source = open_source(path, on_error="skip", layout=Layout("csv"))
    assert len(concat(list(source.chunks()))) == 2
    (bad,) = source.report.first_bad
    assert str(bad) == f"{path}:3:4: expected text without NUL bytes, found '\\x00b\"'"
    assert source.report.lines == 4
    (tmp_path / "a.csv").write_bytes(b"label,x\0\n1,2\n")
    with pytest.raises(DataError, match=r"the header line, 'label,x\\x00', contains a NUL"):
        open_source(tmp_path / "a.csv", on_error="skip")


PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + np.random.default_rng(0).bytes(1200)
BINARY = {
    "picture": PICTURE,
    "program": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0>\0\x01\0\0\0" + b"\n1 1:1" * 300,
    "random": np.random.default_rng(1).integers(0, 256, 20_000, np.uint8).tobytes(),
    "archive": b"PK\x03\x04\x14\0" + bytes(20) + b"1 1:1\n" * 1000,
    "a NUL first": b"\x00" + b"1 1:1\n" * 99,
    "a NUL in every line": b"1 1:1\0\n" * 99,
    "UTF-16 without a mark": ("1 1:1\n" * 99).encode("utf-16-le"),
}


@pytest.mark.parametrize(("kind", "ending"), covering([*BINARY], ["svm", "vw", "csv", "jsonl"]))
def test_a_binary_file_is_told_in_one_line(tmp_path: Path, kind: str, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    for on_error in ("fail", "skip"):
        path.write_bytes(BINARY[kind])
        with pytest.raises(DataError, match=f"^{os.fspath(path)}: a binary file, not text"):
            list(open_source(path, on_error=on_error).chunks())


def test_text_with_few_nuls_is_no_binary_file(tmp_path: Path) -> None:
    for text in (
        b"1 \0:1\n1 1:1\n",
        b"1 1:1\n" * 2 + b"\0" * 7 + b"\n1 1:1\n",
        b"1 1:1\n" * 99 + bytes(4096),
    ):
        (tmp_path / "a").write_bytes(text)
        source = open_source(tmp_path / "a", on_error="skip")
        assert len(concat(list(source.chunks()))) == text.count(b"1 1:1")
        assert source.report.skipped == 1


PIECES = [
    *(b"a", b"\n", b"\xc3", b"\xa9", b"\xe2", b"\x82", b"\xf0", b"\x9f", b"\x98", b"\xed", b"\xa0"),
    b"\xe0",
]


PIECES += [b"\xf4", b"\x90", b"\xc0", b"\xff", *(one.encode() for one in ("é", "€", "😀"))]


def decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("size", [8, 1 << 15])
def test_the_lines_are_those_that_do_not_decode(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "SLICE", size)
    choose = random.Random(7)
    for _ in range(3000):
        text = b"".join(choose.choices(PIECES, k=choose.randint(0, 12))) + b"\n"
        lines = text.split(b"\n")
        places = report.find_undecoded(np.frombuffer(text, np.uint8)).tolist()
        told = [text[:place].count(b"\n") for place in places]
        assert told == [k for k, line in enumerate(lines) if not decodes(line)], text
        assert all(text[place] > 127 for place in places)


ROWS = [(k % 2, "café" if k % 7 == 3 else "tea", k) for k in range(40)]
NAMES = ["t.csv", "t.tsv", "t.vw", "t.parquet", "t.arrow", "list.parquet", "codes.arrow"]


def write(path: Path, encoding: str) -> None:
    if path.suffix == ".vw":
        path.write_bytes("".join(f"{2 * y - 1} |n {a} v:{v}\n" for y, a, v in ROWS).encode(encoding))
    elif path.suffix in (".csv", ".tsv"):
        text = "label,a,v\n" + "".join(f"{y},{a},{v}\n" for y, a, v in ROWS)
        path.write_bytes(text.replace(",", "\t" if path.suffix == ".tsv" else ",").encode(encoding))
    else:
        texts: Any = pa.array([a.encode(encoding) for _, a, _ in ROWS], pa.binary()).view(pa.string())
        if path.stem == "list":
            texts = pa.ListArray.from_arrays(pa.array(range(41), pa.int32()), texts)
        if path.stem == "codes":
            codes = pa.array([int(a != "café") for _, a, _ in ROWS], pa.int32())
            texts = pa.DictionaryArray.from_arrays(codes, texts.slice(3, 2))
        table = pa.table({"label": [y for y, _, _ in ROWS], "a": texts})
        if path.suffix == ".parquet":
            pq.write_table(table, path)
            return
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_place_and_the_number_are_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path, "latin-1")
    found = open_source(path)
    assert sum(len(chunk) for chunk in found.chunks()) == len(ROWS), "learned as before"
    (one,) = found.report.noticed
    count, at = one.kind.split()
    first = {"csv": ("5", "6"), "tsv": ("5", "6"), "vw": ("4", "9")}.get(name[2:], ("4", "0"))
    assert (one.place, at) == (f"{path}:{first[0]}", first[1])
    assert (count, one.column) == ("6", "" if at != "0" else "a")
    write(path, "utf-8")
    found = open_source(path)
    list(found.chunks())
    assert found.report.noticed == []


def test_blocks_and_files_count_together(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "latin-1")
    (tmp_path / "u.csv").write_bytes("label,a,v\n1,Grüße,2\n".encode() + b"0,\x81,3\n")
    for block, threads in ((1, 1), (64, 2), (4096, 1)):
        source = open_source([tmp_path / "t.csv", tmp_path / "u.csv"], block_bytes=block, threads=threads)
        list(source.chunks())
        (one,) = source.report.noticed
        assert (one.place, one.kind.split()[:2]) == (f"{tmp_path}/t.csv:5", ["7", "6"])
        assert Report.from_dict(source.report.as_dict()) == source.report


def test_json_must_be_utf8(tmp_path: Path) -> None:
    bad = b'{"label": 1, "a": "caf\xe9"}\n'
    (tmp_path / "t.jsonl").write_bytes(bad)
    with pytest.raises(DataError, match=r"is a JSON object in UTF-8; convert Latin-1 .iconv -f LATIN1"):
        read_all(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_bytes(b'{"label": 0, "a": "tea"}\n' + bad)
    with pytest.raises(DataError, match=r"t.jsonl:2:\d+: expected UTF-8, .*; convert Latin-1 .iconv"):
        read_all(tmp_path / "t.jsonl")


@pytest.mark.usefixtures("plainly")
def test_training_and_predicting_warn(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write(path, "latin-1")
    with pytest.warns(TroubleWarning, match=r"text of 6 lines is not UTF-8 \(the first: .*t.csv:5:6\), so"):
        model = thresher.train(path)
    with pytest.warns(TroubleWarning, match="convert Latin-1 .iconv -f LATIN1 -t UTF-8"):
        model.predict(path)


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
