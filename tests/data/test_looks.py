"""The first error in a file of another format names that format and how to read it."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from thresher.data import DataError, open_source, table_source
from thresher.data.formats.listing import EXAMPLES, FORMATS
from thresher.data.layout import Layout

NUMBERED = "--no-header --label N, the number of the label column, 1 to"
LINES = {
    "0,0.64,0.64,1": f"CSV: try --format csv {NUMBERED} 4",
    "842302,M,17.99": f"CSV: try --format csv {NUMBERED} 3",
    "label,size,colour": "CSV: try --format csv --label COL",
    "0;0.64;1": f"CSV with the delimiter ;: try --format csv --delimiter ';' {NUMBERED} 3",
    "0\t1\t\t2": f"TSV: try --format tsv {NUMBERED} 4",
    "y\tx": "TSV: try --format tsv --label COL",
    " 0.00632  18.00   2.310": f"(awk '{{$1=$1}}1' OFS=,) and try --format csv {NUMBERED} 3",
    "@RELATION spam": "ARFF: remove the header",
    "% 1. Title: Credit Approval": "ARFF: remove the header",
    "<!DOCTYPE html>": "XML or HTML, which is not supported",
    "<?xml version='1.0'?>": "XML or HTML, which is not supported",
    '{"label": 1, "x": 2}': "JSON lines: try --format jsonl --label COL",
    '[{"label": 1}]': "a JSON array: write one object per line",
    "1 |f 9:0.0627 14": "VW text: try --format vw",
    "1 1:3:0.5 2:7:1": "LibFFM: try --format libffm",
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


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize(("line", "remedy"), LINES.items())
def test_a_line_that_is_no_svmlight(tmp_path: Path, line: str, remedy: str, on_error: str) -> None:
    (tmp_path / "some.data.gz").write_bytes(gzip.compress(f"{line}\n".encode() * 3))
    message = error_of(tmp_path / "some.data.gz", on_error=on_error)
    assert "some.data.gz:1:" in message
    assert "; this looks like " in message
    assert remedy in message


@pytest.mark.parametrize(("magic", "remedy"), BINARY.items())
def test_a_binary_file(tmp_path: Path, magic: bytes, remedy: str) -> None:
    (tmp_path / "some.dat").write_bytes(magic + bytes(range(32)) * 9)
    assert f"some.dat: a binary file, not text ({remedy}" in error_of(tmp_path / "some.dat")


@pytest.mark.parametrize("form", EXAMPLES)
def test_examples_of_a_format_read_as_svmlight(tmp_path: Path, form: str) -> None:
    (tmp_path / "some.txt").write_text(EXAMPLES[form])
    if form == "svmlight":
        assert sum(len(chunk) for chunk in open_source(tmp_path / "some.txt").chunks()) == 2
        return
    assert f": try --format {form}" in error_of(tmp_path / "some.txt")
    assert FORMATS[form].title in error_of(tmp_path / "some.txt")


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "vw", "libffm"])
def test_svmlight_read_as_another_format(tmp_path: Path, form: str) -> None:
    (tmp_path / "some.txt").write_text("1 1:0.5 3:1\n-1 2:1\n")
    assert error_of(tmp_path / "some.txt", form).endswith("; this looks like svmlight: try --format svmlight")


@pytest.mark.parametrize("row", ["0,0,1", "0,0.5,1"])
def test_a_table_without_a_header(tmp_path: Path, row: str) -> None:
    (tmp_path / "some.csv").write_text(f"{row}\n" * 3)
    assert f"a row, not column names: try --format csv {NUMBERED} 3" in error_of(tmp_path / "some.csv")


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


def test_arff_is_recognised_without_a_header_too(tmp_path: Path) -> None:
    (tmp_path / "credit.arff").write_text("% Credit\n@relation credit\n@data\n1,2\n")
    with pytest.raises(DataError, match="there is 1 column; this looks like ARFF: remove the header"):
        open_source(tmp_path / "credit.arff", layout=Layout("csv", header=False, label="2"))
