"""Choosing the penalty for RCV1-CCAT in one `fit`: frontier estimators and scikit-learn's. Needs --data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import peers, report
from benchmarks.corpora import read
from benchmarks.measure import Sample, timed
from benchmarks.paths import INVERSE, SGD, TEST, TRAIN
from benchmarks.report import Goal
from benchmarks.setting import Setting

OURS, FEWER = "SparseFrontierClassifier", "SparseFrontierClassifier, choose='1se'"
GRID, PATH = "GridSearchCV of SGDClassifier, L1", "LogisticRegressionCV, LIBLINEAR, L1"
_RATIO = 2.0


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    data = setting.data
    if data is None or not all((data / name).exists() for name in (TRAIN, TEST)):
        return []
    if not peers.installed("sklearn"):
        print("scikit-learn is not installed: nothing to compare")
        return []
    train, test = (read(data / name, "binary") for name in (TRAIN, TEST))
    columns = 1 + int(max(train.keys.max(), test.keys.max()))
    X, Z = (peers.csr(chunk, np.float64, columns) for chunk in (train, test))
    fitted: dict[str, Any] = {}

    def fit(name: str, make: Callable[[Any], Any]) -> Callable[[], Sample]:
        def sample() -> Sample:
            model = make(_split(X, train.labels))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                taken = timed(lambda: model.fit(X, train.labels))
            fitted[name] = model
            return taken

        return sample

    times = setting.in_turn({name: fit(name, make) for name, make in _estimators().items()}, (OURS, FEWER))
    title = f"RCV1-CCAT, 17,189 rows: fit of {len(SGD)} penalties, a tenth held out, the best trained again"
    report.times(title, times, OURS, {})
    report.table(
        "the chosen model",
        ("", "test error", "weights"),
        [
            (name, f"{np.mean(one.predict(Z) != test.labels):.2%}", _weights(one))
            for name, one in fitted.items()
        ],
    )
    judged = []
    for peer in (GRID, PATH):
        ratio = times[peer].cpu / times[OURS].cpu
        what = f"fit: {peer} : {OURS}, CPU time"
        judged.append(Goal(what, f">= {_RATIO:g}", f"{ratio:.2f}", ratio >= _RATIO))
    return judged


def _split(X: Any, y: Any) -> Any:
    """Return all contenders; they hold out the same rows."""
    from sklearn.model_selection import StratifiedShuffleSplit

    return list(StratifiedShuffleSplit(1, test_size=0.1, random_state=0).split(X, y))


def _estimators() -> dict[str, Callable[[Any], Any]]:
    from sklearn.linear_model import LogisticRegressionCV, SGDClassifier
    from sklearn.model_selection import GridSearchCV

    from thresher.sklearn import SparseFrontierClassifier

    sgd = SGDClassifier(loss="log_loss", penalty="l1", random_state=0)
    liblinear = {"penalty": "l1", "solver": "liblinear", "Cs": INVERSE}
    return {
        OURS: lambda split: SparseFrontierClassifier(cv=split, random_state=0),
        FEWER: lambda split: SparseFrontierClassifier(cv=split, choose="1se", random_state=0),
        GRID: lambda split: GridSearchCV(sgd, {"alpha": SGD}, cv=split),
        PATH: lambda split: LogisticRegressionCV(cv=split, **liblinear),
    }


def _weights(model: Any) -> str:
    coef = getattr(model, "best_estimator_", model).coef_
    return f"{coef.nnz if hasattr(coef, 'nnz') else np.count_nonzero(coef):,}"
