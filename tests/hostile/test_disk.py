"""A full disk for the model, checkpoint, cache, quarantine, predictions and curve."""

import os
import shutil
from pathlib import Path

import pytest

from tests.commands import OLDER_MODEL, own_cache
from tests.hostile.conftest import SmallDisk, Tried
from tests.hostile.trials import failed, file_size, here, names_in, svmlight, thresher

BAD = b"this is no example\n" * 10_000
ROWS = 6000
_SKIP = ["-q", "--on-error", "skip"]
WRITES = {
    "model": ("m", ["train", "d.svm", "-m", "disk/m", *_SKIP]),
    "checkpoint": ("m.checkpoint", ["train", "d.svm", "-m", "disk/m", *_SKIP, "--checkpoint-every", "1000"]),
    "curve": ("c", ["train", "d.svm", "-m", "m", *_SKIP, "--curve", "disk/c", "--report-every", "5"]),
    "quarantine": ("q", ["train", "d.svm", "-m", "m", "-q", "--on-error", "quarantine=disk/q"]),
    "predictions": ("p", ["predict", "model", "d.svm", "-o", "disk/p", "--on-error", "skip"]),
    "labels": ("p", ["predict", "model", "d.svm", "-o", "disk/p", "--on-error", "skip", "--output", "label"]),
}
_OLDER = {"curve": b"examples\tloss\n", "predictions": b"0.5\n", "labels": b"1\n"}
"""What is there before: other files than those written by the same command are not overwritten"""
every_write = pytest.mark.parametrize("what", WRITES)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("model")
    svmlight(folder / "d.svm", ROWS, ROWS)
    assert here("train", "d.svm", "-m", "model", "-q", folder=folder)[0] == 0
    return (folder / "model").read_bytes()


@pytest.fixture
def data(folder: Path, model: bytes) -> Path:
    svmlight(folder / "d.svm", ROWS, ROWS)
    (folder / "model").write_bytes(model)
    with open(folder / "d.svm", "ab") as file:
        file.write(BAD)
    return folder


def spare(folder: Path, what: str) -> None:
    """It must fail with a one-line error, and leave the existing file and no other."""
    name, command = WRITES[what]
    place, before = folder / "disk", _OLDER.get(what, OLDER_MODEL)
    # a file that is not a checkpoint, or not a quarantine file, stops training before it begins
    taken = what not in ("checkpoint", "quarantine")
    if taken:
        (place / name).write_bytes(before)
    limit = None if os.path.ismount(place) else file_size(32 << 10)
    reason = "File too large" if limit else "the disk is full"
    failed(thresher(*command, folder=folder, limit=limit), name, reason)
    assert names_in(place) == [name] * (taken or what == "quarantine")
    if taken:
        assert (place / name).read_bytes() == before


@pytest.mark.parametrize("what", ["model", "checkpoint", "quarantine", "predictions"])
def test_a_file_that_may_grow_no_more(data: Path, what: str) -> None:
    (data / "disk").mkdir()
    spare(data, what)


@pytest.mark.hostile
@every_write
def test_a_disk_that_is_full(data: Path, what: str, small_disk: SmallDisk) -> None:
    small_disk(32 << 10)
    spare(data, what)


def test_a_cache_that_cannot_grow_is_done_without(folder: Path) -> None:
    svmlight(folder / "d.svm", ROWS)
    command = ["train", "d.svm", "-q", "--passes", "4", "-m"]
    assert here(*command, "whole", folder=folder)[0] == 0
    shutil.rmtree(folder / "cache" / "data")
    status, _, err = thresher(*command, "m", folder=folder, limit=file_size(32 << 10))
    assert status == 0
    assert (err.count("no cache was written: "), err.count("\n")) == (1, 1)
    assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()
    assert not list((folder / "cache" / "data").glob("*-*"))


def test_standard_output_that_takes_a_part_of_the_last_write(data: Path, tried: Tried) -> None:
    """Also unbuffered, where Python ignores partial writes."""
    predict = ["predict", "model", "d.svm", "--on-error", "skip"]
    _, out, _ = here(*predict, folder=data)
    for variables in ({"PYTHONUNBUFFERED": "1"}, {}):
        with open(data / "out", "wb") as file:
            limit = file_size(len(out) - 5000)
            ran = thresher(*predict, folder=data, limit=limit, stdout=file, world=variables)
        failed(ran, "File too large")
        assert (data / "out").stat().st_size < len(out)
    tried(2)


@pytest.mark.hostile
def test_a_disk_of_any_size(data: Path, small_disk: SmallDisk, tried: Tried) -> None:
    """Model, checkpoint, cache, quarantine and predictions are complete, or one line says why not."""
    options = ["--passes", "2", "--checkpoint-every", "5000", "--on-error", "quarantine=disk/q"]
    train = ["train", "d.svm", "-m", "disk/m", "-q", *options]
    predict = ["predict", "model", "d.svm", "-o", "disk/p", "--on-error", "skip"]
    assert thresher(*train[:3], "m", *train[4:-1], "quarantine=q", folder=data)[0] == 0
    whole = (data / "m").read_bytes()
    cache = own_cache(data)
    done = 0
    for size in range(64 << 10, 5 << 20, 256 << 10):
        shutil.rmtree(cache / "data", ignore_errors=True)
        disk = small_disk(size)
        (disk / "data").mkdir(mode=0o700)
        (cache / "data").unlink(missing_ok=True)
        (cache / "data").symlink_to(disk / "data")
        status, _, err = thresher(*train, folder=data)
        assert status in (0, 1)
        assert all(
            line.startswith(("thresher: ", "warning: ", "skipped ", "  ")) for line in err.splitlines()
        )
        if status == 0:
            assert (disk / "m").read_bytes() == whole
            assert (disk / "q").read_bytes() == BAD
        else:
            assert not (disk / "m").exists()
            assert "the disk is full" in err
        status, _, err = thresher(*predict, folder=data)
        assert (disk / "p").exists() == (status == 0)
        assert not [*disk.glob(".*"), *disk.glob("data/*.partial")]
        (cache / "data").unlink()
        done += status == 0
        tried(2)
    assert done
