"""``thresher train``: its figures, its table, its options, and what the model file says of it."""

import os
import re
from dataclasses import fields
from pathlib import Path

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.learning.test_crafted import learned
from tests.models import without_record
from tests.plain import not_compiled
from tests.stopping import full_disk, in_pass, stopping
from thresher import load, train
from thresher.data.chunk import Chunk
from thresher.data.source import MemorySource
from thresher.learning.diagnostics.stream_statistics import StreamStatistics
from thresher.learning.files import model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.model_set import ModelSet
from thresher.learning.training.record import Record
from thresher.learning.training.shares import held_out
from thresher.parts import REGISTRY

KEYS = ["examples", "passes", "progressive_loss", "nonzero", "features_seen"]


KEYS += ["seconds", "examples_per_second", "skipped", "model"]


def test_json_has_these_keys_and_agrees_with_python(thresher: Thresher) -> None:
    figures = thresher("train train.svm -m m --json").json
    assert list(figures) == [*KEYS, "warnings"]
    model = train("train.svm")
    assert figures["examples"] == model.examples == 400 * figures["passes"]
    assert figures["progressive_loss"] == model.tally.average
    assert figures["nonzero"] == model.nonzero == len(load("m").keys)
    assert figures["features_seen"] == model.features_seen
    assert figures["skipped"] == 0
    assert figures["model"] == "m"


@pytest.mark.parametrize("loss", REGISTRY["loss"])
def test_every_loss(thresher: Thresher, loss: str) -> None:
    assert thresher(f"train counts.svm -m m --loss {loss} -q").status == 1  # the file does not exist yet
    low = REGISTRY["loss"][loss].DOMAIN == "positive"  # type: ignore[attr-defined]
    Path("counts.svm").write_text("".join(f"{k % 2 + low} {k % 5}:1 7:0.5\n" for k in range(60)))
    with not_compiled():
        figures = thresher(f"train counts.svm -m m --loss {loss} -q --json --passes 1").json
        evaluated = thresher("evaluate m counts.svm --json").json
    assert figures["examples"] == 60
    binary = REGISTRY["loss"][loss].DOMAIN == "binary"  # type: ignore[attr-defined]
    assert list(evaluated)[:2] == ["examples", "loss"]
    assert {"error", "auc", "f1"} if binary else {"rmse", "base_rmse", "r2"} <= evaluated.keys()
    likely = getattr(REGISTRY["loss"][loss], "PROBABILITY", False)
    assert ("normalised_entropy" in evaluated) == likely
    assert ("calibration" in evaluated) == (likely or not binary), (
        "of numbers: what was predicted and what came"
    )


def test_the_table_doubles(thresher: Thresher) -> None:
    rows = [line.split() for line in thresher("train train.svm -m m --passes 1").err.splitlines()]
    assert " ".join(rows[0]) == "examples since last average label prediction non-zero rows/s"
    assert [row[0] for row in rows[1:]] == [*(str(2**k) for k in range(9)), "400"]
    losses = [(int(row[0]), float(row[1]), float(row[2])) for row in rows[1:]]
    total = before = 0.0
    for examples, since, average in losses:
        total, before = total + since * (examples - before), examples
        assert average == pytest.approx(total / examples, abs=2e-6)


@pytest.mark.parametrize(("loss", "said"), [("gamma", 1), ("squared", 0), ("logistic", 0.5), ("hinge", 0)])
def test_the_table_predicts_what_labels_are(loss: str, said: float, thresher: Thresher) -> None:
    Path("ones.svm").write_text("1 2:1\n1 3:1\n")
    with not_compiled():
        rows = thresher(f"train ones.svm -m m --passes 1 --loss {loss} --rule sgd").err.splitlines()
    assert float(rows[1].split()[4]) == said, "what weights of 0 say: an amount, not its logarithm"


def test_report_every_and_the_curve(thresher: Thresher) -> None:
    err = thresher("train train.svm -m m --passes 1 --report-every 150 --curve curve.tsv").err
    assert [line.split()[0] for line in err.splitlines()[1:]] == ["150", "300", "400"]
    lines = [line.split("\t") for line in Path("curve.tsv").read_text().splitlines()]
    assert lines[0][:3] == ["examples", "loss_since", "average"]
    assert [line[0] for line in lines[1:]] == ["150", "300", "400"]


def test_every_nth_is_held_out(thresher: Thresher, folder: Path) -> None:
    rows = (folder / "train.svm").read_bytes().splitlines(keepends=True)
    held = held_out(0, len(rows), 10, 0)
    Path("held.svm").write_bytes(b"".join(row for row, out in zip(rows, held, strict=True) if out))
    Path("rest.svm").write_bytes(b"".join(row for row, out in zip(rows, held, strict=True) if not out))
    one = thresher("train train.svm -m one --holdout every-10th --json --passes 2").json
    two = thresher("train rest.svm -m two --holdout held.svm --json --passes 2").json
    assert list(one) == [
        *KEYS,
        *("holdout_examples", "holdout_loss", "holdout_error", "holdout_auc", "warnings"),
    ]
    assert one["holdout_examples"] == 40
    assert one["examples"] == 720
    assert {k: v for k, v in one.items() if "holdout" in k} == {
        k: v for k, v in two.items() if "holdout" in k
    }
    assert without_record("one") == without_record("two")
    evaluated = thresher("evaluate one held.svm --json").json
    assert one["holdout_loss"] == pytest.approx(evaluated["loss"])


OVERFIT = "--rule sgd --loss hinge --rate constant:9 --holdout test.svm --json"


@pytest.mark.parametrize(
    "options",
    ["--passes 9 --early-stop 2", "--passes 6 --early-stop 9"],
    ids=["patience ends", "the passes end before patience does"],
)
def test_early_stop_keeps_the_best_pass(thresher: Thresher, options: str) -> None:
    ran = thresher(f"train train.svm -m best {OVERFIT} {options}")
    losses = [
        float(line.split("loss ")[1].split(",")[0]) for line in ran.err.splitlines() if "held-out" in line
    ]
    best = 1 + losses.index(min(losses))
    assert best < len(losses) == 6
    assert f"kept the model of pass {best}, the best of 6" in ran.err
    alone = thresher(f"train train.svm -m alone {OVERFIT} --passes {best}").json
    assert Path("best").read_bytes() == Path("alone").read_bytes()
    speed = {"seconds", "seconds_compiling", "examples_per_second", "model"}
    assert {k: v for k, v in ran.json.items() if k not in speed} == {
        k: v for k, v in alone.items() if k not in speed
    }


def test_resume_takes_the_same_options_only(thresher: Thresher, stopped: str) -> None:
    thresher.fails(f"{stopped} --resume --rule rda", 2, "the checkpoint was made with --rule ft-ftrl:")
    thresher.fails(f"{stopped.replace('train.svm', 'test.svm')} --resume", 1, "other data")
    assert Path("m.checkpoint").exists()
    same = "--rule ft-ftrl:l1=1 --loss hinge --store growing --dtype float32 --intercept --seed 0"
    same += " --order as-is"
    figures = thresher(f"{stopped.replace('--loss hinge', '')} --resume {same} --json").json
    assert figures["examples"] == 400 * figures["passes"]
    assert not Path("m.checkpoint").exists()


@pytest.fixture
def stopped(thresher: Thresher) -> str:
    command = "train train.svm -m m --loss hinge"
    with full_disk():
        assert thresher(f"{command} --checkpoint-every 150").status == 1
    assert Path("m.checkpoint").exists()
    return command


def test_what_is_no_checkpoint_is_not_written_over_or_removed(folder: Path, thresher: Thresher) -> None:
    taken = folder / "m.checkpoint"
    taken.write_bytes((folder / "train.svm").read_bytes())
    for given in ("train.svm -m m", "m.checkpoint -m m", "train.svm -m m --holdout m.checkpoint"):
        thresher.fails(f"train {given} -q", 2, "m.checkpoint")
    assert taken.read_bytes() == (folder / "train.svm").read_bytes()
    assert thresher("train train.svm -m n -q --on-error quarantine=n.checkpoint").status == 2
    taken.unlink()
    taken.symlink_to(folder / "test.svm")
    assert "is not a checkpoint" in thresher("train train.svm -m m -q").err
    taken.unlink()
    taken.mkdir()
    assert thresher("train train.svm -m m -q").status == 1
    assert not (folder / "m").exists()


@pytest.mark.parametrize(
    "command", ["train train.svm", "train train.svm --ensemble 3", "path train.svm", "select train.svm"]
)
def test_a_run_that_ends_leaves_no_checkpoint_of_an_earlier_one(
    folder: Path, thresher: Thresher, stopped: str, command: str
) -> None:
    ran = thresher.ok(f"{command} -m m -q")
    assert ran.err.count("is left from an interrupted run") == 1
    assert not (folder / "m.checkpoint").exists()


def test_a_failure_leaves_the_checkpoint_before(folder: Path, thresher: Thresher, stopped: str) -> None:
    before = (folder / "m.checkpoint").read_bytes()
    (folder / "bad.svm").write_text("1 1:1\nbad\n")
    assert thresher("train bad.svm -m m -q").status == 1
    assert (folder / "m.checkpoint").read_bytes() == before


def test_a_hold_out_read_once_is_refused_for_many_passes(folder: Path, thresher: Thresher) -> None:
    os.mkfifo(folder / "pipe")
    ran = thresher("train train.svm -m m -q --passes 2 --holdout pipe")
    assert ran.status == 2
    assert "the hold-out can be read only once" in ran.err


def test_a_resumed_training_makes_the_passes_that_were_asked_for(folder: Path, thresher: Thresher) -> None:
    command = "train train.svm -q --holdout every-5th --passes 4 --early-stop 3"
    assert thresher(f"{command} -m whole").status == 0
    with stopping(in_pass(2)):
        assert thresher(f"{command} -m m").status == 130
    ran = thresher("train train.svm -q --holdout every-5th --resume --passes 1 -m m")
    assert (ran.status, (folder / "m.checkpoint").exists()) == (2, True)
    assert "the checkpoint is in pass 2" in ran.err
    assert thresher("train train.svm -q --holdout every-5th --resume -m m").status == 0
    assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()


@pytest.mark.usefixtures("narrow")
def test_losses_that_are_not_known_yet_are_dashes(thresher: Thresher) -> None:
    table = thresher("train train.svm -m m --batch 100").err.splitlines()
    assert table[1].split()[:6] == ["1", "-", "-", "1", "0.5000", "0"]
    assert "nan" not in "".join(table)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    ("options", "starts"),
    [
        ("--loss logistic --rate constant:0.1", "that of the loss"),
        ("--loss hinge", "1 / (1 + exp(-("),
        ("--loss hinge --outputs classes", "softmax(m / "),
    ],
)
def test_what_a_calibration_has_learned_is_told(thresher: Thresher, options: str, starts: str) -> None:
    train = f"train train.svm -m m -q --rule sgd --passes 1 {options}"
    assert "probability" not in thresher(train).out
    (told,) = re.findall("^probability .*", thresher(f"{train} --calibrate").out, re.MULTILINE)
    assert told.split(maxsplit=1)[1].startswith(starts)
    assert told in thresher("info m").out.splitlines()
    learned = thresher(f"{train} --calibrate --json").json["calibration"]
    assert learned == thresher("info m --json").json["calibration"]
    assert (learned is None) == (starts == "that of the loss")


def record(path: str) -> Record:
    found = model_file.record_of(model_file.read(path)[0])
    assert found is not None
    return found


def test_lines_are_counted_as_they_are_told(thresher: Thresher) -> None:
    lines = ["1 1:1\n", "\n", "oops\n", "0 2:1 1:1\n", "# nothing\n", "1 3:1\n", "0 3:1 3:1\n"]
    Path("some.svm").write_text("".join(lines))
    thresher("train some.svm -m m -q --on-error skip --passes 3 --order once --holdout every-2nd")
    assert record("m") == Record(
        3, "once", "every-2th", "", lines=7, examples=4, blank=2, skipped=1, merged=2
    )


def test_lanes_are_noted_and_taken_out_with_it(thresher: Thresher) -> None:
    assert thresher("path train.svm -m f --rule ft-ftrl --l1 0.1:2:3 --passes 1 -q").status == 0
    for k in range(2):
        assert thresher(f"choose f {k} -m lane{k}").status == 0
    assert record("lane1") == Record(1, "as-is", "every-10th", "", lines=400, examples=400)
    found = package.path("train.svm", "ft-ftrl", l1="0.1:2:3", passes=1)
    assert found.choose("best").record == record("lane0")


def test_lanes_that_stopped_early_are_noted_with_their_own_passes(folder: Path) -> None:
    over: dict[str, object] = {"passes": 9, "holdout": "every-4th", "early_stop": 1}
    found = package.path("train.svm", "ft-ftrl:alpha=20", l1="0.3:3:5", **over)  # type: ignore[arg-type]
    passes = [model.record.passes for model in found.models if model.record]
    assert [300 * number for number in passes] == [model.examples for model in found.models]
    assert len(set(passes)) > 1


def test_learning_on_makes_it_untrue(thresher: Thresher, model: Path) -> None:
    revived, _ = model_file.load(model)
    assert revived.record == record(str(model))
    revived.learn(next(package.open_source("test.svm").chunks()))
    assert revived.record is None
    model_file.save(revived, "on")
    assert model_file.record_of(model_file.read("on")[0]) is None


@pytest.mark.parametrize("name", [one.name for one in fields(Record)])
def test_a_record_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    model = learned("ftrl:l1=0.01")
    source = MemorySource(Chunk.of_rows([(1.0, {})]))
    ModelSet.of([model]).keep_records(lambda k: Record(), StreamStatistics(), source)
    whole, tensors = model_file.header_of(model), model_file.tensors_of(model)
    for value in (None, -1, 1.5, {"": ""}, [1])[name == "solved" :]:  # few models are: the others have null
        whole["record"][name] = value
        model_file.write(tmp_path / "m", whole, tensors)
        expected = "does not match its checksum" if value == -1 else rf"record\.{name}"  # no header has -1
        with pytest.raises(ModelFileError, match=expected):
            model_file.load_predictor(tmp_path / "m")
    del whole["record"][name]
    model_file.write(tmp_path / "m", whole, tensors)
    if name in Record.UNSAID:
        return
    with pytest.raises(ModelFileError, match=f"record: {name} is missing"):
        model_file.load(tmp_path / "m")
