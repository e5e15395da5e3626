"""Dense recursions for many outputs and for steps on many examples: what the lazy loops must equal.

Each output has an oracle of its own (tests/oracles.py), fed with its own slope of the joint loss; grouped
rules have one for the whole matrix of weights. A step is taken on the summed gradient of a batch
(Daumé, A Course in Machine Learning (2012), Algorithm 33).
"""

from typing import Any, NamedTuple

import numpy as np

from tests.oracle_base import Vector, from_origin, spread
from tests.oracles import ORACLES
from tests.oracles_projection import threshold_of
from thresher.learning.model.objective import Objective


class Trace(NamedTuple):
    """After one pass: weights (d, outputs), intercepts (outputs,), progressive loss of each row."""

    weights: Vector
    intercepts: Vector
    losses: Vector


def prox_l2(v: Vector, a: float) -> Vector:
    """Argmin ½‖w − v‖² + a‖w‖₂."""
    norm = float(np.linalg.norm(v))
    return v * (1 - a / norm) if norm > a else np.zeros_like(v)


def prox_linf(v: Vector, a: float) -> Vector:
    """Argmin ½‖w − v‖² + a‖w‖_∞: cut off at c with Σ(|v| − c)₊ = a."""
    sizes = np.abs(v)
    if sizes.sum() <= a:
        return np.zeros_like(v)
    cap = threshold_of(sizes, a)
    return np.clip(v, -cap, cap)


PROX = {"L2": prox_l2, "Linf": prox_linf}
DUAL = {"L2": 2, "Linf": 1}


class GroupedFobos:
    """Each feature's row: prox of ηλ₁‖·‖ of W − ηG, over 1 + ηλ₂ (Duchi and Singer 2009, section 5 and 6)."""

    def __init__(self, rule: Any, shape: tuple[int, int]) -> None:
        self.rule, self.prox = rule, PROX[type(rule.group).__name__]

    def step(self, W: Vector, G: Vector, t: int) -> Vector:
        eta = self.rule.rate.at(t)
        moved = W - eta * G
        pulled: Vector = np.array([self.prox(row, eta * self.rule.l1) for row in moved])
        return pulled / (1 + float(eta * self.rule.l2))


class GroupedAdagradFobos:
    """The same with η/a_j for η, a_j = δ + √(sum of the squared gradients of feature j for all outputs)."""

    def __init__(self, rule: Any, shape: tuple[int, int]) -> None:
        self.rule, self.prox = rule, PROX[type(rule.group).__name__]
        self.squares = np.zeros(shape[0])

    def step(self, W: Vector, G: Vector, t: int) -> Vector:
        self.squares += (G**2).sum(axis=1)
        out = np.zeros_like(W)
        for j, square in enumerate(self.squares):
            a = self.rule.delta + np.sqrt(square)
            scale = self.rule.eta / a if a > 0 else 0.0
            out[j] = self.prox(W[j] - scale * G[j], scale * self.rule.l1) / (1 + scale * self.rule.l2)
        return out


class Threshold:
    """The prox of ‖·‖ on the -zκ of a feature's outputs, as strong as the dual norm of their thresholds."""

    def __init__(self, name: str, rule: Any, shape: tuple[int, int], features: int) -> None:
        self.apart = Apart(name, rule, shape, features)
        self.begin, self.meet, self.read = self.apart.begin, self.apart.meet, self.apart.read
        self.measure = self.apart.measure
        self.prox, self.norm = PROX[type(rule.group).__name__], DUAL[type(rule.group).__name__]

    def step(self, W: Vector, X: Vector, slopes: Vector, t: int, values: Vector, importance: float) -> Vector:
        self.apart.step(W, X, slopes, t, values, importance)
        return self.together()

    def step_on_sums(self, W: Vector, G: Vector, largest: Vector, t: int) -> Vector:
        self.apart.step_on_sums(W, G, largest, t)
        return self.together()

    def together(self) -> Vector:
        """The weights of all outputs, from the state of each."""
        pull, held, unit = (
            np.array([getattr(o, name) for o in self.apart.oracles]).T for name in ("pull", "held", "unit")
        )
        strengths = [float(np.linalg.norm(row, self.norm)) for row in held]
        rows: Vector = np.array([self.prox(row, a) for row, a in zip(pull, strengths, strict=True)])
        return unit * rows


GROUPED = {"fobos": GroupedFobos, "adagrad-fobos": GroupedAdagradFobos}


class Apart:
    """An oracle for each output."""

    def __init__(self, name: str, rule: Any, shape: tuple[int, int], features: int) -> None:
        mask = (np.arange(shape[0]) < features).astype(np.float64)
        self.oracles = [ORACLES[name](rule, mask) for _ in range(shape[1])]

    def step(self, W: Vector, X: Vector, slopes: Vector, t: int, values: Vector, importance: float) -> Vector:
        """One step on an example for each output: features X[:, k]; the loss is times the importance."""
        W = self.meet(W, X)
        for k, oracle in enumerate(self.oracles):
            oracle.look(X[:, k], float(X[:, k] @ W[:, k]), float(slopes[k]), importance)
        columns = [
            o.step(W[:, k], importance * slopes[k] * X[:, k], t, float(values[k]))
            for k, o in enumerate(self.oracles)
        ]
        return np.array(columns).T

    def measure(self, W: Vector, X: Vector, slopes: Vector, values: Vector) -> None:
        """Measure an example of a batch for each output; losses and slopes are times its importance."""
        met = self.meet(W, X)
        for k, oracle in enumerate(self.oracles):
            oracle.measure(met[:, k], X[:, k], float(slopes[k]), float(values[k]))

    def step_on_sums(self, W: Vector, G: Vector, largest: Vector, t: int) -> Vector:
        """One step on the gradients of a batch that has been measured."""
        self.meet(W, largest)
        return np.array([o.move(G[:, k], t) for k, o in enumerate(self.oracles)]).T

    def begin(self) -> Vector:
        return np.array([o.begin() for o in self.oracles]).T

    def meet(self, W: Vector, X: Vector) -> Vector:
        """The weights that an example for each output is predicted with."""
        return np.array([o.meet(W[:, k], X[:, k]) for k, o in enumerate(self.oracles)]).T

    def read(self, W: Vector) -> Vector:
        return np.array([o.read(W[:, k]) for k, o in enumerate(self.oracles)]).T


class Grouped:
    """The features in groups, the intercepts apart and without penalties."""

    def __init__(self, name: str, rule: Any, shape: tuple[int, int], features: int) -> None:
        self.features, self.shape = features, shape
        self.inner: Any = GROUPED[name](rule, (features, shape[1]))
        self.intercept = Apart(name, rule.intercept(), (shape[0] - features, shape[1]), 0)

    def step(self, W: Vector, X: Vector, slopes: Vector, t: int, values: Vector, importance: float) -> Vector:
        d = self.features
        below = self.intercept.step(W[d:], X[d:], slopes, t, values, importance)
        return np.vstack([self.inner.step(W[:d], (X * slopes)[:d] * importance, t), below])

    def begin(self) -> Vector:
        return np.zeros(self.shape)

    def meet(self, W: Vector, X: Vector) -> Vector:
        return W

    def read(self, W: Vector) -> Vector:
        return W


def kind_of(name: str, rule: Any) -> Any:
    """How the outputs are coupled."""
    if getattr(rule, "group", None) is None or not rule.group.grouped():
        return Apart
    return Grouped if name in GROUPED else Threshold


def run(name: str, rule: Any, head: Objective, X: Vector, targets: Vector, importance: Vector, *,
        intercept: bool = True, batch: int = 1) -> Trace:  # fmt: skip
    """Pass once over the rows of X of importance above 0, `batch` of them a step, from zero weights."""
    there = importance > 0
    X, targets, importance = X[there], targets[there], importance[there]
    rows, features = X.shape
    X = np.hstack([X, np.ones((rows, 1))]) if intercept else X
    shape = (X.shape[1], head.count)
    oracle: Any = kind_of(name, rule)(name, rule, shape, features)
    start, targets = from_origin(targets, intercept and ORACLES[name].ORIGIN, head.loss)
    W, losses = oracle.begin(), np.zeros(rows)
    exclusive = head.outputs.kind == "classes"
    for t, first in enumerate(range(0, rows, batch), 1):
        G, moved, total = np.zeros(shape), np.zeros(head.count), np.zeros(head.count)
        last, largest = min(first + batch, rows), np.zeros(shape)
        each = ORACLES[name].EACH and batch > 1
        for i in range(first, last):
            values, slopes = np.zeros(head.count), np.zeros(head.count)
            own = np.outer(X[i], np.ones(head.count))
            margins = (own * oracle.meet(W, own)).sum(axis=0)
            # the loss is one of the classes that have come, in the order in which they came
            met = (
                [*dict.fromkeys(targets[: i + 1, 0].astype(int).tolist())]
                if exclusive
                else [*range(head.count)]
            )
            target = np.array([met.index(int(targets[i, 0]))]) if exclusive else targets[i]
            held, pulls = np.zeros(len(met)), np.zeros(len(met))
            losses[i] = head.joint.values_slopes(margins[met], target, held, pulls)
            values[met], slopes[met] = held, pulls
            G += np.outer(X[i], slopes * importance[i])
            moved += np.abs(slopes * importance[i])
            total += importance[i] * values
            if each:
                oracle.measure(W, own, importance[i] * slopes, importance[i] * values)
                larger = (importance[i] * slopes != 0) & (np.abs(own) > np.abs(largest))
                largest = np.where(larger, own, largest)
        if each:
            W = oracle.step_on_sums(W, G, largest, t)
        elif last - first == 1:
            W = oracle.step(W, own, slopes, t, total, importance[first])
        else:
            W = oracle.step(W, G, (moved > 0).astype(float), t, total, 1.0)
    read = oracle.read(W)
    return Trace(read[:features], read[features:].sum(axis=0) + start, spread(losses, there))
