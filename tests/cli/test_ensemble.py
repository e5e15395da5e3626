"""``thresher train --ensemble``, and the commands that read its file."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher as package
from tests.cli.conftest import ROWS, Thresher
from tests.stopping import checkpoints_kept
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.bags import Bags
from thresher.learning.model.model import Model

COMMAND = "train train.svm -m e --ensemble 3 --rule ftrl --l1 0.1 -q"


@pytest.mark.parametrize("spec", ["3", "disjoint:3"])
def test_it_writes_what_python_does(spec: str, thresher: Thresher) -> None:
    ran = thresher(
        f"{COMMAND} --json --passes 2 --order once --seed 4".replace("--ensemble 3", f"--ensemble {spec}")
    )
    assert ran.status == 0, ran.err
    models = spec if ":" in spec else f"poisson:{spec}"
    assert (ran.json["ensemble"], ran.json["examples"], ran.json["model"]) == (models, 800, "e")
    found = package.ensemble("train.svm", rule="ftrl", l1=0.1, models=spec, passes=2, order="once", seed=4)
    found.save("python")
    assert Path("e").read_bytes() == Path("python").read_bytes()
    assert ran.json["nonzero"] == found.nonzero
    assert sorted(path.name for path in Path().iterdir()) == ["cache", "e", "python", "test.svm", "train.svm"]


def test_a_model_of_it_is_an_ordinary_model(thresher: Thresher) -> None:
    """A file with the rows of model 1, as often as it learned them, gives the same weights."""
    assert thresher(COMMAND).status == 0
    times = Bags.of(3).draw(0, 400)[1]
    drawn = [(row.split(b" ", 1), n) for row, n in zip(ROWS[:400], times, strict=True) if n]
    Path("own.svm").write_bytes(b"".join(b"%s:%d %s" % (label, n, rest) for (label, rest), n in drawn))
    thresher.ok("train own.svm -m own --rule ftrl --l1 0.1 -q --label-weights")
    assert thresher("choose e 1 -m one").status == 0
    assert thresher("weights own").out == thresher("weights one").out
    assert Model.load("own").predict("test.svm").tobytes() == Model.load("one").predict("test.svm").tobytes()
    assert thresher("predict e test.svm --choose 1").out == thresher("predict one test.svm").out
    told = thresher("info one --json").json
    assert (told["command"], "one of several models" in told["no_command"]) == (None, True)
    assert f"command                none: {told['no_command']}\n" in thresher("info one").out


def test_predictions(thresher: Thresher) -> None:
    assert thresher(COMMAND).status == 0
    found = package.Ensemble.load("e")
    for output in ("margin", "probability", "label"):
        expected: Any = found.predict("test.svm", output)
        lines = thresher(f"predict e test.svm --output {output}").out.split()
        assert lines == [f"{value:.9g}" for value in expected]
    lines = thresher("predict e test.svm --output spread").out.split()
    assert lines == [f"{value:.9g}" for value in found.spread("test.svm")]
    assert len({*lines}) > 100
    told = thresher("evaluate e test.svm --json").json
    assert told == {**package.evaluate(found, "test.svm"), "nonzero": found.nonzero}
    losses = [package.evaluate(one, "test.svm")["loss"] for one in found.models]
    assert told["loss"] < np.mean(losses), "the loss is convex in the margin"


def test_intervals(thresher: Thresher) -> None:
    assert thresher(f"{COMMAND.replace('--ensemble 3', '--ensemble 8')}").status == 0
    found = package.Ensemble.load("e")
    lines = thresher("predict e test.svm --output interval --interval 0.8").out.splitlines()
    expected = found.interval("test.svm", 0.8)
    assert lines == ["\t".join(f"{one:.9g}" for one in row) for row in expected.tolist()]
    usual = thresher("predict e test.svm --output interval").out.splitlines()
    assert usual[0] == "\t".join(f"{one:.9g}" for one in found.interval("test.svm")[0].tolist())
    told = found.weights(0.8)
    order = np.argsort(-np.abs(told.weights), kind="stable")
    *features, intercept = (
        line.split("\t") for line in thresher("weights e --interval 0.8 --top 5").out.splitlines()
    )
    assert [int(one[0]) for one in features] == told.keys[order[:5]].tolist()
    for line, k in zip(features, order[:5], strict=True):
        numbers = [told.weights[k], told.lower[k], told.upper[k], told.alive[k]]
        assert line[1:] == ["", *(f"{one:.9g}" for one in numbers)]
    assert intercept == ["intercept", "", *(f"{one:.9g}" for one in told.intercepts), "1"]
    Path("bad.svm").write_text("1 1:1\n1 x\n")
    assert (
        thresher("predict e bad.svm --output interval --on-error skip").out.splitlines()[1] == "nan\tnan\tnan"
    )


def test_words_and_margins(thresher: Thresher) -> None:
    Path("words.csv").write_text(
        "kind,x\n" + "".join(f"{'big' if k % 5 > 1 else 'small'},{k % 5}\n" for k in range(300))
    )
    assert (
        thresher("train words.csv -m e --label kind --ensemble disjoint:2 --loss hinge -q --passes 1").status
        == 0
    )
    assert {*thresher("predict e words.csv --output label").out.split()} == {"big", "small"}
    thresher.fails("predict e words.csv --output probability", 2, "gives no probabilities")
    margins = [one.predict("words.csv") for one in package.Ensemble.load("e").models]
    spread = np.array(thresher("predict e words.csv --output spread").out.split(), float)
    assert spread == pytest.approx(np.abs(margins[0] - margins[1]) / np.sqrt(2), rel=1e-6)


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (1, ""),
        (3, "--passes 2 --holdout every-7th --scale max-abs --admit 2,bits=10 --batch 7"),
        (9, "--passes 3 --order once --ensemble disjoint:3"),
        (8, "--rule sgd --loss hinge --rate constant:9 --holdout test.svm --passes 6 --early-stop 1"),
    ],
)
@pytest.mark.usefixtures("narrow")
def test_stopping_changes_nothing(number: int, options: str, thresher: Thresher) -> None:
    start = COMMAND.replace("--rule ftrl --l1 0.1", "") if "--rule" in options else COMMAND
    start = start.replace("--ensemble 3", "") if "--ensemble" in options else start
    command = f"{start} --checkpoint-every 35 --json --curve {{}} {options}"
    with checkpoints_kept() as kept:
        thresher.ok(command.format("a.tsv"))
    shutil.move("e", "whole")
    Path("e.checkpoint").write_bytes(kept[number - 1])
    stopped = thresher("info e.checkpoint")
    assert (stopped.status, "checkpoint of many models" in stopped.out) == (0, True)
    assert thresher("info e.checkpoint --json").json["stopped"]["models"] == 3
    thresher.ok(f"{command.format('b.tsv')} --resume")
    assert Path("e").read_bytes() == Path("whole").read_bytes()
    assert not Path("e.checkpoint").exists()
    tables = [
        [line.rpartition("\t")[0] for line in Path(f).read_text().splitlines()] for f in ("a.tsv", "b.tsv")
    ]
    assert tables[0] == tables[1]


def test_commands_for_one_model(thresher: Thresher, model: Path) -> None:
    assert thresher(f"{COMMAND} --weights-only").status == 0
    one = (
        "thresher: e: an ensemble, not one model: thresher choose e 0 -m MODEL takes out one of its models\n"
    )
    for command in ("weights e", "report e", "train train.svm -m x --init e -q"):
        assert thresher(command) == (1, "", one), command
    for command in (
        f"predict {model} test.svm --output spread",
        "predict e test.svm --choose 0 --output spread",
    ):
        ran = thresher(command)
        assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert "spread is for an ensemble, and this is one model" in ran.err
    assert thresher("choose e 0 -m one").status == 0
    assert package.info("one")["kind"] == "weights only"


def test_info(thresher: Thresher) -> None:
    assert thresher(f"{COMMAND} --passes 2").status == 0
    told = thresher("info e --json").json
    assert (told["kind"], told["models"], told["rows"], told["record"]["passes"]) == (
        *("ensemble", 3, "poisson", 2),
    )
    assert told == package.info("e")
    models = package.Ensemble.load("e").models
    live = thresher("name e train.svm --json").json["features_live"]
    assert live == len({key for model in models for key in model.keys.tolist()})
    learned = (told["examples"], sum(model.record is None for model in models))
    assert learned == (2 * told["record"]["examples"], 3)
    assert [one["nonzero"] for one in told["each"]] == [model.nonzero for model in models]
    assert [one["model"] for one in told["each"]] == [0, 1, 2]
    shown = thresher("info e").out
    assert all(name in shown for name in ("ensemble", "poisson", "features seen", "examples of data "))


def test_names_of_all_models(thresher: Thresher) -> None:
    """Found in one reading, and kept with each model; the rest of the file stays."""
    Path("words.csv").write_text("y,w\n" + "".join(f"{k % 2},{'abcdefg'[k % 7]}\n" for k in range(210)))
    assert thresher("train words.csv -m e --label y --ensemble 8 -q --passes 1").status == 0
    before = thresher("predict e words.csv").out
    assert "w=a" not in thresher("weights e --interval 0.9").out
    told = thresher("name e words.csv --json").json
    assert told["named"] == told["features_live"] > package.load("e").nonzero - 1
    assert "w=a" in thresher("weights e --interval 0.9").out
    assert thresher("predict e words.csv").out == before
    named = Path("e").read_bytes()
    assert thresher("name e words.csv").status == 0
    assert Path("e").read_bytes() == named
    assert thresher("train words.csv -m g --label y --continue e -q").status == 0


def test_checkpoints_of_other_commands(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(package.Ensemble, "save", lambda *given, **named: exit(3))
        with pytest.raises(SystemExit):
            thresher(f"{COMMAND} --checkpoint-every 100")
    ran = thresher("path train.svm -m e --rule ftrl --resume")
    refused = "thresher: e.checkpoint: a checkpoint of thresher train, which can resume it\n"
    assert ran == (1, "", refused)
    with pytest.raises(ModelFileError, match=r"checkpoint: a checkpoint of thresher\.ensemble, which can"):
        package.train("train.svm", checkpoint="e.checkpoint", resume=True)
    assert "made with --ensemble poisson:3" in thresher(COMMAND.replace("3", "4", 1) + " --resume").err
    assert "the checkpoint was made with --rule" in thresher(COMMAND.replace("0.1", "0.2") + " --resume").err
    Path("e.checkpoint").unlink()
    assert thresher("train train.svm -m e -q --rule ftrl --l1 0.1").status == 0
    shutil.move("e", "e.checkpoint")
    assert "e.checkpoint: a finished model, not a checkpoint" in thresher(f"{COMMAND} --resume").err


def test_a_checkpoint_says_whether_it_was_made_by_a_column(
    thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("rows.csv").write_text("label,shop,x\n" + "1,1,2\n-1,2,3\n" * 9)
    thresher.ok("train rows.csv --by shop -m by.model -q")
    with monkeypatch.context() as patch:
        patch.setattr(package.Ensemble, "save", lambda *given, **named: exit(3))
        for name, options in (("by", "--by shop"), ("some", "--ensemble 4")):
            with pytest.raises(SystemExit):
                thresher(f"train rows.csv -m {name} {options} -q --checkpoint-every 5")
    made = "the checkpoint was made with"
    thresher.fails("train rows.csv -m by --resume --ensemble 3", 2, f"{made} --by shop; leave --ensemble out")
    thresher.fails(
        "train rows.csv -m some --resume --by x", 2, f"{made} --ensemble poisson:4; leave --by out"
    )
    thresher.fails("path rows.csv -m by --resume", 1, "by.checkpoint: a checkpoint of thresher train, which")
    thresher.fails(
        "serve by.model --learn --log log", 2, "by.model holds several models, which can be served"
    )


def test_rows_before_a_bad_one_are_answered_by_the_model_of_their_value(thresher: Thresher) -> None:
    """As soon as they have come, though the column that chooses their model is read beside them."""
    Path("rows.csv").write_text("label,shop,x\n1,1,2\n-1,2,3\n1,1,3\n-1,2,1\n")
    thresher("train rows.csv --by shop -m by.model -q")
    Path("bad.csv").write_text("shop,x\n1,3\nabc,3\n2,2\n")
    ran = thresher("predict by.model bad.csv")
    assert (ran.status, len(ran.out.split())) == (1, 1)
    assert "bad.csv:3:1: expected a finite number in column 'shop', found 'abc'" in ran.err
