"""Text that is not UTF-8 is learned as its bytes, and told of with its place."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from tests.data.reference import read_all
from thresher.data import DataError, open_source
from thresher.data.report import Report
from thresher.data.text import utf8
from thresher.learning.diagnostics.findings import TroubleWarning

PIECES = [
    b"a",
    b"\n",
    b"\xc3",
    b"\xa9",
    b"\xe2",
    b"\x82",
    b"\xf0",
    b"\x9f",
    b"\x98",
    b"\xed",
    b"\xa0",
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
    monkeypatch.setattr(utf8, "SLICE", size)
    choose = random.Random(7)
    for _ in range(3000):
        text = b"".join(choose.choices(PIECES, k=choose.randint(0, 12))) + b"\n"
        lines = text.split(b"\n")
        found = utf8.undecoded(np.frombuffer(text, np.uint8))
        places = [] if found is None else found.places.tolist()
        told = sorted({text[:place].count(b"\n") for place in places})
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
    count, at, looks = one.kind.split()
    first = {"csv": ("5", "6"), "tsv": ("5", "6"), "vw": ("4", "9")}.get(name[2:], ("4", "0"))
    assert (one.place, at) == (f"{path}:{first[0]}", first[1])
    assert (count, looks, one.column) == ("6", utf8.WINDOWS, "" if at != "0" else "a")
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


@pytest.mark.parametrize(
    ("text", "looks"),
    [("Grüße".encode() * 3 + b"\xff", utf8.MIXED), (b"\x81", utf8.LATIN1), (b"gr\xfc\xdfe", utf8.WINDOWS)],
)
def test_what_it_looks_like(text: bytes, looks: str) -> None:
    found = utf8.undecoded(np.frombuffer(text, np.uint8))
    assert found is not None
    assert found.looks == looks


def test_ids_and_comments_of_svmlight_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "t.svm").write_bytes(b"1 1:1 # caf\xe9\n0 2:1\n")
    source = open_source(tmp_path / "t.svm")
    list(source.chunks())
    assert source.report.noticed == []


def test_json_must_be_utf8(tmp_path: Path) -> None:
    bad = b'{"label": 1, "a": "caf\xe9"}\n'
    (tmp_path / "t.jsonl").write_bytes(bad)
    with pytest.raises(DataError, match=r"is a JSON object in UTF-8; convert it with iconv -f WINDOWS-1252"):
        read_all(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_bytes(b'{"label": 0, "a": "tea"}\n' + bad)
    with pytest.raises(DataError, match=r"t.jsonl:2:\d+: expected UTF-8, .*; convert it with iconv -f WIN"):
        read_all(tmp_path / "t.jsonl")


@pytest.mark.usefixtures("plainly")
def test_training_and_predicting_warn(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write(path, "latin-1")
    with pytest.warns(TroubleWarning, match=r"6 lines have text that is not UTF-8 \(.*t.csv:5:6\), so"):
        model = thresher.train(path)
    with pytest.warns(TroubleWarning, match="convert it with iconv -f WINDOWS-1252 -t UTF-8"):
        model.predict(path)
