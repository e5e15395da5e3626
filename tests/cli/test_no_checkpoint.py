"""A run that fails leaves no checkpoint, unless one was asked for."""

import errno
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROWS, Thresher
from tests.stopping import stopping
from thresher.learning.files import model_file

FAILING = {
    "a bad line in the middle": "train bad.svm -m m",
    "a bad line in the second file": "train train.svm bad.svm -m m --passes 2",
    "divergence": "train train.svm -m m --rule sgd --loss squared --rate constant:1e30",
    "divergence in a later pass": "train train.svm -m m --rule sgd --loss squared --rate constant:3"
    " --passes 9",
    "no hold-out file": "train train.svm -m m --holdout none.svm",
    "a bad line in the hold-out": "train train.svm -m m --holdout bad.svm",
    "names of a bad line": "train train.svm -m m --holdout bad.svm --names",
    "a path over a bad line": "path bad.svm -m f --l1 1:2:2",
    "a path judged by a bad line": "path train.svm -m f --l1 1:2:2 --holdout bad.svm",
    "cv": "cv bad.svm -m m --rule pa-i --folds 2",
    "select": "select bad.svm -m m --bags 4 --rule pa-i",
    "tune": "tune bad.svm -m m --budget 2 --rules ftrl",
    "an output that cannot be": "train train.svm -m m --curve none/curve",
}


@pytest.fixture(autouse=True)
def _bad(folder: Path) -> None:
    (folder / "bad.svm").write_bytes(b"".join([*ROWS[:300], b"oops\n", *ROWS[300:400]]))


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"cache", "train.svm", "test.svm", "bad.svm"}


@pytest.mark.parametrize("command", FAILING.values(), ids=FAILING)
def test_a_failed_run_leaves_nothing(thresher: Thresher, folder: Path, command: str) -> None:
    ran = thresher(f"{command} -q")
    assert ran.status == 1, ran.err
    assert left(folder) == set()


@pytest.mark.parametrize("command", ["train train.svm -m m -q", "path train.svm -m f --l1 1:2:2 -q"])
def test_a_full_disk_leaves_nothing(
    thresher: Thresher, folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(model_file, "write_all", full)
    thresher.fails(command, 1, "the disk is full")
    assert left(folder) == set()


def test_one_that_was_asked_for_stays(thresher: Thresher, folder: Path) -> None:
    ran = thresher("train bad.svm -m m -q --checkpoint-every 100 --no-cache --threads 1")
    assert ran.status == 1
    assert left(folder) <= {"m.checkpoint"}
    ran = thresher("train train.svm bad.svm -m m -q --checkpoint-every 100")
    assert (ran.status, left(folder)) == (1, {"m.checkpoint"})
    assert "bad.svm:301:1" in thresher("train train.svm bad.svm -m m -q --resume").err
    assert left(folder) == {"m.checkpoint"}


def test_that_of_a_signal_stays_when_the_run_that_goes_on_fails(thresher: Thresher, folder: Path) -> None:
    command = "train train.svm bad.svm -m m -q"
    with stopping():
        assert thresher(command).status == 130
    assert left(folder) == {"m.checkpoint"}
    kept = (folder / "m.checkpoint").read_bytes()
    assert thresher(f"{command} --resume").status == 1
    assert left(folder) == {"m.checkpoint"}
    assert (folder / "m.checkpoint").read_bytes() == kept
