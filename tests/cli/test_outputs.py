"""Classes, lists of classes and lists of numbers, on the command line."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Thresher
from tests.models import without_record

pytestmark = pytest.mark.usefixtures("plainly")

FEATURES, CLASSES = 12, 4
LISTS = "train lists.svm -m m -q --outputs labels:3-6 --rule adagrad-fobos:eta=0.5,l1=1e-3"
VALUES = "train values.svm -m m -q --outputs values:4 --loss squared --rule adagrad-fobos:eta=0.5,l1=1e-3"


@pytest.fixture(autouse=True)
def files(folder: Path) -> list[list[int]]:
    """``classes.svm`` (3 to 6), ``lists.svm`` with the same classes, ``values.svm``; returns the lists."""
    random = np.random.default_rng(0)
    truth = random.normal(size=(FEATURES, CLASSES))
    written: dict[str, list[str]] = {"classes": [], "lists": [], "values": []}
    lists = []
    for _ in range(200):
        ids = np.sort(random.choice(FEATURES, 4, replace=False))
        x = random.normal(size=4).round(3)
        margins = x @ truth[ids]
        features = " ".join(f"{i}:{v}" for i, v in zip(ids, x, strict=True))
        held = (np.flatnonzero(margins > 0.5) + 3).tolist()
        lists.append(held)
        written["classes"].append(f"{margins.argmax() + 3} {features}")
        written["lists"].append(f"{','.join(map(str, held))} {features}")
        written["values"].append(f"{','.join(f'{m:.4f}' for m in margins)} {features}")
    for name, rows in written.items():
        Path(f"{name}.svm").write_text("\n".join(rows) + "\n")
    return lists


def test_lists_of_classes(thresher: Thresher, files: list[list[int]]) -> None:
    ran = thresher(f"{LISTS} --passes 5 --holdout every-5th --json")
    assert (ran.status, ran.err) == (0, "")
    assert {"holdout_loss", "holdout_error", "holdout_micro_f1"} <= set(ran.json)
    assert ran.json["holdout_micro_f1"] > 0.85
    figures = thresher("evaluate m lists.svm --json").json
    assert list(figures)[:6] == ["examples", "loss", "error", "micro_f1", "micro_precision", "micro_recall"]
    assert [one["class"] for one in figures["by_class"]] == ["3", "4", "5", "6"]
    assert "\nby class\n" in thresher("evaluate m lists.svm --detail").out
    lines = thresher("predict m lists.svm --output label").out.split("\n")[:-1]
    found = [[int(k) for k in line.split(",") if k] for line in lines]
    assert [] in found
    assert [] in files
    hits = sum(len({*a} & {*b}) for a, b in zip(found, files, strict=True))
    claims = sum(map(len, found)) + sum(map(len, files))
    assert figures["micro_f1"] == pytest.approx(2 * hits / claims)
    assert figures["error"] == pytest.approx((claims - 2 * hits) / (200 * CLASSES))
    margins = [
        [float(m) for m in row.split("\t")] for row in thresher("predict m lists.svm").out.splitlines()
    ]
    assert [(np.flatnonzero(np.array(row) > 0) + 3).tolist() for row in margins] == found
    chances = [
        row.split("\t") for row in thresher("predict m lists.svm --output probability").out.splitlines()
    ]
    assert np.allclose(np.array(chances, float), 1 / (1 + np.exp(-np.array(margins))), atol=1e-6)
    classes = {line.split("\t")[2] for line in thresher("weights m").out.splitlines()}
    assert classes == {"3", "4", "5", "6"}


def test_lists_of_numbers(thresher: Thresher) -> None:
    ran = thresher.ok(f"{VALUES} --passes 9 --order once")
    assert ran.err == ""
    figures = thresher("evaluate m values.svm --json").json
    assert list(figures) == [
        *("examples", "loss", "rmse", "base_rmse", "mae", "r2", "rmse_by_output", "nonzero"),
    ]
    assert thresher("evaluate m values.svm --detail").out == thresher("evaluate m values.svm").out
    assert figures["rmse"] < 0.2
    rows = [[float(m) for m in row.split("\t")] for row in thresher("predict m values.svm").out.splitlines()]
    truth = [
        [float(y) for y in line.split()[0].split(",")] for line in Path("values.svm").read_text().splitlines()
    ]
    assert np.sqrt(((np.array(rows) - truth) ** 2).mean()) == pytest.approx(figures["rmse"])


def test_a_bad_list_is_passed_over_and_told(thresher: Thresher) -> None:
    thresher(f"{LISTS} --batch 8 --on-error skip")
    whole = without_record("m")
    text = Path("lists.svm").read_text().splitlines(keepends=True)
    Path("lists.svm").write_text("".join([*text[:150], "4,7 1:1\n", *text[150:]]))
    ran = thresher(f"{LISTS} --batch 8 --on-error skip")
    assert "lists.svm:151:3: expected a class from 3 to 6 as label, found '7'" in ran.err
    assert without_record("m") == whole


def test_predicting_looks_at_no_label(thresher: Thresher) -> None:
    thresher(LISTS)
    lines = Path("lists.svm").read_text().splitlines()
    Path("other.svm").write_text("".join("99,0.5 " + line.partition(" ")[2] + "\n" for line in lines))
    Path("none.svm").write_text("".join(" " + line.partition(" ")[2] + "\n" for line in lines))
    expected = thresher("predict m lists.svm").out
    assert expected.count("\n") == 200
    for name in ("other", "none", "classes"):
        assert thresher(f"predict m {name}.svm").out == expected


WRONG = [
    ("lists", "", 1, "lists.svm:{}: expected a label -1, 0 or 1 (for other classes: --classes A,B;"),
    ("lists", "--outputs classes:3-6", 1, "expected one label (lists need outputs labels:LO-HI"),
    ("lists", "--outputs labels:4-6", 1, "expected a class from 4 to 6 as label, found '3'"),
    ("lists", "--outputs values:2 --loss squared", 1, "expected 2 labels with ',' between them, found"),
    ("values", "--outputs labels:3-6", 1, "values.svm:1:1: expected a class from 3 to 6 as label, found"),
    ("values", "--outputs values:4", 1, "values.svm:1:1: expected a label -1, 0 or 1 (for other classes:"),
    ("values", "--outputs values:5 --loss squared", 1, "expected 5 labels with ',' between them"),
    ("values", "--loss squared", 1, "expected one label (lists need outputs labels:LO-HI"),
    ("classes", "--outputs values:4 --loss squared", 1, "classes.svm:1:2: expected 4 labels with"),
    ("classes", "--outputs classes:3-5", 1, "expected a class from 3 to 5 as label, found '6'"),
    ("classes", "--outputs labels", 2, "no outputs are called 'labels'; known: one, classes, classes:max=N"),
    ("classes", "--outputs labels:6-3", 2, "labels 6-3: give 2 to 65536 classes, from low to high"),
    ("classes", "--outputs labels:4 --loss squared", 2, "the loss squared is not for outputs labels"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "options", "status", "message"), WRONG)
def test_wrong_pairs_are_told(thresher: Thresher, data: str, options: str, status: int, message: str) -> None:
    ran = thresher(f"train {data}.svm -m m -q {options}")
    lines = Path("lists.svm").read_text().splitlines()
    first = next(k for k, line in enumerate(lines, 1) if line[0] != " ")
    assert (ran.status, ran.out) == (status, "")
    assert message.format(f"{first}:1") in ran.err
    assert ran.err.count("\n") == 1
    assert not Path("m").exists()


def test_classes_of_a_solver_are_not_found_in_standard_input(thresher: Thresher) -> None:
    thresher.fails("boost - -m m -q --loss softmax", 2, "give the classes, --outputs classes:LO-HI")


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("output", ["margin", "probability", "label"])
def test_predictions_that_are_not_finite_are_counted(thresher: Thresher, folder: Path, output: str) -> None:
    (folder / "a.svm").write_text("1 1:1 2:1\n-1 1:-1 2:-1\n" * 60)
    (folder / "b.svm").write_text("1 1:3e38 2:3e38\n1 1:1\n-1 1:-3e38\n")
    thresher("train a.svm -m a --rule sgd --rate constant:10 -q")
    ran = thresher.ok(f"predict a b.svm --output {output}")
    assert ran.err == "warning: 2 predictions are not finite: the values in these rows are too large\n"
    assert len(ran.out.splitlines()) == 3
    assert thresher("predict a a.svm").err == ""
