"""The second pass: reading the binary cache, and learning from it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import loads, measure, peers, report
from benchmarks.learning import RATE, RULE
from benchmarks.measure import Sample, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import CacheWriter, open_source
from thresher.learning.model.model import Model

WHOLE = "thresher, whole process, from an existing cache"
READ, LEARN = "thresher, reading only", "thresher, reading and truncated gradient"


def cached(source: Any, folder: Path, model: Model) -> Any:
    """Learn one pass while writing the cache; return the source of the next pass."""
    writer = CacheWriter(source, folder)
    for chunk in source.chunks():
        model.learn(chunk)
        writer.write(chunk)
    found = writer.commit()
    if found is None:
        raise RuntimeError("the cache could not be written")
    return found


def one_pass(source: Any, model: Model | None) -> None:
    """Read all chunks, and learn them if there is a model."""
    for chunk in source.chunks():
        if model is not None:
            model.learn(chunk)


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    models = {LEARN: Model(RULE, rate=RATE), "thresher, reading and ftrl": Model("ftrl")}
    with TemporaryDirectory(dir=setting.loads) as folder:
        for model in models.values():
            source = cached(open_source(setting.rcv1like.train), Path(folder), model)
        contenders: dict[str, Callable[[], Sample]] = {READ: partial(timed, partial(one_pass, source, None))}
        for name, model in models.items():
            contenders[name] = partial(timed, partial(one_pass, source, model))
        contenders[WHOLE] = partial(_whole_process, setting, Path(folder))
        if peers.installed("vowpalwabbit"):
            contenders |= _vw(setting, Path(folder))
        size = source.path.stat().st_size / 1e6
        found = setting.in_turn(contenders, warm=(READ, WHOLE))
    report.times(
        f"a later pass, from the cache of {size:.0f} MB (Vowpal Wabbit: whole process)",
        found,
        LEARN,
        {"MB of text/s": setting.rcv1like.megabytes},
    )
    best = found[LEARN]
    measured = f"{best.wall:.2f} (least {best.least:.2f}, cpu {best.cpu:.2f})"
    return [Goal("second pass, seconds", "<= 0.35", measured, setting.met(best.wall <= 0.35))]


def _whole_process(setting: Setting, folder: Path) -> Sample:
    """Run ``thresher train`` with its own cache folder; the first, unmeasured run writes the cache."""
    program, chosen = shutil.which("env") or "env", f"THRESHER_CACHE_DIR={folder}"
    train = ("train", setting.rcv1like.train, "--model", folder / "model", "--rule", RULE, "--rate", RATE)
    passes = () if list((folder / "data").glob("*.arrow")) else ("--passes", "2")
    return measure.process(program, chosen, sys.executable, "-m", "thresher", *train, *passes)


def _vw(setting: Setting, folder: Path) -> dict[str, Callable[[], Sample]]:
    twin = loads.vw_text(setting.rcv1like.train)
    common = f"-d {twin} --loss_function logistic --cache_file {folder / 'vw.cache'}"
    peers.vw(f"{common} -k")
    return {
        "Vowpal Wabbit, logistic": lambda: peers.vw(common),
        "Vowpal Wabbit, FTRL": lambda: peers.vw(f"{common} --ftrl --l1 1"),
    }
