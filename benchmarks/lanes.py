"""Many models in one reading: eight penalties in memory and sixteen from text, compared with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from benchmarks import report
from benchmarks.learning import in_memory, slices
from benchmarks.measure import Sample, python, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import Chunk
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe

# rule -> its penalties, weakest first
PENALTIES = {
    "fobos": [1e-6 * 10 ** (k / 2) for k in range(8)],
    "ftrl": [0.05 * 2**k for k in range(8)],
    "ft-ftrl": [0.5 + 0.25 * k for k in range(8)],
}
GOALS = {"fobos": 2.5, "ftrl": 2.5}
SIXTEEN, ONE = "thresher path, 16 penalties", "thresher train, one"


def learning(chunks: Sequence[Chunk], make: Callable[[], Model | ModelSet]) -> Callable[[], Sample]:
    """Return a contender that trains a fresh learner on all chunks."""

    def learn() -> None:
        made = make()
        for chunk in chunks:
            made.learn(chunk)

    return lambda: timed(learn)


def one_and_lanes(chunks: Sequence[Chunk], rule: str) -> dict[str, Callable[[], Sample]]:
    """Return two contenders: one model of the rule, and one model per penalty."""
    recipes = [Recipe(rule, l1=penalty) for penalty in PENALTIES[rule]]
    return {
        f"{rule}, one": learning(chunks, lambda: Model(recipes[0])),
        f"{rule}, {len(recipes)} lanes": learning(chunks, lambda: ModelSet(recipes)),
    }


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    whole = in_memory(setting.rcv1like.train)
    chunks, judged = slices(whole), []
    for rule in PENALTIES:
        contenders = one_and_lanes(chunks, rule)
        one, lanes = contenders
        found = setting.in_turn(contenders, warm=list(contenders))
        report.times(
            f"{rule} in memory, growing store, {len(whole):,} rows, {whole.nnz:,} nnz",
            found,
            one,
            {"ns/nnz": whole.nnz},
        )
        value, text = report.ratio(found, lanes, one)
        if rule in GOALS:
            judged.append(Goal(f"{lanes} : one", f"<= {GOALS[rule]:g}", text, value <= GOALS[rule]))
    return [*judged, _from_text(setting)]


def _from_text(setting: Setting) -> Goal:
    path, size = setting.rcv1like.train, setting.rcv1like.megabytes
    rest = ("--rule", "ftrl", "--no-cache", "--model")

    def sixteen(folder: str) -> Sample:
        penalties = ("--l1", "0.1:10:16", "--holdout", "none")
        return python("-m", "thresher", "path", path, *penalties, *rest, mkdtemp(dir=folder) + "/path")

    with TemporaryDirectory(dir=setting.loads) as folder:
        model = Path(folder) / "model"
        contenders = {
            ONE: lambda: python("-m", "thresher", "train", path, *rest, model),
            SIXTEEN: lambda: sixteen(folder),
        }
        found = setting.in_turn(contenders, warm=list(contenders))
    report.times(f"whole process, ftrl, {size:.0f} MB of text", found, ONE, {"MB/s": size})
    value, text = report.ratio(found, SIXTEEN, ONE)
    return Goal("16 lanes from text : one model", "<= 2", text, value <= 2.0)
