"""Nothing chosen: thresher and its peers with their defaults, on data sets of every kind. Needs --data."""

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
from thresher import train
from thresher.data import Chunk
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.objective import Outputs

OURS, ONE, BATCH = "thresher", "thresher, one pass", "LIBLINEAR L1"
VW = {"vw": "", "vw --ftrl": "--ftrl", "vw --coin": "--coin"}
SGD = "sklearn SGD"
PASSES = (1, 5)
"""of the online peers, which have no rule for it: the best of both counts"""
MEAN, WORST, LARGE, ABOVE, WEIGHTS, SHARE = 0.77, 1.07, 1.05, 1, 2.0, 0.92
GUESS = 1e-9
"""Probabilities are clipped to this distance from 0 and 1."""
F64 = NDArray[np.float64]


class Result(NamedTuple):
    """Test loss (log loss, error for several classes, or squared error) and number of non-zero weights."""

    loss: float
    nonzero: int


Found = dict[str, Result]
Rows = dict[Corpus, Found]
Learner = Callable[[Corpus, Parts], Result]


def loss_of(corpus: Corpus, margins: F64, labels: NDArray[Any]) -> float:
    """Return the mean loss of margins (n,), of predicted classes (n,) or of values (n,)."""
    if corpus.outputs == "value":
        return float(np.mean((margins - labels) ** 2))
    if corpus.outputs != "one":
        return float(np.mean(margins != labels))
    most = -math.log(GUESS)
    signed = np.clip(np.where(labels > 0, -margins, margins), -most, most)
    return float(np.mean(np.logaddexp(0, signed)))


def ours(corpus: Corpus, parts: Parts, **chosen: Any) -> Result:
    """Run `thresher.train` with nothing but the loss, and what is `chosen`."""
    one = {"one": ("logistic", "one"), "value": ("squared", "one")}
    loss, outputs = one.get(corpus.outputs, ("softmax", corpus.outputs))
    try:
        model = train(parts[0], loss=loss, outputs=outputs, **chosen)
    except DivergedError:
        return Result(math.inf, 0)
    return scored(corpus, model, parts[1])


def scored(corpus: Corpus, model: Model, test: Chunk) -> Result:
    """Return the test loss and the number of weights of a model."""
    margins = np.asarray(model.predict(test), np.float64)
    if margins.ndim > 1:
        margins = np.argmax(margins, axis=1) + float(Outputs.of(corpus.outputs).low)
    return Result(loss_of(corpus, margins, test.labels), model.nonzero)


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


def batch(corpus: Corpus, parts: Parts) -> Result:
    """Run LIBLINEAR with L1 and C = 1, or the Lasso with a cross-validated penalty; columns are scaled."""
    from sklearn.linear_model import LassoCV, LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    train, test = Matrices.of(parts).scaled()
    model: Any = LogisticRegression(l1_ratio=1, solver="liblinear", C=1.0, tol=1e-3, random_state=0)
    if corpus.outputs == "value":
        model = LassoCV(cv=3, alphas=20, tol=1e-3)
    elif corpus.outputs != "one":
        model = OneVsRestClassifier(model)
    return fitted(corpus, model, train, test, parts)


def sgd(passes: int, corpus: Corpus, parts: Parts) -> Result:
    """Run scikit-learn's SGD with its defaults, except for logistic loss if that is measured."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    kind: Any = SGDRegressor if corpus.outputs == "value" else SGDClassifier
    model = kind(max_iter=passes, tol=None, random_state=0)
    if corpus.outputs == "one":
        model.set_params(loss="log_loss")
    return fitted(corpus, model, *Matrices.of(parts), parts)


def fitted(corpus: Corpus, model: Any, train: Any, test: Any, parts: Parts) -> Result:
    """Fit an estimator of scikit-learn and score it; infinite loss if its weights are not finite."""
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


def vw(options: str, passes: int, corpus: Corpus, parts: Parts) -> Result:
    """Run Vowpal Wabbit in its own process, one class against the rest."""
    keys = int(max(part.keys.max(initial=0) for part in parts)) + 1
    loss = "squared" if corpus.outputs == "value" else "logistic"
    classes = 0 if corpus.outputs in ("one", "value") else Outputs.of(corpus.outputs).high
    texts = [peers.vw_text(part) for part in parts]
    margins, nonzero = peers.vw_learned(texts, options, keys, classes, passes, loss, bits=18)
    return Result(loss_of(corpus, margins, parts[1].labels), nonzero)


def learners() -> dict[str, Learner]:
    """Return thresher, and the batch learner if it is installed."""
    found: dict[str, Learner] = {
        OURS: ours,
        ONE: partial(ours, passes=1),
    }
    return found | ({BATCH: batch} if peers.installed("sklearn") else {})


def online() -> dict[str, Learner]:
    """Return the online peers that are installed, with each number of passes."""
    known: dict[str, Callable[[int, Corpus, Parts], Result]] = {}
    if peers.installed("vowpalwabbit"):
        known |= {name: partial(vw, options) for name, options in VW.items()}
    if peers.installed("sklearn"):
        known[SGD] = sgd
    return {peer_name(name, p): partial(learn, p) for name, learn in known.items() for p in PASSES}


def peer_name(name: str, passes: int) -> str:
    """Name an online peer in the tables."""
    return name if passes == 1 else f"{name}, {passes} passes"


def run(setting: Setting) -> list[Goal]:
    """Train, test, print and check the goals."""
    if setting.data is None:
        return []
    batches, peered = learners(), online()
    rows: Rows = {}
    for corpus in corpora():
        if corpus.found(setting.data):
            parts = corpus.load(setting.data)
            rows[corpus] = {name: learn(corpus, parts) for name, learn in (batches | peered).items()}
    title = "nothing chosen: test loss @ weights"
    losses(f"{title} (*: used for choosing constants)", rows, batches)
    if peered:
        losses(f"{title}, online peers", rows, peered)
    _print_ratios(rows)
    return judged(rows, list(peered))


def losses(title: str, rows: Rows, names: Iterable[str]) -> None:
    """Print a line per set."""
    shown = list(names)
    report.table(
        title,
        ("", *shown),
        [
            (
                corpus.name + "*" * corpus.chosen,
                *(f"{found[n].loss:.4g} @ {found[n].nonzero:,}" for n in shown),
            )
            for corpus, found in rows.items()
        ],
    )


def mean_ratio(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


class Ratios(NamedTuple):
    """Test losses of one learner over those of another, a set each, and the ratio of their weights."""

    losses: list[float]
    weights: float

    @classmethod
    def of(cls, results: Iterable[Found], name: str, other: str) -> Ratios:
        pairs = [(found[name], found[other]) for found in results]
        sizes = mean_ratio(max(one.nonzero, 1) / max(two.nonzero, 1) for one, two in pairs)
        return cls([over(one.loss, two.loss) for one, two in pairs], sizes)

    @property
    def mean(self) -> float:
        return mean_ratio(self.losses)

    @property
    def worst(self) -> float:
        return max(self.losses)

    @property
    def above(self) -> int:
        return sum(ratio > LARGE for ratio in self.losses)

    def __str__(self) -> str:
        return f"{self.mean:.3f}, worst {self.worst:.2f}, {self.above} above {LARGE}, {self.weights:.2f} x"


def over(loss: float, other: float) -> float:
    """Return the ratio of two losses, either of which may be 0."""
    return (loss + GUESS) / (other + GUESS)


def _parts_of(rows: Rows) -> Iterable[tuple[str, list[Found]]]:
    """Name and yield the sets used for choosing constants, the others, and all; none that is empty."""
    for chosen, where in ((True, "sets used for choosing"), (False, "other sets"), (None, "all sets")):
        results = [found for corpus, found in rows.items() if chosen in (None, corpus.chosen)]
        if results:
            yield where, results


def _print_ratios(rows: Rows) -> None:
    """Print how each way to run thresher compares with the batch learner."""
    parts = [(where, results) for where, results in _parts_of(rows) if BATCH in results[0]]
    report.table(
        f"test loss over {BATCH}'s: geometric mean, worst, sets, weights over its weights",
        ("", *(where for where, _ in parts)),
        [(name, *(str(Ratios.of(found, name, BATCH)) for _, found in parts)) for name in (OURS, ONE)],
    )


def judged(rows: Rows, peered: list[str]) -> list[Goal]:
    """Check the goals on each part of the sets; `peered` names the online peers."""
    goals = []
    for where, results in _parts_of(rows):
        if BATCH in results[0]:
            found = Ratios.of(results, OURS, BATCH)
            met = found.mean <= MEAN and found.worst <= WORST
            met = met and found.above <= ABOVE and found.weights <= WEIGHTS
            goal = f"<= {MEAN}, worst <= {WORST}, at most {ABOVE} above {LARGE}, <= {WEIGHTS:g} x"
            goals.append(Goal(f"test loss over {BATCH}'s, {where}", goal, str(found), met))
        if peered:
            goals.append(_no_worse(results, peered, where))
    return goals


def _no_worse(results: list[Found], peered: list[str], where: str) -> Goal:
    """Compare with the best online peer on each set, whichever that is."""
    ratios = [over(found[OURS].loss, min(found[name].loss for name in peered)) for found in results]
    share = float(np.mean([ratio <= 1 for ratio in ratios]))
    said = f"{mean_ratio(ratios):.3f}, no worse on {share:.0%}, worst {max(ratios):.2f}"
    met = share >= SHARE and max(ratios) <= LARGE
    what = f"over the best of {len(peered)} online defaults, {where}"
    return Goal(what, f"no worse on {SHARE:.0%}, worst <= {LARGE}", said, met)
