"""Writing the file of ``thresher path``: interruptions, full disks, two runs at once."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Thresher
from tests.commands import run_code
from thresher import load, path
from thresher.learning.files import model_file
from thresher.plans import frontier
from thresher.plans.models import Frontier

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
    """What the command wrote, which is then removed."""
    assert thresher(COMMAND).status == 0
    found = Path("f").read_bytes()
    Path("f").unlink()
    return found


@pytest.mark.parametrize(("older", "more"), [(False, ""), (True, "--resume")])
def test_a_kill_while_the_file_is_written_costs_nothing(
    older: bool, more: str, thresher: Thresher, whole: bytes, folder: Path
) -> None:
    """Neither the older frontier nor the run is lost: it can be resumed or started again."""
    if older:
        assert thresher(OTHER).status == 0
    before = Path("f").read_bytes() if older else None
    status, err = run_code(_KILLER, *f"{COMMAND} --checkpoint-every 100".split(), folder=folder)
    assert status == 9, err
    assert Path("f.checkpoint").exists()
    assert (Path("f").read_bytes() if older else None) == before
    ran = thresher(f"{COMMAND} --checkpoint-every 100 {more}")
    assert ran.status == 0, ran.err
    assert Path("f").read_bytes() == whole
    assert names() == NAMES


def test_two_runs_that_save_at_once_leave_the_models_of_one(
    thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (path("train.svm", "ft-ftrl", l1=given) for given in ("0.1:1:3", "0.2:2:5"))
    other.save("alone")
    write, calls = model_file.write_all, list[Any]()

    def interleaved(*given: Any, **named: Any) -> None:
        calls.append(given)
        if len(calls) == 1:
            one.save("f")
        write(*given, **named)

    monkeypatch.setattr(model_file, "write_all", interleaved)
    other.save("f")
    assert Path("f").read_bytes() == Path("alone").read_bytes()
    assert not [name for name in names() if name.startswith(".")]


def test_a_signal_while_the_file_is_written_waits(
    thresher: Thresher, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = frontier.save

    def interrupted(*given: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        save(*given)

    monkeypatch.setattr(frontier, "save", interrupted)
    ran = thresher(f"{COMMAND} --json")
    assert ran.status == 130
    assert ran.err.splitlines()[-2:] == [
        "thresher: stopping after the current step",
        "thresher: interrupted; the model is saved in f",
    ]
    assert ran.json["model"] == "f"
    assert Path("f").read_bytes() == whole
    assert names() == NAMES


def test_a_full_disk_leaves_the_older_file(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    assert thresher(OTHER).status == 0
    before = Path("f").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ran = thresher(f"{COMMAND} --no-cache")
    assert (ran.status, ran.err.splitlines()[-1]) == (1, "thresher: f: the disk is full")
    assert Path("f").read_bytes() == before
    assert names() == NAMES


def test_a_frontier_in_python_is_saved_in_the_same_way(thresher: Thresher) -> None:
    found: Frontier = path("train.svm", "ft-ftrl", l1="0.1:1:3")
    found.save("f", "1se")
    assert load("f").choice == "1se"
    found.save("f")
    assert load("f").choice == "best"
    found.save("g", state=True)
    for place, more in (("f", ""), ("g", "--state")):
        assert thresher(COMMAND.replace("-m f", f"-m h {more}")).status == 0
        assert Path("h").read_bytes() == Path(place).read_bytes()


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
    ran = thresher("info m --plot h.svg")
    assert (ran.status, "--plot needs a file of thresher path and thresher select" in ran.err) == (2, True)
    assert not Path("h.svg").exists()
