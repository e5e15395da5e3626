"""The same rows in any format or table: the same slices, filters, starts from weights, and documented ids."""

import datetime
import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.covering import covering
from thresher.data import table_source
from thresher.learning.model.model import Model

ROWS = [
    {
        "label": k % 2,
        "flag": k % 3 == 0,
        "code": k % 4,
        "price": k / 4 if k % 4 else None,
        "maybe": k % 3 if k % 7 else None,
        "day": datetime.date(2024, 5, 1 + k % 5),
        "time": datetime.datetime(2024, 5, 1, k % 3),
        "word": None if k % 11 == 5 else "abc"[k % 3],
    }
    for k in range(60)
]
COLUMNS = [name for name in ROWS[0] if name != "label"]
CATEGORICAL = ["code", "maybe", "day", "time"]
FILES = ["pandas.csv", "polars.csv", "rows.jsonl", "polars.jsonl", "pandas.parquet", "polars.parquet"]
FILES += ["views.arrow"]
TABLES = ["pandas", "polars", "pyarrow", "rows"]
TYPED = ["pandas.parquet", "polars.parquet", "views.arrow", "pandas", "polars", "pyarrow"]


@cache
def polars() -> Any:
    return pl.DataFrame(ROWS)


@cache
def pandas() -> pd.DataFrame:
    return pd.DataFrame(ROWS)


_ISO = "%Y-%m-%dT%H:%M:%S"


def made(name: str, folder: Path) -> Any:
    """The rows in the format or table of this name: a path or an object."""
    path = folder / name
    known: dict[str, Any] = {
        "pandas": pandas,
        "polars": polars,
        "pyarrow": lambda: polars().to_arrow(),
        "rows": lambda: ROWS,
        "pandas.csv": lambda: pandas().to_csv(path, index=False, date_format=_ISO),
        "polars.csv": lambda: polars().write_csv(path, datetime_format=_ISO),
        "rows.jsonl": lambda: path.write_text(
            "".join(json.dumps(row, default=lambda date: date.isoformat()) + "\n" for row in ROWS)
        ),
        "polars.jsonl": lambda: polars().with_columns(pl.col("time").dt.strftime(_ISO)).write_ndjson(path),
        "pandas.parquet": lambda: pandas().to_parquet(path),
        "polars.parquet": lambda: polars().write_parquet(path),
        "views.arrow": lambda: polars().write_ipc(path),
    }
    found = known[name]()
    return path if name in FILES else found


def format_of(name: str) -> dict[str, Any]:
    return {"format": name.partition(".")[2]} if name in FILES else {}


@cache
def model() -> Model:
    """Learned from the table of polars: no file need be there."""
    return package.train(polars(), categorical=CATEGORICAL, rule="sgd", names=True)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("name", [*FILES, *TABLES])
def test_slices_are_those_of_the_rows(name: str, tmp_path: Path) -> None:
    expected = package.evaluate(model(), polars(), slices=COLUMNS)["slices"]
    assert [one["value"] for one in expected["flag"]] == ["false", "true"]
    assert {one["value"] for one in expected["time"]} == {f"2024-05-01T0{hour}:00:00" for hour in range(3)}
    found = package.evaluate(model(), made(name, tmp_path), slices=COLUMNS, **format_of(name))
    assert found["slices"] == expected


FILTERS: dict[str, Any] = {
    "flag = true": lambda row: row["flag"],
    "flag != false and code = 1": lambda row: row["flag"] and row["code"] == 1,
    "price >= 3": lambda row: row["price"] is not None and row["price"] >= 3,
    "maybe = 1": lambda row: row["maybe"] == 1,
    "maybe is null": lambda row: row["maybe"] is None,
    "day >= '2024-05-03'": lambda row: row["day"].day >= 3,
    "time > '2024-05-01 01:00:00'": lambda row: row["time"].hour > 1,
    "word = 'a'": lambda row: row["word"] == "a",
    "word is not null": lambda row: row["word"] is not None,
}


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(("name", "where"), covering(TYPED, [*FILTERS]))
def test_filters_pass_the_same_rows(name: str, where: str, tmp_path: Path) -> None:
    data, reading = made(name, tmp_path), format_of(name)
    kept = [row for row in ROWS if FILTERS[where](row)]
    assert 0 < len(kept) < len(ROWS)
    expected = package.evaluate(model(), pl.DataFrame(kept, polars().schema))
    assert package.evaluate(model(), data, where=where, **reading) == expected


@pytest.mark.parametrize("kind", [pa.string_view(), pa.list_(pa.string_view()), pa.string()])
def test_rows_of_views_in_lists_are_filtered_too(kind: Any) -> None:
    word: Any = "a" if pa.types.is_string(kind) or pa.types.is_string_view(kind) else ["a", "b"]
    table = pa.table({"label": [0, 1, 0], "n": [1, 2, 3], "word": pa.array([word] * 3, kind)})
    source = table_source(table, where="n >= 2")
    assert sum(len(chunk) for chunk in source.chunks()) == 2


IDS = {
    "pandas.csv": ["True", "1", "0.25", "2024-05-01", "2024-05-01T00:00:00", "1.0", "a"],
    "polars.csv": ["true", "1", "0.25", "2024-05-01", "2024-05-01T00:00:00", "1", "a"],
    "rows.jsonl": ["true", "1", "0.25", "2024-05-01", "2024-05-01T00:00:00", "1", "a"],
    "pandas.parquet": ["True", "1", "0.25", "2024-05-01", "2024-05-01 00:00:00", "1.0", "a"],
    "polars.parquet": ["True", "1", "0.25", "2024-05-01", "2024-05-01 00:00:00", "1", "a"],
}


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("name", IDS)
def test_ids_are_printed_as_the_file_has_them(name: str, folder: Path, thresher: Thresher) -> None:
    model().save("m")
    made(name, folder)
    expected = dict(zip(["flag", "code", "price", "day", "time", "maybe", "word"], IDS[name], strict=True))
    first = {"flag": 0, "code": 1, "price": 1, "day": 0, "time": 0, "maybe": 1, "word": 0}
    command = f"predict m {name} --format {name.partition('.')[2]} --id"
    for column, text in expected.items():
        ids = [line.partition("\t")[0] for line in thresher(f"{command} {column}").out.splitlines()]
        assert ids[first[column]] == text, column
        assert (ids[7] == "") == (column == "maybe"), "missing in row 8"
