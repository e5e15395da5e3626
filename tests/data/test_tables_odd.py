"""Invalid and unusual tables."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.reference import Row, bits, read_all, rows_of
from tests.data.tables import WRITERS, Streamed, as_table, meaning, write_jsonl
from tests.data.test_tables import FORMATS, LAYOUT, some_rows
from thresher.data import DataError, open_source, table_source
from thresher.data.layout import Layout


def rows_meant(rows: list[dict[str, Any]], **kinds: str) -> list[Any]:
    found = [meaning(row, kinds) for row in rows]
    return bits([row for row in found if isinstance(row, Row)])


@FORMATS
def test_columns_go_by_name(tmp_path: Path, name: str) -> None:
    rows, first = some_rows(9), tmp_path / f"first-{name}"
    WRITERS[name](rows, first)
    others = [{k: v for k, v in row.items() if k != "label"} for row in rows]
    WRITERS[name](others, tmp_path / f"without-{name}")
    if name != "data.jsonl":  # an absent field is a missing value
        with pytest.raises(DataError, match=rf"without-{name}: no column 'label'"):
            open_source([first, tmp_path / f"without-{name}"], layout=LAYOUT)
    swapped = [dict(reversed(row.items())) for row in rows]
    WRITERS[name](swapped, tmp_path / f"swapped-{name}")
    chunk = read_all([first, tmp_path / f"swapped-{name}"], layout=LAYOUT)
    assert rows_of(chunk)[:9] == rows_of(chunk)[9:]


@FORMATS
def test_a_missing_weight_may_be_one(tmp_path: Path, name: str) -> None:
    layout, rows, first = Layout("", label="label", weight="w"), some_rows(9), tmp_path / f"first-{name}"
    WRITERS[name]([row | {"w": 2.0} for row in rows], first)
    trained = open_source(first, layout=layout).layout
    new = tmp_path / f"new-{name}"
    if name != "data.jsonl":  # an absent field is a missing value
        WRITERS[name]([{k: v for k, v in row.items() if k != "w"} for row in rows], new)
        with pytest.raises(DataError, match=r"no column 'w' of importances: to count all rows alike, add"):
            open_source(new, layout=trained)
    WRITERS[name]([row | {"w": 1.0} for row in rows], new)
    assert set(read_all(new, layout=trained).weights) == {1.0}


@pytest.mark.parametrize("name", ["data.jsonl", "data.parquet", "data.arrow", "data.arrows"])
def test_types_must_agree(tmp_path: Path, name: str) -> None:
    rows = some_rows(9)
    WRITERS[name](rows, tmp_path / f"a{name}")
    WRITERS[name]([row | {"x": "1.5"} for row in rows], tmp_path / f"b{name}")
    with pytest.raises(DataError, match=rf"b{name}: column 'x' is numeric, but has type string here"):
        open_source([tmp_path / f"a{name}", tmp_path / f"b{name}"], layout=LAYOUT)


@FORMATS
def test_columns_are_guessed_said_and_missed(tmp_path: Path, name: str) -> None:
    WRITERS[name](
        [row | {"x": row["x"] or 1.0, "y": row["y"] or 2} for row in some_rows(30)], tmp_path / name
    )
    found = open_source(tmp_path / name).layout
    assert found.columns == ("label", "w", "x", "y", "city", "id")
    assert found.kinds == ("label", "numeric", "numeric", "numeric", "categorical", "numeric")
    said = Layout("", label="2", categorical=("x", "5-6"), ignore=("l*", "3"))
    with pytest.raises(DataError, match="'x' is listed in both --categorical and --ignore"):
        open_source(tmp_path / name, layout=said)
    said = Layout("", label="2", categorical=("5-6",), ignore=("l*", "?"))
    kinds = open_source(tmp_path / name, layout=said, domain="real").layout.kinds
    assert kinds == ("ignore", "label", "ignore", "ignore", "categorical", "categorical")
    for wrong, hint in (
        (Layout("", label="z"), "the columns are: label, w, x, y, city, id"),
        (Layout("", ignore=("z",)), "the columns are: label, w, x, y, city, id"),
        (Layout("", numeric=("7",)), "there are 6 columns"),
        (Layout("", numeric=("City",)), r"did you mean 'city'\?"),
    ):
        with pytest.raises(DataError, match=f"no column is called '.*'; {hint}"):
            open_source(tmp_path / name, layout=wrong)


@FORMATS
def test_files_without_rows_or_of_other_bytes(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(bytes(range(256)) * 9)
    with pytest.raises(DataError, match=name):
        list(open_source(tmp_path / name, layout=LAYOUT).chunks())
    if name.endswith(("parquet", "arrow")):
        WRITERS[name](some_rows(50), tmp_path / name)
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataError, match=rf"{name}: cannot be read \(damaged or cut off\)"):
            list(open_source(tmp_path / name, layout=LAYOUT).chunks())
    (tmp_path / name).write_bytes(b"\n\n")
    with pytest.raises(DataError, match=name):
        list(open_source(tmp_path / name, layout=LAYOUT).chunks())


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("arrow", "an Arrow file .* write it as an Arrow stream"),
        ("parquet", "a Parquet file .* a pipe: it is read"),
    ],
)
def test_files_that_are_read_from_their_end_come_by_no_pipe(form: str, said: str, tmp_path: Path) -> None:
    table = pa.table({"label": [0.0, 1.0], "x": [1.0, 2.0]})
    with pa.OSFile(str(tmp_path / "d.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "d.parquet")
    reading, writing = os.pipe()
    with open(writing, "wb") as pipe:
        pipe.write((tmp_path / f"d.{form}").read_bytes())
    try:
        with pytest.raises(DataError, match=said):
            open_source(f"/dev/fd/{reading}", layout=Layout(form))
    finally:
        os.close(reading)


def test_a_stream_that_is_cut_off(tmp_path: Path) -> None:
    WRITERS["data.arrows"](some_rows(50), tmp_path / "data.arrows")
    whole = (tmp_path / "data.arrows").read_bytes()
    (tmp_path / "data.arrows").write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(DataError, match=r"data.arrows: cannot be read \(damaged or cut off\)"):
        list(open_source(tmp_path / "data.arrows", layout=LAYOUT).chunks())


def test_cells_of_the_wrong_number_and_quotes_that_stay_open(tmp_path: Path) -> None:
    text = b'label,a,b\n1,x,y\n1,x\n1,x,y,z\n1,"x,y\n0,"x"y,z\n0,"x ""q""","y"\r\n'
    (tmp_path / "d.csv").write_bytes(text)
    source = open_source(tmp_path / "d.csv", on_error="skip")
    rows: list[dict[str, Any]] = [{"label": 1, "a": "x", "b": "y"}, {"label": 0, "a": 'x "q"', "b": "y"}]
    kinds = {"label": "label", "a": "categorical", "b": "categorical"}
    assert [r for chunk in source.chunks() for r in rows_of(chunk)] == rows_meant(rows, **kinds)
    remedy = "use --no-quoting if quotes are part of cells, or write a quote inside a cell as two, in quotes,"
    remedy += " and rows with line breaks in cells as JSON lines or Parquet"
    assert [str(one).removeprefix(str(tmp_path)) for one in source.report.first_bad] == [
        "/d.csv:3:4: expected 3 columns, found 2",
        "/d.csv:4:6: expected 3 columns, found 4",
        f"/d.csv:5:3: expected a quote that ends column 'a' on its line, found 'x,y'; {remedy}",
        f"/d.csv:6:3: expected a delimiter after the quoted column 'a', found 'x'; {remedy}",
    ]


def test_a_mark_blank_lines_and_no_header(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_bytes(b"\xef\xbb\xbflabel,a\r\n\r\n1,2.5\r\n")
    (tmp_path / "n.csv").write_bytes(b"\xef\xbb\xbf1,2.5\n\n-1,\n")
    chunk = read_all(tmp_path / "m.csv")
    assert rows_of(chunk) == rows_meant([{"label": 1, "a": 2.5}], label="label", a="numeric")
    source = open_source(tmp_path / "n.csv", layout=Layout("csv", label="1", header=False))
    rows: list[dict[str, Any]] = [{"1": 1, "2": 2.5}, {"1": -1, "2": None}]
    assert rows_of(next(source.chunks())) == rows_meant(rows, **{"1": "label", "2": "numeric"})
    assert (source.report.lines, source.report.blank) == (3, 1)
    (tmp_path / "o.csv").write_bytes(b"1,2,3\n")
    with pytest.raises(DataError, match="3 columns, but the training data had 2"):
        open_source(tmp_path / "o.csv", layout=source.layout)


def test_lists_dictionaries_bools_and_bytes(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"label": True, "tags": ["a", "b", "a", None, ""], "n": [3, 4], "d": "u", "b": True},
        {"label": False, "tags": None, "n": [], "d": None, "b": None},
        {"label": True, "tags": ["c"], "n": [3], "d": "", "b": False},
    ]
    kinds = {"label": "label", "tags": "list", "n": "list", "d": "categorical", "b": "categorical"}
    table = as_table(rows)
    column = table.column("d")
    casts = [column.cast(kind) for kind in (pa.string(), pa.binary(), pa.large_string())]
    for other in (*casts, column.dictionary_encode()):
        changed = table.set_column(3, "d", other)
        for cut in (changed, pa.concat_tables([changed.slice(2), changed]).slice(1)):
            assert rows_of(next(table_source(Streamed(cut)).chunks())) == rows_meant(rows, **kinds)
    write_jsonl(rows, tmp_path / "d.jsonl")
    assert rows_of(read_all(tmp_path / "d.jsonl")) == rows_meant(rows, **kinds)
    with pytest.raises(DataError, match="column 's' has type struct<a: int64>: use --ignore s"):
        table_source(pa.table({"label": [1], "s": [{"a": 1}]}))
    with pytest.raises(DataError, match="column 's' is categorical, but has type struct<a: int64> here"):
        table_source(pa.table({"label": [1], "s": [{"a": 1}]}), layout=Layout(categorical=("s",)))


def test_few_values_of_a_dictionary_and_many(tmp_path: Path) -> None:
    rows = [{"label": 1, "c": f"v{k % 7}", "d": f"v{k}"} for k in range(300)]
    kinds = {"label": "label", "c": "categorical", "d": "categorical"}
    pq.write_table(as_table(rows), tmp_path / "d.parquet")
    whole = rows_of(read_all(tmp_path / "d.parquet"))
    assert whole == rows_meant(rows, **kinds)
    encoded = pa.table({name: as_table(rows).column(name).dictionary_encode() for name in ("c", "d")})
    table = encoded.append_column("label", as_table(rows).column("label")).slice(100, 50)
    assert rows_of(next(table_source(table).chunks())) == rows_meant(rows[100:150], **kinds)


def test_a_table_in_memory_is_read_again_a_reader_is_not() -> None:
    table = as_table(some_rows(40))
    source = table_source(Streamed(table), layout=LAYOUT)
    first = [row for chunk in source.chunks() for row in rows_of(chunk)]
    assert [row for chunk in source.chunks() for row in rows_of(chunk)] == first
    once = table_source(table.to_reader(), layout=LAYOUT)
    assert [row for chunk in once.chunks() for row in rows_of(chunk)] == first
    assert not once.rereadable
    with pytest.raises(DataError, match="can be read only once"):
        list(once.chunks())


def test_a_bad_line_of_json_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    good = [json.dumps(row) for row in some_rows(40)]
    bad = [
        *("{", "[1]", '{"label": 1, "new": 2}', '{"label": "a"}', '{"label": 1, "x": true}'),
        '{"label": 1} {}',
    ]
    lines = [*good[:20], *bad, "", *good[20:]]
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    for block in (90, 1000, 1 << 20):
        source = open_source(tmp_path / "d.jsonl", layout=LAYOUT, on_error="skip", block_bytes=block)
        found = [row for chunk in source.chunks() for row in rows_of(chunk)]
        write_jsonl(some_rows(40), tmp_path / "good.jsonl")
        assert found == rows_of(read_all(tmp_path / "good.jsonl", layout=LAYOUT))
        assert [one.line for one in source.report.first_bad] == list(range(21, 27))
        assert (source.report.lines, source.report.blank, source.report.skipped) == (47, 1, 6)


@FORMATS
def test_labels_may_be_missing_where_they_are_not_looked_at(tmp_path: Path, name: str) -> None:
    rows = some_rows(20)
    WRITERS[name](rows, tmp_path / f"a{name}")
    WRITERS[name]([{k: v for k, v in row.items() if k != "label"} for row in rows], tmp_path / f"b{name}")
    layout = open_source(tmp_path / f"a{name}", layout=LAYOUT).layout
    whole = read_all(tmp_path / f"a{name}", layout=layout, unlabelled=True)
    bare = read_all(tmp_path / f"b{name}", layout=layout, unlabelled=True)
    assert rows_of(bare) == rows_of(whole)
    assert not bare.labels.any()
    if name != "data.jsonl":
        with pytest.raises(DataError, match="no column 'label'"):
            open_source(tmp_path / f"b{name}", layout=layout)


def test_a_table_of_many_columns(tmp_path: Path) -> None:
    names = [f"c{k}" for k in range(3000)]
    full: dict[str, Any] = {"label": 1, **{name: k % 3 for k, name in enumerate(names)}, "said": None}
    empty: dict[str, Any] = {"label": -1, **dict.fromkeys(names), "said": None}
    WRITERS["data.csv"]([full, empty], tmp_path / "d.csv")
    kinds, layout = {"label": "label", **dict.fromkeys(names, "numeric")}, Layout(text=("said",))
    assert rows_of(read_all(tmp_path / "d.csv", layout=layout)) == rows_meant([full, empty], **kinds)


@pytest.mark.parametrize("name", ["data.jsonl", "data.parquet", "data.arrow", "data.arrows"])
def test_what_is_missing_is_no_feature(tmp_path: Path, name: str) -> None:
    full: dict[str, Any] = {"label": 1, "x": 2.0, "c": "u", "l": ["a", "b"], "t": "some words"}
    gaps: list[dict[str, Any]] = [
        *({"x": None}, {"c": None}, {"c": ""}, {"l": None}, {"l": ["a", None]}, {"t": None}),
    ]
    rows = [full, *(full | gap for gap in gaps)]
    WRITERS[name](rows, tmp_path / name)
    chunk = read_all(tmp_path / name, layout=Layout(text=("t",)))
    assert np.diff(chunk.indptr).tolist() == [6, 5, 5, 5, 4, 5, 4]


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.jsonl", "data.parquet", "data.arrow"])
def test_the_value_that_is_wrong_is_told(tmp_path: Path, name: str) -> None:
    good: dict[str, Any] = {"label": 1, "w": 1.0, "x": 2.0}
    layout = Layout(weight="w", numeric=("x",))
    said = {"nan": "NaN", "inf": "inf", "-inf": "-inf", "1e+39": r"1e\+39, too large for float32"}
    for column in ("label", "w", "x"):
        for value, found in said.items():
            hint = "; to read it as a missing value: --missing nan"
            if name not in ("data.csv", "data.tsv"):
                hint = "; if it stands for a missing number, make it null"
            hint = hint if (column, value) == ("x", "nan") else ""
            if name in ("data.csv", "data.tsv"):
                found = f"'{value}'".replace("+", r"\+") + (
                    ", too large for float32" if value == "1e+39" else ""
                )
            WRITERS[name]([good, {**good, column: float(value)}], tmp_path / name)
            with pytest.raises(DataError, match=f"column '{column}', found {found}{hint}$"):
                read_all(tmp_path / name, layout=layout, domain="real")
        if column != "x":
            WRITERS[name]([good, {**good, column: None}], tmp_path / name)
            with pytest.raises(DataError, match=f"column '{column}', found (null|an empty cell)$"):
                read_all(tmp_path / name, layout=layout, domain="real")
