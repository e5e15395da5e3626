"""Files that thresher did not make are never overwritten; what killed processes left is cleared."""

import itertools
import os
import pathlib
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher as library
from tests.cli.conftest import Thresher
from tests.commands import OLDER_MODEL
from tests.interrupts import Meanwhile
from thresher.cli import saving
from thresher.data import cache, open_source
from thresher.data.cache import CacheWarning
from thresher.data.sources import parsed
from thresher.data.sources.parsed import OnError, Quarantine
from thresher.engine import atomic
from thresher.engine.atomic import temporary_path
from thresher.learning.files import model_file
from thresher.learning.training.progress import Ui
from thresher.options.option import Options
from thresher.options.training import TrainCommand
from thresher.plans import run as training
from thresher.reporting import page
from thresher.reporting.page import BEGINNING

BAD = "1 1:1\n0 2:oops\n-1 3:1\n"


@pytest.fixture
def bad(folder: Path) -> str:
    Path("bad.svm").write_text(BAD)
    return "bad.svm"


@pytest.mark.parametrize("command", ["train {} -m n", "predict m.model {}", "evaluate m.model {}"])
def test_a_foreign_file_is_not_taken_for_a_quarantine_file(
    command: str, bad: str, thresher: Thresher, model: Path
) -> None:
    shutil.copy(model, "m.model")
    Path("mine").write_text("precious")
    for data in (bad, "train.svm"):
        found = thresher(f"{command.format(data)} --on-error quarantine=mine")
        assert (found.status, Path("mine").read_text()) == (1, "precious")
        assert "mine exists and is not a quarantine file: name another file, or remove it" in found.err


def test_a_quarantine_file_is_written_anew_by_the_next_run(bad: str, thresher: Thresher) -> None:
    try:
        os.setxattr(bad, "user.test", b"")
    except (AttributeError, OSError):  # nothing tells the file of an earlier run from others here
        again = 1
    else:
        again = 0
    command = f"train {bad} -m n --on-error quarantine=q -q"
    assert thresher(command).status == 0
    assert thresher(command).status == again
    assert Path("q").read_text() == "0 2:oops\n"
    Path("q").unlink()
    Path("q").write_text("precious")
    assert thresher(command).status == 1
    assert Path("q").read_text() == "precious"


def test_a_loop_of_links_is_an_error_of_one_line(thresher: Thresher) -> None:
    os.symlink("b", "a")
    os.symlink("a", "b")
    for command in ("train a -m m", "train train.svm -m n --on-error quarantine=a"):
        found = thresher(command)
        assert (found.status, found.err.count("\n")) == (1, 1), command


def test_a_pipe_without_reader_is_not_waited_for(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "PAUSE", 0.001)
    os.mkfifo("pipe")
    assert "pipe: no process reads this pipe" in thresher("train train.svm -m pipe -q").err


def test_a_lost_cache_folder_costs_only_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is replaced by a file while the first pass writes to it."""
    cache = Path("cache").absolute()
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(cache))
    whole = library.train("train.svm", passes=2, cache=False)

    def losing(chunk: Any, note: Any) -> None:
        shutil.rmtree(cache)
        cache.touch()
        raise OSError(20, "Not a directory")

    monkeypatch.setattr("thresher.data.cache.CacheWriter.append", lambda self, file, *given: losing(*given))
    with pytest.warns(CacheWarning, match="no cache was written"):
        model = library.train("train.svm", passes=2)
    assert np.array_equal(model.weights()[1], whole.weights()[1])


def test_a_prediction_file_clears_up_after_a_killed_run(thresher: Thresher, model: Path) -> None:
    left = atomic.temporary_path(Path("p.txt").absolute())
    left.touch()
    assert thresher(f"predict {model} train.svm -o p.txt").status == 0
    assert not left.exists()


def test_what_is_saved_is_said_if_another_file_cannot_be_written(
    thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "c")

    monkeypatch.setattr("thresher.cli.output.write_curve", full)
    found = thresher("train train.svm -m m --curve c -q")
    assert found.err == "thresher: c: the disk is full; the result is saved in m\n"
    assert Path("m").exists()


WRITERS = {
    "train": ("train train.svm -m t -q --curve c --plot t.svg", ["t", "t.checkpoint", "c", "t.svg"]),
    "ensemble": ("train train.svm -m t -q --ensemble 2", ["t", "t.checkpoint"]),
    "tune": ("tune train.svm -m t -q --rules ftrl --budget 2", ["t"]),
    "cv": ("cv train.svm -m t -q --l1 1:2:2 --folds 2", ["t"]),
    "boost": ("boost train.svm -m t -q", ["t"]),
    "name": ("name model train.svm -o t", ["t"]),
    "name itself": ("name model train.svm", ["model"]),
    "path": ("path train.svm -m t --l1 1:2:2 -q --plot t.svg", ["t", "t.checkpoint", "t.svg"]),
    "choose": ("choose model 0 -m t", ["t"]),
    "report": ("report model -o t.html", ["t.html"]),
    "evaluate": ("evaluate model test.svm --plot t.svg", ["t.svg"]),
    "predict": ("predict model test.svm -o t", ["t"]),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_killed_run_left_is_cleared_by_the_next(
    writer: str, narrow: None, model: Path, thresher: Thresher
) -> None:
    command, targets = WRITERS[writer]
    for target in targets:
        temporary_path(Path(target)).write_text("half")
    thresher.ok(command)
    assert [one.name for one in Path().iterdir() if one.name.startswith(".")] == []


def _quarantined(keep: int | None) -> None:
    """Write a line as a first, or as a resumed run does."""
    file = Quarantine(Path("t"), keep)
    file.write(b"bad\n")
    file.close()


def given(**options: Any) -> Options:
    return Options(TrainCommand, options)


CHECKS: dict[str, tuple[bytes, Callable[[], object]]] = {
    "a model": (OLDER_MODEL, lambda: saving.check_targets(Path("t"), given(), [])),
    "a curve": (b"examples\t", lambda: saving.check_targets(None, given(curve=Path("t")), [])),
    "predictions": (b"0.5\n", lambda: saving.check_predictions(Path("t"), ())),
    "a report": (BEGINNING.encode(), lambda: page.check_target("t")),
    "a checkpoint": (OLDER_MODEL, lambda: training.look_at(Path("t"), Ui())),
    "rejected lines": (b"", lambda: OnError("quarantine=t", ["train.svm", "t2"])),
    "new rejected lines": (b"", lambda: _quarantined(None)),
    "more rejected lines": (b"", lambda: _quarantined(4)),
}


@pytest.mark.parametrize("kind", CHECKS)
def test_a_target_may_vanish_at_any_line_of_its_check(kind: str, folder: Path) -> None:
    content, check = CHECKS[kind]
    modules = (saving, training, page, model_file, parsed, atomic, pathlib)
    for moment in itertools.count():
        if "rejected" in kind:
            _quarantined(None)
        else:
            Path("t").write_bytes(content)
        meanwhile = Meanwhile(moment, lambda: Path("t").unlink(missing_ok=True), *map(_file, modules))
        with meanwhile:
            check()
        if not meanwhile.came:
            break
    assert moment > 5


def _file(module: object) -> str:
    return str(getattr(module, "__file__", ""))


def test_a_cache_may_vanish_while_it_is_opened(folder: Path) -> None:
    """Another process clears the cache: the text is read, and nothing is called damaged."""
    place, source = folder / "parsed", open_source("test.svm")
    for moment in itertools.count():
        writer = cache.CacheWriter(source, place)
        for chunk in source.chunks():
            writer.write(chunk)
        writer.commit()
        meanwhile = Meanwhile(moment, partial(shutil.rmtree, place), _file(cache))
        with meanwhile:
            found = cache.open_cache(source, place)
        assert found is None or len(next(iter(found.chunks())))
        if not meanwhile.came:
            break
    assert found is not None
