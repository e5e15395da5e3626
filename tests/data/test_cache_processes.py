"""The cache for later passes with several processes: many at once, and killed while writing it."""

import gzip
import os
import signal
import subprocess
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest

from tests.commands import SAMPLE, own_cache, run_code, said, start
from thresher.cli.main import status_of
from thresher.data import clear_cache

OPTIONS = ["--passes", "2", "--quiet"]
MOMENTS = {
    "a batch is half written": ("BatchWriter.write", 3),
    "the keys are widened": ("os.replace", 1),
    "the last batch is due": ("BatchWriter.finish", 1),
    "all is written and nothing synced": ("os.fsync", 1),
    "all is synced and not renamed": ("os.replace", 2),
    "the table of contents is due": ("json.dumps", 1),
}
KILLED = """
import json, os, signal, sys
from thresher.data.cache_file import BatchWriter
from thresher.data.files.content import ContentTable

owner, name = sys.argv[1].split(".")
table = {"BatchWriter": BatchWriter, "os": os, "json": json}[owner]
real, left = getattr(table, name), int(sys.argv[2])

def deadly(*given, **named):
    global left
    where = os.path.join("cache", "data")
    counts = owner != "json" or (isinstance(given[0], dict) and "hash" not in given[0])
    left -= os.path.isdir(where) and counts
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **named)

setattr(table, name, deadly)
from thresher.cli.main import run
sys.argv[1:] = sys.argv[3:]
run()
"""


ROWS = gzip.decompress(SAMPLE.read_bytes()) * 3 + b"1 18446744073709551615:1\n"
"""Several blocks, with a late key that does not fit in 32 bits."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The model without any cache."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "rows.svm").write_bytes(ROWS)
    return trained(folder, "rows.svm", "--no-cache")


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "rows.svm").write_bytes(ROWS)
    return "rows.svm"


def cached(folder: Path) -> list[str]:
    """The endings of the file names in the data cache."""
    return sorted(path.suffix for path in (own_cache(folder) / "data").iterdir())


def trained(folder: Path, data: str, *options: str) -> bytes:
    with pytest.MonkeyPatch.context() as here, redirect_stderr(StringIO()) as err:
        here.setenv("THRESHER_CACHE_DIR", str(own_cache(folder)))
        here.chdir(folder)
        status = status_of(["train", data, "-m", "model", *OPTIONS, *options])
    assert (status, said(err.getvalue().encode())) == (0, "")
    return (folder / "model").read_bytes()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_while_it_writes_the_cache_does_no_harm(
    moment: str, data: str, whole: bytes, tmp_path: Path
) -> None:
    where, nth = MOMENTS[moment]
    words = [where, str(nth), "train", data, "-m", "killed", *OPTIONS]
    status, err = run_code(KILLED, *words, folder=tmp_path)
    assert status == -signal.SIGKILL, err
    assert not (tmp_path / "killed").exists()
    assert trained(tmp_path, data) == whole
    assert ".arrow" in cached(tmp_path)
    clear_cache(own_cache(tmp_path) / "data")
    assert not [suffix for suffix in cached(tmp_path) if suffix in (".arrow", ".partial", ".narrow")]


def test_four_processes_share_one_cache(data: str, whole: bytes, tmp_path: Path) -> None:
    running = [
        start("train", data, "-m", f"model{k}", *OPTIONS, folder=tmp_path, stdout=subprocess.DEVNULL)
        for k in range(4)
    ]
    for k, process in enumerate(running):
        _, err = process.communicate(timeout=300)
        assert (process.returncode, said(err)) == (0, "")
        assert (tmp_path / f"model{k}").read_bytes() == whole
    assert cached(tmp_path).count(".arrow") == 1
    assert not [suffix for suffix in cached(tmp_path) if suffix in (".partial", ".narrow")]
    assert os.listdir(own_cache(tmp_path) / "data").count("contents.json") <= 1
