"""Columns that appear late, are missing or have no value; which of two options a column gets."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.data.reference import rows_of
from tests.data.tables import WRITERS
from thresher.data import DataError, open_source
from thresher.data.columns import as_option_value, settle
from thresher.data.layout import AnyLayout, Layout
from thresher.data.opening import table_source
from thresher.data.report import Report

PAD = "p" * 400_000
FIRST = [{"label": k % 2, "a": k + 0.5, "n": None, "pad": PAD} for k in range(3)]
"""More than the rows that settle the columns"""
LATE: list[dict[str, Any]] = [
    {"label": 1, "a": 1.0, "b": None},
    {"label": 0, "a": 2.0, "b": 3, "c": "u", "n": 7},
    {"label": 1, "a": 3.0, "b": 2.5, "c": 4, "n": 8.5, "o": {"p": 1}},
    {"label": 1, "a": 3.0, "b": "2", "c": True, "d": ["x"]},
]
OPTIONS: dict[str, Any] = {"categorical": ("b", "c", "n"), "ignore": ("o", "d", "pad")}


def late_jsonl(folder: Path, rows: list[dict[str, Any]] = LATE) -> Path:
    path = folder / "late.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*FIRST, *rows]))
    return path


def read(path: Any, layout: AnyLayout, **options: Any) -> tuple[Any, list[Any]]:
    source = open_source(path, layout=layout, on_error="skip", **options)
    rows = [row for chunk in source.chunks() for row in rows_of(chunk)]
    return (rows, source.report.as_dict()["first_bad"]), [tuple(one) for one in source.report.noticed]


@pytest.mark.parametrize(
    "options", [{"ignore": ("pad",)}, OPTIONS, {**OPTIONS, "numeric": ("b",), "categorical": ()}]
)
def test_a_late_field_is_the_same_for_every_cut(options: Any, tmp_path: Path) -> None:
    path, layout = late_jsonl(tmp_path), Layout(**options)
    whole = read(path, layout)
    assert read(path, layout, block_bytes=1) == whole
    assert read(path, layout, block_bytes=60, threads=3) == whole


def test_what_is_noticed_survives_a_stop(tmp_path: Path) -> None:
    source = open_source(late_jsonl(tmp_path), layout=Layout(ignore=("pad",)), block_bytes=1)
    list(source.chunks())
    whole, before = source.report.as_dict(), None
    for chunk in source.chunks():
        if before is None and source.report.noticed:
            before, place = source.report.as_dict(), chunk.after
    again = open_source(late_jsonl(tmp_path), layout=source.layout, block_bytes=1)
    again.report = Report.from_dict(json.loads(json.dumps(before)))
    list(again.chunks(place))
    assert again.report.as_dict() == whole


def test_a_late_field_in_a_product(tmp_path: Path) -> None:
    path = late_jsonl(tmp_path)
    with pytest.raises(DataError, match="if its values come late, give its kind, such as --categorical c"):
        open_source(path, layout=Layout(ignore=("pad",), interact=("a,c",)))
    given: dict[str, Any] = {"text": ("pad",), "ignore": ("b", "n"), "categorical": ("c",)}
    (rows, bad), _ = read(path, Layout(interact=("a,c",), **given))
    assert ([len(row[2]) for row in rows], bad) == ([2, 2, 2, 1, 3, 3, 3], [])


def test_many_late_fields(tmp_path: Path) -> None:
    path = late_jsonl(tmp_path, [{"label": 1, f"w{k * 7 % 100}": 1, f"v{k}": 2} for k in range(100)])
    _, noticed = read(path, Layout(ignore=("pad", "n")))
    assert len(noticed) == 20
    assert noticed == read(path, Layout(ignore=("pad", "n")), block_bytes=1)[1]
    assert noticed == read(path, Layout(ignore=("pad", "n")), block_bytes=300)[1]


def test_a_name_that_no_row_has(tmp_path: Path) -> None:
    (tmp_path / "short.jsonl").write_text('{"label": 1, "price": 2}\n')
    with pytest.raises(DataError, match="no column is called 'prize'; did you mean 'price'"):
        open_source(tmp_path / "short.jsonl", layout=Layout(numeric=("prize",)))
    path = late_jsonl(tmp_path)
    assert open_source(path, layout=Layout(numeric=("prize",))).layout.awaited == ("prize",)
    for wrong in ("9", "x*", "2-9"):
        with pytest.raises(DataError, match="no column is called"):
            open_source(path, layout=Layout(numeric=(wrong,)))


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "data.svm"])
def test_files_with_other_columns(name: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"1{name}", tmp_path / f"2{name}"
    WRITERS[name]([{"label": k % 2, "a": k + 0.5, "x": k + 1.0} for k in range(6)], first)
    WRITERS[name]([{"b": k + 0.5, "label": k % 2, "a": 1.5, "c": "u"} for k in range(6)], second)
    (rows, bad), noticed = read([first, second], Layout())
    assert ([len(row[2]) for row in rows], bad) == ([2] * 6 + [1] * 6, [])
    late = [("late", "b", "numeric"), ("late", "c", "categorical")]
    found = [(what, column, kind) for what, column, _, kind in noticed]
    assert found == (late if name.endswith("jsonl") else [*late, ("lacking", "x", "")])
    named = Layout(numeric=("b",), categorical=("c",), ignore=("x",))
    (rows, bad), noticed = read([first, second], named)
    assert ([len(row[2]) for row in rows], bad) == ([1] * 6 + [3] * 6, [])
    assert [one for one in noticed if one[0] != "found"] == []
    with pytest.raises(DataError, match="no column is called 'z'"):
        open_source([first, second], layout=Layout(numeric=("z",)))


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.parquet"])
def test_a_later_file_decides_what_the_first_leaves_open(name: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"1{name}", tmp_path / f"2{name}"
    WRITERS[name]([{"label": k % 2, "a": k + 0.5, "x": None} for k in range(6)], first)
    WRITERS[name]([{"label": k % 2, "a": k + 0.5, "x": k + 1.0} for k in range(6)], second)
    assert open_source([first, second]).layout.kinds == ("label", "numeric", "numeric")


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_blank_cells_are_missing_numbers(blank: str, tmp_path: Path) -> None:
    rows = "label,x,y\n1, ,3\n0,2,  \n1,,\n , 1,1\n"
    (tmp_path / "a.csv").write_text(rows.replace(" ", blank))
    (rows, bad), _ = read(tmp_path / "a.csv", Layout())
    assert open_source(tmp_path / "a.csv").layout.kinds == ("label", "numeric", "numeric")
    assert [len(row[2]) for row in rows] == [1, 1, 0]
    assert [one[3] for one in bad] == ["a label in column 'label'"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_header_that_is_repeated(end: str, tmp_path: Path) -> None:
    rows = ["y,n", "1,2", "0,3", "y,n", "1,4", "y,n5", "\ufeffy,n"]
    path = tmp_path / "a.csv"
    path.write_text(end.join(rows) + end, newline="", encoding="utf-8")
    for block in (1, 1 << 16):
        source = open_source(path, layout=Layout(label="y"), on_error="skip", block_bytes=block)
        assert source.layout.kinds == ("label", "categorical"), "of y,n5"
        assert sum(len(chunk) for chunk in source.chunks()) == 3
        assert (source.report.blank, source.report.skipped) == (3, 1)
        assert [tuple(one) for one in source.report.noticed] == [("header", "", f"{path}:4", "")]
    path.write_text(end.join(row for row in rows if row != "y,n5") + end, newline="", encoding="utf-8")
    assert open_source(path, layout=Layout(label="y")).layout.kinds == ("label", "numeric")


def test_columns_as_the_value_of_an_option() -> None:
    assert as_option_value(["a", "b"], ["a", "b"]) == "a,b"
    assert as_option_value(["", "x,y"], ["x,y", "", "a"]) == '"","x,y"'
    assert as_option_value(["a\tb"], ["2", "a\tb"]) == "a?b"
    assert as_option_value(["my city"], []) == "my city"


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "data.svm"])
def test_blank_categories_are_missing(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    values = [" ", "   " if name.endswith(".tsv") else " \t ", "a", " a", "", " b c "]
    WRITERS[name]([{"label": k % 2, "c": value} for k, value in enumerate(values)], path)
    (rows, bad), _ = read(path, Layout())
    assert ([len(row[2]) for row in rows], bad) == ([0, 0, 1, 1, 0, 1], [])


def test_blank_categories_of_a_dictionary() -> None:
    values = pa.array([" ", "a", "a", "b", "a"] * 5 + ["\t", "a", "a", "b", "a"] * 4).dictionary_encode()
    table = pa.table({"label": [1, 0, 1, 0, 1] * 9, "c": values})
    (chunk,) = table_source(table).chunks()
    assert chunk.nnz == 4 * 9


@pytest.mark.parametrize("word", ["NaN", "-", "", " ", "unknown"])
def test_a_text_for_a_missing_value_says_nothing_about_the_type(word: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"label": 1, "x": word, "c": word}, {"label": 0, "x": 0.5, "c": "b"}, {"label": 1, "x": 2}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = open_source(path, on_error="skip")
    assert source.layout.kinds == ("label", "numeric", "categorical")
    assert sum(len(chunk) for chunk in source.chunks()) == 2
    with pytest.raises(DataError, match=r"a.jsonl:1:1: expected a number in column 'x', found"):
        list(open_source(path).chunks())
    path.write_text(json.dumps({"label": 1, "x": word}) + "\n")
    assert open_source(path).layout.kinds == ("label", "categorical")


NAMES = ("label", "id", "i1", "i2", "city", "n")


def kinds(**options: object) -> str:
    """The first letter of the kind of each column except the label; numeric by default."""
    found = settle(Layout("csv", **options), NAMES, ["label", *["numeric"] * 5], "t.csv").kinds  # type: ignore[arg-type]
    assert found[0] == "label"
    return "".join(kind[0] for kind in found[1:])


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"categorical": ("*",)}, "ccccc"),
        ({"categorical": ("*",), "ignore": ("id",)}, "icccc"),
        ({"categorical": ("*",), "ignore": ("i*",)}, "iiicc"),
        ({"categorical": ("*",), "ignore": ("2-4",)}, "iiicc"),
        ({"categorical": ("*",), "numeric": ("n",)}, "ccccn"),
        ({"categorical": ("*",), "numeric": ("i?", "n"), "ignore": ("id",)}, "inncn"),
        ({"categorical": ("2-6",), "ignore": ("i*",)}, "iiicc"),
        ({"categorical": ("2-6",), "numeric": ("3",)}, "cnccc"),
        ({"categorical": ("city",), "ignore": ("*",)}, "iiici"),
        ({"categorical": ("i[12]",), "ignore": ("*",)}, "iccii"),
        ({"categorical": ("*",), "weight": "n"}, "ccccw"),
    ],
)
def test_the_more_precise_holds(options: dict[str, object], found: str) -> None:
    assert kinds(**options) == found


@pytest.mark.parametrize(
    ("options", "column", "both"),
    [
        ({"categorical": ("id",), "ignore": ("id",)}, "id", "--categorical and --ignore"),
        ({"categorical": ("*",), "numeric": ("*",)}, "id", "--numeric and --categorical"),
        ({"categorical": ("i*",), "numeric": ("i[12]",)}, "i1", "--numeric and --categorical"),
        ({"weight": "n", "ignore": ("n",)}, "n", "--weight and --ignore"),
        ({"ignore": ("label",)}, "label", "--label and --ignore"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, object], column: str, both: str) -> None:
    with pytest.raises(DataError, match=f"^t.csv: '{column}' is listed in both {both}$"):
        kinds(**options)
