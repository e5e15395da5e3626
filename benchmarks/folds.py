"""Cross-validation on RCV1-CCAT: ten folds of sixteen penalties, one run, and SGD. Needs --data."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import peers, report
from benchmarks.corpora import read
from benchmarks.measure import Sample, python, timed
from benchmarks.paths import SGD, TEST, TRAIN
from benchmarks.report import Goal
from benchmarks.setting import Setting

FOLDS = 10
ONE, MANY, FINAL = "thresher train", "thresher cv", "thresher cv -m"
PEER = "GridSearchCV of SGDClassifier, one epoch"
_RATIO = 10.0


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    if setting.data is None or not all((setting.data / name).exists() for name in (TRAIN, TEST)):
        return []
    errors: dict[str, tuple[float, float]] = {}
    contenders: dict[str, Callable[[], Sample]] = {
        ONE: lambda: _ours(setting.data, "train", True),
        MANY: lambda: _ours(setting.data, "cv", False),
        FINAL: lambda: _ours(setting.data, "cv", True, errors),
    }
    if peers.installed("sklearn"):
        contenders[PEER] = _sgd(setting.data, errors)
    times = setting.in_turn(contenders, warm=(ONE, FINAL))
    report.times(f"RCV1-CCAT, 17,189 rows: {FOLDS} folds of {len(SGD)} penalties", times, ONE, {})
    rows = [(name, *(f"{error:.2%}" for error in found)) for name, found in errors.items()]
    report.table("error of the chosen model", ("", "across the folds", "on the test rows"), rows)
    ratio = times[MANY].wall / times[ONE].wall
    what = f"{FOLDS} folds of {len(SGD)} penalties : one run, whole processes"
    return [Goal(what, f"<= {_RATIO:g}", f"{ratio:.2f}", ratio <= _RATIO)]


def _ours(
    data: Path | None, command: str, written: bool, errors: dict[str, tuple[float, float]] | None = None
) -> Sample:
    """Run a command on the file, with or without writing the model."""
    assert data is not None
    with tempfile.TemporaryDirectory() as where:
        model = Path(where) / "model"
        target: list[str | Path] = ["-m", model] if written else []
        taken = python("-m", "thresher", command, data / TRAIN, *target, "-q", "--json")
        if errors is not None:
            found = json.loads(taken.output)
            judged = python("-m", "thresher", "evaluate", model, data / TEST, "--json")
            estimate = found["lanes"][found["chosen"]]["error"]
            errors[FINAL] = estimate, json.loads(judged.output)["error"]
        return taken


def _sgd(data: Path, errors: dict[str, tuple[float, float]]) -> Callable[[], Sample]:
    """Run the peer on the same rows in memory, excluding reading."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.model_selection import GridSearchCV

    train, test = (read(data / name, "binary") for name in (TRAIN, TEST))
    columns = 1 + int(max(train.keys.max(), test.keys.max()))
    X, Z = (peers.csr(chunk, np.float64, columns) for chunk in (train, test))

    def fit() -> None:
        model = SGDClassifier(loss="log_loss", penalty="l1", max_iter=1, tol=None, random_state=0)
        search = GridSearchCV(model, {"alpha": SGD}, scoring="accuracy", cv=FOLDS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(X, train.labels)
        wrong = float((search.predict(Z) != test.labels).mean())
        errors[PEER] = 1.0 - float(search.best_score_), wrong

    return lambda: timed(fit)
