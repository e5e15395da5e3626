"""Law 3, at every checkpoint of a run: resuming from any of them gives the same result."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.commands import SAMPLE, own_cache
from tests.stopping import checkpoints_kept
from thresher import Model, open_source
from thresher.data.layout import AnyLayout
from thresher.data.order import make_order
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.training.passes import Passes
from thresher.learning.training.shares import LastRows
from thresher.learning.training.trainer import Outcome, Trainer, TrainingPlan

ROWS = gzip.decompress(SAMPLE.read_bytes()).splitlines(keepends=True)[:300]
EVERY, TRIED = 30, 11
"""Runs are resumed from the first two checkpoints, from every eleventh after these, and from the last one."""
POWER = "power:0.2,10,0.5"
"""A step size with which the tests of compiled rules compile the same code."""
BLOCK = 1 << 15  # about twenty rows per chunk, with bad lines between them


ONE = TrainingPlan()


@dataclass(frozen=True)
class Case:
    """How a run learns; `prepare` makes bad lines or groups in its first file."""

    plan: TrainingPlan = ONE
    model: Callable[[], Model] = Model
    on_error: str = "fail"
    cached: bool = False
    held: bool = False
    order: str = "as-is"
    grouped: bool = False


def overfit() -> Model:
    return Model("sgd", "hinge", rate="constant:9")


CASES = {
    "one pass": Case(TrainingPlan()),
    "three passes, cached": Case(
        TrainingPlan(passes=3), lambda: Model("fobos:l1=1e-4", rate=POWER, dtype="float64"), cached=True
    ),
    "every-3rd, cached": Case(TrainingPlan(passes=3, holdout_every=3), cached=True),
    "two of five, buffer": Case(TrainingPlan(passes=3, holdout_every=Fraction(5, 2)), order="buffer:17"),
    "the last, quarantine": Case(
        TrainingPlan(passes=3, holdout_every=LastRows(Fraction(1, 3))), on_error="quarantine=bad.txt"
    ),
    "groups": Case(TrainingPlan(passes=2, holdout_every=4), grouped=True),
    "early stop": Case(TrainingPlan(passes=9, holdout_every=4, patience=2), overfit),
    "early stop on a file": Case(TrainingPlan(passes=9, patience=3), overfit, held=True),
    "early stop, patience to spare": Case(TrainingPlan(passes=3, holdout_every=4, patience=9), overfit),
    "quarantine, hashed": Case(TrainingPlan(), lambda: Model("ftrl", store="hashed:9"), "quarantine=bad.txt"),
    "admission, signed, every-7th": Case(
        TrainingPlan(passes=3, holdout_every=7),
        lambda: Model("ftrl", admit="3,bits=12", store="hashed:9,signed"),
    ),
    "permuted every pass, every-3rd, quarantine": Case(
        TrainingPlan(passes=3, holdout_every=3), on_error="quarantine=bad.txt", order="every"
    ),
    "buffer, every-3rd, cached, skip": Case(
        TrainingPlan(passes=3, holdout_every=3), on_error="skip", cached=True, order="buffer:17"
    ),
    "buffer, early stop, quarantine": Case(
        TrainingPlan(passes=9, holdout_every=4, patience=2), overfit, "quarantine=bad.txt", order="buffer:999"
    ),
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_bytes(b"".join(ROWS[:90]))
    Path("b.svm.gz").write_bytes(gzip.compress(b"".join(ROWS[90:160])))
    Path("held.svm").write_bytes(b"".join(ROWS[240:280]))
    return ["a.svm", "b.svm.gz"]


def litter(data: list[str]) -> None:
    """Bad lines everywhere, sometimes whole blocks of them."""
    lines = Path(data[0]).read_bytes().splitlines(keepends=True)
    spoilt = [
        row + b"oops %d%s\n" % (k, b"!" * 90) * (800 if k % 30 == 29 else 1) for k, row in enumerate(lines)
    ]
    Path(data[0]).write_bytes(b"".join(spoilt))


def prepare(case: Case) -> None:
    if case.on_error != "fail":
        litter(["a.svm"])
    if case.grouped:
        parts = [line.partition(b" ") for line in Path("a.svm").read_bytes().splitlines()]
        rows = [b"%s qid:%d %s\n" % (part[0], k // 3, part[2]) for k, part in enumerate(parts)]
        Path("a.svm").write_bytes(b"".join(rows))


def trainer(case: Case, data: list[str], loaded: Any = None, every: int = EVERY) -> Trainer:
    layout = AnyLayout(group="qid") if case.grouped else None
    source = open_source(data, layout=layout, on_error=case.on_error, block_bytes=BLOCK, threads=2)
    model = loaded[0] if loaded else case.model()
    order = make_order(case.order, model.recipe.seed)
    passes = Passes(source, 1 if order.held else case.plan.passes, cached=case.cached)
    held = open_source("held.svm", block_bytes=BLOCK) if case.held else None
    plan = replace(case.plan, checkpoint=Path("checkpoint"), checkpoint_every=every)
    made = Trainer(model, passes.first, plan, reread=passes.later, order=order, holdout=held)
    if loaded:
        with model_file.naming_file("checkpoint"):
            made.continue_from(loaded[1])
    return made


def end(ready: Trainer) -> tuple[bytes, list[Any], Any, Any]:
    """The model file, the table without speeds, the figures, and the counts of lines."""
    outcome: Outcome = ready.run()
    model_file.save(ready.model, "model")
    timed = ("seconds", "seconds_compiling", "examples_per_second")
    figures = {k: v for k, v in outcome.figures.items() if k not in timed}, outcome.holdout
    reports = [report.as_dict() for report in outcome.reports]
    return Path("model").read_bytes(), [row[:-1] for row in outcome.table], figures, reports


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_going_on_from_any_checkpoint_ends_in_the_same_place(case: Case, data: list[str]) -> None:
    prepare(case)
    with checkpoints_kept() as taken:
        whole = end(trainer(case, data))
    bad = Path("bad.txt").read_bytes() if Path("bad.txt").exists() else b""
    assert len(taken) >= 5
    for k, content in enumerate([*taken[:2], *taken[2:-1:TRIED], taken[-1]]):
        Path("checkpoint").write_bytes(content)
        every = 10**6 if k else EVERY  # where further checkpoints are written changes nothing
        assert end(trainer(case, data, checkpoint.load(Path("checkpoint")), every)) == whole
        assert not bad or Path("bad.txt").read_bytes() == bad


def test_the_early_stops_above_do_take_an_earlier_pass(data: list[str]) -> None:
    for name in ("early stop", "early stop on a file", "early stop, patience to spare"):
        ready = trainer(CASES[name], data)
        kept = ready.run().figures["passes"]
        assert kept < ready.state.position.number <= CASES[name].plan.passes + 1


def test_a_checkpoint_is_for_its_data_hold_out_and_order_only(data: list[str]) -> None:
    case = CASES["early stop on a file"]
    trainer(case, data).save_checkpoint()
    loaded = checkpoint.load(Path("checkpoint"))
    with pytest.raises(ModelFileError, match="other data"):
        trainer(case, data[:1], loaded)
    with pytest.raises(ModelFileError, match=r"made with holdout=.held.svm.; give holdout again"):
        trainer(replace(case, held=False), data, loaded)
    with pytest.raises(ModelFileError, match=r"made with order=.as-is.; leave order out"):
        trainer(replace(case, order="once"), data, loaded)


def test_a_model_is_no_checkpoint(tmp_path: Path) -> None:
    model_file.save(Model(), tmp_path / "model")
    with pytest.raises(ModelFileError, match="a finished model, not a checkpoint"):
        checkpoint.load(tmp_path / "model")
