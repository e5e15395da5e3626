"""`fit` and `partial_fit` of the estimators beside SGDClassifier with L1, and what importing them costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import peers, report
from benchmarks.learning import in_memory
from benchmarks.measure import Sample, Summary, python, timed
from benchmarks.report import Reach
from benchmarks.setting import Setting

DEFAULTS, OURS = "SGDClassifier(penalty='l1')", "SparseOnlineClassifier"
ALPHA, RULE, L1, ALIKE = 1e-5, "ftrl:alpha=2,beta=0", 4.0, 3
SAME = f"{OURS}, truncated gradient"
TRUNCATED: dict[str, Any] = {
    "rule": "truncated-gradient:gravity=1e-6",
    "l1": None,
    "rate": "power:eta0=4,t0=1e5,p=0.5",
}
PASSES = 5
ROWS = 2_000
MICROSECONDS = 1e6


def _theirs(**options: Any) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss="log_loss", penalty="l1", alpha=ALPHA, random_state=0, **options)


def _ours(rule: str = RULE, l1: float | None = L1, **options: Any) -> Any:
    from thresher.sklearn import SparseOnlineClassifier

    return SparseOnlineClassifier(rule, l1=l1, random_state=0, **options)


def run(setting: Setting) -> list[Reach]:
    """Measure, print, judge."""
    if not peers.installed("sklearn"):
        print("scikit-learn is not installed: nothing to compare with")
        return []
    files = setting.rcv1like
    train, test = in_memory(files.train), in_memory(files.test)
    columns = int(max(train.keys.max(), test.keys.max())) + 1
    X, y = peers.csr(train, np.float64, columns), train.labels.astype(np.int64)
    makers: dict[str, Callable[[], Any]] = {
        f"{DEFAULTS}, defaults": _theirs,
        f"{DEFAULTS}, {PASSES} epochs": lambda: _theirs(max_iter=PASSES, tol=None),
        f"{DEFAULTS}, 1 epoch": lambda: _theirs(max_iter=1, tol=None),
        f"{OURS}, {ALIKE} passes": lambda: _ours(passes=ALIKE),
        f"{OURS}, 1 pass": lambda: _ours(passes=1),
        f"{SAME}, {PASSES} passes": lambda: _ours(**TRUNCATED, passes=PASSES),
        f"{SAME}, 1 pass": lambda: _ours(**TRUNCATED, passes=1),
        f"{SAME}, 1 pass, rows in order": lambda: _ours(**TRUNCATED, passes=1, shuffle=False),
    }
    fitted: dict[str, Any] = {}
    contenders = {name: _fit(fitted, name, make, X, y) for name, make in makers.items()}
    found = setting.in_turn(contenders, tuple(name for name in makers if name.startswith(OURS)))
    title = f"fit on CSR, float64; {len(train):,} rows, {train.nnz:,} nnz"
    report.times(title, found, f"{OURS}, {ALIKE} passes", {"ns/nnz": train.nnz})
    unseen, truth = peers.csr(test, np.float64, columns), test.labels
    for name, model in fitted.items():
        error, weights = np.mean(model.predict(unseen) != truth), np.count_nonzero(model.densify().coef_)
        print(f"{name:60} test error {error:.4f}, non-zero {weights:,}")
    return [*_judge(found), _by_row(setting, X, y), _imports(setting)]


def _fit(fitted: dict[str, Any], name: str, make: Callable[[], Any], X: Any, y: Any) -> Callable[[], Sample]:
    def sample() -> Sample:
        model = make()
        taken = timed(lambda: model.fit(X, y))
        fitted[name] = model
        return taken

    return sample


def _judge(found: dict[str, Summary]) -> list[Reach]:
    pairs = (
        ("defaults", f"{OURS}, {ALIKE} passes"),  # to the same test error
        (f"{PASSES} epochs", f"{SAME}, {PASSES} passes"),
        ("1 epoch", f"{SAME}, 1 pass"),
        ("1 epoch", f"{SAME}, 1 pass, rows in order"),
    )
    judged = []
    for theirs, ours in pairs:
        value, text = report.ratio(found, f"{DEFAULTS}, {theirs}", ours)
        judged.append(Reach(f"fit: {DEFAULTS}, {theirs} : {ours}", ">= 6", text, value >= 6))
    return judged


def _by_row(setting: Setting, X: Any, y: Any) -> Reach:
    rows, labels = [X[i : i + 1] for i in range(ROWS)], [y[i : i + 1] for i in range(ROWS)]
    found: dict[str, Summary] = {}
    for name, make in ((OURS, _ours), (DEFAULTS, _theirs)):  # in turn they would slow each other down
        model = make().partial_fit(X[:ROWS], y[:ROWS], classes=[-1, 1])
        found |= setting.in_turn({name: _learn_rows(model, rows, labels)}, (OURS,) if name == OURS else ())
    report.times(f"partial_fit row by row, {ROWS:,} rows", found, OURS, {"ns/row": ROWS})
    each = found[OURS].wall / ROWS * MICROSECONDS
    return Reach("partial_fit of one row, microseconds", "<= 25", f"{each:.1f}", each <= 25)


def _learn_rows(model: Any, rows: list[Any], labels: list[Any]) -> Callable[[], Sample]:
    def learn() -> None:
        for row, label in zip(rows, labels, strict=True):
            model.partial_fit(row, label)

    return lambda: timed(learn)


def _imports(setting: Setting) -> Reach:
    contenders = {
        module: lambda module=module: python("-c", f"import {module}")
        for module in ("sklearn.linear_model", "thresher.sklearn")
    }
    found = setting.in_turn(contenders, tuple(contenders), max(5, setting.repeat))
    report.times("import", found, "sklearn.linear_model", {})
    more = found["thresher.sklearn"].wall - found["sklearn.linear_model"].wall
    return Reach("import beyond scikit-learn's, seconds", "<= 0.3", f"{more:.2f}", more <= 0.3)
