"""Default settings: thresher's and its peers', on data sets of every kind. Needs --data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers, report
from benchmarks.corpora import Corpus, Parts, corpora
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.lanes.api import train
from thresher.learning.finite import DivergedError
from thresher.learning.head import Outputs

OURS, AUTO, BATCH = "thresher", "thresher auto", "LIBLINEAR L1"
VW = {"vw": "", "vw --ftrl": "--ftrl", "vw --coin": "--coin"}
SGD = "sklearn SGD"
ONLINE = (*VW, SGD)
PASSES = (1, 5)
WORST = 1.05
GUESS = 1e-9
"""Probabilities are clipped to this distance from 0 and 1."""
F64 = NDArray[np.float64]


class Result(NamedTuple):
    """Test loss (log loss, error for several classes, or squared error) and number of non-zero weights."""

    loss: float
    nonzero: int


Rows = dict[Corpus, dict[str, Result]]


def loss_of(corpus: Corpus, margins: F64, labels: NDArray[Any]) -> float:
    """Return the mean loss of margins (n,), of predicted classes (n,) or of values (n,)."""
    if corpus.outputs == "value":
        return float(np.mean((margins - labels) ** 2))
    if corpus.outputs != "one":
        return float(np.mean(margins != labels))
    most = -math.log(GUESS)
    signed = np.clip(np.where(labels > 0, -margins, margins), -most, most)
    return float(np.mean(np.logaddexp(0, signed)))


def ours(corpus: Corpus, parts: Parts, passes: int, rule: str | None = None) -> Result:
    """Run ``thresher train`` with nothing but the loss."""
    one = {"one": ("logistic", "one"), "value": ("squared", "one")}
    loss, outputs = one.get(corpus.outputs, ("softmax", corpus.outputs))
    chosen: dict[str, Any] = {} if rule is None else {"rule": rule}
    try:
        model = train(parts[0], loss=loss, outputs=outputs, passes=passes, **chosen)
    except DivergedError:
        return Result(math.inf, 0)
    margins = np.asarray(model.predict(parts[1]), np.float64)
    if margins.ndim > 1:
        margins = np.argmax(margins, axis=1) + float(Outputs.of(outputs).low)
    return Result(loss_of(corpus, margins, parts[1].labels), model.nonzero)


class Matrices(NamedTuple):
    """Return both parts as scikit-learn takes them: raw, or each column divided by its largest magnitude."""

    train: Any
    test: Any

    @classmethod
    def of(cls, parts: Parts) -> Matrices:
        columns = int(max(part.keys.max(initial=0) for part in parts)) + 1
        return cls(*(peers.csr(part, np.float64, columns) for part in parts))

    def scaled(self) -> Matrices:
        from sklearn.preprocessing import MaxAbsScaler

        scaler = MaxAbsScaler().fit(self.train)
        return Matrices(scaler.transform(self.train), scaler.transform(self.test))


def batch(corpus: Corpus, parts: Parts, passes: int) -> Result:
    """Run LIBLINEAR with L1 and C = 1, or the Lasso with a cross-validated penalty; columns are scaled."""
    from sklearn.linear_model import LassoCV, LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    del passes
    train, test = Matrices.of(parts).scaled()
    model: Any = LogisticRegression(l1_ratio=1, solver="liblinear", C=1.0, tol=1e-3, random_state=0)
    if corpus.outputs == "value":
        model = LassoCV(cv=3, alphas=20, tol=1e-3)
    elif corpus.outputs != "one":
        model = OneVsRestClassifier(model)
    return _fitted(corpus, model, train, test, parts)


def sgd(corpus: Corpus, parts: Parts, passes: int) -> Result:
    """Run scikit-learn's SGD with its defaults, except for logistic loss if that is measured."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    kind: Any = SGDRegressor if corpus.outputs == "value" else SGDClassifier
    model = kind(max_iter=passes, tol=None, random_state=0)
    if corpus.outputs == "one":
        model.set_params(loss="log_loss")
    return _fitted(corpus, model, *Matrices.of(parts), parts)


def _fitted(corpus: Corpus, model: Any, train: Any, test: Any, parts: Parts) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # did not converge
        try:
            model.fit(train, parts[0].labels)
        except ValueError:  # non-finite weights
            return Result(math.inf, 0)
    found = getattr(model, "estimators_", [model])
    nonzero = sum(int(np.count_nonzero(one.coef_)) for one in found)
    predict = model.decision_function if corpus.outputs == "one" else model.predict
    return Result(loss_of(corpus, predict(test), parts[1].labels), nonzero)


def vw(options: str) -> Callable[[Corpus, Parts, int], Result]:
    """Run Vowpal Wabbit in its own process, one class against the rest."""

    def run(corpus: Corpus, parts: Parts, passes: int) -> Result:
        keys = int(max(part.keys.max(initial=0) for part in parts)) + 1
        loss = "squared" if corpus.outputs == "value" else "logistic"
        classes = 0 if corpus.outputs in ("one", "value") else Outputs.of(corpus.outputs).high
        texts = [peers.vw_text(part) for part in parts]
        margins, nonzero = peers.vw_learned(texts, options, keys, classes, passes, loss, bits=18)
        return Result(loss_of(corpus, margins, parts[1].labels), nonzero)

    return run


def learners() -> dict[str, Callable[[Corpus, Parts, int], Result]]:
    """Return all learners that are installed."""
    found: dict[str, Callable[[Corpus, Parts, int], Result]] = {OURS: ours, AUTO: partial(ours, rule="auto")}
    if peers.installed("sklearn"):
        found |= {BATCH: batch, SGD: sgd}
    if peers.installed("vowpalwabbit"):
        found |= {name: vw(options) for name, options in VW.items()}
    return found


def run(setting: Setting) -> list[Goal]:
    """Train, test, print and check the goals."""
    if setting.data is None:
        return []
    rows: dict[int, Rows] = {passes: {} for passes in PASSES}
    for corpus in corpora():
        if corpus.found(setting.data):
            for passes, found in _results(corpus, corpus.load(setting.data)).items():
                rows[passes][corpus] = found
    for passes in PASSES:
        _print(rows[passes], passes)
    return [reach for passes in PASSES for reach in _judged(rows[passes], passes)]


def _results(corpus: Corpus, parts: Parts) -> dict[int, dict[str, Result]]:
    """Score each learner on a set after `passes` passes; the batch learner has no passes and runs once."""
    results: dict[int, dict[str, Result]] = {}
    for passes in PASSES:
        found = results[passes] = {}
        for name, learn in learners().items():
            known = name == BATCH and passes != PASSES[0]
            found[name] = results[PASSES[0]][name] if known else learn(corpus, parts, passes)
    return results


def _print(rows: Rows, passes: int) -> None:
    names = list(next(iter(rows.values())))
    report.table(
        f"default settings, passes: {passes}; test loss @ weights (*: used for choosing constants)",
        ("", *names),
        [
            (
                corpus.name + "*" * corpus.chosen,
                *(f"{found[n].loss:.4g} @ {found[n].nonzero:,}" for n in names),
            )
            for corpus, found in rows.items()
        ],
    )


def mean_ratio(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def _judged(rows: Rows, passes: int) -> Iterable[Goal]:
    goal, weights = (0.99, 3.0) if passes == 1 else (0.97, 4.0)
    for chosen, where in ((True, "sets used for choosing"), (False, "other sets"), (None, "all sets")):
        results = [found for corpus, found in rows.items() if chosen in (None, corpus.chosen)]
        if results:
            yield _auto(results, f"passes: {passes}, {where}")
        if results and BATCH in results[0]:
            ratios = [_ratio(found, (BATCH,)) for found in results]
            sizes = mean_ratio(
                max(found[OURS].nonzero, 1) / max(found[BATCH].nonzero, 1) for found in results
            )
            said = f"{mean_ratio(ratios):.3f}, worst {max(ratios):.2f}, {sizes:.1f} x its weights"
            met = mean_ratio(ratios) <= goal and max(ratios) <= WORST and sizes <= weights
            what = f"test loss over {BATCH}'s, passes: {passes}, {where}"
            yield Goal(what, f"<= {goal}, worst <= {WORST}, <= {weights:g} x", said, met)
        online = [name for name in ONLINE if results and name in results[0]]
        if online:
            ratios = [_ratio(found, online) for found in results]
            share = float(np.mean([ratio <= 1 for ratio in ratios]))
            said = f"{mean_ratio(ratios):.3f}, no worse on {share:.0%}, worst {max(ratios):.2f}"
            what = f"over the best online default's, passes: {passes}, {where}"
            yield Goal(what, f"85 %, worst <= {WORST}", said, share >= 0.85 and max(ratios) <= WORST)


def _auto(results: list[dict[str, Result]], what: str) -> Goal:
    ratios = [(found[AUTO].loss + GUESS) / (found[OURS].loss + GUESS) for found in results]
    sizes = mean_ratio(max(found[AUTO].nonzero, 1) / max(found[OURS].nonzero, 1) for found in results)
    said = f"{mean_ratio(ratios):.3f}, worst {max(ratios):.3f}, {sizes:.1f} x its weights"
    met = mean_ratio(ratios) <= 0.97 and max(ratios) <= 1.01
    return Goal(f"test loss of auto over the default's, {what}", "<= 0.97, worst <= 1.01", said, met)


def _ratio(found: dict[str, Result], others: Iterable[str]) -> float:
    least = min(found[name].loss for name in others)
    return (found[OURS].loss + GUESS) / (least + GUESS)
