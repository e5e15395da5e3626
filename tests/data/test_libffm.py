"""LibFFM text: the meaning of fields, and messages about bad lines."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.lines.libffm import parse_libffm_line, some_libffm
from tests.data.reference import bits, parse_text, read_all, rows_of, same, written
from thresher.data import DataError, open_source
from thresher.data.features.names import find_names
from thresher.data.layout import Layout

LAYOUT = Layout("libffm")


def test_without_its_fields_a_line_is_svmlight_text(tmp_path: Path) -> None:
    text = b"1 0:3:0.5 7:12:1e-3\n-1 2:2:1 1:12345678:0.12345678 # 1:1:1\n0\n"
    plain = b"1 3:0.5 12:1e-3\n-1 2:1 12345678:0.12345678\n0\n"
    found = read_all(written(tmp_path, text, "data.ffm"))
    assert rows_of(found) == rows_of(read_all(written(tmp_path, plain)))
    assert same(found, read_all(written(tmp_path, text, "data.libffm.txt"), layout=LAYOUT))


@given(
    seed=st.integers(0, 2**32), domain=st.sampled_from(["binary", "real", "open"]), block=st.integers(1, 300)
)
def test_rows_are_those_of_the_slow_parser(
    tmp_path_factory: pytest.TempPathFactory, seed: int, domain: str, block: int
) -> None:
    lines = some_libffm(9, seed)
    if domain == "open":
        lines[::2] = [line.partition(b" ")[2] for line in lines[::2]]
    text = b"\n".join(lines)
    path = written(tmp_path_factory.mktemp("ffm"), text, "data.ffm")
    expected, bad, _ = parse_text(text, domain, partial(parse_libffm_line, layout=LAYOUT))
    source = open_source(path, domain=domain, block_bytes=block, on_error="skip")
    assert [row for chunk in source.chunks() for row in rows_of(chunk)] == bits(expected)
    assert (source.report.skipped, source.report.merged) == (len(bad), sum(row.merged for row in expected))


def test_fields_are_the_namespaces_of_interactions(tmp_path: Path) -> None:
    text = b"1 1:3:0.5 2:7:2 2:9:0.25 1:4:1\n"
    path = written(tmp_path, text, "data.ffm")
    chunk = read_all(path, layout=Layout("libffm", interact=("1,2",)))
    own = [3, 4, 7, 9]
    made = dict(zip(chunk.keys.tolist(), chunk.values.tolist(), strict=True))
    assert [made[key] for key in own] == [0.5, 1, 2, 0.25]
    assert sorted(value for key, value in made.items() if key not in own) == [0.125, 0.25, 1, 2]
    names = find_names(open_source(path, layout=Layout("libffm", interact=("1,2",))), chunk.keys)
    products = {names.get(key) for key in made if key not in own}
    assert products == {"3 × 7", "3 × 9", "4 × 7", "4 × 9"}
    squares = read_all(path, layout=Layout("libffm", interact=("2,2",)))
    assert len(squares.keys) == 4 + 3
    every = read_all(path, layout=Layout("libffm", interact=("*,*",)))
    assert len(every.keys) == 4 + 10


BAD = [
    (b"1 5", 4, "':' after the field", "the end of the line"),
    (b"1 x:1:1", 3, "a field (a whole number below 2^64)", "'x:1:1'"),
    (b"1 1:-2:3", 5, "a feature id (a whole number)", "'-2:3'"),
    (b"1 1:2", 6, "':' after the feature id", "the end of the line"),
    (b"1 1:2-3:4", 6, "':' after the feature id", "'-3:4'"),
    (b"1 1:18446744073709551616:1", 5, "a feature id below 2^64", "'18446744073709551616:1'"),
    (b"1 1:2:x", 7, "a number after ':'", "'x'"),
    (b"1:2:3", 1, "a label", "'1:2:3'"),
    (b"1 1:3:3e38 2:3:3e38", 1, "values of a repeated id whose sum is finite in float32", "'1'"),
]


@pytest.mark.parametrize(("line", "column", "expected", "found"), BAD)
def test_bad_lines_are_told(tmp_path: Path, line: bytes, column: int, expected: str, found: str) -> None:
    with pytest.raises(DataError) as caught:
        read_all(written(tmp_path, b"1 1:1:1\n" + line + b"\n", "data.ffm"))
    assert str(caught.value).endswith(f":2:{column}: expected {expected}, found {found}")


@pytest.mark.parametrize("field", ["user", "-1", "1 ", "18446744073709551616", ""])
def test_what_is_no_field_is_an_error(tmp_path: Path, field: str) -> None:
    with pytest.raises(DataError, match="libffm: fields are whole numbers"):
        read_all(
            written(tmp_path, b"1 1:1:1\n", "data.ffm"), layout=Layout("libffm", interact=(f"{field},1",))
        )


def test_ids_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="libffm: bits and hash apply to names, not ids"):
        open_source(written(tmp_path, b"1 1:1:1\n"), layout=Layout("libffm", bits=18))
    largest = read_all(
        written(tmp_path, b"1 18446744073709551615:18446744073709551615:1 0:0:1\n", "data.ffm")
    )
    assert largest.keys.tolist() == [0, 2**64 - 1]
    assert np.array_equal(largest.values, [1, 1])
