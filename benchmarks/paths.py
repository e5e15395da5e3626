"""The frontier of RCV1-CCAT: `thresher path` and sixteen runs of each peer, with a picture. Needs --data."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import peers, report
from benchmarks.corpora import read
from benchmarks.measure import Sample, python, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import load
from thresher.data import Chunk
from thresher.drawing import Axis, Series, chart
from thresher.plans.frontier import pareto_front

TRAIN, TEST = "rcv1/rcv1_ccat_train.svm.gz", "rcv1/rcv1_ccat_test.svm.gz"
JUDGED = (100, 300, 1_000, 3_000)
BUDGETS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
COUNT = 16
VW = {"Vowpal Wabbit, one pass": 1, "Vowpal Wabbit, three passes": 3}
OURS: dict[str, tuple[str, ...]] = {"thresher path": (), "thresher path, one pass": ("--passes", "1")}
SGD = [float(alpha) for alpha in np.geomspace(1e-7, 3e-3, COUNT)]
INVERSE = [float(c) for c in np.geomspace(0.02, 50, COUNT)]
VW_L1 = [float(l1) for l1 in np.geomspace(1e-7, 3e-3, COUNT)]
PICTURE = Path(__file__).parent.parent / "build" / "rcv1.svg"
LEFT_OUT = ("SGDClassifier, one epoch",)
SHOWN = 0.25
"""the picture shows models up to this error"""
Frontier = list["Found"]


class Found(NamedTuple):
    """A model: its number of weights, and its error on the test rows."""

    nonzero: int
    error: float


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    if setting.data is None or not all((setting.data / name).exists() for name in (TRAIN, TEST)):
        return []
    found: dict[str, Frontier] = {}
    contenders = {name: _ours(name, setting.data, found) for name in OURS}
    if peers.installed("sklearn"):
        train, test = (read(setting.data / name, "binary") for name in (TRAIN, TEST))
        contenders |= _linear(train, test, found)
        if peers.installed("vowpalwabbit"):
            texts = peers.vw_text(train), peers.vw_text(test)
            contenders |= {name: _vw(name, passes, texts, found) for name, passes in VW.items()}
    times = setting.in_turn(contenders, warm=tuple(OURS))
    report.times("RCV1-CCAT, 17,189 rows: sixteen penalties", times, next(iter(OURS)), {})
    report.table(
        "lowest test error with at most the given number of weights",
        ("", *(f"{budget:,}" for budget in BUDGETS)),
        [(name, *(_shown(within(one, budget)) for budget in BUDGETS)) for name, one in found.items()],
    )
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(found), encoding="utf-8")
    print(f"picture: {PICTURE}")
    return [*(_quick(name, times[name].wall) for name in OURS), *_good(found), *best_of_all(found)]


def within(frontier: Iterable[Found], budget: int) -> float:
    """Return the lowest error of models with at most `budget` weights; infinity if there are none."""
    return min((one.error for one in frontier if one.nonzero <= budget), default=float("inf"))


def _shown(error: float) -> str:
    return f"{error:.2%}" if error < float("inf") else "-"


def _ours(name: str, data: Path, found: dict[str, Frontier]) -> Callable[[], Sample]:
    def sample() -> Sample:
        with tempfile.TemporaryDirectory() as where:
            target = Path(where) / "frontier.model"
            told: list[str | Path] = ["-q", "--holdout", data / TEST, *OURS[name]]
            taken = python("-m", "thresher", "path", data / TRAIN, "-m", target, *told)
            points = load(target).points
            found[name] = [Found(p.nonzero, p.holdout["error"]) for p in points if p.holdout]
            return taken

    return sample


def _vw(
    name: str, passes: int, texts: tuple[bytes, bytes], found: dict[str, Frontier]
) -> Callable[[], Sample]:
    """Run Vowpal Wabbit from text, one process per penalty; later passes read its cache."""

    def sample() -> Sample:
        with tempfile.TemporaryDirectory() as where:
            folder = Path(where)
            train, test = folder / "train.vw", folder / "test.vw"
            train.write_bytes(texts[0])
            test.write_bytes(texts[1])
            again = (
                f"--passes {passes} --holdout_off --cache_file {folder / 'cache'} -k" if passes > 1 else ""
            )
            scored = [peers.vw_scored(train, test, f"--l1 {l1:g} {again}", folder) for l1 in VW_L1]
        found[name] = [Found(one.nonzero, one.error) for one in scored]
        return Sample(sum(one.sample.wall for one in scored), sum(one.sample.cpu for one in scored))

    return sample


def _linear(train: Chunk, test: Chunk, found: dict[str, Frontier]) -> dict[str, Callable[[], Sample]]:
    """Run peers on the same rows in memory, excluding reading; intercepts do not count as weights."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    columns = 1 + int(max(train.keys.max(), test.keys.max()))
    X, Z = (peers.csr(chunk, np.float64, columns) for chunk in (train, test))

    def fitted(name: str, models: Callable[[], Iterable[object]]) -> Callable[[], Sample]:
        def fit() -> None:
            found[name] = []
            for model in models():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(X, train.labels)  # type: ignore[attr-defined]
                wrong = model.predict(Z) != test.labels  # type: ignore[attr-defined]
                weights = int(np.count_nonzero(model.coef_))  # type: ignore[attr-defined]
                found[name].append(Found(weights, float(wrong.mean())))

        return lambda: timed(fit)

    def sgd(epochs: int) -> Iterable[object]:
        shared = {"loss": "log_loss", "penalty": "l1", "max_iter": epochs, "tol": None, "random_state": 0}
        return (SGDClassifier(alpha=alpha, **shared) for alpha in SGD)

    def liblinear() -> Iterable[object]:
        return (LogisticRegression(l1_ratio=1.0, C=c, solver="liblinear") for c in INVERSE)

    return {
        "SGDClassifier, one epoch": fitted("SGDClassifier, one epoch", lambda: sgd(1)),
        "SGDClassifier, five epochs": fitted("SGDClassifier, five epochs", lambda: sgd(5)),
        "LIBLINEAR, L1": fitted("LIBLINEAR, L1", liblinear),
    }


def picture(found: dict[str, Frontier]) -> str:
    """Draw test error against non-zero weights: the Pareto-optimal models of each learner."""
    series = []
    for name, frontier in found.items():
        if name in LEFT_OUT:
            continue
        places = [place for place in pareto_front(frontier) if place[1] <= SHOWN]
        x, y = [x for x, _ in places], [y for _, y in places]
        series.append(Series(name, x, y, "both" if name in OURS else "dots"))
    return chart(
        "Error against number of features: RCV1, is a story of topic CCAT?",
        f"Test error of {', '.join(one.name for one in series)}; sixteen penalties each.",
        Axis("features with a weight", log=True, whole=True),
        Axis("error on 5,301 test rows", percent=True),
        series,
        height=460,
    )


def _quick(name: str, wall: float) -> Goal:
    return Goal(f"{name}, 16 penalties, whole process", "<= 2 s", f"{wall:.2f} s", wall <= 2.0)


def _good(found: dict[str, Frontier]) -> list[Goal]:
    """Compare errors at each number of weights: with SGD, and with LIBLINEAR less 0.3 points."""
    goals = []
    for peer, slack in (("SGDClassifier, one epoch", 0.0), ("LIBLINEAR, L1", 0.003)):
        for name in OURS:
            if peer not in found:
                continue
            worst = max(within(found[name], b) - within(found[peer], b) for b in BUDGETS[2:])
            what = f"{name} : {peer}, worst of {len(BUDGETS) - 2} budgets of weights"
            goals.append(Goal(what, f"<= {100 * slack:+.1f} points", f"{100 * worst:+.2f}", worst <= slack))
    return goals


def best_of_all(found: dict[str, Frontier]) -> list[Goal]:
    """Compare nothing chosen with the best of LIBLINEAR and SGD."""
    ours, others = next(iter(OURS)), [name for name in found if name not in VW and name not in OURS]
    goals = []
    for budget in JUDGED if others else ():
        least = min(within(found[name], budget) for name in others)
        error = within(found[ours], budget)
        what = f"{ours}, error with at most {budget:,} weights: the best of LIBLINEAR and SGD"
        goals.append(Goal(what, f"<= {_shown(least)}", _shown(error), error <= least))
    return goals
