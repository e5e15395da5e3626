"""Groups of rows: read from every format, and kept whole by hold-outs and folds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from pyarrow import csv

import thresher
from thresher.data import Chunk, DataError, MemorySource, open_source
from thresher.data.layout import Layout
from thresher.data.source import GroupHashes
from thresher.learning.training.holdout import Holdout
from thresher.learning.training.shares import folds_of, held_out

pytestmark = pytest.mark.usefixtures("plainly", "own_folder")

ROWS = 60
QUERIES = np.repeat(np.arange(12), 5)
LABELS = np.arange(ROWS) * 7 % 5 % 2
BAD = 7
"""a bad row; a blank line follows"""
GROUPS = {"svm": "qid", "csv": "query", "vw": "tag", "jsonl": "query", "parquet": "query"}


def write(name: str) -> None:
    rows = [*enumerate(zip(LABELS.tolist(), QUERIES.tolist(), strict=True))]
    form = Path(name).suffix[1:]
    if form == "parquet":
        xs = np.where(np.arange(ROWS) == BAD, np.inf, np.arange(ROWS) % 7)
        pq.write_table(pa.table({"label": LABELS, "query": QUERIES, "x": xs}), name)
        return
    lines = {
        "svm": [f"{label} qid:{q} {k % 7 + 1}:1" for k, (label, q) in rows],
        "csv": [f'{label},"q,{q}",{k % 7}' for k, (label, q) in rows],
        "vw": [f"{2 * label - 1} 'q{q}|f a{k % 7}" for k, (label, q) in rows],
        "jsonl": [json.dumps({"label": label, "query": q, "x": k % 7}) for k, (label, q) in rows],
    }[form]
    lines[BAD] = "oops\n" if form != "csv" else "1,2,oops\n"
    Path(name).write_text("\n".join(["label,query,x"] * (form == "csv") + lines) + "\n")


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return np.array_equal(one[:, np.newaxis] == one, other[:, np.newaxis] == other)


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize("options", [{}, {"threads": 3, "block_bytes": 150}], ids=["whole", "blocks"])
def test_groups_are_read(form: str, options: dict[str, Any]) -> None:
    """Bad and blank lines have none, and the group is not a feature."""
    write(f"rows.{form}")
    name = {"svm": "svmlight"}.get(form, form)
    layout = Layout(name, group=GROUPS[form], numeric=("x",) if form == "csv" else ())
    source = open_source(f"rows.{form}", layout=layout, on_error="skip", **options)
    chunks = [*source.chunks()]
    found = np.concatenate([chunk.groups for chunk in chunks if chunk.groups is not None])
    assert same(found, np.delete(QUERIES, BAD))
    keys = np.concatenate([chunk.keys for chunk in chunks])
    assert len(set(keys.tolist())) == (7 if form in ("svm", "vw") else 1)


def test_what_has_no_group() -> None:
    Path("some.svm").write_text("1 qid:3 1:1\n1 1:1\n0 qid:3 2:1\n0 # qid:3\n")
    (chunk,) = open_source("some.svm", layout=Layout("svmlight", group="qid")).chunks()
    assert chunk.groups is not None
    assert (chunk.groups == 0).tolist() == [False, True, False, True]
    Path("some.vw").write_text("1 |a b\n1 2 'x |a b\n1 x|a b\n")
    (chunk,) = open_source("some.vw", layout=Layout("vw", group="tag")).chunks()
    assert chunk.groups is not None
    assert (chunk.groups == 0).tolist() == [True, False, False]
    assert chunk.groups[1] == chunk.groups[2]


@pytest.mark.parametrize(
    ("form", "group", "words"),
    [
        ("svmlight", "query", 'svmlight has no columns: groups are group="qid"'),
        ("csv", "user", "no column is called 'user'"),
    ],
)
def test_what_names_no_group(form: str, group: str, words: str) -> None:
    write("rows.csv")
    with pytest.raises(DataError, match=words):
        open_source("rows.csv", layout=Layout(form, group=group))


@pytest.mark.parametrize("cut", [1, 7, 600])
def test_a_group_is_on_one_side_and_in_one_fold(cut: int) -> None:
    groups = np.repeat(np.arange(1, 121, dtype=np.uint64), 5)
    groups[::50] = 0
    rows = Chunk.from_csr(np.arange(601), np.arange(600), np.ones(600), np.ones(600))
    rows = thresher.Chunk(rows.indptr, rows.keys, rows.values, rows.labels, rows.weights, groups=groups)
    holdout = Holdout(5)
    pieces = [rows.rows(lo, lo + cut) for lo in range(0, 600, cut)]
    learned = [int(row) for chunk in holdout.rest(MemorySource(pieces)).chunks() for row in chunk.keys]
    held = sorted({*range(600)} - {*learned})
    assert 60 < len(held) < 180
    assert held == np.flatnonzero(held_out(0, len(groups), 5, 0, groups)).tolist()
    named = groups != 0
    assert not {*groups[learned][named[learned]].tolist()} & {*groups[held][named[held]].tolist()}
    assert 1 < (~named[held]).sum() < 11  # rows without a group are drawn alone
    folds = folds_of(0, len(groups), 4, 0, groups)
    assert all(len({*folds[(groups == one)].tolist()}) == 1 for one in range(1, 121))
    assert np.bincount(folds).min() > 100


@pytest.mark.parametrize("order", ["as-is", "once"])
def test_files_and_arrays_have_the_same_groups(order: str) -> None:
    """The model of the file, cached or not, and of a table, are those of the rows in memory with `groups`."""
    write("rows.csv")
    text = Path("rows.csv").read_text().replace("1,2,oops\n", "").replace("\n\n", "\n")
    Path("rows.csv").write_text(text)
    options: dict[str, Any] = {"rule": "ftrl:l1=0.01", "holdout": 0.2, "passes": 2, "order": order}
    whole = thresher.train("rows.csv", group="query", **options)
    assert 2 * 30 < whole.examples < 2 * 59
    again = thresher.train("rows.csv", group="query", cache=False, **options)
    table = csv.read_csv("rows.csv")
    beside = thresher.train(
        table.drop_columns(["label", "query"]),
        table["label"].to_numpy(),
        groups=table["query"].to_pylist(),
        **options,
    )
    inside = thresher.train(table, group="query", **options)
    for other in (again, beside, inside):
        assert other.examples == whole.examples
        for one, two in zip(whole.weights(), other.weights(), strict=True):
            assert np.array_equal(one, two)


def test_groups_that_do_not_fit() -> None:
    X = np.ones((6, 2))
    with pytest.raises(DataError, match="5 groups for 6 rows or more: give one group for each row"):
        thresher.train(X, [1, -1] * 3, groups=[1] * 5)
    with pytest.raises(DataError, match="7 groups for 6 rows: give one group for each row"):
        thresher.train(X, [1, -1] * 3, groups=[1] * 7)
    write("rows.svm")
    with pytest.raises(DataError, match="groups are for data in memory; for files, name the column, group="):
        thresher.train("rows.svm", groups=[1] * 60)


def test_folds_of_groups() -> None:
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(40), 5)
    X = np.eye(40)[users] + 0.0  # a feature for each user: a model that has seen a user knows all of its rows
    y = np.where(rng.random(40) < 0.5, 1, -1)[users]
    apart = thresher.cv(X, y, rule="ftrl:l1=0.01", groups=users, folds=4)
    mixed = thresher.cv(X, y, rule="ftrl:l1=0.01", folds=4)
    assert apart.points[0].loss > 0.6
    assert mixed.points[0].loss < 0.6
    assert max(apart.points[0].counts) < 40
    with pytest.raises(DataError, match="the groups are too few for 4 folds"):
        thresher.cv(X, y, rule="ftrl:l1=0.01", groups=users > 20, folds=4)


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_groups_are_the_same_in_every_format(tmp_path: Path) -> None:
    """However a format writes a boolean, a number or a time."""
    n = 120
    frame = pd.DataFrame(
        {
            "label": [float(k % 3 == 0) for k in range(n)],
            "flag": [k % 2 == 0 for k in range(n)],
            "user": [None if k % 11 == 0 else float(k % 9) for k in range(n)],
            "price": [0.5 + k % 7 for k in range(n)],
            "when": [pd.Timestamp(2024, 1, 1 + k % 4, k % 3) for k in range(n)],
            "x": [k % 5 for k in range(n)],
        }
    )
    rows = pl.from_pandas(frame)
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    rows.with_columns(pl.col("user").cast(pl.Int64)).write_csv(tmp_path / "polars.csv")
    frame.to_parquet(tmp_path / "d.parquet")
    rows.with_columns(pl.col("price").cast(pl.Decimal(8, 2))).write_ndjson(tmp_path / "polars.jsonl")
    frame.assign(when=frame.when.astype(str)).to_json(tmp_path / "d.jsonl", orient="records", lines=True)
    files = [tmp_path / name for name in ("pandas.csv", "polars.csv", "d.parquet", "polars.jsonl", "d.jsonl")]
    told: dict[str, Any] = {"holdout": 0.4, "seed": 3, "l1": 0.0, "passes": 1}
    for column in ("flag", "user", "price", "when"):
        others = [name for name in ("flag", "user", "price", "when") if name != column]
        found = set()
        for data in (frame, rows, *files):
            model = thresher.train(data, group=column, ignore=others, **told)
            found.add((model.examples, model.tally.average))
        groups = frame[column]
        held = thresher.train(frame[["x"]], frame["label"], groups=groups, **told)
        assert {examples for examples, _ in found} == {held.examples}
        assert len(found) == 1
        assert held.examples < n or column == "flag"


@pytest.mark.parametrize(
    ("names", "same"),
    [
        (["1000", "1e3", "1000.0", "+1000"], True),
        (["0", "-0", "0.0"], True),
        (["7", "007"], False),
        (["12345678901234567890123456789", "12345678901234567890123456788"], False),
        (["2024-05-01", "2024-05-01 00:00:00", "2024-05-01T00:00:00.000Z"], True),
        (["2024-05-01 08:30", "2024-05-01T08:30:00"], True),
        (["2024-05-01 08:30:00.5", "2024-05-01 08:30:00"], False),
        (["true", "TRUE", "True"], True),
        (["t", "T"], False),
        (["e", "E", "+", "."], False),
    ],
)
def test_names_that_are_the_same_value(names: list[str], same: bool) -> None:
    known = GroupHashes()
    assert len({known[name] for name in names}) == (1 if same else len(names))
