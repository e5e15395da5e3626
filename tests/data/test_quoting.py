"""Quotes that are characters like any other, and what messages tell about quotes that do not fit."""

from pathlib import Path

import pytest

from tests.data.reference import read_all, rows_of
from tests.data.test_tables_odd import rows_meant
from tests.layouts import layout_of
from thresher.data import DataError, open_source
from thresher.data.layout import Layout, SettledLayout

KINDS = {"label": "label", "a": "categorical", "v": "numeric"}
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
    assert rows_of(read_all(tmp_path / "d.csv", layout=layout)) == rows_meant(rows, **KINDS)


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
def test_the_message_tells_a_stray_quote_from_a_line_break(
    tmp_path: Path, odd: list[str], more: int, remedy: str
) -> None:
    path = write(tmp_path / "d.csv", *odd)
    with pytest.raises(DataError, match=remedy):
        read_all(path)
    quoting = "no-quoting" not in remedy
    if more:
        layout = Layout(quoting=quoting, quoted_newlines=quoting)
        assert len(read_all(path, layout=layout)) == 2 * len(PLAIN) + more


def test_a_stray_quote_among_quoted_line_breaks(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", '1,"open,3')
    with pytest.raises(DataError, match=r"use --no-quoting in place of --quoted-newlines$"):
        read_all(path, layout=Layout(quoted_newlines=True))


@pytest.mark.parametrize(
    ("head", "option"), [('label,"a,v', "--no-quoting"), ('label,"a\n b",v', "--quoted-newlines")]
)
def test_a_header_with_an_open_quote(tmp_path: Path, head: str, option: str) -> None:
    path = write(tmp_path / "d.csv", head=head)
    with pytest.raises(
        DataError, match=f"d.csv: the header line, .* has a quote that is not closed; use {option}"
    ):
        open_source(path)
    quoting = option != "--no-quoting"
    assert len(read_all(path, layout=Layout(quoting=quoting, quoted_newlines=quoting))) == 40


def test_cells_in_quotes_that_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", '1,"Smith, J",3')
    with pytest.raises(DataError, match=r"22:10: .*; cells are in quotes: read them with --quoting"):
        read_all(path, layout=Layout(quoting=False))


def test_options_that_exclude_each_other(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv")
    with pytest.raises(DataError, match="--quoted-newlines and --no-quoting exclude each other"):
        open_source(path, layout=Layout(quoting=False, quoted_newlines=True))
    (tmp_path / "d.svm").write_text("1 1:1\n")
    with pytest.raises(DataError, match="svmlight: --no-quoting is only for csv and tsv"):
        open_source(tmp_path / "d.svm", layout=Layout(quoting=False))
