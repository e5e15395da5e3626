"""The command line in this process, in a folder of its own."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.commands import SAMPLE, own_cache
from tests.telling import notices_to
from thresher.cli.main import status_of

ROWS = gzip.decompress(SAMPLE.read_bytes()).splitlines(keepends=True)
NARROW = [b" ".join(row.split()[:5]) + b"\n" for row in ROWS[:300]]
"""The label and four features of each row"""


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Thresher:
    """Runs ``thresher ARGUMENTS``, given as one string or several."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *arguments: object) -> Ran:
        words = str(arguments[0]).split() if len(arguments) == 1 else [str(a) for a in arguments]
        self._capfd.readouterr()
        status = status_of(words)
        return Ran(status, *self._capfd.readouterr())

    def ok(self, *arguments: object) -> Ran:
        ran = self(*arguments)
        assert ran.status == 0, ran.err
        return ran

    def fails(self, command: str, status: int, words: str) -> Ran:
        ran = self(command)
        assert (ran.status, words in ran.err) == (status, True), ran
        return ran


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, with 400 rows of RCV1 in ``train.svm`` and 200 others in ``test.svm``."""
    (tmp_path / "train.svm").write_bytes(b"".join(ROWS[:400]))
    (tmp_path / "test.svm").write_bytes(b"".join(ROWS[400:600]))
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    monkeypatch.setattr("thresher.learning.training.trainer.seconds_compiling", lambda: 0.0)
    monkeypatch.chdir(tmp_path)
    with notices_to(None):  # or first runs say more
        monkeypatch.setattr("thresher.engine.compile.notices.when_compiling", lambda tell: None)
        yield tmp_path


@pytest.fixture
def narrow(folder: Path, plainly: None) -> None:
    """Half the rows with four features each, learned in plain Python: faster than a loop is compiled.

    For options with which no other test learns.
    """
    (folder / "train.svm").write_bytes(b"".join(NARROW[:200]))
    (folder / "test.svm").write_bytes(b"".join(NARROW[200:]))


@pytest.fixture
def thresher(folder: Path, capfd: pytest.CaptureFixture[str]) -> Thresher:
    return Thresher(capfd)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    place = tmp_path_factory.mktemp("trained")
    (place / "train.svm").write_bytes(b"".join(ROWS[:400]))
    assert status_of(["train", str(place / "train.svm"), "-m", str(place / "model"), "-q", "--json"]) == 0
    return (place / "model").read_bytes()


@pytest.fixture
def model(folder: Path, trained: bytes) -> Path:
    """A model of ``train.svm``."""
    (folder / "model").write_bytes(trained)
    return Path("model")
