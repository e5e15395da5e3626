"""Lines of cells, sound and broken, against a slow parser that is easy to believe."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.reference import Row, bits, rows_of
from tests.data.table_reference import row_of
from tests.data.tables import Bad
from thresher.data import DataError, open_source
from thresher.data.layout import Layout

KINDS = {"l": "label", "w": "weight", "x": "numeric", "c": "categorical"}
LAYOUT = Layout("", label="l", weight="w", numeric=("x",), categorical=("c",))
ODD = (
    *(
        "",
        " ",
        "  3 ",
        "-0",
        "12.5",
        "1e5",
        "1e39",
        "nan",
        "0.1",
        "99999999999999999999999999",
        "\r",
        "é",
        "\x01",
    ),
    *(
        "1.00000005960464477539062500001",
        '"1"',
        '""',
        '"',
        '"a"',
        '"a""b"',
        '"a,b"',
        '"x',
        '"a"b',
        "a\tb",
        "#",
        "x",
    ),
    "abcdefghijklmnopqrstuvwxyz" * 4,
)
cell = st.sampled_from(ODD)
usual = st.tuples(
    st.sampled_from(["1", "0", "-1"]) | cell,
    st.sampled_from(["1", "0.5"]) | cell,
    st.sampled_from("37") | cell,
    cell,
)
lines = st.lists(usual | st.lists(cell, max_size=6), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=lines,
    form=st.sampled_from(["csv", "tsv"]),
    end=st.sampled_from(["", "\n", "\r\n"]),
    block=st.sampled_from([1, 7, 60, 4096]),
    threads=st.integers(1, 2),
)
def test_any_lines(
    tmp_path: Path, rows: list[list[str]], form: str, end: str, block: int, threads: int
) -> None:
    delimiter, quoting = ("," if form == "csv" else "\t"), form == "csv"
    text = "\n".join([delimiter.join(KINDS), *(delimiter.join(row) for row in rows)]) + end
    path = tmp_path / f"data.{form}"
    path.write_text(text, encoding="utf-8", newline="")
    body = [line.removesuffix("\r") for line in text.split("\n")[1:]]
    body = body[:-1] if not body[-1] and not text.endswith("\r") else body
    found = [(k + 2, row_of(line.encode(), delimiter, quoting, KINDS)) for k, line in enumerate(body) if line]
    expected = bits([row for _, row in found if isinstance(row, Row)])
    source = open_source(path, layout=LAYOUT, on_error="skip", block_bytes=block, threads=threads)
    try:
        assert [row for chunk in source.chunks() for row in rows_of(chunk)] == expected
    except DataError:
        assert not expected
    bad = [line for line, row in found if isinstance(row, Bad)]
    assert [one.line for one in source.report.first_bad] == bad[:10]
    assert source.report.skipped == len(bad)
    assert source.report.lines == len(body) + 1
    assert source.report.blank == 1 + sum(not line for line in body)
