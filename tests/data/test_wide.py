"""Tables of many columns: names are looked up in dictionaries, never searched for in lists."""

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from thresher.data import DataError, open_source
from thresher.data.columns import finder, kinds_in, settle
from thresher.data.features.murmur import hash_bytes, hash_columns
from thresher.data.formats.tables import arrow_files, table_rows
from thresher.data.formats.tables.arrow_files import reader_of
from thresher.data.layout import Layout, SettledLayout

gc.freeze()
COLUMNS = 300
NAMES = ["label", *(f"c{k}" for k in range(1, COLUMNS))]


class Unsearched(list[str]):
    """Names that may be iterated over, but not searched."""

    def __contains__(self, name: object) -> bool:
        raise AssertionError(f"'{name}' is searched for in a list")

    def index(self, name: object, *_: Any) -> int:
        raise AssertionError(f"'{name}' is searched for in a list")


def settled(**options: Any) -> SettledLayout:
    return settle(Layout("csv", **options), NAMES, ["numeric"] * COLUMNS, "t.csv")


def test_options_with_many_names_do_not_search_the_columns() -> None:
    find = finder(Unsearched(NAMES))
    assert [find(name) for name in ("c7", "2", "2-3", "c29?", "none")] == [
        *(["c7"], ["c1"], ["c1", "c2"]),
        [f"c29{k}" for k in range(10)],
        [],
    ]
    layout = settled(categorical=tuple(NAMES[1::2]), ignore=tuple(NAMES[2::2]))
    assert layout.kinds[:3] == ("label", "categorical", "ignore")
    assert kinds_in(layout, Unsearched(NAMES), "t.csv") == [*layout.kinds]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "frame"])
def test_reading_searches_no_columns(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[list[Any]] = [[sign, *(k * sign for k in range(1, COLUMNS))] for sign in (1, -1)]
    path: Any = tmp_path / f"t.{kind}"
    table = pa.table(dict(zip(NAMES, zip(*rows, strict=True), strict=True)))
    if kind == "csv":
        path.write_text("\n".join(",".join(map(str, row)) for row in [NAMES, *rows]))
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows))
    elif kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    made = table_rows.kinds_of

    def unsearched(*given: Any) -> Any:
        found = made(*given)
        return found._replace(names=Unsearched(found.names), what=Unsearched(found.what))

    if kind != "csv":
        monkeypatch.setattr(arrow_files, "kinds_of", unsearched)
    source = thresher.data.table_source(table.to_pandas(), layout=Layout()) if kind == "frame" else None
    (chunk,) = (source or open_source(path, threads=1)).chunks()
    assert chunk.labels.tolist() == [1, -1]
    assert chunk.nnz == 2 * (COLUMNS - 1)


def test_a_column_for_each_line_is_no_table(tmp_path: Path) -> None:
    """Cells grow as lines times columns: what would have far more of them than values is refused."""
    path, columns = tmp_path / "t.jsonl", 3_300
    path.write_text("".join(f'{{"label": {k % 2}, "k{k}": 17}}\n' for k in range(columns)))
    with pytest.raises(DataError, match=r"3,301 columns in its first 3,300 lines, .* as a list of names"):
        open_source(path, threads=1)
    layout = Layout(ignore=("k*",))
    assert sum(len(one) for one in open_source(path, layout=layout, threads=1).chunks()) == columns
    path.write_text("".join(f'{{"label": {k % 2}, "keys": ["k{k}"]}}\n' for k in range(columns)))
    (chunk,) = open_source(path, threads=1).chunks()
    assert chunk.nnz == columns
    row = {"label": 1, **{f"k{k}": 17 for k in range(columns)}}
    path.write_text(f"{json.dumps(row)}\n" * 20)  # as many columns, all of them with values
    (chunk,) = open_source(path, threads=1).chunks()
    assert chunk.nnz == 20 * columns


def test_names_of_columns_have_the_hashes_of_names() -> None:
    names = ["", "é", *("x" * size + str(size) for size in range(50))]
    for seed in (0, 2**64 - 1):
        assert hash_columns(names, seed).tolist() == [hash_bytes(one.encode(), seed) for one in names]
    assert len(hash_columns([])) == 0


def test_frames_are_converted_as_by_pyarrow() -> None:
    frame = pd.DataFrame(
        {
            "a": [1.5, np.nan],
            "b": ["x", None],
            3: [1, 2],
            "d": [True, False],
            "e": pd.Categorical(["u", "v"]),
            "f": np.array([0.5, np.nan], np.float32),
            "g": [2.5, 3.5],
        }
    )
    ours, theirs = reader_of(frame).read_all(), pa.Table.from_pandas(frame, preserve_index=False)
    assert ours.equals(theirs)
    assert ours.schema.equals(theirs.schema)
    assert reader_of(frame[::-1]).read_all().equals(theirs.take([1, 0]))
    assert reader_of(frame[:0]).read_all().equals(theirs[:0])
