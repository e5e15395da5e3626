"""Columns of categories that are written otherwise than in the training data."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli.conftest import Thresher
from thresher import load, train
from thresher.data import open_source, table_source
from thresher.data.layout import Layout
from thresher.data.report import RESPELLED
from thresher.learning.diagnostics.findings import TroubleWarning
from thresher.sklearn import SparseOnlineClassifier

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
    ("boolean", "yes"),
    ("boolean", "number"),
    ("number", "letter"),
    ("date", "american"),
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


@pytest.mark.parametrize("new", FORMATS)
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_values_of_another_kind_are_noticed(tmp_path: Path, before: str, after: str, new: str) -> None:
    write(tmp_path / "old.csv", before)
    trained = open_source(tmp_path / "old.csv", layout=LAYOUT).layout
    write(tmp_path / new, after)
    like = trained.in_format(new.removeprefix("data."))
    assert noticed(open_source(tmp_path / new, layout=like)) == [("a", before)]
    write(tmp_path / new, before)
    assert noticed(open_source(tmp_path / new, layout=like)) == []


def test_tables_in_memory_too(tmp_path: Path) -> None:
    write(tmp_path / "old.csv", "boolean")
    trained = open_source(tmp_path / "old.csv", layout=LAYOUT).layout
    frame = pd.DataFrame({"label": [0, 1] * 20, "a": ["yes", "no"] * 20, "b": ["t1"] * 40})
    assert noticed(table_source(frame, layout=trained)) == [("a", "boolean")]
    frame["a"] = [True, False] * 20
    assert noticed(table_source(frame, layout=trained)) == []
    assert noticed(table_source(frame[:3].assign(a="yes"), layout=trained)) == [], "too few to tell"


def test_one_value_of_the_kind_is_enough(tmp_path: Path) -> None:
    write(tmp_path / "old.csv", "number")
    trained = open_source(tmp_path / "old.csv", layout=LAYOUT).layout
    new = tmp_path / "new.csv"
    new.write_text("label,a,b\n" + "1,other,t1\n" * 60 + "1,7.0,t1\n" + "0,NA,t1\n" * 9)
    assert noticed(open_source(new, layout=trained)) == []


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
    assert thresher("train old.csv -m m -q").err == ""
    said = (
        "warning: column a of new.csv has 'yes' where the training data had true and false, so the model"
        " knows none of its values: write them as in the training data\n"
    )
    for command in ("predict m new.csv", "evaluate m new.csv", "train new.csv --init m -m n -q"):
        assert thresher(command).err == said
        assert thresher(command.replace("new", "old")).err == ""
    with pytest.warns(TroubleWarning, match="column a of new.csv has 'yes'"):
        load("m").predict("new.csv")


CODES = ["01730", "00501", "10001", "94110"]
WORDS = ["new york", "rome", "köln", "ulm"]


def table(values: list[str], change: Callable[[str], Any] = str) -> pd.DataFrame:
    return pd.DataFrame({"label": [0, 1, 1, 0] * 15, "a": [change(one) for one in values] * 15})


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {
        values[0]: train(table(values), categorical="a", rule="sgd", passes=1) for values in (CODES, WORDS)
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
        model.predict(table(cells))


def test_estimators_warn_too() -> None:
    words = table(WORDS)
    fitted = SparseOnlineClassifier("sgd").fit(words[["a"]], words["label"])
    fitted.predict(words[["a"]])
    with pytest.warns(TroubleWarning, match="column a of the table has 'ROME' where"):
        fitted.predict(table(WORDS[1:] + WORDS[:1], str.upper)[["a"]])


@pytest.mark.usefixtures("plainly")
def test_commands_warn_of_codes(folder: Path, thresher: Thresher) -> None:
    table(CODES).to_csv("old.csv", index=False)
    table(CODES, int).to_csv("new.csv", index=False)
    assert thresher("train old.csv -m m --categorical a -q").err == ""
    for command in ("predict m new.csv", "evaluate m new.csv", "train new.csv --continue m -m n -q"):
        with pytest.warns(TroubleWarning, match="column a of new.csv has '1730' where the training data had"):
            thresher(command)
        assert "column" not in thresher(command.replace("new", "old")).err
