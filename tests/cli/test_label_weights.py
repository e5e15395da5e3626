"""Rows of svmlight with and without labels, and ``label:weight``, from training to prediction."""

from __future__ import annotations

from pathlib import Path

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from thresher.data.layout import Layout, SettledLayout

pytestmark = pytest.mark.usefixtures("plainly")

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
    predicted = thresher("predict m rows.svm")
    assert predicted.status == 0
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
    assert kept.weights.tolist() == model.readout().weights.tolist()


@pytest.mark.usefixtures("files")
def test_a_row_that_begins_with_a_blank_has_no_label(thresher: Thresher) -> None:
    Path("lists.svm").write_text("1,2 3:1\n 7:1\n2 3:1 7:1\n")
    for command, status in (
        ("train lists.svm -m m -q --outputs labels:1-2", 0),
        ("predict m lists.svm", 0),
        ("train lists.svm -m n -q --outputs values:2 --loss squared", 1),
    ):
        assert thresher(command).status == status
    Path("one.svm").write_text("1 3:1\n 1:1 7:1\n")
    for weighted, reason in (
        ("", f"a label, found '1:1'; {HINT}"),
        (" --label-weights", "a label at the start"),
    ):
        ran = thresher(f"train one.svm -m n -q{weighted}")
        assert (
            ran.status,
            ran.err[: -len("\n")].startswith(f"thresher: one.svm:2:2: expected {reason}"),
        ) == (1, True)


@pytest.mark.usefixtures("files")
def test_label_weights_are_of_svmlight_only(thresher: Thresher) -> None:
    Path("a.csv").write_text("label,x\n1,2\n")
    ran = thresher("train a.csv -m m -q --label-weights")
    assert (ran.status, ran.err) == (1, "thresher: csv: --label-weights is only for svmlight\n")
    assert thresher("train a.csv -m m -q --no-label-weights").status == 0
