"""``--holdout last:SHARE`` on the command line: pipes, the record, and resuming."""

import shlex

import pytest

from tests.cli.conftest import Thresher

LINES = "".join(f"{k * 7 % 5 % 2} {k % 7 + 1}:1 {k % 11 + 8}:1\n" for k in range(300))
TRAIN = "-q --rule ftrl:l1=0.01 --holdout last:0.1"

pytestmark = pytest.mark.usefixtures("plainly")


def test_a_pipe_is_read_once(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("rows.svm", "w") as file:
        file.write(LINES)
    found = thresher(f"train rows.svm {TRAIN} -m one --json").json
    assert (found["examples"], found["holdout_examples"]) == (270, 30)
    with open("rows.svm") as file:
        monkeypatch.setattr("sys.stdin", file)
        piped = thresher(f"train - {TRAIN} -m two --json")
    for name in ("examples", "holdout_examples", "holdout_loss", "nonzero"):
        assert piped.json[name] == found[name]


def test_what_is_refused_before_the_data_are_opened(thresher: Thresher) -> None:
    for command in ("train no.csv -m m", "path no.csv -m m", "tune no.csv -m m"):
        ran = thresher(f"{command} --group u --holdout last:9")
        assert "but the rows held out are not, whatever their group: leave --group out" in ran.err
        ran = thresher(f"{command} --holdout last:0")
        assert "--holdout last:0: give a share of the rows between 0 and 1" in ran.err


def test_a_condition_is_recorded_and_compared(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "label,day,x\n" + "".join(f"{k * 7 % 5 % 2},{k // 10},{k % 7}\n" for k in range(300))
    with open("rows.csv", "w") as file:
        file.write(lines)
    train = ("-q", "--rule", "ftrl:l1=0.01", "--holdout", "day >= 20 and x != 3")
    found = thresher("train", "rows.csv", *train, "-m", "one", "--json").json
    held = sum(k // 10 >= 20 and k % 7 != 3 for k in range(300))
    assert (found["examples"], found["holdout_examples"]) == (300 - held, held)
    with open("rows.csv") as file:
        monkeypatch.setattr("sys.stdin", file)
        piped = thresher("train", "-", "--format", "csv", *train, "-m", "two", "--json").json
    assert piped["holdout_loss"] == found["holdout_loss"]
    command = thresher("info one --json").json["command"]
    again = shlex.split(command.replace("DATA", "rows.csv").replace("MODEL", "three"))[1:]
    assert "day >= 20 and x != 3" in again
    assert thresher(*again, "-q", "--json").json["holdout_loss"] == found["holdout_loss"]
    for command in ("train no.csv -m m", "path no.csv -m m", "tune no.csv -m m"):
        assert "--holdout day => 20: expected" in thresher(*command.split(), "--holdout", "day => 20").err
        ran = thresher(*command.split(), "--holdout", "day = 2", "--group", "u")
        assert "but the rows held out are not, whatever their group" in ran.err
