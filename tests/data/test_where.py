"""Row filters: their syntax, which rows pass, and that places still refer to the file."""

import datetime
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covering import covering
from tests.data.reference import read_all, rows_of
from tests.data.tables import Streamed
from thresher.data import Chunk, DataError, open_source, table_source
from thresher.data.files.streams import HEAD
from thresher.data.formats.tables import arrow_files as tables_module
from thresher.data.formats.tables.delimited import DelimitedParser, RowParser
from thresher.data.formats.tables.where import conditions_in
from thresher.data.layout import Layout
from thresher.learning.diagnostics.column_findings import troubles_of_reading
from thresher.options.messages import as_stored

DAYS = [datetime.date(2024, 5, 1 + k // 20) for k in range(200)]
SOURCES = ["data.parquet", "data.arrow", "memory"]
NAMES = pytest.mark.parametrize("name", SOURCES)
LAYOUT = Layout(categorical=("n",), ignore=("day", "at", "d", "a b"))


@cache
def table() -> pa.Table:
    random = np.random.default_rng(4)
    return pa.table(
        {
            "label": random.integers(0, 2, 200),
            "n": list(range(200)),
            "small": pa.array([k % 100 for k in range(200)], pa.int8()),
            "x": pa.array([None if k % 7 == 0 else k / 10 for k in range(200)], pa.float32()),
            "city": ["Ulm", "Kiel", None, "Bonn's"] * 50,
            "kind": pa.array(["u", "v", None, "w"] * 50).dictionary_encode(),
            "new": [k % 3 == 0 for k in range(200)],
            "day": DAYS,
            "at": [datetime.datetime(2024, 5, 1, k % 24) for k in range(200)],
            "d": pa.array([f"{k}.50" for k in range(200)]).cast(pa.decimal128(6, 2)),
            "a b": [k % 5 for k in range(200)],
        }
    )


def source_of(name: str, folder: Path, where: str, **options: Any) -> Any:
    if name == "memory":
        return table_source(Streamed(table()), layout=LAYOUT, where=where, **options)
    if (folder / name).exists():
        pass  # as it was written before
    elif name == "data.parquet":
        pq.write_table(table(), folder / name, row_group_size=30)
    else:
        with pa.ipc.new_file(folder / name, table().schema) as file:
            file.write_table(table(), max_chunksize=30)
    return open_source(folder / name, layout=LAYOUT, where=where, **options)


def plain(where: Any) -> list[int]:
    return [k for k, row in enumerate(table().to_pylist()) if where(row)]


FILTERS: dict[str, Any] = {
    "n < 35": lambda r: r["n"] < 35,
    "n >= 60 and n<=61": lambda r: 60 <= r["n"] <= 61,
    "small = 99": lambda r: r["small"] == 99,
    "n > 170.5": lambda r: r["n"] > 170.5,
    "x = 0.1 and n != 3": lambda r: r["n"] == 1,
    "x < 0.45": lambda r: r["x"] is not None and r["n"] < 4.5,
    "x is null": lambda r: r["x"] is None,
    "x IS NOT NULL AND n IN (0, 7, 8)": lambda r: r["n"] == 8,
    "city = 'Ulm' and new == true": lambda r: r["city"] == "Ulm" and r["new"],
    "city != 'Ulm'": lambda r: r["city"] not in (None, "Ulm"),
    "city in ('Bonn''s', 'Kiel') and n < 99": lambda r: r["city"] in ("Bonn's", "Kiel") and r["n"] < 99,
    "kind = 'v'": lambda r: r["kind"] == "v",
    "day >= '2024-05-09'": lambda r: r["day"] >= datetime.date(2024, 5, 9),
    "at = '2024-05-01 07:00:00'": lambda r: r["at"].hour == 7,
    "d > 150.25": lambda r: r["d"] > 150,
    '"a b" = 3': lambda r: r["a b"] == 3,
}


@pytest.mark.parametrize(("name", "where"), covering(SOURCES, [*FILTERS]))
def test_the_rows_that_a_filter_keeps(tmp_path: Path, name: str, where: str) -> None:
    wanted = plain(FILTERS[where])
    assert 0 < len(wanted) < 200
    source = source_of(name, tmp_path, where)
    found = [row for chunk in source.chunks() for row in rows_of(chunk)]
    pq.write_table(table().take(wanted), tmp_path / "kept.parquet")
    assert found == rows_of(read_all(tmp_path / "kept.parquet", layout=LAYOUT))
    assert (source.report.lines, source.report.skipped) == (len(wanted), 0)


def test_row_groups_ruled_out_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[int]()
    original = pq.ParquetFile.iter_batches

    def counted(self: Any, size: int, groups: list[int], columns: list[str]) -> Any:
        read.extend(groups)
        return original(self, size, groups, columns)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    list(source_of("data.parquet", tmp_path, "n > 65 and day < '2024-05-06'").chunks())
    assert read == [2, 2, 3]  # the first rows tell what texts are


@NAMES
@pytest.mark.parametrize("threads", [1, 2])
def test_places_count_the_rows_of_the_file(
    tmp_path: Path, name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_module, "BATCH", 13)
    where = "n >= 65 and city != 'Kiel'"

    def chunks(start: Any = None) -> list[Chunk]:
        source = source_of(name, tmp_path, where, threads=threads)
        return list(source.chunks(start))

    whole = chunks()
    assert len(whole) > 5
    for k, chunk in enumerate(whole):
        assert chunk.place.offset == chunk.place.line
        assert chunk.after.offset == chunk.after.line
        for start, rest in ((chunk.place, whole[k:]), (chunk.after, whole[k + 1 :])):
            if rest:
                again = [(c.place, c.after, rows_of(c)) for c in chunks(start)]
                assert again == [(c.place, c.after, rows_of(c)) for c in rest]


@NAMES
def test_bad_rows_are_told_by_their_row_in_the_file(tmp_path: Path, name: str) -> None:
    rejected = tmp_path / "bad"
    broken = table().set_column(0, "label", pa.array([None if k in (8, 188) else 1 for k in range(200)]))
    pq.write_table(broken, tmp_path / "data.parquet", row_group_size=30)
    with pa.ipc.new_file(tmp_path / "data.arrow", broken.schema) as file:
        file.write_table(broken, max_chunksize=30)
    options: dict[str, Any] = {"where": "n > 150", "on_error": f"quarantine={rejected}", "layout": LAYOUT}
    memory = name == "memory"
    source = table_source(Streamed(broken), **options) if memory else open_source(tmp_path / name, **options)
    assert sum(len(chunk) for chunk in source.chunks()) == 48
    assert [one.line for one in source.report.first_bad] == [189]
    assert rejected.read_text().count("\n") == 1


WRONG = {
    "": "expected a column, found the end",
    "n": "is not null (a column whose name is not one word is in double quotes), found the end",
    "n ~ 3": "found ~",
    "n = Ulm": "expected a number, true, false, or a text in single quotes, found Ulm",
    "n = nan": "expected a number",
    "n = 'x": "expected a closing quote, found 'x",
    "n = 3 or x = 4": "expected 'and' or the end, found or",
    "n = 3 and": "expected a column, found the end",
    "n in 3": "expected '(', found 3",
    "n in (3, 4": "expected ',' or ')', found the end",
    "n is 3": "expected 'null'",
    "n is not 3": "expected 'null'",
    "3 < 4 < 5": "expected 'and' or the end, found <",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_filter(text: str) -> None:
    with pytest.raises(DataError) as raised:
        conditions_in(text)
    assert str(raised.value).startswith(f"--where {text}: expected ")
    assert WRONG[text] in str(raised.value)


UNFIT = {
    "m = 3": "no column is called 'm' (--where m = 3)",
    "n = '3'": "column 'n' of type int64 cannot be compared with '3'",
    "city = 3": "column 'city' of type string cannot be compared with 3 (put text in single quotes)",
    "small < 300": "300 is not a value of column 'small' with type int8",
    "day = 'May'": "'May' is not a value of column 'day' with type date32[day]",
    "new = 1": "column 'new' of type bool cannot be compared with 1",
    "n = true": "column 'n' of type int64 cannot be compared with true",
}


@pytest.mark.parametrize("where", UNFIT)
def test_filters_that_do_not_fit_the_columns(tmp_path: Path, where: str) -> None:
    with pytest.raises(DataError) as raised:
        source_of("data.parquet", tmp_path, where)
    assert str(raised.value).startswith(f"{tmp_path / 'data.parquet'}: ")
    assert UNFIT[where] in str(raised.value)


def test_a_filter_that_keeps_nothing_and_one_of_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no examples .*excluded by --where n > 200"):
        list(source_of("data.arrow", tmp_path, "n > 200").chunks())
    (tmp_path / "a.svm").write_text("1 1:2\n")
    with pytest.raises(DataError, match="svmlight has no columns: --where is only for tables"):
        open_source(tmp_path / "a.svm", where="x = 2")
    (tmp_path / "a.csv").write_text("label\n1\n")
    with pytest.raises(DataError, match=r"a.csv: --where needs a table of two columns or more"):
        open_source(tmp_path / "a.csv", where="label = 1")
    (tmp_path / "a.csv").write_text("label,x\n1,2\n")
    with pytest.raises(DataError, match=r"no column is called 'y' \(--where y = 2\)"):
        open_source(tmp_path / "a.csv", where="y = 2")


LINES = {
    "n < 20": lambda row: row["n"] < 20,
    "city = 'Ulm' and small >= 50": lambda row: row["city"] == "Ulm" and row["small"] >= 50,
    "city is null": lambda row: row["city"] is None,
    "o.x is not null and o.new = true": lambda row: row["x"] is not None and row["new"],
    "kind in ('u', 'w') and o is not null": lambda row: row["kind"] in ("u", "w"),
}


@pytest.mark.parametrize("where", LINES)
def test_lines_of_json(where: str, tmp_path: Path) -> None:
    """The same rows, with their numbers. What is no object is bad, and a blank line counted, as ever."""
    rows = table().to_pylist()
    lines = [
        json.dumps(
            {name: row[name] for name in ("label", "n", "small", "city", "kind")}
            | {"o": {"x": row["x"], "new": row["new"]}}
        )
        for row in rows
    ]
    kept, path = [k for k in plain(LINES[where]) if k != 50], tmp_path / "a.jsonl"
    path.write_text("\n".join([lines[k] for k in kept]))
    expected = rows_of(read_all(path, ids="n"))
    lines[50] += "}"
    lines.insert(100, "")
    path.write_text("\n".join(lines) + "\n")
    for block in (1, 1 << 20):
        source = open_source(path, where=where, on_error="skip", block_bytes=block, ids="n")
        found = list(source.rows())
        assert [row for parsed in found for row in rows_of(parsed.chunk)] == expected
        ids = [one for parsed in found for one in parsed.of_examples(parsed.ids or ())]
        assert ids == [str(k) for k in kept]
        assert [one.line for one in source.report.first_bad] == [51]
        assert (source.report.lines, source.report.blank) == (len(kept) + 2, 1)
    for never, more in {"n > 200": "", "cyti = 'Ulm'": "; no row has a value in column cyti"}.items():
        with pytest.raises(DataError, match=rf"excluded by --where {never}\){more}; first: "):
            list(open_source(path, where=never, on_error="skip").chunks())


@pytest.mark.parametrize(
    ("name", "lost"), [("citty", True), ("o.city", True), ("late", False), ("city", False)]
)
def test_a_column_that_a_filter_names_and_no_line_has(name: str, lost: bool, tmp_path: Path) -> None:
    row, path = {"label": 1, "city": None, "o": {"x": 1}}, tmp_path / "a.jsonl"
    lines = [json.dumps(one) + "\n" for one in (row, row | {"city": "Ulm", "late": 1})]
    path.write_text(lines[0] * (HEAD // len(lines[0])) + lines[1])
    source = open_source(path, where=f"{name} is null")
    list(source.chunks())
    for layout, hint in {None: "check the name", source.layout: "did you mean 'city'?"}.items():
        found = [one for one in troubles_of_reading(source.report, layout) if one.name == "no-such-column"]
        expected = f"no row has a value in column {name} (--where {name} is null): {hint}"
        assert [as_stored(one.message) for one in found] == [expected] * lost


CELLS = {
    "n < 20": lambda row: row["n"] < 20,
    "city = 'Ulm' and small >= 50": lambda row: row["city"] == "Ulm" and row["small"] >= 50,
    "city is null": lambda row: row["city"] is None,
    "x is not null and new = true": lambda row: row["x"] is not None and row["new"],
    "kind in ('u', 'w') and \"a b\" != 3": lambda row: row["kind"] in ("u", "w") and row["a b"] != 3,
}


@pytest.mark.parametrize("where", CELLS)
def test_cells_of_csv(where: str, tmp_path: Path) -> None:
    """The same rows, with their numbers; blank lines, the header again and bad rows are counted, as ever."""
    rows, columns = table().to_pylist(), ["label", "n", "small", "x", "city", "kind", "new", "a b"]
    cells = [
        ["NA" if row[one] is None else str(row[one]) for one in columns] + ['"so, it is"'] for row in rows
    ]
    lines = [",".join(row) + "\r\n" for row in cells]
    head, path = ",".join(columns) + ",note\r\n", tmp_path / "a.csv"
    layout = Layout(missing=("NA",), categorical=("kind", "city"))
    kept = [k for k in plain(CELLS[where]) if k != 50]
    path.write_text(head + "".join(lines), newline="")
    settled = open_source(path, layout=layout).layout
    path.write_text(head + "".join(lines[k] for k in kept), newline="")
    expected = rows_of(read_all(path, layout=settled))
    lines[50] = ",".join(cells[kept[0]][:-1]) + "\r\n"  # passes, but lacks a cell
    lines[100] = "\r\n" + head + lines[100]
    path.write_text(head + "".join(lines), newline="")
    options: dict[str, Any] = {"layout": settled, "where": where, "on_error": "skip", "ids": "n"}
    for block, threads in ((1, 1), (700, 2), (1 << 20, 1)):
        source = open_source(path, block_bytes=block, threads=threads, **options)
        found = list(source.rows())
        assert [row for parsed in found for row in rows_of(parsed.chunk)] == expected
        ids = [one for parsed in found for one in parsed.of_examples(parsed.ids or ())]
        assert ids == [str(k) for k in kept]
        assert [one.line for one in source.report.first_bad] == [52]
        assert (source.report.lines, source.report.blank) == (len(kept) + 4, 3)


ODD_CELLS = "a", "Ä", "x" * 32, "x" * 33, "", " ", '"q"', '"a,b"', '"un', 'mid"dle', "\0", "z\r", "label"
ODD_LINES = "", "\r", "label,n,city", '"label","n",CITY', "1", "1,2", "1,2,3,4", "1,2,\r"


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_cells_are_the_same_whether_lines_are_read_together_or_one_by_one(data: st.DataObject) -> None:
    """Quotes, line ends, headers, missing and surplus cells among plain lines, in CSV and TSV."""
    separator, where = data.draw(st.sampled_from(",\t")), data.draw(st.sampled_from(["", "city = 'a'"]))
    cells = st.sampled_from(ODD_CELLS) | st.text("ab\u00df", max_size=3)
    plain_lines = st.tuples(st.sampled_from("01"), st.sampled_from(["1", "2.5", ""]), cells).map(",".join)
    lines = data.draw(st.lists(plain_lines | st.sampled_from(ODD_LINES), min_size=1, max_size=30))
    text = "\n".join(["label,n,city", "1,1,a", *lines]).replace(",", separator)
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("a.csv" if separator == "," else "a.tsv")
        path.write_bytes(text.encode() + b"\n")

        def found() -> list[Any]:
            source = open_source(path, where=where, on_error="skip")
            source.sliced = ["city", "n", "city"]
            read = [(rows_of(one), one.cells is not None and one.cells.tolist()) for one in source.chunks()]
            return [read, source.report]

        together = found()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DelimitedParser, "read_plain", RowParser.read_plain)
            assert found() == together


@pytest.mark.parametrize("where", ["b >= 1", "b < 0", "b is null"])
@pytest.mark.parametrize(
    "row", ['0,"y"z,5', '0,1,"q"r', '1,"q', 'r",4', '0,"open,4', '0,1,"open', "0,1", "0,1,2,3"]
)
def test_a_row_without_cells_is_bad_whatever_the_filter(where: str, row: str, tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text(f'label,a,b\n1,x,3\n{row}\n0,"y,""z",-1\n1,"",\n')
    source = open_source(path, where=where, on_error="skip")
    assert sum(map(len, source.chunks())) == 1
    assert [one.line for one in source.report.first_bad] == [3]
