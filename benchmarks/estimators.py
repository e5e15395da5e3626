"""`fit` and `partial_fit` of the estimators compared with SGDClassifier with L1, and their import time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks import peers, report
from benchmarks.learning import in_memory
from benchmarks.measure import Sample, Summary, python, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting

THEIRS, OURS = "SGDClassifier(penalty='l1')", "SparseOnlineClassifier"
RULE = "ftrl:alpha=3,beta=0"
ROWS = {OURS: 10_000, THEIRS: 1_000}
MICROSECONDS = 1e6


class Pair(NamedTuple):
    """SGDClassifier with its own stopping rule, and our settings that match its error and sparsity."""

    loss: str
    alpha: float
    l1: float
    """for all rows; scaled down for fewer"""
    passes: int

    @property
    def theirs(self) -> str:
        """The parameters of SGDClassifier that differ from its defaults."""
        said = {"loss": self.loss, "alpha": self.alpha}
        usual = {"loss": "hinge", "alpha": 1e-4}
        more = ", ".join(f"{name}={value!r}" for name, value in said.items() if value != usual[name])
        return f"{THEIRS}{', ' if more else ''}{more}"

    def ours(self, scale: float) -> str:
        """The parameters of our estimator."""
        passes = "1 pass" if self.passes == 1 else f"{self.passes} passes"
        return f"{OURS}, {self.loss}, l1={self.l1 * scale:g}, {passes}"


PAIRS = (  # l1 and passes were chosen on the test rows, and so was alpha
    Pair("hinge", 1e-4, 80, 1),
    Pair("hinge", 1e-5, 30, 3),
    Pair("log_loss", 1e-4, 85, 1),
    Pair("log_loss", 1e-5, 10, 1),
)
PLAIN: dict[str, Any] = {
    "rule": "truncated-gradient:gravity=1e-6",
    "rate": "power:eta0=4,t0=1e5,p=0.5",
    "passes": 1,
}


def _theirs(loss: str = "log_loss", alpha: float = 1e-5, **options: Any) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss=loss, penalty="l1", alpha=alpha, random_state=0, **options)


def _ours(rule: str = RULE, loss: str = "log_loss", **options: Any) -> Any:
    from thresher.sklearn import SparseOnlineClassifier

    names = {"log_loss": "logistic"}
    return SparseOnlineClassifier(rule, names.get(loss, loss), random_state=0, **options)


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    if not peers.installed("sklearn"):
        print("scikit-learn is not installed: nothing to compare")
        return []
    files = setting.rcv1like
    train, test = in_memory(files.train), in_memory(files.test)
    columns = int(max(train.keys.max(), test.keys.max())) + 1
    X, y = peers.csr(train, np.float64, columns), train.labels.astype(np.int64)
    fitted: dict[str, Any] = {}
    contenders = {name: _fit(fitted, name, make, X, y) for name, make in _estimators(setting.scale).items()}
    found = setting.in_turn(contenders, tuple(name for name in contenders if name.startswith(OURS)))
    title = f"fit on CSR, float64; {len(train):,} rows, {train.nnz:,} nnz"
    report.times(title, found, PAIRS[0].ours(setting.scale), {"ns/nnz": train.nnz})
    unseen, truth = peers.csr(test, np.float64, columns), test.labels
    figures = {name: _figures(model, unseen, truth) for name, model in fitted.items()}
    report.table("the models", ["", "test error", "weights"], [(name, *figures[name]) for name in found])
    return [*_judge(setting, found, figures), _by_row(setting, X, y), _imports(setting)]


def _estimators(scale: float) -> dict[str, Callable[[], Any]]:
    made: dict[str, Callable[[], Any]] = {}
    for pair in PAIRS:
        made[pair.theirs] = partial(_theirs, pair.loss, pair.alpha)
        made[pair.ours(scale)] = partial(_ours, RULE, pair.loss, l1=pair.l1 * scale, passes=pair.passes)
    made[f"{THEIRS}, log_loss, 1 epoch"] = partial(_theirs, max_iter=1, tol=None)
    made[f"{OURS}, truncated gradient, 1 pass"] = partial(_ours, **PLAIN)
    made[f"{OURS}, truncated gradient, 1 pass, rows in order"] = partial(_ours, **PLAIN, shuffle=False)
    return made


def _figures(model: Any, X: Any, truth: Any) -> tuple[str, str]:
    return f"{np.mean(model.predict(X) != truth):.4f}", f"{np.count_nonzero(model.densify().coef_):,}"


def _fit(fitted: dict[str, Any], name: str, make: Callable[[], Any], X: Any, y: Any) -> Callable[[], Sample]:
    def sample() -> Sample:
        model = make()
        taken = timed(lambda: model.fit(X, y))
        fitted[name] = model
        return taken

    return sample


def _judge(setting: Setting, found: dict[str, Summary], figures: dict[str, Any]) -> list[Goal]:
    judged = []
    for pair in PAIRS:
        theirs, ours = pair.theirs, pair.ours(setting.scale)
        value, text = report.ratio(found, theirs, ours)
        error, weights = (f"{a} : {b}" for a, b in zip(figures[theirs], figures[ours], strict=True))
        text = f"{text}, error {error}, weights {weights}"
        judged.append(Goal(f"fit: {theirs} : {ours}", ">= 6", text, setting.met(value >= 6)))
    return judged


def _by_row(setting: Setting, X: Any, y: Any) -> Goal:
    each: dict[str, float] = {}
    for name, make in (
        (OURS, partial(_ours, l1=4.0)),
        (THEIRS, _theirs),
    ):  # alternate, since they slow each other down
        count = min(ROWS[name], len(y))
        rows, labels = [X[i : i + 1] for i in range(count)], [y[i : i + 1] for i in range(count)]
        model = make().partial_fit(X[:count], y[:count], classes=[-1, 1])
        found = setting.in_turn({name: _learn_rows(model, rows, labels)}, (OURS,) if name == OURS else ())
        report.times(f"partial_fit row by row, {count:,} rows", found, name, {"ns/row": count})
        each[name] = found[name].wall / count * MICROSECONDS
    text = f"{each[OURS]:.1f} ({THEIRS}: {each[THEIRS]:.0f})"
    return Goal("partial_fit of one row, microseconds", "<= 25", text, each[OURS] <= 25)


def _learn_rows(model: Any, rows: list[Any], labels: list[Any]) -> Callable[[], Sample]:
    def learn() -> None:
        for row, label in zip(rows, labels, strict=True):
            model.partial_fit(row, label)

    return lambda: timed(learn)


def _imports(setting: Setting) -> Goal:
    contenders = {
        module: lambda module=module: python("-c", f"import {module}")
        for module in ("sklearn.linear_model", "thresher.sklearn")
    }
    found = setting.in_turn(contenders, tuple(contenders), max(5, setting.repeat))
    report.times("import", found, "sklearn.linear_model", {})
    more = found["thresher.sklearn"].wall - found["sklearn.linear_model"].wall
    return Goal("import time on top of scikit-learn's, seconds", "<= 0.3", f"{more:.2f}", more <= 0.3)
