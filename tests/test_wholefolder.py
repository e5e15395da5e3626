"""A folder with its final name is complete, and only our files are ever removed."""

import contextlib
import gc
import itertools
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import run_code
from tests.interrupts import Interrupted, Meanwhile
from thresher.engine import atomic
from thresher.engine.atomic import (
    check_replaceable,
    clear_abandoned,
    lock,
    remove_unfinished,
    whole_file,
    whole_folder,
)
from thresher.learning.files import folder as kinds
from thresher.learning.files.folder import FRONTIER

pytest.importorskip("fcntl", reason="locks of folders are those of Unix")

_KILLED = """
import os, sys
from pathlib import Path
from thresher.engine import atomic
from thresher.engine.atomic import whole_file

path, at, at_once = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True"
real, done = atomic.exchanged, []

def step():
    done.append(1)
    if len(done) == at:
        os._exit(9)

def exchanging(one, other):
    step()
    return at_once and real(one, other)

atomic.exchanged = exchanging
changes = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod")
sys.addaudithook(lambda event, _: event in changes and step())
with atomic.whole_folder(path, lambda name: name in ("a", "b")) as aside:
    for name in ("a", "b"):
        with whole_file(aside / name) as file:
            file.write("new")
"""
OLD, NEW = {"a": "old", "b": "old"}, {"a": "new", "b": "new"}


def ours(name: str) -> bool:
    return name in ("a", "b")


def write(path: Path, what: dict[str, str]) -> None:
    with whole_folder(path, ours) as aside:
        for name, text in what.items():
            with whole_file(aside / name) as file:
                file.write(text)


def found(path: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in path.iterdir()}


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.name != "cache")


def cannot_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system without a call that exchanges two names."""
    monkeypatch.setattr(atomic, "exchanged", lambda one, other: False)


@pytest.fixture(params=["at once", "by two renames"])
def swap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of exchanging two folders."""
    if request.param != "at once":
        cannot_exchange(monkeypatch)
    return str(request.param)


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path, swap: str) -> None:
    for what in (OLD, NEW, {"b": "newer"}):
        write(tmp_path / "f", what)
        assert found(tmp_path / "f") == what
        assert names(tmp_path) == ["f"]
    assert swap


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="two names cannot be exchanged at once")
def test_two_names_are_exchanged_at_once(tmp_path: Path) -> None:
    write(tmp_path / "f", OLD)
    write(tmp_path / "g", NEW)
    assert atomic.exchanged(tmp_path / "f", tmp_path / "g")
    assert (found(tmp_path / "f"), found(tmp_path / "g")) == (NEW, OLD)
    assert not atomic.exchanged(tmp_path / "f", tmp_path / "none")


@pytest.mark.parametrize("at_once", [True, False], ids=["at_once", "by_two_renames"])
@pytest.mark.parametrize("before", [OLD, None], ids=["older", "none"])
def test_a_kill_at_any_step_leaves_one_or_the_other(
    before: dict[str, str] | None, at_once: bool, tmp_path: Path
) -> None:
    """The next process finds it, cleans up, and can write it again."""
    path, gaps = tmp_path / "f", 0
    for at in itertools.count(1):
        if before:
            write(path, before)
        status, err = run_code(_KILLED, str(path), str(at), str(at_once), folder=tmp_path)
        if status == 0:
            break
        assert status == 9, err
        gaps += before is not None and not path.exists()
        assert not path.exists() or found(path) in (before, NEW)
        clear_abandoned(path, ours)
        assert names(tmp_path) == (["f"] if path.exists() else [])
        assert path.exists() or before is None
        check_replaceable(path, ours)
        write(path, NEW)
        assert found(path) == NEW
        for name in found(path):
            (path / name).unlink()
        path.rmdir()
    assert at > 4
    assert gaps == (before is not None and not at_once)  # between the two renames, if there are two


def test_writers_side_by_side_leave_the_folder_of_one(tmp_path: Path, swap: str) -> None:
    for before in (None, OLD):
        path = tmp_path / f"{swap}-{before is None}"
        if before:
            write(path, before)
        with whole_folder(path, ours) as aside:
            (aside / "a").write_text("first")
            write(path, NEW)
            assert found(path) == NEW
            assert found(aside) == {"a": "first"}
        assert found(path) == {"a": "first"}
    assert len(names(tmp_path)) == 2


def test_others_take_the_name_between_two_steps(
    tmp_path: Path, swap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, left = os.rename, [NEW, OLD, NEW]

    def late(aside: Path, target: Path) -> None:
        if left and aside.suffix == ".partial":
            (tmp_path / "f").mkdir(exist_ok=True)
            for name, text in left.pop().items():
                (tmp_path / "f" / name).write_text(text)
        rename(aside, target)

    monkeypatch.setattr(os, "rename", late)
    write(tmp_path / "f", {"a": "last"})
    assert len(left) == (2 if swap == "at once" else 0)
    assert (found(tmp_path / "f"), names(tmp_path)) == ({"a": "last"}, ["f"])


def test_a_folder_that_is_cleared_away_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, removed = os.open, list[Path]()

    def before_locking(descriptor: int) -> bool | None:
        if len(removed) == 1:
            removed.extend(tmp_path.glob(".f.*"))
            removed[-1].rmdir()
        return lock(descriptor)

    def before_opening(path: Path, *more: int) -> int:
        if not removed and ".f." in str(path):
            removed.append(path)
            path.rmdir()
        return opened(path, *more)

    monkeypatch.setattr("thresher.engine.atomic.lock", before_locking)
    monkeypatch.setattr(os, "open", before_opening)
    with whole_folder(tmp_path / "f", ours) as aside:
        (aside / "a").write_text("new")
    assert len(removed) == 2
    assert (found(tmp_path / "f"), names(tmp_path)) == ({"a": "new"}, ["f"])


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_what_was_there(
    failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise type(failure)(*failure.args)

    for before in (None, OLD):
        path = tmp_path / f"f{before is None}"
        if before:
            write(path, before)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing)
            with pytest.raises(type(failure)) as caught:
                write(path, NEW)
        assert getattr(caught.value, "filename", str(path)) == str(path)
        assert found(path) == before if before else not path.exists()
    assert names(tmp_path) == ["fFalse"]


def test_an_old_folder_comes_back_when_the_new_one_cannot_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "f", OLD)
    rename, told = os.rename, []

    def failing(one: Path, other: Path) -> None:
        told.append(other.name)
        if len(told) == 3:  # the old one has been moved away
            raise PermissionError(13, "Permission denied", str(one))
        rename(one, other)

    cannot_exchange(monkeypatch)
    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(PermissionError) as caught:
        write(tmp_path / "f", NEW)
    assert caught.value.filename == str(tmp_path / "f")
    assert (found(tmp_path / "f"), names(tmp_path)) == (OLD, ["f"])


def test_what_is_being_written_is_not_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with whole_folder(tmp_path / "f", ours) as aside:
        (aside / "a").write_text("new")
        clear_abandoned(tmp_path / "f", ours)
        assert found(aside) == {"a": "new"}
    clear_abandoned(tmp_path / "f", ours)
    assert names(tmp_path) == ["f"]


def test_a_process_that_ends_at_once_removes_what_it_was_writing(tmp_path: Path) -> None:
    write(tmp_path / "f", OLD)

    def ending() -> None:
        with whole_folder(tmp_path / "f", ours) as aside:
            (aside / "a").write_text("new")
            remove_unfinished()
            assert names(tmp_path) == ["f"]

    with pytest.raises(FileNotFoundError):
        ending()
    assert (found(tmp_path / "f"), names(tmp_path)) == (OLD, ["f"])


def test_other_things_are_never_removed(tmp_path: Path, swap: str) -> None:
    path = tmp_path / swap
    write(path, OLD)

    def meanwhile() -> None:
        with whole_folder(path, ours) as aside:
            (aside / "a").write_text("new")
            (path / "notes").write_text("mine")

    with pytest.raises(FileExistsError, match=r"other files in it \(notes\)") as caught:
        meanwhile()
    assert caught.value.filename == str(path)
    assert found(path) == {**OLD, "notes": "mine"}
    assert names(tmp_path) == [swap]


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_name_of_ours_does_not_make_it_our_file(kind: str, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "mine").write_text("mine")
    if kind == "folder":
        (tmp_path / "f" / "a").mkdir()
    else:
        (tmp_path / "f" / "a").symlink_to("../mine")
    with pytest.raises(FileExistsError, match=r"\(a\)"):
        check_replaceable(tmp_path / "f", ours)


def test_what_cannot_be_replaced_is_told_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is a file; give a folder"):
        check_replaceable(tmp_path / "file", ours)
    with pytest.raises(FileNotFoundError, match="no such directory"):
        check_replaceable(tmp_path / "none" / "f", ours)
    (tmp_path / "f").mkdir()
    check_replaceable(tmp_path / "f", ours)
    monkeypatch.chdir(tmp_path / "f")
    with pytest.raises(OSError, match="name a folder inside it"):
        check_replaceable(Path(), ours)


def test_a_link_keeps_pointing_and_permissions_stay(tmp_path: Path, swap: str) -> None:
    write(tmp_path / "real", OLD)
    (tmp_path / "real").chmod(0o750)
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", NEW)
    assert swap
    assert (tmp_path / "link").is_symlink()
    assert found(tmp_path / "real") == NEW
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o750
    (tmp_path / "plain").mkdir()
    write(tmp_path / "fresh", NEW)
    assert (tmp_path / "fresh").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_folder_that_vanishes_at_any_line_is_written_anew(how: str, tmp_path: Path, swap: str) -> None:
    """A script removes the folder, or another run replaces it, while this run checks and saves it."""
    path, kind = tmp_path / "f", FRONTIER
    files = {kind.table: "{}", kind.picture or "": "<svg/>"}

    def fill(folder: Path, mark: str) -> None:
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text + mark)

    def change() -> None:
        if not path.exists():  # between two renames
            return
        os.rename(path, tmp_path / "old")
        if how == "replaced":
            fill(tmp_path / "theirs", "theirs")
            os.rename(tmp_path / "theirs", path)
        shutil.rmtree(tmp_path / "old")

    for moment in itertools.count():
        fill(path, "old")
        meanwhile = Meanwhile(moment, change, kinds.__file__, atomic.__file__)
        with meanwhile:
            kind.check(path)
            with kind.written(path) as aside:
                fill(aside, "new")
        left = names(tmp_path)
        assert left in ([], ["f"]), moment
        assert not left or set(found(path)) == set(files)
        if not meanwhile.came:
            break
        shutil.rmtree(path, ignore_errors=True)
    assert swap
    assert found(path) == {name: text + "new" for name, text in files.items()}
    assert moment > 60


def test_an_interrupt_at_any_line_leaves_nothing(tmp_path: Path) -> None:
    for moment in itertools.count():
        interrupted = Interrupted(moment, atomic.__file__, contextlib.__file__)
        with interrupted, whole_folder(tmp_path / "folder", ours) as aside:
            (aside / "a").write_text("new")
        gc.collect()
        left = [one.name for one in tmp_path.iterdir()]
        assert left in ([], ["folder"]), moment
        if not interrupted.came:
            break
        shutil.rmtree(tmp_path / "folder", ignore_errors=True)
    assert left == ["folder"]
    assert moment > 30
