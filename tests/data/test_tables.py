"""Tables in every format yield the same chunks and targets, however they are read; nothing is lost."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.covering import covering
from tests.data.reference import Row, bits, read_all, rows_of
from tests.data.tables import WRITERS, Bad, Streamed, as_table, meaning, write_csv
from thresher.data import Chunk, DataError, open_source, table_source
from thresher.data.features.murmur import hash_bytes
from thresher.data.formats.tables import arrow_files as tables_module
from thresher.data.layout import Layout, SettledLayout

quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KINDS = {
    "label": "label",
    "w": "weight",
    "x": "numeric",
    "y": "numeric",
    "city": "categorical",
    "id": "categorical",
}
LAYOUT = Layout("", weight="w", numeric=("x", "y"), categorical=("id",))
FORMATS = pytest.mark.parametrize("name", WRITERS)
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\t\0", exclude_categories=["Cs"]), max_size=12
)
numbers = st.floats(-1e6, 1e6, width=32).map(lambda x: float(str(np.float32(x))))
cells = st.fixed_dictionaries(
    {
        "label": st.sampled_from([-1, 0, 1]),
        "w": st.sampled_from([0.5, 1.0, 2.0]),
        "x": st.none() | numbers,
        "y": st.none() | st.integers(-(2**40), 2**40),
        "city": st.none() | texts,
        "id": st.none() | st.integers(-(2**62), 2**62),
    }
)


def some_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return [
        {
            "label": int(random.choice([-1, 1])),
            "w": float(random.choice([0.5, 1.0, 3.0])),
            "x": None if random.random() < 0.2 else float(f"{random.normal():.5g}"),
            "y": None if random.random() < 0.2 else int(random.integers(-4, 5)),
            "city": str(random.choice(["Ulm", "Köln", "a b", "Bad 'X', am Y", ""])) or None,
            "id": int(random.integers(0, 50)),
        }
        for _ in range(count)
    ]


def expected(rows: list[dict[str, Any]]) -> list[Any]:
    found = [meaning(row, KINDS) for row in rows]
    return bits([row for row in found if isinstance(row, Row)])


@FORMATS
@quick
@given(rows=st.lists(cells, min_size=1, max_size=12))
def test_every_format_means_the_same(tmp_path: Path, name: str, rows: list[dict[str, Any]]) -> None:
    rows = [*some_rows(1), *({column: row[column] for column in KINDS} for row in rows)]
    path = tmp_path / name
    WRITERS[name](rows, path)
    assert rows_of(read_all(path, layout=LAYOUT)) == expected(rows)


@quick
@given(
    rows=st.lists(st.lists(texts, min_size=3, max_size=3), min_size=1, max_size=8), quote=st.integers(0, 2)
)
def test_quoted_cells(tmp_path: Path, rows: list[list[str]], quote: int) -> None:
    table = [{"label": 1, **dict(zip("abc", row, strict=True))} for row in rows]
    write_csv(table, tmp_path / "q.csv", quoting=[0, 1, 2][quote])
    chunk = read_all(tmp_path / "q.csv", layout=Layout("csv", categorical=("a", "b", "c")))
    kinds = {"label": "label", "a": "categorical", "b": "categorical", "c": "categorical"}
    assert rows_of(chunk) == bits([row for one in table if isinstance(row := meaning(one, kinds), Row)])


def with_bad(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    bad: dict[int, dict[str, Any]] = {
        3: {"label": None},
        20: {"w": -1.0},
        21: {"label": 7},
        40: {"x": 1e39},
        41: {"w": None},
    }
    return [row | bad.get(k, {}) for k, row in enumerate(rows)]


@FORMATS
def test_bad_rows_are_told_others_learned(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "BATCH", 16)
    rows = with_bad(some_rows(60))
    WRITERS[name](rows, tmp_path / name)
    source = open_source(
        tmp_path / name, layout=LAYOUT, on_error=f"quarantine={tmp_path / 'bad'}", block_bytes=500
    )
    found = [row for chunk in source.chunks() for row in rows_of(chunk)]
    wrong = [(k, one.column) for k, row in enumerate(rows) if isinstance(one := meaning(row, KINDS), Bad)]
    assert [k for k, _ in wrong] == [3, 20, 21, 40, 41]
    assert found == expected(rows)
    head = name.endswith((".csv", ".tsv"))
    report = source.report
    assert (report.lines, report.examples, report.skipped, report.blank) == (60 + head, 55, 5, int(head))
    assert [one.line for one in report.first_bad] == [k + 1 + head for k, _ in wrong]
    for told, (_, column) in zip(report.first_bad, wrong, strict=True):
        assert f"in column '{column}'" in str(told)
        assert str(tmp_path / name) in str(told)
    assert (tmp_path / "bad").read_bytes().count(b"\n") == 5
    assert (tmp_path / "bad").read_bytes() == b"".join(one.raw + b"\n" for one in report.first_bad)
    with pytest.raises(DataError, match="a label in column 'label'"):
        list(open_source(tmp_path / name, layout=LAYOUT).chunks())


LISTS = pytest.mark.parametrize("name", [name for name in WRITERS if "sv" not in name])
# TSV is read as CSV is, but for quotes; no other test would compile its loop for several labels
NOT_TSV = [name for name in WRITERS if name != "data.tsv"]
SEVERAL = pytest.mark.parametrize("name", NOT_TSV)
VALUES = Layout(label="b,c,a")
PLAIN = Layout("svmlight")


def all_of(chunk: Chunk) -> tuple[Any, bytes]:
    return rows_of(chunk), chunk.targets.tobytes()


def some_values(count: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(3)
    numbers = np.round(random.normal(0, 3, (count, 4)), 3).tolist()
    return [{"a": a, "x": x, "b": b, "c": c} for a, x, b, c in numbers]


def some_lists(count: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(4)
    lists = [random.permutation(5)[: random.integers(0, 4)] + 3 for _ in range(count)]
    return [{"label": [int(k) for k in one], "x": float(j + 1)} for j, one in enumerate(lists)]


def as_svmlight(rows: list[dict[str, Any]], *labels: str) -> str:
    key = hash_bytes(b"x", 0)
    if labels:
        heads = [",".join(str(row[name]) for name in labels) for row in rows]
    else:
        heads = [",".join(map(str, row["label"])) for row in rows]
    return "".join(f"{head} {key}:{row['x']}\n" for head, row in zip(heads, rows, strict=True))


@pytest.mark.parametrize(("name", "block"), covering(NOT_TSV, [1, 40, 1 << 20]))
def test_columns_as_values(tmp_path: Path, name: str, block: int) -> None:
    rows = some_values(60)
    WRITERS[name](rows, tmp_path / name)
    (tmp_path / "a.svm").write_text(as_svmlight(rows, "b", "c", "a"))
    options: dict[str, Any] = {"domain": "values:3,real", "block_bytes": block}
    found = read_all(tmp_path / name, layout=VALUES, threads=2, **options)
    assert found.targets.shape == (60, 3)
    assert all_of(found) == all_of(read_all(tmp_path / "a.svm", layout=PLAIN, **options))


@LISTS
def test_a_column_of_lists_as_labels(tmp_path: Path, name: str) -> None:
    rows = some_lists(600)
    WRITERS[name](rows, tmp_path / name)
    (tmp_path / "a.svm").write_text(as_svmlight(rows))
    found = read_all(tmp_path / name, domain="labels:3-7")
    assert all_of(found) == all_of(read_all(tmp_path / "a.svm", layout=PLAIN, domain="labels:3-7"))
    assert set(found.targets.sum(axis=1).tolist()) == {-5.0, -3.0, -1.0, 1.0}


def test_tables_in_memory() -> None:
    rows = some_values(30)
    source = table_source(Streamed(as_table(rows)), layout=VALUES, domain="values:3,real")
    targets = np.concatenate([chunk.targets for chunk in source.chunks() if chunk.targets is not None])
    assert np.array_equal(targets, np.array([[row[name] for name in "bca"] for row in rows], np.float32))


@SEVERAL
def test_columns_in_another_order_and_without_labels(tmp_path: Path, name: str) -> None:
    rows = some_values(20)
    WRITERS[name](rows, tmp_path / name)
    source = open_source(tmp_path / name, layout=VALUES, domain="values:3,real")
    settled = SettledLayout.from_dict(json.loads(json.dumps(source.layout.as_dict())))
    assert settled.labels == ("b", "c", "a")
    other = tmp_path / f"other-{name}"
    WRITERS[name]([{"c": row["c"], "b": row["b"], "a": row["a"], "x": row["x"]} for row in rows], other)
    again = read_all(other, layout=settled, domain="values:3,real")
    assert all_of(again) == all_of(read_all(tmp_path / name, layout=VALUES, domain="values:3,real"))
    WRITERS[name]([{"x": row["x"]} for row in rows], other)
    bare = open_source(other, layout=settled, domain="values", unlabelled=True)
    found = [row[2:] for chunk in bare.chunks() for row in rows_of(chunk)]
    assert found == [row[2:] for row in rows_of(again)]


@SEVERAL
def test_bad_values(tmp_path: Path, name: str) -> None:
    rows = some_values(20)
    rows[4]["c"], rows[7]["b"], rows[19]["a"] = None, None, None
    WRITERS[name](rows, tmp_path / name)
    source = open_source(tmp_path / name, layout=VALUES, domain="values:3,nonnegative", on_error="skip")
    good = [row for row in rows if all(row[k] is not None and row[k] >= 0 for k in "abc")]
    found = [row for chunk in source.chunks() for row in rows_of(chunk)]
    assert len(found) == len(good) > 0
    assert source.report.skipped == 20 - len(good)
    missing = open_source(tmp_path / name, layout=VALUES, domain="values:3,real", on_error="skip")
    assert sum(len(chunk) for chunk in missing.chunks()) == 17
    expected = [one.expected for one in missing.report.first_bad]
    assert expected == [f"a label in column '{column}'" for column in "cba"]


def test_bad_lists(tmp_path: Path) -> None:
    lists = [[3, 4], [3, 3], [2], [9], None, [4, None], [], [3.0]]
    table = pa.table({"label": pa.array(lists, pa.list_(pa.float64())), "x": [1.0] * 8})
    pq.write_table(table, tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet", domain="labels:3-8", on_error="skip")
    assert sum(len(chunk) for chunk in source.chunks()) == 3
    found = [(one.line, one.expected) for one in source.report.first_bad]
    assert found == [
        *((2, "each class once in column 'label'"), (3, "a class from 3 to 8 as label in column 'label'")),
        *((4, "a class from 3 to 8 as label in column 'label'"), (5, "a label in column 'label'")),
        (6, "a label in column 'label'"),
    ]


def test_labels_that_do_not_fit_the_outputs(tmp_path: Path) -> None:
    WRITERS["data.csv"](some_values(3), tmp_path / "a.csv")
    WRITERS["data.parquet"](some_lists(3), tmp_path / "a.parquet")

    def told(name: str, layout: Layout, domain: str) -> str:
        with pytest.raises(DataError) as raised:
            list(open_source(tmp_path / name, layout=layout, domain=domain).chunks())
        return str(raised.value)

    assert (
        told("a.csv", VALUES, "real") == "expected one label column, found 3; several need outputs values:3"
    )
    assert told("a.csv", Layout(label="a"), "values:2,real") == (
        "outputs values:2 needs 2 label columns (--label a,b,...), not 1"
    )
    assert told("a.csv", Layout(label="a,b,a"), "values:3,real").endswith("a.csv: --label names 'a' twice")
    assert "no column is called 'z'" in told("a.csv", Layout(label="a,z"), "values:2,real")
    assert told("a.csv", Layout(label="a"), "labels:0-3").startswith("csv: lists of labels need")
    assert "need single numbers (lists need labels:LO-HI)" in told("a.parquet", Layout(), "real")
    assert "need lists as labels" in told("a.parquet", Layout(label="x"), "labels:0-3")
