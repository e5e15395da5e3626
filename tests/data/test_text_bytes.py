"""Byte order marks, NULs and binary files, in every text format."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.reference import read_all, rows_of
from tests.data.samples import SAMPLES
from thresher.data import DataError, concat, open_source
from thresher.data.formats.listing import EXAMPLES
from thresher.data.layout import Layout

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


def test_the_first_line_behind_a_mark_is_told_without_it(tmp_path: Path) -> None:
    path, left = tmp_path / "a", tmp_path / "left"
    path.write_bytes(MARK + b"1 5:x\n1 1:1\n")
    source = open_source(path, on_error=f"quarantine={left}")
    list(source.chunks())
    assert str(source.report.first_bad[0]) == f"{path}:1:5: expected a number after ':', found 'x'"
    assert left.read_bytes() == b"1 5:x\n"


def test_a_mark_is_no_blank_before_a_label(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(MARK + b"2,3 1:1\n 1:1\n")
    chunk = read_all(tmp_path / "a", domain="labels:2-3")
    assert chunk.targets is not None
    assert chunk.targets.tolist() == [[1, 1], [-1, -1]]


@of_texts
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
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


def test_a_nul_in_a_quoted_cell_with_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'label,c\n1,"a\nb"\n1,"a\n\0b"\n1,"c"\n')
    source = open_source(path, on_error="skip", layout=Layout("csv", quoted_newlines=True))
    assert len(concat(list(source.chunks()))) == 2
    (bad,) = source.report.first_bad
    assert str(bad) == f"{path}:5:1: expected text without NUL bytes, found '\\x00b\"'"
    assert source.report.lines == 4


def test_a_nul_in_the_names_of_columns_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"label,x\0\n1,2\n")
    with pytest.raises(DataError, match=r"the header line, 'label,x\\x00', contains a NUL"):
        open_source(tmp_path / "a.csv", on_error="skip")


def a_picture() -> bytes:
    header = struct.pack(">IIBBBBB", 20, 20, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(np.random.default_rng(0).integers(0, 256, 1220, np.uint8)))
    pieces = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


def a_tar(text: bytes) -> bytes:
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("data.svm")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


def a_zip(text: bytes) -> bytes:
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data.svm", text)
    return packed.getvalue()


BINARY = {
    "picture": a_picture(),
    "beginning of a picture": a_picture()[:20],
    "program": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0>\0\x01\0\0\0" + b"\n1 1:1" * 300,
    "random": np.random.default_rng(1).integers(0, 256, 20_000, np.uint8).tobytes(),
    "numbers": np.random.default_rng(1).normal(size=300).tobytes(),
    "tar of text": a_tar(b"1 1:1\n-1 2:1\n" * 1000),
    "zip of text": a_zip(b"1 1:1\n-1 2:1\n" * 1000),
    "a NUL first": b"\x00" + b"1 1:1\n" * 99,
    "a NUL in every line": b"1 1:1\0\n" * 99,
    "UTF-16": ("1 1:1\n" * 99).encode("utf-16"),
    "UTF-16 without a mark": ("1 1:1\n" * 99).encode("utf-16-le"),
}


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize("ending", ["svm", "vw", "csv", "jsonl"])
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
