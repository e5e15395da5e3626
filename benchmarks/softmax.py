"""Twenty classes: softmax, and scikit-learn's one against the rest. Needs --data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import peers, report
from benchmarks.measure import Sample, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from benchmarks.tasks import TASKS, Split
from thresher import api, train
from thresher.learning.model.model import Model

EPOCHS = 3
RATE = "inverse-sqrt:0.5"
RULES = {"sgd": "sgd", "fobos": "fobos:l1=1e-6", "truncated-gradient": "truncated-gradient:gravity=1e-6"}
SKLEARN = "scikit-learn, SGDClassifier, log_loss, L1"
GOAL = 10.0


def contenders(split: Split, errors: dict[str, float]) -> dict[str, Callable[[], Sample]]:
    """Return all contenders that can run here; each stores its test error in `errors`."""

    def thresher(name: str) -> Callable[[], Sample]:
        def sample() -> Sample:
            def learn() -> None:
                made.append(
                    train(
                        split.train,
                        RULES[name],
                        "softmax",
                        rate=RATE,
                        outputs=split.task.outputs,
                        passes=EPOCHS,
                    )
                )

            made: list[Model] = []
            taken = timed(learn)
            errors[name] = float(api.evaluate(made[0], split.test)["error"])
            return taken

        return sample

    found = {name: thresher(name) for name in RULES}
    if peers.installed("sklearn"):
        found[SKLEARN] = _sklearn(split, errors)
    return found


def _sklearn(split: Split, errors: dict[str, float]) -> Callable[[], Sample]:
    from sklearn.linear_model import SGDClassifier

    columns = int(max(split.train.keys.max(), split.test.keys.max())) + 1
    matrix, test = (peers.csr(part, np.float64, columns) for part in (split.train, split.test))

    def sample() -> Sample:
        model = SGDClassifier(loss="log_loss", penalty="l1", alpha=1e-6, max_iter=EPOCHS, tol=None)
        taken = timed(lambda: model.fit(matrix, split.train.labels))
        errors[SKLEARN] = float(np.mean(model.predict(test) != split.test.labels))
        return taken

    return sample


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    task = next(task for task in TASKS if task.outputs != "one")
    if setting.data is None or not task.exists(setting.data):
        return []
    split, errors = task.split(setting.data), dict[str, float]()
    found = setting.in_turn(contenders(split, errors), warm=tuple(RULES))
    nnz = split.train.nnz * EPOCHS
    report.times(
        f"{EPOCHS} passes over {task.name}, 20 classes, {len(split.train):,} rows in memory",
        found,
        "sgd",
        {"ns/nnz": nnz},
    )
    report.table(
        "their test errors", ("", "error"), [(name, f"{error:.2%}") for name, error in errors.items()]
    )
    judged = []
    for name in RULES:
        value, text = report.ratio(found, SKLEARN, name)
        judged.append(
            Goal(
                f"{SKLEARN} : softmax with {name}",
                f">= {GOAL:g}",
                text,
                value >= GOAL if value == value else None,
            )
        )
    return judged
