"""Law 3: stopping changes nothing.

Training killed again and again writes the same file as uninterrupted training.
"""

import bz2
import gzip
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.commands import SAMPLE, own_cache, start
from tests.data.tables import WRITERS
from tests.data.test_tables import some_rows, with_bad
from thresher.cli.main import status_of

ROWS = gzip.decompress(SAMPLE.read_bytes()).splitlines(keepends=True)


def one_file(folder: Path) -> list[str]:
    (folder / "train.svm.gz").write_bytes(gzip.compress(b"".join(ROWS[300:]), 1))
    (folder / "test.svm").write_bytes(b"".join(ROWS[:300]))
    return ["train.svm.gz"]


def three_files(folder: Path) -> list[str]:
    rows = [b"\xff no label %d\n" % k if k % 11 == 3 else row for k, row in enumerate(ROWS)]
    (folder / "a.svm").write_bytes(b"".join(rows[:700]))
    (folder / "b.svm").write_bytes(gzip.compress(b"".join(rows[700:1500]), 1))
    (folder / "c.svm").write_bytes(bz2.compress(b"".join(rows[1500:]), 1))
    return ["a.svm", "b.svm", "c.svm"]


def lists(folder: Path) -> list[str]:
    """Each story with none, some or all of three classes, and some bad lists."""
    held = [b"", b"1", b"2,3", b"1,2,3", b"3", b"4" * 9]
    rows = [held[k % 11 % 6] + b" " + row.partition(b" ")[2] for k, row in enumerate(ROWS[:800])]
    (folder / "train.svm").write_bytes(b"".join(rows))
    return ["train.svm"]


def tables(name: str) -> Callable[[Path], list[str]]:

    def write(folder: Path) -> list[str]:
        for k in range(2):
            WRITERS[name](with_bad(some_rows(900, k)), folder / f"{k}{name}")
        return [f"{k}{name}" for k in range(2)]

    return write


COLUMNS = "--weight w --numeric x,y --categorical id --on-error quarantine=bad.txt"
CASES: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "permuted every pass": (
        one_file,
        "--passes 3 --order every --holdout every-7th --rule ft-ftrl:relax=0.5",
    ),
    "lists of classes, batches": (
        lists,
        "--outputs labels:1-3 --batch 7 --passes 2 --order buffer:300 --holdout every-7th --on-error skip",
    ),
    "csv": (
        tables("data.csv"),
        f"{COLUMNS} --passes 3 --no-cache --scale standard --admit poisson:0.5,bits=16"
        " --store hashed:9,signed",
    ),
    "parquet": (tables("data.parquet"), f"{COLUMNS} --passes 3 --holdout every-7th"),
    "quarantine, three files, two passes": (three_files, "--passes 2 --on-error quarantine=bad.txt"),
}
KILLED_AGAIN = ("permuted every pass", "quarantine, three files, two passes", "parquet")
SEED = 20260101


def table(curve: Path) -> list[list[str]]:
    """The progressive table without its last column, which is a speed."""
    return [line.split("\t")[:-1] for line in curve.read_text().splitlines()]


def train(folder: Path, data: list[str], options: str, stops: Sequence[signal.Signals] = ()) -> int:
    """Train in `folder`, stopped by these signals at random moments; returns how often it was interrupted."""
    folder.mkdir()
    chance, stopped = random.Random(SEED), 0
    checkpoint = folder / "model.checkpoint"
    command = ["train", *data, "-m", "model", "--curve", "curve", *options.split()]
    often = ["--checkpoint-every", "20"]
    for how in stops:
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        process = start(*command, *often, *(["--resume"] if before else []), folder=folder)
        while process.poll() is None and (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before):
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
        if process.returncode == 0:  # it finished before
            return stopped
        assert process.returncode == (-how if how == signal.SIGKILL else 130), err
        assert not (folder / "model").exists()
        stopped += 1
    with pytest.MonkeyPatch.context() as here:  # this process need not be killed
        here.setenv("THRESHER_CACHE_DIR", str(own_cache(folder)))
        here.chdir(folder)
        assert status_of([*map(str, command), *(["--resume"] if checkpoint.exists() else [])]) == 0
    assert not checkpoint.exists()
    return stopped


@pytest.mark.parametrize("case", CASES)
def test_killed_training_ends_in_the_same_file(case: str, tmp_path: Path) -> None:
    make, options = CASES[case]
    data = [str(tmp_path / name) for name in make(tmp_path)]
    options = options.replace("test.svm", str(tmp_path / "test.svm"))
    train(tmp_path / "whole", data, options)
    kills = 2 if case in KILLED_AGAIN else 1
    assert train(tmp_path / "killed", data, options, [signal.SIGKILL] * kills) > 0
    same_outcome(tmp_path / "whole", tmp_path / "killed")


def test_interrupted_training_ends_in_the_same_file(tmp_path: Path) -> None:
    data = [str(tmp_path / name) for name in three_files(tmp_path)]
    options = "--passes 2 --holdout every-5th --on-error quarantine=bad.txt --rule rda"
    train(tmp_path / "whole", data, options)
    assert train(tmp_path / "stopped", data, options, [signal.SIGINT, signal.SIGTERM]) == 2
    same_outcome(tmp_path / "whole", tmp_path / "stopped")


def same_outcome(whole: Path, stopped: Path) -> None:
    assert (stopped / "model").read_bytes() == (whole / "model").read_bytes()
    assert table(stopped / "curve") == table(whole / "curve")
    assert sorted(p.name for p in stopped.iterdir()) == sorted(p.name for p in whole.iterdir())
    if (whole / "bad.txt").exists():
        assert (stopped / "bad.txt").read_bytes() == (whole / "bad.txt").read_bytes() != b""
