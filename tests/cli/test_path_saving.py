"""Writing the folder of ``thresher path``: what it contains, and interruptions."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Thresher
from tests.commands import run_code
from thresher import path
from thresher.lanes import folder as frontiers
from thresher.lanes.frontier import picture
from thresher.lanes.models import Frontier
from thresher.learning.files import model_file
from thresher.learning.model.model import Model

COMMAND = "path train.svm -m f --rule ft-ftrl --l1 0.1:1:3 -q"
OTHER = COMMAND.replace("0.1:1", "0.2:2")
NAMES = ["cache", "f", "test.svm", "train.svm"]

_KILLER = """
import os, sys
from pathlib import Path
from thresher.lanes import folder as frontiers
from thresher.learning.files import model_file
owner, name = {"model": (model_file, "save"), "swap": (os, "rename"),
               "removal": (Path, "iterdir"), "picture": (frontiers, "picture")}[sys.argv.pop(1)]
iterdir = Path.iterdir

def killing(*given, **named):
    if name == "iterdir" and given[0].suffix != ".partial":
        return iterdir(*given)
    os._exit(9)

setattr(owner, name, killing)
import thresher.__main__
"""


def contents(path: str | Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in sorted(Path(path).iterdir())}


def names() -> list[str]:
    return sorted(os.listdir())


@pytest.fixture
def whole(thresher: Thresher) -> dict[str, bytes]:
    """What the command wrote into its folder, which is then removed."""
    assert thresher(COMMAND).status == 0
    found = contents("f")
    shutil.rmtree("f")
    return found


@pytest.mark.parametrize("at", ["model", "picture", "swap", "removal"])
@pytest.mark.parametrize("older", [False, True])
def test_a_kill_while_the_folder_is_written_costs_nothing(
    at: str,
    older: bool,
    thresher: Thresher,
    whole: dict[str, bytes],
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Neither the older frontier nor the run is lost: it can be resumed or started again."""
    if older:
        assert thresher(OTHER).status == 0
    before = contents("f") if older else None
    words = f"{COMMAND} --checkpoint-every 100".split()
    status, err = run_code(_KILLER, at, *words, folder=folder)
    assert status == 9, err
    assert Path("f.checkpoint").exists()
    swapped = at == "removal"
    assert (contents("f") if Path("f").exists() else None) == (whole if swapped else before)
    assert len([name for name in names() if name.startswith(".f.")]) == (older or not swapped)
    left = tmp_path_factory.mktemp("left")
    shutil.copytree(folder, left, ignore=shutil.ignore_patterns("cache"), dirs_exist_ok=True)
    for more in ("--resume", ""):
        ran = thresher(f"{COMMAND} --checkpoint-every 100 {more}")
        assert ran.status == 0, ran.err
        assert contents("f") == whole
        assert names() == NAMES
        shutil.rmtree("f")
        shutil.copytree(left, folder, dirs_exist_ok=True)


@pytest.mark.parametrize("more", ["--resume", ""])
def test_what_was_half_written_in_place_is_replaced(
    more: str, thresher: Thresher, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder as left by a copy that was interrupted."""
    with monkeypatch.context() as patch:
        patch.setattr(frontiers, "save", lambda *given: exit(3))
        with pytest.raises(SystemExit):
            thresher(f"{COMMAND} --checkpoint-every 100")
    Path("f").mkdir()
    Path("f/lane-000.model").write_bytes(whole["lane-000.model"][:200])
    Path("f/.lane-001.model.0123abcd.4567cdef.partial").touch()
    assert "f is not finished: run it again" in thresher("path f -m m").err
    assert thresher(f"{COMMAND} {more}").status == 0
    assert contents("f") == whole


@pytest.mark.parametrize("finished", [False, True])
def test_a_folder_with_other_things_is_refused_before_anything_is_learned(
    finished: bool, thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    if finished:
        assert thresher(COMMAND).status == 0
    Path("f").mkdir(exist_ok=True)
    Path("f/notes.txt").write_text("mine")
    before = contents("f")
    with monkeypatch.context() as patch:
        patch.setattr(Model, "learn", lambda *given: exit(3))
        ran = thresher(OTHER)
    assert ran == (1, "", "thresher: f: a folder with other files in it (notes.txt): name a new one\n")
    assert contents("f") == before


def test_other_things_that_come_while_it_learns_stay(
    thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert thresher(OTHER).status == 0
    before = contents("f")

    def meanwhile(*given: Any) -> str:
        Path("f/notes.txt").write_text("mine")
        return picture(*given)

    monkeypatch.setattr("thresher.lanes.folder.picture", meanwhile)
    ran = thresher(f"{COMMAND} --checkpoint-every 100")
    assert (ran.status, "other files in it (notes.txt)" in ran.err) == (1, True)
    assert contents("f") == {**before, "notes.txt": b"mine"}
    assert names() == sorted([*NAMES, "f.checkpoint"])


@pytest.mark.parametrize("older", [False, True])
def test_two_runs_that_save_at_once_leave_the_folder_of_one(
    older: bool, thresher: Thresher, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (path("train.svm", "ft-ftrl", l1=given) for given in ("0.1:1:3", "0.2:2:5"))
    other.save("alone")
    one.save("f" if older else "g")
    save, calls = model_file.save, []

    def interleaved(*given: Any, **named: Any) -> None:
        save(*given, **named)
        calls.append(given)
        if len(calls) == 2:
            one.save("f")

    monkeypatch.setattr(model_file, "save", interleaved)
    other.save("f")
    assert contents("f") == contents("alone")
    assert not [name for name in names() if name.startswith(".")]


def test_a_signal_while_the_folder_is_written_waits(
    thresher: Thresher, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> str:
        signal.raise_signal(signal.SIGTERM)
        return picture(*given)

    monkeypatch.setattr("thresher.lanes.folder.picture", interrupted)
    ran = thresher(f"{COMMAND} --json")
    assert ran.status == 130
    assert ran.err.splitlines()[-2:] == [
        "thresher: stopping after the current step",
        "thresher: interrupted; the model is saved in f",
    ]
    assert ran.json["model"] == "f"
    assert contents("f") == whole
    assert names() == NAMES


def test_a_full_disk_leaves_the_older_folder(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    assert thresher(OTHER).status == 0
    before = contents("f")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ran = thresher(f"{COMMAND} --no-cache")
    assert (ran.status, ran.err.splitlines()[-1]) == (1, "thresher: f: the disk is full")
    assert contents("f") == before
    assert names() == NAMES


def test_a_frontier_in_python_is_saved_in_the_same_way(
    thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Frontier = path("train.svm", "ft-ftrl", l1="0.1:1:3")
    found.save("f", "1se")
    before = contents("f")

    def interrupted(*given: Any) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("thresher.lanes.folder.picture", interrupted)
        with pytest.raises(KeyboardInterrupt):
            found.save("f")
    assert contents("f") == before
    assert names() == NAMES
    found.save("f")
    assert frontiers.load(Path("f")).choice == "best"
    found.save("g", state=True)
    for place, more in (("f", ""), ("g", "--state")):
        assert thresher(COMMAND.replace("-m f", f"-m h {more}")).status == 0
        assert contents("h") == contents(place)
    Path("f/notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="other files in it"):
        found.save("f")
    assert Path("f/notes.txt").read_text() == "mine"


def test_bad_lines_cannot_be_kept_in_the_folder(thresher: Thresher) -> None:
    assert thresher(OTHER).status == 0
    before = contents("f")
    ran = thresher(f"{COMMAND} --on-error quarantine=f/bad")
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert "f/bad: the whole folder f is replaced: name a file outside it" in ran.err
    assert contents("f") == before
