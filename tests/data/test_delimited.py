"""Good and bad delimited lines, compared with a simple reference parser; quotes that are characters."""

import re
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
from thresher.data import Chunk, DataError, concat, open_source
from thresher.data.formats.tables import delimited
from thresher.data.layout import Layout, SettledLayout

KINDS = {"l": "label", "w": "weight", "x": "numeric", "c": "categorical"}
LAYOUT = Layout("", label="l", weight="w", numeric=("x",), categorical=("c",))
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


def rows_with_breaks(text: str, delimiter: str) -> list[str]:
    """Rows end with a newline outside quotes; a quote that is never closed ends with its line."""
    quoted = re.compile(rf'"(?:[^"]|"")*"(?={re.escape(delimiter)}|\r?\n|\r?\Z)')
    plain = re.compile(rf"[^{re.escape(delimiter)}\n]*")
    rows, start, at = list[str](), 0, 0
    while start < len(text):
        found = quoted.match(text, at) if text[at : at + 1] == '"' else plain.match(text, at)
        end = found.end() if found else text.find("\n", at) % (len(text) + 1)
        end += text[end : end + 1] == "\r" and text[end + 1 : end + 2] in ("", "\n")
        if text[end : end + 1] == delimiter:
            at = end + 1
            continue
        rows.append(text[start:end].removesuffix("\r"))
        start = at = end + 1
    return rows


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=lines,
    form=st.sampled_from(["csv", "tsv"]),
    delimiter=st.sampled_from(["", ";", "|"]),
    missing=st.sampled_from([(), ("NA",), ("?", "x", "12.5")]),
    spans=st.booleans(),
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
    spans: bool,
    end: str,
    block: int,
    threads: int,
) -> None:
    between, quoting = delimiter or ("," if form == "csv" else "\t"), form == "csv"
    spans = spans and quoting
    body_text = "\n".join(between.join(row) for row in rows) + end
    path = tmp_path / f"data.{form}"
    path.write_text(between.join(KINDS) + "\n" + body_text, encoding="utf-8", newline="")
    if spans:
        body = rows_with_breaks(body_text, between)
    else:
        raw = body_text.split("\n")
        body = [line.removesuffix("\r") for line in (raw if raw[-1] else raw[:-1])]
    found = [row_of(line.encode(), between, quoting, KINDS, missing) for line in body if line]
    expected = bits([row for row in found if isinstance(row, Row)])
    layout = replace(LAYOUT, delimiter=delimiter, missing=missing, quoted_newlines=spans)
    source = open_source(path, layout=layout, on_error="skip", block_bytes=block, threads=threads)
    try:
        assert [row for chunk in source.chunks() for row in rows_of(chunk)] == expected
    except DataError:
        assert not expected
    assert source.report.skipped == sum(isinstance(row, Bad) for row in found)
    assert source.report.lines == len(body) + 1
    assert source.report.blank == 1 + sum(not line for line in body)
    firsts, line = list[range](), 2
    for text in body:
        if text and isinstance(row_of(text.encode(), between, quoting, KINDS, missing), Bad):
            firsts.append(range(line, line + text.count("\n") + 1))
        line += text.count("\n") + 1
    bad = [one.line for one in source.report.first_bad]
    assert all(one in lines for one, lines in zip(bad, firsts[:10], strict=True))


BROKEN = """label,note,x
1,"two
lines",3
0,"stray,4
1,"","5"
0,"three
""lines""
of text",seven
-1,end,1
"""


def test_line_breaks_in_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text(BROKEN)
    layout = Layout(quoted_newlines=True, categorical=("note",), numeric=("x",))
    for block in (1, 20, 4096):
        rejected = tmp_path / f"{block}.bad"
        source = open_source(
            tmp_path / "a.csv", layout=layout, on_error=f"quarantine={rejected}", block_bytes=block
        )
        assert sum(len(chunk) for chunk in source.chunks()) == 3
        assert [(one.line, one.column, one.found.partition(";")[0]) for one in source.report.first_bad] == [
            (4, 3, "'stray,4'"),
            (8, 10, "'seven'"),
        ]
        assert "a quote that ends column 'note'" in str(source.report.first_bad[0])
        assert rejected.read_text() == '0,"stray,4\n0,"three\n""lines""\nof text",seven\n'
        assert (source.report.lines, source.report.examples, source.report.blank) == (6, 3, 1)
    places = [(chunk.place, chunk.after) for chunk in open_again(tmp_path / "a.csv", layout, 1)]
    assert [(place.line, after.line) for place, after in places if place and after] == [
        *((1, 3), (3, 5), (5, 9)),
    ]
    monkeypatch.setattr(delimited, "LONGEST_CELL", 5)
    source = open_source(tmp_path / "a.csv", layout=layout, on_error="skip")
    assert sum(len(chunk) for chunk in source.chunks()) == 2
    assert [one.line for one in source.report.first_bad] == [2, 3, 4, 6, 7, 8]


def open_again(path: Path, layout: Layout, block: int) -> list[Chunk]:
    return list(open_source(path, layout=layout, on_error="skip", block_bytes=block).chunks())


def test_a_pass_goes_on_behind_a_line_break_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BROKEN)
    layout = Layout(quoted_newlines=True, categorical=("note",), numeric=("x",))
    whole = open_again(tmp_path / "a.csv", layout, 1)
    source = open_source(tmp_path / "a.csv", layout=layout, on_error="skip", block_bytes=1)
    list(source.chunks())
    rest = list(source.chunks(whole[0].after))
    assert [(c.place, rows_of(c)) for c in rest] == [(c.place, rows_of(c)) for c in whole[1:]]


def test_columns_are_told_without_missing_values_and_across_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        '\ufefflabel;"my\nage";city\n1;NA;"a\nb"\n0;7;NA\n1;?;c\n', encoding="utf-8"
    )
    layout = Layout(delimiter=";", missing=("NA", "?"), quoted_newlines=True)
    source = open_source(tmp_path / "a.csv", layout=layout)
    assert source.layout.columns == ("label", "my\nage", "city")
    assert source.layout.kinds == ("label", "numeric", "categorical")
    assert [chunk.indptr.tolist() for chunk in source.chunks()] == [[0, 1, 2, 3]]
    (tmp_path / "b.csv").write_text("label,x\nNA,3\n")
    with pytest.raises(DataError, match=r"b.csv:2:1: expected a label in column 'label', found 'NA'"):
        list(open_source(tmp_path / "b.csv", layout=Layout(missing=("NA",))).chunks())


def test_columns_are_told_by_whole_rows(tmp_path: Path) -> None:
    layout = Layout(quoted_newlines=True)
    (tmp_path / "short.csv").write_text('label,note,x\n1,"a\nb","3"')
    source = open_source(tmp_path / "short.csv", layout=layout)
    assert source.layout.kinds == ("label", "categorical", "numeric")
    assert [chunk.nnz for chunk in source.chunks()] == [2]
    # the head ends inside a cell whose lines look like rows
    (tmp_path / "long.csv").write_text("label,note,x\n" + '1,"{}",3\n'.format("a,b,c\n" * 10_000) * 30)
    source = open_source(tmp_path / "long.csv", layout=layout)
    assert source.layout.kinds == ("label", "categorical", "numeric")
    assert sum(len(chunk) for chunk in source.chunks()) == 30


@pytest.mark.parametrize("options", [{}, {"quoted_newlines": True}, {"quoting": False}, {"format": "tsv"}])
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
    ("odd", "more", "remedy"),
    [
        (['1,"open,3'], 1, "the quote is part of the cell: use --no-quoting$"),
        (['1,"in" side,3'], 1, "the quote is part of the cell: use --no-quoting$"),
        (['1,"open,3', *PLAIN, '0,close",4'], 22, "use --no-quoting$"),
        (['1,"two\nlines",3'], 1, "the cell contains a line break: use --quoted-newlines$"),
        (['1,"two\r\n\r\nlines, or more",3'], 1, "use --quoted-newlines$"),
        (['1,"two\nmy, lines",3'], 1, "use --quoted-newlines$"),
        (['0,"Smith, J",3', '1,"open,3'], 0, "write a quote inside a cell as two, .* with --on-error skip"),
    ],
)
def test_a_stray_quote_is_told_from_a_line_break(tmp_path: Path, odd: Any, more: int, remedy: str) -> None:
    path = write(tmp_path / "d.csv", *odd)
    with pytest.raises(DataError, match=remedy):
        read_all(path)
    quoting = "no-quoting" not in remedy
    if more:
        layout = Layout(quoting=quoting, quoted_newlines=quoting)
        assert len(read_all(path, layout=layout)) == 2 * len(PLAIN) + more


def test_options_that_exclude_each_other(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv")
    with pytest.raises(DataError, match="--quoted-newlines and --no-quoting exclude each other"):
        open_source(path, layout=Layout(quoting=False, quoted_newlines=True))
    (tmp_path / "d.svm").write_text("1 1:1\n")
    with pytest.raises(DataError, match="svmlight: --no-quoting is only for csv and tsv"):
        open_source(tmp_path / "d.svm", layout=Layout(quoting=False))
