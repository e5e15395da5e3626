"""Trouble with the columns of tables: ids, texts and numbers read as categories, rows read as names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from tests.learning.test_trouble import table, warned
from thresher import TroubleWarning, train

pytestmark = pytest.mark.usefixtures("as_commands_say")


def as_csv(data: pa.Table, folder: Path) -> str:
    pyarrow.csv.write_csv(data, folder / "t.csv")
    return str(folder / "t.csv")


def as_jsonl(data: pa.Table, folder: Path) -> str:
    (folder / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in data.to_pylist()))
    return str(folder / "t.jsonl")


def as_parquet(data: pa.Table, folder: Path) -> str:
    pyarrow.parquet.write_table(data, folder / "t.parquet")
    return str(folder / "t.parquet")


WRITERS: list[Callable[[pa.Table, Path], Any]] = [as_csv, as_jsonl, as_parquet, lambda data, _: data]


@pytest.mark.parametrize("write", WRITERS)
def test_columns_that_differ_in_every_row(write: Callable[[pa.Table, Path], Any], tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    traps: dict[str, Any] = {"row": list(range(1, 401)), "user": [f"u{k * 7919 % 401}" for k in range(400)]}
    sane: dict[str, Any] = {
        "price": chance.random(400),
        "town": [f"t{k % 50}" for k in range(400)],
        "year": [2020] * 400,
    }
    found = warned(write(table(**traps, **sane), tmp_path))
    assert list(found) == ["id-columns"]
    assert "columns row, user differ in every one of the first 400 rows" in found["id-columns"]
    assert "--ignore row,user" in found["id-columns"]
    assert warned(write(table(**sane), tmp_path)) == {}


def as_pandas_parquet(data: pd.DataFrame, folder: Path) -> str:
    data.to_parquet(folder / "t.parquet")
    return str(folder / "t.parquet")


@pytest.mark.parametrize(
    "write",
    [
        lambda data, _: data,
        as_pandas_parquet,
        lambda data, _: pl.from_pandas(data.astype({"rate": str}).astype({"rate": "category"})),
        lambda data, _: pl.from_pandas(data.astype({"rate": str})).cast(
            {"rate": pl.Enum([*map(str, data.rate.cat.categories)])}
        ),
        lambda data, _: pa.table(
            {"label": data.label, "rate": pa.array(data.rate.astype(float)).dictionary_encode()}
        ),
    ],
    ids=["pandas", "Parquet", "polars", "Enum", "pyarrow"],
)
def test_categories_that_are_meant_to_be_are_no_trouble(write: Any, tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    rates = pd.Categorical(chance.integers(0, 30, 400) / 8)
    data = pd.DataFrame({"label": chance.integers(0, 2, 400), "rate": rates})
    assert warned(write(data, tmp_path)) == {}


def test_which_numbers_are_ids() -> None:
    scattered = np.random.default_rng(2).permutation(10**6)[:400]
    assert warned(table(metres=scattered)) == {}
    assert list(warned(table(user_id=scattered))) == ["id-columns"]
    customers = np.random.default_rng(3).permutation(9 * 10**5)[:400] * 1000 + 10**8
    assert list(warned(table(customer=customers))) == ["id-columns"]
    assert warned(table(second=np.sort(customers))) == {}, "a time, for example"
    customers[7] = customers[300]
    assert list(warned(table(customer=customers))) == ["codes-as-numbers"]


def numbers_but(*others: str) -> list[str]:
    cells = [str(18 + k * 7 % 60) for k in range(400)]
    cells[3 : 3 + 5 * len(others) : 5] = others
    return cells


@pytest.mark.parametrize("write", WRITERS)
def test_numbers_read_as_categories(write: Callable[[pa.Table, Path], Any], tmp_path: Path) -> None:
    found = warned(write(table(age=numbers_but("?", "NA")), tmp_path))
    assert list(found) == ["numbers-as-categories"]
    assert "column age is read as categories" in found["numbers-as-categories"]
    assert "except '?', 'NA'" in found["numbers-as-categories"]
    assert ("--missing '?,NA'" in found["numbers-as-categories"]) == (write is as_csv)
    assert warned(write(table(age=numbers_but("?")), tmp_path), categorical="age") == {}


@pytest.mark.parametrize("write", [one for one in WRITERS if one is not as_csv])
def test_numbers_given_as_text(write: Callable[[pa.Table, Path], Any], tmp_path: Path) -> None:
    data = write(table(age=[str(k % 200 / 4) for k in range(400)]), tmp_path)
    found = warned(data)
    assert list(found) == ["numbers-as-categories"]
    assert "column age is read as categories, because the numbers are given as text" in found.popitem()[1]
    assert warned(data, categorical="age") == {}
    codes = write(table(code=[str(10 + k % 30) for k in range(400)]), tmp_path)
    assert warned(codes) == {}, "codes, for all that is known"


@pytest.mark.parametrize("write", [as_csv, as_jsonl])
def test_a_cell_after_the_rows_examined_that_is_not_a_number(write: Any, tmp_path: Path) -> None:
    cells = [str(k % 200 / 4) for k in range(1200)]
    found = warned(write(table(1200, age=[*cells[:-1], "NA"]), tmp_path))
    assert list(found) == ["numbers-as-categories"]
    assert "though cells are numbers except 'NA'" in found["numbers-as-categories"]


@pytest.mark.parametrize("categorical", ["age", "*"])
def test_chosen_categories_are_no_trouble_where_labels_are_words(tmp_path: Path, categorical: str) -> None:
    data = table(age=[str(k % 200 / 4) for k in range(400)])
    named = data.set_column(
        0, "label", pa.array(["yes" if one else "no" for one in data["label"].to_pylist()])
    )
    for write in WRITERS:
        assert warned(write(named, tmp_path), categorical=categorical) == {}


@pytest.mark.parametrize("form", ["2023-05-%02d", "%02d.05.2023", "05/%02d/2023", "2023-05-%02dT12:00:00Z"])
def test_dates(form: str, tmp_path: Path) -> None:
    data = as_csv(table(day=[form % (1 + k % 28) for k in range(400)]), tmp_path)
    found = warned(data)
    assert list(found) == ["dates-as-categories"]
    assert f"column day ('{form % 1}') holds dates" in found["dates-as-categories"]
    assert "days since the first" in found["dates-as-categories"]
    assert warned(data, categorical="day") == {}
    assert warned(as_csv(table(version=[f"1.{k % 40}.2" for k in range(400)]), tmp_path)) == {}


@pytest.mark.parametrize("write", WRITERS)
def test_texts_read_as_categories(write: Callable[[pa.Table, Path], Any], tmp_path: Path) -> None:
    words = ["a", "thin", "plot", "but", "its", "actors", "are", "all", "good", "to", "watch"]
    texts = [" ".join([*words[k % 7 :][:4], str(k % 300)]) for k in range(400)]
    found = warned(write(table(review=texts), tmp_path))
    assert list(found) == ["text-columns"]
    assert "column review is read as one category" in found["text-columns"]
    assert "--text review" in found["text-columns"]
    assert warned(write(table(title=[" ".join(words[k % 7 :][:4]) for k in range(400)]), tmp_path)) == {}


def test_no_weights_of_cells_that_never_come_again() -> None:
    rows = table(review=[f"a thin plot {k}" for k in range(400)]).drop(["site"])
    with pytest.warns(TroubleWarning):
        model = train(rows, l1=1e6, passes=1)
    assert [one.name for one in model.warnings] == ["text-columns", "no-weights"]
    assert "--text review" in model.warnings[0].message


def test_a_row_read_as_the_names_of_columns(tmp_path: Path) -> None:
    rows = "".join(f"{k % 2},{k * 7 % 11}.25,0.{k * 3 % 7}\n" for k in range(400))
    (tmp_path / "rows.csv").write_text(rows)
    found = warned(str(tmp_path / "rows.csv"), label="1", l1=0.0)
    assert list(found) == ["numbers-as-names"]
    assert "names of columns (0.25, 0.0)" in found["numbers-as-names"]
    assert warned(str(tmp_path / "rows.csv"), label="1", l1=0.0, header=False) == {}
    (tmp_path / "rows.csv").write_text(f"y,0.25,price\n{rows}")
    assert warned(str(tmp_path / "rows.csv"), label="y", l1=0.0) == {}


def test_odd_names_and_cells_are_shown_in_one_short_line(tmp_path: Path) -> None:
    with pytest.warns(TroubleWarning) as caught:
        train(table().append_column("a\nb", [numbers_but("?")]))
    assert "column a\\nb is read" in str(caught[0].message)
    assert "\n" not in str(caught[0].message)
    cells = numbers_but("\ud800", "x" * 5000, "a\nb")
    lines = [json.dumps({"label": k % 2, "age": cell}) for k, cell in enumerate(cells)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    found = warned(str(tmp_path / "t.jsonl"), on_error="skip")
    assert list(found) == ["numbers-as-categories"]
    assert len(found["numbers-as-categories"]) < 400
    assert found["numbers-as-categories"].isascii()


def late_numbers(first: int, rows: int, word: str = "NA") -> pa.Table:
    return table(rows, age=[word if k < first else str(k * 7 % 60 + 0.5) for k in range(rows)])


@pytest.mark.parametrize("write", WRITERS)
def test_numbers_after_words_for_missing_values(write: Any, tmp_path: Path) -> None:
    for data in (late_numbers(1100, 1300), table(age=[*["NA", "?"] * 185, *map(str, range(30))])):
        found = warned(write(data, tmp_path))["numbers-as-categories"]
        assert "though cells are numbers except 'NA'" in found
        assert ("--missing" in found) == (write is as_csv)


@pytest.mark.parametrize("word", ["none", "unknown"])
def test_words_that_are_categories_are_no_trouble(word: str, tmp_path: Path) -> None:
    towns = [word if k < 1100 or k % 3 else "Ulm" for k in range(1300)]
    assert warned(as_csv(table(1300, town=towns), tmp_path)) == {}
    assert (
        warned(as_csv(table(1300, rating=[word if k % 3 else str(k % 5) for k in range(1300)]), tmp_path))
        == {}
    )


@pytest.mark.parametrize(("name", "form"), [("zip", "{:d}"), ("area", "{:05d}")])
def test_codes_among_words_for_missing_ones_are_categories(name: str, form: str, tmp_path: Path) -> None:
    codes = ["?" if k % 20 == 0 else form.format(k * 37 % 900 + 50) for k in range(400)]
    ages = ["?" if k % 30 == 0 else str(k % 60 + 20) for k in range(400)]
    data = table(age=ages).append_column(name, pa.array(codes))
    found = warned(as_csv(data, tmp_path))
    assert list(found) == ["numbers-as-categories"]
    assert "column age is read as categories, though cells are numbers except '?'" in found.popitem()[1]
    more = warned(as_csv(table(age=ages, size=ages), tmp_path))["numbers-as-categories"]
    assert "columns age, size are" in more
    assert "though cells are numbers except '?' in column age" in more
