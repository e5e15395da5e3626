"""A file with its final name is complete, whatever happens to its writer."""

import contextlib
import errno
import gc
import itertools
import os
import pathlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands import environment
from tests.interrupts import Interrupted, Meanwhile
from thresher.engine import atomic
from thresher.engine.atomic import check_writable, discard, whole_file

fcntl = pytest.importorskip("fcntl", reason="locks of files are those of Unix")


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("before", [None, "old"])
def test_a_full_disk_is_harmless(before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space") as caught, whole_file(path) as file:
        file.write("new")
    assert caught.value.filename == str(path)
    assert [p.name for p in tmp_path.iterdir()] == ([] if before is None else ["file"])
    assert before is None or path.read_text() == before


def test_a_link_keeps_pointing_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    with whole_file(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    with whole_file(tmp_path / "file"):
        pass
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_cached_file_is_private_and_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full_disk)
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o666)
    with whole_file(tmp_path / "file", cached=True) as file:
        file.write("new")
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def killed_while_writing(path: Path) -> None:
    code = f"""
import os
from thresher.engine.atomic import whole_file
with whole_file({str(path)!r}):
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], env=environment(path.parent / "c")).returncode == 9


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.is_file())


def test_discard_removes_what_killed_writers_left(tmp_path: Path) -> None:
    (tmp_path / "m.checkpoint").touch()
    killed_while_writing(tmp_path / "m.checkpoint")
    assert len(files(tmp_path)) == 2
    discard(tmp_path / "m.checkpoint")
    assert files(tmp_path) == []


@pytest.mark.parametrize("neighbour", ["m" * 50 + "-2", "m" * 50 + "-1", "m" * 50 + "-1.x"])
def test_discard_leaves_what_is_being_written(neighbour: str, tmp_path: Path) -> None:
    with whole_file(tmp_path / neighbour) as file:
        file.write("new")
        discard(tmp_path / ("m" * 50 + "-1"))
    assert (tmp_path / neighbour).read_text() == "new"


def test_discard_leaves_what_is_not_yet_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def discarding(*paths: Path) -> None:
        discard(tmp_path / "m")
        replace(*paths)

    monkeypatch.setattr(os, "replace", discarding)
    with whole_file(tmp_path / "m") as file:
        file.write("new")
    assert (tmp_path / "m").read_text() == "new"


def test_a_file_that_is_cleared_away_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock
    removed: list[Path] = []

    def late(descriptor: int, how: int) -> None:
        if not removed:
            removed.extend(tmp_path.glob(".m.*"))
            removed[0].unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with whole_file(tmp_path / "m") as file:
        file.write("new")
    assert removed
    assert (tmp_path / "m").read_text() == "new"


def test_without_locks_age_tells_what_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    killed_while_writing(tmp_path / "m")
    (left,) = files(tmp_path)
    with whole_file(tmp_path / "m") as file:
        file.write("new")
        discard(tmp_path / "m")
    assert (tmp_path / "m").read_text() == "new"
    assert files(tmp_path) == [left, "m"]
    os.utime(tmp_path / left, (0, 0))
    discard(tmp_path / "m")
    assert files(tmp_path) == []


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("\N{GRINNING FACE}" * 63)  # 252 bytes of 255
    with whole_file(path) as file:
        file.write("new")
    assert path.read_text() == "new"


def test_what_cannot_be_written_is_told_before(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such directory"):
        check_writable(tmp_path / "none" / "model")
    check_writable(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_file_is_registered_before_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal between the two would leave the file."""
    registered = list[bool]()
    opened: Any = open

    def watched(path: Path, *more: str) -> object:
        registered.append(path in atomic._unfinished and not path.exists())
        return opened(path, *more)

    monkeypatch.setattr("builtins.open", watched)
    with whole_file(tmp_path / "file") as file:
        file.write("x")
    assert registered == [True]
    assert not atomic._unfinished


def test_an_interrupt_at_any_line_leaves_nothing(tmp_path: Path) -> None:
    """Here and in `contextlib`, where a signal may arrive just as well."""
    for moment in itertools.count():
        interrupted = Interrupted(moment, atomic.__file__, contextlib.__file__)
        with interrupted, whole_file(tmp_path / "file") as file:
            file.write("x")
        gc.collect()
        left = [one.name for one in tmp_path.iterdir()]
        assert left in ([], ["file"]), moment
        if not interrupted.came:
            break
        (tmp_path / "file").unlink(missing_ok=True)
    assert left == ["file"]
    assert moment > 30


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_a_target_that_vanishes_at_any_line_is_written_anew(kind: str, tmp_path: Path) -> None:
    """Another training on the same path removes its checkpoint, or a script removes the model."""
    path = tmp_path / "file"

    def vanish() -> None:
        path.unlink(missing_ok=True)
        for reader in readers:
            os.close(reader)
        readers.clear()

    for moment in itertools.count():
        readers = list[int]()
        if kind == "file":
            path.write_text("old")
        else:
            os.mkfifo(path)
            readers.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        meanwhile = Meanwhile(moment, vanish, atomic.__file__, pathlib.__file__)
        with contextlib.suppress(BrokenPipeError), meanwhile, whole_file(path) as file:
            file.write("new")
        left = [one.name for one in tmp_path.iterdir()]
        assert left in ([], ["file"]), moment
        assert not left or not path.is_file() or path.read_text() == "new"
        came = meanwhile.came
        vanish()
        if not came:
            break
    assert moment > 20
