"""A file under its own name is whole, whatever happens to the one who writes it."""

import errno
import os
from pathlib import Path

import pytest

from thresher.learning.wholefile import check_writable, discard, whole_file


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("before", [None, "old"])
def test_a_full_disk_leaves_what_was_there(
    before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space") as caught, whole_file(path) as file:
        file.write("new")
    assert caught.value.filename == str(path)
    assert [p.name for p in tmp_path.iterdir()] == ([] if before is None else ["file"])
    assert before is None or path.read_text() == before


def test_nothing_shows_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with whole_file(path, "wb") as file:
        file.write(b"new")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_device_is_written_to_and_stays_one() -> None:
    with whole_file("/dev/null") as file:
        file.write("gone")
    assert not Path("/dev/null").is_file()


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


def test_discard_removes_what_killed_writers_left(tmp_path: Path) -> None:
    names = ["m.checkpoint", ".m.checkpoint.0a1b2c3d.partial", ".m.0a1b2c3d.partial", "m"]
    for name in names:
        (tmp_path / name).touch()
    discard(tmp_path / "m.checkpoint")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".m.0a1b2c3d.partial", "m"]


def test_what_cannot_be_written_is_told_before(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such directory"):
        check_writable(tmp_path / "none" / "model")
    check_writable(tmp_path / "model")
    assert not (tmp_path / "model").exists()
