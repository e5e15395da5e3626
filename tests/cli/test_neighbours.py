"""What killed processes left beside a target is cleared by the next run; targets may vanish while checked."""

import itertools
import pathlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Thresher
from tests.commands import OLDER_MODEL
from tests.interrupts import Meanwhile
from thresher.cli import saving
from thresher.data import cache, cache_file, open_source
from thresher.data.sources import parsed
from thresher.data.sources.parsed import OnError, Quarantine
from thresher.engine import atomic
from thresher.engine.atomic import temporary_path
from thresher.learning.files import model_file
from thresher.options.option import Options
from thresher.options.training import TrainCommand
from thresher.plans import run as training
from thresher.plans.ui import Silent
from thresher.reporting import page
from thresher.reporting.page import BEGINNING

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
    ran = thresher(command)
    assert ran.status == 0, ran.err
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
    "a checkpoint": (OLDER_MODEL, lambda: training.look_at(Path("t"), Silent())),
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
        meanwhile = Meanwhile(moment, lambda: cache.clear_cache(place), _file(cache), _file(cache_file))
        with meanwhile:
            found = cache.open_cache(source, place)
        assert found is None or len(next(iter(found.chunks())))
        if not meanwhile.came:
            break
    assert found is not None
