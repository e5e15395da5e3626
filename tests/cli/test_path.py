"""``thresher path``: many penalties from one reading, and choosing among them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Thresher
from tests.models import one_of
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.choice import Point, choose
from thresher.learning.files.model_file import Contents
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.training.scores import Scores
from thresher.plans import frontier
from thresher.plans.frontier import pareto_front, points_of
from thresher.plans.penalties import PenaltyRange, penalty_in, penalty_name

OVERFIT = "--rate inverse-sqrt:1000"  # without a penalty the first pass is the best on the hold-out
FRONTIER = "path train.svm -m f --rule ft-ftrl --l1 0.05:2:5"


def test_each_model_is_that_of_train_byte_for_byte(thresher: Thresher) -> None:
    found = thresher(f"{FRONTIER} --state --json").json
    values = np.geomspace(0.05, 2, 5)
    assert [one["l1"] for one in found["lanes"]] == pytest.approx(values)
    for k, one in enumerate(found["lanes"]):
        alone = thresher("train train.svm -m alone --holdout every-10th -q --json --rule " + one["spec"]).json
        assert Path("alone").read_bytes() == one_of("f", k)
        held = {name: alone[name] for name in alone if name.startswith("holdout_")}
        assert {name: one[name] for name in held} == held
        assert (one["nonzero"], one["progressive_loss"]) == (alone["nonzero"], alone["progressive_loss"])
    assert found["examples"] == 360 * alone["passes"]
    counts = [one["nonzero"] for one in found["lanes"]]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 5


def test_state_is_kept_if_it_is_asked_for(thresher: Thresher) -> None:
    """Without it, the models are those of ``train --weights-only``, predict the same and cannot go on."""
    assert thresher(f"{FRONTIER} --passes 1 --state").status == 0
    Path("f").rename("whole")
    found = thresher(f"{FRONTIER} --passes 1 --json").json
    for k in range(5):
        light, whole = (Contents.of(place).model(k) for place in ("f", "whole"))
        own = {key: value for key, value in whole[1].items() if not key.startswith("state.")}
        assert light[1].keys() == own.keys() < whole[1].keys()
        assert all(np.array_equal(light[1][key], own[key]) for key in own)
        assert light[0] == whole[0]
        kept = thresher(f"predict f test.svm --choose {k}").out
        assert kept == thresher(f"predict whole test.svm --choose {k}").out
    spec = found["lanes"][2]["spec"]
    command = f"train train.svm -m alone --weights-only --passes 1 --holdout every-10th -q --rule {spec}"
    assert thresher(command).status == 0
    assert thresher("choose f 2 -m taken").status == 0
    assert Path("alone").read_bytes() == Path("taken").read_bytes()
    assert "--weights-only" in thresher("info taken --json").json["command"]
    assert thresher("path test.svm -m g --continue whole --passes 1 -q").status == 0


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    "options",
    [
        "--batch 7 --passes 2 --admit 2,bits=12",
        "--rule ft-ftrl --store hashed:9 --passes 2 --checkpoint-every 50",
        "--rule ft-ftrl --holdout none --dtype float64",
    ],
)
def test_options_mean_what_they_mean_to_train(thresher: Thresher, options: str) -> None:
    ran = thresher(f"path train.svm -m f --l1 0.001:1:3 {options} --state --json")
    assert ran.status == 0, ran.err
    alike = options.replace(" --holdout none", "").replace("--holdout none", "")
    alike += "" if "--holdout" in options else " --holdout every-10th"
    for k, one in enumerate(ran.json["lanes"]):
        words = [w for w in alike.split() if w not in ("ft-ftrl", "ftrl", "--rule")]
        assert thresher("train", "train.svm", "-m", "alone", "-q", "--rule", one["spec"], *words).status == 0
        assert Path("alone").read_bytes() == one_of("f", k)


def test_the_table_and_another_point(thresher: Thresher) -> None:
    ran = thresher(FRONTIER)
    lines = ran.out.splitlines()
    assert lines[0].split() == [
        *("l1", "non-zero", "progressive", "loss"),
        *("held-out", "loss", "held-out", "error", "held-out", "auc"),
    ]
    starred = [line for line in lines[1:6] if line.startswith("* ")]
    table = Contents.of("f").frontier()
    assert table is not None
    assert len(starred) == 1
    assert starred[0] == lines[1 + table.chosen]

    assert thresher("choose f best -m m").status == 0
    assert Path("m").read_bytes() == one_of("f", table.chosen)
    most = table.points[2].nonzero
    taken = thresher(f"choose f nnz:{most} -m m --json").json
    assert taken["nonzero"] <= most
    assert taken["spec"] == model_file.read("m")[0]["recipe"]["rule"]
    ran = thresher("choose f nnz:0 -m m")
    assert (ran.status, "no model has at most 0 weights" in ran.err) == (2, True)


def test_the_range_is_found(thresher: Thresher) -> None:
    """By default, the sparsest model has few weights, the densest nearly all."""
    lanes = thresher("path train.svm -m f --json").json["lanes"]
    counts = [one["nonzero"] for one in lanes]
    full = thresher("train train.svm -m m --holdout every-10th --l1 1e-9 --json -q").json["nonzero"]
    assert len(lanes) == 16
    assert counts[-1] <= 5
    assert counts[0] >= 0.75 * full
    assert sum(0.01 * full < count < 0.9 * full for count in counts) >= 5


def checkpoints_of(thresher: Thresher, command: str, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Run to the end; returns what each checkpoint contained."""
    save, kept = checkpoint.save, []

    def keeping(path: Path, *rest: Any) -> None:
        save(path, *rest)
        kept.append(path.read_bytes())

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", keeping)
        assert thresher(command).status == 0
    return kept


@pytest.mark.parametrize(
    "options", ["", "--batch 7", f"--holdout test.svm --early-stop 1 --rule fobos {OVERFIT}"]
)
def test_stopping_changes_nothing(
    options: str, thresher: Thresher, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = "--passes 4 --checkpoint-every 70"
    if "--batch" in options:
        request.getfixturevalue("narrow")
        often = "--passes 2 --checkpoint-every 35"
    command = f"path train.svm -m f --l1 0.001:0.1:3 {often} {options}"
    kept = checkpoints_of(thresher, command, monkeypatch)
    shutil.move("f", "whole")
    for number in (1, 5, 9):
        Path("f.checkpoint").write_bytes(kept[number - 1])
        ran = thresher(f"{command} --resume")
        assert ran.status == 0, (number, ran.err)
        assert Path("f").read_bytes() == Path("whole").read_bytes(), number
        assert not Path("f.checkpoint").exists()
        Path("f").unlink()


def test_a_lane_that_rests_goes_on_resting(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    options = f"--holdout test.svm --early-stop 1 --rule fobos {OVERFIT}"
    save, resting = checkpoint.save, list[list[int]]()

    def checking(path: Path, lanes: ModelSet, state: checkpoint.TrainingState) -> None:
        save(path, lanes, state)
        loaded, before = checkpoint.load(path, "path")
        resting.append([k for k in range(3) if k not in lanes.alive])
        assert loaded.alive == lanes.alive
        assert before.waited == state.waited

    monkeypatch.setattr(checkpoint, "save", checking)
    ran = thresher(f"path train.svm -m f --l1 1e-9:0.1:3 --passes 6 --checkpoint-every 90 {options}")
    assert ran.status == 0, ran.err
    assert any(0 < len(some) < 3 for some in resting)


def test_each_lane_stops_early_by_itself(thresher: Thresher) -> None:
    options = f"--holdout test.svm --passes 8 --early-stop 1 {OVERFIT} --rule fobos"
    lanes = thresher(f"path train.svm -m f --l1 1e-9:0.1:3 {options} --state --json").json["lanes"]
    examples = []
    for k, one in enumerate(lanes):
        words = options.replace("fobos", one["spec"])
        alone = thresher(f"train train.svm -m alone -q --json {words}").json
        assert Path("alone").read_bytes() == one_of("f", k)
        assert one["holdout_loss"] == alone["holdout_loss"]
        examples.append(alone["examples"])
    assert len(set(examples)) > 1


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.usefixtures("narrow")
def test_a_penalty_under_which_learning_blows_up_is_left_out(thresher: Thresher) -> None:
    options = "--loss squared --rate constant:1e30 --rule fobos --l1 1e-9:1e9:3 --no-intercept"
    ran = thresher(f"path train.svm -m f {options} --json")
    assert ran.status == 0, ran.err
    dropped = [one for one in ran.json["lanes"] if one["dropped"]]
    assert 0 < len(dropped) < 3
    assert "the other models continue" in ran.err
    assert ran.json["lanes"][ran.json["chosen"]]["dropped"] is None
    left = [k for k, one in enumerate(ran.json["lanes"]) if not one["dropped"]]
    assert Contents.of("f").there == left
    gone = next(k for k in range(3) if k not in left)
    assert f"f has no model {gone}" in thresher(f"choose f {gone} -m m").err


WRONG: dict[str, tuple[str, int, str]] = {
    "no range": ("path train.svm -m f --l1 5", 2, "a range of penalties must be LO:HI:N or auto:N"),
    "stream": ("path - -m f", 2, "read only once: give the range of penalties"),
    "file": ("path train.svm -m test.svm", 2, "exists and is not a model"),
    "folder": ("path train.svm -m .", 1, "a directory, not a file"),
    "not a checkpoint": ("path train.svm -m f --resume", 1, "no training to resume"),
    "penalty said": ("path train.svm -m f --rule ftrl:alpha=1,l1=3", 2, "l1 differs between the models"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage(case: str, thresher: Thresher) -> None:
    command, status, words = WRONG[case]
    before = sorted(Path().iterdir())
    ran = thresher(command)
    assert (ran.status, ran.out) == (status, "")
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1
    assert sorted(Path().iterdir()) == before


def test_what_is_not_finished(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checkpoint is not a model, its penalties stay the same, and a message says how to continue."""
    command = "path train.svm -m f --rule ft-ftrl --l1 0.1:1:3 --checkpoint-every 100"
    with monkeypatch.context() as patch:
        patch.setattr(frontier, "save", lambda *given: exit(3))
        with pytest.raises(SystemExit):
            thresher(command)
    assert not Path("f").exists()
    for reading in ("predict f.checkpoint train.svm", "train train.svm -m m --init f.checkpoint"):
        ran = thresher(reading)
        assert (ran.status, "a checkpoint of many models" in ran.err) == (1, True), reading
    changed = thresher(command.replace("0.1:1:3", "auto:4") + " --resume")
    assert (changed.status, "leave --l1 out" in changed.err) == (2, True)
    assert thresher(command.replace("--l1 0.1:1:3", "") + " --resume").status == 0
    assert len(Contents.of("f")) == 3


def test_a_choice_at_the_end_of_the_range_is_told(thresher: Thresher) -> None:
    assert (
        "the strongest penalty of the range was chosen" in thresher(f"{FRONTIER} --choose within:9999%").err
    )
    assert (
        "of the range was chosen"
        not in thresher("path train.svm -m g --rule ft-ftrl --l1 0.01:10:7 --holdout test.svm").err
    )


def test_rows_that_weigh_nothing(thresher: Thresher) -> None:
    """There is no loss to choose by, so nothing is written."""
    Path("nothing.svm").write_text("1:0 1:1\n-1:0 2:1\n" * 20)
    for which in ("best", "1se"):
        ran = thresher(f"path nothing.svm -m f --label-weights --l1 1:2:2 --choose {which}")
        assert (ran.status, Path("f").exists()) == (1, False)
        assert ran.err.splitlines()[-1].startswith("thresher: no model has a finite loss")
    for command in ("path nothing.svm -m f", "cv nothing.svm --folds 2 --rule ft-ftrl"):
        ran = thresher(f"{command} --label-weights -q")
        assert ran == (1, "", "thresher: all importance weights are zero\n"), command


DAMAGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "chosen": lambda t: t.update(chosen=9),
    "no penalty": lambda t: t.pop("penalty"),
    "no count": lambda t: t["lanes"][0].pop("nonzero"),
    "count": lambda t: t["lanes"][0].update(nonzero=None),
    "loss": lambda t: t["lanes"][1].update(holdout_loss="x"),
    "lane": lambda t: t["lanes"].append(3),
    "one less": lambda t: t["lanes"].pop(),
    "dropped": lambda t: t["lanes"][0].update(dropped="why"),
    "no lanes": lambda t: t.update(lanes=None),
}


def test_a_damaged_table(thresher: Thresher) -> None:
    assert thresher(FRONTIER).status == 0
    found = Contents.of("f")
    for name, damage in DAMAGE.items():
        table = json.loads(json.dumps(found.run["frontier"]))
        damage(table)
        model_file.write_all("f", [found.model(k) for k in found.there], {"frontier": table})
        for command in ("choose f best -m m", "predict f test.svm", "info f"):
            ran = thresher(command)
            assert ran.status == 1, (name, command)
            assert ran.err.startswith("thresher: f: "), (name, command)
    assert not Path("m").exists()


def point(nonzero: int, loss: float, error: float = 0.0, dropped: str | None = None) -> Point:
    return Point(1.0, "", nonzero, loss, {"loss": loss, "error": loss}, error, dropped)


def test_choices() -> None:
    points = [
        point(900, 0.300),
        point(500, 0.290),
        point(200, 0.2925, 0.003),
        point(90, 0.2928, 0.002),
        point(20, 0.5),
        point(1, 0.1, dropped="diverged"),
    ]
    assert choose(points, "best") == 1
    assert choose(points, "1se") == 2
    assert choose(points, "within:1%") == 3
    assert choose(points, "within:0.5%") == 1
    assert choose(points, "within:80%") == 4
    assert choose(points, "nnz:100") == 3
    assert choose(points, "nnz:899") == 1
    with pytest.raises(ValueError, match="at most 5 weights"):
        choose(points, "nnz:5")
    with pytest.raises(ValueError, match="no model has a finite loss"):
        choose(points[5:], "best")
    for wrong in ("", "nnz", "nnz:x", "within:1", "2se", "best "):
        with pytest.raises(ValueError, match="a choice must be"):
            choose(points, wrong)


def test_what_is_not_beaten() -> None:
    places = [(5.0, 0.2), (1.0, 0.9), (3.0, 0.4), (4.0, 0.5), (5.0, 0.3), (9.0, 0.2)]
    assert pareto_front(places) == [(1.0, 0.9), (3.0, 0.4), (5.0, 0.2)]


def test_ranges() -> None:
    assert PenaltyRange("0.1:10:3").values == pytest.approx([0.1, 1.0, 10.0])
    assert (PenaltyRange("auto").count, PenaltyRange("auto:7").count, PenaltyRange("1:2").count) == (
        16,
        7,
        16,
    )
    assert [penalty_name(rule) for rule in ("ftrl", "truncated-gradient", "adagrad-rda")] == [
        *("l1", "gravity", "l1")
    ]
    assert penalty_in(Model("truncated-gradient:gravity=0.25").rule) == 0.25


def test_the_error_of_a_difference_is_that_of_the_rows(thresher: Thresher) -> None:
    """Compared with the value computed from the losses of all rows."""
    import thresher as package

    lanes = ModelSet([Model("ft-ftrl", l1=0.1).recipe, Model("ft-ftrl", l1=1.0).recipe])
    source = package.open_source("train.svm")
    rng, chunks = np.random.default_rng(4), []
    for chunk in source.chunks():
        lanes.learn(chunk)
        weighted = chunk.weights * rng.choice([0.5, 1.0, 3.0], len(chunk)).astype(np.float32)
        chunks += [type(chunk)(chunk.indptr, chunk.keys, chunk.values, chunk.labels, weighted)]
    scores = Scores(dict(enumerate(lanes.models)), chunks)
    weights = np.concatenate([chunk.weights for chunk in chunks]).astype(float)
    losses = [
        np.concatenate([model.head.losses(model.predict(chunk), chunk) for chunk in chunks])
        for model in lanes.models
    ]
    difference = losses[0] - losses[1]
    mean = difference.sum() / weights.sum()
    expected = np.sqrt(((difference - mean * weights) ** 2).sum() * len(weights) / (len(weights) - 1))
    expected /= weights.sum()
    assert scores.error_of_difference(0, 1) == pytest.approx(expected, rel=1e-9)
    assert scores.error_of_difference(1, 0) == pytest.approx(expected, rel=1e-9)
    assert scores.error_of_difference(1, 1) == 0.0
    assert [one.paired_error == 0 for one in points_of(lanes, scores, {})].count(True) == 1
