"""``--choose nnz:N``: the data are read once more if the budget lies between two models."""

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.models import one_of
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.choice import FrontierTable, Point, choose
from thresher.learning.training.interruption import Interrupted
from thresher.plans import frontier
from thresher.plans.budget import between

GRID = "--rule ft-ftrl --passes 1 --l1 0.4:1.6:3"
BUDGET = 200
COMMAND = f"path train.svm -m f {GRID} --choose nnz:{BUDGET}"


def table_of(path: str) -> FrontierTable:
    found = model_file.Contents.of(path).frontier()
    assert found is not None
    return found


def sizes(path: str) -> list[int]:
    return [point.nonzero for point in table_of(path).points]


def with_state(path: str) -> list[bool]:
    found = model_file.Contents.of(path)
    return [any(name.startswith("state.") for name in found.model(k)[1]) for k in found.there]


def test_a_budget_between_two_models_is_used(thresher: Thresher) -> None:
    assert thresher(f"path train.svm -m coarse {GRID}").status == 0
    coarse = sizes("coarse")
    assert max(size for size in coarse if size <= BUDGET) < 0.5 * BUDGET
    ran = thresher(f"{COMMAND} --json")
    assert "reading the data again, for 8 penalties from" in ran.err
    table, use = table_of("f"), ran.json["budget"]
    assert len(table.points) == 11
    assert [point.penalty for point in table.points] == sorted(point.penalty for point in table.points)
    assert use == {
        "weights": BUDGET,
        "used": table.points[table.chosen].nonzero,
        "fullest": max(size for size in sizes("f") if size <= BUDGET),
        "next": min(size for size in sizes("f") if size > BUDGET),
    }
    assert 0.93 * BUDGET <= use["fullest"] <= BUDGET
    for k in range(11):
        alone = "train train.svm -m alone --weights-only --holdout every-10th --passes 1 -q --json --rule"
        figures = thresher(f"{alone} {table.points[k].spec}").json
        assert Path("alone").read_bytes() == one_of("f", k)
        assert figures["holdout_loss"] == (table.points[k].holdout or {})["loss"]
    losses = [point.loss for point in table.points]
    zero = [k for k, point in enumerate(table.points) if point.paired_error == 0]
    assert zero == [losses.index(min(losses))]
    command = shlex.split(ran.json["command"].replace("MODEL", "again"))[1:]
    assert thresher(*command, "-q", "--weights-only").status == 0
    assert Path("again").read_bytes() == one_of("f", table.chosen)
    ran_out = thresher(f"path train.svm -m g {GRID} --choose nnz:3 --json")
    sparsest = f"weights: the sparsest has {min(coarse)}; stronger penalties leave fewer"
    assert f"{sparsest}; choosing that instead" in ran_out.err
    assert "--holdout every-10th" in ran_out.json["command"], "of the same rows"
    first = Path("f").read_bytes()
    assert thresher(COMMAND).out.count(f"{use['used']} of {BUDGET} weights") == 1
    assert Path("f").read_bytes() == first
    taken = thresher(f"choose f nnz:{BUDGET - 1} -m m --json").json
    assert taken["budget"]["used"] == taken["nonzero"] < BUDGET
    found = package.path("train.svm", "ft-ftrl", l1="0.4:1.6:3", passes=1, choose=f"nnz:{BUDGET}")
    found.save("python")
    assert Path("python").read_bytes() == first


@pytest.mark.parametrize("options", ["", "--holdout test.svm --passes 2 --order once --early-stop 1"])
def test_a_second_reading_that_is_stopped_continues(
    options: str, thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = COMMAND.replace("--passes 1", "") if options else COMMAND
    command = f"{once} --checkpoint-every 120 {options}"
    assert thresher(f"{command}").status == 0
    assert len(sizes("f")) == 11
    Path("f").rename("whole")
    save = checkpoint.save

    def stopping(second: bool, path: Path, models: Any, state: Any) -> None:
        save(path, models, state)
        if second == bool(state.finished):
            raise Interrupted(path, 60)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", partial(stopping, False))
        assert thresher(command).status == 130
    assert not Path("f").exists()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", partial(stopping, True))
        ran = thresher(command.replace("--order once", "") + " --resume")
    assert (ran.status, "checkpoint in f.checkpoint, continue with --resume" in ran.err) == (130, True)
    assert len(sizes("f")) == 3  # usable already
    assert with_state("f") == [True] * 3
    Path("f").rename("g")
    assert "does not have the others: run again without --resume" in thresher(f"{command} --resume").err
    Path("g").rename("f")
    ran = thresher(f"{command} --resume")
    assert (ran.status, Path("f.checkpoint").exists()) == (0, False), ran.err
    assert with_state("f") == [False] * 11
    assert Path("f").read_bytes() == Path("whole").read_bytes()


def test_state_is_written_for_a_checkpoint(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and only if the second reading makes one, which `--resume` adds to what is in the file."""
    save, states = frontier.save, list[bool]()

    def noting(path: Path, found: Any, models: Any, state: bool) -> None:
        states.append(state)
        save(path, found, models, state)

    monkeypatch.setattr(frontier, "save", noting)
    monkeypatch.setattr(model_file, "MUCH", 0)
    monkeypatch.setattr(model_file, "LARGE", 0)
    for more, expected in (
        ("", [False, False]),
        ("--checkpoint-every 120", [False, True, False]),
        ("--state --checkpoint-every 120", [True, True]),
    ):
        states.clear()
        err = thresher(f"{COMMAND} {more}").err
        assert states == expected
        assert ("of weights; --resume needs it" in err) == (expected == [False, True, False])


@pytest.mark.usefixtures("narrow")
def test_data_that_can_be_read_only_once_keep_the_choice(thresher: Thresher) -> None:
    words = [line.split() for line in Path("train.svm").read_text().splitlines()]
    rows = [({one.split(":")[0]: float(one.split(":")[1]) for one in row[1:]}, int(row[0])) for row in words]
    with pytest.warns(package.TroubleWarning, match=r"read only once.*run again with l1=.0\.\S+:16"):
        once = package.path(iter(rows), rule="ftrl", l1="0.3:10:2", choose="nnz:6")
    assert len(once.points) == 2
    with pytest.warns(
        package.TroubleWarning, match=r"at most 0 weights.*stronger penalties leave fewer; choosing that"
    ):
        few = package.path(rows, rule="ftrl", l1="0.01:0.02:2", choose="nnz:0")
    assert few.choice == f"nnz:{few.model_.nonzero}"
    assert few.model_.nonzero == min(point.nonzero for point in few.points)
    often = package.path(rows, rule="ftrl", l1="0.3:10:2")
    assert "of 6 weights" not in repr(often)
    assert often.choose("nnz:6").nonzero > once.model_.nonzero
    number = often.number("nnz:6")
    assert (len(often.points), number) == (18, often.number("nnz:6"))


def test_folds_use_the_budget_of_the_model_that_is_kept(thresher: Thresher) -> None:
    command = f"cv train.svm {GRID} --folds 3 --choose nnz:{BUDGET}"
    ran = thresher(f"{command} -m m --json")
    assert (ran.status, len(ran.json["lanes"])) == (0, 11)
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

    falling = [point(0.1, 900, 0.3), point(1.0, 400, 0.4), point(10.0, 3, 0.6)]
    assert len(between(falling, "nnz:500")) == 8
    assert all(0.1 < penalty < 1.0 for penalty in between(falling, "nnz:500"))
    assert between(falling, "nnz:2") == between(falling, "nnz:900") == between(falling, "nnz:402") == []
    rising = [point(0.1, 900, 0.5), point(1.0, 400, 0.4), point(10.0, 3, 0.3)]
    assert (between(rising, "nnz:500"), choose(rising, "nnz:500")) == ([], 2)
    assert between([point(0.0, 900, 0.3), *falling[1:]], "nnz:500")[0] > 0


def test_the_command_holds_out_no_rows_if_the_run_did_not(thresher: Thresher) -> None:
    ran = thresher(f"{COMMAND} --holdout none --json")
    assert "--holdout" not in ran.json["command"]
