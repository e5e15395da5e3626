"""``thresher path``: many penalties from one reading, choosing among them, and its file."""

import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.commands import run
from tests.models import one_of
from tests.stopping import checkpoints_kept
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.choice import FrontierTable, Point, choose
from thresher.learning.files.model_file import Contents
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.training.scores import Scores
from thresher.plans.budget import use_of
from thresher.plans.frontier import pareto_front, points_of
from thresher.plans.models import Frontier
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
    ran = thresher.ok(f"path train.svm -m f --l1 0.001:1:3 {options} --state --json")
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
    assert len(starred) == 1
    assert starred[0] == lines[1 + table.chosen]

    assert thresher("choose f best -m m").status == 0
    assert Path("m").read_bytes() == one_of("f", table.chosen)
    most = table.points[2].nonzero
    taken = thresher(f"choose f nnz:{most} -m m --json").json
    assert taken["nonzero"] <= most
    assert taken["spec"] == model_file.read("m")[0]["recipe"]["rule"]
    thresher.fails("choose f nnz:0 -m m", 2, "no model has at most 0 weights")


def test_the_range_is_found(thresher: Thresher) -> None:
    """By default, the sparsest model has few weights, the densest nearly all."""
    lanes = thresher("path train.svm -m f --json").json["lanes"]
    counts = [one["nonzero"] for one in lanes]
    full = thresher("train train.svm -m m --holdout every-10th --l1 1e-9 --json -q").json["nonzero"]
    assert len(lanes) == 16
    assert counts[-1] <= 5
    assert counts[0] >= 0.75 * full
    assert sum(0.01 * full < count < 0.9 * full for count in counts) >= 5


@pytest.mark.parametrize("options", ["", f"--holdout test.svm --early-stop 1 --rule fobos {OVERFIT}"])
def test_stopping_changes_nothing(
    options: str, thresher: Thresher, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if options:
        request.getfixturevalue("narrow")
    command = f"path train.svm -m f --l1 0.001:0.1:3 --passes 4 --checkpoint-every 70 {options}"
    with checkpoints_kept() as kept:
        thresher.ok(command)
    shutil.move("f", "whole")
    for number in (1, 5, 9):
        Path("f.checkpoint").write_bytes(kept[number - 1])
        thresher.ok(f"{command} --resume")
        assert Path("f").read_bytes() == Path("whole").read_bytes(), number
        assert not Path("f.checkpoint").exists()
        Path("f").unlink()


@pytest.mark.usefixtures("narrow")
def test_a_lane_that_rests_goes_on_resting(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    options = f"--holdout test.svm --early-stop 1 --rule fobos {OVERFIT}"
    save, resting = checkpoint.save, list[list[int]]()

    def checking(path: Path, lanes: ModelSet, state: checkpoint.TrainingState) -> None:
        save(path, lanes, state)
        loaded, _ = checkpoint.load(path, "path")
        resting.append([k for k in range(3) if k not in lanes.alive])
        assert loaded.alive == lanes.alive

    monkeypatch.setattr(checkpoint, "save", checking)
    thresher.ok(f"path train.svm -m f --l1 1e-9:0.1:3 --passes 6 --checkpoint-every 90 {options}")
    assert any(0 < len(some) < 3 for some in resting)


@pytest.mark.usefixtures("narrow")
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
    ran = thresher.ok(f"path train.svm -m f {options} --json")
    dropped = [one for one in ran.json["lanes"] if one["dropped"]]
    assert 0 < len(dropped) < 3
    assert "the other models continue" in ran.err
    assert ran.json["lanes"][ran.json["chosen"]]["dropped"] is None
    left = [k for k, one in enumerate(ran.json["lanes"]) if not one["dropped"]]
    assert Contents.of("f").there == left
    gone = next(k for k in range(3) if k not in left)
    assert f"f has no model {gone}" in thresher(f"choose f {gone} -m m").err


def test_what_is_not_finished(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checkpoint is not a model, its penalties stay the same, and a message says how to continue."""
    command = "path train.svm -m f --rule ft-ftrl --l1 0.1:1:3 --checkpoint-every 100"
    with monkeypatch.context() as patch:
        patch.setattr(Frontier, "save", lambda *given, **more: exit(3))
        with pytest.raises(SystemExit):
            thresher(command)
    assert not Path("f").exists()
    for reading in ("predict f.checkpoint train.svm", "train train.svm -m m --init f.checkpoint"):
        thresher.fails(reading, 1, "a checkpoint of many models")
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
    Path("nothing.svm").write_text("1:0 1:1\n-1:0 2:1\n" * 20)
    for which in ("best", "1se"):
        ran = thresher(f"path nothing.svm -m f --label-weights --l1 1:2:2 --choose {which}")
        assert (ran.status, Path("f").exists()) == (1, False)
        assert ran.err.splitlines()[-1].startswith("thresher: no model has a finite loss")
    for command in ("path nothing.svm -m f", "cv nothing.svm --folds 2 --rule ft-ftrl"):
        ran = thresher(f"{command} --label-weights -q")
        assert ran == (1, "", "thresher: all importance weights are zero\n"), command


DAMAGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "no penalty": lambda t: t.pop("penalty"),
    "no count": lambda t: t["points"][0].pop("nonzero"),
    "loss": lambda t: t["points"][1].update(holdout={"loss": "x"}),
    "lane": lambda t: t["points"].append(3),
    "one less": lambda t: t["points"].pop(),
    "dropped": lambda t: t["points"][0].update(dropped="why"),
    "no lanes": lambda t: t.update(points=None),
}


def test_a_damaged_table(thresher: Thresher) -> None:
    assert thresher(f"{FRONTIER} --passes 1").status == 0
    found = Contents.of("f")
    for name, damage in DAMAGE.items():
        table = json.loads(json.dumps(found.run["frontier"]))
        damage(table)
        model_file.write_all("f", [found.model(k) for k in found.there], {"frontier": table})
        ran = thresher("choose f best -m m")
        assert ran.status == 1, name
        assert ran.err.startswith("thresher: f: "), name
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
    assert (PenaltyRange("auto").count, PenaltyRange("auto:7").count) == (16, 7)
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


COMMAND = "path train.svm -m f --rule ft-ftrl --l1 0.1:1:3 -q"
OTHER = COMMAND.replace("0.1:1", "0.2:2")
NAMES = ["cache", "f", "test.svm", "train.svm"]
_KILLER = """
import os
replace = os.replace
os.replace = lambda one, other: os._exit(9) if str(other).endswith("/f") else replace(one, other)
import thresher.__main__
"""


def names() -> list[str]:
    return sorted(os.listdir())


@pytest.fixture
def whole(thresher: Thresher) -> bytes:
    assert thresher(COMMAND).status == 0
    found = Path("f").read_bytes()
    Path("f").unlink()
    return found


def test_a_kill_while_the_file_is_written_costs_nothing(
    thresher: Thresher, whole: bytes, folder: Path
) -> None:
    """Neither the older frontier nor the run is lost: it can be resumed."""
    assert thresher(OTHER).status == 0
    before = Path("f").read_bytes()
    status, _, err = run(*f"{COMMAND} --checkpoint-every 100".split(), folder=folder, code=_KILLER)
    assert status == 9, err
    assert Path("f.checkpoint").exists()
    assert Path("f").read_bytes() == before
    thresher.ok(f"{COMMAND} --checkpoint-every 100 --resume")
    assert Path("f").read_bytes() == whole
    assert names() == NAMES


def test_pictures_and_tables(thresher: Thresher) -> None:
    """Drawn by the run, or later from its file; nothing of another kind is replaced."""
    assert thresher(f"{COMMAND} --plot f.svg --table f.tsv").status == 0
    svg, table = Path("f.svg").read_text(), Path("f.tsv").read_text()
    heads, *rows = (line.split("\t") for line in table.splitlines())
    assert heads[:3] == ["l1", "spec", "nonzero"]
    assert [row[heads.index("chosen")] for row in rows].count("True") == 1
    assert thresher("info f --plot g.svg --table g.tsv").status == 0
    assert (Path("g.svg").read_text(), Path("g.tsv").read_text()) == (svg, table)
    assert "train.svm exists and is not a table" in thresher("info f --table train.svm").err
    assert thresher("train train.svm -m m -q").status == 0
    thresher.fails("info m --plot h.svg", 2, "--plot needs a file of thresher path and thresher select")
    assert not Path("h.svg").exists()


@pytest.mark.parametrize(
    ("options", "examples"),
    [
        ("--passes 3 --order once --holdout test.svm", 400),
        ("--passes 6 --holdout test.svm --early-stop 1 --alpha 5 --on-error skip", None),
    ],
)
def test_the_command_trains_on_all_rows(options: str, examples: int | None, thresher: Thresher) -> None:
    found = thresher(f"{FRONTIER} {options} --state --json").json
    words = shlex.split(found["command"])
    assert words[:3] == ["thresher", "train", "train.svm"]
    assert not {"--holdout", "--early-stop"} & set(words)
    learned = thresher(*words[1:], "--json", "-q").json
    recipe = model_file.read("MODEL")[0]["recipe"]
    chosen = model_file.read("f")[0]["recipe"]
    assert recipe == chosen
    if examples is None:  # as many passes as the best model needed
        assert Path("MODEL").read_bytes() == one_of("f", found["chosen"])
    else:
        assert learned["examples"] == examples * learned["passes"]
        assert "--passes 3" not in options or learned["passes"] == 3


def test_the_command_of_a_resumed_run_has_the_options_of_the_stopped_one(
    thresher: Thresher, plainly: None
) -> None:
    """Those that its record has."""
    rows = [{"y": k % 3 == 0, "text": f"word{k % 7} and{k % 3}", "id": k, "day": k % 5} for k in range(120)]
    Path("d.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    options = "--label y --text text --ignore id --categorical day --batch 2 --order buffer:9"
    command = "path d.jsonl -m f --l1 0.001:0.1:3 --passes 1 -q --json"
    with checkpoints_kept() as kept:
        whole = shlex.split(thresher.ok(f"{command} {options} --checkpoint-every 50").json["command"])
    Path("f.checkpoint").write_bytes(kept[0])
    said = shlex.split(thresher.ok(f"{command} --resume").json["command"])
    assert {*whole} <= {*said}
    thresher.ok(*said[1:], "-q")
    assert model_file.read("MODEL")[0]["recipe"] == model_file.read("f")[0]["recipe"]


def test_the_table_of_a_file(thresher: Thresher) -> None:
    table = thresher(FRONTIER).out.splitlines()[:6]
    assert thresher("info f").out.splitlines()[:6] == table
    told = thresher("info f --json").json
    assert (told["kind"], told["choice"], len(told["lanes"])) == ("frontier", "best", 5)
    ran = thresher("path train.svm")
    assert (ran.status, ran.out) == (2, "")
    assert "missing option --model" in ran.err


def test_where_one_model_is_needed_it_is_the_chosen_one(thresher: Thresher) -> None:
    """Others are chosen by `--choose`, and for an ensemble by number."""
    assert thresher(f"{FRONTIER} -q --choose within:20%").status == 0
    chosen = thresher("info f --json").json["chosen"]
    for k in range(5):
        assert thresher(f"choose f {k} -m m{k}").status == 0
    for command in ("weights {}", "evaluate {} test.svm", "predict {} test.svm", "export {} --to json"):
        assert thresher(command.format("f")).out == thresher(command.format(f"m{chosen}")).out
    for which, number in (("best", None), ("within:9999%", 4), ("3", 3), ("0", 0)):
        own = thresher(f"predict f test.svm --choose {which}").out
        if number is not None:
            assert own == thresher(f"predict m{number} test.svm").out
    assert thresher("predict f test.svm --choose 7").err == (
        "thresher: f has no model 7: its models are 0 to 4\n"
    )
    assert "no model has at most 0 weights" in thresher("predict f test.svm --choose nnz:0").err
    numbered = "a choice must be best, 1se, within:P% or nnz:N, or the number of a model, from 0, not 'most'"
    assert numbered in thresher("predict f test.svm --choose most").err
    assert numbered in thresher("choose f most -m m").err
    assert (
        "it holds one model, so there is nothing to choose"
        in thresher("predict m1 test.svm --choose best").err
    )


GRID = "--rule ft-ftrl --passes 1 --l1 0.4:1.6:3"
BUDGET = 200
BUDGETED = f"path train.svm -m f {GRID} --choose nnz:{BUDGET}"


def table_of(path: str) -> FrontierTable:
    found = model_file.Contents.of(path).frontier()
    assert found is not None
    return found


def sizes(path: str) -> list[int]:
    return [int(point.size) for point in table_of(path).points]


def test_a_budget_between_two_models_is_used_by_the_range_that_is_named(thresher: Thresher) -> None:
    ran = thresher(f"{BUDGETED} --json")
    table, use = table_of("f"), ran.json["budget"]
    assert use["used"] == use["fullest"] == table.points[table.chosen].size < 0.5 * BUDGET
    assert use["next"] > BUDGET
    low, high = (table.points[k].penalty for k in (table.chosen - 1, table.chosen))
    assert use["between"] == f"{low:g}:{high:g}:16"
    command = shlex.split(ran.json["command"].replace("MODEL", "again"))[1:]
    assert thresher(*command, "-q", "--weights-only").status == 0
    assert Path("again").read_bytes() == one_of("f", table.chosen), "of the same rows"
    told, finer = (
        f"{use['used']} of {BUDGET} weights; the next heavier model has {use['next']}",
        use["between"],
    )
    assert f"{told}; --l1 {finer} learns models between them" in thresher(BUDGETED).out
    found = package.path("train.svm", "ft-ftrl", l1="0.4:1.6:3", passes=1, choose=f"nnz:{BUDGET}")
    assert f'l1="{use["between"]}" learns models between them' in repr(found)
    found.save("python")
    assert Path("python").read_bytes() == Path("f").read_bytes()
    used = thresher(f"{BUDGETED} --json".replace("0.4:1.6:3", finer)).json["budget"]
    assert 0.9 * BUDGET < used["fullest"] <= BUDGET
    ran_out = thresher(f"path train.svm -m g {GRID} --choose nnz:3 --json")
    sparsest = f"weights: the sparsest has {min(sizes('f'))}; stronger penalties leave fewer, such as --l1"
    assert f"{sparsest} 1.6:160:16; choosing that instead" in ran_out.err
    assert thresher("choose f nnz:3 -m m").err.endswith(f"{sparsest} 1.6:160:16\n")
    thresher.ok(*f"path train.svm -m g {GRID} -q".replace("0.4:1.6:3", "1.6:160:16").split())
    assert thresher("choose g nnz:3 -m m --json").json["nonzero"] <= 3
    taken = thresher(f"choose f nnz:{BUDGET - 1} -m m --json").json
    assert taken["budget"]["used"] == taken["nonzero"] < BUDGET


def test_folds_use_the_budget_of_the_model_that_is_kept(thresher: Thresher) -> None:
    command = f"cv train.svm {GRID} --folds 3 --choose nnz:{BUDGET}"
    ran = thresher(f"{command} -m m --json")
    assert (ran.status, len(ran.json["lanes"])) == (0, 3)
    assert model_file.read("m")[0]["nonzero"] == ran.json["budget"]["used"] == ran.json["nonzero"] <= BUDGET
    python = package.cv(
        "train.svm", "ft-ftrl", l1="0.4:1.6:3", passes=1, folds=3, refit=True, choose=f"nnz:{BUDGET}"
    )
    assert [point.as_dict("l1") for point in python.points] == ran.json["lanes"]
    assert python.choose().nonzero == ran.json["nonzero"]
    alone = shlex.split(ran.json["command"])[1:]
    kept = Path("m").read_bytes()
    assert (thresher(*alone, "-q").status, Path("m").read_bytes()) == (0, kept)
    assert "a model of all rows has more: give --model" in thresher(f"{command} -q").err


def test_when_the_budget_is_no_limit() -> None:
    def point(l1: float, size: int, loss: float) -> Point:
        return Point(l1, "", size, loss, None, None)

    def between(points: list[Point], which: str) -> object:
        use = use_of(points, choose(points, which), which)
        return use and use["between"]

    falling = [point(0.1, 900, 0.3), point(1.0, 400, 0.4), point(10.0, 3, 0.6)]
    assert between(falling, "nnz:500") == "0.1:1:16"
    assert between(falling, "nnz:900") is between(falling, "nnz:402") is between(falling, "best") is None
    rising = [point(0.1, 900, 0.5), point(1.0, 400, 0.4), point(10.0, 3, 0.3)]
    assert (between(rising, "nnz:500"), choose(rising, "nnz:500")) == (None, 2)


def test_the_command_holds_out_no_rows_if_the_run_did_not(thresher: Thresher) -> None:
    ran = thresher(f"{BUDGETED} --holdout none --json")
    assert "--holdout" not in ran.json["command"]
