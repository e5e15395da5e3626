"""``thresher boost``: its figures, its table, its model in other commands, errors and interruption."""

import re
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Thresher
from tests.commands import OLDER_MODEL, start
from thresher import TroubleWarning, boost, load
from thresher.learning.files import model_file
from thresher.options.training import METHODS

KEYS = ["examples", "rounds", "sweeps", "objective", "certificate", "converged", "nonzero", "features_seen"]
KEYS += ["seconds", "skipped", "model"]


@pytest.mark.parametrize(("method", "loss"), [*zip(METHODS, ("exponential", "logistic"), strict=True)])
def test_json_has_these_keys_and_agrees_with_python(thresher: Thresher, method: str, loss: str) -> None:
    options = f"--method {method} --loss {loss} --l1 0.5 --l2 0.1 --no-intercept --tolerance 1e-3"
    ran = thresher(f"boost train.svm -m m --json -q {options}")
    assert (ran.status, ran.err) == (0, "")
    figures = ran.json
    assert list(figures) == [*KEYS, "warnings"]
    model = boost("train.svm", loss, l1=0.5, l2=0.1, method=method, intercept=False, tolerance=1e-3)
    found = model.solution
    for name in ("examples", "rounds", "sweeps", "objective", "certificate", "converged", "features_seen"):
        assert figures[name] == getattr(found, name)
    assert figures["examples"] == 400
    assert figures["converged"] is True
    assert figures["certificate"] <= 1e-3
    assert figures["nonzero"] == len(model.keys) == len(load("m").keys) > 10
    assert load("m").weights.tobytes() == model.weights.tobytes()
    assert (figures["skipped"], figures["model"]) == (0, "m")


def test_the_table_and_figures_for_people(thresher: Thresher) -> None:
    ran = thresher("boost train.svm -m m")
    head, *lines = ran.err.splitlines()
    assert head.split() == ["round", "sweeps", "objective", "certificate", "non-zero", "seconds"]
    table = [[float(cell.replace(",", "")) for cell in line.split()] for line in lines]
    assert [row[0] for row in table] == list(range(len(table)))
    assert all(later[2] <= earlier[2] for earlier, later in pairwise(table))
    assert table[0][4] == 0 < table[-1][4]
    assert table[-1][2] < 0.9 * table[0][2]
    assert table[-1][3] <= 1e-4 < table[-2][3]
    figures = {line[:22].strip().replace(" ", "_"): line[22:].strip() for line in ran.out.splitlines()}
    assert list(figures) == KEYS
    assert figures["converged"] == "yes"
    assert thresher("boost train.svm -m m -q").err == ""


def test_its_model_serves_the_other_commands(thresher: Thresher, folder: Path) -> None:
    assert thresher("boost train.svm -m m -q --l1 0.5").status == 0
    figures = thresher("evaluate m test.svm --json").json
    assert figures["examples"] == 200
    assert figures["error"] < 0.25
    assert figures["nonzero"] == len(load("m").keys)
    told = [float(line) for line in thresher("predict m test.svm --output probability").out.splitlines()]
    margins = [float(line) for line in thresher("predict m test.svm").out.splitlines()]
    assert [p > 0.5 for p in told] == [margin > 0 for margin in margins]
    assert set(thresher("predict m test.svm --output label").out.split()) == {"1", "-1"}
    *weights, intercept = thresher("weights m").out.splitlines()
    assert len(weights) == figures["nonzero"]
    assert intercept.startswith("intercept\t\t")
    assert thresher("boost train.svm -m bare -q --no-intercept").status == 0
    assert "intercept" not in thresher("weights bare").out
    header, tensors = model_file.read("m")
    assert header["recipe"]["rule"] is None
    assert header["solver"]["method"] == "newton"
    assert header["solver"]["l1"] == 0.5
    assert not [name for name in tensors if name.startswith("state.")]


def test_help_names_the_losses_of_the_error(thresher: Thresher) -> None:
    with pytest.raises(ValueError, match="boost does not support the loss hinge") as refused:
        boost("train.svm", "hinge")
    able = str(refused.value).partition("; choose ")[2].partition(", or ")[0].split(" or ")
    words = re.sub(r"-\n +", "-", thresher("boost --help").out)
    assert {"gamma", "softmax"} < {*able} <= {*re.findall(r"[\w-]+", words)}


def test_info_shows_the_loss_and_the_certificate_of_many_penalties(thresher: Thresher) -> None:
    assert (
        thresher("boost train.svm -m m -q --loss logistic --l1 1:4:2 --folds 2 --tolerance 1e-3").status == 0
    )
    head, *lines = thresher("info m").out.splitlines()
    assert head.split() == ["l1", "non-zero", "held-out", "loss", "held-out", "error", "held-out", "auc"]
    figures = {line[:22].strip(): line[22:].strip() for line in lines[2:]}
    assert figures["loss"] == "logistic:positive=1.0"
    assert figures["solver method"] == "newton"
    assert 0 < float(figures["solver certificate"]) <= 1e-3
    told = thresher("info m --json").json
    assert told["solver"]["l1"] == told["lanes"][told["chosen"]]["l1"]


@pytest.mark.parametrize("method", METHODS)
def test_interrupted_while_solving(method: str, folder: Path) -> None:
    command = f"boost train.svm -m m --method {method} --tolerance 0 --rounds 1000000000"
    with start(*command.split(), folder=folder) as process:
        for _ in range(3):
            process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
        assert process.stderr.read().endswith(b"thresher: interrupted\n")
        assert process.stdout.read() == b""
    assert not [path.name for path in folder.iterdir() if "m" in path.name.split(".")]


def test_interrupted_while_reading(folder: Path) -> None:
    (folder / "m").write_bytes(OLDER_MODEL)
    with start("boost", "-", "-m", "m", folder=folder, stdin=subprocess.PIPE) as process:
        process.stdin.write(b"1 1:1\n" * 1_000_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert (folder / "m").read_bytes() == OLDER_MODEL


def test_warnings(thresher: Thresher, folder: Path) -> None:
    rows = [f"{k % 2},{k % 7},u{k},{'?' if k == 9 else k * 7 % 60}" for k in range(200)]
    (folder / "odd.csv").write_text("\n".join(["y,a,user,age", *rows]) + "\n")
    ran = thresher.ok("boost odd.csv --label y -m odd -q --l1 1e9 --json")
    names = [one["name"] for one in ran.json["warnings"]]
    assert names == ["id-columns", "numbers-as-categories", "no-weights"]
    assert "warning: column user differs in every one of the first 200 rows" in ran.err
    assert "use a smaller l1 (currently 1e+09)" in ran.err
    thresher.fails("boost odd.csv --label y -m odd -q --strict", 1, "--strict was given")
    assert thresher("boost odd.csv --label y -m odd -q --strict --ignore user --missing ?").status == 0
    with pytest.warns(TroubleWarning) as caught:
        model = boost(folder / "odd.csv", label="y")
    assert [one.name for one in model.warnings] == ["id-columns", "numbers-as-categories"]
    assert len(caught) == 2


def test_many_penalties_are_a_frontier(thresher: Thresher, folder: Path) -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(90, 12))
    y = np.sign(X[:, :3] @ [2.0, -1.0, 1.0] + rng.normal(size=90))
    rows = [" ".join(f"{j}:{x:.4f}" for j, x in enumerate(row, 1)) for row in X]
    (folder / "d.svm").write_text("".join(f"{t:g} {row}\n" for t, row in zip(y, rows, strict=True)))
    ran = thresher.ok("boost d.svm -m f --loss logistic --l1 0.5:20:6 --folds 4 --choose 1se --json")
    lanes, chosen = ran.json["lanes"], ran.json["chosen"]
    assert len(lanes) == 6
    assert ran.json["nonzero"] == lanes[chosen]["nonzero"]
    assert "fold 4 of 4: 6 penalties" in ran.err
    assert thresher("info f --json").json["chosen"] == chosen
    thresher.ok("choose f nnz:4 -m small")
    assert 0 < thresher("info small --json").json["nonzero"] <= 4
    thresher.ok("predict f d.svm")
    thresher.ok(f"boost d.svm -m one --loss logistic --l1 {lanes[chosen]['l1']} -q")
    one, chosen_one = load("one"), load("f").model_
    assert one.keys.tolist() == chosen_one.keys.tolist()
    assert one.weights == pytest.approx(chosen_one.weights, rel=0.05, abs=0.01)
