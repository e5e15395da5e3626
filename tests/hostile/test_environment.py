"""The environment of the program: homes, locales, umasks, users, limits, clocks."""

import os
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import environment
from tests.hostile.conftest import Tried
from tests.hostile.trials import failed, here, names_in, said, svmlight, thresher
from thresher.data import open_source
from thresher.learning.training.passes import Passes

slow = pytest.mark.hostile
_TRAIN = ["train", "d.svm", "-q", "--passes", "2", "-m"]
_NOBODY = """
import os, pwd, sys
os.environ.pop("HOME", None)
def unknown(uid):
    raise KeyError(uid)
pwd.getpwuid = unknown
import thresher.__main__
"""
_TWICE = """
import os, sys
sys.modules["scipy"] = sys.modules["yaml"] = None  # as `thresher.cli.main` does
import thresher.cli.app, thresher.learning.training.trainer
place = sys.argv.index("then")
if os.fork():
    if os.wait()[1]:
        sys.exit("the first command failed")
    del sys.argv[1 : place + 1]
else:
    del sys.argv[place:]
import thresher.__main__
"""
"""Runs the words before "then" as a command, and then those after it, with one start of Python."""


@pytest.fixture
def data(folder: Path) -> bytes:
    svmlight(folder / "d.svm", 500)
    assert here(*_TRAIN, "whole", folder=folder)[0] == 0
    return (folder / "whole").read_bytes()


def test_a_cache_of_data_that_has_no_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are read all the same, pass after pass, with one warning that no cache is written."""

    def nowhere() -> Path:
        raise FileNotFoundError(2, "no home folder")

    rows = [len(chunk) for chunk in open_source(svmlight(folder / "d.svm", 500)).chunks()]
    monkeypatch.setattr("thresher.data.cache.cache_folder", nowhere)
    passes = Passes(open_source("d.svm"), 3, cached=True)
    with pytest.warns(UserWarning, match="no cache was written: .*no home folder"):
        assert [len(chunk) for chunk in passes.first.chunks()] == rows
    for _ in range(2):
        assert [len(chunk) for chunk in passes.later().chunks()] == rows


@slow
def test_a_user_without_a_name_or_a_home(folder: Path, data: bytes) -> None:
    """What cannot be cached is computed again; here only HOME determines the cache folders."""
    known = {
        name: value
        for name, value in environment(folder).items()
        if name not in ("THRESHER_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
    }
    command = [sys.executable, "-c", _NOBODY, *_TRAIN, "m"]
    ran = subprocess.run(command, cwd=folder, env=known, capture_output=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert b"Traceback" not in ran.stderr
    assert (folder / "m").read_bytes() == data


@slow
@pytest.mark.parametrize("home", ["/nonexistent", "/proc", "/dev/null", "", "relative"])
def test_a_home_that_cannot_be_written(folder: Path, data: bytes, home: str) -> None:
    unset = ("THRESHER_CACHE_DIR", "XDG_CACHE_HOME")
    status, _, err = thresher(*_TRAIN, "m", folder=folder, unset=unset, HOME=home)
    assert status == 0, err
    assert all(line.startswith(("thresher: ", "warning: ")) for line in err.splitlines())
    assert (folder / "m").read_bytes() == data


def test_locales_zones_and_encodings(folder: Path, data: bytes, tried: Tried) -> None:
    """Non-ASCII names in an ASCII environment."""
    shutil.copy("d.svm", "dä\udcff.svm")
    for world in (
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "xx_XX.none", "LANG": "", "TZ": "Nowhere/Land", "COLUMNS": "-1", "TERM": "\x1b"},
    ):
        words = [
            *("train", "dä\udcff.svm", "-q", "--passes", "2", "-m", "mä\udcff", "then", "train"),
            *("nö\udcff.svm", "-m", "m"),
        ]
        env = environment(folder, **world)
        ran = subprocess.run([sys.executable, "-c", _TWICE, *words], cwd=folder, env=env, capture_output=True)
        failed((ran.returncode, "", said(ran.stderr)), "No such file")
        assert Path("mä\udcff").read_bytes() == data
        Path("mä\udcff").unlink()
        tried(2)


@pytest.mark.parametrize("mask", [0o000, *(pytest.param(m, marks=slow) for m in (0o022, 0o077, 0o777))])
def test_modes_of_what_is_written(folder: Path, data: bytes, mask: int) -> None:
    """Models get the mode that the umask allows; files the program learns from or runs are private."""
    shutil.rmtree(folder / "cache" / "data")
    (folder / "m").unlink(missing_ok=True)
    status, _, err = thresher(*_TRAIN, "m", folder=folder, limit=f"import os; os.umask({mask})")
    assert status == 0
    assert stat.S_IMODE((folder / "m").stat().st_mode) == 0o666 & ~mask
    if "no cache" not in err:
        assert stat.S_IMODE((folder / "cache" / "data").stat().st_mode) & 0o022 == 0
    os.chmod(folder / "m", 0o640)
    assert here(*_TRAIN, "m", folder=folder)[0] == 0
    assert stat.S_IMODE((folder / "m").stat().st_mode) == 0o640


_ORDINARY = ["unshare", "--user", "--map-user=12345", "--map-group=12345"]


@slow
def test_an_ordinary_user_who_may_not_write(folder: Path, data: bytes, tried: Tried) -> None:
    if subprocess.run([*_ORDINARY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    closed = folder / "closed"
    closed.mkdir()
    shutil.copy("d.svm", closed)
    (folder / "secret.svm").write_bytes(b"1 1:1\n")
    (folder / "secret.svm").chmod(0)
    closed.chmod(0o500)
    for command in (
        [*_TRAIN, "m"],
        [*_TRAIN, "../m", "--curve", "c"],
        [*_TRAIN, "../m", "--on-error", "quarantine=q"],
        ["predict", "../whole", "d.svm", "-o", "p"],
        ["predict", "../whole", "../secret.svm"],
    ):
        env = environment(folder)
        words = [*_ORDINARY, sys.executable, "-m", "thresher", *command]
        ran = subprocess.run(words, cwd=closed, env=env, capture_output=True, timeout=300)
        failed((ran.returncode, "", said(ran.stderr)))
        assert names_in(closed) == ["d.svm"]
        assert not (folder / "m").exists()
        tried(1)
    closed.chmod(0o700)


@slow
@pytest.mark.parametrize("megabytes", [700, 1000, 2000])
def test_little_address_space(folder: Path, data: bytes, megabytes: int) -> None:
    most = megabytes << 20
    ran = thresher(
        *_TRAIN, "m", folder=folder, limit=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most))
    )
    if ran[0]:
        failed(ran, "memory")
    else:
        assert (folder / "m").read_bytes() == data


def test_a_clock_that_goes_back(folder: Path, data: bytes, tried: Tried) -> None:
    """Files from the future, and a clock set before all of them."""
    for seconds in (10**9, -(10**9)):
        for path in (folder / "d.svm", *(folder / "cache" / "data").iterdir()):
            now = path.stat().st_mtime + seconds
            os.utime(path, (max(now, 0), max(now, 0)))
        status, _, err = here(*_TRAIN, "m", folder=folder)
        assert (status, err) == (0, "")
        assert (folder / "m").read_bytes() == data
        tried(1)
