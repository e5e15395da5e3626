"""Indexes, codes, quotes and blanks in columns; every remedy is tried on the data that provoked it."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.layouts import layout_of
from tests.learning.test_trouble import warned
from thresher.data import open_source

ROWS = 400
chance = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def as_said(as_commands_say: None, plainly: None) -> None:
    """Warnings name options."""


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"label": chance.integers(0, 2, ROWS), **columns})


def told(data: Any, **options: Any) -> dict[str, str]:
    return {name: one for name, one in warned(str(data), l1=0.0, **options).items() if name not in OTHERS}


def kinds(path: Path, **options: Any) -> tuple[str, ...]:
    return open_source(path, layout=layout_of(options)).layout.kinds


OTHERS = {"worse-than-constant", "scales", "sorted-labels"}


def remedies(message: str) -> list[dict[str, Any]]:
    found = re.findall(r"--(\w+) ('[^']*'|[\w,:.-]*\w)", message)
    return [{name: value.strip("'").replace("\\t", "\t")} for name, value in found]


@pytest.mark.parametrize("again", [False, True])
def test_the_index_of_a_data_frame(again: bool, tmp_path: Path) -> None:
    data = frame(a=chance.random(ROWS)).set_axis(chance.permutation(10**5)[:ROWS], axis=0)
    data.to_csv(path := tmp_path / "a.csv")
    if again:
        pd.read_csv(path).to_csv(path)
    found = told(path)
    assert list(found) == ["index-column"]
    wanted = "--ignore '\"\",Unnamed: 0'" if again else "column 1 (without a name) holds row numbers"
    assert wanted in found["index-column"]
    (remedy,) = remedies(found["index-column"])
    assert told(path, **remedy) == {}
    assert kinds(path, **remedy)[0] == "ignore"
    data.to_parquet(tmp_path / "a.parquet")
    assert list(told(tmp_path / "a.parquet")) == ["index-column"]
    data.to_csv(path, index=False)
    assert told(path) == {}


@pytest.mark.parametrize("name", ["level_0", "...1", "row", "rowid", "row_names"])
def test_row_numbers_with_a_name(name: str, tmp_path: Path) -> None:
    data = frame(a=chance.random(ROWS))
    data.insert(0, name, chance.permutation(10**5)[:ROWS])
    data.to_csv(path := tmp_path / "a.csv", index=False)
    assert list(told(path)) in (["index-column"], ["id-columns"])


@pytest.mark.parametrize("name", ["bid", "max_bid", "amount_paid", "valid", "humid", "grid", "covid"])
def test_words_that_end_like_an_id_are_no_codes(name: str, tmp_path: Path) -> None:
    data = frame(**{name: chance.integers(0, 100, ROWS)})
    data.to_csv(path := tmp_path / "a.csv", index=False)
    assert told(path) == {}


CODES = {
    "C14": chance.choice(chance.integers(10, 25_000, 200), ROWS),
    "C15": chance.choice(chance.integers(10, 25_000, 200), ROWS),
    "C16": chance.choice(chance.integers(10, 25_000, 200), ROWS),
    "user": chance.choice(chance.integers(10**16, 10**17, 150), ROWS),
    "shop": chance.choice(chance.integers(10**8, 10**9, 150), ROWS),
    "zip": chance.choice(chance.integers(1000, 99_999, 150), ROWS),
}
AMOUNTS = {
    "age": chance.integers(18, 90, ROWS),
    "tax": chance.choice(chance.integers(180, 720, 60), ROWS),
    "day": [f"2023{1 + k % 12:02}{1 + k % 28:02}" for k in range(ROWS)],
    "time": 1_700_000_000 + chance.permutation(ROWS * 50)[:ROWS] // 2,
    "nanosecond": (1_700_000_000 + np.arange(ROWS)) * 10**9 + 12_345,
    "hour": 14_102_100 + chance.integers(0, 24, ROWS),
    "C1": chance.integers(0, 5, ROWS),
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_that_are_codes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    write = pd.DataFrame.to_parquet if kind == "parquet" else pd.DataFrame.to_csv
    write(frame(**CODES, age=AMOUNTS["age"]), path, index=False)
    found = told(path)
    assert list(found) == ["codes-as-numbers"]
    assert "columns C14, C15, C16 and 3 more look like codes" in found["codes-as-numbers"]
    both = remedies(found["codes-as-numbers"])
    assert both == [{"categorical": "C14-zip"}, {"numeric": "C14-zip"}]
    for remedy in both:
        assert told(path, **remedy) == {}
    assert kinds(path, categorical="C14-C16,user") == ("label", *["categorical"] * 4, *["numeric"] * 3)


def test_whole_numbers_that_are_no_codes(tmp_path: Path) -> None:
    frame(**AMOUNTS).to_csv(tmp_path / "a.csv", index=False)
    assert told(tmp_path / "a.csv") == {}


def test_ranges_of_columns_by_name(tmp_path: Path) -> None:
    from thresher.data.columns import matching

    names = ["a-1", "b", "c-2", "d"]
    assert matching("a-1-c-2", names) == names[:3]
    assert matching("b-d", names) == names[1:]
    assert matching("a-1", names) == ["a-1"]
    assert matching("b-x", names) == matching("d-b", names) == []


QUOTING: Any = {"sep": "\t", "index": False}


@pytest.mark.parametrize("every", [5, 50])
def test_blanks_among_numbers(every: int, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    cells = [" " if k % every == 0 else str(k * 7 % 60) for k in range(ROWS)]
    frame(x=cells).to_csv(path, index=False)
    assert told(path) == {}
    assert kinds(path) == ("label", "numeric")
    frame(x=[*cells[:-2], "?", "?"]).to_csv(path, index=False)
    (remedy,) = remedies(told(path)["numbers-as-categories"])
    assert remedy == {"missing": "?"}
    assert kinds(path, **remedy) == ("label", "numeric")
    frame(x=[*cells[:-2], "n,a", "?"]).to_csv(path, index=False)
    (remedy,) = remedies(told(path)["numbers-as-categories"])
    assert remedy == {"numeric": "x"}
    source = open_source(path, layout=layout_of(remedy), on_error="skip")
    assert sum(len(chunk) for chunk in source.chunks()) == ROWS - 2
