"""``thresher predict``, ``evaluate``, ``weights`` and the lists of parts."""

import inspect
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.commands import run
from thresher import load, open_source, train
from thresher.learning.inspection.formatting import format_figure
from thresher.parts import REGISTRY, lookup, make, names, part_name


def predicted(text: str) -> list[float]:
    return [float(line) for line in text.splitlines()]


def test_another_process_predicts_what_the_model_does(folder: Path, thresher: Thresher) -> None:
    model = train("train.svm", rule="fobos:l1=1e-4", loss="logistic")
    expected = np.concatenate([model.predict(c, "probability") for c in open_source("test.svm").chunks()])
    thresher("train train.svm -m model -q --rule fobos:l1=1e-4")
    status, out, err = run("predict", "model", "test.svm", "--output", "probability", folder=folder)
    assert (status, err) == (0, "")
    assert out == "".join(f"{value:.9g}\n" for value in expected.tolist())
    assert thresher("predict model test.svm --output probability -o file").out == ""
    assert Path("file").read_text() == out


def test_predict_needs_no_labels_and_has_probabilities_where_there_are_any(
    thresher: Thresher, model: Path
) -> None:
    Path("other.svm").write_text(Path("test.svm").read_text().replace("-1 ", "17.5 "))
    assert thresher("predict", model, "other.svm").out == thresher("predict", model, "test.svm").out != ""
    thresher("train train.svm -m hinge -q --loss hinge")
    ran = thresher("predict hinge test.svm --output probability")
    assert (ran.status, ran.out) == (2, "")
    assert "gives no probabilities" in ran.err


def test_a_bad_line_leaves_no_predictions_behind(thresher: Thresher, model: Path) -> None:
    Path("bad.svm").write_text("1 1:1\n1 oops\n")
    Path("file").write_text("0.5\n")
    names = sorted(p.name for p in Path().iterdir())
    assert thresher("predict", model, "bad.svm", "-o", "file").status == 1
    assert Path("file").read_text() == "0.5\n"
    assert sorted(p.name for p in Path().iterdir()) == names


def test_evaluate(thresher: Thresher, model: Path) -> None:
    figures = thresher("evaluate model test.svm --json").json
    scores = [
        "average_precision",
        "base_rate",
        "base_error",
        "precision",
        "recall",
        "f1",
        "log_loss",
        "base_log_loss",
    ]
    scores += ["normalised_entropy", "brier", "calibration_error"]
    tables = ["calibration", "by_class", "confusion"]
    assert list(figures) == ["examples", "loss", "error", "auc", *scores, *tables, "nonzero"]
    margins = np.array(predicted(thresher("predict model test.svm").out))
    labels = np.array([float(line.split()[0]) for line in Path("test.svm").read_text().splitlines()])
    assert figures["error"] == pytest.approx(np.mean((margins > 0) != (labels > 0)))
    assert figures["loss"] == pytest.approx(np.mean(np.log1p(np.exp(-labels * margins))))
    assert figures["nonzero"] == len(load(model).keys)
    people = thresher("evaluate model test.svm").out.splitlines()
    told = [line[:22].strip().replace(" ", "_") for line in people]
    assert told == [name for name in figures if name not in tables]
    detail = thresher("evaluate model test.svm --detail").out.splitlines()
    assert detail[: len(people)] == people
    (counts,) = (k for k, line in enumerate(detail) if line.startswith("confusion"))
    assert [line.split() for line in detail[counts + 1 : counts + 4]] == [
        ["-1", "1"],
        *(
            [name, *map(format_figure, row)]
            for name, row in zip(["-1", "1"], figures["confusion"], strict=True)
        ),
    ]
    assert detail[-len(figures["calibration"]) - 1].split() == ["weight", "predicted", "observed"]


def test_evaluate_at_a_threshold(thresher: Thresher, model: Path) -> None:
    figures = thresher("evaluate model test.svm --threshold 0.9 --json").json
    given = np.array(predicted(thresher("predict model test.svm --output probability").out))
    labels = np.array([float(line.split()[0]) for line in Path("test.svm").read_text().splitlines()])
    assert figures["error"] == pytest.approx(np.mean((given > 0.9) != (labels > 0)))
    assert figures["recall"] == pytest.approx(np.mean(given[labels > 0] > 0.9))
    assert figures["precision"] == pytest.approx(np.mean(labels[given > 0.9] > 0))
    assert package.evaluate("model", "test.svm", threshold=0.9) | {"nonzero": figures["nonzero"]} == figures
    ran = thresher("evaluate model test.svm --threshold 2")
    assert (ran.status, ran.err) == (2, "thresher: the threshold of a probability must lie in 0..1, not 2\n")


def test_evaluate_what_is_at_the_top_and_what_mistakes_cost(thresher: Thresher, model: Path) -> None:
    ran = thresher("evaluate model test.svm --top 1 --top 50% --cost fn=10,fp=1")
    assert ran.out.splitlines()[-3].split() == ["top", "precision", "recall", "lift"]
    told = thresher("evaluate model test.svm --top 1 --top 50% --cost fn=10,fp=1 --json").json
    assert [one["top"] for one in told["top"]] == ["1", "50%"]
    assert told["theoretical_threshold"] == 1 / 11
    assert 0 <= told["cost_low"] <= told["cost"] <= told["theoretical_cost"]
    same = package.evaluate("model", "test.svm", top=[1, "50%"], cost={"fn": 10, "fp": 1})
    assert {name: same[name] for name in told} == told
    for wrong in (
        "--top 0",
        "--top 101%",
        "--top x",
        "--cost fn=1",
        "--cost fn=0,fp=0",
        "--cost fn=nan,fp=1",
    ):
        assert thresher(f"evaluate model test.svm {wrong}").status == 2
    with pytest.raises(ValueError, match="top is for a model of two classes"):
        package.evaluate(
            package.train([[1.0], [2.0]] * 9, [1.5, 2.5] * 9, loss="squared"), [[1.0]], [1.0], top=1
        )


def test_weights(thresher: Thresher, model: Path) -> None:
    rows = [line.split("\t") for line in thresher("weights", model).out.splitlines()]
    predictor = load(model)
    assert rows.pop() == ["intercept", "", str(predictor.bias[0])]
    assert {int(key): np.float32(weight) for key, _, weight in rows} == dict(
        zip(predictor.keys.tolist(), predictor.weights, strict=True)
    )
    sizes = [abs(float(weight)) for _, _, weight in rows]
    assert sizes == sorted(sizes, reverse=True)
    top = [line.split("\t") for line in thresher("weights model --top 3").out.splitlines()]
    assert top[:-1] == rows[:3]


def test_weights_of_nothing(thresher: Thresher) -> None:
    thresher("train train.svm -m none -q --no-intercept --rule ftrl:l1=1e9")
    assert thresher("weights none").out == ""


@pytest.mark.parametrize(("command", "kind"), [("rules", "rule"), ("losses", "loss"), ("rates", "rate")])
def test_parts_are_listed_with_specs_that_hold(thresher: Thresher, command: str, kind: str) -> None:
    specs = [line for line in thresher(command).out.splitlines() if line and not line.startswith(" ")]
    assert [part_name(type(make(kind, spec))) for spec in specs] == names(kind)


@pytest.mark.parametrize(("command", "kind"), [("rules", "rule"), ("losses", "loss"), ("rates", "rate")])
def test_a_part_is_told_of_in_full(thresher: Thresher, command: str, kind: str) -> None:
    for name in names(kind):
        cls, ran = lookup(kind, name), thresher(f"{command} {name}")
        assert ran.status == 0
        for paragraph in (inspect.getdoc(cls) or "").split("\n\n"):
            assert (paragraph in ran.out) != paragraph.startswith(">>>")
        *_, usage = ran.out.splitlines()
        said = dict(pairwise(usage.removeprefix("With all defaults: ").split()))
        assert make(kind, said[f"--{kind}"]) == cls()
        assert ("--rate" in said) == (kind == "rate" or hasattr(cls, "rate"))


def test_a_list_of_rules_is_short_and_a_page_tells_limits(thresher: Thresher) -> None:
    blocks = thresher("rules").out.strip().split("\n\n")
    assert len(blocks) == len(REGISTRY["rule"])
    assert all(len(line) <= 100 for block in blocks for line in block.splitlines()[1:])
    (fobos,) = (block for block in blocks if block.startswith("fobos:"))
    assert "(1 + eta l2)." in fobos
    assert "step sizes: --rate" in fobos
    assert "Owed" not in fobos
    told = thresher("rules rounding").out
    assert "  every      1                      a whole number >= 1\n" in told
    assert "  --rate     inverse-sqrt:eta0=0.5  see thresher rates\n" in told


def test_version(thresher: Thresher) -> None:
    import thresher as package

    assert thresher("--version").out == f"thresher {package.__version__}\n"
