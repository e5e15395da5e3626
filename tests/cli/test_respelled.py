"""Codes that were texts in training, and have lost their zeros in new data."""

import json
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli.conftest import Thresher
from thresher import train
from thresher.learning.diagnostics.findings import TroubleWarning

FORMATS = ["data.csv", "data.tsv", "data.jsonl", "data.parquet"]
CODES = ["01730", "00501", "10001", "94110"]
SAID = "have lost zeros in front, and the model does not know them (column zip ('1730' for '01730')): "


def table(values: list[Any], rows: int = 15) -> pd.DataFrame:
    return pd.DataFrame({"label": [0, 1, 1, 0] * rows, "zip": values * rows})


def write(path: Path, values: list[Any]) -> str:
    frame = table(values)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in frame.to_dict("records")))
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)
    return str(path)


def said_of(model: Any, data: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(data)
    return [str(one.message) for one in caught if "[lost-zeros]" in str(one.message)]


@pytest.fixture(scope="module")
def model() -> Any:
    return train(table(CODES), categorical="zip", rule="sgd", passes=1)


@pytest.mark.parametrize("new", FORMATS)
def test_codes_read_as_numbers(tmp_path: Path, model: Any, new: str) -> None:
    (said,) = said_of(model, write(tmp_path / new, [*map(int, CODES)]))
    assert said.startswith(f"codes of {tmp_path / new} {SAID}")
    assert said_of(model, write(tmp_path / new, CODES)) == []


def test_tables_in_memory_and_floats(model: Any) -> None:
    for change in (int, float, lambda code: str(float(code))):
        for rows in (1, 15):
            assert len(said_of(model, table([*map(change, CODES)], rows))) == 1


@pytest.mark.parametrize(
    "cells",
    [
        ["1730", "01730"] * 2,  # one code that is not known
        ["1730"] * 4,
        ["1000", "3", "17", "5"],
        ["Rome"] * 4,
        ["?", "", "10001", "94110"],
    ],
)
def test_other_values_that_are_not_known_are_no_trouble(model: Any, cells: list[str]) -> None:
    assert said_of(model, table(cells)) == []


@pytest.mark.usefixtures("plainly")
def test_predict_evaluate_and_a_start_from_weights_warn(folder: Path, thresher: Thresher) -> None:
    write(folder / "old.csv", CODES)
    write(folder / "new.csv", [*map(int, CODES)])
    assert thresher("train old.csv --categorical zip --rule sgd -m m -q").err == ""
    for command in ("predict m new.csv", "evaluate m new.csv", "train new.csv --rule sgd --init m -m n -q"):
        with pytest.warns(TroubleWarning, match="codes of new.csv have lost zeros"):
            thresher(command)
        assert "lost zeros" not in thresher(command.replace("new", "old")).err
    held = "train old.csv --categorical zip --rule sgd --holdout new.csv -m n -q"
    assert f"codes of new.csv {SAID}" in thresher(held).err
