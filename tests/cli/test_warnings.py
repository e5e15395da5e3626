"""Warnings on the command line: on standard error, in JSON, and with ``--strict`` in the exit status."""

from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from tests.stopping import full_disk

SORTED = "warning: the labels are sorted (the label changes once in 400 rows"


@pytest.fixture
def data(folder: Path) -> str:
    rows = [f"{k % 2} {1 + k % 2 + (k % 7 == 0)}:1 {4 + k * 31 % 11}:1\n" for k in range(700)]
    (folder / "sorted.svm").write_text("".join(sorted(rows[:400])))
    (folder / "sane.svm").write_text("".join(rows[:400]))
    (folder / "held.svm").write_text("".join(rows[400:]))
    return "sorted.svm"


COMMANDS = {
    "train": "train {} -m out",
    "path": "path {} -m out --l1 0.5:1:2 --holdout none",
    "cv": "cv {} -m out --l1 0.5:1:2 --folds 2",
    "select": "select {} -m out --bags 4 --nonzero 3",
    "tune": "tune {} -m out --rules ft-ftrl --budget 4",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_warns_once_in_each_way(command: str, thresher: Thresher, data: str) -> None:
    words = COMMANDS[command].format(data)
    ran = thresher(f"{words} -q")
    (line,) = [line for line in ran.err.splitlines() if line.startswith("warning: ")]
    assert (ran.status, line[: len(SORTED)]) == (0, SORTED)
    (told,) = thresher(f"{words} -q --json").json["warnings"]
    assert told["name"] == "sorted-labels"
    assert f"warning: {told['message']}" == line
    ran = thresher(f"{words} -q --strict")
    assert ran.status == 1
    assert ran.err.endswith("thresher: a warning, and --strict was given; the result is saved in out\n")
    assert Path("out").exists()


def test_a_strict_run_fails_only_if_it_warns(thresher: Thresher, data: str) -> None:
    ran = thresher("train sane.svm -m out -q --json --strict")
    assert (ran.status, ran.err, ran.json["warnings"]) == (0, "", [])
    ran = thresher(f"cv {data} --l1 0.5:1:2 --folds 2 -q --strict")
    assert (ran.status, ran.err.splitlines()[-1]) == (1, "thresher: a warning, and --strict was given")


@pytest.mark.parametrize("options", ["", "--passes 2 --holdout held.svm"])
def test_a_resumed_run_warns_the_same(options: str, thresher: Thresher, data: str) -> None:
    command = f"train {data} -m m -q --json {options}"
    whole = thresher(command).json
    with full_disk():
        assert thresher(f"{command} --checkpoint-every 90").status == 1
    resumed = thresher(f"{command} --resume").json
    assert resumed["warnings"] == whole["warnings"] != []
    assert resumed["progressive_loss"] == whole["progressive_loss"]


def test_later_passes_do_not_flatter(thresher: Thresher, data: str) -> None:
    sgd = "train sane.svm -m m --rule sgd"
    once, later = thresher(f"{sgd} --json").json, thresher(f"{sgd} --passes 4")
    assert f"progressive loss       {once['progressive_loss']:.6g} (first pass)\n" in later.out
    assert "\npass 2; since last: loss on rows seen before\n" in later.err
    assert "warning" not in later.err
    found = thresher("info m").out
    assert (
        f"progressive loss       {once['progressive_loss']:.6g} (first pass)\nloss of later passes   0."
        in found
    )
    again = thresher(f"{sgd} --passes 4 --json -q").json
    assert again["progressive_loss"] == once["progressive_loss"]
    assert thresher("info m --json").json["loss_of_later_passes"] < 0.9 * once["progressive_loss"]
    assert "first pass" not in thresher(f"{sgd}").out + thresher("info m").out


@pytest.mark.parametrize("command", ["cv", "tune"])
def test_a_model_file_keeps_what_is_wrong_with_its_data(command: str, thresher: Thresher, data: str) -> None:
    """Warnings of other commands too; the command that they print still writes the same file."""
    ran = thresher(COMMANDS[command].format(data) + " -q --json").json
    kept = Path("out").read_bytes()
    (warning,) = thresher("info out --json").json["warnings"]
    assert warning.startswith(SORTED.removeprefix("warning: "))
    assert thresher(f"{ran['command'].partition(' ')[2]} -q").status == 0
    assert Path("out").read_bytes() == kept


def test_a_model_file_keeps_trouble_with_its_training(thresher: Thresher, folder: Path) -> None:
    rows = [f"{k % 2} 1:{1 + k % 3} 2:{1e4 * (1 + k * k % 7)}\n" for k in range(400)]
    (folder / "scales.svm").write_text("".join(rows))
    thresher("train scales.svm -m out -q --rule sgd --holdout scales.svm")
    (kept,) = thresher("info out --json").json["warnings"]
    assert kept.startswith("features of very different scale (feature 2 up to 50,000)")
    alone = Path("out").read_bytes()
    thresher("train scales.svm -m out -q --rule sgd")
    assert Path("out").read_bytes() == alone, "a hold-out changes nothing"
    thresher("train scales.svm -m out -q --rule ft-ftrl --l1 1000")
    (kept,) = thresher("info out --json").json["warnings"]
    assert kept.startswith("no feature has a weight")
