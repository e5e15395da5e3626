"""Good and bad delimited lines, compared with a simple reference parser; quotes that are characters."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.reference import Row, bits, read_all, rows_of
from tests.data.table_reference import row_of
from tests.data.tables import Bad
from tests.data.test_tables_odd import rows_meant
from tests.layouts import layout_of
from thresher.data import DataError, concat, open_source
from thresher.data.layout import Layout, SettledLayout

KINDS = {"l": "label", "w": "weight", "x": "numeric", "c": "categorical"}
LAYOUT = SettledLayout(columns=(*KINDS,), kinds=(*KINDS.values(),))
ODD = (
    *(
        *("", " ", "  3 ", "-0", "12.5", "1e5", "1e39", "nan", "0.1", "99999999999999999999999999", "\r"),
        *("é", "\x01"),
    ),
    *(
        *("1.00000005960464477539062500001", '"1"', '""', '"', '"a"', '"a""b"', '"a,b"', '"x', '"a"b'),
        *("a\tb", "#", "x", "NA", "?", '"NA"'),
    ),
    *('"a\nb"', '"\n"', '"3\n"', '"x\r\n""y"', '"\n""', '"x\n,1\ny"', 'x"\n"', '"a;b"', "1;2"),
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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=lines,
    form=st.sampled_from(["csv", "tsv"]),
    delimiter=st.sampled_from(["", ";", "|"]),
    missing=st.sampled_from([(), ("NA",), ("?", "x", "12.5")]),
    end=st.sampled_from(["", "\n", "\r\n"]),
    block=st.sampled_from([1, 7, 60, 4096]),
    threads=st.integers(1, 2),
)
def test_any_lines(
    tmp_path: Path,
    rows: list[list[str]],
    form: str,
    delimiter: str,
    missing: tuple[str, ...],
    end: str,
    block: int,
    threads: int,
) -> None:
    between, quoting = delimiter or ("," if form == "csv" else "\t"), form == "csv"
    body_text = "\n".join(between.join(row) for row in rows) + end
    path = tmp_path / f"data.{form}"
    path.write_text(between.join(KINDS) + "\n" + body_text, encoding="utf-8", newline="")
    raw = body_text.split("\n")
    body = [line.removesuffix("\r") for line in (raw if raw[-1] else raw[:-1])]
    found = [row_of(line.encode(), between, quoting, KINDS, missing) for line in body if line]
    expected = bits([row for row in found if isinstance(row, Row)])
    layout = replace(LAYOUT, delimiter=delimiter, missing=missing)
    source = open_source(path, layout=layout, on_error="skip", block_bytes=block, threads=threads)
    try:
        assert [row for chunk in source.chunks() for row in rows_of(chunk)] == expected
    except DataError:
        assert not expected
    assert source.report.skipped == sum(isinstance(row, Bad) for row in found)
    assert source.report.lines == len(body) + 1
    assert source.report.blank == 1 + sum(not line for line in body)
    bad = [
        number
        for number, line in enumerate(body, 2)
        if line and isinstance(row_of(line.encode(), between, quoting, KINDS, missing), Bad)
    ]
    assert [one.line for one in source.report.first_bad] == bad[:10]


def test_columns_are_told_without_missing_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        '\ufefflabel;"my age";city\n1;NA;"a;b"\n0;7;NA\n1;?;c\n', encoding="utf-8"
    )
    source = open_source(tmp_path / "a.csv", layout=Layout(delimiter=";", missing=("NA", "?")))
    assert source.layout.columns == ("label", "my age", "city")
    assert source.layout.kinds == ("label", "numeric", "categorical")
    assert [chunk.indptr.tolist() for chunk in source.chunks()] == [[0, 1, 2, 3]]
    (tmp_path / "b.csv").write_text("label,x\nNA,3\n")
    with pytest.raises(DataError, match=r"b.csv:2:1: expected a label in column 'label', found 'NA'"):
        list(open_source(tmp_path / "b.csv", layout=Layout(missing=("NA",))).chunks())


@pytest.mark.parametrize("options", [{}, {"quoting": False}, {"format": "tsv"}])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [1, 4096])
def test_a_blank_line_of_one_column_is_missing(tmp_path: Path, options: Any, end: str, block: int) -> None:
    path, layout = tmp_path / "data.csv", replace(Layout("csv", categorical=("c",)), **options)
    settled = SettledLayout(**layout.shared(), columns=("c",), kinds=("categorical",))
    for cells in (["", "a", "", "b", "", ""], ["a", '""', "", "b"], [""] * 3000):
        path.write_bytes(end.join(["c", *cells, ""]).encode())
        source = open_source(path, layout=settled, unlabelled=True, ids="c", block_bytes=block)
        read = [*source.rows()]
        given = ["" if cell == '""' and layout.quoting and layout.format == "csv" else cell for cell in cells]
        assert [one for rows in read for one in rows.ids or ()] == given
        assert np.diff(concat([rows.chunk for rows in read]).indptr).tolist() == [bool(one) for one in given]
        assert (source.report.examples, source.report.blank) == (len(cells), 1)  # the header
    path.write_bytes(
        end.join(["c,d", "a,", "", "b,", ""]).encode().replace(b",", layout.delimited_by.encode())
    )
    wide = SettledLayout(**layout.shared(), columns=("c", "d"), kinds=("categorical", "ignore"))
    assert sum(map(len, open_source(path, layout=wide, unlabelled=True).chunks())) == 2


QUOTED = {"label": "label", "a": "categorical", "v": "numeric"}
PLAIN = [f"{k % 2},w{k % 5},{k}" for k in range(20)]


def write(path: Path, *odd: str, head: str = "label,a,v") -> Path:
    path.write_text("\n".join([head, *PLAIN, *odd, *PLAIN]) + "\n")
    return path


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_quotes_are_read_as_they_are(tmp_path: Path, delimiter: str) -> None:
    cells = ['"open', '"in" side', '"whole"', 'end"', '""', '"']
    lines = ["label,a,v", *(f"{k % 2},{cell},{k}" for k, cell in enumerate(cells))]
    (tmp_path / "d.csv").write_text("\n".join(lines).replace(",", delimiter) + "\n")
    layout = Layout("csv", delimiter=delimiter, quoting=False)
    rows = [{"label": k % 2, "a": cell, "v": k} for k, cell in enumerate(cells)]
    assert rows_of(read_all(tmp_path / "d.csv", layout=layout)) == rows_meant(rows, **QUOTED)


def test_quotes_in_the_header_are_parts_of_names(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", head='label,"a,v"')
    settled = open_source(path, layout=Layout(quoting=False)).layout
    assert settled.columns == ("label", '"a', 'v"')


def test_the_layout_keeps_it_for_later_data(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", '1,"open,3')
    layout = layout_of({"quoting": False})
    settled = SettledLayout.from_dict(open_source(path, layout=layout).layout.as_dict())
    assert settled.as_dict()["quoting"] is False
    assert rows_of(read_all(path, layout=settled)) == rows_of(read_all(path, layout=layout))
    assert open_source(path).layout.as_dict().get("quoting") is None
    assert settled.in_format("tsv").quoting, "the default of another format"


@pytest.mark.parametrize(
    ("odd", "more"), [(['1,"open,3'], 1), (['1,"in" side,3'], 1), (['1,"open,3', *PLAIN, '0,close",4'], 22)]
)
def test_what_is_said_of_an_open_quote_helps(tmp_path: Path, odd: list[str], more: int) -> None:
    path = write(tmp_path / "d.csv", *odd)
    with pytest.raises(DataError, match="use --no-quoting if quotes are part of cells"):
        read_all(path)
    assert len(read_all(path, layout=Layout(quoting=False))) == 2 * len(PLAIN) + more


def test_quoting_is_for_cells(tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("1 1:1\n")
    with pytest.raises(DataError, match="svmlight: --no-quoting is only for csv and tsv"):
        open_source(tmp_path / "d.svm", layout=Layout(quoting=False))
