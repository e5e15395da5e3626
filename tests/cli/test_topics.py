"""Topics on the command line, tried with files that grow."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import NARROW, Thresher

pytestmark = pytest.mark.usefixtures("folder")
COMMAND = "train tail:a.svm --format svmlight --rule ftrl -q -m"


def append(rows: list[bytes]) -> None:
    with Path("a.svm").open("ab") as file:
        file.writelines(rows)


def test_every_night(thresher: Thresher) -> None:
    append(NARROW[:100])
    thresher.ok(f"{COMMAND} m")
    append(NARROW[100:150])
    thresher.ok(f"{COMMAND} m --continue m")
    ran = thresher.ok("train", "a.svm", "-m", "whole", "--rule", "ftrl", "--passes", "1", "-q", "--json")
    assert json.loads(ran.out)["examples"] == 150
    assert thresher.ok("weights m").out == thresher.ok("weights whole").out
    size = sum(map(len, NARROW[:150]))
    assert f"read                   tail:a.svm: a.svm to {size:,}" in thresher.ok("info m").out


def test_nothing_new(thresher: Thresher) -> None:
    """Status 0 and one line; the model is as it was, and there under any name."""
    append(NARROW[:100])
    thresher.ok(f"{COMMAND} m")
    before = Path("m").read_bytes(), Path("m").stat().st_ino
    ran = thresher.ok(f"{COMMAND} m --continue m")
    assert (ran.out, ran.err) == ("", "thresher: nothing new in tail:a.svm; the model stays as it is\n")
    assert (Path("m").read_bytes(), Path("m").stat().st_ino) == before
    append([b"1 1:"])  # not yet a line
    assert thresher.ok(f"{COMMAND} other --continue m").out == ""
    assert Path("other").read_bytes() == before[0]
    Path("b.svm").write_bytes(b"".join(NARROW[100:150]))
    thresher.ok("train tail:b.svm?from=latest --format svmlight -m m --continue m")
    assert Path("m").read_bytes() != before[0]
    with Path("b.svm").open("ab") as file:
        file.writelines(NARROW[150:160])
    ran = thresher.ok("train tail:b.svm --format svmlight -m m --continue m -q --json")
    assert ran.json["examples"] == 110


def test_other_commands_go_on(thresher: Thresher) -> None:
    append(NARROW[:100])
    run = "path tail:a.svm --format svmlight -q -m m"
    thresher.ok(f"{run} --state")
    append(NARROW[100:150])
    thresher.ok(f"{run} --continue m")
    assert thresher.ok(f"{run} --continue m").err.startswith("thresher: nothing new")


def test_predictions_and_figures(thresher: Thresher) -> None:
    append(NARROW[:100])
    thresher.ok(f"{COMMAND} m")
    append([NARROW[100], b"1 1:0."])
    found = thresher.ok("predict m tail:a.svm").out
    Path("b.svm").write_bytes(b"".join(NARROW[:101]))
    assert found == thresher.ok("predict m b.svm").out
    assert thresher.ok("evaluate m tail:a.svm").out == thresher.ok("evaluate m b.svm").out


def test_what_is_refused(thresher: Thresher) -> None:
    append(NARROW[:100])
    thresher.ok(f"{COMMAND} m")
    before = Path("m").read_bytes()
    Path("a.svm").write_bytes(b"".join(NARROW[100:102]))
    thresher.fails(f"{COMMAND} m --continue m", 1, "; ?from=earliest goes on with what is there")
    assert Path("m").read_bytes() == before
    again = COMMAND.replace("a.svm", "a.svm?from=earliest")
    with pytest.warns(UserWarning, match="tail:a.svm: it is another file than the one learned from"):
        assert thresher.ok(f"{again} m --continue m --json").json["examples"] == 102
