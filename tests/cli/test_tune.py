"""``thresher tune``: the best of many settings, and the command that trains it alone."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Ran, Thresher
from thresher.learning.files import model_file
from thresher.plans import race

TUNE = "tune train.svm -m a --budget 8 --rules ft-ftrl,adagrad-fobos -q"


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "FIRST", 64)


def alone(thresher: Thresher, command: str) -> Ran:
    """The command that tune printed; it writes the same bytes."""
    words = shlex.split(command)
    assert words[:2] == ["thresher", "train"]
    tuned = Path("a").read_bytes()
    ran = thresher.ok(*words[1:], "--json", "-q")
    assert Path("a").read_bytes() == tuned
    return ran


@pytest.mark.parametrize(
    "options",
    [
        *("", "--holdout test.svm --seed 3", "--order once --loss hinge"),
        *("--order buffer:50 --no-cache --no-intercept", "--store hashed:9 --dtype float64"),
    ],
)
def test_the_command_is_right(options: str, thresher: Thresher, request: pytest.FixtureRequest) -> None:
    if set(options.split()) & {"--loss", "--batch", "--dtype"}:
        request.getfixturevalue("narrow")
    ran = thresher(f"{TUNE} --json {options}")
    assert (ran.status, ran.err) == (0, "")
    found = ran.json
    told = alone(thresher, found["command"]).json
    assert (found["examples"], found["nonzero"]) == (told["examples"], told["nonzero"])
    rows = Path("train.svm").read_bytes().count(b"\n")
    assert found["examples"] == (rows * 6 // 10 if "0.4" in options else rows) * told["passes"]
    best = found["trials"][found["chosen"]]
    assert best["rule"] == found["rule"] == model_file.read("a")[0]["recipe"]["rule"]
    assert best["progressive_loss"] == told["progressive_loss"]
    held = {name: told[name] for name in told if name.startswith("holdout_")}
    assert {
        f"holdout_{name.removeprefix('report_')}": found[name] for name in found if "report_" in name
    } == ({**held, "holdout_on": found["report_on"]} if held else reported(thresher, found))
    assert not held or f"--holdout {found['report_on']}" in options


def test_an_empty_list_of_rules_is_refused(thresher: Thresher) -> None:
    thresher.fails("tune train.svm -m a --rules=", 2, "no rule is called ''")


def test_help_leaves_out_what_is_refused(thresher: Thresher) -> None:
    words = set(re.findall(r"--[a-z0-9-]+", thresher("tune --help all").out))
    refused = {"--rule", "--rate", "--alpha", "--l1"}
    assert not refused & words
    assert {"--rules", "--loss", "--budget", "--holdout"} < words
    assert refused < set(re.findall(r"--[a-z0-9-]+", thresher("train --help all").out))


def reported(thresher: Thresher, found: dict[str, Any]) -> dict[str, Any]:
    """The loss of the last tenth: the total loss less that of the other rows."""
    rows = Path("train.svm").read_bytes().count(b"\n")
    assert found["report_on"] == f"rows {rows * 9 // 10 + 1} to {rows}, each before it was learned"
    return {
        "holdout_on": found["report_on"],
        "holdout_examples": rows // 10,
        "holdout_loss": found["report_loss"],
    }


def test_the_table(thresher: Thresher) -> None:
    ran = thresher(TUNE.removesuffix(" -q").replace("--budget 8", "--budget 24"))
    lines = ran.out.splitlines()
    assert lines.pop(0).startswith("late loss: over the last half of the rows used for choosing")
    assert lines[0].split() == ["round", "rows", "progressive", "loss", "late", "loss", "setting"]
    trials = lines[1:25]
    assert [line.lstrip("* ").split()[0] for line in trials] == ["1"] * 12 + ["2"] * 6 + ["3"] * 6
    assert [line for line in trials if line.startswith("* ")] != []
    assert any("more loss than the best at row" in line for line in trials)
    figures = dict(line.split("  ", 1) for line in lines[25:])
    assert figures["seed"].strip() == "0"
    assert figures["settings"].strip() == "24"
    told = [line for line in ran.err.splitlines() if line.startswith("round")]
    assert [line.partition(" settings")[0] for line in told] == [
        *("round 1 of 3, 12", "round 2 of 3, 18", "round 3 of 3, 24")
    ]
    quiet = thresher(TUNE.replace("--budget 8", "--budget 24")).out.splitlines()
    assert [line[:20] for line in quiet] == [line[:20] for line in lines[25:]]
    assert f" -m a --rule {figures['rule'].strip()}" in figures["command"]


def test_little_data(thresher: Thresher) -> None:
    lines = Path("train.svm").read_text().splitlines(keepends=True)
    Path("five.svm").write_text("".join(lines[:5]))
    Path("one.svm").write_text("1 3:1\n" * 50)
    for name, budget in (("five", 8), ("one", 8), ("five", 1), ("train", 1)):
        tune = TUNE.replace("--budget 8", f"--budget {budget}").replace("train.svm", f"{name}.svm")
        found = thresher(f"{tune} --json").json
        alone(thresher, found["command"])
        assert found["report_examples"] == {"five": 1, "one": 5, "train": 40}[name]


def test_bad_lines(thresher: Thresher) -> None:
    """Divergence is reported once; if every setting diverges, tune ends as train does."""
    rows = Path("train.svm").read_text()
    Path("some.svm").write_text("nonsense\n" + rows)
    ran = thresher.ok(f"{TUNE.replace('train.svm', 'some.svm')} --on-error quarantine=q.txt")
    assert "skipped 1 bad line of 401" in ran.err
    assert Path("q.txt").read_text() == "nonsense\n"
    for text in ("", "nonsense\n" * 3):
        Path("bad.svm").write_text(text)
        given = thresher("train bad.svm -m b --on-error skip -q")
        ran = thresher(f"{TUNE.replace('train.svm', 'bad.svm')} --on-error skip")
        assert (ran.status, ran.err) == (given.status, given.err)


def test_settings_that_are_dropped_give_no_warning(thresher: Thresher) -> None:
    """Their loss is not a number at the end of the data, which they did not learn."""
    random = np.random.default_rng(4)
    rows = [f"{k % 2} {1 + k % 2}:1 {3 + random.integers(0, 50)}:1" for k in range(3000)]
    Path("many.svm").write_text("\n".join(rows) + "\n")
    found = thresher.ok("tune many.svm -m tuned -q --budget 64 --rules ft-ftrl,adagrad-fobos")
    assert "nan" not in found.err
