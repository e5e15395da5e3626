"""Sources: blocks, formats and compression; the first error in a file of another format names it."""

import gzip
import io
import os
import re
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from functools import partial, partialmethod
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

from tests.covering import covering
from tests.data import tables
from tests.data.forms import some_text
from tests.data.reference import read_all, rows_of, same, written
from tests.data.samples import PACKERS
from thresher.data import (
    Chunk,
    DataError,
    MemorySource,
    Report,
    StreamPosition,
    concat,
    open_source,
    table_source,
)
from thresher.data.files import blocks as blocks_module
from thresher.data.files.content import hash_file
from thresher.data.files.streams import Previews
from thresher.data.formats.listing import EXAMPLES, FORMATS
from thresher.data.formats.tables.column_statistics import columns_seen
from thresher.data.layout import Layout
from thresher.data.source import Source, SourceWrapper
from thresher.data.sources.reader import Parsed


def listed(path: object, start: StreamPosition | None = None, **options: object) -> list[Chunk]:
    return list(open_source(path, on_error="skip", **options).chunks(start))  # type: ignore[arg-type]


def test_position_ends_at_the_size(tmp_path: Path) -> None:
    names = [written(tmp_path, gzip.compress(some_text(300)), "a"), written(tmp_path, some_text(300), "b")]
    source = open_source(names, on_error="skip", block_bytes=500)
    seen = [source.position_bytes for _ in source.chunks()]
    assert seen == sorted(seen)
    assert seen[-1] == source.total_bytes == sum(os.path.getsize(name) for name in names)
    assert source.rereadable


def test_chunks_stay_as_they_were_while_others_are_made(tmp_path: Path) -> None:
    path = written(tmp_path, some_text(2000))
    source = open_source(path, on_error="skip", block_bytes=800, threads=2)
    kept, copies = [], []
    for k, chunk in enumerate(source.chunks()):
        if k % 3 == 0:
            kept.append(chunk.rows(1, len(chunk)))
            copies.append(rows_of(chunk)[1:])
    assert [rows_of(chunk) for chunk in kept] == copies


def test_memory_is_bounded(tmp_path: Path) -> None:
    line = b"1 " + b" ".join(b"%d:0.5" % k for k in range(1, 200)) + b"\n"
    path = written(tmp_path, line * 10_000)
    source = open_source(path, block_bytes=1 << 16, threads=2)
    rows = 0
    tracemalloc.start()
    try:
        for chunk in source.chunks():
            rows += len(chunk)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20  # the text takes 15 MB, its chunks 24 MB
    finally:
        tracemalloc.stop()
    assert rows == 10_000


def test_stopping_early_leaves_no_thread(tmp_path: Path) -> None:
    path = written(tmp_path, some_text(3000))
    before = threading.active_count()
    for _ in range(5):
        chunks = open_source(path, on_error="skip", block_bytes=500, threads=3).chunks()
        next(chunks)
        chunks.close()
    assert threading.active_count() == before


def test_chunks_before_a_bad_line_come_first(tmp_path: Path) -> None:
    path = written(tmp_path, b"1 1:1\n" * 500 + b"1 1:oops\n" + b"1 1:1\n" * 500)
    source = open_source(path, block_bytes=600, threads=3)
    before, chunks = threading.active_count(), list[Chunk]()
    with pytest.raises(DataError, match=r":501:5: expected a number after ':', found 'oops'"):
        chunks.extend(source.chunks())
    assert sum(len(chunk) for chunk in chunks) == 500
    assert source.report.lines == 500
    assert threading.active_count() == before


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz", "zstd"])
@pytest.mark.parametrize("harm", ["cut", "changed", "followed"])
def test_damaged_compression_is_an_error(tmp_path: Path, kind: str, harm: str) -> None:
    packed = PACKERS[kind](some_text(3000))
    if harm == "cut":
        packed = packed[: len(packed) * 2 // 3]
    elif harm == "changed":
        middle = len(packed) // 2
        packed = (
            packed[:middle]
            + bytes(byte ^ 0xFF for byte in packed[middle : middle + 40])
            + packed[middle + 40 :]
        )
    else:
        packed += b"something else that is no member of it"
    path = written(tmp_path, packed, "data.packed")
    with pytest.raises(DataError, match=r"data\.packed") as caught:
        listed(path, block_bytes=1000)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_is_said_before_reading(tmp_path: Path) -> None:
    good = written(tmp_path, b"1 1:1\n")
    written(tmp_path, b"", "empty")
    cases = {
        str(tmp_path / "missing"): "No such file",
        str(tmp_path / "no*match"): "no file matches",
        str(tmp_path): "a directory",
        str(tmp_path / "empty"): "the file is empty",
    }
    for name, reason in cases.items():
        with pytest.raises(DataError, match=reason):
            open_source([good, name])
    with pytest.raises(DataError, match="no data"):
        open_source([])
    with pytest.raises(DataError, match="only once"):
        open_source(["-", "-"])
    with pytest.raises(DataError, match="no label domain"):
        list(open_source(good, domain="colour").chunks())
    with pytest.raises(DataError, match="on-error must be fail, skip or quarantine=FILE"):
        open_source(good, on_error="quarantine=")
    with pytest.raises(DataError, match="one of the data files"):
        open_source(good, on_error=f"quarantine={good}")
    with pytest.raises(DataError, match="cannot write"):
        list(open_source(good, on_error=f"quarantine={tmp_path / 'no' / 'folder'}").chunks())


def test_empty_inside_and_binary(tmp_path: Path) -> None:
    cases = {
        "packed": (gzip.compress(b""), "empty"),
        "picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a binary file"),
        "comments": (b"# nothing\n\n# more\n", "no examples"),
        "newline": (b"\n", "no examples"),
    }
    for name, (content, reason) in cases.items():
        with pytest.raises(DataError, match=f"{name}.*{reason}"):
            listed(written(tmp_path, content, name))
    with pytest.raises(DataError, match=r"no examples \(blank or comment lines: 1, bad lines: 2\); first:"):
        listed(written(tmp_path, b"x\n\ny", "all"))


def test_globs_are_sorted_and_literal_names_win(tmp_path: Path) -> None:
    for k in (3, 1, 2):
        written(tmp_path, b"1 %d:1\n" % k, f"part{k}.svm")
    written(tmp_path, b"1 9:1\n", "odd[1].svm")
    assert read_all(str(tmp_path / "part*.svm")).keys.tolist() == [1, 2, 3]
    assert read_all(tmp_path / "odd[1].svm").keys.tolist() == [9]


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = some_text(500)
    for content in (text, gzip.compress(text)):
        fake = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdin", fake)
        source = open_source("-", on_error="skip", block_bytes=1000)
        assert source.total_bytes is None
        assert not source.rereadable
        expected = listed(written(tmp_path, text), block_bytes=1000)
        assert all(same(a, b) for a, b in zip(source.chunks(), expected, strict=True))
        with pytest.raises(DataError, match="only once"):
            next(source.chunks())


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    text, pipe = some_text(500), tmp_path / "pipe"
    os.mkfifo(pipe)
    source = open_source(pipe, on_error="skip", block_bytes=1000)
    assert (source.rereadable, source.total_bytes) == (False, None)
    feeder = threading.Thread(target=pipe.write_bytes, args=(text,))
    feeder.start()
    expected = listed(written(tmp_path, text), block_bytes=1000)
    assert all(same(a, b) for a, b in zip(source.chunks(), expected, strict=True))
    feeder.join()
    with pytest.raises(DataError, match="only once"):
        next(source.chunks())


def test_lines_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = partialmethod(blocks_module.BlockReader.__init__, longest=1000)
    monkeypatch.setattr(blocks_module.BlockReader, "__init__", short)
    long = b"1 " + b"1:1 " * 400
    for tail in (b"\n", b""):
        text = b"1 1:1\n" + long + b"\nx\n" + b"-1 2:2\n" * 30 + long + tail
        path = written(tmp_path, text)
        for block in (10, 64, 999):
            source = open_source(path, on_error=f"quarantine={tmp_path / 'q'}", block_bytes=block, threads=2)
            assert len(concat(list(source.chunks()))) == 31
            assert source.report.lines == 34
            assert [bad.line for bad in source.report.first_bad] == [2, 3, 34]
            assert (tmp_path / "q").read_bytes() == long + b"\nx\n" + long + b"\n"
        with pytest.raises(DataError, match=r":2:.* expected a line of at most 64 MB, found a longer one"):
            list(open_source(path, block_bytes=64).chunks())


def test_a_full_disk_under_quarantine_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, b"1 1:1\nx\n")
    with pytest.raises(DataError, match=r"quarantine file.*: the disk is full"):
        list(open_source(path, on_error="quarantine=/dev/full").chunks())


def test_a_source_that_changes_the_chunks_of_another_is_like_it_in_all_else() -> None:
    plain = {name for name, one in vars(Source).items() if name[0] != "_" and not callable(one)}
    assert {"layout", "content", "nameable", "origin"} < plain
    source = type("Other", (Source,), dict.fromkeys(plain))()
    for name in plain:
        setattr(source, name, object())
    through = SourceWrapper(source)
    assert through.origin is None is not source.origin
    for name in {*plain, "names"} - {"origin"}:
        assert getattr(through, name) is getattr(source, name), name
    for name in ("report", "keep_hash", "namer"):
        setattr(through, name, object())
        assert getattr(through, name) is getattr(source, name), name


def test_chunks_and_rows_give_each_other() -> None:
    class Rows(Source):
        def rows(self, start: StreamPosition | None = None) -> Iterator[Parsed]:
            yield Parsed(Chunk.of_rows([(1, {1: 2.0})]), gaps=(0,))
            yield Parsed(concat([]), gaps=(0,))

    (chunk,) = Rows().chunks()
    assert rows_of(chunk) == rows_of(Chunk.of_rows([(1, {1: 2.0})]))
    (found,) = MemorySource(chunk).rows()
    assert (rows_of(found.chunk), found.gaps, found.ids) == (rows_of(chunk), (), None)


def test_memory_source() -> None:
    chunks = [Chunk.of_rows([(1, {1: 2.0})]), Chunk.of_rows([(-1, {3: 1.0}), (1, {})])]
    source = MemorySource(chunks, domain="binary")
    got = list(source.chunks())
    assert [rows_of(chunk) for chunk in got] == [rows_of(chunk) for chunk in chunks]
    assert source.report.examples == source.report.lines == 3
    assert source.position_bytes == source.total_bytes
    assert same(next(source.chunks(got[0].after)), got[1])
    with pytest.raises(DataError, match=r"example 1: expected a label -1, 0 or 1 .*, found 5"):
        MemorySource(Chunk.of_rows([(5, {})]), domain="binary")
    with pytest.raises(DataError, match="no examples"):
        MemorySource([])


def test_report_survives_json() -> None:
    import json

    source = Report(lines=3, examples=1, skipped=2)
    from thresher.data import BadLine

    source.first_bad = [BadLine("f", 1, 2, "a", "b", b"\xff\0")]
    assert Report.from_dict(json.loads(json.dumps(source.as_dict()))) == source


def test_imports_stay_light() -> None:
    code = (
        "import sys, thresher.data as d; d.Chunk, d.DataError, d.open_source, d.MemorySource, d.open_cache\n"
        "heavy = {'pyarrow', 'numba', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "d.open_source(sys.argv[0]) if 0 else None\n"
        "import thresher.data.formats.lines.svmlight, thresher.data.sources.parsed\n"
        "assert 'pyarrow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("how", ["plain", "found"])
def test_chunks_that_were_used_are_freed(tmp_path: Path, how: str) -> None:
    source = open_source(written(tmp_path, some_text(6000)), on_error="skip", block_bytes=500, threads=2)
    if how == "found":
        source.finder = lambda chunk: replace(chunk, found=(None, chunk.keys, chunk.values))
    used = list[Any]()
    for chunk in source.chunks():
        used.append(weakref.ref(chunk.values))
        assert sum(one() is not None for one in used) <= 2
    assert len(used) > 100


def test_threads_find_what_they_are_asked_for_while_chunks_are_used(tmp_path: Path) -> None:
    path, asked = written(tmp_path, some_text(3000)), threading.Event()

    def finder(chunk: Chunk) -> Chunk:
        asked.set()
        return replace(chunk, found=len(chunk))

    source = open_source(path, on_error="skip", block_bytes=500, threads=2)
    source.finder, found = finder, list[Any]()
    for chunk in source.chunks():
        assert asked.wait(60)
        found.append(chunk.found)
        assert chunk.found in (None, len(chunk))
    assert any(found)


def test_small_tables_are_read_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"label": [0, 1] * 500, "x": np.arange(1000) / 8, "c": ["a", "b", None, "d"] * 250})
    stream = table_source(table.to_reader(max_chunksize=300), layout=Layout(label="label"))
    expected = concat([*stream.chunks()])
    start = Mock()
    monkeypatch.setattr("threading.Thread.start", start)
    found = concat([*table_source(table, layout=Layout(label="label")).chunks()])
    assert not start.called
    assert same(found, expected)
    wrong = pa.table({"label": [0, 7], "x": [1.0, 2.0]})
    with pytest.raises(DataError, match="the table:2"):
        [*table_source(wrong, layout=Layout(label="label")).chunks()]


LOOKED_AT = {
    "842302,M,17.99": "CSV: try --format csv",
    "label;size": "CSV: try --format csv",
    "y\tx, z": "TSV: try --format tsv",
    '{"label": 1, "x": 2}': "JSON lines: try --format jsonl",
    '[{"label": 1}]': "JSON in several lines: write one object per line",
    '{"label": 1,': "JSON in several lines: write one object per line",
    "1 |f 9:0.0627 14": "VW text: try --format vw",
}
BINARY = {
    b"PAR1\0": "Parquet: try --format parquet",
    b"ARROW1\0\0": "Arrow: try --format arrow",
    b"PK\x03\x04\x14\0": "zip, npz or Excel: unpack it",
    b"\x93NUMPY\x01\0": "a NumPy array",
    b"\x80\x04\x95\0": "perhaps a pickle",
    b"\x01\0\0\0": "supported compression: gzip, bz2, xz, zstd",
}


def error_of(path: Path, form: str = "", on_error: str = "fail") -> str:
    with pytest.raises(DataError) as caught:
        list(open_source(path, layout=Layout(form), on_error=on_error).chunks())
    return str(caught.value)


@pytest.mark.parametrize(("line", "on_error"), covering([*LOOKED_AT], ["fail", "skip"]))
def test_a_line_that_is_no_svmlight(tmp_path: Path, line: str, on_error: str) -> None:
    (tmp_path / "some.data.gz").write_bytes(gzip.compress(f"{line}\n".encode() * 3))
    message = error_of(tmp_path / "some.data.gz", on_error=on_error)
    assert "some.data.gz:1:" in message
    assert "; this looks like " in message
    assert LOOKED_AT[line] in message


@pytest.mark.parametrize(("magic", "remedy"), BINARY.items())
def test_a_binary_file(tmp_path: Path, magic: bytes, remedy: str) -> None:
    (tmp_path / "some.dat").write_bytes(magic + bytes(range(32)) * 9)
    told = f"some.dat: a binary file, not text ({remedy}"
    assert told in error_of(tmp_path / "some.dat")
    with pytest.raises(DataError, match=re.escape(told)):
        open_source(tmp_path / "some.dat", layout=Layout(label="y"))


@pytest.mark.parametrize("form", EXAMPLES)
def test_examples_of_a_format_read_as_svmlight(tmp_path: Path, form: str) -> None:
    (tmp_path / "some.txt").write_text(EXAMPLES[form])
    if form == "svmlight":
        assert sum(len(chunk) for chunk in open_source(tmp_path / "some.txt").chunks()) == 2
        return
    assert f": try --format {form}" in error_of(tmp_path / "some.txt")
    assert FORMATS[form].title in error_of(tmp_path / "some.txt")


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "vw"])
def test_svmlight_read_as_another_format(tmp_path: Path, form: str) -> None:
    (tmp_path / "some.txt").write_text("1 1:0.5 3:1\n-1 2:1\n")
    assert error_of(tmp_path / "some.txt", form).endswith("; this looks like svmlight: try --format svmlight")


@pytest.mark.parametrize("row", ["0,0,1", "0,0.5,1"])
def test_a_table_without_a_header(tmp_path: Path, row: str) -> None:
    (tmp_path / "some.csv").write_text(f"{row}\n" * 3)
    hint = "the first line looks like a row, not column names: try --no-header --label N"
    assert error_of(tmp_path / "some.csv").endswith(hint)


@pytest.mark.parametrize("text", ["1 1:0.5\n0,0.64,1\n", "1 1:0.5\n1 3:x\n", "1 3:x\n", "spam 3:1\n"])
def test_a_bad_line_of_the_right_format_gets_no_such_hint(tmp_path: Path, text: str) -> None:
    (tmp_path / "some.txt").write_text(text)
    assert "looks like" not in error_of(tmp_path / "some.txt")


def test_names_of_columns_get_no_such_hint(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text("y,x\n1,2\n")
    assert error_of(tmp_path / "some.csv").endswith("the columns are: y, x")


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("label,x\n7,1.5\n", Layout("csv")),
        ("7,1.5\n", Layout("csv", header=False, label="1")),
        ("7;1.5\n", Layout("csv", header=False, label="1", delimiter=";")),
        ('{"label": 7, "x": 1.5}\n', Layout("jsonl")),
    ],
)
def test_a_bad_label_in_a_file_that_is_read_rightly(tmp_path: Path, text: str, layout: Layout) -> None:
    (tmp_path / "some.dat").write_text(text)
    with pytest.raises(DataError, match="expected a label") as caught:
        list(open_source(tmp_path / "some.dat", layout=layout).chunks())
    assert "looks like" not in str(caught.value)


def test_a_bad_label_in_a_table_in_memory() -> None:
    with pytest.raises(DataError, match="expected a label") as caught:
        list(table_source(pa.table({"label": [7, 1], "x": [1.5, 2.5]})).chunks())
    assert "looks like" not in str(caught.value)


PACKED: dict[str, Any] = {"gz": gzip.compress, "zst": partial(pa.compress, codec="zstd", asbytes=True)}
TEXTS = [*(name for name in tables.WRITERS if name[5:] in ("csv", "tsv", "jsonl")), "data.svm", "data.vw"]
LOOKED_INTO = [*tables.WRITERS, "data.zstd.arrow", "data.lz4.arrow", "data.svm", "data.vw"]


@pytest.mark.parametrize("name", [*LOOKED_INTO, *(f"{name}.{how}" for name in TEXTS for how in PACKED)])
def test_a_file_is_opened_once_to_look_and_once_to_read_and_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plain, _, how = name.rpartition(".") if name.endswith((*PACKED,)) else (name, "", "")
    path, opened = tmp_path / plain, list[str]()
    rows = [{"label": 1 - 2 * (k % 2), "size": k / 8, "kind": "abc"[k % 3]} for k in range(40)]
    lines = [f"{row['label']} |n size:{row['size']} {row['kind']}\n" for row in rows]
    if plain in tables.WRITERS:
        tables.WRITERS[plain](rows, path)
    elif plain.endswith(".arrow"):
        table = pa.Table.from_pylist(rows)
        options = pa.ipc.IpcWriteOptions(compression=plain.split(".")[1])
        with pa.ipc.new_file(path, table.schema, options=options) as file:
            file.write_table(table)
    else:
        path.write_text("".join(lines if plain == "data.vw" else ["1 1:2\n", "-1 2:1\n"] * 20))
    if how:
        packed, path = PACKED[how](path.read_bytes()), tmp_path / name
        path.write_bytes(packed)

    def counting(real: Any) -> Any:
        def opens(file: Any, *given: Any, **named: Any) -> Any:
            opened.extend([name] * (str(file) == str(path)))
            return real(file, *given, **named)

        return opens

    monkeypatch.setattr("builtins.open", counting(open))
    monkeypatch.setattr(pa, "OSFile", counting(pa.OSFile))
    monkeypatch.setattr("thresher.data.files.content.SETTLED", 0)  # or new files are hashed twice
    previews = Previews()
    open_source(path, layout=Layout(classes=("-1", "1")), previews=previews)
    source = open_source(path, previews=previews)
    source.keep_hash = True
    lines_only = plain in ("data.svm", "data.vw")
    assert columns_seen(source) or lines_only
    assert len(list(source.chunks())) > 0
    assert len(opened) == (1 if lines_only else 2)
    assert source.content == [hash_file(str(path))]
