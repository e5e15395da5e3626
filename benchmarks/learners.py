"""Learners described by a command, trained and tested in memory on a `Split`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.tasks import Split
from thresher import train
from thresher.data import Chunk
from thresher.learning.evaluation.curves import Ranking
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.objective import Outputs

UNKNOWN = float("nan")
BATCH, SGD, VW = "LIBLINEAR, L1 logistic", "scikit-learn, SGDClassifier", "Vowpal Wabbit"


class Figures(NamedTuple):
    """Figures on the test part of a split: error (a share), non-zero weights, AUC and mean logistic loss."""

    error: float
    nonzero: int
    auc: float = UNKNOWN
    loss: float = UNKNOWN

    def badness(self, judge: str) -> float:
        """The figure to minimise."""
        return self.error if judge == "error" else 1 - self.auc


FAILED = Figures(1.0, 0, 0.0)


def mean(found: Sequence[Figures]) -> Figures:
    """Average each figure."""
    error, nonzero, area, loss = np.mean(found, axis=0).tolist()
    return Figures(error, round(nonzero), area, loss)


def figures(test: Chunk, outputs: str, margins: NDArray[Any], nonzero: int, probable: bool) -> Figures:
    """Score margins ``(n,)`` or ``(n, classes)``; the loss only if margins are log-odds (`probable`)."""
    if margins.ndim > 1:
        classes = np.argmax(margins, axis=1) + Outputs.of(outputs).low
        return Figures(float(np.mean(classes != test.labels)), nonzero)
    positive = test.labels > 0
    loss = float(np.mean(np.logaddexp(0, np.where(positive, -margins, margins)))) if probable else UNKNOWN
    area = Ranking(margins, positive, np.ones(len(margins))).auc
    return Figures(
        float(np.mean((margins > 0) != positive)), nonzero, UNKNOWN if area is None else area, loss
    )


def options(command: str) -> dict[str, str]:
    """Parse ``--rule sgd --rate constant:1`` into a dict."""
    words = command.split()
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def thresher(split: Split, command: str, passes: int) -> Figures:
    """Run ``thresher train`` with these options; each pass may take the rows in its own order."""
    outputs = split.task.outputs
    loss = "logistic" if outputs == "one" else "softmax"
    chosen: dict[str, Any] = {
        "loss": loss,
        "passes": passes,
        "order": "every" if passes > 1 else "as-is",
        **options(command),
    }
    chosen["passes"] = int(chosen["passes"])
    try:
        model = train(split.train, outputs=outputs, **chosen)
    except DivergedError:
        return FAILED
    margins = model.predict(split.test)
    if not np.isfinite(margins).all():
        return FAILED
    return figures(split.test, outputs, margins, model.nonzero, chosen["loss"] == "logistic")


def liblinear(split: Split, command: str, passes: int) -> Figures:
    """Run scikit-learn's LIBLINEAR, L1 logistic regression, to convergence; one class against the rest."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    del passes
    matrix, test = _matrices(split)
    model: Any = LogisticRegression(
        l1_ratio=1, solver="liblinear", C=float(options(command)["C"]), tol=1e-3, random_state=0
    )
    if split.task.outputs != "one":
        model = OneVsRestClassifier(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # did not converge to `tol` in its 100 rounds
        model.fit(matrix, split.train.labels)
    found = model.estimators_ if split.task.outputs != "one" else [model]
    nonzero = sum(int(np.count_nonzero(one.coef_)) for one in found)
    return figures(split.test, split.task.outputs, model.decision_function(test), nonzero, True)


def sgd(split: Split, command: str, passes: int) -> Figures:
    """Run scikit-learn's SGDClassifier, which shuffles the rows in every pass; one class against the rest."""
    from sklearn.linear_model import SGDClassifier

    matrix, test = _matrices(split)
    chosen = options(command)
    model = SGDClassifier(
        loss=chosen["loss"],
        penalty=chosen["penalty"],
        alpha=float(chosen["alpha"]),
        max_iter=passes,
        tol=None,
        random_state=0,
    )
    model.fit(matrix, split.train.labels)
    nonzero, margins = int(np.count_nonzero(model.coef_)), model.decision_function(test)
    return figures(split.test, split.task.outputs, margins, nonzero, chosen["loss"] == "log_loss")


def vw(split: Split, command: str, passes: int) -> Figures:
    """Run Vowpal Wabbit in its own process; one class against the rest."""
    outputs = Outputs.of(split.task.outputs)
    keys = int(max(split.train.keys.max(), split.test.keys.max())) + 1
    classes = outputs.high if outputs.kind == "classes" else 0
    margins, nonzero = peers.vw_learned(_vw_texts(split), command, keys, classes, passes)
    if outputs.kind == "classes":  # it predicts only the class
        margins = margins[:, np.newaxis] == np.arange(outputs.low, outputs.high + 1)
    return figures(split.test, split.task.outputs, margins, nonzero, True)


@lru_cache(maxsize=4)
def _matrices(split: Split) -> tuple[Any, Any]:
    columns = int(max(split.train.keys.max(), split.test.keys.max())) + 1
    return tuple(peers.csr(part, np.float64, columns) for part in (split.train, split.test))


@lru_cache(maxsize=4)
def _vw_texts(split: Split) -> tuple[bytes, ...]:
    return tuple(peers.vw_text(part) for part in (split.train, split.test))


Learner = Callable[[Split, str, int], Figures]
PEERS: dict[str, tuple[str, Learner]] = {
    BATCH: ("sklearn", liblinear),
    SGD: ("sklearn", sgd),
    VW: ("vowpalwabbit", vw),
}
"""name -> (the package it needs, how to run it); every other name is a rule's"""


def learner(name: str) -> Learner | None:
    """Return the learner called `name`; None for a peer that is not installed."""
    package, run = PEERS.get(name, ("thresher", thresher))
    return run if peers.installed(package) else None
