"""Lines of 100 MB, rows of a million features, and files that unpack to far more than their size."""

import bz2
import gzip
import json
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hostile.conftest import Tried
from tests.hostile.trials import outcome, peak_memory
from thresher.data import open_source
from thresher.data.layout import Layout

LONGEST = 64 << 20
_READ = """
import sys
from thresher.data import DataError, open_source
try:
    source = open_source({name!r}, on_error="skip", threads=2)
    print(sum(len(chunk) for chunk in source.chunks()), source.report.skipped)
except DataError as error:
    print(error)
"""
LONG = {
    "d.svm": (b"1 1:1\n", b"1 " + b"1:1 " * 10),
    "d.vw": (b"1 |a x\n", b"1 |a " + b"x " * 20),
    "d.csv": (b"label,x\n1,2\n", b"1," + b"2" * 40),
    "d.tsv": (b"label\tx\n1\t2\n", b"1\t" + b"2" * 40),
    "d.jsonl": (b'{"label":1,"x":2}\n', b'{"label":1,"x":"' + b"x" * 40),
}


@pytest.mark.hostile
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("size", [LONGEST + (1 << 20), 100 << 20])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_of_a_hundred_megabytes(folder: Path, name: str, size: int, end: bytes) -> None:
    """It is one bad line, and the lines before and after it are read, within bounded memory."""
    head, long = LONG[name]
    with open(name, "wb") as file:
        file.write(head + long + b" " * (size - len(long)) + end)
        file.write(head.splitlines(keepends=True)[-1] if end else b"")
    assert peak_memory(_READ.format(name=name), folder, 800) == f"{2 if end else 1} 1\n"


MANY = 1_000_000
IN_CI = ["d.svm", "d.parquet"]
OTHERS = ["d.vw", "d.jsonl", "d.csv", "d.tsv", "d.arrow", "d.arrows"]


def _write(name: str, many: int) -> Layout:
    """Write one row of `many` features; returns the layout to read it."""
    if name.endswith((".parquet", ".arrow", ".arrows")):
        table = pa.table({"label": [1], "tags": [[f"t{k}" for k in range(many)]]})
        if name.endswith(".parquet"):
            pq.write_table(table, name)
        else:
            with (pa.ipc.new_file if name.endswith(".arrow") else pa.ipc.new_stream)(
                name, table.schema
            ) as file:
                file.write_table(table)
        return Layout()
    text = {
        ".svm": lambda: "1 " + " ".join(f"{k}:1" for k in range(1, many + 1)),
        ".vw": lambda: "1 |a " + " ".join(f"f{k}" for k in range(many)),
        ".jsonl": lambda: json.dumps({"label": 1, "tags": [f"t{k}" for k in range(many)]}),
        ".csv": lambda: "label,text\n1," + " ".join(f"w{k}" for k in range(many)),
        ".tsv": lambda: "label\ttext\n1\t" + " ".join(f"w{k}" for k in range(many)),
    }
    ending = Path(name).suffix
    Path(name).write_text(text[ending]() + "\n")
    return Layout(text=("text",)) if ending in (".csv", ".tsv") else Layout()


@pytest.mark.parametrize("name", [*IN_CI, *(pytest.param(n, marks=pytest.mark.hostile) for n in OTHERS)])
def test_a_row_of_a_million_features(folder: Path, name: str) -> None:
    layout = _write(name, MANY)
    (chunk,) = open_source(name, layout=layout).chunks()
    assert (len(chunk), chunk.nnz) == (1, MANY)


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda text: bytes(pa.compress(text, codec="zstd", asbytes=True)),
}
BOMBS = {
    "one endless line": (
        b"1:1 ",
        "expected a line of at most 64 MB|0 1|no examples (blank or comment lines: 0, bad lines: 1)",
    ),
    "digits": (b"1", "no examples (blank or comment lines: 0, bad lines: 1)"),
    "zeros": (b"\0", "a binary file|no examples (blank or comment lines: 0, bad lines: 1)"),
    "blank lines": (b"\n", "bad lines: 0"),
}


def _bomb(folder: Path, ending: str, what: str, size: int, most: int) -> None:
    content, told = BOMBS[what]
    piece = content * ((16 << 20) // len(content))
    (folder / f"bomb.svm.{ending}").write_bytes(PACKS[ending](piece) * (size >> 24))
    assert (folder / f"bomb.svm.{ending}").stat().st_size < size // 200
    said = peak_memory(_READ.format(name=f"bomb.svm.{ending}"), folder, most)
    assert any(words in said for words in told.split("|")), said


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_bomb_of_one_line(folder: Path, ending: str) -> None:
    _bomb(folder, ending, "one endless line", 200 << 20, 600)


@pytest.mark.hostile
@pytest.mark.parametrize("ending", PACKS)
@pytest.mark.parametrize("what", BOMBS)
def test_a_bomb_of_a_gigabyte(folder: Path, ending: str, what: str) -> None:
    _bomb(folder, ending, what, 1 << 30, 600)


def _wide_xz(text: bytes, bits: int) -> bytes:
    """An xz file whose header requires a dictionary of 2^(bits / 2 + 12) bytes."""
    packed = bytearray(lzma.compress(text, preset=0))
    place = packed.index(b"\x21\x01", 12) + 2
    end = 12 + (packed[12] + 1) * 4 - 4
    packed[place] = bits
    packed[end : end + 4] = struct.pack("<I", zlib.crc32(bytes(packed[12:end])))
    return bytes(packed)


def test_the_memory_that_xz_asks_for_is_bounded(folder: Path, tried: Tried) -> None:
    for bits in (28, 32):  # 64 MB, as with xz -9, and 256 MB
        Path("d.svm.xz").write_bytes(_wide_xz(b"1 1:1\n", bits))
        assert outcome(Path("d.svm.xz")) == 1
    for bits in (36, 39, 40):
        Path("d.svm.xz").write_bytes(_wide_xz(b"1 1:1\n", bits))
        assert "Memory usage limit" in str(outcome(Path("d.svm.xz")))
    tried(5)


@pytest.mark.parametrize("ending", PACKS)
def test_odd_members(folder: Path, ending: str, tried: Tried) -> None:
    """Thousands of members, empty ones, nested archives, cuts at every byte, garbage after the end."""
    pack, path = PACKS[ending], Path(f"d.svm.{ending}")
    row = b"1 1:1\n"
    path.write_bytes(pack(row) * 2000)
    assert outcome(path) == 2000
    path.write_bytes(pack(b"") * 2000 + pack(row))
    assert outcome(path) == 1
    path.write_bytes(pack(pack(row)))
    assert isinstance(outcome(path), str)
    whole = pack(row * 40)
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        assert isinstance(outcome(path), str), cut
    path.write_bytes(whole + b"litter that is no member")
    assert isinstance(outcome(path), str)
    tried(len(whole) + 3)
