"""Columns of categories whose values are not those of the training data, or are written otherwise."""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli.conftest import Thresher
from tests.covering import covering
from thresher import train
from thresher.data import open_source
from thresher.data.layout import Layout
from thresher.data.report import RESPELLED
from thresher.learning.diagnostics.findings import TroubleWarning

FORMATS = ["data.csv", "data.tsv", "data.jsonl", "data.parquet"]
OF: dict[str, Callable[[int], Any]] = {
    "boolean": lambda k: k % 3 == 0,
    "yes": lambda k: "yes" if k % 3 == 0 else "no",
    "number": lambda k: k % 3,
    "letter": lambda k: "abc"[k % 3],
    "date": lambda k: f"2024-05-{k % 9 + 10}",
    "american": lambda k: f"05/{k % 9 + 10}/2024",
    "seconds": lambda k: 1715300000 + 86400 * (k % 9),
}
PAIRS = [
    *(("boolean", "yes"), ("boolean", "number"), ("number", "letter"), ("date", "american")),
    ("date", "seconds"),
]
LAYOUT = Layout(categorical=("a",))


def write(path: Path, what: str, rows: int = 40) -> None:
    made = [{"label": k % 2, "a": OF[what](k), "b": f"t{k % 4}"} for k in range(rows)]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in made))
    elif path.suffix == ".parquet":
        pd.DataFrame(made).to_parquet(path)
    else:
        pd.DataFrame(made).to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)


def noticed(source: Any) -> list[tuple[str, str]]:
    list(source.chunks())
    return [
        (one.column, one.kind.partition(" ")[0]) for one in source.report.noticed if one.what == RESPELLED
    ]


def said_of(model: Any, data: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(data)
    return [str(one.message) for one in caught if issubclass(one.category, TroubleWarning)]


@pytest.fixture(scope="module")
def of_kind(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    folder, known = tmp_path_factory.mktemp("models"), dict[str, Any]()

    def model_of(what: str) -> Any:
        if what not in known:
            write(folder / "old.csv", what)
            known[what] = train(folder / "old.csv", categorical="a", rule="sgd", passes=1)
        return known[what]

    return model_of


@pytest.mark.parametrize(("new", "pair"), covering(FORMATS, PAIRS))
@pytest.mark.usefixtures("plainly")
def test_values_that_are_all_others(of_kind: Any, tmp_path: Path, pair: tuple[str, str], new: str) -> None:
    before, after = pair
    write(tmp_path / new, after)
    (said,) = said_of(of_kind(before), tmp_path / new)
    assert re.match(r"column a of .* where the training data had .*; the model knows 0 of 40 values: ", said)
    assert said.endswith("[unknown-values]")
    write(tmp_path / new, before)
    assert said_of(of_kind(before), tmp_path / new) == []


@pytest.mark.parametrize("new", FORMATS)
def test_all_formats_settle_the_same_usual_values(tmp_path: Path, new: str) -> None:
    usual = {"boolean": "a,false,true", "letter": "a,a,b,c", "number": "a,0,1,2"}
    for what, found in usual.items():
        write(tmp_path / new, what)
        assert open_source(tmp_path / new, layout=LAYOUT).layout.usual == (found, "b,t0,t1,t2,t3")


def test_tables_in_memory_too() -> None:
    def frame(values: list[Any]) -> pd.DataFrame:
        return pd.DataFrame({"label": [0, 1] * 30, "a": values * 30})

    model, few = train(frame([True, False]), rule="sgd", passes=1), frame(["yes", "no"])[:20]
    assert said_of(model, frame([True, False])) == []
    assert len(said_of(model, frame(["yes", "no"]))) == len(said_of(model, frame(["zzz", "zzz"]))) == 1
    assert said_of(model, few) == [], "too few to tell"


def test_what_was_usual_but_has_no_weight_is_no_trouble() -> None:
    """A column that says nothing; a value whose weight is 0; one value of 50 that is known; sorted days."""

    def frame(**columns: list[Any]) -> pd.DataFrame:
        made = {name: [values[k % len(values)] for k in range(300)] for name, values in columns.items()}
        return pd.DataFrame({"label": [k // 3 % 2 for k in range(300)], **made})

    sparse = train(frame(a=["x", "y", "z"], b=["p"] * 3 + ["q"] * 3), rule="ft-ftrl:l1=5", passes=1)
    assert 0 < sparse.nonzero <= 2
    assert said_of(sparse, frame(a=["other"], b=["p", "q"])) == []
    assert said_of(sparse, frame(a=["x"], b=["p"])) == said_of(sparse, frame(a=["x"], b=["q"])) == []
    assert len(said_of(sparse, frame(a=["x"], b=["other"]))) == 1
    assert said_of(sparse, frame(a=["x"], b=["other"] * 9 + ["p"])) == []
    days = train(frame(a=[f"day {k // 100}" for k in range(300)]), rule="sgd", passes=1)
    assert said_of(days, frame(a=["day 3"])) == []


def test_rows_of_all_parts_of_a_file_are_looked_at(of_kind: Callable[[str], Any], tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("label,a,b\n" + "1,other,t1\n" * 900 + "1,a,t1\n" * 100)
    assert said_of(of_kind("letter"), new) == []


def test_dates_are_of_other_days(of_kind: Callable[[str], Any], tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("label,a,b\n" + "1,2025-01-02,t1\n" * 60)
    assert said_of(of_kind("date"), new) == []


def test_a_second_file_of_a_training(tmp_path: Path) -> None:
    write(tmp_path / "one.csv", "boolean")
    write(tmp_path / "two.csv", "yes")
    source = open_source([tmp_path / "one.csv", tmp_path / "two.csv"])
    assert noticed(source) == [("a", "boolean")]
    (one,) = source.report.noticed
    assert one.place == str(tmp_path / "two.csv")
    assert noticed(open_source([tmp_path / "one.csv", tmp_path / "one.csv"])) == []


@pytest.mark.usefixtures("plainly")
def test_predict_evaluate_and_a_start_from_weights_warn(folder: Path, thresher: Thresher) -> None:
    write(folder / "old.csv", "boolean")
    write(folder / "new.csv", "yes")
    assert thresher("train old.csv --rule sgd -m m -q").err == ""
    said = (
        "column a of new.csv has 'yes', 'no' where the training data had 'false', 'true'; the model knows 0"
    )
    for command in ("predict m new.csv", "evaluate m new.csv", "train new.csv --rule sgd --init m -m n -q"):
        with pytest.warns(TroubleWarning, match=said):
            thresher(command)
        assert "column a of" not in thresher(command.replace("new", "old")).err
    assert said in thresher("train old.csv --rule sgd --holdout new.csv -m n -q").err


CODES = ["01730", "00501", "10001", "94110"]
DAYS = ["2024-05-01", "2024-05-02", "2024-06-01", "2024-07-01"]
TIMES = [f"{day}T10:00:00" for day in DAYS]
WORDS = ["new york", "rome", "köln", "ulm"]


def table(values: list[str], change: Callable[[str], Any] = str) -> pd.DataFrame:
    return pd.DataFrame({"label": [0, 1, 1, 0] * 15, "a": [change(one) for one in values] * 15})


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {
        values[0]: train(table(values), categorical="a", rule="sgd", passes=1)
        for values in (CODES, WORDS, DAYS, TIMES)
    }


@pytest.mark.parametrize(
    ("values", "change", "now", "before"),
    [
        (CODES, int, "'1730'", "'01730'"),
        (CODES, float, "'1730'", "'01730'"),
        (CODES, lambda code: str(float(code)), "'1730.0'", "'01730'"),
        (WORDS, str.title, "'New York'", "'new york'"),
        (WORDS, str.upper, "'NEW YORK'", "'new york'"),
        (WORDS, lambda word: f" {word}", "' new york'", "'new york'"),
        (WORDS, lambda word: f'"{word}"', "'\"new york\"'", "'new york'"),
        (DAYS, pd.Timestamp, "'2024-05-01T00:00:00'", "'2024-05-01'"),
        (DAYS, "{} 00:00:00".format, "'2024-05-01 00:00:00'", "'2024-05-01'"),
        (TIMES, lambda time: time.replace("T", " "), "'2024-05-01 10:00:00'", "'2024-05-01T10:00:00'"),
    ],
)
def test_values_that_the_model_knows_in_another_spelling(
    models: dict[str, Any], values: list[str], change: Callable[[str], Any], now: str, before: str
) -> None:
    model = models[values[0]]
    said = re.escape(f"column a of the table has {now} where the training data had {before}, which")
    for rows in (table(values, change), table(values, change)[:3]):
        with pytest.warns(TroubleWarning, match=said) as caught:
            model.predict(rows)
        assert ("dtype={'a': str}" in str(caught[0].message)) == (values is CODES)


@pytest.mark.parametrize(
    "cells",
    [
        CODES,
        ["1730", "01730"] * 2,  # one code that is not known, of which others are
        ["1730"] * 4,
        ["1000", "3", "17", "5"],
        ["Rome"] * 4,
        ["berlin", "Bonn", "KIEL", "?"],
    ],
)
def test_other_values_that_are_not_known_are_no_trouble(models: dict[str, Any], cells: list[str]) -> None:
    for model in models.values():
        assert not [one for one in said_of(model, table(cells)) if "respelled" in one]
