"""Processes killed during a write, at a chosen call: resuming leads to exactly the same model."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.commands import run, start
from tests.hostile.conftest import Tried
from tests.hostile.trials import here, names_in, svmlight

_KILLER = """
import os, signal, sys
place, at, when = sys.argv.pop(1), int(sys.argv.pop(1)), sys.argv.pop(1)
if place == "batch":
    from thresher.data import cache as module
    owner, name = module.CacheWriter, "append"
else:
    owner, name = os, place
whole, calls = getattr(owner, name), []
def killing(*words, **more):
    calls.append(1)
    if len(calls) == at and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    found = whole(*words, **more)
    if len(calls) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
setattr(owner, name, killing)
import thresher.__main__
"""
_TRAIN = ["train", "d.svm", "-m", "m", "-q", "--passes", "3", "--checkpoint-every", "700"]
_LONGER = [*_TRAIN[:-1], "20000"]
SAMPLE = [("replace", 2, "before"), ("batch", 1, "after")]
ALL = [
    (place, at, when)
    for place, most in (("replace", 11), ("fsync", 11), ("batch", 3))
    for at in range(1, most + 1)
    for when in ("before", "after")
]


def killed(folder: Path, place: str, at: int, when: str) -> bool:
    """Whether the kill ended the training; otherwise it finished before."""
    status, _, err = run(place, at, when, *_TRAIN, folder=folder, code=_KILLER)
    assert status in (0, -signal.SIGKILL), err
    return status != 0


def gone_on(folder: Path, train: list[str] = _TRAIN) -> bytes:
    """The model that the same command gives, resumed if there is a checkpoint."""
    resume = ["--resume"] if (folder / "m.checkpoint").exists() else []
    status, _, err = here(*train, *resume, folder=folder)
    assert (status, err) == (0, "")
    return (folder / "m").read_bytes()


def sweep(folder: Path, places: list[tuple[str, int, str]], tried: Tried) -> int:
    svmlight(folder / "d.svm", 2500)
    whole = here(*_TRAIN, folder=folder)
    assert whole[0] == 0
    model = (folder / "m").read_bytes()
    data, died = folder / "cache" / "data", 0
    for place, at, when in places:
        for left in (folder / "m", *data.iterdir()):
            left.unlink()
        if not killed(folder, place, at, when):
            continue
        died += 1
        assert gone_on(folder) == model, (place, at, when)
        assert [name for name in names_in(folder) if "checkpoint" in name] == [], (place, at, when)
        assert all(cache.suffix != ".rows" or cache.stat().st_size for cache in data.iterdir())
    tried(died)
    return died


def test_a_kill_inside_of_a_write_costs_nothing(folder: Path, tried: Tried) -> None:
    assert sweep(folder, SAMPLE, tried) == len(SAMPLE)


@pytest.mark.hostile
def test_a_kill_inside_of_any_write_costs_nothing(folder: Path, tried: Tried) -> None:
    assert sweep(folder, ALL, tried) >= 20


def test_what_a_killed_writer_of_a_cache_left_goes_after_a_day(folder: Path) -> None:
    svmlight(folder / "d.svm", 2500)
    assert killed(folder, "batch", 1, "after")
    (left,) = (folder / "cache" / "data").glob("*.partial")
    assert gone_on(folder)
    assert left.exists()  # its writer might still be alive
    yesterday = time.time() - 25 * 3600
    os.utime(left, (yesterday, yesterday))
    svmlight(folder / "d.svm", 2600)
    for checkpoint in folder.glob("*.checkpoint"):
        checkpoint.unlink()
    assert gone_on(folder)
    assert not left.exists()


@pytest.mark.hostile
def test_a_kill_at_any_time_costs_nothing(folder: Path, tried: Tried) -> None:
    """Later and later, until the training finishes before the kill."""
    svmlight(folder / "d.svm", 100_000, 100_000)
    started = time.monotonic()
    assert here(*_LONGER, folder=folder)[0] == 0
    span, model = time.monotonic() - started, (folder / "m").read_bytes()
    for step in range(20):
        for left in (folder / "m", *(folder / "cache" / "data").iterdir()):
            left.unlink(missing_ok=True)
        with start(*_LONGER, folder=folder) as process:
            time.sleep(span * step / 20)
            process.kill()
        (folder / "m").unlink(missing_ok=True)
        assert gone_on(folder, _LONGER) == model
        tried(1)
