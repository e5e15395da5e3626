"""Slices in the stream: figures by the value of a column, from predictions made before rows are learned."""

import csv
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher as package
from tests.stopping import stopping
from thresher.data.layout import Layout
from thresher.data.opening import open_source
from thresher.learning.evaluation import slices as slices_module
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.training.interruption import Interrupted
from thresher.learning.training.trainer import Trainer

pytestmark = [
    pytest.mark.usefixtures("plainly"),
    pytest.mark.filterwarnings("ignore::thresher.TroubleWarning"),
]
ROWS = 600
PLAIN: dict[str, Any] = {"rule": "sgd", "label": "click", "weight": "w", "passes": 1}


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    chance, path = np.random.default_rng(7), tmp_path / "clicks.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["click", "w", "site", "user", "age", "kind"])
        for k in range(ROWS):
            site = chance.integers(0, 4)
            click = int(chance.random() < 0.2 + 0.2 * site)
            name = f"s{site}" if k % 11 else ""
            writer.writerow([click, k % 3, name, f"u{k % 37}", k % 50, (k + int(site)) % 3])
    return path


def progressive(path: Path, **options: Any) -> tuple[pd.DataFrame, Model]:
    """The rows that count, with the loss and the probability of each before it is learned."""
    given = {**PLAIN, **options}
    reading = {name: given.pop(name) for name in ("label", "weight", "ignore") if name in given}
    source = open_source(path, layout=Layout(**reading))
    model = Model(
        given.pop("rule"), layout=source.layout, **{k: v for k, v in given.items() if k != "passes"}
    )
    found = defaultdict[str, list[float]](list)
    for chunk in source.chunks():
        for k in range(len(chunk)):
            row = chunk.rows(k, k + 1)
            p = float(model.predict(row, "probability")[0])
            found["predicted"].append(p)
            found["loss"].append(-math.log(p if row.labels[0] > 0 else 1 - p))
            model.learn(row)
    frame = pd.read_csv(path, keep_default_na=False).assign(**found)
    return frame[frame.w > 0], model


@pytest.mark.parametrize("average", [False, True])
def test_figures_are_those_of_predictions_before_learning(clicks: Path, average: bool) -> None:
    if average:  # whose predictions are those of mean weights, unlike its progressive loss
        trained = package.train(clicks, slices="site", average=True, **PLAIN)
        rows = trained.slices["site"]
        mean = sum(row["loss"] * row["weight"] for row in rows) / sum(row["weight"] for row in rows)
        assert mean == pytest.approx(trained.tally.average, rel=1e-12)
        return
    trained = package.train(clicks, slices=["site", "user"], ignore="user,age", **PLAIN)
    frame, _ = progressive(clicks, ignore="user,age")
    for column in ("site", "user"):
        rows, expected = trained.slices[column], frame.groupby(column)
        weights = expected.w.sum()
        assert {row["value"]: row["examples"] for row in rows if row["value"] in weights} == {
            value: len(one) for value, one in expected if value and value in {row["value"] for row in rows}
        }
        for row in rows:
            if row["value"] == "all others":
                continue
            one = frame[frame[column] == ("" if row["value"] == "no value" else row["value"])]
            assert row["weight"] == one.w.sum()
            assert row["loss"] == pytest.approx((one.loss * one.w).sum() / one.w.sum(), rel=1e-6)
            predicted, observed = (one.predicted * one.w).sum(), (one.click * one.w).sum()
            assert row["predicted"] == pytest.approx(predicted / one.w.sum(), rel=1e-6)
            assert row["observed"] == pytest.approx(observed / one.w.sum())
            assert row["ratio"] == (pytest.approx(predicted / observed, rel=1e-6) if observed else None)
        assert sum(row["examples"] for row in rows) == len(frame)
    assert [row["value"] for row in trained.slices["user"]][20:] == ["all others"]
    assert [row["value"] for row in trained.slices["site"]][-1] == "no value"
    heaviest = [row["weight"] for row in trained.slices["user"][:20]]
    assert heaviest == sorted(heaviest, reverse=True)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"batch": 7},
        {"calibrate": True},
        {"outputs": "classes:0-2", "loss": "softmax", "label": "kind"},
        {"outputs": "classes:0-2", "loss": "softmax", "label": "kind", "batch": 7, "passes": 3},
        {"loss": "squared", "label": "age", "rule": "ft-ftrl"},
        {"order": "once", "passes": 2},
        {"rule": "ft-ftrl", "passes": "auto", "holdout": 0.1},
        {"sample": "0=0.5"},
    ],
    ids=str,
)
def test_neither_the_model_nor_cuts_nor_threads_make_a_difference(clicks: Path, more: dict[str, Any]) -> None:
    options = {**PLAIN, **more}
    plain, sliced = package.train(clicks, **options), package.train(clicks, slices="site", **options)
    tensors, others = model_file.tensors_of(plain), model_file.tensors_of(sliced)
    assert tensors.keys() == others.keys()
    assert all(np.array_equal(tensors[name], others[name]) for name in tensors)
    assert plain.curve == sliced.curve
    assert not plain.slices
    rows = sliced.slices["site"]
    mean = sum(row["loss"] * row["weight"] for row in rows) / sum(row["weight"] for row in rows)
    assert mean == pytest.approx(sliced.tally.average, rel=1e-6)
    assert ("ratio" in rows[0]) == ("outputs" not in more)
    reading = {name: options.pop(name) for name in ("label", "weight")}
    for size, threads in ((64, 3), (1 << 20, 1)):
        source = open_source(
            clicks, layout=Layout(**reading), domain=sliced.head.domain, block_bytes=size, threads=threads
        )
        assert package.train(source, slices="site", **options).slices == sliced.slices


@pytest.mark.parametrize("more", [{}, {"batch": 16}, {"passes": 2}, {"batch": 16, "passes": 2}], ids=str)
@pytest.mark.parametrize("examples", [130, 399])
def test_stopping_makes_no_difference(clicks: Path, tmp_path: Path, more: Any, examples: int) -> None:
    options = {**PLAIN, "slices": ["user", "age"], "checkpoint": tmp_path / "spare", **more}

    def learned(trainer: Trainer) -> bool:
        return trainer.models.examples >= examples

    whole = package.train(clicks, **options)
    with stopping(learned), pytest.raises(Interrupted):
        package.train(clicks, checkpoint_every=examples, **options)
    with pytest.raises(ValueError, match=r"made with slices=.user,age.; leave slices out"):
        package.train(clicks, resume=True, **{**options, "slices": "user"})
    resumed = package.train(clicks, resume=True, **options)
    assert resumed.slices == whole.slices
    assert resumed.record == whole.record
    whole.save(tmp_path / "whole")
    assert package.Model.load(tmp_path / "whole").slices == whole.slices


def test_later_values_share_a_row(clicks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = package.train(clicks, slices="user", **PLAIN).slices["user"]
    every = {row["value"]: row for row in found[:-1]}
    monkeypatch.setattr(slices_module, "MOST_CELLS", 12)
    for size in (64, 1 << 20):
        source = open_source(clicks, layout=Layout(label="click", weight="w"), block_bytes=size)
        few = package.train(source, slices="user", rule="sgd", passes=1).slices["user"]
        first = [f"u{k}" for k in (1, 2, 4, 5, 7, 8, 10, 11, 13, 14)]
        assert {row["value"] for row in few} == {*first, "all others"}
        assert all(row == every.get(row["value"], row) for row in few)
        assert sum(row["examples"] for row in few) == ROWS * 2 // 3


def test_going_on_counts_the_new_rows(clicks: Path) -> None:
    for batch in (1, 7):
        old = package.train(clicks, slices="user", batch=batch, **PLAIN)
        more: dict[str, Any] = {"label": "click", "weight": "w", "passes": 1}
        new = package.train(clicks, continue_from=old, slices="site", **more)
        plain = package.train(clicks, continue_from=package.train(clicks, batch=batch, **PLAIN), **more)
        assert sum(row["examples"] for row in new.slices["site"]) == ROWS * 2 // 3
        assert [*new.slices] == ["site"]
        assert np.array_equal(new.weights()[1], plain.weights()[1])


def test_the_same_rows_in_a_table_in_memory(clicks: Path) -> None:
    expected = package.train(clicks, slices=["site", "age"], **PLAIN).slices
    frame = pd.read_csv(clicks)
    assert package.train(frame, slices=["site", "age"], **PLAIN).slices == expected
    frame.to_parquet(clicks.with_suffix(".parquet"))
    assert package.train(clicks.with_suffix(".parquet"), slices=["site", "age"], **PLAIN).slices == expected
    frame.to_json(clicks.with_suffix(".jsonl"), orient="records", lines=True)
    assert package.train(clicks.with_suffix(".jsonl"), slices=["site", "age"], **PLAIN).slices == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"slices": "city"}, "no column is called 'city'"),
        ({"slices": "click"}, "'click' is the label"),
        ({"slices": ["site", "3"]}, "^slices: name each column once, not 'site' twice"),
        ({"slices": "site,nr 1"}, "no column is called 'site,nr 1'; did you mean 'site'"),
        ({"slices": "site,us*"}, r"no column is called 'site,us\*'"),
        ({"slices": "site", "rule": "auto"}, "is for one model"),
    ],
)
def test_what_cannot_be(clicks: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        package.train(clicks, **{**PLAIN, **given})


def test_values_called_like_the_rows_for_others(tmp_path: Path) -> None:
    names = ["no value", "all others", '"no value"', ""]
    frame = pd.DataFrame({"click": [0, 1] * 40, "site": [name for name in names for _ in range(20)]})
    rows = package.train(frame, slices="site", **{**PLAIN, "weight": None}).slices["site"]
    assert [(row["value"], row["examples"]) for row in rows] == [
        *(('"no value"', 20), ('"all others"', 20), ('""no value""', 20), ("no value", 20)),
    ]


def test_long_values_leave_room_for_their_figures(tmp_path: Path) -> None:
    frame = pd.DataFrame({"click": [0, 1] * 40, "site": ["x" * 500, "y"] * 40})
    model = package.train(frame, slices="site", **{**PLAIN, "weight": None})
    assert model.slices["site"][0]["value"] == "x" * 500
    lines = slices_module.slice_lines("site", model.slices["site"])
    assert max(map(len, lines)) < 220
    assert lines[3].startswith("x" * 60 + "... *  ")


def test_data_without_columns_have_no_slices(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n0 2:1\n")
    with pytest.raises(ValueError, match="needs a table with columns"):
        package.train(path, slices="site")
    with pytest.raises(ValueError, match="needs a table with columns"):
        package.train(np.eye(4), [1, 0, 1, 0], slices="site")
