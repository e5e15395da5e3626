"""Rows of importance 0, and ``label:weight`` in svmlight: learned or not, counted and reported."""

from pathlib import Path

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from thresher.api import evaluate
from thresher.data import DataError
from thresher.data.layout import Layout, SettledLayout

pytestmark = pytest.mark.usefixtures("plainly")
LINES = [f"{1 - 2 * (i % 2)}:{int(i % 3 == 0)} {1 + i % 4}:1 {5 + i % 7}:0.5" for i in range(60)]


@pytest.mark.parametrize("command", ["train", "path", "cv", "tune"])
def test_they_are_reported(folder: Path, thresher: Thresher, command: str) -> None:
    (folder / "rows.svm").write_text("\n".join(LINES * 3) + "\n")
    few = {"path": "--l1 0.01:0.1:2", "cv": "--l1 0.01:0.1:2 --folds 2", "tune": "--rules ft-ftrl --budget 2"}
    more = few.get(command, "") + " -m m" * (command != "cv")
    ran = thresher.ok(f"{command} rows.svm --label-weights {more}")
    there = 107 if command == "path" else 120  # one row in ten is held out
    assert f"{there} rows of importance 0: not learned" in ran.err


def test_no_row_has_an_importance(folder: Path, thresher: Thresher) -> None:
    (folder / "rows.svm").write_text("1:0 1:1\n-1:0 2:1\n" * 30)
    ran = thresher.ok("train rows.svm --label-weights -m m")
    assert "warning: all 60 rows have importance 0, so nothing was learned: " in ran.err
    assert "rows of importance 0: not learned" not in ran.err


def test_a_bad_line_of_importance_0_is_a_bad_line(folder: Path, thresher: Thresher) -> None:
    (folder / "rows.svm").write_text("1:1 1:1\n-1:0 2:x\n1:0 2:1\n")
    thresher.fails("train rows.svm --label-weights -m m", 1, "rows.svm:2:")
    ran = thresher("train rows.svm --label-weights -m m --on-error skip")
    assert "skipped 1 bad line of 3" in ran.err
    assert "1 row of importance 0: not learned" in ran.err


def test_importances_that_the_model_was_not_trained_with(folder: Path, thresher: Thresher) -> None:
    cells = [(k % 4 == 0, 1 + k % 3, f"s{k % 5}") for k in range(120)]
    (folder / "d.csv").write_text("label,n,a\n" + "".join(f"{y:d},{n},{a}\n" for y, n, a in cells))
    again = "".join(f"{y:d},{a}\n" * n for y, n, a in cells)
    (folder / "repeated.csv").write_text(f"label,a\n{again}")
    assert thresher("train d.csv -m m -q --ignore n").status == 0
    expected = thresher("evaluate m repeated.csv --json").json
    for column in ("n", "2"):
        found = thresher(f"evaluate m d.csv --weight {column} --slice a --json").json
        assert found["log_loss"] == pytest.approx(expected["log_loss"], rel=1e-6)
        assert sum(one["weight"] for one in found["slices"]["a"]) == 240
    without = thresher("evaluate m d.csv --weight n --slice a --json").json
    nothing = "".join(f"{y:d},0,s{k % 9}\n" for k, (y, _, _) in enumerate(cells))
    with (folder / "d.csv").open("a") as file:
        file.write(nothing)
    assert thresher("evaluate m d.csv --weight n --slice a --json").json == {**without, "importance_0": 120}
    ran = thresher.ok("report m d.csv --weight n --json")
    assert ran.json["test"]["loss"] == found["loss"]
    thresher.fails("evaluate m d.csv --weight a", 2, "trained with 'a' as categorical; leave --weight out")
    ran = thresher("evaluate m d.csv --weight na")
    assert (ran.status, ran.err.endswith("use --weight '' to evaluate; did you mean 'n'?\n")) == (1, True)


def test_data_without_the_importances_of_training(folder: Path, thresher: Thresher) -> None:
    """They are evaluated with all rows alike, on the command line and in Python, as if each had 1."""
    rows = [(k % 4 == 0, 1 + k % 3, f"s{k % 5}") for k in range(60)]
    (folder / "d.csv").write_text("label,n,a\n" + "".join(f"{y:d},{n},{a}\n" for y, n, a in rows))
    (folder / "ones.csv").write_text("label,n,a\n" + "".join(f"{y:d},1,{a}\n" for y, _, a in rows))
    (folder / "bare.csv").write_text("label,a\n" + "".join(f"{y:d},{a}\n" for y, _, a in rows))
    assert thresher("train d.csv -m m -q --weight n --rule sgd").status == 0
    ran = thresher("evaluate m bare.csv")
    assert "no column 'n' of importances: to count all rows alike" in ran.err
    expected = thresher("evaluate m ones.csv --json").json
    for data in ("bare.csv", "d.csv"):
        assert thresher("evaluate", "m", data, "--weight", "", "--json").json == expected
        assert evaluate("m", data, weight="").items() <= expected.items()
    assert thresher("report", "m", "bare.csv", "--weight", "").status == 0
    with pytest.raises(DataError, match='use weight="" to evaluate'):
        evaluate("m", "bare.csv")


TRAIN = "--rule sgd --rate constant:0.5 -q --no-intercept"
HINT = "if the field is label:weight, use --label-weights"


@pytest.fixture
def files(folder: Path) -> None:
    Path("plain.svm").write_text("1 3:1\n-1 7:1\n1 3:2 9:1\n" * 5)
    Path("weighted.svm").write_text("1:2 3:1\n-1:0.5 7:1\n1:1 3:2 9:1\n" * 5)
    Path("rows.svm").write_text("3:1 7:1\nqid:2 3:1 7:1\n 3:1 7:1\n+3:1 7:1\n1 3:1 7:1\n")


@pytest.mark.usefixtures("files")
def test_rows_without_labels_are_predicted_whole(thresher: Thresher) -> None:
    thresher(f"train plain.svm -m m {TRAIN}")
    predicted = thresher.ok("predict m rows.svm")
    margins = predicted.out.split()
    assert len(margins) == 5
    assert len({*margins}) == 1
    for command in ("train rows.svm -m n -q", "evaluate m rows.svm"):
        ran = thresher(command)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err == f"thresher: rows.svm:1:1: expected a label, found '3:1'; {HINT}\n"


@pytest.mark.usefixtures("files")
def test_weights_of_labels_are_asked_for_once_and_kept_in_the_model(thresher: Thresher) -> None:
    ran = thresher(f"train weighted.svm -m m {TRAIN}")
    assert (ran.status, ran.err) == (
        1,
        f"thresher: weighted.svm:1:1: expected a label, found '1:2'; {HINT}\n",
    )
    assert thresher(f"train weighted.svm -m m {TRAIN} --label-weights").status == 0
    assert thresher(f"train plain.svm -m n {TRAIN}").status == 0
    assert thresher("weights m").out != thresher("weights n").out
    told = thresher("evaluate m weighted.svm --json")
    assert told.json["examples"] == 15
    assert told.out == thresher("evaluate m weighted.svm --label-weights --json").out
    assert thresher("evaluate n weighted.svm --label-weights").status == 0
    assert HINT in thresher("evaluate n weighted.svm").err
    assert thresher("predict m weighted.svm").out == thresher("predict m plain.svm").out
    assert "'-1:0.5'" in thresher("predict m weighted.svm --no-label-weights").err
    assert len({*thresher("predict m rows.svm --no-label-weights").out.split()}) == 1
    model = package.train("weighted.svm", "sgd", rate="constant:0.5", intercept=False,
                          layout=Layout("svmlight", label_weights=True))  # fmt: skip
    kept = package.load("m")
    assert kept.layout == model.layout == SettledLayout("svmlight", label_weights=True)
    assert kept.weights.tolist() == model.predictor().weights.tolist()


@pytest.mark.usefixtures("files")
def test_label_weights_are_of_svmlight_only(thresher: Thresher) -> None:
    Path("a.csv").write_text("label,x\n1,2\n")
    ran = thresher("train a.csv -m m -q --label-weights")
    assert (ran.status, ran.err) == (1, "thresher: csv: --label-weights is only for svmlight\n")
    assert thresher("train a.csv -m m -q --no-label-weights").status == 0
